"""One turn: mail and prompt in, the child's doings written down, a snapshot, and what came of it.

The turn's row is there before the child and says who it is, so that whoever finds it after a kill knows what to end.
Mail counts as read only when the turn that saw it ended well.
"""

from __future__ import annotations

import os
import time

from rookery.agents import snapshots, store
from rookery.agents.ending import end_session
from rookery.agents.home import MARK, agent_environ, provided_environ
from rookery.agents.interrupt import Ear
from rookery.agents.journal import Journal
from rookery.agents.model import (
    COMPLETED,
    CRASHED,
    TURN_DONE,
    TURN_FAILED,
    TURN_INTERRUPTED,
    TURN_RUNNING,
    WORKING,
    Session,
    Turn,
)
from rookery.agents.observing import notice_ends
from rookery.agents.overlay import first_prompt
from rookery.agents.sandbox.wrap import wrap
from rookery.agents.spent import read_spent
from rookery.agents.start import launch_of
from rookery.agents.wake import wake
from rookery.base.errors import ProgramFailed, RookError
from rookery.base.ids import TURN, new_id
from rookery.base.process import start
from rookery.base.proctree import Identity, end_tree, identify
from rookery.base.record import Record
from rookery.base.subreaper import adopts_orphans, collect_orphans
from rookery.config import steps
from rookery.costs.prices import price
from rookery.events.store import publish
from rookery.mail import service as mail
from rookery.mail.inject import render
from rookery.runtimes.index import open_runtime
from rookery.runtimes.model import DENIED, ERROR, FILE, LIMIT, RESULT, SESSION, TOOL, USAGE, TurnEvent
from rookery.vcs.git_locks import of_worktree, remove_dead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rookery.agents.home import Home
    from rookery.base.child import Child
    from rookery.runtimes.model import Command

BEGIN, MAIL, AGAIN = "begin", "mail", "again"
_LAST_SECONDS = 10
_LINGERING_SECONDS = 60
"""How long a program may take to end after it has given its result."""
_AGAIN = "Your last turn was cut off before it ended. Look at where things are, and go on."


class Outcome(Record):
    """How a turn's child ended."""

    exit_status: int
    last_words: str
    usage: tuple[dict[str, Any], ...]
    is_ok: bool
    interrupted_by: str = ""
    problem: dict[str, Any] = {}
    """What is known of a failure beyond its words: kind, status, when a limit is lifted."""


def open_turn(home: Home, session: Session, cause: str) -> tuple[Turn, str]:
    """Within the caller's transaction: the turn's row, and the mail that it sees as text."""
    db, now = home.db, home.now()
    number = len(store.turns(db, session.id)) + 1
    turn = Turn(new_id(TURN), session.id, number, cause, TURN_RUNNING, None, None, None, None, None, now, None)
    store.insert_turn(db, turn, session.agent, at=now)
    store.change_session(db, session, "", actor=session.agent, at=now, state=WORKING, active_at=now)
    messages = mail.deliver(db, session.agent, turn.id, now)
    return turn, render(messages, mail.waiting(db, session.agent)) if messages else ""


def prompt_of(session: Session, cause: str, letters: str) -> str:
    """What an agent is told at the beginning of a turn."""
    words = {BEGIN: first_prompt(session), MAIL: "", AGAIN: _AGAIN}[cause]
    return "\n\n".join(part for part in (words, letters) if part)


def run_turn(home: Home, session: Session, turn: Turn, prompt: str) -> None:
    """Run the turn's child to its end and settle what came of it."""
    journal = Journal(home, session, _secrets(home, session))
    try:
        outcome = _run_child(home, session, turn, prompt, journal)
    finally:
        journal.close()
    # Whatever the child left running belongs to the turn and ends with it.
    end_tree(_above_orphans(), (MARK, session.id), home.config.agents.stop_grace)
    if adopts_orphans():
        collect_orphans()
    remove_dead(of_worktree(home.root, session.worktree))
    steps.reached("turn ran")
    snapshot = take_snapshot(home, session, turn.number)
    spent = read_spent(home, session, turn)
    outcome = outcome if outcome.usage else outcome.replace(usage=tuple(spent))
    steps.reached("turn snapshotted")
    _settle(home, session, turn, outcome, snapshot)
    wake(home.root, home.db, [session.parent])
    notice_ends(home.root, home.db)


