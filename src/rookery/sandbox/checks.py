"""What the doctor asks of the sandbox: whether it works, what agents can reach, and what only the guard prevents."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.config.environ import child_environ, read_environ
from rookery.config.loader import load_config
from rookery.config.model import SandboxConfig
from rookery.config.project import is_project
from rookery.environment.service import read_if_usable
from rookery.sandbox.model import ALLOW, OFF, ON, OPEN
from rookery.sandbox.probe import probe_project
from rookery.sandbox.proxy import read_rule

_CATEGORY = "sandbox"


def check_sandbox(place: Place) -> Iterator[Finding]:
    """Bubblewrap works here and is in use; the findings say what agents can reach."""
    root = place.root if place.root is not None and is_project(place.root) else None
    try:
        config = load_config(root, read_environ(), {}).config
    except RookError:
        return  # the configuration's own check says so
    settings = config.sandbox
    if settings.mode == OFF:
        yield Finding(
            _CATEGORY,
            "files",
            WARNING,
            "sandbox.mode is off: agents can write whatever you can, and only the guard asks what they do",
            "set sandbox.mode to auto or on",
        )
        return
    bubblewrap = probe_project(root, config)
    if not bubblewrap.works:
        status, what = WARNING, "agents run without a sandbox, and only the guard holds"
        if settings.mode == ON:
            status, what = ERROR, "no agent can be slung"
        yield Finding(_CATEGORY, "files", status, f"{bubblewrap.reason}: {what}", bubblewrap.hint)
        return
    what = f"{bubblewrap.version}: agents write their worktree, branch and home, and nothing else"
    yield Finding(_CATEGORY, "files", OK, what)
    yield _network(settings)
    yield _credentials(settings, root)


def _network(settings: SandboxConfig) -> Finding:
    if settings.network == OPEN:
        return Finding(_CATEGORY, "network", OK, "open: agents reach every host, this machine's own services too")
    if settings.network == ALLOW:
        try:
            rules = [read_rule(host) for host in settings.allow]
        except RookError as error:
            return Finding(_CATEGORY, "network", ERROR, error.message, error.hint)
        if not rules:
            return Finding(
                _CATEGORY, "network", WARNING, "sandbox.allow is empty: agents reach nothing", "list hosts in it"
            )
        return Finding(_CATEGORY, "network", OK, f"agents reach {', '.join(settings.allow)} through a proxy")
    return Finding(_CATEGORY, "network", OK, "off: agents reach nothing, not even their model's service")


def _credentials(settings: SandboxConfig, root: str | None) -> Finding:
    stored = None if root is None else read_if_usable(root)
    known = child_environ() if stored is None else stored.variables.whole
    missing = [name for name in settings.credentials if name not in known]
    if missing:
        what = "set" if stored is None else "recorded"
        hint = "set them, or take them off the list" if stored is None else "set them and run `rook env refresh`"
        return Finding(_CATEGORY, "credentials", WARNING, f"not {what}: {', '.join(missing)}", hint)
    names = ", ".join(settings.credentials) or "none of your environment's secrets"
    return Finding(_CATEGORY, "credentials", OK, f"agents are given {names}")


CHECKS = (check_sandbox,)
