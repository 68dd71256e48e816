"""What was undone or reverted lands again with all of its content, and nothing is called landed that is not there."""

from __future__ import annotations

from contextlib import closing

import pytest

from conftest import git
from rookery.merge import service

from .yard import Yard

pytestmark = pytest.mark.slow

LINES = "1\n2\n3\n4\n5\n6\n7\n"
ONE = "one\n2\n3\n4\n5\n6\n7\n"
BOTH = "one\n2\n3\n4\n5\n6\nseven\n"


@pytest.fixture(params=["merge", "squash", "rebase"])
def landed(request: pytest.FixtureRequest, yard: Yard) -> Yard:
    """Two branches on main, so that undoing the first one has to revert it. That one has two commits."""
    yard.settings(f"merge:\n  strategy: {request.param}\n")
    yard.commit(f_txt=LINES)
    yard.branch("one", a_txt="a\n")
    git(yard.folder, "switch", "-q", "one")
    yard.commit(f_txt=ONE)
    git(yard.folder, "switch", "-q", "main")
    yard.branch("two", f_txt=LINES.replace("7", "seven"))
    for name in ("one", "two"):
        assert yard.merge("--branch", name).status == 0
    assert content(yard) == ("a", BOTH.rstrip())
    return yard


def content(yard: Yard, at: str = "main") -> tuple[str | None, str]:
    """What the base and its checkout have of the first branch."""
    listed = git(yard.folder, "ls-tree", "--name-only", at).splitlines()
    own = yard.show("a.txt", at) if "a.txt" in listed else None
    if at == "main":
        assert git(yard.folder, "status", "--porcelain") == ""
        assert (yard.folder / "a.txt").exists() == (own is not None)
    return own, yard.show("f.txt", at)


UNDONE = (None, LINES.replace("7", "seven").rstrip())
THERE = ("a", BOTH.rstrip())


def test_an_undone_branch_lands_again_in_full_and_can_be_undone_again(landed: Yard) -> None:
    yard = landed
    for _ in range(2):
        (undone,) = yard.merge("undo", "one").data
        assert undone["how"] == "reverted"
        assert content(yard) == UNDONE
        (again,) = yard.merge("--branch", "one").data["entries"]
        assert again["id"] != undone["entry"]["id"]
        assert again["state"] == "landed"
        assert content(yard) == THERE
        yard.commit(other_txt=again["id"])  # so that the next undo reverts, too
    assert yard.merge("--branch", "one").data["entries"][0]["id"] == again["id"]
    assert content(yard) == THERE


def test_an_undone_branch_lands_again_by_retry(landed: Yard) -> None:
    yard = landed
    assert yard.merge("undo", "one").status == 0
    assert yard.merge("retry", "one").status == 0
    assert yard.merge("run").status == 0
    assert content(yard) == THERE


def test_an_undone_branch_that_went_on_lands_with_both_parts(landed: Yard) -> None:
    yard = landed
    assert yard.merge("undo", "one").status == 0
    git(yard.folder, "switch", "-q", "one")
    yard.commit(more_txt="more\n")
    git(yard.folder, "switch", "-q", "main")
    assert yard.merge("--branch", "one").status == 0
    assert content(yard) == THERE
    assert yard.show("more.txt") == "more"


def test_a_new_attempt_on_top_of_an_undone_one_brings_all_of_it(landed: Yard) -> None:
    yard = landed
    assert yard.merge("undo", "one").status == 0
    yard.branch("next", "one", more_txt="more\n")
    assert yard.merge("--branch", "next").status == 0
    assert content(yard) == THERE
    assert yard.show("more.txt") == "more"
    # So the first attempt is there as well, and its landing changes nothing.
    before = git(yard.folder, "rev-parse", "main^{tree}")
    yard.merge("--branch", "one")
    assert git(yard.folder, "rev-parse", "main^{tree}") == before


