"""Whether work has landed: the base contains it, and nothing later on the base reverts it.

Being an ancestor is not enough. A revert leaves the reverted commits in the history, so git takes their work for merged
and would never merge it again. A revert is known by git's words "This reverts commit …", or because a later commit is
the exact inverse of the landing. A revert that was itself reverted does not count, and later edits of the same lines
revert nothing.
"""

from __future__ import annotations

import re

from rookery.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rookery.vcs.git_store import GitStore

# "takes back" stood in the reverts that earlier versions of Rookery made.
_REVERTS = re.compile(r"This (?:reverts commit|takes back) ([0-9a-f]{7,64})")
_PREFIX = 7
_MOST_PATHS = 200
_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}


class Landing(Record):
    """One time that work came onto a base."""

    commit: str
    """The commit by which the base got it."""
    before: str
    """What the base was until then."""
    brings: str
    """The commit that came with it: the tip of a branch, or something on the way to it."""
    reverted_by: str | None = None


def has_landed(
    store: GitStore, tip: str, base: str, *, since: str | None = None, records: Sequence[Landing] = ()
) -> bool:
    """True if the base has the work of a commit and has not lost it again. Both are commit ids.

    `since` is where the work began, which matters for commits that were put onto the base one by one. `records` are
    landings on that base that the history does not show: squashed or rebased work, of whatever branch.
    """
    if not store.contains(tip, base) and not any(each.brings == tip for each in records):
        return False
    found = landings(store, tip, base, since=since, records=records)
    return bool(found) and not undone(store, found)


def landings(
    store: GitStore, tip: str, base: str, *, since: str | None = None, records: Sequence[Landing] = ()
) -> list[Landing]:
    """Every time that work of `tip` came onto the base without `tip` knowing of it, the oldest first."""
    lines = store.read("rev-list", "--parents", base, f"^{tip}", "--").splitlines()
    beyond = {commit: parents for commit, *parents in (line.split() for line in lines)}
    chain, bottom = _first_parents(base, beyond)
    own = _own_commits(store, beyond, bottom)
    apart = set(store.read("rev-list", tip, f"^{base}", "--").split()) | {tip} if records else set()
    recorded = {each.commit: each for each in records if each.brings in apart}
    found = []
    if bottom == tip:  # the base went through the commit itself
        found.append(Landing(tip, since or tip, tip))
    seen: set[str] = set()
    for commit in chain:
        if not beyond[commit]:
            continue  # the first commit of all
        before, *brought = beyond[commit]
        brings = _reach(brought, beyond, seen) & own
        seen.add(commit)
        if commit in recorded:
            found.append(recorded[commit])
        elif brings:
            found.append(Landing(commit, before, tip if tip in brings else min(brings)))
    return [each.replace(reverted_by=_find_revert(store, each, base)) for each in found]


def undone(store: GitStore, found: Sequence[Landing]) -> list[Landing]:
    """The landings that were reverted and not made again since, the oldest first."""
    left: list[Landing] = []
    for each in found:
        if each.reverted_by is not None:
            left.append(each)
        elif left and _is_ours(store, each.commit):
            left = [earlier for earlier in left if not store.contains(str(earlier.reverted_by), each.commit)]
    return left


def _is_ours(store: GitStore, commit: str) -> bool:
    """True if Rookery made a landing: then all of the work came with it, also what had been reverted before.

    Git by itself brings nothing of that back.
    """
    return "\nMerge-Id: " in store.read("log", "-1", "--no-show-signature", "--format=%B", commit)


def _first_parents(base: str, beyond: Mapping[str, Sequence[str]]) -> tuple[list[str], str | None]:
    """The commits that the base went through, the oldest first, down to the first that `beyond` does not have."""
    chain: list[str] = []
    at: str | None = base
    while at is not None and at in beyond:
        chain.append(at)
        at = next(iter(beyond[at]), None)
    return chain[::-1], at


def _own_commits(store: GitStore, beyond: Mapping[str, Sequence[str]], bottom: str | None) -> set[str]:
    """The commits next to `beyond` that are not simply where the base was when the work began."""
    border = {parent for parents in beyond.values() for parent in parents if parent not in beyond} - {bottom}
    if not border:
        return set()
    excluded = "" if bottom is None else f"^{bottom}\n"
    listed = store.read("rev-list", "--stdin", stdin="".join(f"{each}\n" for each in border) + excluded)
    return border & set(listed.split())


