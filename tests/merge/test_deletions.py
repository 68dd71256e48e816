"""An edit against a deletion: an agent may decide it, with a reason, also without a tool that deletes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import git

from .test_tiers import script
from .yard import Yard


def edit_against_delete(yard: Yard) -> None:
    """The base has deleted a file that the branch has changed, and a folder's other file stays."""
    yard.commit(old__a_txt="1\n2\n", old__b_txt="b\n")
    yard.branch("work", old__a_txt="1\ntheirs\n", new_txt="new\n")
    yard.commit(old__a_txt=None)


_DELETED = {"summary": "it moved", "deleted": [{"path": "old/a.txt", "why": "nothing uses it any more"}]}


def answer(resolution: Any) -> list[Any]:
    return [{"edit": {"path": "rook-resolution.json", "text": json.dumps(resolution)}}]


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["agent", "reimagine"])
def test_a_file_that_is_to_go_is_named_with_a_reason(yard: Yard, tier: str) -> None:
    yard.settings(f"merge:\n  tiers: [{tier}]\n")
    edit_against_delete(yard)
    redo = [{"run": "echo new > new.txt"}] if tier == "reimagine" else []
    script(yard, [*redo, *answer(_DELETED)])
    (entry,) = yard.merge("--branch", "work").data["entries"]
    assert (entry["state"], entry["tier"]) == ("landed", tier)
    listed = git(yard.folder, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert listed == ["README.md", "new.txt", "old/b.txt"]
    assert "nothing uses it any more" in yard.rook("merge", "explain", entry["id"]).out.decode()
    yard.assert_tidy()


_BAD_DELETIONS: dict[str, Any] = {
    "no reason": [{"path": "old/a.txt"}],
    "a blank reason": [{"path": "old/a.txt", "why": " "}],
    "not a list": {"path": "old/a.txt", "why": "it is old"},
    "another name": [{"path": "./old/a.txt", "why": "it is old"}],
    "a folder": [{"path": "old", "why": "it is old"}],
    "elsewhere": [
        {"path": "/etc/passwd", "why": "x"},
        {"path": "../../config.yaml", "why": "x"},
        {"path": 7, "why": 7},
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _BAD_DELETIONS)
def test_a_deletion_without_a_reason_or_a_file_deletes_nothing(yard: Yard, name: str) -> None:
    yard.settings("merge:\n  tiers: [agent]\n")
    edit_against_delete(yard)
    script(yard, answer({"deleted": _BAD_DELETIONS[name]}))
    before = yard.main()
    assert yard.merge("--branch", "work").status == 1
    entry = yard.entry("work")
    assert (entry["state"], entry["kind"]) == ("failed", "conflict")
    assert yard.main() == before
    assert "lost without a reason" in yard.rook("merge", "explain", "work").out.decode()
    yard.assert_tidy()
