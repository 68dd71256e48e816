"""Pure rules of the project's environment: which variables of a shell are kept, which are credentials, what changed.

Everything is kept except what belongs to less than the project: to one terminal, one shell, one login at a screen, or
one run of a program. `SSH_AUTH_SOCK` is kept, and given only while there is a socket (`service`): it may vanish at
logout.

`GIT_CONFIG_COUNT`, `GIT_CONFIG_KEY_0`, `GIT_CONFIG_VALUE_0` and so on are settings for git, and belong together: git
refuses to work if one of them is missing. They are kept, replaced and given as a whole, or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.base.secret_names import is_secret_name
from rookery.config.environ import GIT_PLACES
from rookery.events.redact import looks_secret

PLAIN, CREDENTIAL = "plain", "credential"
ADDED, CHANGED, REMOVED = "added", "changed", "removed"

_ONE_TERMINAL = {
    *("TERM", "TERMCAP", "TERMINFO", "COLORTERM", "COLUMNS", "LINES", "TTY", "GPG_TTY", "WINDOW", "WINDOWID", "STY"),
    *("TMUX", "TMUX_PANE", "SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION", "VTE_VERSION", "WT_SESSION", "WT_PROFILE_ID"),
    *("TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "LC_TERMINAL", "LC_TERMINAL_VERSION", "COLORFGBG"),
}
_ONE_SHELL = {
    *("PWD", "OLDPWD", "SHLVL", "_", "PS1", "PS2", "PS3", "PS4", "PROMPT", "RPROMPT", "PROMPT_COMMAND"),
    *("BASHOPTS", "SHELLOPTS", "BASH_EXECUTION_STRING", "HISTFILE", "HISTSIZE", "HISTFILESIZE", "HISTCONTROL"),
}
_ONE_LOGIN = {
    *("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "SESSION_MANAGER", "DESKTOP_SESSION"),
    *("DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN", "GNOME_KEYRING_CONTROL", "XDG_VTNR", "XDG_SEAT", "XDG_SEAT_PATH"),
    *("SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"),
}
_ONE_RUN = {
    *("INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"),
    *("MANAGERPID", "SYSTEMD_EXEC_PID", "WATCHDOG_PID", "WATCHDOG_USEC", "PYTEST_CURRENT_TEST"),
    *("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID"),
}
_ONE_GIT = {"GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE", "GIT_REFLOG_ACTION", "GIT_PAGER_IN_USE"}
_UNWANTED = frozenset(GIT_PLACES | _ONE_GIT | _ONE_TERMINAL | _ONE_SHELL | _ONE_LOGIN | _ONE_RUN)
_UNWANTED_BEGINNINGS = (
    *("ITERM_", "KITTY_", "KONSOLE_", "WEZTERM_", "ALACRITTY_", "GHOSTTY_", "ZELLIJ", "VSCODE_", "XDG_SESSION_"),
    "DIRENV_",  # holds a copy of other variables, with their secrets
    "BASH_FUNC_",
    *("GIT_TRACE", "GIT_PUSH_", "GITHEAD_"),
    *("ROOKERY_TEST_", "ROOKERY_SCRATCH"),
)
_COUNT, _KEY, _VALUE = "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"
_LONGEST = 128 * 1024
"""The kernel starts no program with a longer `NAME=VALUE`."""


@dataclass(frozen=True, slots=True)
class Variables(Record):
    """An environment as it is recorded, in two parts."""

    plain: dict[str, str]
    credentials: dict[str, str]

    def __repr__(self) -> str:
        return f"Variables({len(self.plain)} plain, {len(self.credentials)} credentials)"

    @property
    def whole(self) -> dict[str, str]:
        """Both parts."""
        return self.plain | self.credentials

    def kind(self, name: str) -> str:
        """Which part a name is in."""
        return CREDENTIAL if name in self.credentials else PLAIN


NOTHING = Variables({}, {})


@dataclass(frozen=True, slots=True)
class Change(Record):
    """How one variable differs."""

    name: str
    kind: str
    what: str
    """`added`, `changed` or `removed`."""


class Environment(dict[str, str]):
    """An environment for a child, which does not show its values in a traceback or a log."""

    def __repr__(self) -> str:
        return f"<environment of {len(self)} variables>"


def is_kept(name: str, value: str) -> bool:
    """True if a variable belongs to the project's environment. Our own marks are removed before."""
    return name not in _UNWANTED and not name.startswith(_UNWANTED_BEGINNINGS) and can_be_set(name, value)


