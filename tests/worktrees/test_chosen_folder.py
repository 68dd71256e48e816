"""Where worktrees live: every command obeys `worktrees.dir`, and finds those made before it was changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import Rook, git
from places import Place, make_place
from rookery.base.errors import Refused
from rookery.vcs import cage
from rookery.worktrees import place as places
from support import wait_for_agent

pytestmark = pytest.mark.slow

SCRIPT = """```rook-script
- edit: {path: note.txt, text: "kept\\n"}
- commit: Write a note
- edit: {path: loose.txt, text: "loose\\n"}
- mail: {to: "{parent}", type: worker_done, subject: Done}
```"""


def sling(rook: Rook, folder: str, name: str) -> Path:
    task = rook.json("task", "create", "Write a note", "--description", SCRIPT).data["id"]
    rook.json("-c", f"worktrees.dir={folder}", "sling", task, "--name", name)
    wait_for_agent(rook, name, ("completed",))
    return Path(rook("path", name).out.decode().strip())


def chosen(place: Place, folder: str) -> str:
    place.flags = {"worktrees.dir": folder}
    ctx = place.context()
    try:
        return places.folder_of_new(ctx)
    finally:
        ctx.close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place("git", tmp_path, monkeypatch)


def test_an_agent_lives_where_the_setting_says_and_nothing_is_lost(rook: Rook, project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my trees"
    path = sling(rook, str(folder), "ann")
    assert path == folder.resolve() / "ann"
    assert (path / "loose.txt").read_text() == "loose\n"
    rows = rook.json("worktree", "list").data  # without the setting
    assert [(row["agent"], row["path"], row["worktree"]["untracked"]) for row in rows] == [
        ("ann", str(path), ["loose.txt"])
    ]
    # Its name goes on where it was; another one begins in the usual place.
    rook.json("resume", "ann", "Go on")
    assert rook("path", "ann").out.decode().strip() == str(path)
    assert sling(rook, "", "bob") == (project / ".rookery/worktrees/bob").resolve()
    rook("stop", "ann")
    rook.json("clean", "--worktrees", "--yes")
    assert not path.exists()
    (ref,) = git(project, "for-each-ref", "--format=%(refname)", "refs/rookery/rescue/ann").split()
    assert git(project, "show", f"{ref}:loose.txt") == "loose"
    assert git(project, "show", f"{git(project, 'branch', '--list', '--format=%(refname)', 'rook/ann/*')}:note.txt")
    rook.json("deinit", "--force", "--yes")
    assert not folder.exists()
    assert git(project, "show", f"{ref}:loose.txt") == "loose"


def test_inside_the_main_checkout_it_ignores_itself(rook: Rook, project: Path) -> None:
    path = sling(rook, "trees", "ann")
    assert path == (project / "trees/ann").resolve()
    assert "trees" not in git(project, "status", "--porcelain")
    (project / "src").mkdir()
    (project / "src" / "code.py").write_text("precious\n")
    rook.json("task", "create", "More")
    ran = rook("-c", "worktrees.dir=src", "sling", "--next", "--name", "bob")
    assert (ran.status, "holds files" in ran.err.decode()) == (1, True)
    assert os.listdir(project / "src") == ["code.py"]


def test_another_projects_worktree_of_the_same_name_is_left_alone(rook: Rook, project: Path, tmp_path: Path) -> None:
    path = sling(rook, str(tmp_path / "trees"), "ann")
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "Begin")
    second = Rook(other)
    second("init", "--yes")
    second("task", "create", "Note")
    assert second("-c", f"worktrees.dir={tmp_path / 'trees'}", "sling", "--next", "--name", "ann").status == 1
    second("clean", "--worktrees", "--yes")
    assert second("deinit", "--force", "--yes").status == 0
    assert not (other / ".rookery").exists()
    assert (path / "loose.txt").read_text() == "loose\n"
    assert "?? loose.txt" in git(path, "status", "--porcelain")


def test_the_name_of_the_project_keeps_projects_apart(place: Place) -> None:
    home = os.path.realpath(place.context().environ.home)
    assert chosen(place, "~/trees/{project}") == os.path.join(home, "trees", "repo")
    assert chosen(place, "../trees") == os.path.join(os.path.realpath(place.root.parent), "trees")
    assert chosen(place, "") == chosen(place, ".rookery/worktrees")


@pytest.mark.parametrize("folder", ["..", ".", "/", ".git/trees", ".rookery", ".rookery/run"])
def test_a_folder_that_would_do_harm_is_refused(place: Place, folder: str) -> None:
    with pytest.raises(Refused):
        chosen(place, folder)


def test_a_folder_that_cannot_be_made_says_so_and_leaves_nothing(rook: Rook, project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    rook.json("task", "create", "Note")
    ran = rook("-c", f"worktrees.dir={tmp_path / 'file'}", "sling", "--next", "--name", "ann")
    assert (ran.status, "cannot be made" in ran.err.decode()) == (1, True)
    assert git(project, "branch", "--list", "rook/*") == ""
    assert rook.json("task", "list").data[0]["state"] == "PENDING"


def test_git_there_runs_in_a_cage_that_its_agent_cannot_replace(tmp_path: Path) -> None:
    tree = tmp_path / "trees" / "ann"
    tree.mkdir(parents=True)
    cage.keep(str(tree), ["true"], "/common")
    for inside in (tree / "sub", tree / ".rookery" / "worktrees" / "bee"):
        (inside / ".rookery").mkdir(parents=True)
        (inside.parent / ".rookery-cages").mkdir()
        (inside.parent / ".rookery-cages" / f"{inside.name}.json").write_text('{"words": ["evil"], "common": "/"}')
        held = cage.find(str(inside))
        assert held is not None
        assert (held.worktree, held.words) == (str(tree), ("true",))
    cage.forget(str(tree))
    assert not (tmp_path / "trees" / ".rookery-cages").exists()
