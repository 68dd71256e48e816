"""Whether work has landed: the base contains it, and nothing later on the base reverts it.

Being an ancestor is not enough. A revert leaves the reverted commits in the history, so git takes their work for merged
and would never merge it again. A revert is known by git's words "This reverts commit …", or because a later commit is
the exact inverse of the landing. A revert that was itself reverted does not count, and later edits of the same lines
revert nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.vcs.git.repository import LITERAL, GitStore
from rookery.vcs.git.tree_diff import TreeChange, parse_changes, tree_changes

UNDO_TRAILER = "Undo-Of: "
"""In the message of a commit by which Rookery undoes a landing: it does all of that, and nothing else."""

_REVERTS = re.compile("This reverts commit ([0-9a-f]{7,64})")
_PREFIX, _WHOLE = 7, 40
_MOST_PATHS = 200
_LOG = (
    *("log", "--first-parent", "--diff-merges=first-parent", "--no-renames", "--no-show-signature", "--no-color"),
    "--format=%x01%H",
)


@dataclass(frozen=True, slots=True)
class Landing(Record):
    """One time that work came onto a base."""

    commit: str
    """The commit by which the base got it."""
    before: str
    """What the base was until then; empty if that is not known."""
    brings: str
    """The commit that came with it: the tip of a branch, or something on the way to it."""
    is_whole: bool = True
    """False if work came with it that does not belong to the branch in question."""
    reverted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence(Record):
    """What is known of a branch beside git's history."""

    since: str | None = None
    """Where its work began."""
    own: tuple[Landing, ...] = ()
    """Its landings that are on record."""
    hidden: tuple[Landing, ...] = ()
    """Landings of others that the history does not show, because they were squashed or rebased."""


@dataclass(frozen=True, slots=True)
class Apart(Record):
    """How a commit and a base have come apart."""

    beyond: dict[str, list[str]]
    """What the base has and the commit has not, with the parents of each."""
    is_contained: bool
    """The commit has nothing that the base has not."""
    reverts: tuple[tuple[str, str], ...]
    """The commits of the base alone that speak of a revert, the newest first, with their messages."""


def compare(store: GitStore, tip: str, base: str) -> Apart:
    """How two commits have come apart, by one git."""
    key = ("apart", tip, base)
    if key not in store.known:
        rows = store.read_log(("%m", "%H", "%P", "%B"), "--topo-order", "--left-right", f"{base}...{tip}", "--")
        ahead = [(commit, parents.split(), message) for side, commit, parents, message in rows if side == "<"]
        _keep_apart(store, tip, base, ahead, is_contained=len(ahead) == len(rows))
    apart: Apart = store.known[key]
    return apart


def compare_many(store: GitStore, tips: Iterable[str], base: str) -> None:
    """Find out how a base and many commits have come apart, by two gits; `compare` then knows it."""
    wanted = [tip for tip in dict.fromkeys(tips) if ("apart", tip, base) not in store.known]
    if len(wanted) < 2:
        return
    shared = store.ask("merge-base", "--octopus", base, *wanted) or ""
    fields, excluded = ("%H", "%P", "%B"), [f"^{commit}" for commit in shared.split()]
    listed = store.read_log(fields, "--topo-order", base, *wanted, *excluded, "--")
    rows = [(commit, parents.split(), message) for commit, parents, message in listed]
    # One bit for each commit in question says that it leads to a row; git lists children before their parents.
    leads = dict.fromkeys((commit for commit, _, _ in rows), 0)
    for number, tip in enumerate((base, *wanted)):
        if tip in leads:
            leads[tip] |= 1 << number
    for commit, parents, _ in rows:
        for parent in parents:
            if parent in leads:
                leads[parent] |= leads[commit]
    on_base = [row for row in rows if leads[row[0]] & 1]
    beside = 0
    for commit, _, _ in rows:
        beside |= 0 if leads[commit] & 1 else leads[commit]
    for number, tip in enumerate(wanted, 1):
        ahead = [row for row in on_base if not leads[row[0]] >> number & 1]
        _keep_apart(store, tip, base, ahead, is_contained=not beside >> number & 1)


