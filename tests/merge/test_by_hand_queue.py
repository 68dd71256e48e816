"""A conflict that a person has open, and what else becomes of its branch in the queue meanwhile."""

from __future__ import annotations

import subprocess

import pytest

from conftest import git

from .test_by_hand import BOTH, MAIN, assert_closed, commit_there, conflict, opened
from .yard import Yard

pytestmark = pytest.mark.slow


def turned_down(yard: Yard) -> str:
    """Let a resolution of a conflict fail at a gate; a better one that was committed after that."""
    place = opened(yard)
    commit_there(place, BOTH + "WRONG\n")
    assert yard.merge("resolve", "bee", "--done").status == 1
    (place / "a.txt").write_text(BOTH)
    git(place, "commit", "-qam", "Right")
    return git(place, "rev-parse", "HEAD")


@pytest.mark.parametrize("words", [("--branch", "bee"), ("enqueue", "bee"), ("retry", "bee")])
def test_a_branch_that_is_landed_by_name_again_keeps_its_resolution(yard: Yard, words: tuple[str, ...]) -> None:
    conflict(yard, "", "! grep -q WRONG a.txt")
    commit = turned_down(yard)
    entry = yard.entry("bee")
    ran = yard.merge(*words)
    assert ran.status == 0, ran
    yard.merge("run")
    assert yard.main() == commit
    (landed,) = yard.merge("list", "--all").data
    assert (landed["id"], landed["state"], landed["tier"]) == (entry["id"], "landed", "human")
    assert_closed(yard)


def test_a_branch_that_was_cancelled_keeps_its_resolution_when_it_is_landed_by_name(yard: Yard) -> None:
    entry = conflict(yard)
    commit = commit_there(opened(yard))
    assert yard.merge("cancel", "bee").status == 0
    assert yard.entry("bee")["reason"] is None
    assert yard.merge("--branch", "bee").status == 0
    assert yard.main() == commit
    assert yard.entry("bee")["id"] == entry["id"]
    assert_closed(yard)


def test_an_older_entry_of_the_branch_that_is_queued_again_is_no_second_one(yard: Yard) -> None:
    older = conflict(yard, "", "! grep -q WRONG a.txt")
    assert yard.merge("--branch", "bee").status == 1
    commit = turned_down(yard)
    newer = yard.entry("bee")
    assert yard.merge("retry", older["id"]).data["id"] == newer["id"] != older["id"]
    assert yard.merge("run").status == 0
    assert yard.main() == commit
    assert yard.entry("bee")["id"] == newer["id"]


def test_an_entry_is_named_by_a_part_of_its_id(yard: Yard) -> None:
    entry = conflict(yard)
    yard.branch("wasp", b_txt="b\n")
    yard.merge("enqueue", "wasp")
    for part in (entry["id"][:20], entry["id"][4:20], entry["id"][-6:], entry["id"][-4:].lower()):
        assert yard.merge("explain", part).data["entry"]["id"] == entry["id"]
    for part in (entry["id"][-3:], "ZZZZ", "no such/branch"):
        assert yard.merge("resolve", part).error == {
            "code": "not_found",
            "message": f"{part!r} is neither queued nor has it landed",
            "hint": "`rook merge list --all` lists everything",
        }


@pytest.mark.parametrize("words", [("--all",), ("--branch", "bee"), ("predict", "bee")])
def test_a_prediction_knows_what_a_person_resolves(yard: Yard, words: tuple[str, ...]) -> None:
    entry = conflict(yard, "", "grep -q bee a.txt")
    yard.settings("")  # with every tier
    dry = () if words[0] == "predict" else ("--dry-run",)

    def predicted() -> tuple[str, bool, str]:
        data = yard.merge(*words, *dry).data
        (one,) = data if words[0] == "predict" else data["predicted"]
        return one["predicted_tier"], one["would_require_agent"], one["reason"]

    if words[0] != "--all":
        assert predicted()[:2] == ("agent", True)
    place = opened(yard)
    name = f".rookery/worktrees/resolve.{entry['id'][-8:].lower()}"
    assert predicted() == ("human", False, f"a person resolves its conflict in {name}")
    commit_there(place, MAIN)
    held = "it leaves out 1 change of one side or the other"
    assert predicted() == ("human", False, f"it is resolved by hand in {name}, and waits: {held}")
    (place / "a.txt").write_text(BOTH)
    git(place, "commit", "-qam", "Both")
    assert predicted() == ("human", False, f"it is resolved by hand in {name}")
    main = yard.main()
    yard.commit(a_txt=MAIN.replace("main", "main again"))
    moved = "main has moved, and conflicts with the resolution"
    assert predicted() == ("human", False, f"it is resolved by hand in {name}, and waits: {moved}")
    git(yard.folder, "reset", "-q", "--hard", main)
    assert yard.merge("run").status == 0
    assert yard.entry("bee")["tier"] == "human"


def test_landing_another_branch_lands_only_that_and_says_what_is_resolved(yard: Yard) -> None:
    conflict(yard)
    commit = commit_there(opened(yard))
    yard.branch("wasp", b_txt="b\n")
    ran = yard.rook("merge", "--branch", "wasp")
    assert ran.status == 0
    assert b"bee was resolved by hand. `rook merge run` lands it.\n" in ran.out
    assert not yard.contains(commit)
    assert yard.states() == {"bee": "waiting", "wasp": "landed"}
    assert yard.merge("run").status == 0
    assert yard.contains(commit)


def test_the_hints_after_a_merge_was_given_up_in_git_begin_it_again(yard: Yard) -> None:
    conflict(yard)
    place = opened(yard)
    git(place, "checkout", "-qf", "--detach", "bee")
    error = yard.merge("resolve", "bee", "--done").error
    assert "does not contain the base" in error["message"]
    assert error["hint"] in yard.merge("resolve", "bee").data["notes"]
    for command in (part for part in error["hint"].split("`")[1::2] if part.startswith("git -C ")):
        subprocess.run(command, shell=True, check=False, capture_output=True)  # the merge ends with a conflict
    commit = commit_there(place)
    assert yard.merge("resolve", "bee", "--done").status == 0
    assert yard.main() == commit
