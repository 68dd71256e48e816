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
from rookery.vcs.git.repository import GitStore
from rookery.vcs.git.tree_diff import TreeChange, parse_changes, tree_changes

UNDO_TRAILER = "Undo-Of: "
"""In the message of a commit by which Rookery undoes a landing: it does all of that, and nothing else."""

_OLD_UNDO = "This takes back "  # so wrote earlier versions of Rookery
_REVERTS = re.compile(r"This (?:reverts commit|takes back) ([0-9a-f]{7,64})")
_PREFIX, _WHOLE = 7, 40
_MOST_PATHS = 200
_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
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
    if key in store.known:
        known: Apart = store.known[key]
        return known
    words = ("log", "-z", "--topo-order", "--left-right", "--no-show-signature", "--encoding=UTF-8")
    listed = store.read(*words, "--format=tformat:%m%H %P%x00%B", f"{base}...{tip}", "--").split("\0")
    beyond: dict[str, list[str]] = {}
    reverts = []
    is_contained = True
    for about, message in zip(listed[:-1:2], listed[1::2], strict=True):
        if about.startswith(">"):
            is_contained = False
            continue
        commit, *parents = about[1:].split()
        beyond[commit] = parents
        if _REVERTS.search(message):
            reverts.append((commit, message))
    store.known["contains", tip, base], store.known["contains", base, tip] = is_contained, not beyond
    found = store.known[key] = Apart(beyond, is_contained, tuple(reverts))
    return found


def has_landed(store: GitStore, tip: str, base: str, known: Evidence) -> bool:
    """True if the base has the work of a commit and has not lost it again. Both are commit ids."""
    is_there = store.contains(tip, base)
    if not is_there and not any(each.brings == tip for each in (*known.own, *known.hidden)):
        return False
    found = landings(store, tip, base, known)
    if not is_there and not any(each.brings == tip and each.reverted_by is None for each in found):
        return False
    return not undone(store, found)


def landings(store: GitStore, tip: str, base: str, known: Evidence) -> list[Landing]:
    """Every time that work of a commit came onto the base, as far as the history and the records tell."""
    found = {(each.commit, each.brings): each for each in _visible(store, tip, base, known.since)}
    apart = set(store.read("rev-list", tip, f"^{base}", "--").split()) if known.hidden else set()
    recorded = [each for each in known.own if store.contains(each.brings, tip)]
    recorded += [each for each in known.hidden if each.brings in apart]
    for each in recorded:
        if store.contains(each.commit, base):
            found = {key: other for key, other in found.items() if other.commit != each.commit}
            found[each.commit, each.brings] = each
    judged = [each.replace(reverted_by=_find_revert(store, each, base)) for each in found.values()]
    # A revert that the work has taken in is part of it.
    return [each for each in judged if each.reverted_by is None or not store.contains(each.reverted_by, tip)]


def undone(store: GitStore, found: Sequence[Landing]) -> list[Landing]:
    """The landings that were reverted and not made again since, the oldest first."""
    reverted = [each for each in found if each.reverted_by is not None]
    ours = [each for each in found if reverted and _is_ours(store, each.commit)]
    left = [each for each in reverted if not any(_makes_up_for(store, other, each) for other in ours)]
    return sorted(left, key=lambda each: sum(store.contains(other.commit, each.commit) for other in left))


def _makes_up_for(store: GitStore, later: Landing, reverted: Landing) -> bool:
    """True if a landing came after the revert of another, and with all that this one had brought."""
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
    named = dict.fromkeys(each for _, said in apart.reverts for each in reverted_commits(said))
    for commit, (before, *brought) in _merges(store, list(named)).items():
        if commit in on_chain:
            continue
        if commit not in beyond:
            # The work has taken its own landing in; without that, does it still lead to what landed?
            for each in _reach_without(store, tip, commit, before) & set(brought):
                yield Landing(commit, before, each)
        elif store.contains(tip, commit) and not store.contains(tip, before):
            # The base was moved to another branch since, so it did not itself go through what had landed.
            yield Landing(commit, before, tip, tip in brought)


def _reach_without(store: GitStore, tip: str, avoided: str, before: str) -> set[str]:
    """What a commit leads to, down to another one, by ways that do not go through a third."""
    parents = _parents(store, tip, before)
    found, left = {avoided}, [tip]
    while left:
        at = left.pop()
        if at in parents and at not in found:
            found.add(at)
            left += parents[at]
    return found - {avoided}