def _keep_apart(
    store: GitStore, tip: str, base: str, ahead: Sequence[tuple[str, list[str], str]], *, is_contained: bool
) -> None:
    """Remember what the base has beyond a commit."""
    beyond = {commit: parents for commit, parents, _ in ahead}
    reverts = tuple((commit, message) for commit, _, message in ahead if _REVERTS.search(message))
    store.known["contains", tip, base], store.known["contains", base, tip] = is_contained, not beyond
    store.known["apart", tip, base] = Apart(beyond, is_contained, reverts)


def has_landed(store: GitStore, tip: str, base: str, evidence: Evidence) -> bool:
    """True if the base has the work of a commit and has not lost it again. Both are commit ids."""
    is_there = store.contains(tip, base)
    if not is_there and not any(landing.brings == tip for landing in (*evidence.own, *evidence.hidden)):
        return False
    all_landings = landings(store, tip, base, evidence)
    if not is_there and not any(landing.brings == tip and not landing.reverted_by for landing in all_landings):
        return False
    return not undone(store, all_landings)


def landings(store: GitStore, tip: str, base: str, evidence: Evidence) -> list[Landing]:
    """Every time that work of a commit came onto the base, as far as the history and the records tell."""
    by_commit = {(landing.commit, landing.brings): landing for landing in _visible(store, tip, base, evidence.since)}
    apart = set(store.read("rev-list", tip, f"^{base}", "--").split()) if evidence.hidden else set()
    recorded = [landing for landing in evidence.own if store.contains(landing.brings, tip)]
    recorded += [landing for landing in evidence.hidden if landing.brings in apart]
    for landing in recorded:
        if store.contains(landing.commit, base):
            by_commit = {key: other for key, other in by_commit.items() if other.commit != landing.commit}
            by_commit[landing.commit, landing.brings] = landing
    judged = [landing.replace(reverted_by=_find_revert(store, landing, base)) for landing in by_commit.values()]
    # A revert that the work itself contains is part of the work.
    return [landing for landing in judged if not landing.reverted_by or not store.contains(landing.reverted_by, tip)]


def undone(store: GitStore, all_landings: Sequence[Landing]) -> list[Landing]:
    """The landings that were reverted and not made again since, the oldest first."""
    reverted = [landing for landing in all_landings if landing.reverted_by is not None]
    ours = [landing for landing in all_landings if reverted and _is_ours(store, landing.commit)]
    left = [landing for landing in reverted if not any(_makes_up_for(store, later, landing) for later in ours)]
    return sorted(left, key=lambda landing: sum(store.contains(other.commit, landing.commit) for other in left))


def _makes_up_for(store: GitStore, later: Landing, reverted: Landing) -> bool:
    """True if a landing came after the revert of another, and brought all that the other had brought."""
    return store.contains(reverted.brings, later.brings) and store.contains(str(reverted.reverted_by), later.commit)


def _is_ours(store: GitStore, commit: str) -> bool:
    """True if Rookery made a landing: then all of the work came with it, also what had been reverted before.

    Git by itself brings nothing of that back.
    """
    return "\nMerge-Id: " in store.read("log", "-1", "--no-show-signature", "--format=%B", commit)


def _visible(store: GitStore, tip: str, base: str, since: str | None) -> Iterator[Landing]:
    """The landings that the history shows: merges, and commits that the base itself went through."""
    apart = compare(store, tip, base)
    beyond = apart.beyond
    chain, bottom = _first_parents(base, beyond)
    if bottom == tip:
        yield Landing(tip, since or "", tip)
    own = _own_commits(store, beyond, bottom)
    seen: set[str] = set()
    for commit in chain:
        if not beyond[commit]:
            continue  # the first commit of all
        before, *brought = beyond[commit]
        is_whole = not any(parent in beyond for parent in brought)
        for brings in sorted(_reach(brought, beyond, seen) & own):
            yield Landing(commit, before, brings, is_whole)
        seen.add(commit)
    on_chain = set(chain)
    named = dict.fromkeys(commit for _, message in apart.reverts for commit in reverted_commits(message))
    for commit, (before, *brought) in _merges(store, list(named)).items():
        if commit in on_chain:
            continue
        if commit not in beyond:
            # The work contains its own landing; does it lead to what landed by another way, too?
            for brings in _reach_without(store, tip, commit, before) & set(brought):
                yield Landing(commit, before, brings)
        elif store.contains(tip, commit) and not store.contains(tip, before):
            # The base was moved to another branch since, so it did not itself go through what had landed.
            yield Landing(commit, before, tip, tip in brought)


