"""Both sides of a conflict for a person: what each did to the files, by which commits and for which tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rookery.base.text import as_utf8, one_line, plural
from rookery.merge import store as merges
from rookery.merge.merger import Merger
from rookery.merge.model import RESOLVED, Entry, FileOutcome
from rookery.merge.person import renames
from rookery.merge.person.model import ConflictedPath, OpenConflict, Resolving, SideCommit, SideView, Tried
from rookery.merge.tiers.case import Case
from rookery.tasks import store as tasks
from rookery.vcs.git.merge_tree import REGULAR, RENAME_RENAME, Conflict, Side
from rookery.vcs.git.repository import LITERAL, LOG

_MOST_COMMITS = 5
_MOST_FILES = 200
_SYMLINK, _SUBMODULE = "120000", "160000"
BINARY, MODE, SYMLINK, SUBMODULE = "binary", "mode", "symlink", "submodule"
_KEEP_OR_NOT = "`git add FILE` keeps it, `git rm FILE` deletes it"
_TAKE_ONE = "`git checkout --ours -- FILE` takes the base's, `--theirs` the branch's; then `git add FILE`"
_HOW = {
    "content": "edit it: all between <<<<<<< and >>>>>>>; then `git add FILE`",
    "add/add": "both added it: edit it; then `git add FILE`",
    RENAME_RENAME: "both sides renamed one file: `git add` the name that stays, `git rm` each other",
    SUBMODULE: "`git update-index --cacheinfo 160000,COMMIT,FILE` takes a commit of it",
}


def explain(merger: Merger, entry: Entry, conflict: OpenConflict, case: Case) -> tuple[ConflictedPath, ...]:
    """What both sides did to each file that is in conflict. `case` is the merge as it was opened."""
    fork = merger.merging.fork_point(conflict.ours, conflict.theirs) or conflict.ours
    renamed = renames.find(merger, fork, conflict.ours, conflict.theirs)
    tried: dict[str, dict[str, FileOutcome]] = {}
    for outcome in (*merges.outcomes(merger.ctx.db, entry.id), *case.outcomes):
        tried.setdefault(as_utf8(outcome.path), {})[outcome.tier] = outcome
    explained = []
    for one in [one for one in case.conflicts if one.path in conflict.files][:_MOST_FILES]:
        kind, old = kind_of(merger, one), renamed.old_name(one.path)
        explained.append(
            ConflictedPath(
                as_utf8(one.path),
                kind,
                _side(merger, one, one.ours, fork, conflict.ours, old, renamed.ours.get(old, old)),
                _side(merger, one, one.theirs, fork, conflict.theirs, old, renamed.theirs.get(old, old)),
                _tried(tried.get(as_utf8(one.path), {}).values()),
                _HOW.get(kind, _TAKE_ONE if one.ours and one.theirs else _KEEP_OR_NOT),
            )
        )
    return tuple(explained)


def _tried(outcomes: Iterable[FileOutcome]) -> tuple[Tried, ...]:
    """What tiers made of a file; what one resolved was not used, because other files were left."""
    return tuple(Tried(past.tier, past.outcome, past.why) for past in outcomes if past.outcome != RESOLVED)


def kind_of(merger: Merger, conflict: Conflict) -> str:
    """What is in conflict, more exactly than git says it."""
    sides = [side for side in (conflict.base, conflict.ours, conflict.theirs) if side is not None]
    modes = {side.mode for side in sides}
    if _SUBMODULE in modes:
        return SUBMODULE
    if _SYMLINK in modes:
        return SYMLINK
    if conflict.kind not in ("content", "add/add"):
        return conflict.kind
    if any(b"\0" in content for content in merger.merging.read_blobs(side.oid for side in sides).values()):
        return BINARY
    is_same = conflict.ours and conflict.theirs and conflict.ours.oid == conflict.theirs.oid
    return MODE if is_same and len(modes) > 1 else conflict.kind


def _side(merger: Merger, one: Conflict, now: Side | None, fork: str, tip: str, old: str, new: str) -> SideView:
    """What a side did to a file. `old` and `new` are its names at the fork and at the side's tip."""
    files, before, path = merger.merging.files, one.base, one.path
    if old != path != new and path in files(tip, [path]):
        old = new = path  # another file, which this side put where the other one renamed its file to
    if old != path or new != path:
        before, now = files(fork, [old]).get(old), files(tip, [new]).get(new)
    added, deleted = _counts(merger, before, now)
    paths = dict.fromkeys((path, old, new))
    words = ("-z", "--no-patch", "--format=tformat:%H%x00%s", "--first-parent", "-m", tip, f"^{fork}", "--", *paths)
    fields = merger.merging.store.read_list(*LOG, *words, env=LITERAL)
    rows = list(zip(fields[::2], fields[1::2], strict=True))
    commits = tuple(_commit(merger, *row) for row in rows[:_MOST_COMMITS])
    did = "renamed" if old != new and now is not None else _did(before, now)
    more = max(0, len(rows) - _MOST_COMMITS)
    if old == path == new:
        return SideView(did, added, deleted, commits, more)
    return SideView(did, added, deleted, commits, more, as_utf8(old), None if now is None else as_utf8(new))


