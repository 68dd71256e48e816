"""One turn of a headless agent: opened with its mail, run by a runner, and settled from the runner's journal.

The turn's row and its journal exist before the runner, and the journal's lock says whether a runner is at work. No git
and no other process runs within a transaction.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

from rookery.base.clock import has_passed, seconds_of
from rookery.base.errors import RookError
from rookery.base.ids import TURN, new_id
from rookery.config import layout, steps
from rookery.costs.prices import price
from rookery.environment.service import is_recorded, own_environ, project_environ
from rookery.environment.store import EnvironmentUnusable
from rookery.events.telemetry import Telemetry
from rookery.mail import store as mail_store
from rookery.ops.context import Context
from rookery.processes import memory_file
from rookery.processes.proctable import RUNNER
from rookery.processes.proctree import end_tree
from rookery.processes.python import module_command
from rookery.processes.spawning import start_detached
from rookery.runtimes.model import DENIED
from rookery.runtimes.registry import open_runtime
from rookery.sandbox.wrap import wrap
from rookery.sessions import journal, store
from rookery.sessions.credentials import agent_environ, provided_environ
from rookery.sessions.log import LogEntry
from rookery.sessions.model import (
    BOOTING,
    READY,
    TURN_DONE,
    TURN_FAILED,
    TURN_LOST,
    TURN_RUNNING,
    WAITING,
    Session,
    Turn,
    TurnEnd,
    is_stopping,
)
from rookery.sessions.records import write_record
from rookery.turns.launch import launch_of
from rookery.turns.opening import find_cause, open_turn, prompt_of, render_mail
from rookery.turns.runner import Order
from rookery.turns.settlement import read_usage, settle_turn, take_snapshot
from rookery.vcs.git.locks import of_worktree, remove_dead

MOST_LOST = 3
"""An agent whose turns were cut off from outside so often in a row counts as crashed."""
_ACTIVE_SECONDS = 2.0
"""How old the time may be at which a session was last active."""
_JOURNAL_PART = 256 * 1024
"""So many bytes of a journal, and the rest of the last line, are kept in one transaction."""
_MARK = "ROOKERY_TURN"
"""Every process of a turn has this in its environment, so that all of them can be found."""
_UNRECORDED = (
    "No environment is recorded for this project, so this turn gets only PATH, HOME and the like; "
    "`rook env refresh` records that of your shell."
)


def start_turn(ctx: Context, session_id: str) -> None:
    """Begin the agent's next turn, if there is a reason to and none is running; else let it wait.

    Raises EnvironmentUnusable before anything has happened if there is no environment for it.
    """
    project_environ(ctx.root)
    turn_id = new_id(TURN)
    file = journal.create(ctx.root, turn_id)
    opened = None
    try:
        opened = _open(ctx, session_id, turn_id)
        if opened is None:
            return
        steps.reached("turn opened")
        _run(ctx, *opened, file)
    finally:
        os.close(file)
        if opened is None:
            journal.remove(ctx.root, turn_id)
    steps.reached("runner started")


def _run(ctx: Context, session: Session, turn: Turn, prompt: str, file: int) -> None:
    """Start the turn's runner; if that fails, the turn has ended with the error.

    If only the environment is missing, the turn counts as cut off, and the agent waits for another one.
    """
    try:
        _start_runner(ctx, session, turn.id, prompt, file)
    except EnvironmentUnusable:
        _lose(ctx, session, turn)
        journal.remove(ctx.root, turn.id)
    except RookError as error:
        end = TurnEnd(TURN_FAILED, -1, error.message)
        journal.Writer(file).add(journal.ENDED, at=ctx.now(), **end.as_dict())


def _start_again(ctx: Context, session: Session, turn: Turn) -> None:
    """Start the runner of a turn that never had one: the process that opened the turn was killed right then."""
    file = journal.take(ctx.root, turn.id)
    if file is None:
        return
    try:
        if journal.find(ctx.root, turn.id, journal.RUNNER) or store.turn(ctx.db, turn.id).state != TURN_RUNNING:
            return  # another process was faster
        mail_text = render_mail(ctx, session, mail_store.seen_by(ctx.db, turn.id))
        _run(ctx, session, turn, prompt_of(session, turn.cause, mail_text), file)
    finally:
        os.close(file)


def _open(ctx: Context, session_id: str, turn_id: str) -> tuple[Session, Turn, str] | None:
    """Open a turn, or let the agent wait: mail that comes just before is seen, just after finds it waiting."""
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        is_ready = session.is_alive and not is_stopping(session) and session.hold is None
        if not is_ready or (session.state == BOOTING and session.step != READY) or store.running_turn(db, session_id):
            return None
        cause = find_cause(ctx, session)
        if cause is None:
            if session.state != WAITING:
                store.change_session(db, session, "agent.waiting", at=ctx.now(), move="wait")
            return None
        turn, mail_text = open_turn(ctx, session, cause, turn_id)
        return store.session(db, session.id), turn, prompt_of(session, cause, mail_text)


def _start_runner(ctx: Context, session: Session, turn_id: str, prompt: str, file: int) -> None:
    command = open_runtime(session.runtime).turn_command(launch_of(ctx, session), prompt)
    provided = provided_environ(ctx, session)
    env = agent_environ(ctx, session, provided) | command.env | {_MARK: turn_id}
    order = Order(
        root=ctx.root,
        session_id=session.id,
        turn_id=turn_id,
        agent=session.agent,
        runtime=session.runtime,
        worktree=session.worktree,
        argv=list(wrap(ctx, session, command, env, provided, terminal=False)),
        env=env,
        stdin=command.stdin,
        interrupt=command.interrupt,
        timeout=ctx.config.agents.turn_timeout,
        grace=ctx.config.agents.stop_grace,
        umask=session.settings.umask,
        limits=session.settings.limits,
    )
    if not is_recorded(ctx.root):
        write_record(ctx.root, session, turn_id, LogEntry("note", "environment", data={"text": _UNRECORDED}))
    with open(memory_file.write(order.as_dict()), "rb") as words:
        start_detached(
            [*module_command("rookery.turns.runner"), ctx.root, str(file), str(words.fileno())],
            cwd=ctx.root,
            env=own_environ(ctx.root) | {RUNNER: session.id},
            output=os.path.join(ctx.session_folder(session.id), layout.SESSION_RUNNER_LOG),
            keep=[file, words.fileno()],
        )


def read_journal(ctx: Context, session_id: str, turn_id: str) -> None:
    """Keep what the runner has written since the last time, each record once, also if two processes do so.

    The file is read in parts, outside of the transactions; a part that another process has added meanwhile is skipped.
    The session's row comes first, so that a kill before the part counts as read only repeats that.
    """
    session = store.session(ctx.db, session_id)
    with closing(Telemetry(ctx.path(layout.TELEMETRY))) as telemetry:
        while True:
            offset = telemetry.read_offset(turn_id)
            entries, end = journal.read(ctx.root, turn_id, offset, most=_JOURNAL_PART)
            if end == offset:
                return
            _update_session(ctx, session_id, turn_id, {entry["kind"]: entry for entry in entries})
            with telemetry.db.write():
                if telemetry.read_offset(turn_id) != offset:
                    continue
                for entry in entries:
                    if entry["kind"] == journal.RECORD:
                        _add_record(telemetry, session, turn_id, entry)
                telemetry.write_offset(turn_id, end)


def _update_session(ctx: Context, session_id: str, turn_id: str, entries: dict[str, dict[str, Any]]) -> None:
    """Keep the program's process and its conversation, and that the agent is active."""
    session = store.session(ctx.db, session_id)
    child, conversation = entries.get(journal.CHILD), entries.get(journal.CONVERSATION)
    is_fresh = not has_passed(_ACTIVE_SECONDS, seconds_of(session.active_at), ctx.clock())
    if child is None and conversation is None and is_fresh:
        return  # a durable write for each line would be too much
    changes = {} if conversation is None else {"runtime_session": str(conversation["id"])}
    with ctx.db.write() as db:
        session, turn = store.session(db, session_id), store.turn(db, turn_id)
        if turn.state != TURN_RUNNING:
            return  # another process has read all of it, and settled the turn
        if child is not None:
            store.change_turn(db, turn, pid=child["pid"], pid_start=child["start"])
        if session.is_alive:
            store.change_session(db, session, active_at=ctx.now(), **changes)


