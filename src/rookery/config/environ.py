"""The only place that reads the environment: the caller's where a call is served, else the process's own.

`ROOKERY_ROOT`, `ROOKERY_AGENT`, `ROOKERY_TOKEN`, `ROOKERY_TURN` and `ROOKERY_SESSION` are what an agent's process is
given, in a sandbox `ROOKERY_SOCKET` instead of the token; a runner is given `ROOKERY_RUNNER`. `ROOKERY_TEST_…`
variables are for tests, and an agent's processes ignore them. `ROOKERY_DAEMON=off` lets commands run in their own
process instead of the project's daemon. Every other `ROOKERY_…` variable overrides a configuration key.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, tzinfo

from rookery.base.call import current
from rookery.base.record import Record

HUMAN = "human"


@dataclass(frozen=True, slots=True)
class Environ(Record):
    """What the environment says."""

    root: str | None
    """`ROOKERY_ROOT`: the project, whatever the current folder is."""
    agent: str
    """`ROOKERY_AGENT`: who is calling; a person unless said otherwise."""
    no_color: bool
    """`NO_COLOR` (any value) or `TERM=dumb`."""
    home: str
    user_config: str
    """The user's own configuration file."""
    state_home: str
    """Where programs keep state of the user's own: `XDG_STATE_HOME`, or `~/.local/state`."""
    settings: dict[str, str]
    """`ROOKERY_TASKS_LEASE=1h` as `{"ROOKERY_TASKS_LEASE": "1h"}`."""
    token: str | None = None
    """`ROOKERY_TOKEN`: proves that the caller is the agent that it says it is."""
    turn: str | None = None
    """`ROOKERY_TURN`: the turn that the caller runs in."""
    session: str | None = None
    """`ROOKERY_SESSION`: the agent's session that the caller belongs to."""
    own_session: str | None = None
    """`CLAUDE_CODE_SESSION_ID`: a person's own agent session that the caller was started in; where only `CLAUDECODE`
    says that there is one, `unknown`."""
    is_confined: bool = False
    """`ROOKERY_CONFINED`: the caller sits in a sandbox, and we act for it from outside."""

    editor: str = ""
    """`VISUAL`, else `EDITOR`: a command for the shell."""

    @property
    def is_agents_process(self) -> bool:
        """True if an agent's process has this environment, whatever name it has put there."""
        return self.token is not None or self.turn is not None or self.session is not None


_OWN = {
    "ROOKERY_ROOT",
    "ROOKERY_AGENT",
    "ROOKERY_TOKEN",
    "ROOKERY_TURN",
    "ROOKERY_SESSION",
    "ROOKERY_RUNNER",
    "ROOKERY_SERVES",
    "ROOKERY_SLING",
    "ROOKERY_PORT",
    "ROOKERY_PORTS",
    "ROOKERY_PYTHON",
    "ROOKERY_SOCKET",
    "ROOKERY_CONFINED",
}
_MODE = {"ROOKERY_DAEMON", "ROOKERY_COLUMNS"}
"""How a command runs and prints: no settings, as they count before any is read."""
_AGENT_MARKS = ("ROOKERY_TOKEN", "ROOKERY_SESSION", "ROOKERY_SOCKET", "ROOKERY_CONFINED")
_FOR_TESTS = {
    f"ROOKERY_TEST_{name}" for name in ("CLOCK", "KILL", "STOP", "INTERRUPT", "VANISH", "NO_CHILD_WHILE_WRITING")
}


def _environ() -> Mapping[str, str]:
    call = current()
    return os.environ if call is None else call.environ


def read_environ(source: Mapping[str, str] | None = None) -> Environ:
    """Read the environment once; nothing else in Rookery does."""
    env = _environ() if source is None else source
    home = env.get("HOME") or os.path.expanduser("~")
    config_home = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    state_home = env.get("XDG_STATE_HOME", "")
    return Environ(
        root=env.get("ROOKERY_ROOT") or None,
        agent=env.get("ROOKERY_AGENT") or HUMAN,
        no_color="NO_COLOR" in env or env.get("TERM") == "dumb",
        home=home,
        user_config=os.path.join(config_home, "rookery", "config.yaml"),
        # By the standard, a path that is not absolute counts as not set.
        state_home=state_home if os.path.isabs(state_home) else os.path.join(home, ".local", "state"),
        settings={k: v for k, v in env.items() if k.startswith("ROOKERY_") and k not in _OWN | _MODE | _FOR_TESTS},
        token=env.get("ROOKERY_TOKEN") or None,
        turn=env.get("ROOKERY_TURN") or None,
        session=env.get("ROOKERY_SESSION") or None,
        own_session=_own_session(env),
        is_confined="ROOKERY_CONFINED" in env,
        editor=(env.get("VISUAL") or env.get("EDITOR") or "").strip(),
    )


UNKNOWN_SESSION = "unknown"
LONGEST_SESSION = 100


def _own_session(env: Mapping[str, str]) -> str | None:
    unknown = UNKNOWN_SESSION if env.get("CLAUDECODE") else None
    return env.get("CLAUDE_CODE_SESSION_ID", "")[:LONGEST_SESSION] or unknown


