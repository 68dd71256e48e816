"""A person resolves a conflict in a worktree of its own and hands it back: real git, real `rook`."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from disks import fill, small_disk
from rookery.base.errors import Refused
from rookery.merge.person import service
from support import Ran

from .yard import Yard

__all__ = ["small_disk"]

pytestmark = pytest.mark.slow

BASE = "one\ntwo\nthree\nfour\nfive\nsix\n"
MAIN = BASE.replace("two", "two of main")
BRANCH = BASE.replace("two", "two of bee")
BOTH = BASE.replace("two\n", "two of main\ntwo of bee\n")


def conflict(yard: Yard, settings: str = "", *gates: str) -> dict[str, Any]:
    """A branch that failed by a conflict with main."""
    yard.settings(f"merge:\n  tiers: []\n{settings}", *gates)
    yard.commit(a_txt=BASE)
    yard.branch("bee", a_txt=BRANCH)
    yard.commit(a_txt=MAIN)
    assert yard.merge("--branch", "bee").status == 1
    return yard.entry("bee")


def opened(yard: Yard, name: str = "bee") -> Path:
    """Open the conflict; the worktree."""
    ran = yard.merge("resolve", name)
    assert ran.status == 0, ran
    return Path(ran.data["path"])


def commit_there(place: Path, text: str = BOTH, name: str = "a.txt") -> str:
    (place / name).write_text(text)
    git(place, "add", "-A")
    git(place, "commit", "-q", "--no-edit")
    return git(place, "rev-parse", "HEAD")


def refused(ran: Ran, status: int = 1) -> str:
    assert ran.status == status, ran
    return str(ran.envelope["error"]["message"])


def parents(yard: Yard, commit: str) -> list[str]:
    return git(yard.folder, "rev-parse", f"{commit}^@").split()


def rescued(yard: Yard) -> list[str]:
    listed = git(yard.folder, "for-each-ref", "--format=%(refname)", "refs/rookery/rescue/").splitlines()
    return [name for name in listed if "/undo/" not in name]


def assert_closed(yard: Yard) -> None:
    """Nothing is left of an open conflict: no worktree, registration, ref or row."""
    assert not list((yard.folder / ".rookery" / "worktrees").glob("*resolve*"))
    assert "resolve." not in git(yard.folder, "worktree", "list")
    assert not git(yard.folder, "for-each-ref", "refs/rookery/resolve/")
    db = yard.rook.open()
    try:
        assert db.all("SELECT merge_id FROM open_conflicts") == []
    finally:
        db.close()


def test_the_worktree_is_a_merge_under_way_with_both_sides_in_it(yard: Yard) -> None:
    entry = conflict(yard)
    main, tip = yard.main(), git(yard.folder, "rev-parse", "bee")
    ran = yard.merge("resolve", "bee")
    place = Path(ran.data["path"])
    assert git(place, "rev-parse", "HEAD", "MERGE_HEAD").split() == [main, tip]
    assert git(place, "branch", "--show-current") == ""
    stages = [row.split()[2] for row in git(place, "ls-files", "-u").splitlines()]
    assert stages == ["1", "2", "3"]
    marked = "<<<<<<< ours\ntwo of main\n||||||| base\ntwo\n=======\ntwo of bee\n>>>>>>> theirs\n"
    assert (place / "a.txt").read_text() == BASE.replace("two\n", marked)
    (file,) = ran.data["files"]
    assert (file["path"], file["kind"]) == ("a.txt", "content")
    assert file["base"]["commits"][0]["commit"] == main
    assert file["branch"]["commits"][0]["commit"] == tip
    assert (file["base"]["added"], file["branch"]["deleted"]) == (1, 1)
    notes = (place / "ROOK-CONFLICTS.md").read_text()
    assert entry["id"] in notes
    assert main[:12] in notes
    git(place, "checkout", "--ours", "--", "a.txt")
    assert (place / "a.txt").read_text() == MAIN
    git(place, "add", "-A")
    assert git(place, "status", "--porcelain") == ""  # what is left is just what main has; the notes are ignored
    assert yard.entry("bee")["state"] == "waiting"
    assert (yard.folder / "a.txt").read_text() == MAIN


@pytest.mark.parametrize("how", ["run", "done"])
def test_what_a_person_commits_lands_as_it_is(yard: Yard, how: str) -> None:
    conflict(yard, "", "grep -q bee a.txt")
    main, tip = yard.main(), git(yard.folder, "rev-parse", "bee")
    commit = commit_there(opened(yard))
    ran = yard.merge("run") if how == "run" else yard.merge("resolve", "bee", "--done")
    assert ran.status == 0, ran
    entry = yard.entry("bee")
    assert (entry["state"], entry["tier"], entry["commit"]) == ("landed", "human", commit)
    assert yard.main() == commit
    assert parents(yard, "main") == [main, tip]
    assert (yard.folder / "a.txt").read_text() == BOTH
    assert f"Merge-Id: {entry['id']}" in git(yard.folder, "log", "-1", "--format=%B", "main")
    outcomes = yard.merge("explain", "bee").data["outcomes"]
    assert outcomes[-1]["tier"] == "human"
    assert outcomes[-1]["outcome"] == "resolved"
    assert_closed(yard)
    assert rescued(yard) == []
    assert yard.merge("undo", "bee").status == 0
    assert yard.main() == main


def test_the_task_of_an_agent_is_completed_and_its_title_explains_the_conflict(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: []\n  clean: false\n")
    yard.commit(a_txt=BASE)
    works = {
        name: [{"edit": {"path": "a.txt", "text": BASE.replace("two", f"two of {name}")}}, {"commit": name}]
        for name in ("ant", "bee")
    }
    for name, steps in works.items():
        yard.finished(name, steps)
    assert yard.merge("--branch", "ant").status == 0
    assert yard.merge("--branch", "bee").status == 1
    (mail,) = yard.mail(type="merge_failed", to="bee") or yard.mail(type="merge_failed")[-1:]
    assert "rook merge resolve mrg_" in yard.rook.json("mail", "read", mail["id"]).out.decode()
    ran = yard.merge("resolve", "bee")
    (file,) = ran.data["files"]
    assert file["base"]["commits"][0]["task"] == "Task of ant"
    assert file["base"]["commits"][0]["agent"] == "ant"
    assert "The branch's agent: bee" in (Path(ran.data["path"]) / "ROOK-CONFLICTS.md").read_text()
    assert ran.data["purpose"] == "Task of bee"
    commit_there(Path(ran.data["path"]), BASE.replace("two", "two of ant\ntwo of bee"))
    assert yard.merge("run").status == 0
    task = yard.rook.json("task", "get", ran.data["entry"]["task_id"]).data
    assert task["state"] == "COMPLETED"
    assert yard.show("a.txt").splitlines()[1:3] == ["two of ant", "two of bee"]


def test_nothing_lands_while_it_is_not_committed(yard: Yard) -> None:
    entry = conflict(yard)
    main = yard.main()
    place = opened(yard)
    assert "in conflict" in refused(yard.merge("resolve", "bee", "--done"))
    assert yard.merge("run").data["entries"] == []
    assert yard.merge("--branch", "bee").status == 1
    assert yard.entry("bee")["reason"] == f"being resolved by a person in .rookery/worktrees/{place.name}"
    (place / "a.txt").write_text(BOTH)
    git(place, "add", "a.txt")
    assert "not committed" in refused(yard.merge("resolve", "bee", "--done"))
    git(place, "commit", "-q", "--no-edit")
    (place / "a.txt").write_text("dirty\n")
    assert "not committed: a.txt" in refused(yard.merge("resolve", "bee", "--done"))
    assert yard.merge("run").data["entries"] == []
    assert (yard.main(), yard.entry("bee")["id"]) == (main, entry["id"])
    git(place, "checkout", "-q", "--", "a.txt")
    (place / "a.txt.orig").write_text("left by a tool\n")
    assert yard.merge("run").status == 0
    assert (yard.folder / "a.txt").read_text() == BOTH
    (rescue,) = rescued(yard)
    assert yard.show("a.txt.orig", rescue) == "left by a tool"


def test_markers_and_broken_code_do_not_land(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: []\n")
    yard.commit(a_py="x = 1\n", a_txt=BASE)
    yard.branch("bee", a_py="x = 2\n", a_txt=BRANCH)
    main = yard.commit(a_py="x = 3\n", a_txt=MAIN)
    place = opened_after_failure(yard)
    (place / "a.py").write_text("x = (2\n")
    git(place, "add", "-A")  # with markers in a.txt
    git(place, "commit", "-q", "--no-edit")
    message = refused(yard.merge("resolve", "bee", "--done", "--accept-loss"))
    assert "a.txt: it still holds conflict markers" in message
    assert "a.py: it does not parse" in message
    assert yard.merge("run").status == 1
    assert (yard.main(), yard.entry("bee")["state"]) == (main, "waiting")
    (place / "a.py").write_text("x = 2\nx = 3\n")
    (place / "a.txt").write_text(BOTH)
    git(place, "commit", "-qam", "Really")
    assert yard.merge("run").status == 0
    assert yard.show("a.py") == "x = 2\nx = 3"
    assert_closed(yard)


def opened_after_failure(yard: Yard) -> Path:
    assert yard.merge("--branch", "bee").status == 1
    return opened(yard)


def test_lost_lines_are_told_and_land_only_when_a_person_accepts_them(yard: Yard) -> None:
    conflict(yard)
    main = yard.main()
    place = opened(yard)
    commit = commit_there(place, MAIN.replace("six\n", ""))
    assert yard.merge("run").status == 1
    assert "leaves out 2 changes" in yard.entry("bee")["reason"]
    message = refused(yard.merge("resolve", "bee", "--done"))
    assert "two of bee  (bee put it in)" in message
    assert "six  (both sides have it)" in message
    assert yard.main() == main
    ran = yard.merge("resolve", "bee", "--done", "--accept-loss")
    assert {line["line"] for line in ran.data["lost"]} == {"two of bee", "six"}
    assert yard.main() == commit
    hunks = yard.merge("explain", "bee").data["outcomes"][-1]["hunks"]
    assert {hunk["line"] for hunk in hunks} == {"two of bee", "six"}


def test_the_base_moved_meanwhile_and_goes_together(yard: Yard) -> None:
    conflict(yard, "", "grep -q bee a.txt || ! test -e a.txt")
    place = opened(yard)
    moved = yard.commit(b_txt="b\n")
    commit = commit_there(place)
    assert yard.merge("run").status == 0
    assert parents(yard, "main") == [moved, commit]
    assert (yard.show("a.txt") + "\n", yard.show("b.txt")) == (BOTH, "b")
    assert yard.contains("bee")
    assert (yard.folder / "a.txt").read_text() == BOTH
    assert_closed(yard)
    assert yard.merge("undo", "bee").status == 0
    assert yard.main() == moved
    assert yard.merge("retry", "bee").status == 0  # what was undone can land again: the conflict is there again
    assert yard.merge("run").status == 1
    assert yard.entry("bee")["kind"] == "conflict"


def test_the_base_moved_meanwhile_and_only_the_new_conflict_is_asked(yard: Yard) -> None:
    conflict(yard)
    place = opened(yard)
    (place / "new.txt").write_text("of the person\n")
    commit = commit_there(place)
    moved = yard.commit(a_txt=MAIN, new_txt="of main\n")
    ran = yard.merge("run")
    assert ran.status == 1
    entry = yard.entry("bee")
    assert (entry["state"], entry["kind"], entry["files"]) == ("failed", "conflict", ["new.txt"])
    assert yard.main() == moved
    ran = yard.merge("resolve", "bee")
    assert [file["path"] for file in ran.data["files"]] == ["new.txt"]
    place = Path(ran.data["path"])
    assert (place / "a.txt").read_text() == BOTH
    assert git(place, "rev-parse", "HEAD", "MERGE_HEAD").split() == [moved, commit]
    commit_there(place, "of main\nof the person\n", "new.txt")
    assert yard.merge("resolve", "bee", "--done").status == 0
    assert yard.show("a.txt") + "\n" == BOTH
    assert yard.show("new.txt") == "of main\nof the person"
    assert yard.contains("bee")
    assert yard.contains(commit)
    assert_closed(yard)


def test_commits_that_the_branch_got_meanwhile_are_not_left_behind(yard: Yard) -> None:
    conflict(yard)
    place = opened(yard)
    commit = commit_there(place)
    git(yard.folder, "switch", "-q", "bee")
    later = yard.commit(more_txt="more\n")
    git(yard.folder, "switch", "-q", "main")
    assert yard.merge("run").status == 0
    assert yard.show("more.txt") == "more"
    assert parents(yard, "main") == [commit, later]
    assert yard.entry("bee")["tip"] == later


def test_later_commits_of_the_branch_that_conflict_are_asked_again(yard: Yard) -> None:
    conflict(yard)
    place = opened(yard)
    commit = commit_there(place)
    git(yard.folder, "switch", "-q", "bee")
    later = yard.commit(a_txt=BRANCH.replace("two of bee", "two of bee, better"))
    git(yard.folder, "switch", "-q", "main")
    main = yard.main()
    assert yard.merge("run").status == 1
    assert (yard.main(), yard.entry("bee")["kind"]) == (main, "conflict")
    place = opened(yard)
    assert git(place, "rev-parse", "HEAD", "MERGE_HEAD").split() == [commit, later]
    commit_there(place, BOTH.replace("two of bee", "two of bee, better"))
    assert yard.merge("resolve", "bee", "--done", "--accept-loss").status == 0
    assert "two of bee, better" in yard.show("a.txt")
    assert yard.contains(later)


def test_a_branch_that_was_rewritten_is_opened_afresh(yard: Yard) -> None:
    conflict(yard)
    place = opened(yard)
    commit = commit_there(place)
    git(yard.folder, "switch", "-q", "bee")
    (yard.folder / "a.txt").write_text(BASE.replace("two", "two, rewritten"))
    git(yard.folder, "commit", "-qam", "Another", "--amend")
    git(yard.folder, "switch", "-q", "main")
    main = yard.main()
    assert yard.merge("run").status == 1
    assert "was rewritten" in yard.entry("bee")["reason"]
    assert yard.main() == main
    place = opened(yard)
    assert "two, rewritten" in (place / "a.txt").read_text()
    assert git(yard.folder, "rev-parse", *rescued(yard)) == commit


def test_what_was_undone_on_the_base_does_not_come_back_with_a_resolution(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: []\n")
    yard.commit(a_txt=BASE)
    yard.branch("bee", a_txt=BRANCH)
    yard.branch("ant", a_txt=MAIN, bad_txt="bad\n")
    assert yard.merge("--branch", "ant").status == 0
    place = opened_after_failure(yard)
    commit_there(place)
    assert yard.merge("undo", "ant").status == 0
    main = yard.main()
    assert yard.merge("run").status == 1
    assert "went back" in yard.entry("bee")["reason"]
    assert yard.main() == main
    message = refused(yard.merge("resolve", "bee"))
    assert "does not conflict" in message
    assert yard.merge("retry", "bee").status == 0
    assert yard.merge("run").status == 0
    assert yard.show("a.txt") + "\n" == BRANCH
    assert "bad.txt" not in git(yard.folder, "ls-tree", "--name-only", "main")


def test_giving_up_saves_the_work_and_the_entry_is_what_it_was(yard: Yard) -> None:
    before = conflict(yard)
    place = opened(yard)
    (place / "a.txt").write_text("half done\n")
    ran = yard.merge("resolve", "bee", "--abort")
    assert ran.status == 0, ran
    assert yard.show("a.txt", ran.data["rescue"]) == "half done"
    after = yard.entry("bee")
    assert {**after, "updated_at": ""} == {**before, "updated_at": ""}
    assert_closed(yard)
    place = opened(yard)
    commit = commit_there(place)
    ran = yard.merge("resolve", "bee", "--abort")
    assert git(yard.folder, "rev-parse", ran.data["rescue"]) == commit
    place = opened(yard)
    assert yard.merge("resolve", "bee", "--abort").data["rescue"] is None  # nothing was done there
    assert "no conflict of bee is open" in refused(yard.merge("resolve", "bee", "--abort"))
    assert_closed(yard)


def test_a_queued_branch_that_would_conflict_can_be_resolved_at_once(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n")
    yard.commit(a_txt=BASE)
    yard.branch("bee", a_txt=BRANCH)
    yard.commit(a_txt=MAIN)
    assert yard.merge("enqueue", "bee").status == 0
    place = opened(yard)
    assert yard.merge("resolve", "bee", "--abort").status == 0
    assert yard.entry("bee")["state"] == "queued"
    place = opened(yard)
    commit_there(place)
    assert yard.merge("run").status == 0
    assert yard.show("a.txt") + "\n" == BOTH


def test_what_cannot_be_resolved_is_refused_and_nothing_changes(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n")
    yard.commit(a_txt=BASE)
    yard.branch("clean", b_txt="b\n")
    yard.branch("landed", c_txt="c\n")
    yard.merge("--branch", "landed")
    yard.merge("enqueue", "clean")
    assert "does not conflict" in refused(yard.merge("resolve", "clean"))
    assert "landed is landed" in refused(yard.merge("resolve", "landed"))
    assert "neither queued" in refused(yard.merge("resolve", "nothing"))
    assert "say one of them" in refused(yard.merge("resolve", "clean", "--done", "--abort"))
    assert "belongs to --done" in refused(yard.merge("resolve", "clean", "--accept-loss"))
    assert yard.states() == {"clean": "queued", "landed": "landed"}
    assert_closed(yard)


def test_agents_may_not(yard: Yard) -> None:
    conflict(yard)
    merger = yard.merger()
    merger.actor = "merger-1"
    for use in (service.open_conflict, service.give_up):
        with pytest.raises(Refused, match="only a person"):
            use(merger, "bee")
    merger.ctx.db.close()
    assert_closed(yard)


def test_rules_settle_what_they_can_and_only_the_rest_is_open(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n")
    begin = "first\nsecond\nthird\n"
    yard.commit(a_txt=BASE, notes_txt=begin)
    yard.branch("bee", a_txt=BRANCH, notes_txt=f"{begin}both\nand more\n")
    yard.commit(a_txt=MAIN, notes_txt=f"{begin}both\n")
    assert yard.merge("--branch", "bee").status == 1
    ran = yard.merge("resolve", "bee")
    assert [file["path"] for file in ran.data["files"]] == ["a.txt"]
    assert ran.data["settled"] == ["notes.txt"]
    place = Path(ran.data["path"])
    assert (place / "notes.txt").read_text() == f"{begin}both\nand more\n"
    assert git(place, "diff", "--name-only", "--diff-filter=U") == "a.txt"
    commit_there(place)
    assert yard.merge("run").status == 0
    assert yard.show("notes.txt").endswith("both\nand more")


def test_a_gate_turns_a_resolution_down_and_the_person_goes_on_from_there(yard: Yard) -> None:
    conflict(yard, "", "! grep -n WRONG a.txt")
    main = yard.main()
    place = opened(yard)
    commit_there(place, BOTH + "WRONG\n")
    ran = yard.rook("merge", "resolve", "bee", "--done")
    assert ran.status == 1
    assert b"8:WRONG" in ran.out  # what the gate printed
    entry = yard.entry("bee")
    assert (entry["state"], entry["kind"]) == ("failed", "gate")
    assert place.name in entry["reason"]
    assert yard.main() == main
    assert yard.merge("run").data["entries"] == []  # nothing is new
    (place / "a.txt").write_text(BOTH)
    git(place, "commit", "-qam", "Right")
    assert yard.merge("run").status == 0
    assert yard.show("a.txt") + "\n" == BOTH
    assert_closed(yard)


def test_what_is_committed_after_a_failed_gate_lands_with_all_that_is_finished(yard: Yard) -> None:
    conflict(yard, "", "! grep -q BAD a.txt")
    place = opened(yard)
    commit_there(place, BOTH + "BAD\n")
    assert yard.merge("resolve", "bee", "--done").status == 1
    (place / "a.txt").write_text(BOTH)
    git(place, "commit", "-qam", "Without it")
    assert yard.merge("--all").status == 0
    assert yard.show("a.txt") + "\n" == BOTH
    assert_closed(yard)


def test_handing_back_what_a_merger_has_landed_already_is_no_error(yard: Yard) -> None:
    conflict(yard)
    commit = commit_there(opened(yard))
    assert yard.merge("run").status == 0
    ran = yard.merge("resolve", "bee", "--done")
    assert (ran.status, ran.data["status"], ran.data["entry"]["commit"]) == (0, "landed", commit)
    assert "has landed" in refused(yard.merge("resolve", "bee", "--abort"))
    assert yard.main() == commit


@pytest.mark.parametrize("strategy", ["squash", "rebase"])
def test_other_strategies_land_the_tree_as_one_commit(yard: Yard, strategy: str) -> None:
    conflict(yard, f"  strategy: {strategy}\n")
    main = yard.main()
    commit_there(opened(yard))
    assert yard.merge("run").status == 0
    assert parents(yard, "main") == [main]
    assert (yard.folder / "a.txt").read_text() == BOTH
    assert_closed(yard)
    assert rescued(yard) == []
    assert yard.merge("undo", "bee").status == 0
    assert yard.main() == main


def test_a_second_call_says_where_it_is_and_two_at_once_make_one(yard: Yard) -> None:
    conflict(yard)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: yard.merge("resolve", "bee"), range(2))
    assert (one.status, two.status) == (0, 0)
    assert sorted([one.data["is_new"], two.data["is_new"]]) == [False, True]
    assert one.data["path"] == two.data["path"]
    (Path(one.data["path"]) / "a.txt").write_text("being done\n")
    assert opened(yard) == Path(one.data["path"])
    assert (Path(one.data["path"]) / "a.txt").read_text() == "being done\n"


def test_cleaning_keeps_it_and_the_doctor_knows_it(yard: Yard) -> None:
    conflict(yard)
    place = opened(yard)
    (listed,) = yard.rook.json("worktree", "list").data
    assert listed["agent"] == place.name
    assert yard.rook.json("worktree", "clean", "--all").data[0]["verdict"] == "kept"
    git(yard.folder, "worktree", "prune")
    assert (place / "a.txt").exists()
    findings = yard.rook.json("doctor").envelope["data"]
    text = str(findings)
    assert f"being resolved by a person: .rookery/worktrees/{place.name}" in text
    assert text.count(place.name) == 1  # nothing else takes it for a stray, and proposes to remove it
    stray = place.with_name("resolve.00000000")
    stray.mkdir()
    assert "no open conflict is known for resolve.00000000" in str(yard.rook.json("doctor").envelope["data"])
    stray.rmdir()
    assert yard.merge("explain", "bee").data["resolving"] == str(place)
    shutil.rmtree(place)  # a person removes it by force
    assert yard.merge("run").status == 0
    assert (yard.entry("bee")["state"], yard.entry("bee")["kind"]) == ("failed", "conflict")
    assert_closed(yard)


def test_the_doctor_closes_what_a_killed_opening_left(yard: Yard) -> None:
    before = conflict(yard)
    yard.killed_alone("resolution merged", "merge", "resolve", "bee")
    assert "is left of a conflict" in str(yard.rook.json("doctor").envelope["data"])
    yard.rook("doctor", "--fix")
    assert {**yard.entry("bee"), "updated_at": ""} == {**before, "updated_at": ""}
    assert_closed(yard)


def test_a_broken_worktree_keeps_nothing_else_from_landing(yard: Yard) -> None:
    conflict(yard)
    place = opened(yard)
    index = Path(git(place, "rev-parse", "--git-path", "index"))
    index.write_bytes(b"broken")
    yard.branch("other", b_txt="b\n")
    assert yard.merge("--branch", "other").status == 0
    assert yard.show("b.txt") == "b"
    assert "cannot be read" in refused(yard.merge("resolve", "bee", "--done"))
    assert yard.merge("run").data["entries"] == []


HOSTILE = ("-x", "a\nb.txt", "ü ü", "'; rm -rf .txt", "caf\udce9.txt")


def test_hostile_names_binary_files_deletions_links_and_submodules(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: []\n")
    folder = os.fsencode(yard.folder)
    commits = {side: yard.commit(some_txt=f"{side}\n") for side in ("base", "bee", "main")}

    def write(side: str) -> None:
        for name in HOSTILE:
            with open(os.path.join(folder, os.fsencode(name)), "w") as file:
                file.write(f"of {side}\n")
        (yard.folder / "bin").write_bytes(b"\0" + side.encode())
        (yard.folder / "link").unlink(missing_ok=True)
        (yard.folder / "link").symlink_to(side)
        (yard.folder / "sub").mkdir(exist_ok=True)  # a submodule that is not checked out
        git(yard.folder, "add", "-A")
        git(yard.folder, "update-index", "--add", "--cacheinfo", f"160000,{commits[side]},sub")

    write("base")
    (yard.folder / "gone").write_text("base\n")
    git(yard.folder, "add", "gone")
    git(yard.folder, "commit", "-qm", "Base")
    git(yard.folder, "switch", "-qc", "bee")
    write("bee")
    (yard.folder / "gone").write_text("base\nbee\n")
    git(yard.folder, "add", "gone")
    git(yard.folder, "commit", "-qm", "Bee")
    git(yard.folder, "switch", "-q", "main")
    write("main")
    git(yard.folder, "rm", "-q", "gone")
    git(yard.folder, "commit", "-qm", "Main")
    assert yard.merge("--branch", "bee").status == 1
    ran = yard.merge("resolve", "bee")
    kinds = {file["path"]: file["kind"] for file in ran.data["files"]}
    assert kinds["bin"] == "binary"
    assert kinds["gone"] == "modify/delete"
    assert kinds["link"] == "symlink"
    assert kinds["a\nb.txt"] == "content"
    assert kinds["sub"] == "submodule"
    assert len(kinds) == len(HOSTILE) + 4
    place = Path(ran.data["path"])
    for name in HOSTILE:
        with open(os.path.join(os.fsencode(place), os.fsencode(name))) as file:
            assert "<<<<<<< ours" in file.read()
        with open(os.path.join(os.fsencode(place), os.fsencode(name)), "w") as file:
            file.write("of main\nof bee\n")
    git(place, "checkout", "--theirs", "--", "bin", "link")
    git(place, "rm", "-q", "gone")
    git(place, "update-index", "--cacheinfo", f"160000,{commits['bee']},sub")
    git(place, "add", "-A")
    git(place, "commit", "-q", "--no-edit")
    message = refused(yard.merge("resolve", "bee", "--done"))
    assert "bin:" in message
    assert "gone: bee" in message
    assert yard.merge("resolve", "bee", "--done", "--accept-loss").status == 0
    assert (yard.folder / "bin").read_bytes() == b"\0bee"
    assert os.readlink(yard.folder / "link") == "bee"
    assert not (yard.folder / "gone").exists()
    assert git(yard.folder, "rev-parse", "main:sub") == commits["bee"]
    assert (yard.folder / "-x").read_text() == "of main\nof bee\n"
    assert_closed(yard)


OPENING = (
    "resolution recorded",
    "resolution checked out",
    "resolution merged",
    "resolution explained",
    "resolution ready",
)
CLOSING = ("resolution saved", "resolution closing", "put aside", "resolution removed", "resolution closed")


@pytest.mark.sweep
@pytest.mark.parametrize("step", OPENING)
def test_opening_goes_on_after_a_kill(yard: Yard, step: str) -> None:
    conflict(yard)
    yard.killed_alone(step, "merge", "resolve", "bee")
    place = opened(yard)
    assert "<<<<<<< ours" in (place / "a.txt").read_text()
    commit_there(place)
    assert yard.merge("run").status == 0
    assert yard.show("a.txt") + "\n" == BOTH
    assert_closed(yard)


@pytest.mark.sweep
@pytest.mark.parametrize("step", OPENING[:-1])
def test_a_merger_clears_what_a_killed_opening_left(yard: Yard, step: str) -> None:
    before = conflict(yard)
    yard.killed_alone(step, "merge", "resolve", "bee")
    yard.merge("run")
    assert {**yard.entry("bee"), "updated_at": ""} == {**before, "updated_at": ""}
    assert_closed(yard)


@pytest.mark.sweep
@pytest.mark.parametrize("step", CLOSING)
def test_giving_up_goes_on_after_a_kill(yard: Yard, step: str) -> None:
    conflict(yard)
    place = opened(yard)
    (place / "a.txt").write_text("half done\n")
    yard.killed_alone(step, "merge", "resolve", "bee", "--abort")
    yard.merge("resolve", "bee", "--abort")  # or another command, such as this
    yard.merge("run")
    assert yard.entry("bee")["state"] == "failed"
    assert "half done" in {yard.show("a.txt", name) for name in rescued(yard)}
    assert_closed(yard)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "step",
    [
        *("resolution handed back", "taken", "resolution judged", "landing recorded", "checkouts forwarded"),
        *("base moved", "landing written", *CLOSING),
    ],
)
def test_landing_goes_on_after_a_kill(yard: Yard, step: str) -> None:
    conflict(yard)
    commit = commit_there(opened(yard))
    yard.killed_alone(step, "merge", "resolve", "bee", "--done")
    yard.wait_for_loop()
    yard.merge("run")
    assert yard.main() == commit
    assert yard.states() == {"bee": "landed"}
    assert_closed(yard)
    yard.assert_tidy()


@pytest.mark.sweep
@pytest.mark.parametrize("step", OPENING)
def test_earlier_work_survives_a_kill_while_it_is_opened_again(yard: Yard, step: str) -> None:
    conflict(yard)
    place = opened(yard)
    (place / "new.txt").write_text("of the person\n")
    commit_there(place)
    yard.commit(a_txt=MAIN, new_txt="of main\n")
    assert yard.merge("run").status == 1
    yard.killed_alone(step, "merge", "resolve", "bee")
    place = opened(yard)
    assert (place / "a.txt").read_text() == BOTH
    commit_there(place, "of main\nof the person\n", "new.txt")
    assert yard.merge("run").status == 0
    assert yard.show("a.txt") + "\n" == BOTH
    assert_closed(yard)


def test_a_full_disk_leaves_the_entry_as_it_was_and_a_later_call_opens_it(small_disk: Path) -> None:
    folder = small_disk / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    yard = Yard(folder)
    yard.settings("merge:\n  tiers: []\n")
    noise = "".join(f"{number * 7919:x}\n" for number in range(60_000))
    yard.commit(a_txt=BASE, big_txt=noise)
    yard.branch("bee", a_txt=BRANCH)
    yard.commit(a_txt=MAIN)
    assert yard.merge("--branch", "bee").status == 1
    before = yard.entry("bee")
    ballast = fill(small_disk, 200 * 1024)
    assert refused(yard.merge("resolve", "bee"))
    ballast.unlink()
    place = opened(yard)
    assert (place / "big.txt").read_text() == noise
    assert yard.merge("resolve", "bee", "--abort").status == 0
    assert {**yard.entry("bee"), "updated_at": ""} == {**before, "updated_at": ""}
    assert_closed(yard)
