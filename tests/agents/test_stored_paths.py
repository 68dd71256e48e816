"""Paths in the state are relative to the project's root: none of them leads a copy to the original."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from den import DONE, Den
from places import make_place
from rookery.config.project import database_path, from_stored, to_stored
from rookery.db import migrate
from rookery.db.database import Database
from rookery.sessions import store

WORK = [
    {"edit": {"path": "made.txt", "text": "made\n"}},
    {"commit": "Work"},
    DONE,
]


def test_only_paths_below_the_root_are_kept_relative(tmp_path: Path) -> None:
    root = str(tmp_path.resolve() / "repo")
    for path in ("/elsewhere/tree", f"{root}-2/tree"):
        assert to_stored(root, path) == path
        assert from_stored(root, path) == path
    assert to_stored(root, f"{root}/.rookery/worktrees/ann") == ".rookery/worktrees/ann"
    assert from_stored("/new", ".rookery/worktrees/ann") == "/new/.rookery/worktrees/ann"


def test_a_session_is_kept_relative_and_read_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_place("git", tmp_path, monkeypatch)
    ann = place.add("ann")
    ctx = place.context()
    assert ctx.db.value("SELECT worktree FROM sessions") == ".rookery/worktrees/ann"
    assert store.session(ctx.db, ann.session.id).worktree == str(place.root / ".rookery/worktrees/ann")
    moved = str(place.root / ".rookery" / "worktrees" / "other")
    with ctx.db.write() as db:
        changed = store.change_session(db, ann.session, "agent.moved", actor="human", at=ctx.now(), worktree=moved)
    assert changed.worktree == moved
    assert ctx.db.value("SELECT worktree FROM sessions") == ".rookery/worktrees/other"
    ctx.close()


def test_a_root_that_is_reached_by_a_link_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = make_place("git", tmp_path, monkeypatch)
    ann = place.add("ann")
    (tmp_path / "link").symlink_to(place.root)
    db = Database.open(database_path(str(tmp_path / "link")))
    assert store.session(db, ann.session.id).worktree == str(place.root / ".rookery/worktrees/ann")
    db.close()


@pytest.mark.slow
def test_after_a_landing_the_state_names_no_absolute_path(repo: Path) -> None:
    den = Den(repo)
    (repo / ".rookery" / "config.local.yaml").write_text(
        "agents:\n  stop_grace: 0.3s\nprovision:\n  ports: 0\n  link: [shared]\nsandbox:\n  mode: off\n"
        "gates:\n  - name: fine\n    run: 'true'\n"
    )
    (repo / "shared").mkdir()
    task = den.task("Work", WORK)
    den.rook.json("spec", "write", task, "--body", "What is wanted").data  # noqa: B018
    (repo / "own.md").write_text("my own")
    den.sling(task, "--name", "ann", "--spec", "own.md")
    den.wait_for("ann", "completed")
    assert den.rook("merge", "--all").status == 0
    assert (repo / "made.txt").exists()
    texts = _all_texts(repo)
    assert [text for text in texts if str(repo) in text] == []
    assert any(".rookery/worktrees/ann" in text for text in texts)
    assert any(".rookery/gates/" in text for text in texts)
    assert den.agent("ann")["worktree"] == str(repo / ".rookery/worktrees/ann")


def _all_texts(repo: Path) -> list[str]:
    """Every text in every table, without mail and telemetry: those are words of agents, and may name any path."""
    db = apsw.Connection(database_path(str(repo)))
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    tables = [name for name in tables if "search" not in name and name not in ("location", "messages")]
    texts = [
        f"{name}: {value}"
        for name in tables
        for row in db.execute(f"SELECT * FROM {name}")
        for value in row
        if isinstance(value, str)
    ]
    db.close()
    return texts


def test_an_older_state_is_converted_and_its_place_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project may lie in a worktree of another one, so only the last `/.rookery/worktrees/` counts."""
    root = "/home/ada/.rookery/worktrees/bob/inner"
    path = tmp_path / ".rookery" / "rookery.db"
    path.parent.mkdir()
    _make_at(6, path, monkeypatch)
    db = apsw.Connection(str(path))
    columns = [row[1] for row in db.execute("PRAGMA table_info(sessions)")]
    for name, worktree, spec in (
        ("one", f"{root}/.rookery/worktrees/one", f"{root}/.rookery/specs/x.md"),
        ("two", "/outside/two", "/outside/x.md"),
        ("three", f"{root}/.rookery/worktrees/three", None),
    ):
        row = dict.fromkeys(columns, "") | {"seq": None, "id": name, "agent": name, "depth": 0, "state": "ended"}
        text = "null" if spec is None else f'"{spec}"'
        row |= {"worktree": worktree, "settings": f'{{"files":[],"siblings":[],"ports":null,"spec":{text}}}'}
        db.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    log = f"{root}/.rookery/gates/{'a' * 12}/unit.log"
    db.execute("INSERT INTO gate_runs VALUES (1, ?, 'c', 'unit', 'passed', 0, 1, ?, 'now')", ("a" * 40, log))
    db.close()
    upgraded = Database.open(str(path))
    assert upgraded.all("SELECT worktree, json_extract(settings, '$.spec') FROM sessions ORDER BY seq") == [
        (".rookery/worktrees/one", ".rookery/specs/x.md"),
        ("/outside/two", "/outside/x.md"),
        (".rookery/worktrees/three", None),
    ]
    assert upgraded.value("SELECT log FROM gate_runs") == f".rookery/gates/{'a' * 12}/unit.log"
    assert upgraded.all("SELECT id, path FROM location") == [("", root)]
    assert [session.worktree for session in store.sessions(upgraded)] == [
        str(tmp_path.resolve() / ".rookery/worktrees/one"),
        "/outside/two",
        str(tmp_path.resolve() / ".rookery/worktrees/three"),
    ]
    upgraded.close()


def _make_at(version: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of an older Rookery."""
    known = migrate.migrations()
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations", lambda: known[:version])
        migrate.create_file(str(path))