def _add_record(telemetry: Telemetry, session: Session, turn_id: str, entry: dict[str, Any]) -> None:
    record = entry["record"]
    if record["kind"] == DENIED and telemetry.is_denied(session.id, record["data"].get("id", "")):
        return  # our own hook denied it, and has recorded why
    telemetry.add(at=entry["at"], agent=session.agent, session_id=session.id, turn_id=turn_id, **record)


def finish_turn(ctx: Context, session_id: str) -> None:
    """Settle a turn whose runner has ended; nothing if it has not, or if the turn is settled."""
    turn = store.running_turn(ctx.db, session_id)
    if turn is None or journal.is_held(ctx.root, turn.id):
        return
    session = store.session(ctx.db, session_id)
    if not session.is_alive or is_stopping(session):
        return
    read_journal(ctx, session_id, turn.id)
    report = journal.find(ctx.root, turn.id, journal.ENDED)
    if report is None and turn.pid is None and not journal.find(ctx.root, turn.id, journal.RUNNER):
        _start_again(ctx, session, turn)
        return
    if report is None or report["state"] != TURN_DONE:
        end_tree(None, (_MARK, turn.id), ctx.config.agents.stop_grace)  # a killed runner could not
    remove_dead(of_worktree(ctx.root, session.worktree))
    if report is None:
        _lose(ctx, session, turn)
    else:
        snapshot = take_snapshot(ctx, session, turn)
        steps.reached("turn snapshotted")
        end = TurnEnd(**{name: report[name] for name in TurnEnd.field_names()})
        transcribed = read_usage(ctx, session, turn.id)
        usage = [price(entry, session.model, ctx.config) for entry in end.usage] or transcribed
        settle_turn(ctx, session, turn, end.replace(usage=usage, snapshot=snapshot))
    steps.reached("turn settled")
    journal.remove(ctx.root, turn.id)


def _lose(ctx: Context, session: Session, turn: Turn) -> None:
    """The turn was cut off: the mail that it has seen is new again, and the next turn goes on."""
    settle_turn(ctx, session, turn, TurnEnd(TURN_LOST, usage=read_usage(ctx, session, turn.id)))
