"""One turn of a headless agent: opened with its mail, run by a runner, and settled from the runner's journal.

The turn's row and its journal are there before the runner, and the journal's lock says whether one is at work. Mail
counts as read only when the turn that saw it ended well. No git runs and nothing is started within a transaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from rookery.base.clock import seconds_of
from rookery.base.errors import RookError
from rookery.base.ids import TURN, new_id
from rookery.config import layout, steps
from rookery.costs import store as costs
from rookery.costs.prices import price
from rookery.environment.service import is_recorded, own_environ, project_environ
from rookery.environment.store import EnvironmentUnusable
from rookery.events.store import publish
from rookery.events.telemetry import Telemetry
from rookery.mail import service as mail
from rookery.mail import store as mail_store
from rookery.mail.inject import render
from rookery.ops.context import Context
from rookery.processes import holder as holders
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
from rookery.sessions.model import (
    BOOTING,
    COMPLETED,
    CRASHED,
    READY,
    TURN_DONE,
    TURN_FAILED,
    TURN_INTERRUPTED,
    TURN_LOST,
    TURN_RUNNING,
    WAITING,
    Session,
    Turn,
    is_stopping,
)
from rookery.sessions.records import write_record
from rookery.turns.ending import find_work, finish_end, settle_end
from rookery.turns.launch import launch_of
from rookery.turns.overlay import first_prompt
from rookery.turns.runner import Order
from rookery.turns.usage import read_spent
from rookery.vcs.git.locks import of_worktree, remove_dead
from rookery.worktrees import snapshots

BEGIN, MAIL, AGAIN = "begin", "mail", "again"
MOST_LOST = 3
"""So many turns in a row may be cut off from outside, before the agent counts as crashed."""
_SIGN_OF_LIFE = 2.0
"""How old, in seconds, the time may be at which a session was last active."""
_JOURNAL_PART = 256 * 1024
"""So many bytes of a journal, and the rest of the last line, are kept in one transaction."""
_MARK = "ROOKERY_TURN"
"""By this in their environment the processes of a turn are known, wherever they have gone."""
_NOTE = "note"
_UNRECORDED = (
    "No environment is recorded for this project, so this turn gets only PATH, HOME and the like; "
    "`rook env refresh` records that of your shell."
)
_AGAIN = "Your last turn was cut off before it ended. Look at where things are, and go on."


def start_turn(ctx: Context, session_id: str) -> None:
    """Begin the agent's next turn, if there is a reason to and none is running; else let it wait.

    Raises EnvironmentUnusable before anything has happened if there is no environment for it.
    """
    project_environ(ctx.root)
    turn_id = new_id(TURN)
    file = journal.create(ctx.root, turn_id)
    is_open = False
    try:
        opened = _open(ctx, session_id, turn_id)
        if opened is None:
            return
        is_open = True
        steps.reached("turn opened")
        _run(ctx, *opened, file)
    finally:
        os.close(file)
        if not is_open:
            journal.remove(ctx.root, turn_id)
    steps.reached("runner started")


def _run(ctx: Context, session: Session, turn: Turn, prompt: str, file: int) -> None:
    """Start the turn's runner; what stands against it is how the turn has ended.

    Where only the environment is missing, the turn counts as cut off, and the agent waits for another one.
    """
    try:
        _start_runner(ctx, session, turn.id, prompt, file)
    except EnvironmentUnusable:
        _lose(ctx, session, turn)
        journal.remove(ctx.root, turn.id)
    except RookError as error:
        end = {"status": -1, "last_words": error.message, "is_ok": False, "interrupted_by": "", "problem": {}}
        journal.Writer(file).add(journal.ENDED, at=ctx.now(), usage=[], **end)


def _start_again(ctx: Context, session: Session, turn: Turn) -> None:
    """Start the runner of a turn that never had one: whatever opened the turn was killed right then."""
    file = journal.take(ctx.root, turn.id)
    if file is None:
        return
    try:
        if journal.find(ctx.root, turn.id, journal.RUNNER) or store.turn(ctx.db, turn.id).state != TURN_RUNNING:
            return  # another process was faster
        messages = mail_store.seen_by(ctx.db, turn.id)
        letters = render(messages, mail_store.count_new(ctx.db, session.agent)) if messages else ""
        _run(ctx, session, turn, prompt_of(session, turn.cause, letters), file)
    finally:
        os.close(file)


def _open(ctx: Context, session_id: str, turn_id: str) -> tuple[Session, Turn, str] | None:
    """Open a turn, or let the agent wait: mail that comes just before is seen, just after finds it waiting."""
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        is_ready = session.is_alive and not is_stopping(session)
        if not is_ready or (session.state == BOOTING and session.step != READY) or store.running_turn(db, session_id):
            return None
        cause = _cause(ctx, session)
        if cause is None:
            if session.state != WAITING:
                store.change_session(db, session, "agent.waiting", actor=session.agent, at=ctx.now(), move="wait")
            return None
        turn, letters = open_turn(ctx, session, cause, turn_id)
        return store.session(db, session.id), turn, prompt_of(session, cause, letters)


def _cause(ctx: Context, session: Session) -> str | None:
    turns = store.turns(ctx.db, session.id)
    if not turns:
        return BEGIN
    lost = count_lost(turns)
    if lost:
        return AGAIN if lost < len(turns) else BEGIN
    return MAIL if mail_store.count_new(ctx.db, session.agent) else None


def count_lost(turns: list[Turn]) -> int:
    """How many turns in a row, up to the last one, were cut off."""
    return next((number for number, turn in enumerate(reversed(turns)) if turn.state != TURN_LOST), len(turns))


def open_turn(ctx: Context, session: Session, cause: str, turn_id: str = "") -> tuple[Turn, str]:
    """Within the caller's transaction: the turn's row, and the mail that it sees as text."""
    db, now = ctx.db, ctx.now()
    number = store.last_number(db, session.id) + 1
    turn = Turn(
        turn_id or new_id(TURN), session.id, number, cause, TURN_RUNNING, None, None, None, None, None, now, None
    )
    store.insert_turn(db, turn, session.agent, at=now)
    store.change_session(db, session, "", actor=session.agent, at=now, move="begin turn", active_at=now)
    messages = mail.deliver(db, session.agent, turn.id, now)
    return turn, render(messages, mail_store.count_new(db, session.agent)) if messages else ""


def prompt_of(session: Session, cause: str, letters: str) -> str:
    """What an agent is told at the beginning of a turn."""
    words = {BEGIN: first_prompt(session), MAIL: "", AGAIN: _AGAIN}[cause]
    return "\n\n".join(part for part in (words, letters) if part)


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
        folder=ctx.session_folder(session.id),
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
        who: dict[str, Any] = {"agent": session.agent, "session_id": session.id, "turn_id": turn_id}
        write_record(ctx.root, at=ctx.now(), kind=_NOTE, name="environment", data={"text": _UNRECORDED}, **who)
    handle = memory_file.write(order.as_dict())
    try:
        start_detached(
            [*module_command("rookery.turns.runner"), ctx.root, str(file), str(handle)],
            cwd=ctx.root,
            env=own_environ(ctx.root) | {RUNNER: session.id},
            output=os.path.join(ctx.session_folder(session.id), layout.SESSION_RUNNER_LOG),
            keep=[file, handle],
        )
    finally:
        os.close(handle)


def read_journal(ctx: Context, session_id: str, turn_id: str) -> None:
    """Take over what the runner has written since the last time, each line once, also if two processes do so."""
    session = store.session(ctx.db, session_id)
    has_news = False
    changes: dict[str, str] = {}
    child: dict[str, Any] | None = None
    for entry in _take_over(ctx, session, turn_id):
        has_news = True
        if entry["kind"] == journal.CONVERSATION:
            changes = {"runtime_session": str(entry["id"])}
        elif entry["kind"] == journal.CHILD:
            child = entry
    is_fresh = seconds_of(session.active_at) > ctx.clock() - _SIGN_OF_LIFE
    if not has_news or (not changes and child is None and is_fresh):
        return  # a durable write for each line would be too much
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        if child is not None:
            store.change_turn(db, store.turn(db, turn_id), pid=child["pid"], pid_start=child["start"])
        if session.is_alive:
            store.change_session(
                db, session, "", actor=session.agent, at=session.updated_at, active_at=ctx.now(), **changes
            )


def _take_over(ctx: Context, session: Session, turn_id: str) -> Iterator[dict[str, Any]]:
    """The new lines of the journal, after their records have been kept.

    The file is read in parts, outside of the transactions; what another process has taken over meanwhile is left to it.
    """
    telemetry = Telemetry(ctx.path(layout.TELEMETRY))
    try:
        while True:
            offset = telemetry.read_offset(turn_id)
            entries, end = journal.read(ctx.root, turn_id, offset, most=_JOURNAL_PART)
            if end == offset:
                return
            with telemetry.db.write():
                if telemetry.read_offset(turn_id) != offset:
                    continue
                for entry in entries:
                    if entry["kind"] == journal.RECORD:
                        _keep(telemetry, session, turn_id, entry)
                telemetry.write_offset(turn_id, end)
            yield from entries
    finally:
        telemetry.close()


def _keep(telemetry: Telemetry, session: Session, turn_id: str, entry: dict[str, Any]) -> None:
    record = entry["record"]
    if record["kind"] == DENIED and telemetry.is_denied(session.id, record["data"].get("id", "")):
        return  # our own hook denied it, and knows why
    telemetry.add(at=entry["at"], agent=session.agent, session_id=session.id, turn_id=turn_id, **record)


def settle_turn(ctx: Context, session_id: str) -> None:
    """Write down what came of a turn whose runner has ended; nothing if it has not, or if that is done."""
    turn = store.running_turn(ctx.db, session_id)
    if turn is None or journal.is_held(ctx.root, turn.id):
        return
    has_runner = journal.find(ctx.root, turn.id, journal.RUNNER) is not None
    if not has_runner and turn.pid is not None and not holders.is_gone(holders.read(turn.pid, turn.pid_start)):
        return  # the runner of an earlier Rookery is at work, which kept no journal
    session = store.session(ctx.db, session_id)
    if not session.is_alive or is_stopping(session):
        return
    read_journal(ctx, session_id, turn.id)
    end = journal.find(ctx.root, turn.id, journal.ENDED)
    if end is None and turn.pid is None and not has_runner:
        _start_again(ctx, session, turn)
        return
    if end is None or not end["is_ok"]:
        end_tree(None, (_MARK, turn.id), ctx.config.agents.stop_grace)  # a killed runner could not
    remove_dead(of_worktree(ctx.root, session.worktree))
    if end is None:
        _lose(ctx, session, turn)
    else:
        snapshot = take_snapshot(ctx, session, turn.number)
        steps.reached("turn snapshotted")
        _settle(ctx, session, turn, end, snapshot)
    steps.reached("turn settled")
    journal.remove(ctx.root, turn.id)


def _lose(ctx: Context, session: Session, turn: Turn) -> None:
    """The runner was killed: what the turn has seen of its mail is new again, and the next turn goes on."""
    spent = read_spent(ctx, session, turn)
    with ctx.db.write() as db:
        session = store.session(db, session.id)
        if not session.is_alive or store.turn(db, turn.id).state != TURN_RUNNING:
            return
        now = ctx.now()
        store.change_turn(db, turn, state=TURN_LOST, ended_at=now)
        costs.add_usage(db, turn.id, spent)
        mail.redeliver(db, turn.id, now)
        data = {"turn_id": turn.id, "number": turn.number}
        publish(db, "turn.lost", session.agent, data, actor=session.agent, at=now)
        store.change_session(db, session, "agent.waiting", actor=session.agent, at=now, move="wait")


def _settle(ctx: Context, session: Session, turn: Turn, end: dict[str, Any], snapshot: str | None) -> None:
    spent, work = read_spent(ctx, session, turn), find_work(ctx, session)
    usage = [price(each, session.model, ctx.config) for each in end["usage"]] or spent
    with ctx.db.write() as db:
        now = ctx.now()
        session = store.session(db, session.id)
        if not session.is_alive or store.turn(db, turn.id).state != TURN_RUNNING:
            return  # stopped or settled meanwhile
        is_ok, by = bool(end["is_ok"]), str(end["interrupted_by"])
        store.change_turn(
            db,
            turn,
            state=TURN_DONE if is_ok else TURN_INTERRUPTED if by else TURN_FAILED,
            exit_status=end["status"],
            last_words=f"interrupted by {by}" if by else end["last_words"],
            snapshot=snapshot,
            ended_at=now,
        )
        costs.add_usage(db, turn.id, usage)
        data = {"turn_id": turn.id, "number": turn.number, "ok": is_ok, "exit_status": end["status"]}
        data |= {"interrupted_by": by} if by else {"problem": end["problem"]} if end["problem"] else {}
        publish(db, "turn.ended", session.agent, data, actor=session.agent, at=now)
        finished = mail.terminal_message(db, session)
        if is_ok or by:
            mail.acknowledge(db, turn.id, now)  # an interrupted conversation holds it too, and goes on
        else:
            mail.redeliver(db, turn.id, now)
        if finished:
            settle_end(ctx, session, COMPLETED, f"said {finished.type}", work)
        elif not is_ok and not by:
            words = end["last_words"] or "no last words"
            settle_end(ctx, session, CRASHED, f"exit status {end['status']}: {words}", work)
        else:
            store.change_session(db, session, "agent.waiting", actor=session.agent, at=now, move="wait")
            return
    finish_end(ctx, session)


def take_snapshot(ctx: Context, session: Session, number: int) -> str | None:
    """Keep the worktree as it is; a worktree that is gone has nothing to keep."""
    if not os.path.isdir(session.worktree):
        return None
    return snapshots.take(
        ctx.root,
        ctx.config.vcs,
        agent=session.agent,
        session_id=session.id,
        turn=number,
        worktree=session.worktree,
        include_ignored=ctx.config.worktrees.snapshot_ignored,
    )
