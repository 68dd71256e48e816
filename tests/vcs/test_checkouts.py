"""What every backend promises of further checkouts, snapshots and generated files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rookery.base.errors import InvalidInput, InvalidState
from rookery.vcs.backend import Vcs
from rookery.vcs.model import RefMoved, UnknownRevision, ignore_line, named_path

from .repositories import Repository, run


@pytest.fixture
def work(repository: Repository) -> Vcs:
    """A second checkout, on the branch `work`, in a folder that the first one ignores."""
    return add(repository, "work")


def add(repository: Repository, branch: str) -> Vcs:
    main = repository.vcs()
    repository.write(".rookery/.gitignore", "*\n")
    main.create_branch(branch, "main")
    folder = repository.path / ".rookery" / "worktrees" / branch
    main.add_checkout(str(folder), branch)
    return repository.vcs(folder)


def put(vcs: Vcs, name: str, text: str = "text\n") -> Path:
    path = Path(vcs.root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def files(vcs: Vcs) -> dict[str, str]:
    """Every file of a checkout, without what belongs to the backend."""
    contents = {}
    for place, folders, names in os.walk(vcs.root):
        folders[:] = [name for name in folders if name not in (".git", ".jj")]
        for name in names:
            path = Path(place, name)
            if name != ".git":
                contents[str(path.relative_to(vcs.root))] = (
                    f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
                )
    return contents


def test_a_checkout_is_made_on_its_branch(repository: Repository, work: Vcs) -> None:
    assert work.current_branch() == "work"
    assert work.current_commit() == repository.vcs().resolve("main")
    assert work.main_root() == str(repository.path)
    assert files(work) == {"README.md": "hello\n"}
    assert repository.vcs().checkouts()[work.root] == "work"
    assert repository.vcs().status().is_clean


def test_making_it_again_changes_nothing(repository: Repository, work: Vcs) -> None:
    put(work, "README.md", "precious\n")
    repository.vcs().add_checkout(work.root, "work")
    assert files(work) == {"README.md": "precious\n"}


def test_another_branch_in_the_same_folder_is_refused(repository: Repository, work: Vcs) -> None:
    repository.vcs().create_branch("other", "main")
    with pytest.raises(InvalidState, match="not on other"):
        repository.vcs().add_checkout(work.root, "other")
    assert work.current_branch() == "work"


def test_a_branch_that_is_not_there_is_refused(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(UnknownRevision):
        repository.vcs().add_checkout(str(tmp_path / "new"), "nowhere")
    assert not (tmp_path / "new").exists()


def test_a_folder_with_files_is_left_alone(repository: Repository, tmp_path: Path) -> None:
    repository.vcs().create_branch("work", "main")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("precious")
    with pytest.raises(InvalidState, match="holds files"):
        repository.vcs().add_checkout(str(tmp_path / "mine"), "work")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_an_empty_folder_is_used(repository: Repository, tmp_path: Path) -> None:
    repository.vcs().create_branch("work", "main")
    (tmp_path / "new").mkdir()
    repository.vcs().add_checkout(str(tmp_path / "new"), "work")
    assert repository.vcs(tmp_path / "new").current_branch() == "work"


def test_a_link_is_never_followed(repository: Repository, work: Vcs, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    Path(work.root).rename(elsewhere)
    Path(work.root).symlink_to(elsewhere)
    main = repository.vcs()
    with pytest.raises(InvalidState, match="link"):
        main.remove_checkout(work.root)
    with pytest.raises(InvalidState, match="link"):
        main.add_checkout(work.root, "work")
    assert Path(work.root).is_symlink()
    assert (elsewhere / "README.md").read_text() == "hello\n"


def test_a_checkout_goes_with_all_that_is_in_it(repository: Repository, work: Vcs, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    put(work, "locked/deep/file").chmod(0o400)
    Path(work.root, "locked/link").symlink_to(outside)
    for name in ("locked/deep", "locked"):
        Path(work.root, name).chmod(0o500)
    main = repository.vcs()
    main.remove_checkout(work.root)
    assert list(Path(work.root).parent.iterdir()) == []
    assert (outside / "file").read_text() == "mine"
    assert list(main.checkouts()) == [str(repository.path)]
    assert "work" in main.branches()
    main.remove_checkout(work.root)


def test_a_checkout_whose_folder_is_gone_is_forgotten_and_can_be_made_again(repository: Repository, work: Vcs) -> None:
    main = repository.vcs()
    for is_forgotten_first in (True, False):
        shutil.rmtree(work.root)
        if is_forgotten_first:
            main.remove_checkout(work.root)
            assert list(main.checkouts()) == [str(repository.path)]
        main.add_checkout(work.root, "work")
        assert work.current_branch() == "work"
        assert files(work) == {"README.md": "hello\n"}


def test_what_a_kill_left_of_a_removal_is_finished(repository: Repository, work: Vcs) -> None:
    Path(work.root).rename(Path(work.root).with_name(".work.removed"))
    repository.vcs().remove_checkout(work.root)
    assert list(Path(work.root).parent.iterdir()) == []
    assert list(repository.vcs().checkouts()) == [str(repository.path)]


def test_only_an_unfinished_checkout_is_discarded(repository: Repository, work: Vcs, tmp_path: Path) -> None:
    main = repository.vcs()
    main.discard_unfinished(work.root, "work", is_new=True)
    assert files(work) == {"README.md": "hello\n"}
    for name in ("empty", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "file").write_text("precious")
    for name in ("empty", "mine", "nowhere"):
        main.discard_unfinished(str(tmp_path / name), "work")
    assert not (tmp_path / "empty").exists()
    assert (tmp_path / "mine" / "file").exists()
    shutil.rmtree(work.root)
    main.discard_unfinished(work.root, "work", is_new=True)
    main.add_checkout(work.root, "work")
    assert files(work) == {"README.md": "hello\n"}


def test_a_folder_that_is_no_checkout_is_not_removed(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("precious")
    for folder in (tmp_path / "mine", repository.path):
        with pytest.raises(InvalidState, match=r"is not a work(tree|space)|first workspace"):
            repository.vcs().remove_checkout(str(folder))
    assert (tmp_path / "mine" / "file").exists()
    assert (repository.path / "README.md").exists()


@pytest.mark.slow
def test_a_snapshot_holds_everything_and_touches_nothing(repository: Repository, work: Vcs) -> None:
    put(work, ".gitignore", "*.log\n")
    work.commit("Ignore logs")
    put(work, "README.md", "changed\n")
    put(work, "new/file", "new\n")
    put(work, "run.sh").chmod(0o755)
    Path(work.root, "link").symlink_to("nowhere")
    put(work, "debug.log")
    put(work, "odd\nname [*]")
    before = work.status()
    commit = work.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    assert work.saved_refs() == {"snapshots/ann/1": commit}
    assert work.status() == before
    assert work.branches()["work"] == before.commit
    assert repository.tree(commit) == {
        "README.md": "100644",
        ".gitignore": "100644",
        "new/file": "100644",
        "run.sh": "100755",
        "link": "120000",
        "odd\nname [*]": "100644",
    }
    assert repository.content(commit, "README.md") == "changed"
    assert repository.git("rev-parse", f"{commit}^") == before.commit
    assert [change.path for change in work.changed_files("work", commit) if change.kind == "modified"] == ["README.md"]


def test_a_snapshot_of_nothing_new_is_the_checked_out_commit(work: Vcs) -> None:
    head = work.current_commit()
    assert work.snapshot("snapshots/ann/1", "Turn 1") == head
    assert work.saved_refs() == {"snapshots/ann/1": head}


def test_before_the_first_commit_there_may_be_nothing_to_keep(empty: Repository) -> None:
    vcs = empty.vcs()
    assert vcs.snapshot("snapshots/ann/1", "Turn 1") is None
    assert vcs.saved_refs() == {}
    empty.write("a")
    commit = vcs.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    assert set(empty.tree(commit)) == {"a"}


def test_a_snapshot_is_replaced_only_on_request(work: Vcs) -> None:
    put(work, "a", "1\n")
    first = work.snapshot("snapshots/ann/1", "Turn 1")
    assert work.snapshot("snapshots/ann/1", "Turn 1") == first
    put(work, "a", "2\n")
    with pytest.raises(RefMoved):
        work.snapshot("snapshots/ann/1", "Turn 1")
    assert work.saved_refs() == {"snapshots/ann/1": first}
    second = work.snapshot("snapshots/ann/1", "Turn 1", replace=True)
    assert work.saved_refs() == {"snapshots/ann/1": second}
    assert second != first
    with pytest.raises(InvalidInput):
        work.snapshot("bad..name", "Turn 1")


def test_a_snapshot_outlives_garbage_collection(repository: Repository, work: Vcs) -> None:
    put(work, "precious", "work\n")
    commit = work.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    repository.vcs().remove_checkout(work.root)
    repository.vcs().status()  # jj collects nothing while the first workspace lags behind
    repository.collect_garbage()
    assert repository.content(commit, "precious") == "work"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("patterns", "taken"),
    [
        ((), set()),
        (("build",), {"build/a.o", "build/deep/b.o"}),
        (("*.log",), {"x.log", "odd [1].log"}),
        (("odd [1].log",), {"odd [1].log"}),
        (("nothing",), set()),
    ],
)
def test_ignored_files_are_taken_where_asked(
    repository: Repository, work: Vcs, patterns: tuple[str, ...], taken: set[str]
) -> None:
    put(work, ".gitignore", "*.log\nbuild/\n")
    work.commit("Ignore")
    for name in ("x.log", "odd [1].log", "build/a.o", "build/deep/b.o"):
        put(work, name)
    assert set(work.ignored_files()) == {"x.log", "odd [1].log", "build/a.o", "build/deep/b.o"}
    assert set(work.contents().ignored) == set(work.ignored_files())
    commit = work.snapshot("snapshots/ann/1", "Turn 1", include_ignored=patterns)
    assert commit is not None
    assert set(repository.tree(commit)) - {"README.md", ".gitignore"} == taken


def test_conflicts_are_taken_as_they_lie_there(repository: Repository) -> None:
    repository.make_conflict()
    vcs = repository.vcs()
    on_disk = (repository.path / "shared.txt").read_text()
    before = vcs.status()
    commit = vcs.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    assert repository.content(commit, "shared.txt") == on_disk.rstrip("\n")
    assert vcs.status() == before


def test_a_repository_inside_is_left_out_and_named(repository: Repository, work: Vcs) -> None:
    put(work, "a")
    for name, has_commit in (("inner", True), ("unborn", False)):
        folder = Path(work.root, name)
        folder.mkdir()
        run(folder, "git", "init", "-q")
        (folder / "file").write_text("x")
        if has_commit:
            run(folder, "git", "add", "-A")
            run(folder, "git", "commit", "-qm", "x")
    commit = work.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    assert set(repository.tree(commit)) == {"README.md", "a"}
    assert work.inner_repositories() == ["inner", "unborn"]
    assert work.contents().inner == ("inner", "unborn")


@pytest.mark.slow
def test_restore_brings_files_back_and_keeps_what_was_there(repository: Repository, work: Vcs) -> None:
    put(work, ".gitignore", "*.log\n")
    head = work.commit("Ignore logs")
    put(work, "README.md", "one\n")
    put(work, "new/file", "one\n")
    first = work.snapshot("snapshots/ann/1", "Turn 1")
    assert first is not None
    then = files(work)
    put(work, "README.md", "two\n")
    put(work, "later", "two\n")
    put(work, "keep.log", "log\n")
    put(work, "new/file").unlink()
    Path(work.root, "new").rmdir()
    put(work, "new", "a file now\n")
    kept = work.restore(first, "rescue/ann/1")
    assert files(work) == then | {"keep.log": "log\n"}
    assert (work.current_branch(), work.current_commit()) == ("work", head)
    assert kept is not None
    assert work.saved_refs("rescue/") == {"rescue/ann/1": kept}
    assert set(repository.tree(kept)) == {"README.md", ".gitignore", "later", "new"}
    work.restore(kept, "rescue/ann/2")
    assert files(work)["later"] == "two\n"
    assert work.commit("Go on") == work.branches()["work"]


def test_restore_saves_an_ignored_file_before_it_is_overwritten(repository: Repository, work: Vcs) -> None:
    put(work, "x.log", "one\n")
    first = work.snapshot("snapshots/ann/1", "Turn 1")
    assert first is not None
    put(work, ".gitignore", "*.log\n")
    put(work, "x.log", "two\n")
    kept = work.restore(first, "rescue/ann/1")
    assert kept is not None
    assert repository.content(kept, "x.log") == "two"
    assert files(work) == {"README.md": "hello\n", "x.log": "one\n"}


def test_generated_files_are_never_committed(repository: Repository, work: Vcs) -> None:
    work.exclude(["/AGENTS.md", "/.claude/"])
    work.exclude([ignore_line("odd [*] name\\ ")])
    for name in ("AGENTS.md", ".claude/CLAUDE.md", "odd [*] name\\ ", "odd x name", "sub/AGENTS.md"):
        put(work, name)
    assert set(repository.tree(work.commit("All"))) == {"README.md", "odd x name", "sub/AGENTS.md"}
    assert work.status().is_clean
    assert list(work.excluded()) == ["/AGENTS.md", "/.claude/", ignore_line("odd [*] name\\ ")]
    commit = work.snapshot("snapshots/ann/1", "Turn 1")
    assert commit == work.current_commit()


@pytest.mark.slow
def test_a_file_that_was_seen_before_it_was_excluded_is_not_committed(repository: Repository, work: Vcs) -> None:
    put(work, "made")
    assert not work.status().is_clean
    work.exclude(["/made"])
    assert work.status().is_clean
    put(work, "a")
    assert set(repository.tree(work.commit("All"))) == {"README.md", "a"}


@pytest.mark.parametrize("path", ["a", "a b", "tail ", "#x", "!x", "[a]*?", "back\\slash", "d/e\\ "])
def test_an_ignore_line_names_its_path(path: str) -> None:
    assert named_path(ignore_line(path)) == path


def test_commits_that_the_base_lacks_are_counted(work: Vcs) -> None:
    assert work.count_commits("work", "main") == 0
    for number in range(3):
        put(work, "n", f"{number}\n")
        work.commit(f"Commit {number}")
    assert work.count_commits("work", "main") == 3
    assert work.count_commits("main", "work") == 0
    tips = [work.resolve(name) for name in ("work", "main")]
    assert list(work.count_many(tips, "main").values()) == [3, 0]