def _reach_without(store: GitStore, tip: str, avoided: str, before: str) -> set[str]:
    """What a commit leads to, down to the commit `before`, by ways that do not go through the avoided one."""
    parents = store.read_parents(tip, f"^{before}", "--")
    seen = {avoided}
    _reach([tip], parents, seen)
    return seen - {avoided}


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
    key = ("beside", bottom or "", *sorted(border))
    if key not in store.known:  # the same for all branches that began at the same place
        excluded = "" if bottom is None else f"^{bottom}\n"
        listed = store.read("rev-list", "--stdin", stdin="".join(f"{commit}\n" for commit in border) + excluded)
        store.known[key] = border & set(listed.split())
    own: set[str] = store.known[key]
    return own


def _reach(commits: Iterable[str], beyond: Mapping[str, Sequence[str]], seen: set[str]) -> set[str]:
    """The commits just outside of `beyond` that these lead to; all on the way there are added to `seen`.

    What is in `seen` is not followed again.
    """
    outside, left = set(), list(commits)
    while left:
        at = left.pop()
        if at not in beyond:
            outside.add(at)
        elif at not in seen:
            seen.add(at)
            left += beyond[at]
    return outside


def _find_revert(store: GitStore, landing: Landing, base: str) -> str | None:
    """The commit that reverts a landing on the base, if one does."""
    if not landing.before:  # a branch may simply be where the base once was: only words count
        return _named_revert(store, landing, base)
    changes = tree_changes(store, landing.before, landing.commit)
    differ = {change.path for change in tree_changes(store, landing.commit, base)}
    if not any(change.path in differ for change in changes):
        return None  # it is there as it landed
    return _named_revert(store, landing, base) or _inverse(store, landing, base, changes)


def _named_revert(store: GitStore, landing: Landing, base: str) -> str | None:
    """The commit that names the landing, or the last of those that name all of its commits one by one."""
    in_force: dict[str, list[tuple[str, str]]] = {}
    gone: set[str] = set()

    def reverts_of(commit: str) -> list[str]:
        """The oldest first: what was reverted twice was gone the first time."""
        return [by for named, by in reversed(in_force.get(commit[:_PREFIX], [])) if commit.startswith(named)]

    words = ("--topo-order", "-E", "--grep=This reverts commit [0-9a-f]{7}")
    messages = store.read_log(("%H", "%B"), *words, base, f"^{landing.commit}", "--")
    named_commits = [name for _, message in messages for name in reverted_commits(message)]
    merges = _merges(store, named_commits) if messages[1:] else {}
    for commit, message in messages:
        if commit in gone or reverts_of(commit):
            continue
        for named in reverted_commits(message):
            in_force.setdefault(named[:_PREFIX], []).append((named, commit))
            if named in merges:  # what came with a merge goes with it
                gone.update(store.read("rev-list", named, f"^{merges[named][0]}", "--").split())
    if not in_force:
        return None
    # A revert that names the last of several rebased commits means that one alone, unless it is an undo of ours.
    parents = store.read("rev-parse", f"{landing.commit}^@").split()
    undos = {commit for commit, message in messages if UNDO_TRAILER in message}
    is_one_step = landing.before in ("", *parents)
    whole = [by for by in reverts_of(landing.commit) if is_one_step or by in undos]
    if whole or not landing.before:
        return next(iter(whole), None)
    own = store.read("rev-list", "--no-merges", landing.commit, f"^{landing.before}", "--").split()
    reverts = [next(iter(reverts_of(commit)), None) for commit in own]
    return reverts[0] if reverts and all(reverts) else None


