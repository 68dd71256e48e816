"""Waking agents that have mail: a headless one gets a runner, an interactive one a word in its terminal."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rookery.db.database import Database

YOU_HAVE_MAIL = "You have mail."


def wake(root: str, db: Database, names: Sequence[str]) -> None:
    """Wake those who wait and have mail, after that mail is committed. Costs a query if there is nobody."""
    if not names:
        return
    rows = db.all(
        "SELECT s.agent, s.mode, s.id FROM sessions s WHERE s.state = 'waiting' "
        f"AND s.agent IN ({', '.join('?' * len(names))}) "
        "AND EXISTS (SELECT 1 FROM messages m WHERE m.recipient = s.agent AND m.read_at IS NULL)",
        list(names),
    )
    for agent, mode, session_id in rows:
        if mode == "headless":
            start_runner(root, session_id)
        else:
            _speak(root, agent)


def start_runner(root: str, session_id: str) -> None:
    """Start the process that drives an agent's turns. One too many sees that and goes."""
    from rookery.base.detach import start_detached
    from rookery.base.proctable import RUNNER
    from rookery.base.python import module_command
    from rookery.config.environ import unmarked_environ

    start_detached(
        [*module_command("rookery.agents.runner"), root, session_id],
        cwd=root,
        env=unmarked_environ() | {RUNNER: session_id},
        output=os.path.join(root, ".rookery", "sessions", session_id, "runner.log"),
    )


def _speak(root: str, agent: str) -> None:
    from rookery.terminal.tmux import Tmux, socket_path

    tmux = Tmux(socket_path(root))
    name = f"rook-{agent}"
    if tmux.has(name):
        tmux.send_text(name, YOU_HAVE_MAIL)
        tmux.enter(name)
