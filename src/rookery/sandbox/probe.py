"""Whether bubblewrap works here. Only running it tells, because a kernel or a policy may forbid what it needs.

That takes some milliseconds, so it is done for every program that is started, and not remembered.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from rookery.base.errors import ProgramFailed
from rookery.base.record import Record
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
# In a user namespace of its own the agent can make no further one: much of the kernel is out of its reach.
_STRICT = ("--unshare-user", "--disable-userns")
_BASE = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
# The kernel's own switches: a user who is root outside could reach them without any capability.
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
    """Whether bubblewrap works, and how it is called."""

    words: tuple[str, ...]
    """The beginning of its command line; empty if it does not work."""
    reason: str = ""
    hint: str = ""
    version: str = ""

    @property
    def works(self) -> bool:
        """True if agents can be sandboxed."""
        return bool(self.words)


def decide(ctx: Context) -> str:
    """What a new session's record says of the sandbox; raises NoSandbox where one is required and none works."""
    mode = ctx.config.sandbox.mode
    if mode == OFF:
        return "off: sandbox.mode"
    bubblewrap = probe_project(ctx.root, ctx.config)
    if bubblewrap.works:
        return BUBBLEWRAP
    if mode == AUTO:
        return f"off: {bubblewrap.reason}"
    raise NoSandbox(f"sandbox.mode is on, and no agent can be sandboxed: {bubblewrap.reason}", hint=bubblewrap.hint)


def probe_project(root: str | None, config: Config) -> Probe:
    """Whether agents of this project can be sandboxed, and if not, why and what to do."""
    if root is not None and (detect(root, config.vcs.backend) or ("",))[0] == JJ:
        return Probe((), "agents of a jj repository all write one store", "use git, or sandbox.mode auto")
    if root is not None and os.path.isdir(os.path.join(root, ".git", "reftable")):
        return Probe((), "refs in a reftable cannot be separated by agent", "use refs in files, or sandbox.mode auto")
    return probe()


def probe() -> Probe:
    """Run bubblewrap to see whether it works."""
    if not sys.platform.startswith("linux"):
        return Probe((), "bubblewrap needs Linux", "run Rookery in a Linux virtual machine or container")
    try:
        program = find_program("bwrap", "/", child_environ())
    except ProgramFailed:
        return Probe((), "bubblewrap is not installed", _INSTALL)
    reason = ""
    for more in (_STRICT, ()):
        words = (program, *_FLAGS, *more, *_BASE, *_COVERED)
        try:
            run([*words, "--tmpfs", "/run", "--unshare-net", "--", "/bin/sh", "-c", ":"], timeout=_TIMEOUT)
            return Probe(words, version=run([program, "--version"], timeout=_TIMEOUT).stdout.strip())
        except ProgramFailed as error:
            reason = reason or error.message.rpartition(": ")[2]
    return Probe((), f"bubblewrap does not work here: {reason}", _PERMIT)
