"""One branch lands: gates first, then the base moves, and the user's own files stay untouched."""

from __future__ import annotations

import pytest

from conftest import git

from .yard import Yard


def test_a_branch_lands_by_a_merge_commit_and_the_checkout_follows(yard: Yard) -> None:
    tip = yard.branch("work", a_txt="a\n")
    before = yard.main()
    data = yard.merge("--branch", "work").data
    (entry,) = data["entries"]
    assert (entry["state"], entry["tier"], entry["base_before"]) == ("landed", "clean", before)
    assert entry["commit"] == yard.main()
    assert git(yard.folder, "log", "-1", "--format=%P", "main").split() == [before, tip]
    message = git(yard.folder, "log", "-1", "--format=%B", "main")
    assert "Branch: work" in message
    assert f"Merge-Id: {entry['id']}" in message
    assert (yard.folder / "a.txt").read_text() == "a\n"
    assert git(yard.folder, "status", "--porcelain") == ""
    yard.assert_tidy()


@pytest.mark.parametrize(("strategy", "commits"), [("merge", 3), ("squash", 1), ("rebase", 2)])
def test_the_strategy_says_what_the_base_gets(yard: Yard, strategy: str, commits: int) -> None:
    yard.settings(f"merge:\n  strategy: {strategy}\n")
    git(yard.folder, "switch", "-qc", "work")
    yard.commit(a_txt="a\n")
    yard.commit(b_txt="b\n")
    git(yard.folder, "switch", "-q", "main")
    before = yard.commit(c_txt="c\n")
    assert yard.merge("--branch", "work").status == 0
    assert int(git(yard.folder, "rev-list", "--count", f"{before}..main")) == commits
    assert (yard.show("a.txt"), yard.show("b.txt"), yard.show("c.txt")) == ("a", "b", "c")
    assert "Merge-Id: mrg_" in git(yard.folder, "log", "-1", "--format=%B", "main")
    if strategy != "merge":
        assert git(yard.folder, "rev-list", "--merges", f"{before}..main") == ""


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["merge", "squash", "rebase"])
def test_a_branch_that_goes_on_after_it_has_landed_lands_again(yard: Yard, strategy: str) -> None:
    yard.settings(f"merge:\n  strategy: {strategy}\n  tiers: []\n")
    yard.commit(a_txt="one\ntwo\nthree\n")
    yard.branch("work", a_txt="one\nfirst\nthree\n")
    assert yard.merge("--branch", "work").status == 0
    git(yard.folder, "switch", "-q", "work")
    yard.commit(a_txt="one\nsecond\nthree\n", b_txt="b\n")
    git(yard.folder, "switch", "-q", "main")
    yard.commit(c_txt="c\n")
    assert yard.merge("predict", "work").data[0]["predicted_tier"] == "clean"

    assert yard.merge("--branch", "work").status == 0

    assert (yard.show("a.txt"), yard.show("b.txt"), yard.show("c.txt")) == ("one\nsecond\nthree", "b", "c")
    if strategy == "squash":
        assert git(yard.folder, "log", "-1", "--format=%B", "main").count("\n- ") == 1


@pytest.mark.slow
def test_an_undone_branch_lands_again_with_its_later_commits(yard: Yard) -> None:
    yard.settings("merge:\n  strategy: squash\n  tiers: []\n")
    yard.commit(a_txt="one\ntwo\nthree\n")
    yard.branch("work", a_txt="one\nfirst\nthree\n")
    assert yard.merge("--branch", "work").status == 0
    assert yard.merge("undo", "work").status == 0
    git(yard.folder, "switch", "-q", "work")
    yard.commit(b_txt="b\n")
    git(yard.folder, "switch", "-q", "main")

    assert yard.merge("--branch", "work").status == 0

    assert (yard.show("a.txt"), yard.show("b.txt")) == ("one\nfirst\nthree", "b")


def test_another_base_can_be_named(yard: Yard) -> None:
    git(yard.folder, "branch", "next")
    yard.branch("work", a_txt="a\n")
    main = yard.main()
    assert yard.merge("--branch", "work", "--into", "next").status == 0
    assert yard.main() == main
    assert yard.show("a.txt", "next") == "a"
    assert not (yard.folder / "a.txt").exists()


@pytest.mark.slow
def test_what_fails_its_gate_does_not_land(yard: Yard) -> None:
    yard.settings("", "test ! -e bad.txt || { echo it is bad; exit 3; }")
    yard.branch("good", good_txt="g\n")
    yard.branch("bad", bad_txt="b\n")
    before = yard.main()
    ran = yard.merge("--branch", "bad")
    assert ran.status == 1
    (entry,) = ran.envelope["data"]["entries"]
    assert (entry["state"], entry["kind"]) == ("failed", "gate")
    assert "g1" in entry["reason"]
    assert "3" in entry["reason"]
    assert yard.main() == before
    assert yard.merge("--branch", "good").status == 0
    yard.assert_tidy()


