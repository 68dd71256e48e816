"""A project with a long past, made by plain SQL: a million events, with the agents, mail and landings behind them.

It takes a minute to make, so it is kept in `.dev` and made again only when the schema or the sizes have changed.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from bench.project import Size, build
from rookery.base.clock import stamp
from rookery.base.ids import EVENT, MERGE, MESSAGE, RUN, SESSION, TURN, new_id
from rookery.base.json import dumps
from rookery.base.record import Record
from rookery.config.layout import FOLDER
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.db.migrate import SCHEMA_VERSION
from rookery.events.store import TIMES_EVERY
from rookery.events.telemetry import Telemetry
from rookery.sessions.model import Settings

_SEED = 18
_EPOCH = 1_750_200_000.0
_AGENTS = 200
_SESSIONS_A_RUN = 10
_FAILS_EVERY = 500
"""One event or tool call in so many went wrong."""
_MAKER = 1
"""Higher when what is made here changes."""


@dataclass(frozen=True, slots=True)
class Past(Record):
    """How much there is of everything."""

    events: int
    sessions: int
    turns: int
    messages: int
    merges: int


FULL = Past(events=1_000_000, sessions=2_000, turns=40_000, messages=100_000, merges=10_000)
QUICK = Past(events=20_000, sessions=100, turns=1_000, messages=2_000, merges=200)


def make(folder: str, size: Size, past: Past) -> str:
    """The root of such a project, below a folder that is kept; made there if it is missing."""
    root = os.path.join(folder, f"large-{_MAKER}-{SCHEMA_VERSION}-{size.tasks}-{past.events}")
    if os.path.exists(os.path.join(root, "made")):
        return root
    shutil.rmtree(root, ignore_errors=True)
    build(root, size)
    os.chmod(os.path.join(root, FOLDER), 0o700)
    _make_repository(root)
    db = Database.open(database_path(root))
    db.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")
    with db.write():
        _fill(db, past)
    db.connection.pragma("wal_checkpoint(TRUNCATE)")
    db.close()
    records = Telemetry(os.path.join(root, FOLDER, "telemetry.db"))
    with records.db.write():
        _fill_records(records.db, past)
    records.close()
    with open(os.path.join(root, "made"), "w"):
        return root


def agent_name(number: int) -> str:
    """One of the agents that were at work."""
    return f"builder-{number % _AGENTS}"


def _make_repository(root: str) -> None:
    who = ["-c", "user.name=b", "-c", "user.email=b@example.org"]
    for words in (["init", "-q", "-b", "main"], [*who, "commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    with open(os.path.join(root, FOLDER, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("*\n")


def _at(number: int, past: Past) -> str:
    """When an event of that number was; everything else is spread over the same days."""
    return stamp(_EPOCH + number * (1_000_000 / past.events))


def _fill(db: Database, past: Past) -> None:
    draw = random.Random(_SEED)
    tasks = [row[0] for row in db.all("SELECT id FROM tasks ORDER BY seq")]
    runs = [new_id(RUN) for _ in range(past.sessions // _SESSIONS_A_RUN)]
    sessions = [new_id(SESSION) for _ in range(past.sessions)]
    turns = [new_id(TURN) for _ in range(past.turns)]
    step = past.events // past.sessions
    db.execute_many(
        "INSERT INTO runs (id, title, started_by, created_at, completed_at) VALUES (?, ?, 'human', ?, ?)",
        ((run, f"Goal {number}", *[_at(number * step * _SESSIONS_A_RUN, past)] * 2) for number, run in enumerate(runs)),
    )
    settings = dumps(Settings().as_dict())
    db.execute_many(
        "INSERT INTO sessions (id, agent, role, task_id, run_id, parent, depth, runtime, model, mode, profile, state, "
        "outcome, step, worktree, branch, base_commit, settings, token_hash, created_at, updated_at, active_at, "
        "ended_at, swept_at) VALUES "
        "(?, ?, 'builder', ?, ?, 'human', 0, 'scripted', 'scripted', 'headless', 'standard', "
        "'ended', ?, 'launched', ?, ?, ?, ?, '', ?, ?, ?, ?, ?)",
        (
            (
                session,
                agent_name(number),
                tasks[number * 7 % len(tasks)],
                runs[number // _SESSIONS_A_RUN],
                "failed" if number % 50 == 0 else "completed",
                f"{FOLDER}/worktrees/{agent_name(number)}",
                f"rook/{agent_name(number)}/{number}",
                "0" * 40,
                settings,
                _at(number * step, past),
                *[_at((number + 1) * step, past)] * 4,
            )
            for number, session in enumerate(sessions)
        ),
    )
    share = past.turns // past.sessions
    db.execute_many(
        "INSERT INTO turns (id, session_id, number, cause, state, exit_status, started_at, ended_at) "
        "VALUES (?, ?, ?, 'mail', 'completed', 0, ?, ?)",
        (
            (turn, sessions[number // share], number % share + 1, *[_at(number * past.events // past.turns, past)] * 2)
            for number, turn in enumerate(turns)
        ),
    )
    db.execute_many(
        "INSERT INTO turn_usage VALUES (?, 'scripted', 1000, 200, 5000, 100, 1234)", ((turn,) for turn in turns)
    )
    _fill_mail(db, past, sessions, turns)
    _fill_merges(db, past, tasks, runs)
    db.execute_many(
        "INSERT INTO events (id, at, type, actor, subject, data, is_error) VALUES (?, ?, ?, ?, ?, ?, ?)",
        _events(past, tasks, turns, draw),
    )
    _note_times(db, "events", "event_times")


def _fill_mail(db: Database, past: Past, sessions: list[str], turns: list[str]) -> None:
    ids = [new_id(MESSAGE) for _ in range(past.messages)]
    kinds = ("status", "question", "result", "worker_done")
    db.execute_many(
        "INSERT INTO messages (id, thread_id, sender, recipient, type, priority, subject, body, session_id, turn_id, "
        "created_at, read_at) VALUES (?, ?, ?, ?, ?, 'normal', ?, ?, ?, ?, ?, ?)",
        (
            (
                message,
                ids[number - number % 5],
                agent_name(number),
                "human" if number % 4 == 0 else agent_name(number + 1),
                kinds[number % len(kinds)],
                f"Message {number}",
                "How it goes, and what is next. " * 5,
                sessions[number * past.sessions // past.messages],
                turns[number * past.turns // past.messages],
                *[_at(number * past.events // past.messages, past)] * 2,
            )
            for number, message in enumerate(ids)
        ),
    )


def _fill_merges(db: Database, past: Past, tasks: list[str], runs: list[str]) -> None:
    db.execute_many(
        "INSERT INTO merges (id, branch, base, tip, task_id, agent, lead, run_id, priority, state, attempts, tier, "
        "strategy, base_before, candidate, files, requested_by, created_at, updated_at, landed_at, cleaned_at, "
        "followed_at) VALUES "
        " (?, ?, 'main', ?, ?, ?, 'human', ?, 3, ?, 1, 'clean', 'merge', ?, ?, '[\"a.py\"]', 'human', "
        "?, ?, ?, ?, ?)",
        (
            (
                new_id(MERGE),
                f"rook/{agent_name(number)}/{number}",
                f"{number:040x}",
                tasks[number * 7 % len(tasks)],
                agent_name(number),
                runs[number % len(runs)],
                "failed" if number % 20 == 0 else "landed",
                f"{number:040x}",
                f"{number + 1:040x}",
                *[_at(number * past.events // past.merges, past)] * 5,
            )
            for number in range(past.merges)
        ),
    )


def _events(past: Past, tasks: list[str], turns: list[str], draw: random.Random) -> Iterator[tuple[object, ...]]:
    """What agents, people and Rookery did."""
    for number in range(past.events):
        agent, at = agent_name(number * _AGENTS // 1000), _at(number, past)
        turn = turns[number * len(turns) // past.events]
        match number % 8:
            case 0:
                kind, actor, subject = "turn.started", agent, agent
            case 1:
                kind, actor, subject = "turn.ended", agent, agent
            case 2:
                kind, actor, subject = "agent.waiting", agent, agent
            case 3 | 4:
                kind, actor, subject = "mail.sent", agent, f"msg_{number}"
            case 5:
                kind, actor, subject = "mail.delivered", agent, agent
            case 6:
                kind, actor, subject = "task.updated", "human", tasks[draw.randrange(len(tasks))]
            case _:
                kind, actor, subject = "merge.queued", "rook", f"mrg_{number}"
        failed = kind == "turn.ended" and number // 8 % (_FAILS_EVERY // 8) == 0
        data = dumps({"ok": not failed, "turn_id": turn, "subject": f"Event {number}"})
        yield new_id(EVENT), at, kind, actor, subject, data, int(failed)


def _fill_records(db: Database, past: Past) -> None:
    """As many records of the telemetry as there are events."""
    kinds = ("tool", "tool", "text", "file", "usage")
    db.execute_many(
        "INSERT INTO records (id, at, agent, session_id, turn_id, kind, name, is_error, millis, data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                new_id(EVENT),
                _at(number, past),
                agent_name(number * past.sessions // past.events),
                f"session-{number * past.sessions // past.events}",
                f"turn-{number * past.turns // past.events}",
                kinds[number % len(kinds)],
                f"src/part{number % 40}/file{number % 7}.py",
                int(number % _FAILS_EVERY == 0),
                number % 900,
                dumps({"command": f"git show {number}", "id": f"call-{number}"}),
            )
            for number in range(past.events)
        ),
    )
    _note_times(db, "records", "record_times")


def _note_times(db: Database, table: str, times: str) -> None:
    """What publishing event by event would have written down, see `KEEP_TIME`."""
    db.execute(f"DELETE FROM {times}")
    db.execute(
        f"INSERT INTO {times} (latest, seq) SELECT max(latest) OVER (ORDER BY last), last "
        f"FROM (SELECT max(at) AS latest, max(seq) AS last FROM {table} GROUP BY seq / {TIMES_EVERY})"
    )