def _reach(commits: Iterable[str], beyond: Mapping[str, Sequence[str]], seen: set[str]) -> set[str]:
    """What lies just outside of `beyond` behind some commits; what is in `seen` is not looked behind again."""
    found, left = set(), list(commits)
    while left:
        at = left.pop()
        if at not in beyond:
            found.add(at)
        elif at not in seen:
            seen.add(at)
            left += beyond[at]
    return found


def _find_revert(store: GitStore, landing: Landing, base: str) -> str | None:
    """The commit that reverts a landing on the base, if one does."""
    paths = _changed(store, landing.before, landing.commit)
    if not paths or not _changed(store, landing.commit, base, paths):
        return None  # it stands there as it landed
    return _named_revert(store, landing, base) or _inverse(store, landing, base, paths)


def _named_revert(store: GitStore, landing: Landing, base: str) -> str | None:
    """The commit that names the landing, or the last of those that name all of its commits one by one."""
    in_force: dict[str, list[tuple[str, str]]] = {}

    def revert_of(commit: str) -> str | None:
        return next((by for named, by in in_force.get(commit[:_PREFIX], ()) if commit.startswith(named)), None)

    for commit, message in _messages(store, landing.commit, base):
        if revert_of(commit) is None:
            for named in _REVERTS.findall(message):
                in_force.setdefault(named[:_PREFIX], []).append((named, commit))
    whole = revert_of(landing.commit)
    if whole is not None or not in_force:
        return whole
    own = store.read("rev-list", "--no-merges", landing.commit, f"^{landing.before}").split()
    each_by = [revert_of(commit) for commit in own]
    return each_by[0] if each_by and all(each_by) else None


def _messages(store: GitStore, since: str, base: str) -> Iterator[tuple[str, str]]:
    """The commits after another that speak of a revert, the newest first."""
    out = store.read(
        *("log", "--topo-order", "--no-show-signature", "--encoding=UTF-8", "--format=%x01%H%x00%B", "-E"),
        *("--grep=This (reverts commit|takes back) [0-9a-f]{7}", base, f"^{since}", "--"),
    )
    for entry in out.split("\x01")[1:]:
        commit, _, message = entry.partition("\0")
        yield commit, message


def _inverse(store: GitStore, landing: Landing, base: str, paths: Sequence[str]) -> str | None:
    """The commit after the landing whose patch is its inverse, unless a later one is the landing's own patch."""
    if len(paths) > _MOST_PATHS:
        return None
    words = ("--first-parent", "--no-renames", "--diff-merges=first-parent", "--no-show-signature", "--format=%x01%H")
    listed = store.read("log", *words, "-z", "--name-only", base, f"^{landing.commit}", "--", *paths, env=_LITERAL)
    touched = [entry.partition("\0") for entry in listed.split("\x01")[1:]]
    wanted = set(paths)
    commits = [head.strip() for head, _, names in touched if wanted <= {name.strip("\n") for name in names.split("\0")}]
    if not commits:
        return None
    diff = ("-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index")
    forward, backward = (
        _patch_id(store, store.read_bytes("diff-tree", *diff, *pair, "--", *paths, env=_LITERAL))
        for pair in ((landing.before, landing.commit), (landing.commit, landing.before))
    )
    for commit in commits:
        own = _patch_id(store, store.read_bytes("diff-tree", *diff, f"{commit}^1", commit, "--", *paths, env=_LITERAL))
        if own in (forward, backward):
            return commit if own == backward else None
    return None


def _patch_id(store: GitStore, patch: bytes) -> bytes:
    return store.read_bytes("patch-id", "--stable", stdin=patch).partition(b" ")[0]


def _changed(store: GitStore, old: str, new: str, paths: Sequence[str] = ()) -> list[str]:
    """The paths in which two commits differ, of those that are named if any are."""
    listed = store.read("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
    wanted = frozenset(paths)
    return [path for path in listed.split("\0") if path and (not wanted or path in wanted)]