@pytest.mark.slow
def test_files_in_the_way_let_it_wait_and_nothing_is_touched(yard: Yard) -> None:
    yard.commit(a_txt="a\n")
    yard.branch("work", a_txt="A\n")
    yard.branch("other", b_txt="b\n")
    (yard.folder / "a.txt").write_text("mine\n")
    before = yard.main()
    ran = yard.merge("--branch", "work")
    assert ran.status == 1
    (entry,) = ran.envelope["data"]["entries"]
    assert entry["state"] == "waiting"
    assert "a.txt" in entry["reason"]
    assert yard.main() == before
    assert (yard.folder / "a.txt").read_text() == "mine\n"
    # What touches other files lands meanwhile, also in the same batch.
    assert yard.merge("--branch", "other").status == 0
    git(yard.folder, "checkout", "-q", "a.txt")
    assert yard.rook.json("merge", "run").status == 0
    assert yard.states() == {"work": "landed", "other": "landed"}
    assert (yard.folder / "a.txt").read_text() == "A\n"
    yard.assert_tidy()


@pytest.mark.slow
def test_a_dirty_checkout_elsewhere_holds_only_what_touches_its_files(yard: Yard) -> None:
    yard.commit(a_txt="a\n")
    yard.branch("one", a_txt="A\n")
    yard.branch("two", b_txt="b\n")
    yard.branch("three", c_txt="c\n")
    (yard.folder / "a.txt").write_text("mine\n")
    yard.rook("merge", "enqueue", "one", "two", "three")
    assert yard.merge("run").status == 1
    assert yard.states() == {"one": "waiting", "two": "landed", "three": "landed"}


@pytest.mark.slow
def test_a_branch_without_commits_and_one_that_is_there_already(yard: Yard) -> None:
    git(yard.folder, "branch", "same")
    yard.branch("merged", a_txt="a\n")
    git(yard.folder, "merge", "-q", "--ff-only", "merged")
    data = yard.merge("--branch", "merged").data
    assert data["entries"][0]["state"] == "landed"
    assert yard.merge("--branch", "nowhere").error["code"] == "invalid_input"
    assert yard.merge("--branch", "main").error["code"] == "invalid_input"
    assert yard.merge().error["code"] == "invalid_input"
    assert yard.merge("--all").data["entries"] == []


@pytest.mark.slow
def test_a_conflict_is_left_to_people_where_no_tier_may_try(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: []\n")
    yard.commit(a_txt="1\n2\n3\n")
    yard.branch("one", a_txt="1\nx\n3\n")
    yard.branch("two", a_txt="1\ny\n3\n")
    yard.rook("merge", "enqueue", "one", "two")
    assert yard.merge("run").status == 1
    assert yard.states() == {"one": "landed", "two": "failed"}
    failed = yard.entry("two")
    assert (failed["kind"], failed["files"], failed["tier"]) == ("conflict", ["a.txt"], "human")
    # Repaired on the branch, it lands.
    git(yard.folder, "switch", "-q", "two")
    git(yard.folder, "merge", "-q", "-X", "ours", "main")
    git(yard.folder, "switch", "-q", "main")
    assert yard.merge("retry", "two").status == 0
    assert yard.merge("run").status == 0
    assert yard.show("a.txt") == "1\ny\n3"


@pytest.mark.slow
def test_cancel_retry_and_the_order_of_the_queue(yard: Yard) -> None:
    for name in ("a", "b", "c"):
        yard.branch(name, **{f"{name}_txt": name})
    yard.rook("merge", "enqueue", "a", "b")
    yard.rook("merge", "enqueue", "c", "--priority", "1")
    assert [entry["branch"] for entry in yard.merge("list").data] == ["c", "a", "b"]
    assert yard.merge("cancel", "a").data["state"] == "cancelled"
    assert yard.merge("cancel", "a").error["code"] == "invalid_state"
    assert [entry["branch"] for entry in yard.merge("list").data] == ["c", "b"]
    assert yard.merge("retry", "a").data["state"] == "queued"
    assert yard.merge("enqueue", "a").data[0]["id"] == yard.entry("a")["id"]
    assert [entry["branch"] for entry in yard.merge("run").data["entries"]] == ["c", "a", "b"]


@pytest.mark.slow
def test_a_dry_run_changes_nothing(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [agent]\n")
    yard.commit(a_txt="1\n2\n3\n")
    yard.branch("one", a_txt="1\nx\n3\n")
    yard.commit(a_txt="1\ny\n3\n")
    yard.branch("two", b_txt="b\n")
    objects = git(yard.folder, "count-objects", "-v")
    refs = git(yard.folder, "for-each-ref")
    events = yard.rook.count_events()
    one, two = (yard.merge("--branch", name, "--dry-run").data["predicted"][0] for name in ("one", "two"))
    assert (one["predicted_tier"], one["would_require_agent"]) == ("agent", True)
    assert one["conflicts"] == [{"path": "a.txt", "kind": "content"}]
    assert (two["predicted_tier"], two["files"], two["would_require_agent"]) == ("clean", ["b.txt"], False)
    yard.branch("three", b_txt="other\n")
    objects = git(yard.folder, "count-objects", "-v")
    refs = git(yard.folder, "for-each-ref")
    together = yard.merge("predict", "three", "two", "one").data  # two and three conflict with each other
    assert [prediction["predicted_tier"] for prediction in together] == ["clean", "agent", "agent"]
    assert together[1]["conflicts"] == [{"path": "b.txt", "kind": "add/add"}]
    assert git(yard.folder, "count-objects", "-v") == objects
    assert git(yard.folder, "for-each-ref") == refs
    assert yard.rook.count_events() == events
    assert yard.merge("list").data == []