def reverted_commits(message: str) -> list[str]:
    """The commits that a message says it reverts."""
    return _REVERTS.findall(message)


def commits_named_by_reverts(store: GitStore, base: str) -> set[str]:
    """The commits that some commit of a base says it reverts; those with their whole id."""
    messages = store.read_log(("%B",), "-E", f"--grep={_REVERTS.pattern}", base, "--")
    return {name for (message,) in messages for name in reverted_commits(message) if len(name) >= _WHOLE}


def brought_by_merges(store: GitStore, commits: Sequence[str]) -> set[str]:
    """The commits that came with those of some commits that are merges."""
    brought: set[str] = set()
    for merge, (before, *_) in _merges(store, commits).items():
        brought.update(store.read("rev-list", merge, f"^{before}", "--").split())
    return brought


def patch_ids(store: GitStore, commits: Sequence[str]) -> dict[str, str]:
    """What each commit changes, as an id that does not depend on where it lies; merges and empty commits have none."""
    if not commits:
        return {}
    diff = ("-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index")
    words = ("log", "--no-show-signature", "--no-color", "--format=commit %H", "--no-walk=unsorted", *diff, "--stdin")
    text = store.read_bytes(*words, stdin="\n".join(dict.fromkeys(commits)).encode())
    return {commit.decode(): patch_id.decode() for patch_id, commit in _patch_ids(store, text)}


def _merges(store: GitStore, names: Sequence[str]) -> dict[str, list[str]]:
    """Those of some commits that are merges, with their parents."""
    whole = "".join(f"{name}\n" for name in names if len(name) >= _WHOLE)
    return store.read_parents("--no-walk", "--merges", "--ignore-missing", "--stdin", stdin=whole) if whole else {}


def _inverse(store: GitStore, landing: Landing, base: str, changes: Sequence[TreeChange]) -> str | None:
    """The commit after the landing that is its inverse, unless a later one is the landing once more.

    It may change other files as well. Where the files were edited in between, their patches are compared.
    """
    out = store.read(*_LOG, "--raw", "-z", "--no-abbrev", base, f"^{landing.commit}", "--")
    wanted = {change.path: change for change in changes}
    to_compare = []
    for entry in out.split("\x01")[1:]:
        commit, _, listed = entry.partition("\0")
        changed = {change.path: change for change in parse_changes(listed) if change.path in wanted}
        if len(changed) < len(wanted):
            continue
        if all(changed[path] == change.inverse for path, change in wanted.items()):
            return commit.strip()
        if changed == wanted:
            return None
        to_compare.append(commit.strip())
    if not to_compare or len(wanted) > _MOST_PATHS:
        return None
    return _inverse_patch(store, landing, to_compare, list(wanted))


def _inverse_patch(store: GitStore, landing: Landing, commits: Sequence[str], paths: Sequence[str]) -> str | None:
    diff = ("-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index")

    def patch_id_of(old: str, new: str) -> bytes:
        patch = store.read_bytes("diff-tree", *diff, old, new, "--", *paths, env=LITERAL)
        return next((patch_id for patch_id, _ in _patch_ids(store, patch)), b"")

    forward, backward = patch_id_of(landing.before, landing.commit), patch_id_of(landing.commit, landing.before)
    words = (*_LOG[:-1], "--format=commit %H", "--no-walk=unsorted", *diff)
    text = store.read_bytes(*words, "--stdin", "--", *paths, stdin="\n".join(commits).encode(), env=LITERAL)
    for patch_id, commit in _patch_ids(store, text):
        if patch_id in (forward, backward):
            return commit.decode() if patch_id == backward else None
    return None


def _patch_ids(store: GitStore, patches: bytes) -> list[tuple[bytes, bytes]]:
    """The ids of patches, each with its commit, in their order."""
    lines = store.read_bytes("patch-id", "--stable", stdin=patches).splitlines()
    return [(patch_id, commit) for patch_id, _, commit in (line.partition(b" ") for line in lines)]