def _above_orphans() -> Identity | None:
    """This process, if what the turn left behind is under it also without the mark."""
    return identify(os.getpid()) if adopts_orphans() else None


def _run_child(home: Home, session: Session, turn: Turn, prompt: str, journal: Journal) -> Outcome:
    runtime = open_runtime(session.runtime)
    command = runtime.turn_command(launch_of(home, session), prompt)
    provided = provided_environ(home, session)
    env = agent_environ(home, session, provided) | command.env | {"ROOKERY_TURN": turn.id}
    heard = _Heard(home, session, turn, journal)
    talks = command.interrupt is not None
    try:
        given = None if talks else command.stdin
        argv = wrap(home, session, command, env, provided, terminal=False)
        child = start(argv, cwd=session.worktree, env=env, stdin=given, talks=talks)
    except RookError as error:
        journal.write(ERROR, {"message": error.message}, turn_id=turn.id, is_error=True)
        return Outcome(-1, error.message, (), False)
    try:
        with Ear(home, session, turn, child, command.interrupt) as ear:
            _note_child(home, turn, child.identity)
            if talks:
                _tell(child, command)
            for line in child.lines(home.config.agents.turn_timeout):
                for event in runtime.read_line(line):
                    heard.take(event)
                    if event.kind == SESSION:
                        ear.begin()
                    if event.kind == RESULT and talks:
                        child.close_input()
                        child.hasten(_LINGERING_SECONDS)
        status = child.wait(_LAST_SECONDS)
    except ProgramFailed:
        end_tree(child.identity, (MARK, session.id), home.config.agents.stop_grace)
        status = child.wait(_LAST_SECONDS)
        if heard.has_result:
            status = 0  # it had said everything, and only its process stayed
        else:
            limit = home.config.agents.turn_timeout
            heard.take(TurnEvent(ERROR, {"message": f"the turn did not end within {limit:g} s (agents.turn_timeout)"}))
    finally:
        heard.finish()
        last_words = child.last_words
        child.close()
    is_ok = status == 0 and not heard.failure
    return Outcome(
        -1 if status is None else status,
        heard.failure or last_words,
        tuple(heard.usage),
        is_ok,
        "" if is_ok else ear.by,
        heard.problem,
    )


def _tell(child: Child, command: Command) -> None:
    """Give the prompt to a child that is listened to; one that has ended already says why by itself."""
    try:
        child.send(command.stdin or "")
    except ProgramFailed:
        return


