"""The work of the day: a backup, and what is old goes, but no work that has not landed."""

from __future__ import annotations

import gzip
import json
import os
import signal
from pathlib import Path

import pytest

from conftest import Clock, Rook, git
from places import Agent, Place, make_place
from rookery.base.ids import MERGE, new_id
from rookery.config import layout
from rookery.events import store as events
from rookery.events.telemetry import Telemetry
from rookery.upkeep.due import is_due
from rookery.upkeep.pruning import do_due, prune
from support import wait_until
from templates import init_project

NOW = 1_800_000_000.0
DAY = 86_400.0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place("git", tmp_path, monkeypatch)


def add_telemetry(place: Place, count: int) -> None:
    telemetry = Telemetry(str(place.root / ".rookery" / layout.TELEMETRY))
    for _ in range(count):
        telemetry.add(at="2026-01-01T00:00:00.000Z", agent="a", session_id="s", turn_id=None, kind="tool", data={})
    telemetry.close()


def add_landing(place: Place, agent: Agent, tip: str) -> None:
    """An entry of the queue that says that a commit of the agent's branch landed."""
    ctx = place.context()
    ctx.db.execute(
        "INSERT INTO merges (id, branch, base, tip, priority, state, attempts, files, requested_by, created_at, "
        "updated_at) VALUES (?, ?, 'main', ?, 3, 'landed', 0, '[]', 'human', '', '')",
        (new_id(MERGE), agent.branch, tip),
    )
    ctx.close()


def snapshots(place: Place) -> list[str]:
    names = git(place.root, "for-each-ref", "--format=%(refname)", "refs/rookery/snapshots").splitlines()
    return [name.removeprefix("refs/rookery/snapshots/").split("/")[0] for name in names]


def test_records_and_logs_go_when_they_are_old(place: Place) -> None:
    add_telemetry(place, 3)
    log = place.root / ".rookery" / "gates" / "abc" / "unit.log"
    log.parent.mkdir(parents=True)
    log.write_text("output")
    ctx = place.context()
    assert prune(ctx).telemetry == 3
    assert not log.exists()
    assert prune(ctx).files == 0
    ctx.close()


def test_a_setting_keeps_them_and_the_size_has_a_bound(place: Place) -> None:
    place.flags = {"prune.telemetry": "0", "prune.logs": "0", "prune.size": "1"}
    add_telemetry(place, 3)
    folder = place.root / ".rookery" / "gates"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.log").write_bytes(b"x" * 600_000)
        os.utime(folder / f"{number}.log", (number, number))
    ctx = place.context()
    done = prune(ctx)
    ctx.close()
    assert (done.telemetry, done.files) == (0, 2)
    assert [path.name for path in folder.iterdir()] == ["2.log"]


@pytest.mark.slow
def test_a_snapshot_goes_only_if_just_that_has_landed(place: Place) -> None:
    """ann has landed; bob has not; cat left something in her worktree that did not land; dan was undone."""
    agents = {name: place.add(name) for name in ("ann", "bob", "cat", "dan")}
    for name, agent in agents.items():
        agent.put("work", name)
        git(agent.path, "add", ".")
        git(agent.path, "commit", "-qm", "Work")
        tip = git(agent.path, "rev-parse", "HEAD")
        if name == "cat":
            agent.put("more")
        agent.vcs().snapshot(f"snapshots/{name}/{agent.session.id[-8:].lower()}/1", "Turn 1")
        if name != "bob":
            add_landing(place, agent, tip)
    ctx = place.context()
    ctx.db.execute("UPDATE merges SET state = 'undone' WHERE branch = ?", (agents["dan"].branch,))
    assert prune(ctx).snapshots == 0
    place.time += 31 * DAY
    ctx.close()
    ctx = place.context()
    assert prune(ctx).snapshots == 1
    ctx.close()
    assert snapshots(place) == ["bob", "cat", "dan"]


def test_old_events_go_to_a_file_first(place: Place) -> None:
    place.add("ann")
    rook = Rook(place.root)
    rook("task", "create", "kept")
    place.flags = {"prune.events": "1"}
    place.time += 10 * DAY
    ctx = place.context()
    before = events.read(ctx.db)
    assert prune(ctx).events == 1
    assert {event.type for event in events.read(ctx.db)} == {event.type for event in before} - {"agent.reserved"}
    [path] = (place.root / ".rookery" / layout.ARCHIVE).iterdir()
    [line] = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert json.loads(line)["type"] == "agent.reserved"
    ctx.close()
    assert rook("doctor", "--category", "tasks").status == 0


def test_the_backup_of_the_day_is_made_once(place: Place) -> None:
    ctx = place.context()
    assert do_due(ctx).backup
    assert do_due(ctx).backup is None
    assert not is_due(str(place.root), ctx.clock())
    assert is_due(str(place.root), ctx.clock() + DAY + 1)
    ctx.close()
    place.flags = {"backup.keep": "0"}
    place.time += 2 * DAY
    ctx = place.context()
    assert do_due(ctx).backup is None
    ctx.close()


def test_a_backup_of_a_clock_that_was_ahead_stands_for_no_day(place: Place) -> None:
    place.time += 365 * DAY
    ctx = place.context()
    assert do_due(ctx).backup
    ctx.close()
    place.time -= 365 * DAY
    ctx = place.context()
    assert do_due(ctx).backup
    ctx.close()


@pytest.mark.slow
def test_a_day_later_a_command_has_it_done(repo: Path, clock: Clock) -> None:
    init_project(repo)
    rook = Rook(repo)
    rook("task", "create", "first")
    assert rook.json("restore").data["backups"] == []
    clock.advance(hours=25)
    rook("task", "create", "second")
    wait_until(lambda: "backup" in _log(repo), 60)
    [backup] = rook.json("restore").data["backups"]
    assert backup["kind"] == "daily"
    rook("task", "create", "third")
    assert len(rook.json("restore").data["backups"]) == 1


@pytest.mark.slow
def test_a_killed_day_is_done_an_hour_later(repo: Path, clock: Clock) -> None:
    init_project(repo)
    rook = Rook(repo)
    rook("task", "create", "first")
    clock.advance(hours=25)
    ran = rook("task", "create", "second", env={"ROOKERY_TEST_KILL": "day backed up"})
    assert ran.status in (0, -signal.SIGKILL)
    wait_until(lambda: rook.json("restore").data["backups"], 60)
    rook("task", "create", "third")
    assert _log(repo) == ""
    clock.advance(hours=2)
    rook("task", "create", "fourth")
    wait_until(lambda: _log(repo), 60)
    assert "nothing was old" in _log(repo)


def _log(repo: Path) -> str:
    path = repo / ".rookery" / layout.UPKEEP_LOG
    return path.read_text() if path.exists() else ""
