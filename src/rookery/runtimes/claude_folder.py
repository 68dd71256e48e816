"""The folder that an agent's Claude Code uses instead of `~/.claude`: settings with our hooks, and dialogs answered.

The user's own folder is never written. Of it only the login is read, where `claude.share_login` says so: the token that
is valid now, without what could renew it. Agents that renew it, each in a folder of its own, would log the user out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rookery.base.clock import stamp
from rookery.base.draft import write_whole
from rookery.config.environ import child_environ, now
from rookery.config.project import make_state_folders
from rookery.runtimes.hooks import HOOKS, MODULE, Hook, hook_command, hook_file
from rookery.runtimes.model import HEADLESS, MODES, Launch, Login

PERSONAL_SETTINGS = os.path.join(".claude", "settings.local.json")
"""In a checkout: the settings of one person's own program, which are not committed."""
HOOK_FILE = "rook-hook"
"""The short command of all hooks."""
LOGINS = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
)
_LOG_IN = "run `claude` and then /login, or set ANTHROPIC_API_KEY and run `rook env refresh`"
_KEY_END = 20
"""The program remembers an approved key by so many characters at its end."""


def folder_of(launch: Launch) -> str:
    """The folder in which the session's program keeps its state."""
    return os.path.join(launch.folder, "claude")


def settings_name(mode: str) -> str:
    """The file of the settings with our hooks, for one mode."""
    return f"rook-{mode}.json"


def settings_path(launch: Launch, mode: str) -> str:
    """The path of those settings."""
    return os.path.join(folder_of(launch), settings_name(mode))


def prepare(launch: Launch) -> None:
    """Write what the program needs, and keep what it remembers. The settings may name another module for its hooks."""
    folder = folder_of(launch)
    make_state_folders(folder)
    file = os.path.join(folder, HOOK_FILE)
    write_whole(file, hook_file(launch.settings.get("hook_module", MODULE)), mode=0o600)
    # By its shell: the folder may be on a disk from which nothing can be executed.
    short = partial(_call_file, file)
    command: Callable[[str], tuple[str, ...]] = launch.settings.get("hook_command", short)
    for mode in MODES:
        _write(settings_path(launch, mode), compose_settings(mode, command))
    remembered = os.path.join(folder, ".claude.json")
    _write(remembered, _read(remembered) | _answers(launch))


def _call_file(path: str, event: str) -> tuple[str, ...]:
    return ("/bin/sh", path, event)


def compose_settings(mode: str, command: Callable[[str], tuple[str, ...]]) -> dict[str, Any]:
    """Every hook as an argument list that no shell reads. Named by `--settings`, these overrule the repository's."""
    hooks = {}
    for hook in HOOKS:
        matcher = hook.headless if mode == HEADLESS else ""
        if matcher is not None:
            hooks[event_name(hook.event)] = [{"matcher": matcher, "hooks": [hook_entry(hook, command)]}]
    return {"disableAllHooks": False, "hooks": hooks}


def hook_entry(hook: Hook, command: Callable[[str], tuple[str, ...]] = hook_command) -> dict[str, Any]:
    """The command of a hook as settings name it."""
    program, *words = command(hook.event)
    return {"type": "command", "command": program, "args": words, "timeout": hook.timeout}


def event_name(event: str) -> str:
    """The program's own name for an event: `PreToolUse` for `pre-tool`."""
    special = {"prompt": "UserPromptSubmit", "pre-tool": "PreToolUse", "post-tool": "PostToolUse"}
    special["post-tool-failure"] = "PostToolUseFailure"
    return special.get(event) or "".join(word.capitalize() for word in event.split("-"))


def _answers(launch: Launch) -> dict[str, Any]:
    """The answers to what the program would ask a person at its first start."""
    key = _environ(launch).get("ANTHROPIC_API_KEY", "")
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    return {
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "autoUpdates": False,
        "customApiKeyResponses": {"approved": [key[-_KEY_END:]] if key else [], "rejected": []},
        "projects": {launch.worktree: trusted, os.path.realpath(launch.worktree): trusted},
    }


def read_login(launch: Launch) -> dict[str, str]:
    """The user's own login as a variable, unless the environment or the configuration names another."""
    env = _environ(launch)
    if not launch.settings.get("share_login", True) or any(env.get(name) for name in LOGINS):
        return {}
    own = env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME", ""), ".claude")
    login = _read(os.path.join(own, ".credentials.json")).get("claudeAiOauth")
    token = login.get("accessToken") if isinstance(login, dict) else None
    return {"CLAUDE_CODE_OAUTH_TOKEN": token} if isinstance(token, str) and token else {}


def find_login(settings: Mapping[str, Any], environ: Mapping[str, str]) -> Login:
    """Whether agents will be logged in: by a variable, or by the user's own login that they share."""
    env = {**environ, **settings.get("env", {})}
    named = next((name for name in LOGINS if env.get(name)), None)
    if named is not None:
        return Login(True, f"by {named}")
    if not settings.get("share_login", True):
        return Login(None, "unknown: claude.share_login is off, and no variable names a login", _LOG_IN)
    own = env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME", ""), ".claude")
    path = os.path.join(own, ".credentials.json")
    if not os.path.exists(path):
        if sys.platform == "darwin":
            return Login(None, "unknown: its login is in the keychain, or there is none", _LOG_IN)
        return Login(False, f"it is not logged in: there is no {path}, and no variable such as {LOGINS[0]}", _LOG_IN)
    login = _read(path).get("claudeAiOauth")
    if not isinstance(login, dict) or not login.get("accessToken"):
        return Login(False, f"it is not logged in: {path} has no token", _LOG_IN)
    expires = login.get("expiresAt")
    if isinstance(expires, int | float) and expires / 1000 < now():
        message = f"the login in {path} ended at {stamp(expires / 1000)}, and agents cannot renew it"
        return Login(False, message, "run `claude` once, which renews it, or `claude` and then /login")
    return Login(True, f"by {path}")


def _environ(launch: Launch) -> dict[str, str]:
    """The program's environment, except what we add."""
    env = child_environ() if launch.environ is None else dict(launch.environ)
    configured: Mapping[str, str] = launch.settings.get("env", {})
    return {**env, **configured}


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: str, content: dict[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=2), mode=0o600)
