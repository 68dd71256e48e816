"""How the results of `rook vcs` are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import SHORT, Block, Fields, Paragraph, Span, Table, line, short, text
from rookery.ops.vcs import Committed, Detected, Difference
from rookery.tasks.cleanup_ops import Branch
from rookery.vcs.model import LogEntry, Status

_KINDS = {"added": "good", "untracked": "good", "deleted": "bad", "conflicted": "bad"}
_VERDICTS = {"kept": "", "removable": "busy", "deleted": "good"}


def detect(repository: Detected, _values: dict[str, Any]) -> list[Block]:
    """Which version control is here."""
    if repository.kind == "none":
        return [text("No repository here.", "dim")]
    fields = repository.as_dict().items()
    return [Fields({name.replace("_", " "): value for name, value in fields})]


def status(checkout: Status, _values: dict[str, Any]) -> list[Block]:
    """What is changed in a checkout."""
    place = line("on ", (checkout.branch or "no branch", "bold"), f" at {(checkout.commit or 'no commit')[:SHORT]}")
    if checkout.is_clean:
        return [Paragraph([place, ("clean", "good")])]
    rows = [(_kind(change.kind), _path(change.path, change.old_path)) for change in checkout.changes]
    return [Paragraph([place]), Table(("change", "path"), rows)]


def log(entries: list[LogEntry], _values: dict[str, Any]) -> list[Block]:
    """Commits, newest first."""
    rows = [(short(entry.commit), (entry.at, "dim"), one_line(entry.message.partition("\n")[0])) for entry in entries]
    return [Table(("commit", "at", "message"), rows, stretch=2, empty="No commits yet.")]


def diff(difference: Difference, _values: dict[str, Any]) -> list[Block]:
    """Files that differ from a base."""
    if difference.patch is not None:
        return [text(difference.patch.rstrip("\n"))]
    rows = [
        (
            _kind(file.kind),
            ("binary" if file.added is None else f"+{file.added}", "good"),
            ("" if file.deleted is None else f"-{file.deleted}", "bad"),
            _path(file.path, file.old_path),
        )
        for file in difference.files
    ]
    return [Table(("change", "added", "deleted", "path"), rows, empty="No difference.")]


def commit(new: Committed, _values: dict[str, Any]) -> list[Block]:
    """A new commit."""
    return [Paragraph([line((new.commit, "id"), f" on {new.branch or 'no branch'}")])]


def cleanup(branches: list[Branch], values: dict[str, Any]) -> Iterator[Block]:
    """What becomes of the branches of tasks."""
    rows = [((branch.verdict, _VERDICTS[branch.verdict]), branch.branch, (branch.reason, "dim")) for branch in branches]
    yield Table(("verdict", "branch", "why"), rows, empty="No branches of tasks.")
    if any(branch.verdict == "removable" for branch in branches) and not values.get("delete"):
        yield text("`rook vcs cleanup --delete` deletes the removable ones", "dim")


def _kind(kind: str) -> Span:
    return kind, _KINDS.get(kind, "busy")


def _path(path: str, old_path: str | None) -> str:
    return one_line(path) if old_path is None else f"{one_line(old_path)} → {one_line(path)}"
