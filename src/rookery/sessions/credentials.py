"""What an agent's programs get: its token, its environment and the variables of its provisioning."""

from __future__ import annotations

import os
import sys

from rookery.base.draft import write_whole
from rookery.base.files import read_text
from rookery.base.json import loads
from rookery.config import layout
from rookery.config.project import make_state_folders
from rookery.environment.service import project_environ
from rookery.ops.context import Context
from rookery.processes.proctable import MARK as MARK
from rookery.sessions.model import Session

CLIENT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "client", "bin")
"""The folder of the `rook` that agents call."""


def write_token(ctx: Context, session_id: str) -> str:
    """Make an agent's token, readable by its user alone, and return it."""
    token = os.urandom(24).hex()
    make_state_folders(ctx.session_folder(session_id))
    write_whole(_token_path(ctx, session_id), token, mode=0o600)
    return token


def agent_environ(ctx: Context, session: Session, provided: dict[str, str]) -> dict[str, str]:
    """The environment of everything that an agent runs; it has the mark by which Rookery finds its processes."""
    with open(_token_path(ctx, session.id), encoding="ascii") as file:
        token = file.read()
    env = project_environ(ctx.root) | provided
    # `rook` must be the one that slung the agent, whatever else is on the path.
    own = [CLIENT, os.path.dirname(sys.executable)]
    path = env.get("PATH", "").split(os.pathsep)
    env["PATH"] = os.pathsep.join([*own, *(folder for folder in path if folder not in own)])
    return env | {
        "ROOKERY_PYTHON": sys.executable,
        "ROOKERY_ROOT": ctx.root,
        "ROOKERY_AGENT": session.agent,
        "ROOKERY_TOKEN": token,
        MARK: session.id,
    }


def provided_environ(ctx: Context, session: Session) -> dict[str, str]:
    """The variables that provisioning made for the agent."""
    text = read_text(os.path.join(ctx.session_folder(session.id), layout.SESSION_ENVIRONMENT))
    variables: dict[str, str] = loads(text or "{}")
    return variables


def _token_path(ctx: Context, session_id: str) -> str:
    return os.path.join(ctx.session_folder(session_id), layout.SESSION_TOKEN)
