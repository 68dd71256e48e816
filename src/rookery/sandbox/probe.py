"""Whether bubblewrap works here. It is asked by running it, because a kernel or a policy may forbid what it needs.

The answer holds until the machine starts again or the program changes, and is kept in `.rookery/run/sandbox.json`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.errors import ProgramFailed
from rookery.base.record import Record
from rookery.config import layout
from rookery.config.environ import child_environ
from rookery.config.model import Config
from rookery.ops.context import Context
from rookery.processes.process import run
from rookery.processes.spawning import find_program
from rookery.sandbox.model import AUTO, BUBBLEWRAP, OFF, NoSandbox
from rookery.vcs.detect import detect
from rookery.vcs.model import JJ

_TIMEOUT = 10
_FLAGS = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"),
    *("--cap-drop", "ALL"),
)
# Beneath a user namespace of its own the agent can make no further one: much of the kernel is out of its reach.
_STRICT = ("--unshare-user", "--disable-userns")
_BASE = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
# The kernel's own switches: whoever is root out here would be let through to them without any capability.
_COVERED = tuple(
    word
    for name in ("sys", "irq", "bus", "fs", "scsi", "acpi", "driver", "tty", "mtrr", "pressure", "sysrq-trigger")
    for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
)

_INSTALL = "install it: `apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`"
_PERMIT = (
    "user namespaces seem to be forbidden: see `sysctl kernel.unprivileged_userns_clone user.max_user_namespaces "
    "kernel.apparmor_restrict_unprivileged_userns`, or allow bwrap in AppArmor"
)


@dataclass(frozen=True, slots=True)
class Probe(Record):
    """What was found."""

    words: tuple[str, ...]
    """How bubblewrap is called; nothing if it does not work."""
    reason: str = ""
    hint: str = ""
    version: str = ""

    @property
    def works(self) -> bool:
        """True if agents can be sandboxed."""
        return bool(self.words)


def decide(ctx: Context) -> str:
    """What a new session's record says of the sandbox; raises NoSandbox where it is demanded and cannot be had."""
    mode = ctx.config.sandbox.mode
    if mode == OFF:
        return "off: sandbox.mode"
    reason, hint = find_obstacle(ctx.root, ctx.config)
    if not reason:
        return BUBBLEWRAP
    if mode == AUTO:
        return f"off: {reason}"
    raise NoSandbox(
        f"sandbox.mode is on, and no agent can be sandboxed: {reason}",
        hint=hint or "see `rook doctor --category sandbox`",
    )


def find_obstacle(root: str | None, config: Config) -> tuple[str, str]:
    """Why agents of this project cannot be sandboxed, and what to do; nothing if they can."""
    if root is not None and (detect(root, config.vcs.backend) or ("",))[0] == JJ:
        return "agents of a jj repository all write one store", "use git, or sandbox.mode auto"
    if root is not None and os.path.isdir(os.path.join(root, ".git", "reftable")):
        return "refs in a reftable cannot be told apart by agent", "use refs in files, or sandbox.mode auto"
    found = probe(root)
    return found.reason, found.hint


def probe(root: str | None) -> Probe:
    """Whether it works; asked once, and then read from the project's state, if there is one."""
    if not sys.platform.startswith("linux"):
        return Probe((), "bubblewrap needs Linux", "run Rookery in a Linux virtual machine or container")
    try:
        program = find_program("bwrap", "/", child_environ())
    except ProgramFailed:
        return Probe((), "bubblewrap is not installed", _INSTALL)
    path = None if root is None else layout.path(root, layout.SANDBOX_ANSWER)
    about = _about(program)
    known = _recall(path, about)
    if known is None:
        known = _try(program)
        _remember(path, about, known)
    return known


def _try(program: str) -> Probe:
    said = ""
    for more in (_STRICT, ()):
        words = (program, *_FLAGS, *more, *_BASE, *_COVERED)
        try:
            run([*words, "--tmpfs", "/run", "--unshare-net", "--", "/bin/sh", "-c", ":"], timeout=_TIMEOUT)
            version = run([program, "--version"], timeout=_TIMEOUT).stdout.strip()
        except ProgramFailed as error:
            said = said or error.message.rpartition(": ")[2]
            continue
        return Probe(words, version=version)
    return Probe((), f"bubblewrap does not work here: {said}", _PERMIT)


def _about(program: str) -> dict[str, Any]:
    """What the answer depends on."""
    found = os.stat(program)
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return {
        "boot": boot,
        "user": os.getuid(),
        "program": program,
        "changed": found.st_mtime_ns,
        "flags": list(_FLAGS + _COVERED),
    }


def _recall(path: str | None, about: dict[str, Any]) -> Probe | None:
    try:
        with open(path or os.devnull, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError):
        return None
    if not isinstance(data, dict) or data.get("about") != about or not data.get("words"):
        return None  # what did not work may work now
    return Probe(tuple(data["words"]), version=str(data.get("version", "")))


def _remember(path: str | None, about: dict[str, Any], found: Probe) -> None:
    if path is None or not found.works:
        return
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    write_whole(path, json.dumps({"about": about, "words": list(found.words), "version": found.version}))
