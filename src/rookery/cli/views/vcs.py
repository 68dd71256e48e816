"""How the results of `rook vcs`, `rook radar` and `rook sync` are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Any

from rookery.base.ids import with_handles
from rookery.base.text import one_line, plural
from rookery.cli.document import SHORT, Block, Cell, Fields, Paragraph, Span, Table, line, moment, short, some, text
from rookery.cli.views.merges import pushed
from rookery.merge.model import PUSHED
from rookery.merge.radar.service import CONFLICT, Scan
from rookery.ops.vcs import Committed, Detected, Difference
from rookery.remote.model import MERGED, CommitLine, Synced
from rookery.tasks.cleanup_ops import Branch
from rookery.vcs.git.merge_tree import UNRELATED
from rookery.vcs.git.remote import AHEAD, BEHIND, DIVERGED, EQUAL, GONE, UNPUBLISHED, Upstream
from rookery.vcs.model import LogEntry, Status

_KINDS = {"added": "good", "untracked": "good", "deleted": "bad", "conflicted": "bad"}
_SHOWN_COMMITS = 10
_SHOWN_FILES = 5
_SHOWN_OVERLAPS = 3
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
    rows = [
        (short(entry.commit), (moment(entry.at), "dim"), one_line(entry.message.partition("\n")[0]))
        for entry in entries
    ]
    return [Table(("commit", "when", "message"), rows, empty="No commits yet.")]


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
    rows = [
        ((branch.verdict, _VERDICTS[branch.verdict]), branch.branch, (with_handles(branch.reason), "dim"))
        for branch in branches
    ]
    yield Table(("verdict", "branch", "reason"), rows, empty="No branches of tasks.")
    if any(branch.verdict == "removable" for branch in branches) and not values.get("delete"):
        yield text("`rook vcs cleanup --delete` deletes the removable ones.", "dim")


def radar(scan: Scan, _values: dict[str, Any]) -> list[Block]:
    """Which branches overlap."""
    rows = [
        (
            (overlap.kind, "bad" if overlap.kind == CONFLICT else "busy"),
            (overlap.agents[0] or overlap.one, "bold"),
            (overlap.agents[1] or overlap.other, "bold"),
            some(overlap.conflicts or overlap.files, _SHOWN_OVERLAPS),
        )
        for overlap in scan.overlaps
    ]
    none = f"No overlaps among {plural(len(scan.branches), 'branch', 'branches')} that have not landed."
    return [Table(("kind", "branch", "overlaps with", "files"), rows, empty=none)]


def _kind(kind: str) -> Span:
    return kind, _KINDS.get(kind, "busy")


def _path(path: str, old_path: str | None) -> str:
    return one_line(path) if old_path is None else f"{one_line(old_path)} → {one_line(path)}"


def synced(result: Synced, values: dict[str, Any]) -> Iterator[Block]:
    """How the base and its upstream had come apart, and what was done."""
    base, name = result.base, result.upstream
    if result.is_rewritten:
        lost = f", and {base} still has some of these" if result.has_dropped else ""
        yield text(f"{name} was rewritten: commits that it had are gone{lost}.", "bad")
    yield from _state(result)
    if result.held:
        yield text(f"{base} was not moved: {result.held}", "bad")
        files = some(result.files, _SHOWN_FILES)
        if files and files not in result.held:
            yield text(files, indent=2)
    if result.push is not None:
        yield pushed(result.push)
    if result.is_dry_run:
        yield text("Nothing was changed.", "dim")
    else:
        again = f"rook sync --into {quote(result.base)}" if values.get("into") else "rook sync"
        yield from _next_step(result, again)


def _state(result: Synced) -> Iterator[Block]:
    base, name = result.base, result.upstream
    if result.state == EQUAL:
        yield text(f"{base} and {name} are equal.", "good")
    elif result.state == UNPUBLISHED:
        yield text(f"{name} did not exist yet." if _is_pushed(result) else f"{name} does not exist yet.")
    elif result.state == GONE:
        yield text(f"{name} no longer exists.", "bad")
    elif result.state == BEHIND:
        has_moved = result.moved is not None
        yield text(f"{base} {'was' if has_moved else 'is'} {_count(result.behind)} behind {name}:")
        yield _listed(result.theirs, result.behind)
        if has_moved:
            yield Paragraph([line((f"{base} is now at ", "good"), short(result.commit))])
    elif result.state == AHEAD:
        yield text(f"{base} {'was' if _is_pushed(result) else 'is'} {_count(result.ahead)} ahead of {name}:")
        yield _listed(result.ours, result.ahead)
    else:
        yield from _diverged(result)


def _diverged(result: Synced) -> Iterator[Block]:
    base, name = result.base, result.upstream
    yield text(f"{base} and {name} {'had' if result.moved else 'have'} diverged.", "" if result.moved else "bad")
    yield text(f"{_count(result.ahead)} only on {base}:")
    yield _listed(result.ours, result.ahead)
    yield text(f"{_count(result.behind)} only on {name}:")
    yield _listed(result.theirs, result.behind)
    if result.moved == MERGED:
        yield Paragraph([line((f"{name} was merged: {base} is now at ", "good"), short(result.commit))])
    elif result.conflicts:
        yield text("They conflict, so nothing was merged:", "bad")
        rows = [line(one_line(file["path"]) or "all of it", (f" ({file['kind']})", "dim")) for file in result.conflicts]
        yield Paragraph([*rows[:_SHOWN_COMMITS], *_more(len(rows))], indent=2)
    elif not result.held:
        yield text("They merge without a conflict.")


def _next_step(result: Synced, again: str) -> Iterator[Block]:
    base = result.base
    if result.files:
        yield text(f"Resolve that, then run `{again}` again.", "dim")
    elif result.state == DIVERGED and not result.moved and not result.held:
        if result.conflicts:
            # By its id: git may keep no branch of that name here.
            option = "--allow-unrelated-histories " * (result.conflicts[0]["kind"] == UNRELATED)
            merge = f"git merge {option}{(result.upstream_commit or '')[:SHORT]}"
            yield text(f"Merge it by hand on {base} (`{merge}`), then run `{again}` again.", "dim")
        else:
            yield text(f"`{again} --merge` merges them, through the gates.", "dim")
    elif result.has_dropped:
        push = Upstream(*result.upstream.split("/", 1)).push_by_hand(base)
        yield text(f"Keep them with `{push}`, or drop them here too.", "dim")
    elif (result.state in (AHEAD, UNPUBLISHED) or result.moved == MERGED) and result.push is None:
        yield text(f"`{again} --push` pushes it.", "dim")


def _listed(commits: Sequence[CommitLine], count: int) -> Paragraph:
    rows: list[Cell] = []
    for commit in commits[:_SHOWN_COMMITS]:
        about = one_line(commit.title or commit.subject)
        origin = f"  {commit.branch}" if commit.branch else f"  {one_line(commit.author)}"
        dropped = ("  no longer upstream", "bad") if commit.is_dropped else ""
        rows.append(line(short(commit.commit), f" {about}", (origin, "dim"), dropped))
    return Paragraph([*rows, *_more(len(commits), count)], indent=2)


def _more(listed: int, count: int | None = None) -> list[Cell]:
    """How many are not shown. A merge brings commits that are not listed by themselves."""
    rest = listed - _SHOWN_COMMITS
    if rest > 0:
        return [(f"and {rest} more", "dim")]
    within = (count or 0) - listed
    return [(f"with {_count(within)} merged by these", "dim")] if within > 0 else []


def _count(commits: int) -> str:
    return plural(commits, "commit")


def _is_pushed(result: Synced) -> bool:
    return result.push is not None and result.push.state == PUSHED