def _commit(merger: Merger, commit: str, subject: str) -> SideCommit:
    """A commit, with the landing and the task that it came with."""
    landings = merges.select(merger.ctx.db, candidate=commit, limit=1)
    task = tasks.existing(merger.ctx.db, landings[0].task_id) if landings else None
    title = one_line(task.title) if task else None
    branch, agent = (landings[0].branch, landings[0].agent) if landings else (None, None)
    return SideCommit(commit, one_line(subject, 200), branch, title, agent)


def _did(before: Side | None, now: Side | None) -> str:
    if before == now:
        return "nothing"
    if before is None:
        return "added"
    if now is None:
        return "deleted"
    return "changed" if before.oid != now.oid else "changed the mode of"


def _counts(merger: Merger, before: Side | None, now: Side | None) -> tuple[int | None, int | None]:
    """How many lines a side added and deleted; None if these cannot be counted."""
    oids = [side.oid for side in (before, now) if side is not None and side.mode in REGULAR]
    if len(oids) < 2:
        return None, None
    return (0, 0) if oids[0] == oids[1] else merger.merging.line_counts(*oids) or (None, None)


def as_text(resolving: Resolving) -> str:
    """The file in the worktree that explains the conflict."""
    entry, lines = resolving.entry, []
    lines += [f"# {one_line(entry.branch)} conflicts with {one_line(entry.base)}", ""]
    if entry.agent:
        lines += [f"The branch's agent: {one_line(entry.agent)}", ""]
    if resolving.purpose:
        lines += [f"What the branch is for: {one_line(resolving.purpose)}", ""]
    for file in resolving.files:
        lines += [f"## {one_line(file.path)} ({file.kind})", "", *describe(file, entry), f"- to settle it: {file.how}"]
        lines.append("")
    if resolving.settled:
        lines += ["Rules have settled: " + ", ".join(one_line(path) for path in resolving.settled), ""]
    lines += ["## How to go on", "", *how_to_finish(entry), ""]
    return "\n".join(lines)


def describe(file: ConflictedPath, entry: Entry) -> list[str]:
    """What both sides did to a file, and what was tried, line by line."""
    lines = []
    for name, side in ((entry.base, file.base), (entry.branch, file.branch)):
        counts = "" if side.added is None else f" (+{side.added} -{side.deleted} lines)"
        lines.append(f"- {one_line(name)} {what_it_did(file, side)}{counts}")
        for commit in side.commits:
            landed = f" ({landing_of(commit)})" if commit.branch else ""
            lines.append(f"  - {commit.commit[:12]} {commit.subject}{landed}")
        if side.more:
            lines.append(f"  - and {plural(side.more, 'more commit')}")
    lines += [f"- {past.tier} {past.outcome} it: {one_line(past.why)}" for past in file.tried if past.tier != "human"]
    return lines


def landing_of(commit: SideCommit) -> str:
    """Whose work a commit has landed, and for which task."""
    agent = f" of {commit.agent}" if commit.agent else ""
    task = f": {commit.task}" if commit.task else ""
    return f"landed {one_line(commit.branch or '')}{agent}{task}"


def what_it_did(file: ConflictedPath, side: SideView) -> str:
    """What a side did to a file, as the end of a sentence."""
    if side.did == "renamed" and side.new_path == file.path:
        return f"renamed it from {one_line(side.old_path or '')}"
    if side.did == "renamed":
        old = "it" if side.old_path == file.path else one_line(side.old_path or "")
        return f"renamed {old} to {one_line(side.new_path or '')}"
    did = "left it as it was" if side.did == "nothing" else f"{side.did} it"
    return f"{did}, as {one_line(side.old_path)}" if side.old_path not in (None, file.path) else did


def how_to_finish(entry: Entry) -> Sequence[str]:
    """The commands that end a resolution."""
    merge_id = entry.id
    return (
        f"- between the markers, ours is {one_line(entry.base)}, theirs is {one_line(entry.branch)}",
        "- `git diff` and `git status` show what is left; `git mergetool` works here",
        "- finish: `git commit`, then hand it back; the gates run, and it lands:",
        f"    rook merge resolve {merge_id} --done",
        "  (add --accept-loss where a line of one side is meant to go)",
        f"- give up: rook merge resolve {merge_id} --abort",
    )