def can_be_set(name: str, value: str) -> bool:
    """True if a program can be started with such a variable."""
    if not name or "=" in name or "\0" in name or "\0" in value:
        return False
    try:
        return len(os.fsencode(name)) + len(os.fsencode(value)) + 2 <= _LONGEST
    except UnicodeEncodeError:
        return False


def is_credential(name: str, value: str) -> bool:
    """True if its name or its value looks secret: a known form of key, a password in an address."""
    if is_git_setting(name):
        return looks_secret(value)
    return name != "PATH" and (is_secret_name(name) or looks_secret(value))


def is_git_setting(name: str) -> bool:
    """True for each of the variables that together hold settings for git."""
    return name == _COUNT or name.startswith((_KEY, _VALUE))


def git_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold settings for git; nothing if one is missing, so that git would refuse to work."""
    count = environ.get(_COUNT, "")
    if not (count.isascii() and count.isdecimal()) or int(count) * 2 > len(environ):
        return {}
    names = [_COUNT, *(f"{kind}{number}" for number in range(int(count)) for kind in (_KEY, _VALUE))]
    if not all(name in environ and can_be_set(name, environ[name]) for name in names):
        return {}
    return {name: environ[name] for name in names}


def with_whole_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without settings for git that are incomplete, or that the count does not cover."""
    return _without_settings(environ) | git_settings(environ)


def _without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not is_git_setting(name)}


def _are_secret(settings: Mapping[str, str]) -> bool:
    """True if one of the settings is: by its value, its key (`http.extraHeader`), or an address within the key."""
    keys = [value for name, value in settings.items() if name.startswith(_KEY)]
    is_named = any(is_secret_name(key) or key.lower().endswith("extraheader") for key in keys)
    return is_named or any(looks_secret(value) for value in settings.values())


def sort_out(environ: Mapping[str, str]) -> Variables:
    """The variables of a shell that are kept, in two parts."""
    plain: dict[str, str] = {}
    credentials: dict[str, str] = {}
    for name, value in _without_settings(environ).items():
        if is_kept(name, value):
            (credentials if is_credential(name, value) else plain)[name] = value
    settings = git_settings(environ)
    (credentials if _are_secret(settings) else plain).update(settings)
    return Variables(dict(sorted(plain.items())), dict(sorted(credentials.items())))


def add_to(recorded: Variables, shell: Variables) -> Variables:
    """What a sling records: the shell as it is, and the recorded credentials that it does not have."""
    before = _without_settings(recorded.credentials) if git_settings(shell.whole) else recorded.credentials
    older = {name: value for name, value in before.items() if name not in shell.plain}
    return Variables(shell.plain, dict(sorted((older | shell.credentials).items())))


def replace_only(recorded: Variables, shell: Variables, names: Collection[str]) -> Variables:
    """The record with these variables as the shell has them, or without those that it does not have."""
    has_setting = any(is_git_setting(name) for name in names)

    def is_replaced(name: str) -> bool:
        return name in names or (has_setting and is_git_setting(name))

    def part(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
        older = {name: value for name, value in old.items() if not is_replaced(name)}
        return dict(sorted((older | {name: value for name, value in new.items() if is_replaced(name)}).items()))

    return Variables(part(recorded.plain, shell.plain), part(recorded.credentials, shell.credentials))


def compare(old: Variables, new: Variables) -> tuple[Change, ...]:
    """What is different in the new one, by name."""
    before, after = old.whole, new.whole
    changes = []
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            what = ADDED if name not in before else CHANGED if name in after else REMOVED
            changes.append(Change(name, (new if name in after else old).kind(name), what))
    return tuple(changes)
