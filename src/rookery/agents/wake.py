"""Waking agents that have mail: a headless one gets a runner, an interactive one a word in its terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rookery.ops.context import Context

YOU_HAVE_MAIL = "You have mail."


def wake(ctx: Context, names: Sequence[str]) -> None:
    """Wake those of the recipients that wait. Costs a query if none does."""
    if not names:
        return
    rows = ctx.db.all(
        f"SELECT agent, mode FROM sessions WHERE state = 'waiting' AND agent IN ({', '.join('?' * len(names))})",
        list(names),
    )
    for agent, mode in rows:
        if mode == "headless":
            _wake_headless(ctx, agent)
        else:
            _wake_terminal(ctx, agent)


def _wake_headless(ctx: Context, agent: str) -> None:
    import os

    from rookery.base.detach import start_detached
    from rookery.base.python import module_command
    from rookery.config.environ import unmarked_environ

    session_id = ctx.db.value("SELECT id FROM sessions WHERE agent = ? AND state <> 'ended'", (agent,))
    start_detached(
        [*module_command("rookery.agents.runner"), ctx.root, session_id],
        cwd=ctx.root,
        env=unmarked_environ(),
        output=os.path.join(ctx.root, ".rookery", "sessions", session_id, "runner.log"),
    )


def _wake_terminal(ctx: Context, agent: str) -> None:
    from rookery.agents.home import Home
    from rookery.terminal.tmux import Tmux

    tmux = Tmux(Home.of(ctx).tmux_socket)
    name = f"rook-{agent}"
    if tmux.has(name):
        tmux.send_text(name, YOU_HAVE_MAIL)
        tmux.enter(name)
