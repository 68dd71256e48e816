"""What every backend promises: one suite over git, jj, and jj beside git."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rookery.base.errors import InvalidInput, InvalidState, Refused
from rookery.vcs.model import Change, Conflicted, DirtyCheckout, NothingToCommit, RefMoved, UnknownRevision, Vcs

from .repositories import Repository

HOSTILE = [
    "new\nline",
    'quo"te',
    "-dash",
    "🐦.txt",
    " space ",
    "tab\t",
    "a\\b",
    "esc\x1b[1m",
    "d/e f/g",
    "x\ndiff --git y",
]


def kinds(vcs: Vcs) -> dict[str, str]:
    """Changed paths and what happened to them; new files are called differently by backends without an index."""
    return {c.path: "added" if c.kind == "untracked" else c.kind for c in vcs.status().changes}


def test_the_checkout_is_known(repository: Repository) -> None:
    vcs = repository.vcs()
    assert vcs.kind == repository.kind
    assert vcs.root == str(repository.path)
    assert vcs.main_root() == str(repository.path)


def test_status_of_a_clean_checkout(repository: Repository) -> None:
    status = repository.vcs().status()
    assert status.is_clean
    assert status.branch == "main"
    assert status.commit == repository.vcs().current_commit() == repository.vcs().resolve("main")


def test_everything_works_before_the_first_commit(empty: Repository) -> None:
    vcs = empty.vcs()
    assert vcs.status().commit is None
    assert vcs.status().is_clean
    assert vcs.current_commit() is None
    assert list(vcs.log()) == []
    assert list(vcs.diff()) == []
    assert vcs.branches() == {}
    assert vcs.saved_refs() == {}
    with pytest.raises(NothingToCommit):
        vcs.commit("Nothing")
    empty.write("a.txt", "1\n2\n")
    assert kinds(vcs) == {"a.txt": "added"}
    assert [(d.path, d.kind, d.added, d.deleted) for d in vcs.diff()] == [("a.txt", "added", 2, 0)]
    assert "+1\n+2\n" in vcs.patch()
    commit = vcs.commit("First")
    assert vcs.current_commit() == commit
    assert [entry.message for entry in vcs.log()] == ["First"]


def test_status_names_every_kind_of_change(repository: Repository) -> None:
    vcs = repository.vcs()
    for name in ("gone", "edit", "old-name", "script", "kind"):
        repository.write(name, f"{name}\n" * 20)
    vcs.commit("More files")
    (repository.path / "gone").unlink()
    repository.write("edit", "other\n")
    (repository.path / "old-name").rename(repository.path / "new-name")
    (repository.path / "script").chmod(0o755)
    (repository.path / "kind").unlink()
    (repository.path / "kind").symlink_to("edit")
    repository.write("fresh/file", b"\0\1")
    expected = {
        "gone": "deleted",
        "edit": "modified",
        "script": "modified",
        "kind": "type_changed",
        "fresh/file": "added",
    }
    # Git's status pairs a deleted with an untracked file only once both are staged.
    renamed = {"new-name": "renamed"} if repository.kind == "jj" else {"old-name": "deleted", "new-name": "added"}
    assert kinds(vcs) == expected | renamed
    assert {(d.path, d.kind, d.old_path) for d in vcs.diff()} == {
        *((path, kind, None) for path, kind in expected.items()),
        ("new-name", "renamed", "old-name"),
    }


def test_a_commit_takes_everything(repository: Repository) -> None:
    vcs = repository.vcs()
    repository.write("data.bin", bytes(range(256)))
    repository.write("run.sh", "#!/bin/sh\n")
    (repository.path / "run.sh").chmod(0o755)
    (repository.path / "link").symlink_to("nowhere")
    (repository.path / "README.md").unlink()
    commit = vcs.commit("Change a lot")
    assert repository.tree(commit) == {"data.bin": "100644", "run.sh": "100755", "link": "120000"}
    assert len(commit) == 40
    assert vcs.status().is_clean
    assert vcs.status().commit == commit


def test_the_branch_follows_the_commit(repository: Repository) -> None:
    vcs = repository.vcs()
    repository.write("a")
    commit = vcs.commit("Add a")
    assert vcs.branches() == {"main": commit}
    assert vcs.current_branch() == "main"


@pytest.mark.parametrize(
    "message", ["-m", "--help", "# not a comment\n\n#1", "quo\"te ' $HOME `x`", "🐦\n\nbody\nmore"]
)
def test_a_message_comes_back_as_it_was(repository: Repository, message: str) -> None:
    vcs = repository.vcs()
    repository.write("a")
    vcs.commit(message)
    assert vcs.log(1)[0].message == message


@pytest.mark.parametrize("message", ["", " \n", "nul\0", "half\udc80", "x" * 100_001])
def test_a_message_that_cannot_be_kept_is_refused(repository: Repository, message: str) -> None:
    repository.write("a")
    with pytest.raises(InvalidInput):
        repository.vcs().commit(message)
    assert kinds(repository.vcs()) == {"a": "added"}


def test_nothing_to_commit_is_said(repository: Repository) -> None:
    with pytest.raises(NothingToCommit):
        repository.vcs().commit("Nothing")


def test_hostile_names_come_through(repository: Repository) -> None:
    vcs = repository.vcs()
    for name in HOSTILE:
        repository.write(name, "one\n")
    assert kinds(vcs) == dict.fromkeys(HOSTILE, "added")
    assert {(d.path, d.added) for d in vcs.diff()} == {(name, 1) for name in HOSTILE}
    commit = vcs.commit("Hostile names")
    assert set(HOSTILE) < set(repository.tree(commit))
    for name in HOSTILE:
        repository.write(name, "one\ntwo\n")
    assert kinds(vcs) == dict.fromkeys(HOSTILE, "modified")
    assert {(d.path, d.kind, d.added) for d in vcs.diff()} == {(name, "modified", 1) for name in HOSTILE}


def test_a_name_that_is_not_utf8_is_seen(repository: Repository) -> None:
    repository.write("bad\udcff", "x\n")
    assert Change("bad\udcff", "untracked") in repository.vcs().status().changes


def test_ignored_files_and_the_projects_own_state_stay_out(repository: Repository) -> None:
    vcs = repository.vcs()
    repository.write(".gitignore", "*.log\n")
    repository.write("debug.log")
    repository.write(".rookery/.gitignore", "*\n")
    repository.write(".rookery/rookery.db", b"\0")
    repository.write(".rookery/worktrees/a/file")
    assert kinds(vcs) == {".gitignore": "added"}
    assert [d.path for d in vcs.diff()] == [".gitignore"]
    assert set(repository.tree(vcs.commit("Ignore logs"))) == {"README.md", ".gitignore"}


def test_log_is_newest_first_and_stops_where_told(repository: Repository) -> None:
    vcs = repository.vcs()
    commits = []
    for number in range(4):
        repository.write("n", f"{number}\n")
        commits.append(vcs.commit(f"Commit {number}"))
    log = vcs.log()
    assert [entry.message for entry in log] == ["Commit 3", "Commit 2", "Commit 1", "Commit 0", "Begin"]
    assert log[0].commit == commits[3]
    assert log[0].author == "Test <test@example.org>"
    assert log[0].at.startswith("20")
    assert log[0].at.endswith("Z")
    assert [entry.message for entry in vcs.log(2)] == ["Commit 3", "Commit 2"]
    assert [entry.commit for entry in vcs.log(since=commits[1])] == [commits[3], commits[2]]
    assert list(vcs.log(since=commits[3])) == []


def test_diff_counts_lines_against_a_base(repository: Repository) -> None:
    vcs = repository.vcs()
    base = vcs.resolve("main")
    repository.write("README.md", "hello\nworld\n")
    vcs.commit("Say more")
    repository.write("README.md", "world\nagain\n")
    repository.write("data.bin", b"\0\1")
    assert {(d.path, d.kind, d.added, d.deleted) for d in vcs.diff(base)} == {
        ("README.md", "modified", 2, 1),
        ("data.bin", "added", None, None),
    }
    assert {(d.path, d.added, d.deleted) for d in vcs.diff()} == {("README.md", 1, 1), ("data.bin", None, None)}
    patch = vcs.patch(base)
    assert "diff --git a/README.md b/README.md" in patch
    assert "-hello" in patch
    assert "+again" in patch
    assert "data.bin" in patch


def test_diff_leaves_out_what_only_the_base_did(repository: Repository) -> None:
    vcs = repository.vcs()
    vcs.create_branch("work", "main")
    repository.write("theirs")
    vcs.commit("On main")
    vcs.switch("work")
    repository.write("ours")
    assert [d.path for d in vcs.diff("main")] == ["ours"]


def test_diff_changes_nothing(repository: Repository) -> None:
    vcs = repository.vcs()
    repository.write("a")
    before = vcs.status()
    vcs.diff()
    vcs.patch()
    assert vcs.status() == before


def test_a_conflict_is_seen_and_not_committed(repository: Repository) -> None:
    repository.make_conflict()
    vcs = repository.vcs()
    assert kinds(vcs)["shared.txt"] == "conflicted"
    assert ("shared.txt", "conflicted") in {(d.path, d.kind) for d in vcs.diff()}
    assert "shared.txt" in vcs.patch()
    before = vcs.current_commit()
    with pytest.raises(Conflicted, match=r"shared\.txt"):
        vcs.commit("Too early")
    assert vcs.current_commit() == before
    assert kinds(vcs)["shared.txt"] == "conflicted"


def test_resolve_finds_branches_and_commits_only(repository: Repository) -> None:
    vcs = repository.vcs()
    commit = vcs.resolve("main")
    assert vcs.resolve(commit) == commit
    assert vcs.resolve(commit[:10]) == commit
    for name in ("nowhere", "", "-x", "--all", "--help", "main\nmain", "main nothing", "f" * 40, "main..main", "nul\0"):
        with pytest.raises(UnknownRevision):
            vcs.resolve(name)


def test_a_branch_is_made_where_told_and_once(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    repository.write("a")
    second = vcs.commit("Add a")
    repository.write("b")
    before = vcs.status()
    vcs.create_branch("rook/ann/task", first)
    vcs.create_branch("rook/ann/task", first)
    assert vcs.branches("rook/") == {"rook/ann/task": first}
    assert vcs.branches() == {"main": second, "rook/ann/task": first}
    assert vcs.status() == before
    with pytest.raises(RefMoved):
        vcs.create_branch("rook/ann/task", second)
    assert vcs.branches("rook/") == {"rook/ann/task": first}


@pytest.mark.parametrize("name", ["", "-x", "a b", "a..b", "HEAD", "@{-1}", "a.lock", "a\nb", "a:b", "/a", "nul\0"])
def test_a_bad_branch_name_is_refused(repository: Repository, name: str) -> None:
    vcs = repository.vcs()
    with pytest.raises(InvalidInput):
        vcs.create_branch(name, "main")
    with pytest.raises(InvalidInput):
        vcs.switch(name)
    with pytest.raises(InvalidInput):
        vcs.delete_branch(name, vcs.resolve("main"))


def test_a_branch_needs_a_commit_and_room(repository: Repository) -> None:
    vcs = repository.vcs()
    with pytest.raises(UnknownRevision):
        vcs.create_branch("a", "nowhere")
    with pytest.raises(InvalidState):
        vcs.create_branch("main/sub", "main")
    assert set(vcs.branches()) == {"main"}


def test_a_branch_is_deleted_only_where_it_was_last_seen(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    repository.write("a")
    second = vcs.commit("Add a")
    vcs.create_branch("work", second)
    with pytest.raises(RefMoved):
        vcs.delete_branch("work", first)
    assert "work" in vcs.branches()
    vcs.delete_branch("work", second)
    assert "work" not in vcs.branches()
    with pytest.raises(RefMoved):
        vcs.delete_branch("work", second)
    assert vcs.current_branch() == "main"


def test_switch_goes_to_a_branch_and_back(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    vcs.create_branch("work", "main")
    vcs.switch("work")
    assert vcs.current_branch() == "work"
    assert vcs.current_commit() == first
    repository.write("a")
    commit = vcs.commit("Add a")
    assert vcs.branches() == {"main": first, "work": commit}
    vcs.switch("main")
    assert vcs.current_branch() == "main"
    assert not (repository.path / "a").exists()
    vcs.switch("work")
    assert (repository.path / "a").exists()
    with pytest.raises(UnknownRevision):
        vcs.switch("nowhere")


@pytest.mark.parametrize("name", ["README.md", "untracked"])
def test_a_dirty_checkout_is_not_switched(repository: Repository, name: str) -> None:
    vcs = repository.vcs()
    vcs.create_branch("work", "main")
    repository.write(name, "precious\n")
    with pytest.raises(DirtyCheckout):
        vcs.switch("work")
    assert vcs.current_branch() == "main"
    assert (repository.path / name).read_text() == "precious\n"


def test_the_default_branch_is_the_trunk(repository: Repository) -> None:
    vcs = repository.vcs()
    vcs.create_branch("work", "main")
    vcs.switch("work")
    assert vcs.default_branch() == "main"
    vcs.delete_branch("main", vcs.resolve("main"))
    assert vcs.default_branch() == "work"


def test_a_second_checkout_knows_the_first(repository: Repository, tmp_path: Path) -> None:
    main = repository.vcs()
    main.create_branch("work", "main")
    other = tmp_path / "other"
    repository.add_checkout(other, "work")
    vcs = repository.vcs(other)
    if repository.kind == "jj":
        vcs.switch("work")
    assert vcs.main_root() == str(repository.path)
    assert vcs.current_branch() == "work"
    assert main.checkouts() == vcs.checkouts() == {str(repository.path): "main", str(other): "work"}
    (other / "file").write_text("x\n")
    commit = vcs.commit("Work in the other checkout")
    assert main.branches()["work"] == commit
    assert main.status().is_clean
    assert main.current_branch() == "main"


def test_ancestors_are_contained(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    repository.write("a")
    second = vcs.commit("Add a")
    assert vcs.contains(first, second)
    assert vcs.contains(first, "main")
    assert vcs.contains(second, second)
    assert not vcs.contains(second, first)
    with pytest.raises(UnknownRevision):
        vcs.contains("nowhere", "main")


def test_a_saved_ref_outlives_its_branch(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    vcs.create_branch("work", "main")
    vcs.switch("work")
    repository.write("precious", "work\n")
    saved = vcs.commit("Precious")
    repository.write("worthless")
    lost = vcs.commit("Worthless")
    vcs.save_ref("rescue/work/1", saved)
    vcs.save_ref("rescue/work/1", saved)
    vcs.switch("main")
    vcs.delete_branch("work", lost)
    if repository.kind == "jj":
        subprocess.run(["jj", "--quiet", "abandon", saved, lost], cwd=repository.path, check=True)
    repository.collect_garbage()
    assert vcs.saved_refs() == vcs.saved_refs("rescue/") == {"rescue/work/1": saved}
    assert vcs.saved_refs("snapshots/") == {}
    assert repository.content(saved, "precious") == "work"
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("cat-file", "-e", lost)
    with pytest.raises(RefMoved):
        vcs.save_ref("rescue/work/1", first)
    assert vcs.saved_refs() == {"rescue/work/1": saved}
    with pytest.raises(InvalidInput):
        vcs.save_ref("bad..name", first)


def test_two_processes_make_the_same_branch_once(repository: Repository) -> None:
    vcs = repository.vcs()
    commits = [vcs.resolve("main")]
    for number in range(3):
        repository.write("n", f"{number}\n")
        commits.append(vcs.commit(f"Commit {number}"))
    code = (
        "import sys; from rookery.vcs.detect import open_vcs; from rookery.config.model import VcsConfig\n"
        "from rookery.vcs.model import RefMoved\n"
        "print(flush=True); sys.stdin.readline()\n"
        "try: open_vcs('.', VcsConfig()).create_branch('race', sys.argv[1])\n"
        "except RefMoved: sys.exit(7)\n"
    )
    held, gate = os.pipe()
    children = [start(code, commit, cwd=repository.path, stdin=held, stdout=subprocess.PIPE) for commit in commits]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.close()
    os.close(held)
    os.close(gate)
    statuses = [child.wait(60) for child in children]
    assert sorted(statuses) == [0, 7, 7, 7]
    assert vcs.branches()["race"] == commits[statuses.index(0)]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_in_the_middle_of_a_commit(repository: Repository, tmp_path: Path, step: int, when: str) -> None:
    """Rook and its child die, before or after one of the two steps that change something."""
    repository.write("a", "precious\n")
    program = repository.kind
    moment = {"git": ["add", "commit"], "jj": ["commit", "set"]}[program][step - 1]
    real = subprocess.run(["which", program], check=True, capture_output=True, text=True).stdout.strip()
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / program).write_text(
        f'#!/bin/sh\ncase " $* " in *" {moment} "*) [ {when} = after ] && {real} "$@"; kill -9 $PPID $$;; esac\n'
        f'exec {real} "$@"\n'
    )
    (trap / program).chmod(0o755)
    code = (
        "from rookery.vcs.detect import open_vcs; from rookery.config.model import VcsConfig\n"
        "open_vcs('.', VcsConfig()).commit('Interrupted')\n"
    )
    child = start(code, cwd=repository.path, path=f"{trap}{os.pathsep}{os.environ['PATH']}")
    assert child.wait(60) == -signal.SIGKILL
    vcs = repository.vcs()
    assert vcs.current_branch() == "main"
    repository.write("b")
    commit = vcs.commit("Go on")
    assert vcs.branches()["main"] == commit
    assert repository.content(commit, "a") == "precious"
    assert set(repository.tree(commit)) == {"README.md", "a", "b"}
    assert vcs.status().is_clean


def test_a_missing_folder_is_said(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        repository.vcs(tmp_path / "gone").status()


def start(
    code: str,
    *args: str,
    cwd: Path,
    path: str | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
) -> subprocess.Popen[bytes]:
    """A child that runs our code in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if path is not None:
        env["PATH"] = path
    return subprocess.Popen([sys.executable, "-c", code, *args], cwd=cwd, env=env, stdin=stdin, stdout=stdout)