class _Heard:
    """What a turn's child has said so far."""

    def __init__(self, home: Home, session: Session, turn: Turn, journal: Journal) -> None:
        self._home, self._session, self._turn, self._journal = home, session, turn, journal
        self.usage: list[dict[str, Any]] = []
        self.runtime_session = session.runtime_session
        self.failure = ""
        self.problem: dict[str, Any] = {}
        self.has_result = False
        self._open_tools: dict[str, tuple[dict[str, Any], float]] = {}

    def take(self, event: TurnEvent) -> None:
        """Keep one event."""
        data = event.data
        if event.kind == SESSION:
            self._begin(str(data["id"]))
            return
        if event.kind == TOOL:
            whole = self._pair(data)
            if whole is None:
                store.touch(self._home.db, self._session.id, self._home.now())
                return
            data = whole
        if event.kind == USAGE:
            self.usage.append(price(data, self._session.model, self._home.config))
        if event.kind == LIMIT and data.get("resets_at"):
            self.problem["resets_at"] = data["resets_at"]
        if event.kind == ERROR:
            self.failure = str(data.get("message", "the program reported an error"))
            self.problem |= {key: data[key] for key in ("kind", "status") if key in data}
        if event.kind == RESULT:
            self.has_result = True
            if data.get("ok") is False:
                self.failure = self.failure or str(data.get("text", "")) or "the turn failed"
        if event.kind == DENIED and self._journal.has(DENIED, str(data.get("id", ""))):
            return  # our own hook denied it, and knows why
        if event.kind == FILE:
            data = data | {"path": self._inside(str(data["path"]))}
        self._write(event.kind, data)

    def finish(self) -> None:
        """Nothing more will come: what was begun and not ended was cut off."""
        for call, _begun in self._open_tools.values():
            self._write(TOOL, call | {"ok": False, "output": "[cut off]"})
        self._open_tools.clear()

    def _begin(self, runtime_session: str) -> None:
        """Keep the conversation's name at once: a turn that is killed goes on in it."""
        if runtime_session == self.runtime_session:
            return
        self.runtime_session = runtime_session
        with self._home.db.write() as db:
            session = store.session(db, self._session.id)
            if session.is_alive:
                at = self._home.now()
                store.change_session(db, session, "", actor=session.agent, at=at, runtime_session=runtime_session)

    def _pair(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """A call and its end as one; nothing while it has only begun."""
        key = str(data.get("id", ""))
        if key and "ok" not in data:
            self._open_tools[key] = (data, time.monotonic())
            return None
        if "name" in data:
            return data
        call, begun = self._open_tools.pop(key, ({"name": "unknown", "input": {}}, time.monotonic()))
        return call | data | {"duration_ms": round((time.monotonic() - begun) * 1000)}

    def _inside(self, path: str) -> str:
        """A path as it is called in the worktree, if it is there."""
        inside = os.path.relpath(path, self._session.worktree) if os.path.isabs(path) else path
        return path if inside.startswith("..") else inside

    def _write(self, kind: str, data: dict[str, Any]) -> None:
        name = str(data.get("name") or data.get("path") or "") if kind in (TOOL, FILE, DENIED) else ""
        self._journal.write(
            kind,
            data,
            turn_id=self._turn.id,
            name=name,
            is_error=kind in (ERROR, DENIED) or data.get("ok") is False,
            millis=data.get("duration_ms"),
        )
        store.touch(self._home.db, self._session.id, self._home.now())


def _note_child(home: Home, turn: Turn, child: Identity) -> None:
    with home.db.write() as db:
        store.change_turn(db, turn, pid=child.pid, pid_start=child.start)
    steps.reached("turn started")


def take_snapshot(home: Home, session: Session, number: int) -> str | None:
    """Keep the worktree as it is; a worktree that is gone has nothing to keep."""
    if not os.path.isdir(session.worktree):
        return None
    return snapshots.take(
        home.root,
        home.config.vcs,
        agent=session.agent,
        session_id=session.id,
        turn=number,
        worktree=session.worktree,
        include_ignored=home.config.worktrees.snapshot_ignored,
    )


def _settle(home: Home, session: Session, turn: Turn, outcome: Outcome, snapshot: str | None) -> None:
    with home.db.write() as db:
        now = home.now()
        session = store.session(db, session.id)
        if not session.is_alive:
            return  # stopped meanwhile: whoever ended it has settled everything
        by = outcome.interrupted_by
        store.change_turn(
            db,
            turn,
            state=TURN_DONE if outcome.is_ok else TURN_INTERRUPTED if by else TURN_FAILED,
            exit_status=outcome.exit_status,
            last_words=f"interrupted by {by}" if by else outcome.last_words[-4000:],
            snapshot=snapshot,
            ended_at=now,
        )
        store.add_usage(db, turn.id, outcome.usage)
        data = {"turn_id": turn.id, "number": turn.number, "ok": outcome.is_ok, "exit_status": outcome.exit_status}
        data |= {"interrupted_by": by} if by else {"problem": outcome.problem} if outcome.problem else {}
        publish(db, "turn.ended", session.agent, data, actor=session.agent, at=now)
        finished = mail.terminal_since(db, session.id)
        if outcome.is_ok or by:
            mail.acknowledge(db, turn.id, now)  # an interrupted conversation holds it too, and goes on
        else:
            mail.redeliver(db, turn.id, now)
        if finished:
            end_session(home, session.id, COMPLETED, f"said {finished.type}")
        elif not outcome.is_ok and not by:
            end_session(
                home, session.id, CRASHED, f"exit status {outcome.exit_status}: {outcome.last_words or 'no last words'}"
            )
    steps.reached("turn settled")


def _secrets(home: Home, session: Session) -> tuple[str, ...]:
    from rookery.agents import provision

    token = agent_environ(home, session, {})["ROOKERY_TOKEN"]
    return (token, *provision.secrets(home.folder(session.id)))