def _parents(store: GitStore, tip: str, without: str) -> dict[str, list[str]]:
    """The commits that one contains and another does not, with their parents."""
    lines = store.read("rev-list", "--parents", tip, f"^{without}", "--").splitlines()
    return {commit: parents for commit, *parents in (line.split() for line in lines)}


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

    messages = list(_messages(store, landing.commit, base))
    merges = _merges(store, [each for _, said in messages for each in reverted_commits(said)]) if messages[1:] else {}
    for commit, message in messages:
        if commit in gone or reverts_of(commit):
            continue
        for named in reverted_commits(message):
            in_force.setdefault(named[:_PREFIX], []).append((named, commit))
            if named in merges:  # what came with a merge goes with it
                gone.update(store.read("rev-list", named, f"^{merges[named][0]}", "--").split())
    if not in_force:
        return None
    # Who names the last of several rebased commits means that one alone, unless it is an undo of ours.
    parents = store.read("rev-parse", f"{landing.commit}^@").split()
    undos = {commit for commit, message in messages if UNDO_TRAILER in message or _OLD_UNDO in message}
    is_one_step = landing.before in ("", *parents)
    whole = [by for by in reverts_of(landing.commit) if is_one_step or by in undos]
    if whole or not landing.before:
        return next(iter(whole), None)
    own = store.read("rev-list", "--no-merges", landing.commit, f"^{landing.before}", "--").split()
    each_by = [next(iter(reverts_of(commit)), None) for commit in own]
    return each_by[0] if each_by and all(each_by) else None


def reverted_commits(message: str) -> list[str]:
    """The commits that a message says it reverts."""
    return _REVERTS.findall(message)


def _merges(store: GitStore, names: Sequence[str]) -> dict[str, list[str]]:
    """Those of some commits that are merges, with their parents."""
    whole = [name for name in names if len(name) >= _WHOLE]
    if not whole:
        return {}
    words = ("rev-list", "--no-walk", "--merges", "--parents", "--ignore-missing", "--stdin")
    lines = store.read(*words, stdin="".join(f"{name}\n" for name in whole)).splitlines()
    return {commit: parents for commit, *parents in (line.split() for line in lines)}


def _messages(store: GitStore, since: str, base: str) -> Iterator[tuple[str, str]]:
    """The commits after another that speak of a revert, the newest first."""
    out = store.read(
        *("log", "--topo-order", "--no-show-signature", "--encoding=UTF-8", "--format=%x01%H%x00%B", "-E"),
        *("--grep=This (reverts commit|takes back) [0-9a-f]{7}", base, f"^{since}", "--"),
    )
    for entry in out.split("\x01")[1:]:
        commit, _, message = entry.partition("\0")
        yield commit, message


def _inverse(store: GitStore, landing: Landing, base: str, changes: Sequence[TreeChange]) -> str | None:
    """The commit after the landing that is its inverse, unless a later one is the landing once more.

    It may change other files as well. Where the files were edited in between, their patches are compared.
    """
    out = store.read(*_LOG, "--raw", "-z", "--no-abbrev", base, f"^{landing.commit}", "--")
    wanted = {change.path: change for change in changes}
    to_compare = []
    for entry in out.split("\x01")[1:]:
        commit, _, listed = entry.partition("\0")
        made = {change.path: change for change in parse_changes(listed) if change.path in wanted}
        if len(made) < len(wanted):
            continue
        if all(made[path] == change.inverse for path, change in wanted.items()):
            return commit.strip()
        if made == wanted:
            return None
        to_compare.append(commit.strip())
    if not to_compare or len(wanted) > _MOST_PATHS:
        return None
    return _inverse_patch(store, landing, to_compare, list(wanted))


def _inverse_patch(store: GitStore, landing: Landing, commits: Sequence[str], paths: Sequence[str]) -> str | None:
    diff = ("-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index")
    forward, backward = (
        next(iter(_patch_ids(store, store.read_bytes("diff-tree", *diff, *pair, "--", *paths, env=_LITERAL))), b"")
        for pair in ((landing.before, landing.commit), (landing.commit, landing.before))
    )
    words = (*_LOG[:-1], "--format=commit %H", "--no-walk=unsorted", *diff)
    text = store.read_bytes(*words, "--stdin", "--", *paths, stdin="\n".join(commits).encode(), env=_LITERAL)
    for patch_id, commit in _patch_ids(store, text).items():
        if patch_id in (forward, backward):
            return commit.decode() if patch_id == backward else None
    return None


def _patch_ids(store: GitStore, patches: bytes) -> dict[bytes, bytes]:
    """The ids of patches, each with its commit, in their order; of several alike the first."""
    found: dict[bytes, bytes] = {}
    for line in store.read_bytes("patch-id", "--stable", stdin=patches).splitlines():
        patch_id, _, commit = line.partition(b" ")
        found.setdefault(patch_id, commit)
    return found