@pytest.mark.parametrize("how", ["git revert", "by hand"])
def test_what_a_person_reverts_is_not_landed_any_more(landed: Yard, how: str) -> None:
    yard = landed
    entry = yard.entry("one")
    if how == "git revert":
        many = git(yard.folder, "rev-list", "--no-merges", entry["commit"], f"^{entry['base_before']}").split()
        is_merge = len(git(yard.folder, "rev-parse", f"{entry['commit']}^@").split()) == 2
        words = ("-m", "1", entry["commit"]) if is_merge else tuple(many)
        git(yard.folder, "revert", "--no-edit", *words)
    else:
        yard.commit(f_txt=LINES.replace("7", "seven"), a_txt=None)
    assert content(yard) == UNDONE
    assert yard.merge("--branch", "one", "--dry-run").data["predicted"][0]["predicted_tier"] == "clean"
    (again,) = yard.merge("--branch", "one").data["entries"]
    assert (again["state"], again["id"] != entry["id"]) == ("landed", True)
    assert content(yard) == THERE


def test_a_revert_that_was_reverted_leaves_the_work_landed(landed: Yard) -> None:
    yard = landed
    assert yard.merge("undo", "one").status == 0
    git(yard.folder, "revert", "--no-edit", "HEAD")
    assert content(yard) == THERE
    tree = git(yard.folder, "rev-parse", "main^{tree}")
    assert yard.merge("--branch", "one").data["entries"][0]["state"] == "landed"
    assert git(yard.folder, "rev-parse", "main^{tree}") == tree


def test_later_edits_of_the_same_lines_do_not_unland(landed: Yard) -> None:
    yard = landed
    before = yard.entry("one")
    edited = yard.commit(f_txt=BOTH.replace("one", "ONE"), a_txt="b\n")
    (entry,) = yard.merge("--branch", "one").data["entries"]
    assert (entry["id"], entry["state"]) == (before["id"], "landed")
    assert yard.main() == edited


def test_a_branch_is_rebased_with_its_undone_work(yard: Yard) -> None:
    yard.finished("bee", [{"edit": {"path": "bee.txt", "text": "bee\n"}}, {"commit": "Bee"}])
    assert yard.merge("--all").status == 0
    yard.commit(other_txt="o\n")
    assert yard.merge("undo", "bee").data[0]["how"] == "reverted"
    rebased = yard.rook.json("worktree", "rebase", "bee").data
    assert rebased["commits"] == 1
    assert yard.show("bee.txt", rebased["branch"]) == "bee"
    assert yard.merge("--branch", "bee").status == 0
    assert yard.show("bee.txt") == "bee"


def test_a_task_completes_again_only_with_its_content(yard: Yard) -> None:
    task = yard.finished("bee", [{"edit": {"path": "bee.txt", "text": "bee\n"}}, {"commit": "Bee"}])
    assert yard.merge("--all").status == 0
    yard.commit(other_txt="o\n")
    assert yard.merge("undo", "bee").data[0]["how"] == "reverted"
    assert yard.rook.json("task", "get", task).data["state"] == "PENDING"
    assert not (yard.folder / "bee.txt").exists()
    # No cleaning takes the branch away: its work is nowhere else.
    branch = yard.agent("bee")["branch"]
    assert yard.rook("worktree", "clean").status == 0
    assert yard.rook("worktree", "clean", "--all").status == 0
    assert yard.rook("vcs", "cleanup", "--delete").status == 0
    assert git(yard.folder, "branch", "--list", "--format=%(refname:short)", "rook/*") == branch
    skipped = yard.merge("--all").envelope["data"]["skipped"]
    assert "rook merge --branch bee" in skipped[0]["reason"]
    assert yard.merge("--branch", "bee").status == 0
    assert yard.show("bee.txt") == "bee"
    assert (yard.folder / "bee.txt").read_text() == "bee\n"
    assert yard.rook.json("task", "get", task).data["state"] == "COMPLETED"


