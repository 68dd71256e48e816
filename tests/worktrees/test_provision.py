"""What a worktree is given before its agent begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from places import Agent, Place, make_place
from rookery.base.errors import InvalidInput
from rookery.config import layout
from rookery.config.model import ProvisionConfig, VcsConfig
from rookery.sessions import store
from rookery.sessions.model import Settings
from rookery.worktrees import provision
from rookery.worktrees import service as worktrees
from rookery.worktrees.provision import ProvisionFailed
from vcs.repositories import KINDS


@pytest.fixture(params=list(KINDS))
def ann(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    return _ann(make_place(request.param, tmp_path, monkeypatch))


@pytest.fixture
def git_ann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    return _ann(make_place("git", tmp_path, monkeypatch))


def _ann(place: Place) -> Agent:
    place.repository.write(".gitignore", ".env*\nnode_modules\nbuild/\n")
    place.base = place.vcs().commit("Ignore")
    return place.add("ann", state="booting")


def give(agent: Agent, ports: tuple[int, int] | None = None, **settings: Any) -> dict[str, str]:
    return provision.provision(
        str(agent.place.root),
        str(agent.path),
        ProvisionConfig(**settings),
        vcs_config=VcsConfig(),
        session_folder=str(agent.folder),
        ports=ports,
    )


@pytest.mark.slow
def test_files_and_folders_are_copied_out_of_sight_of_commits(ann: Agent) -> None:
    write = ann.place.repository.write
    write(".env", "TOKEN=abcdef\n")
    write("local/deep/settings.toml", "x\n")
    (ann.place.root / "local" / "link").symlink_to("deep/settings.toml")
    (ann.place.root / ".env").chmod(0o600)
    give(ann, copy=(".env", "local", "nothing?"))
    assert (ann.path / ".env").read_text() == "TOKEN=abcdef\n"
    assert (ann.path / ".env").stat().st_mode & 0o777 == 0o600
    assert (ann.path / "local/deep/settings.toml").read_text() == "x\n"
    assert os.readlink(ann.path / "local/link") == "deep/settings.toml"
    assert ann.vcs().status().is_clean
    write(".env", "TOKEN=newer\n")
    give(ann, copy=(".env", "local"))
    assert (ann.path / ".env").read_text() == "TOKEN=newer\n"


def test_folders_are_linked(ann: Agent) -> None:
    ann.place.repository.write("node_modules/x/index.js", "x\n")
    give(ann, link=("node_modules", "nothing?"))
    give(ann, link=("node_modules",))
    assert os.readlink(ann.path / "node_modules") == "../../../node_modules"
    assert (ann.path / "node_modules").resolve() == ann.place.root / "node_modules"
    assert ann.vcs().status().is_clean


def test_what_is_missing_is_an_error_unless_it_may_be(git_ann: Agent) -> None:
    with pytest.raises(ProvisionFailed, match="has none"):
        give(git_ann, copy=(".env",))
    with pytest.raises(ProvisionFailed, match="has none"):
        give(git_ann, link=("node_modules",))


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../x", "", ".", ".git/config", ".rookery/x"])
def test_no_path_leads_out(git_ann: Agent, name: str) -> None:
    with pytest.raises(InvalidInput):
        give(git_ann, copy=(name,))
    with pytest.raises(InvalidInput):
        give(git_ann, link=(name,))


def _to_folder(root: Path, out: Path) -> None:
    (root / "door").symlink_to(out)


def _to_file(root: Path, out: Path) -> None:
    (root / "door").symlink_to(out / "secret")


def _within(root: Path, out: Path) -> None:
    (root / "door").mkdir()
    (root / "door" / "link").symlink_to(out / "secret")


@pytest.mark.parametrize(
    ("name", "make"), [("door/secret", _to_folder), ("door", _to_folder), ("door", _to_file), ("door", _within)]
)
def test_no_link_leads_out(git_ann: Agent, tmp_path: Path, name: str, make: Callable[[Path, Path], None]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("secret")
    make(git_ann.place.root, tmp_path / "out")
    with pytest.raises(ProvisionFailed, match="leads out"):
        give(git_ann, copy=(name,))
    assert not (git_ann.path / name).is_file()
    assert not (git_ann.path / name / "link").is_symlink()


def test_nothing_is_copied_through_a_link_of_the_worktree(git_ann: Agent, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    git_ann.place.repository.write("local/file")
    (git_ann.path / "local").symlink_to(tmp_path / "out")
    with pytest.raises(ProvisionFailed):
        give(git_ann, copy=("local",))
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
def test_the_setup_command_runs_in_the_worktree_with_its_environment(ann: Agent) -> None:
    env = give(
        ann,
        ports=(20010, 3),
        env={"GREETING": "hello there"},
        setup="mkdir build && echo $GREETING $ROOKERY_PORT $ROOKERY_PORTS > build/out && pwd > loose",
    )
    assert env == {
        "GREETING": "hello there",
        "ROOKERY_PORT": "20010",
        "ROOKERY_PORTS": "20010,20011,20012",
    }
    assert (ann.path / "build/out").read_text() == "hello there 20010 20010,20011,20012\n"
    assert (ann.path / "loose").read_text() == f"{ann.path}\n"
    assert ann.vcs().status().is_clean
    ann.put("mine")
    assert set(ann.place.repository.tree(ann.vcs().commit("Work"))) == {"README.md", ".gitignore", "mine"}


def test_a_setup_command_that_fails_is_quoted(git_ann: Agent) -> None:
    with pytest.raises(ProvisionFailed, match=r"(?s)exited with 7.*on stdout.*on stderr"):
        give(git_ann, setup="echo on stdout; echo on stderr >&2; exit 7")


def test_after_a_failure_the_worktree_can_be_removed(ann: Agent) -> None:
    ann.place.repository.write(".env", "TOKEN=abcdef\n")
    with pytest.raises(ProvisionFailed):
        give(ann, copy=(".env",), setup="mkdir build; echo x > build/out; echo x > loose; exit 1")
    assert worktrees.undo(ann.place.context(), ann.session.replace(settings=Settings(is_new=True))) == ""
    assert not ann.path.exists()


def test_a_setup_command_that_hangs_is_ended(git_ann: Agent) -> None:
    with pytest.raises(ProvisionFailed, match=r"did not end within 0\.2 s"):
        give(git_ann, setup="exec tail -f /dev/null", setup_timeout=0.2)


def test_secrets_of_copied_files_are_known(git_ann: Agent) -> None:
    git_ann.place.repository.write(
        ".env.local",
        "# PASSWORD=commented\nexport TOKEN='quoted secret' # why\nURL=postgres://u:p@h # note\nSHORT=12345\nNOTHING\n",
    )
    git_ann.place.repository.write("plain", "TOKEN=not-an-env-file\n")
    give(git_ann, copy=(".env.local", "plain"))
    assert provision.read_manifest(str(git_ann.folder)).secrets == ("quoted secret", "postgres://u:p@h")
    assert (git_ann.folder / layout.SESSION_MANIFEST).stat().st_mode & 0o777 == 0o600
    assert provision.read_manifest(str(git_ann.folder / "nowhere")).secrets == ()


def test_a_copied_file_that_the_agent_changed_is_the_agents_work(git_ann: Agent) -> None:
    def ignored() -> tuple[str, ...]:
        return worktrees.inspect(git_ann.place.context(), str(git_ann.path), git_ann.branch, git_ann.session).ignored

    git_ann.place.repository.write(".env", "A=1\n")
    give(git_ann, copy=(".env",), setup="mkdir build; echo x > build/made")
    assert ignored() == ()
    finished = (git_ann.folder / layout.SESSION_MANIFEST).stat().st_mtime_ns
    while git_ann.put(".env", "A=2\n").stat().st_ctime_ns <= finished:
        pass
    git_ann.put("build/mine")
    assert set(ignored()) == {".env", "build/mine"}


def test_ports_are_leased_in_blocks_from_the_configured_range(git_ann: Agent) -> None:
    git_ann.place.flags = {"provision.first_port": "3000", "provision.last_port": "3019", "provision.ports": "10"}
    bob, eve = git_ann.place.add("bob", state="booting"), git_ann.place.add("eve", state="booting")
    ctx = git_ann.place.context()
    settings = ctx.config.provision
    with ctx.db.write() as db:
        leased = [
            store.lease_ports(db, agent.session.id, settings.first_port, settings.ports, settings.last_port)
            for agent in (git_ann, bob, eve)
        ]
    ctx.close()
    assert leased == [(3000, 10), (3010, 10), None]
