"""What an agent's programs are given: its token, its environment and what provisioning gave it."""

from __future__ import annotations

import os
import sys

from rookery.base.draft import write_whole
from rookery.base.json import loads
from rookery.config import layout
from rookery.environment.service import project_environ
from rookery.ops.context import Context
from rookery.processes.proctable import MARK as MARK
from rookery.sessions.model import Session

CLIENT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "client", "bin")
"""Where the `rook` of agents lies."""


def write_token(ctx: Context, session_id: str) -> str:
    """Make an agent's token, readable by its user alone, and return it."""
    token = os.urandom(24).hex()
    os.makedirs(ctx.session_folder(session_id), mode=0o700, exist_ok=True)
    write_whole(_token_path(ctx, session_id), token, mode=0o600)
    return token


def agent_environ(ctx: Context, session: Session, provided: dict[str, str]) -> dict[str, str]:
    """The environment of everything that an agent runs. The mark by which its processes are found is in it."""
    with open(_token_path(ctx, session.id), encoding="ascii") as file:
        token = file.read()
    env = project_environ(ctx.root) | provided
    # `rook` must be the one that slung the agent, whatever else is on the path.
    own = [CLIENT, os.path.dirname(sys.executable)]
    env["PATH"] = os.pathsep.join([*own, *(each for each in env.get("PATH", "").split(os.pathsep) if each not in own)])
    return env | {
        "ROOKERY_PYTHON": sys.executable,
        "ROOKERY_ROOT": ctx.root,
        "ROOKERY_AGENT": session.agent,
        "ROOKERY_TOKEN": token,
        MARK: session.id,
    }


def provided_environ(ctx: Context, session: Session) -> dict[str, str]:
    """What provisioning gave the agent."""
    path = os.path.join(ctx.session_folder(session.id), layout.SESSION_ENVIRONMENT)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        found: dict[str, str] = loads(file.read())
    return found


def _token_path(ctx: Context, session_id: str) -> str:
    return os.path.join(ctx.session_folder(session_id), layout.SESSION_TOKEN)