def test_a_rebase_in_the_same_second_makes_commits_of_its_own(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the base would go through commits of the branch, and git would think that it parted from there."""
    yard.settings("merge:\n  strategy: rebase\n")
    with monkeypatch.context() as patch:
        for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
            patch.setenv(name, "2026-01-01T00:00:00Z")
        first = yard.branch("one", a_txt="a\n")
        go_on(yard, "one", b_txt="b\n")
        land(yard, "one")
    assert not yard.contains(first)
    yard.commit(other_txt="o\n")
    assert yard.merge("undo", "one").status == 0
    yard.branch("next", "one", c_txt="c\n")
    land(yard, "next")
    assert names(yard) == ["a.txt", "b.txt", "c.txt", "other.txt"]


def go_on(yard: Yard, branch: str, **files: str) -> None:
    """Add a commit to a branch; the checkout goes back to main."""
    git(yard.folder, "switch", "-q", branch)
    yard.commit(**files)
    git(yard.folder, "switch", "-q", "main")


def names(yard: Yard) -> list[str]:
    """The files of main, less the one that is always there."""
    return [name for name in git(yard.folder, "ls-tree", "--name-only", "main").split() if name != "README.md"]


@pytest.fixture(params=["merge", "squash", "rebase"])
def fresh(request: pytest.FixtureRequest, yard: Yard) -> Yard:
    yard.settings(f"merge:\n  strategy: {request.param}\n")
    return yard


def land(yard: Yard, branch: str) -> str:
    """Land a branch; return the entry's id."""
    (entry,) = yard.merge("--branch", branch).data["entries"]
    assert entry["state"] == "landed"
    return str(entry["id"])


def test_a_part_that_lands_again_does_not_stand_for_the_whole(fresh: Yard) -> None:
    yard = fresh
    yard.branch("rook/x/one", a_txt="a\n")
    yard.branch("rook/y/two", "rook/x/one", b_txt="b\n")
    land(yard, "rook/y/two")
    yard.commit(o_txt="o\n")
    assert yard.merge("undo", "rook/y/two").status == 0
    land(yard, "rook/x/one")
    assert names(yard) == ["a.txt", "o.txt"]
    assert yard.rook("vcs", "cleanup", "--delete").status == 0
    assert "rook/y/two" in git(yard.folder, "branch", "--list", "rook/*")
    land(yard, "rook/y/two")
    assert names(yard) == ["a.txt", "b.txt", "o.txt"]


def test_a_branch_that_took_its_own_landing_in_lands_again_in_full(fresh: Yard) -> None:
    """Agents that are asked to rebase do so."""
    yard = fresh
    yard.branch("x", a_txt="a\n")
    land(yard, "x")
    git(yard.folder, "switch", "-q", "x")
    git(yard.folder, "merge", "-q", "--no-edit", "main")
    git(yard.folder, "switch", "-q", "main")
    go_on(yard, "x", b_txt="b\n")
    yard.commit(o_txt="o\n")
    assert yard.merge("undo", "x").data[0]["how"] == "reverted"
    land(yard, "x")
    assert names(yard) == ["a.txt", "b.txt", "o.txt"]


def test_what_landed_by_another_strategy_lands_again_too(yard: Yard) -> None:
    for strategy in ("squash", "rebase"):
        yard.settings(f"merge:\n  strategy: {strategy}\n")
        branch = f"by-{strategy}"
        yard.branch(branch, **{f"{strategy}1_txt": "1\n"})
        first = land(yard, branch)
        yard.settings("merge:\n  strategy: merge\n")
        go_on(yard, branch, **{f"{strategy}2_txt": "2\n"})
        land(yard, branch)
        yard.commit(**{f"{strategy}3_txt": "3\n"})
        assert yard.merge("undo", first).status == 0
        assert f"{strategy}1.txt" not in names(yard)
        land(yard, branch)
        assert {f"{strategy}1.txt", f"{strategy}2.txt", f"{strategy}3.txt"} <= set(names(yard))


def test_only_what_was_undone_comes_again(fresh: Yard) -> None:
    """A second landing stays; main has edited one of its files and deleted another."""
    yard = fresh
    yard.branch("x", a_txt="a\n")
    first = land(yard, "x")
    go_on(yard, "x", b_txt="b\n", c_txt="c\n")
    land(yard, "x")
    yard.commit(b_txt="edited\n", c_txt=None)
    assert yard.merge("undo", first).status == 0
    land(yard, "x")
    assert (names(yard), yard.show("b.txt")) == (["a.txt", "b.txt"], "edited")


def test_work_that_came_with_another_branch_is_no_landing_of_its_own(fresh: Yard) -> None:
    yard = fresh
    yard.branch("x", a_txt="a\n")
    yard.branch("y", "x", b_txt="b\n")
    land(yard, "y")
    before = yard.main()
    land(yard, "x")
    assert yard.main() == before
    yard.commit(o_txt="o\n")
    assert yard.merge("undo", "y").status == 0
    land(yard, "x")
    assert names(yard) == ["a.txt", "o.txt"]
    land(yard, "y")
    assert names(yard) == ["a.txt", "b.txt", "o.txt"]


def test_a_base_that_was_moved_to_another_branch(fresh: Yard) -> None:
    yard = fresh
    yard.branch("feature", f_txt="f\n")
    yard.branch("x", a_txt="a\n")
    land(yard, "x")
    git(yard.folder, "switch", "-q", "feature")
    git(yard.folder, "merge", "-q", "--no-edit", "main")
    git(yard.folder, "switch", "-q", "main")
    git(yard.folder, "merge", "-q", "--ff-only", "feature")
    yard.commit(a_txt="edited\n")
    before = yard.main()
    land(yard, "x")
    assert yard.main() == before
    yard.commit(a_txt="a\n")
    assert yard.merge("undo", "x").status == 0
    assert names(yard) == ["f.txt"]
    land(yard, "x")
    assert names(yard) == ["a.txt", "f.txt"]


def test_a_squash_says_what_it_reverts(yard: Yard) -> None:
    yard.branch("x", a_txt="a\n")
    commit = yard.merge("--branch", "x").data["entries"][0]["commit"]
    yard.settings("merge:\n  strategy: squash\n")
    git(yard.folder, "switch", "-qc", "away")
    git(yard.folder, "revert", "--no-edit", "-m", "1", commit)
    yard.commit(more_txt="more\n")
    git(yard.folder, "switch", "-q", "main")
    land(yard, "away")
    assert f"This reverts commit {commit}" in git(yard.folder, "log", "-1", "--format=%B", "main")
    land(yard, "x")
    assert names(yard) == ["a.txt", "more.txt"]


def test_many_files_that_are_taken_out_by_hand(fresh: Yard) -> None:
    yard = fresh
    many = {f"f{number}_txt": "1\n" for number in range(230)}
    yard.branch("x", **many)
    land(yard, "x")
    yard.commit(**dict.fromkeys(many))
    assert names(yard) == []
    land(yard, "x")
    assert len(names(yard)) == len(many)


def test_a_branch_of_which_nothing_says_where_it_began_is_not_called_landed(yard: Yard) -> None:
    yard.branch("x", a_txt="a\n")
    git(yard.folder, "merge", "-q", "--ff-only", "x")
    git(yard.folder, "revert", "--no-edit", "HEAD")
    done = yard.merge("--branch", "x")
    assert done.status == 1
    assert "nothing says where its work began" in yard.entry("x")["reason"]
    assert names(yard) == []


def test_a_branch_of_which_nothing_says_where_it_began_does_not_keep_others_from_being_predicted(yard: Yard) -> None:
    yard.branch("x", a_txt="a\n")
    git(yard.folder, "merge", "-q", "--ff-only", "x")
    git(yard.folder, "revert", "--no-edit", "HEAD")
    yard.branch("y", b_txt="b\n")
    unclear, clean = yard.merge("predict", "x", "y").data
    assert (unclear["predicted_tier"], unclear["would_require_agent"]) == ("unknown", True)
    assert "nothing says where its work began; `git revert` the revert" in unclear["reason"]
    assert (clean["predicted_tier"], clean["files"]) == ("clean", ["b.txt"])
    assert yard.merge("enqueue", "x", "y").status == 0
    dry_run = yard.merge("--all", "--dry-run").data["predicted"]
    assert {prediction["branch"]: prediction["predicted_tier"] for prediction in dry_run} == {
        "x": "unknown",
        "y": "clean",
    }


def test_a_reverted_entry_that_is_cleaned_meanwhile_does_not_count_as_landed(yard: Yard) -> None:
    yard.branch("x", a_txt="a\n")
    land(yard, "x")
    git(yard.folder, "revert", "--no-edit", "-m", "1", "HEAD")
    merger = yard.merger()
    with closing(merger.ctx.db) as db:
        drafts = [service.draft(merger, "x", "main")]
        reverted = service.find_reverted(merger, drafts)
        db.execute("UPDATE merges SET cleaned_at = updated_at || '0'")
        with db.write():
            assert service.insert(merger, drafts, reverted) == drafts


def test_an_undo_does_not_move_the_base_back_while_another_branch_has_the_landing(fresh: Yard) -> None:
    """It would bring back what was undone."""
    yard = fresh
    yard.branch("x", a_txt="a\n")
    land(yard, "x")
    yard.branch("z", z_txt="z\n")
    assert yard.merge("undo", "x").data[0]["how"] == "reverted"
    land(yard, "z")
    assert names(yard) == ["z.txt"]


def test_what_was_reverted_in_part_before_the_undo_stays_so(yard: Yard) -> None:
    """The branch took that revert in, so its files are without it."""
    yard.settings("merge:\n  strategy: rebase\n")
    yard.branch("x", a_txt="a\n")
    go_on(yard, "x", b_txt="b\n")
    land(yard, "x")
    git(yard.folder, "revert", "--no-edit", "HEAD")  # the second of its commits
    assert names(yard) == ["a.txt"]
    git(yard.folder, "switch", "-q", "x")
    git(yard.folder, "merge", "-q", "--no-edit", "main")
    git(yard.folder, "switch", "-q", "main")
    assert names(yard) == ["a.txt"]
    assert yard.merge("undo", "x").data[0]["how"] == "reverted"
    assert names(yard) == []
    land(yard, "x")
    assert names(yard) == ["a.txt"]


@pytest.mark.parametrize("ref", ["refs/tags/v1", "refs/remotes/origin/main"])
def test_an_undo_reverts_what_a_tag_or_a_remote_has(yard: Yard, ref: str) -> None:
    yard.branch("x", a_txt="a\n")
    land(yard, "x")
    git(yard.folder, "update-ref", ref, "main")
    landed = yard.main()
    assert yard.merge("undo", "x").data[0]["how"] == "reverted"
    assert (names(yard), yard.contains(landed)) == ([], True)


def test_marks_of_undone_work_do_not_stand_in_each_others_way(yard: Yard) -> None:
    """A branch and a later one under its name: git keeps a ref as a file or as a folder."""
    for branch in ("work", "work/more"):
        yard.branch(branch, **{f"{branch.replace('/', '')}_txt": "1\n"})
        land(yard, branch)
        yard.commit(o_txt=branch)
        assert yard.merge("undo", branch).data[0]["how"] == "reverted"
        git(yard.folder, "branch", "-qD", branch)
    assert names(yard) == ["o.txt"]
    marks = git(yard.folder, "for-each-ref", "--format=%(refname)", "refs/rookery/undone/").split()
    assert marks == ["refs/rookery/undone/work", "refs/rookery/undone/work%2Fmore"]
    git(yard.folder, "branch", "work", marks[0])
    land(yard, "work")
    assert names(yard) == ["o.txt", "work.txt"]
    left = git(yard.folder, "for-each-ref", "--format=%(refname)", "refs/rookery/undone/").split()
    assert left == marks[1:]
