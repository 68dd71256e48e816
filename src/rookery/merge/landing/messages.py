"""Mail about landings, to the agent that did the work and its lead; sent in the transaction that records the fact."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rookery.base.errors import Refused
from rookery.base.file_scope import quote_name
from rookery.base.json import dumps
from rookery.base.text import one_line
from rookery.db.database import Database
from rookery.mail import service as mail
from rookery.mail.addressing import find_person
from rookery.mail.model import QUIET_PRIORITY
from rookery.merge.merger import Merger
from rookery.merge.model import CONFLICT, OUTSIDE, Entry, way_out
from rookery.sessions import store as agents
from rookery.tasks import store as tasks
from rookery.tasks.scope.outside import describe_files

_SHOWN_FILES = 50
_SHOWN_CHARACTERS = 4000


def tell_landed(merger: Merger, entry: Entry) -> None:
    """A branch has landed."""
    subject = f"{entry.branch} has landed on {entry.base}"
    body = f"{subject} as {str(entry.candidate)[:12]} ({entry.tier}).{_outside(entry)}"
    _send(
        merger, entry, subject, body, type="merged", payload={"branch": entry.branch, "commit": entry.candidate or ""}
    )


def tell_failed(merger: Merger, entry: Entry, output: str = "") -> None:
    """A branch could not land: why, in which files, and the last lines of the failed gate's output."""
    files = [one_line(path) for path in entry.files if path][:_SHOWN_FILES]
    parts = [f"{entry.branch} could not land on {entry.base}: {entry.reason}"]
    if files:
        parts.append(f"Files:\n{_list(files if entry.kind == OUTSIDE else _quoted(files))}")
    parts += _output(entry, output)
    parts.append(_how_explained(entry) if entry.kind == OUTSIDE else _how_fixed(entry))
    if entry.kind == CONFLICT:
        parts.append(f"Or a person resolves it by hand: `rook merge resolve {entry.id}`.")
    subject = one_line(f"{entry.branch} could not land: {entry.reason}", 200)
    payload = {"branch": entry.branch, "reason": one_line(str(entry.reason), 500), "files": files}
    _send(merger, entry, subject, "\n\n".join(parts), type="merge_failed", priority="high", payload=payload)


def _outside(entry: Entry) -> str:
    lines = describe_files(entry.outside)
    return "\n\nIt changes files outside of its agent's:\n" + _list(lines) if lines else ""


def _how_explained(entry: Entry) -> str:
    return (
        f"A person or an agent above says why they have to change: `rook merge --branch {entry.branch} --outside WHY`, "
        "or a `merge_ready` with `outside_reason` in its payload and then another try. Or put them back on the branch, "
        f"commit, and ask for another try: `rook merge retry {entry.id}`."
    )


def _how_fixed(entry: Entry) -> str:
    return (
        f"Fix it on the branch (bring {entry.base} in first: `rook worktree rebase {entry.agent or 'NAME'}`, or merge "
        f"it), commit, and ask for another try: `rook merge retry {entry.id}`."
    )


def tell_base_fails(merger: Merger, entry: Entry, output: str) -> None:
    """A branch waits because the base itself fails a gate."""
    parts = [
        f"{entry.branch} waits to land on {entry.base}: {entry.reason}",
        "That is not the fault of the branch: there is nothing to fix on it, and it keeps its place in the queue.",
        *_output(entry, output),
        f"What a person must do: {way_out(entry.base, merger.into(entry.base))}.",
    ]
    subject = one_line(f"{entry.branch} waits: {entry.reason}", 200)
    _send(merger, entry, subject, "\n\n".join(parts))


def _output(entry: Entry, output: str) -> list[str]:
    if not entry.log:
        return []
    shown = f"The last lines of the gate's output:\n{output[-_SHOWN_CHARACTERS:]}" if output else "It printed nothing."
    return [shown, f"All of its output: {entry.log}"]


def tell_undone(merger: Merger, entry: Entry, *, is_task_reopened: bool) -> list[str]:
    """A landing was undone; returns who was told."""
    task = ", and its task is open again" if is_task_reopened else ""
    body = f"It was {entry.reason}. The work is still on {entry.branch}{task}."
    names = concerned(merger.ctx.db, entry)
    _send(merger, entry, undone_subject(entry), body, priority="high")
    return names


def undone_subject(entry: Entry) -> str:
    """The subject of the message that a landing was undone."""
    return f"the landing of {entry.branch} on {entry.base} was undone"


def concerned(db: Database, entry: Entry) -> list[str]:
    """Who gets the messages about an entry: its agent and its lead, as far as they are known."""
    known = []
    for name in dict.fromkeys(name for name in (entry.agent, entry.lead) if name):
        with suppress(Refused):
            known.append(find_person(db, name).name)
    return known


def ask_to_rebase(merger: Merger, agent: str, branch: str, base: str, files: Sequence[str]) -> None:
    """Something landed that overlaps with the work of a running agent."""
    body = (
        f"Work has landed on {base} that touches the same files as yours:\n{_list(_quoted(files))}\n\n"
        f"When you are at a good place, commit and run `rook worktree rebase {agent}`."
    )
    payload = {"branch": branch, "base": base}
    _send(merger, agent, f"{base} has moved; please rebase {branch}", body, type="rebase_request", payload=payload)


def warn_of_overlap(
    merger: Merger, agent: str, branch: str, other: str, files: Sequence[str], *, is_conflict: bool
) -> None:
    """Two agents work on the same files."""
    verb = "would conflict with" if is_conflict else "touches the same files as"
    body = (
        f"As it is now, {branch} {verb} the branch of {other}{_task_of(merger, other)}:\n{_list(_quoted(files))}\n\n"
        f"Speak with {other} by mail before you go on there, or keep your changes in these files small."
    )
    priority = "high" if is_conflict else QUIET_PRIORITY
    _send(merger, agent, f"Your work {verb} {other}'s", body, priority=priority)


def _task_of(merger: Merger, agent: str) -> str:
    session = agents.latest(merger.ctx.db, agent)
    task = None if session is None else tasks.existing(merger.ctx.db, session.task_id)
    return "" if task is None else f" (its task: {dumps(one_line(task.title, 100))})"


def _quoted(files: Sequence[str]) -> list[str]:
    return [quote_name(path) for path in files]


def _list(files: Sequence[str]) -> str:
    return "\n".join(f"- {path}" for path in files[:_SHOWN_FILES])


def _send(merger: Merger, to: Entry | str, subject: str, body: str, **more: Any) -> None:
    """Send a message to one agent, or to the agent and the lead of an entry."""
    for name in [to] if isinstance(to, str) else concerned(merger.ctx.db, to):
        with suppress(Refused):  # no agent of that name is known any more
            mail.send_from_system(merger.ctx.db, name, subject, body, now=merger.ctx.now(), **more)
