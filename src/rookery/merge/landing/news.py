"""Who is told what of a landing: the agent that did the work and its lead, by mail, in the transaction of the fact."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rookery.base.errors import Refused
from rookery.base.text import one_line
from rookery.mail import service as mail
from rookery.merge.merger import Merger
from rookery.merge.model import Entry

_SHOWN_FILES = 50
_SHOWN_LINES = 4000


def tell_landed(merger: Merger, entry: Entry) -> None:
    """A branch has landed."""
    body = f"{entry.branch} has landed on {entry.base} as {str(entry.candidate)[:12]} ({entry.tier})."
    _send(
        merger,
        _concerned(entry),
        f"{entry.branch} has landed on {entry.base}",
        body,
        type="merged",
        payload={"branch": entry.branch, "commit": entry.candidate or ""},
    )


def tell_failed(merger: Merger, entry: Entry, details: str = "") -> None:
    """A branch could not land: why, where, and the last lines of what a gate said."""
    files = [path for path in entry.files if path][:_SHOWN_FILES]
    parts = [f"{entry.branch} could not land on {entry.base}: {entry.reason}"]
    if files:
        parts.append("Files:\n" + "\n".join(f"- {path}" for path in files))
    if details:
        parts.append(f"What the gate said last:\n{details[-_SHOWN_LINES:]}")
    parts.append(
        f"Fix it on the branch (bring {entry.base} in first: `rook worktree rebase {entry.agent or 'NAME'}`, or merge "
        f"it), commit, and ask for another try: `rook merge retry {entry.id}`."
    )
    _send(
        merger,
        _concerned(entry),
        one_line(f"{entry.branch} could not land: {entry.reason}", 200),
        "\n\n".join(parts),
        type="merge_failed",
        priority="high",
        payload={"branch": entry.branch, "reason": one_line(str(entry.reason), 500), "files": files},
    )


def tell_undone(merger: Merger, entry: Entry, *, is_open_again: bool) -> None:
    """A landing was undone."""
    task = ", and its task is open again" if is_open_again else ""
    _send(
        merger,
        _concerned(entry),
        f"the landing of {entry.branch} on {entry.base} was undone",
        f"It was {entry.reason}. The work is still on {entry.branch}{task}.",
        type="status",
        priority="high",
    )


def ask_to_rebase(merger: Merger, agent: str, branch: str, base: str, files: Sequence[str]) -> None:
    """Something landed that a living agent's work overlaps with."""
    shown = "\n".join(f"- {path}" for path in files[:_SHOWN_FILES])
    _send(
        merger,
        [agent],
        f"{base} has moved; please rebase {branch}",
        f"Work has landed on {base} that touches the same files as yours:\n{shown}\n\n"
        f"When you are at a good place, commit and run `rook worktree rebase {agent}`.",
        type="rebase_request",
        payload={"branch": branch, "base": base},
    )


def warn_of_overlap(
    merger: Merger, agent: str, branch: str, other: str, files: Sequence[str], conflicting: bool
) -> None:
    """Two agents work on the same files."""
    shown = "\n".join(f"- {path}" for path in files[:_SHOWN_FILES])
    what = "would conflict with" if conflicting else "touches the same files as"
    _send(
        merger,
        [agent],
        f"Your work {what} {other}'s",
        f"As it is now, {branch} {what} the branch of {other}:\n{shown}\n\n"
        f"Speak with {other} by mail before you go on there, or keep your changes in these files small.",
        type="status",
        priority="high" if conflicting else "normal",
    )


def _concerned(entry: Entry) -> list[str]:
    return list(dict.fromkeys(name for name in (entry.agent, entry.lead) if name))


def _send(merger: Merger, names: Sequence[str], subject: str, body: str, **more: Any) -> None:
    for name in names:
        with suppress(Refused):  # no agent of that name is known any more
            mail.send_from_system(merger.ctx.db, name, subject, body, now=merger.ctx.now(), **more)
