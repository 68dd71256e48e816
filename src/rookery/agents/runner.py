"""The process that drives a headless agent: turn after turn while there is something to do, and then it is gone.

A waiting agent costs nothing at all: mail starts a runner again. At most one drives an agent; a second one sees the
first and goes. `python -m rookery.agents.runner ROOT SESSION`.
"""

from __future__ import annotations

import sys

from rookery.agents import store
from rookery.agents.ending import end_session
from rookery.agents.home import MARK, Home
from rookery.agents.interrupt import stay_alive
from rookery.agents.model import CRASHED, ENDED, TURN_LOST, WAITING, Session, Turn
from rookery.agents.spent import read_spent
from rookery.agents.stop import end_processes, is_stopping
from rookery.agents.turns import AGAIN, BEGIN, MAIL, open_turn, prompt_of, run_turn
from rookery.base import holder as holders
from rookery.base.proctree import end_tree
from rookery.base.subreaper import adopt_orphans
from rookery.events.store import publish
from rookery.mail import service as mail
from rookery.vcs.git_locks import of_worktree, remove_dead

_MOST_LOST_TURNS = 3


def drive(home: Home, session_id: str) -> None:
    """Run turns until the agent waits or has ended."""
    if not _take(home, session_id):
        return
    while True:
        _sweep(home, session_id)
        found = _next_turn(home, session_id)
        if found is None:
            return
        session, turn, prompt = found
        run_turn(home, session, turn, prompt)


def _take(home: Home, session_id: str) -> bool:
    """Become the one that drives this agent; False if another does, or if it is being stopped."""
    me = holders.myself()
    if not me.identity.start:
        raise LookupError("this process cannot be identified")
    with home.db.write() as db:
        session = store.session(db, session_id)
        if session.state == ENDED or is_stopping(session) or is_driven(session):
            return False
        store.change_session(
            db, session, "", actor=session.agent, at=home.now(), runner_pid=me.pid, runner_start=me.text
        )
    return True


def is_driven(session: Session) -> bool:
    """True if a living process drives the agent, or is still bringing it to life; one elsewhere counts as living."""
    if session.runner_pid is None or session.runner_start is None:
        return False
    return not holders.is_gone(holders.read(session.runner_pid, session.runner_start))


def _sweep(home: Home, session_id: str) -> None:
    """End what a killed runner left of its turn, and give the turn's mail back."""
    turn = store.running_turn(home.db, session_id)
    if turn is None:
        return
    end_tree(None, (MARK, session_id), home.config.agents.stop_grace)
    session = store.session(home.db, session_id)
    remove_dead(of_worktree(home.root, session.worktree))
    spent = read_spent(home, session, turn)
    with home.db.write() as db:
        store.change_turn(db, turn, state=TURN_LOST, ended_at=home.now())
        store.add_usage(db, turn.id, spent)
        mail.redeliver(db, turn.id, home.now())
        agent = store.session(db, session_id).agent
        publish(db, "turn.lost", agent, {"turn_id": turn.id, "number": turn.number}, actor=agent, at=home.now())


def _next_turn(home: Home, session_id: str) -> tuple[Session, Turn, str] | None:
    """Open the next turn, or let go of the agent: mail that comes just before is seen, just after finds it waiting."""
    with home.db.write() as db:
        session = store.session(db, session_id)
        if session.state == ENDED:
            return None
        cause = _cause(home, session)
        if cause == "":
            end_session(home, session.id, CRASHED, f"{_MOST_LOST_TURNS} turns in a row were cut off")
            return None
        if cause is None:
            store.change_session(
                db,
                session,
                "agent.waiting",
                actor=session.agent,
                at=home.now(),
                state=WAITING,
                runner_pid=None,
                runner_start=None,
            )
            return None
        turn, letters = open_turn(home, session, cause)
        return store.session(db, session.id), turn, prompt_of(session, cause, letters)


def _cause(home: Home, session: Session) -> str | None:
    turns = store.turns(home.db, session.id)
    if not turns:
        return BEGIN
    lost = next((number for number, turn in enumerate(reversed(turns)) if turn.state != TURN_LOST), len(turns))
    if lost >= _MOST_LOST_TURNS:
        return ""
    if lost:
        return AGAIN if lost < len(turns) else BEGIN
    return MAIL if mail.waiting(home.db, session.agent) else None


def main() -> None:
    """Drive one agent."""
    from rookery.config.compiled import read_config
    from rookery.config.environ import forget_runner, read_environ
    from rookery.ops.state import open_state

    forget_runner()
    adopt_orphans()
    stay_alive()
    root, session_id = sys.argv[1:3]
    db = open_state(root)
    home = Home(root, db, read_config(root, read_environ(), {}))
    session = store.session(db, session_id)
    if session.state == ENDED:
        end_processes(home, session)
    else:
        drive(home, session_id)


if __name__ == "__main__":
    main()
