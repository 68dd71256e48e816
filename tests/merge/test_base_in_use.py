"""A base that git uses for a rebase, a bisect or a merge is left alone until that has ended, in whichever checkout."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import git
from rookery.config import steps
from rookery.merge import queue

from .yard import Yard

pytestmark = pytest.mark.slow


def stops(folder: Path, *words: str) -> None:
    """A git command that stops at a conflict."""
    done = subprocess.run(["git", *words], cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode != 0, done


def prepare(yard: Yard) -> None:
    """Main and `other` have changed the same line; `work` touches another file."""
    yard.commit(a_txt="a\n")
    yard.branch("work", b_txt="b\n")
    yard.branch("other", a_txt="theirs\n")
    yard.commit(a_txt="ours\n")


def in_linked(yard: Yard, branch: str) -> Path:
    """A second checkout on a branch; the main one leaves main."""
    git(yard.folder, "switch", "-qc", "aside")
    folder = yard.folder.parent / "linked"
    git(yard.folder, "worktree", "add", "-q", str(folder), branch)
    return folder


def start_rebase(yard: Yard, *words: str) -> Path:
    stops(yard.folder, "rebase", *words, "other")
    return yard.folder


def start_rebase_elsewhere(yard: Yard) -> Path:
    folder = in_linked(yard, "main")
    stops(folder, "rebase", "other")
    return folder


def start_rebase_of_an_unused_branch(yard: Yard) -> Path:
    """`git rebase UPSTREAM BRANCH` switches to the branch itself."""
    folder = in_linked(yard, "work")
    stops(folder, "rebase", "other", "main")
    return folder


def start_rebase_with_update_refs(yard: Yard) -> Path:
    git(yard.folder, "switch", "-qc", "above")
    yard.commit(c_txt="c\n")
    stops(yard.folder, "rebase", "--update-refs", "other")
    return yard.folder


def start_am(yard: Yard) -> Path:
    patch = subprocess.run(
        ["git", "format-patch", "-1", "--stdout", "other"], cwd=yard.folder, check=True, capture_output=True
    ).stdout
    path = yard.folder.parent / "other.patch"
    path.write_bytes(patch)
    stops(yard.folder, "am", str(path))
    return yard.folder


def start_bisect(yard: Yard) -> Path:
    git(yard.folder, "bisect", "start", "main", "main~1")
    return yard.folder


def start_merge(yard: Yard) -> Path:
    stops(yard.folder, "merge", "other")
    return yard.folder


def start_cherry_pick(yard: Yard) -> Path:
    stops(yard.folder, "cherry-pick", "other")
    return yard.folder


def start_revert(yard: Yard) -> Path:
    yard.commit(a_txt="later\n")
    stops(yard.folder, "revert", "--no-edit", "HEAD~1")
    return yard.folder


CASES: list[tuple[Callable[[Yard], Path], str, tuple[str, ...]]] = [
    (start_rebase, "rebase", ("rebase", "--abort")),
    (lambda yard: start_rebase(yard, "--apply"), "rebase", ("rebase", "--abort")),
    (lambda yard: start_rebase(yard, "--interactive"), "rebase", ("rebase", "--abort")),
    (start_rebase_elsewhere, "rebase", ("rebase", "--abort")),
    (start_rebase_of_an_unused_branch, "rebase", ("rebase", "--abort")),
    (start_rebase_with_update_refs, "rebase", ("rebase", "--abort")),
    (start_am, "am", ("am", "--abort")),
    (start_bisect, "bisect", ("bisect", "reset")),
    (start_merge, "merge", ("merge", "--abort")),
    (start_cherry_pick, "cherry-pick", ("cherry-pick", "--abort")),
    (start_revert, "revert", ("revert", "--abort")),
]


@pytest.mark.parametrize(("begin", "kind", "abort"), CASES)
def test_a_landing_waits_for_what_git_has_begun_and_is_kept_when_that_is_aborted(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, begin: Callable[[Yard], Path], kind: str, abort: tuple[str, ...]
) -> None:
    monkeypatch.setenv("GIT_SEQUENCE_EDITOR", "true")
    yard.settings("merge:\n  tiers: []\n", "exit 0")
    prepare(yard)
    folder = begin(yard)
    before = yard.main()

    assert yard.merge("--branch", "work").status == 1

    entry = yard.entry("work")
    assert (entry["state"], entry["kind"], yard.main()) == ("waiting", "busy", before)
    assert f" {kind} that uses main is in progress in {folder}" in entry["reason"]
    assert f"`git {' '.join(abort)}`" in entry["reason"]
    assert not list((yard.folder / ".git").glob("rookery-forward*"))

    git(folder, *abort)
    assert yard.main() == before
    assert yard.merge("run").status == 0
    assert yard.show("b.txt") == "b"
    assert yard.entry("work")["state"] == "landed"
    yard.assert_tidy()


def test_a_landing_waits_for_a_rebase_that_goes_on_and_lands_on_what_came_of_it(yard: Yard) -> None:
    prepare(yard)
    start_rebase(yard)
    assert yard.merge("--branch", "work").status == 1
    yard.write(a_txt="both\n")
    git(yard.folder, "add", "a.txt")
    git(yard.folder, "-c", "core.editor=true", "rebase", "--continue")
    assert yard.merge("--branch", "work").status == 0
    assert (yard.show("a.txt"), yard.show("b.txt")) == ("both", "b")


def test_no_gate_is_run_while_the_base_is_in_use(yard: Yard) -> None:
    mark = yard.folder.parent / "gate-ran"
    yard.settings("", f"touch {mark}")
    prepare(yard)
    start_rebase(yard)
    assert yard.merge("--branch", "work").status == 1
    assert not mark.exists()


@pytest.mark.parametrize("step", ["landing recorded", "lease checked"])
def test_a_rebase_that_begins_while_a_candidate_is_on_its_way_holds_it(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Main is checked out nowhere, so that no lock of an index keeps the rebase from beginning."""
    prepare(yard)
    folder = in_linked(yard, "other")
    before = yard.main()
    reached = steps.reached

    def rebase_begins(at: str) -> None:
        reached(at)
        if at == step:
            stops(folder, "rebase", "other", "main")

    monkeypatch.setattr(steps, "reached", rebase_begins)
    merger = yard.merger()
    outcome = queue.land_branch(merger, "work", "main")
    merger.ctx.close()
    monkeypatch.undo()

    assert [entry.state for entry in outcome.entries] == ["waiting"]
    assert yard.main() == before
    git(folder, "rebase", "--abort")
    assert yard.merge("run").status == 0
    assert yard.show("b.txt") == "b"


