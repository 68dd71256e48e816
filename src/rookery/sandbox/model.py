"""Pure types and rules of the sandbox: mounts, the environment within, and the plan for the host."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from rookery.base.errors import Refused
from rookery.base.record import Record

AUTO, ON, OFF = "auto", "on", "off"
OPEN, ALLOW = "open", "allow"

BUBBLEWRAP = "bubblewrap"
"""What a session's record says when the sandbox is in force; otherwise why it is not."""

# The folder of the outer sockets as the sandbox sees it, and the port of its relay.
SOCKETS = "/run/rookery"
ROOK = f"{SOCKETS}/rook"
PROXY = f"{SOCKETS}/proxy"
RELAY_PORT = 3128


def socket_folder(session_id: str) -> str:
    """The folder outside with the sockets of a session's sandbox: a socket's path may have 107 bytes."""
    return f"/tmp/rookery-{os.getuid()}/sandbox-{session_id[-16:].lower()}"  # noqa: S108 - a private folder


def clear_sockets(folder: str) -> None:
    """Remove such a folder with everything in it."""
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            with suppress(FileNotFoundError):  # the daemon removes its own
                os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


RO, RW, HIDE, BLANK = "ro", "rw", "hide", "blank"
_PASSED = ("PATH", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "TZ")
_OURS = tuple(f"ROOKERY_{name}" for name in ("ROOT", "AGENT", "SESSION", "TURN", "PORT", "PORTS", "PYTHON"))
_SECRET = {"ROOKERY_TOKEN", "ROOKERY_CONFINED"}
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

# No housekeeping of the shared repository and no signature of the user's from within.
_GIT = {"gc.auto": "0", "maintenance.auto": "false", "commit.gpgSign": "false", "tag.gpgSign": "false"}


class NoSandbox(Refused):
    """The configuration requires a sandbox, and none works."""

    code = "no_sandbox"


@dataclass(frozen=True, slots=True)
class Mount(Record):
    """A path and how the sandbox sees it: later mounts cover earlier ones."""

    kind: str
    path: str
    source: str = ""
    """What is mounted there, if not the path itself."""

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments for bubblewrap."""
        if self.kind == HIDE:
            return ("--tmpfs", self.path)
        if self.kind == BLANK:
            return ("--ro-bind", "/dev/null", self.path)
        # What is gone by now (git removes a folder of refs when they are packed) is left out.
        return ("--bind-try" if self.kind == RW else "--ro-bind-try", self.source or self.path, self.path)


@dataclass(frozen=True, slots=True)
class Plan(Record):
    """Everything that the host needs. It is kept in a file, and holds no value of the user's environment."""

    cage: tuple[str, ...]
    """The command line of bubblewrap, before the program."""
    argv: tuple[str, ...]
    names: tuple[str, ...]
    """The variables of the host's environment that the program gets beside those that every program needs."""
    home: str
    """The agent's own home."""
    worktree: str
    sockets: str
    """A private folder outside, with a path short enough for a socket."""
    packed: tuple[str, str]
    """The repository's file of packed refs, and the copy of it that the agent sees."""
    branch: str = ""
    """The file of the agent's branch. Its folder is for the refs of this agent alone."""
    logs: tuple[str, ...] = ()
    """The reflogs that the agent and git outside write to."""
    network: str = OPEN
    allow: tuple[str, ...] = ()
    has_terminal: bool = False


def build_environ(outside: Mapping[str, str], names: Iterable[str], home: str, network: str) -> dict[str, str]:
    """The environment within: what programs need to run, and the variables that the agent gets by name."""
    wanted = {*_PASSED, *_OURS, *names} - _SECRET
    env = {name: value for name, value in outside.items() if name in wanted or name.startswith("LC_")}
    env |= {
        "HOME": home,
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "TMPDIR": "/tmp",  # noqa: S108 - its own
        "ROOKERY_SOCKET": ROOK,
    }
    if network == ALLOW:
        url = f"http://127.0.0.1:{RELAY_PORT}"
        env |= {name: url for upper in _PROXIES for name in (upper, upper.lower())}
        env |= {"NO_PROXY": "", "no_proxy": ""}
    env["GIT_CONFIG_COUNT"] = str(len(_GIT))
    for number, (key, value) in enumerate(_GIT.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env
