"""Merging in the object database: no checkout, index or branch is touched until `move` moves one.

Git does it with `merge-tree --write-tree`, which needs git 2.39. A merge from a base of our own choice is expressed
with commits made for it, because `--merge-base` came later.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple

from rookery.base.errors import ProgramFailed, Refused
from rookery.vcs.git import forward as git_forward
from rookery.vcs.git import landed as git_landed
from rookery.vcs.git.forward import Forward
from rookery.vcs.git.in_progress import check_free
from rookery.vcs.git.merge_tree import MERGE_TREE, UNRELATED, Conflict, Merged, Side, parse_merges
from rookery.vcs.git.moves import Moving
from rookery.vcs.git.repository import DIFF, LITERAL, LOG, GitStore
from rookery.vcs.git.tree_diff import DIFF_TREE, TreeChange, parse_change, parse_changes, tree_changes
from rookery.vcs.ref_names import HEADS, PUSHINGS, SAVED, UPSTREAMS
from rookery.vcs.temporary import temporary_folder

# With these, the same tree and parents always give the same commit, so that such commits do not pile up.
_FIXED_AUTHOR = {
    **{f"GIT_{who}_{what}": "rookery" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    **{f"GIT_{who}_DATE": "2000-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}

_SHA1 = 40
"""How long the ids of a repository with SHA-1 are; those with SHA-256 are longer."""


class CannotMerge(Refused):
    """This git cannot merge without a checkout."""

    code = "cannot_merge"
    default_hint = "git 2.39 or newer is needed; `git --version` says what is here"


class CommitMessage(NamedTuple):
    """What a commit says."""

    commit: str
    subject: str
    text: str


class Merging(Moving):
    """What merging needs of a repository's objects and refs."""

    def __init__(self, store: GitStore, checkouts: Callable[[], dict[str, str]]) -> None:
        super().__init__(store)
        self._checkouts = checkouts

    def check_can(self) -> None:
        """Raise CannotMerge if git is too old."""
        if "--stdin" not in self.store.run("merge-tree", "-h").stdout:
            raise CannotMerge("this git cannot merge without a checkout")

    @contextmanager
    def on_trial(self) -> Iterator[Trial]:
        """The same, with every new object kept apart and thrown away: nothing in the repository changes."""
        with temporary_folder(self.store.folder, "objects") as folder:
            yield Trial(self.store.writing_to(folder), self._checkouts, folder)

    def merge(self, ours: str, theirs: str) -> Merged:
        """Two commits merged from where they parted."""
        return self.merge_many([(ours, theirs)])[0]

    def merge_many(self, pairs: Sequence[tuple[str, str]]) -> list[Merged]:
        """Many merges by one git; unrelated histories are a conflict of their own kind."""
        if not pairs:
            return []
        if len(pairs) == 1 and ("merged", *pairs[0]) in self.store.known:
            return [self.store.known["merged", *pairs[0]]]
        text = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs)
        try:
            return parse_merges(self.store.read(*MERGE_TREE, stdin=text))
        except ProgramFailed as error:
            if "unrelated histories" not in error.message:
                self.check_can()
                raise
        if len(pairs) == 1:
            return [Merged("", (Conflict("", UNRELATED),))]
        return [self.merge(*pair) for pair in pairs]

    def foresee(self, ours: str, theirs: str) -> None:
        """Merge two commits while git says how they have come apart: a landing asks for both."""
        with self.store.beside(*MERGE_TREE, stdin=f"{ours} {theirs}\n") as merged:
            git_landed.compare(self.store, theirs, ours)
            answer = merged()
        if answer is not None:
            self.store.known["merged", ours, theirs] = parse_merges(answer)[0]

    def merge_trees(self, base: str, ours: str, theirs: str) -> Merged:
        """Three trees (or commits) merged, the first as the base of the other two."""
        root = self.pose(base)
        return self.merge(self.pose(ours, root), self.pose(theirs, root))

    def pose(self, tree: str, *parents: str) -> str:
        """A commit with the files of a commit or tree and the history of others. No ref leads to it."""
        words = [word for parent in parents for word in ("-p", parent)]
        return self.store.read("commit-tree", f"{tree}^{{tree}}", *words, "-m", "rook", env=_FIXED_AUTHOR).strip()

    def tree(self, revision: str) -> str:
        """The tree of a commit."""
        return self.store.read("rev-parse", "--verify", "--end-of-options", f"{revision}^{{tree}}").strip()

    def commit(self, tree: str, parents: Sequence[str], message: str, *, author_of: str | None = None) -> str:
        """A commit by the user, or with the author and time of another commit."""
        env = {} if author_of is None else self._author(author_of)
        commit = self.store.commit_tree(tree, parents, message, env)
        if commit != author_of:
            return commit
        # Within the same second it would be that very commit, and its branch would seem to be where the base is.
        at = int(self.store.read(*LOG, "-1", "--format=%ct", commit))
        return self.store.commit_tree(tree, parents, message, env | {"GIT_COMMITTER_DATE": f"{at + 1} +0000"})

    def commit_landing(self, tree: str, parents: Sequence[str], message: str) -> str:
        """The same by the user, while git says what it changes in the first parent: a landing asks for that next."""
        with self.store.beside(*DIFF_TREE, parents[0], tree) as changed:
            commit = self.commit(tree, parents, message)
            answer = changed()
        if answer is not None:
            self.store.known["changes", parents[0], commit] = parse_changes(answer)
        return commit

    def _author(self, commit: str) -> dict[str, str]:
        (fields,) = self.store.read_log(("%an", "%ae", "%ad"), "-1", "--date=raw", commit)
        return dict(zip(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"), fields, strict=True))

    def message(self, commit: str) -> str:
        """The message of a commit."""
        return self.store.read(*LOG, "-1", "--format=%B", commit)

    def replace_files(self, tree: str, files: Mapping[str, Side | None]) -> str:
        """A tree with some files changed or (None) deleted."""
        absent = Side("0", "0" * len(tree))
        sides = {path: side or absent for path, side in files.items()}
        lines = "".join(f"{side.mode} {side.oid}\t{path}\0" for path, side in sides.items())
        with temporary_folder(self.store.folder, "index") as folder:
            env = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
            self.store.write("read-tree", tree, env=env)
            self.store.write("update-index", "-z", "--index-info", stdin=lines, env=env)
            return self.store.read("write-tree", env=env).strip()

    def write_blob(self, content: bytes) -> str:
        """Write content as a blob, and return its id."""
        return self.store.read_bytes("hash-object", "-w", "--stdin", stdin=content).decode().strip()

    def read_blobs(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of blobs; what is no blob is left out."""
        wanted = list(dict.fromkeys(oids))
        if not wanted:
            return {}
        data = self.store.read_bytes("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in wanted).encode())
        blobs, stream = {}, BytesIO(data)
        for oid in wanted:
            words = stream.readline().split()
            if len(words) == 3 and words[1].isalpha():
                content = stream.read(int(words[2]))
                stream.read(1)  # the end of its line
                if words[1] == b"blob":
                    blobs[oid] = content
        return blobs

    def line_counts(self, old: str, new: str) -> tuple[int, int] | None:
        """How many lines of one blob another has added and deleted; None if one of them is binary."""
        added, deleted, _ = (*self.store.read(*DIFF, "--numstat", old, new).split("\t", 2), "0", "0", "")[:3]
        return (int(added), int(deleted)) if added.isdecimal() else None

    def files(self, tree: str, paths: Sequence[str] = ()) -> dict[str, Side]:
        """The files of a tree, or those of them that are named."""
        files = {}
        for entry in self.store.read_list("ls-tree", "-r", "-z", "--full-tree", tree, "--", *paths, env=LITERAL):
            about, _, path = entry.partition("\t")
            mode, _, oid = about.split(" ")
            files[path] = Side(mode, oid)
        return files

    def changes(self, old: str, new: str) -> list[TreeChange]:
        """Every path in which two commits or trees differ."""
        return tree_changes(self.store, old, new)

    def changed_paths(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
        """For each pair of commits the paths in which they differ, by one git; a rename changes two."""
        return [tuple(change.path for change in changes) for changes in self.changes_of(pairs)]

    def changes_of(self, pairs: Sequence[tuple[str, str]]) -> list[list[TreeChange]]:
        """For each pair of commits every path in which they differ, by one git."""
        if len(pairs) <= 1:
            return [self.changes(*pair) for pair in pairs]
        trees = self._trees([commit for pair in pairs for commit in pair])
        heads = [f"{trees[old]} {trees[new]}" for old, new in pairs]
        fields = self.store.read_list(*DIFF_TREE, "--stdin", stdin="".join(f"{head}\n" for head in heads))
        # A line introduces each pair; those of pairs that do not differ stand before the line of the next one.
        changes: dict[str, list[TreeChange]] = {}
        for about, path in zip(fields[::2], fields[1::2], strict=False):
            *lines, words = about.split("\n")
            if lines:
                listed = changes[lines[-1]] = []
            listed.append(parse_change(words, path))
        return [changes.get(head, []) for head in heads]

    def _trees(self, commits: Sequence[str]) -> dict[str, str]:
        wanted = list(dict.fromkeys(commits))
        asked = "".join(f"{commit}^{{tree}}\n" for commit in wanted)
        trees = self.store.read("cat-file", "--batch-check=%(objectname)", stdin=asked)
        return dict(zip(wanted, trees.split("\n"), strict=False))

    def fork_point(self, base: str, tip: str) -> str | None:
        """Where two commits parted; None if they have nothing in common."""
        return self.store.fork_point(base, tip)

    def own_commits(self, known: Sequence[str], tip: str) -> list[str]:
        """What a branch has beyond some commits, the oldest first, without its merges."""
        words = ("rev-list", "--reverse", "--topo-order", "--no-merges", tip, *_without(known))
        return self.store.read(*words).split()

    def own_messages(self, known: Sequence[str], tip: str) -> list[CommitMessage]:
        """The messages of these commits, in the order of their time."""
        rows = self.store.read_log(("%H", "%s", "%B"), "--reverse", "--no-merges", tip, *_without(known))
        return [CommitMessage(*row) for row in rows]

    def parents(self, commits: Sequence[str]) -> dict[str, list[str]]:
        """The parents of each commit, by one git for all."""
        return self.store.read_parents("--no-walk=unsorted", "--stdin", stdin="\n".join(commits)) if commits else {}

    def versions(self, base: str, tip: str, path: str, limit: int = 12) -> list[str]:
        """The ids that a file had on the way from a base to a tip, the newest first."""
        words = ("log", "--format=", "--raw", "-z", "--no-abbrev", "--no-renames", f"--max-count={limit}")
        entries = self.store.read_list(*words, tip, f"^{base}", "--", path, env=LITERAL)
        return [entry.split(" ")[3] for entry in entries if entry.startswith(":")]

    def patch(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        """What changed between two commits, for people and models."""
        return self.store.read(*DIFF, "--patch", old, new, "--", *paths, env=LITERAL)

    def tip(self, branch: str) -> str | None:
        """Where a branch is."""
        return self.store.ref(HEADS + branch)

    def tips(self, branches: Sequence[str]) -> dict[str, str]:
        """Where branches are, those that are there."""
        return {name: at for name in branches if (at := self.tip(name)) is not None}

    def landed_branches(self, base: str) -> set[str]:
        """The branches that another one contains."""
        listed = self.store.read("for-each-ref", f"--merged={HEADS}{base}", "--format=%(refname)", HEADS)
        return {name.removeprefix(HEADS) for name in listed.splitlines()}

    def refs_with(self, commit: str) -> set[str]:
        """The whole names of the branches, tags, branches of remotes and pushes under way that contain a commit."""
        places = (HEADS, "refs/tags/", "refs/remotes/", SAVED + UPSTREAMS, SAVED + PUSHINGS)
        return set(self.store.read("for-each-ref", f"--contains={commit}", "--format=%(refname)", *places).splitlines())

    def begin_forward(self, branch: str, old: str, new: str) -> list[Forward]:
        """Bring the files of every checkout of a branch to where it is about to go; all of them, or none.

        Raises BranchInUse before anything is touched.
        """
        check_free(self.store, branch)
        begun: list[Forward] = []
        try:
            for folder in self._checkouts_of(branch):
                begun.append(git_forward.begin(self.store, folder, old, new))  # noqa: PERF401 - those begun are ended
        except BaseException:
            git_forward.end(begun, has_moved=False)
            raise
        return begun

    def repair_checkouts(self, branch: str) -> bool:
        """Finish or undo what a killed process left in the checkouts of a branch; True if there was something."""
        at = self.tip(branch)
        folders = self._checkouts_of(branch)
        repaired = [git_forward.repair(self.store, folder, at) for folder in folders if at is not None]
        return any(repaired)

    def _checkouts_of(self, branch: str) -> list[str]:
        return [folder for folder, on in self._checkouts().items() if on == branch and os.path.isdir(folder)]

    def refresh(self) -> None:
        """Let the refs of the store tell what the branches are now."""

    def settle(self) -> None:
        """Let all that read branches know that one was moved in the store."""


class Trial(Merging):
    """Merging whose new objects go into a folder that is thrown away."""

    def __init__(self, store: GitStore, checkouts: Callable[[], dict[str, str]], objects: str) -> None:
        super().__init__(store, checkouts)
        self._objects = objects

    def stack(self, tree: str, *parents: str) -> str:
        """A commit with a tree, for the next merge. Git would take a process for each of hundreds."""
        who = "rookery <rookery> 946684800 +0000"
        lines = (f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}")
        content = "\n".join((*lines, "", "rook: a trial", "")).encode()
        whole = b"commit %d\0%b" % (len(content), content)
        oid = hashlib.new("sha1" if len(tree) == _SHA1 else "sha256", whole, usedforsecurity=False).hexdigest()
        path = os.path.join(self._objects, oid[:2], oid[2:])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(zlib.compress(whole, 1))
        return oid


def _without(commits: Iterable[str]) -> list[str]:
    """The end of a command that lists commits, but none that these contain."""
    return [*(f"^{commit}" for commit in commits), "--"]