def test_a_rebase_cannot_begin_in_a_checkout_of_the_base_that_is_being_forwarded(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(yard)
    reached, refused = steps.reached, []

    def rebase_begins(at: str) -> None:
        reached(at)
        if at == "lease checked":
            done = subprocess.run(["git", "rebase", "other"], cwd=yard.folder, check=False, capture_output=True)
            refused.append(done.returncode)

    monkeypatch.setattr(steps, "reached", rebase_begins)
    merger = yard.merger()
    outcome = queue.land_branch(merger, "work", "main")
    merger.ctx.close()
    monkeypatch.undo()

    assert refused[0] != 0
    assert [entry.state for entry in outcome.entries] == ["landed"]
    assert yard.show("b.txt") == "b"
    assert git(yard.folder, "status", "--porcelain") == ""


def test_an_undo_is_refused_while_the_base_is_in_use(yard: Yard) -> None:
    prepare(yard)
    assert yard.merge("--branch", "work").status == 0
    landed = yard.main()
    start_rebase(yard)

    refused = yard.merge("undo", "work")

    assert (refused.status, refused.error["code"]) == (1, "branch_in_use")
    assert "`git rebase --abort`" in refused.error["hint"]
    assert (yard.main(), yard.entry("work")["state"]) == (landed, "landed")
    git(yard.folder, "rebase", "--abort")
    assert yard.merge("undo", "work").status == 0
    assert not yard.contains(landed)


def test_a_checkout_that_was_deleted_in_a_rebase_is_named_with_what_helps(yard: Yard) -> None:
    prepare(yard)
    shutil.rmtree(start_rebase_elsewhere(yard))
    assert yard.merge("--branch", "work").status == 1
    reason = yard.entry("work")["reason"]
    assert "`git worktree prune`" in reason
    assert "--abort" not in reason
    git(yard.folder, "worktree", "prune")
    assert yard.merge("run").status == 0
    assert yard.show("b.txt") == "b"


@pytest.mark.parametrize("words", [("resolve", "work", "--done"), ("run",)])
def test_what_was_resolved_by_hand_waits_too_and_lands_after(yard: Yard, words: tuple[str, ...]) -> None:
    yard.settings("merge:\n  tiers: []\n", "test -e b.txt")
    prepare(yard)
    yard.branch("both", at="work", a_txt="a\nwork\n")
    git(yard.folder, "branch", "-qf", "work", "both")
    assert yard.merge("--branch", "work").status == 1
    place = Path(yard.merge("resolve", "work").data["path"])
    (place / "a.txt").write_text("ours\nwork\n")
    git(place, "add", "-A")
    git(place, "commit", "-q", "--no-edit")
    resolved, main = git(place, "rev-parse", "HEAD"), yard.main()
    start_rebase(yard)

    yard.merge(*words)

    entry = yard.entry("work")
    assert (entry["state"], yard.main()) == ("waiting", main)
    assert "a rebase that uses main is in progress" in entry["reason"]
    assert git(place, "rev-parse", "HEAD") == resolved
    git(yard.folder, "rebase", "--abort")
    assert yard.merge("run").status == 0
    assert (yard.entry("work")["state"], yard.entry("work")["tier"]) == ("landed", "human")
    assert (yard.show("a.txt"), yard.show("b.txt")) == ("ours\nwork", "b")
    assert yard.contains(resolved)
    assert not place.exists()
    assert git(yard.folder, "status", "--porcelain") == ""
    yard.assert_tidy()


def test_another_branch_in_a_rebase_does_not_hold_the_base(yard: Yard) -> None:
    prepare(yard)
    folder = in_linked(yard, "other")
    stops(folder, "rebase", "main")
    assert yard.merge("--branch", "work").status == 0
    assert yard.show("b.txt") == "b"


def test_a_worktree_whose_branch_is_being_rebased_is_not_rebased(yard: Yard) -> None:
    yard.commit(a_txt="a\n")
    yard.finished("ada", [{"edit": {"path": "a.txt", "text": "ada\n"}}, {"commit": "Work"}])
    worktree = Path(yard.agent("ada")["worktree"])
    branch = yard.agent("ada")["branch"]
    yard.commit(a_txt="main\n")
    stops(worktree, "rebase", "main")
    before = git(yard.folder, "rev-parse", branch)

    refused = yard.rook.json("worktree", "rebase", "ada")

    assert (refused.status, refused.error["code"]) == (1, "branch_in_use")
    assert git(yard.folder, "rev-parse", branch) == before