def asked_width() -> int:
    """`ROOKERY_COLUMNS`: the width for which to draw, also in a pipe; 0 without it."""
    text = _environ().get("ROOKERY_COLUMNS", "")
    return max(40, int(text)) if text.isdecimal() else 0


def uses_daemon() -> bool:
    """Whether calls go to the project's daemon: on Linux, unless `ROOKERY_DAEMON` is `off`."""
    return sys.platform == "linux" and _environ().get("ROOKERY_DAEMON", "") != "off"


def now() -> float:
    """Seconds since the epoch; `ROOKERY_TEST_CLOCK` names a file with the seconds that a test adds to them."""
    path = read_test("CLOCK")
    if not path:
        return time.time()
    with open(path, encoding="ascii") as file:
        return time.time() + float(file.read())


_SYSTEM_ZONE = "/etc/localtime"
_ZONES = "/usr/share/zoneinfo/"


def time_zone() -> tzinfo:
    """The caller's time zone: `TZ`, else the machine's; UTC where it is not known."""
    from zoneinfo import ZoneInfo  # takes 10 ms to import, and few commands show a time

    name = _environ().get("TZ", "").removeprefix(":").removeprefix(_ZONES)
    try:
        if name:
            return ZoneInfo(name)
        with open(_SYSTEM_ZONE, "rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, LookupError):
        return UTC


def read_test(name: str) -> str:
    """`ROOKERY_TEST_…`; empty for an agent's processes, which could set it to their own advantage."""
    value = _environ().get("ROOKERY_TEST_" + name, "")
    return "" if value and _is_agents() else value


def _is_agents() -> bool:
    """True if our process is an agent's, or acts for one."""
    return any(mark in _environ() for mark in _AGENT_MARKS)


def read_sudo_user() -> int | None:
    """`SUDO_UID`: the user that became root by sudo."""
    uid = _environ().get("SUDO_UID", "")
    return int(uid) if uid.isascii() and uid.isdecimal() else None


_ROOT = 0


def is_own(owner: int, user: int, sudo_user: int | None) -> bool:
    """True if what `owner` has made may act for `user`: his own, or, for root, that of the user who called sudo."""
    return owner == user or (user == _ROOT and sudo_user is not None and owner == sudo_user)


# Git gives these to its hooks and aliases; a child that inherits them works on that repository, wherever it stands, or
# reads its words in another way.
GIT_PLACES = {
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REFERENCE_BACKEND",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
}


def child_environ() -> dict[str, str]:
    """The environment for a child that must work on the repository that we name, also when we run in a git hook."""
    env = {**_environ(), **dict(_marks.get())}
    return {name: value for name, value in env.items() if name not in GIT_PLACES}


_marks: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("marks", default=())


@contextmanager
def marked_children(name: str, value: str) -> Iterator[None]:
    """Let every git and jj that this thread starts meanwhile carry a variable, to be found should it outlive us."""
    before = _marks.set(((name, value),))
    try:
        yield
    finally:
        _marks.reset(before)


def unmarked_environ() -> dict[str, str]:
    """The environment for a process that must not be taken for the calling agent's own.

    Without the mark it would obey what is for tests, so an agent cannot hand that on.
    """
    unwanted = _OWN | _FOR_TESTS if _is_agents() else _OWN
    return {name: value for name, value in child_environ().items() if name not in unwanted}


_OF_THE_CALL = ("SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND")


def passed_on_environ() -> dict[str, str]:
    """What a process gets from the call that starts it, whatever the project's environment is.

    That is what belongs to the call: what is for tests, and who has become root to make it.
    """
    unwanted = _FOR_TESTS if _is_agents() else set()
    return {name: value for name, value in _environ().items() if name in {*_FOR_TESTS, *_OF_THE_CALL} - unwanted}


def forget_runner() -> None:
    """Keep `ROOKERY_RUNNER` from our children: it is said of this process alone, by what it was started with."""
    os.environ.pop("ROOKERY_RUNNER", None)


def confined_environ() -> dict[str, str]:
    """Our environment for a `rook` that acts for an agent in a sandbox."""
    return {name: value for name, value in _environ().items() if name != "ROOKERY_SOCKET"} | {"ROOKERY_CONFINED": "1"}


_NEEDED = {"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TMPDIR", "TZ"}
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def least_environ() -> dict[str, str]:
    """What every program needs to run, and nothing of the caller's: from this very process, which may be a daemon.

    Where the process is an agent's own, it has put the PATH together, so that of the system counts.
    """
    env = {name: value for name, value in os.environ.items() if name in _NEEDED or name.startswith("LC_")}
    if "PATH" not in env or any(mark in os.environ for mark in _AGENT_MARKS):
        env["PATH"] = _SYSTEM_PATH
    mode = {name: os.environ[name] for name in _MODE if name in os.environ}
    return env | mode | passed_on_environ()


_DAEMONS = {"HOME", "PATH", "USER", "LOGNAME", "LANG", "LANGUAGE", "TMPDIR", "TZ"}


def read_daemon_environ() -> dict[str, str]:
    """What a daemon's own process keeps of the environment: nothing that could load code, or mark it as an agent's.

    Every call brings the environment of its caller, so that little is needed.
    """
    env = _environ()
    return {name: value for name, value in env.items() if name in _DAEMONS or name.startswith(("LC_", "XDG_"))}
