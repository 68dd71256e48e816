"""The holder of a lease, a folder or an agent: which call of which process, in which namespace, on which host.

It is stored as a process number and a text, `<boot>-<ticks>@<host>/<pid namespace>#<call>`. A text without the part
from `@` on is of an earlier Rookery, and means a process of this host and namespace.

We look at processes only to see whether a holder of this host and pid namespace is dead. The numbers of another host,
or of a container or a sandbox, mean other processes there: such a holder ends by its lease alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from rookery.base import call as calls
from rookery.base.record import Record
from rookery.processes import proctable
from rookery.processes.proctable import Identity


@dataclass(frozen=True, slots=True)
class HolderId(Record):
    """One holder."""

    identity: Identity
    """Its process, as its own pid namespace numbers it."""
    host: str = ""
    namespace: str = ""
    call: str = ""
    """The call that a thread of that process served; empty where the process serves itself."""

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self.identity.pid

    @property
    def text(self) -> str:
        """Everything but the number, which is stored beside it."""
        return f"{self.identity.start}@{self.host}/{self.namespace}" + (f"#{self.call}" if self.call else "")


def myself() -> HolderId:
    """This thread as a holder."""
    call = calls.current()
    return HolderId(proctable.identity_of(os.getpid()), host(), proctable.namespace(), "" if call is None else call.id)


def of(process: Identity) -> HolderId:
    """A process of this host and namespace, such as a child, as a holder."""
    return HolderId(process, host(), proctable.namespace())


def read(pid: int, text: str | None) -> HolderId:
    """The holder that was stored as this number and text."""
    start, _, rest = (text or "").partition("@")
    location, _, call = rest.partition("#")
    host, _, namespace = location.partition("/")
    return HolderId(Identity(pid, start), host, namespace, call)


def is_elsewhere(holder: HolderId) -> bool:
    """True if its process cannot be seen from here: it is on another host, or in another pid namespace of this one."""
    if not holder.host:
        return False
    boot = proctable.boot_of(holder.identity)
    if boot and boot == proctable.this_boot():
        return holder.namespace != proctable.namespace()  # a host may change its name while it runs
    return holder.host != host()


def is_gone(holder: HolderId, *, lease_is_over: bool = False) -> bool:
    """True if the holder has ended. Of one elsewhere we do not know that until its lease is over."""
    if is_elsewhere(holder):
        return lease_is_over
    row = proctable.read_one(holder.pid)
    if row is None or row.is_dead or row.identity != holder.identity:
        return True
    return bool(holder.call) and holder.pid == os.getpid() and not calls.is_served(holder.call)


def process_of(holder: HolderId) -> Identity | None:
    """The process to send a signal to; None if it is elsewhere, or serves other calls too."""
    return None if holder.call or is_elsewhere(holder) else holder.identity


def host() -> str:
    """The name of this host, as holders are stored with it."""
    return os.uname().nodename.encode("ascii", "backslashreplace").decode()
