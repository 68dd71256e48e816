"""Merging in the object database: no checkout, index or branch is touched until `move` moves one.

Git does it with `merge-tree --write-tree`, which needs git 2.39. A merge from a base of our own choosing is spelled
with commits made for it, because `--merge-base` came later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rookery.base.errors import ProgramFailed, Refused
from rookery.vcs.git import forward as git_forward
from rookery.vcs.git import landed as git_landed
from rookery.vcs.git import moves as git_moves
from rookery.vcs.git.forward import Forward
from rookery.vcs.git.merge_tree import MERGE_TREE, UNRELATED, Conflict, Merged, Side, parse_merges
from rookery.vcs.git.repository import DIFF, GitStore, failure
from rookery.vcs.git.tree_diff import DIFF_TREE, TreeChange, parse_changes, tree_changes
from rookery.vcs.ref_names import HEADS, SAVED
from rookery.vcs.temporary import temporary_folder

_Kept = Mapping[str, str] | None

# The same commit for the same tree and parents, whoever asks: nothing piles up.
_NOBODY = {
    **{f"GIT_{who}_{what}": "rookery" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    **{f"GIT_{who}_DATE": "2000-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}


class CannotMerge(Refused):
    """This git cannot merge without a checkout."""

    code = "cannot_merge"
    default_hint = "git 2.39 or newer is needed; `git --version` says what is here"


class CommitMessage(NamedTuple):
    """What a commit says."""

    commit: str
    subject: str
    text: str


class Merging:
    """What merging needs of a repository's objects and refs."""

    def __init__(self, store: GitStore, checkouts: Callable[[], dict[str, str]]) -> None:
        self.store = store
        self._checkouts = checkouts
        self._identity = ["-c", "user.useConfigOnly=true"]
        self._objects = ""
        self._env: Mapping[str, str] = {}

    def check_can(self) -> None:
        """Raise CannotMerge if git is too old."""
        if "--stdin" not in self.store.run("merge-tree", "-h").stdout:
            raise CannotMerge("this git cannot merge without a checkout")

    @contextmanager
    def on_trial(self) -> Iterator[Merging]:
        """The same, with every object that is made kept apart and thrown away: nothing in the repository changes."""
        self._objects = self._objects or objects_of(self.store)
        with temporary_folder(self.store.folder, "objects") as folder:
            trial = Merging(self.store, self._checkouts)
            trial._env = objects_apart(self._objects, folder)
            yield trial

    def merge(self, ours: str, theirs: str) -> Merged:
        """Two commits merged from where they parted."""
        return self.merge_many([(ours, theirs)])[0]

    def merge_many(self, pairs: Sequence[tuple[str, str]]) -> list[Merged]:
        """Many merges by one git; unrelated histories are a conflict of their own kind."""
        if not pairs:
            return []
        if len(pairs) == 1 and not self._env and ("merged", *pairs[0]) in self.store.known:
            return [self.store.known["merged", *pairs[0]]]
        text = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs)
        try:
            out = self._read(*MERGE_TREE, stdin=text)
        except ProgramFailed as error:
            if "unrelated histories" not in error.message:
                self.check_can()
                raise
            if len(pairs) == 1:
                return [Merged("", (Conflict("", UNRELATED),))]
            return [self.merge(*pair) for pair in pairs]
        return parse_merges(out)

    def foresee(self, ours: str, theirs: str) -> None:
        """Merge two commits while git says how they have come apart: a landing asks for both."""
        with self.store.beside(*MERGE_TREE, stdin=f"{ours} {theirs}\n", env=self._env) as merged:
            git_landed.compare(self.store, theirs, ours)
            answer = merged()
        if answer is not None and not self._env:
            self.store.known["merged", ours, theirs] = parse_merges(answer)[0]

    def merge_trees(self, base: str, ours: str, theirs: str) -> Merged:
        """Three trees (or commits) merged, the first as the base of the other two."""
        root = self._bare_commit(base)
        return self.merge(self._bare_commit(ours, root), self._bare_commit(theirs, root))

    def pose(self, commit: str, *parents: str) -> str:
        """A commit with the files of one and the history of others. No ref leads to it."""
        return self._bare_commit(commit, *parents)

    def _bare_commit(self, tree: str, *parents: str) -> str:
        words = [word for parent in parents for word in ("-p", parent)]
        return self._read("commit-tree", f"{tree}^{{tree}}", *words, "-m", "rook", env=_NOBODY).strip()

    def tree(self, revision: str) -> str:
        """The tree of a commit."""
        return self._read("rev-parse", "--verify", "--end-of-options", f"{revision}^{{tree}}").strip()

    def commit(self, tree: str, parents: Sequence[str], message: str, *, author_of: str | None = None) -> str:
        """A commit by the user, or with the author and time of another commit."""
        words = ["commit-tree", tree, *(word for each in parents for word in ("-p", each)), "-F", "-"]
        env = {} if author_of is None else self._author(author_of)
        try:
            made = self._read(*self._identity, *words, stdin=message, env=env).strip()
        except ProgramFailed:
            # Perhaps git knows no user, and by our wish it has not made one up from the machine's names.
            found = self.store.identity()
            self._identity = [word for key, value in found.items() for word in ("-c", f"{key}={value}")]
            made = self._read(*self._identity, *words, stdin=message, env=env).strip()
        words = [*self._identity, *words]
        if made != author_of:
            return made
        # Within the same second it would be that very commit, and its branch would seem to be where the base is.
        at = int(self._read("log", "-1", "--no-show-signature", "--format=%ct", made))
        return self._read(*words, stdin=message, env=env | {"GIT_COMMITTER_DATE": f"{at + 1} +0000"}).strip()

    def commit_landing(self, tree: str, parents: Sequence[str], message: str) -> str:
        """The same by the user, while git says what it changes in the first parent: a landing asks for that next."""
        if self._env:
            return self.commit(tree, parents, message)
        with self.store.beside(*DIFF_TREE, parents[0], tree) as changed:
            made = self.commit(tree, parents, message)
            answer = changed()
        if answer is not None:
            self.store.known["changes", parents[0], made] = parse_changes(answer)
        return made

    def _author(self, commit: str) -> dict[str, str]:
        fields = self._read("log", "-1", "--no-show-signature", "--format=%an%x00%ae%x00%ad", "--date=raw", commit)
        names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE")
        return dict(zip(names, fields.rstrip("\n").split("\0"), strict=True))

    def message(self, commit: str) -> str:
        """What a commit says."""
        return self._read("log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%B", commit)

    def replace_files(self, tree: str, files: Mapping[str, Side | None]) -> str:
        """A tree with some files changed or (None) taken out."""
        with temporary_folder(self.store.folder, "index") as folder:
            env = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
            self._read("read-tree", tree, env=env)
            zero = "0" * len(tree)
            lines = [
                f"0 {zero}\t{path}\0" if side is None else f"{side.mode} {side.oid}\t{path}\0"
                for path, side in files.items()
            ]
            self._read("update-index", "-z", "--index-info", stdin="".join(lines), env=env)
            return self._read("write-tree", env=env).strip()

    def write_blob(self, content: bytes) -> str:
        """Keep content, and give its id."""
        return self.store.read_bytes("hash-object", "-w", "--stdin", stdin=content, env=self._env).decode().strip()

    def read_blobs(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of blobs; what is no blob is left out."""
        wanted = list(dict.fromkeys(oids))
        if not wanted:
            return {}
        data = self.store.read_bytes(
            "cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in wanted).encode(), env=self._env
        )
        found, position = {}, 0
        for oid in wanted:
            end = data.index(b"\n", position)
            words = data[position:end].split(b" ")
            position = end + 1
            if len(words) == 3 and words[1].isalpha():
                size = int(words[2])
                if words[1] == b"blob":
                    found[oid] = data[position : position + size]
                position += size + 1
        return found

    def files(self, tree: str, paths: Sequence[str] = ()) -> dict[str, Side]:
        """The files of a tree, or those of them that are named."""
        listed = self._read(
            "ls-tree", "-r", "-z", "--full-tree", tree, "--", *paths, env={"GIT_LITERAL_PATHSPECS": "1"}
        )
        found = {}
        for entry in listed.split("\0")[:-1]:
            about, _, path = entry.partition("\t")
            mode, _, oid = about.split(" ")
            found[path] = Side(mode, oid)
        return found

    def changes(self, old: str, new: str) -> list[TreeChange]:
        """Every path in which two commits or trees differ."""
        if self._env:  # what is on trial is nothing to remember
            return parse_changes(self._read(*DIFF_TREE, old, new))
        return tree_changes(self.store, old, new)

    def changed_paths(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
        """For each pair of commits the paths in which they differ, by one git; a rename changes two."""
        if not pairs:
            return []
        if len(pairs) == 1:
            return [tuple(each.path for each in self.changes(*pairs[0]))]
        trees = self._trees([commit for pair in pairs for commit in pair])
        text = "".join(f"{trees[old]} {trees[new]}\n" for old, new in pairs)
        out = self._read("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--stdin", stdin=text)
        # Each pair is introduced by a line of its own, and paths end in NUL; a pair that does not differ has no paths.
        found: list[tuple[str, ...]] = []
        position = 0
        heads = [f"{trees[old]} {trees[new]}\n" for old, new in pairs]
        for number, head in enumerate(heads):
            assert out.startswith(head, position)  # noqa: S101
            position += len(head)
            after = heads[number + 1] if number + 1 < len(heads) else None
            paths = []
            while position < len(out) and not (after is not None and out.startswith(after, position)):
                end = out.index("\0", position)
                paths.append(out[position:end])
                position = end + 1
            found.append(tuple(paths))
        return found

    def _trees(self, commits: Sequence[str]) -> dict[str, str]:
        wanted = list(dict.fromkeys(commits))
        out = self._read("cat-file", "--batch-check=%(objectname)", stdin="".join(f"{c}^{{tree}}\n" for c in wanted))
        return dict(zip(wanted, out.split("\n"), strict=False))

    def fork_point(self, base: str, tip: str) -> str | None:
        """Where two commits parted; None if they have nothing in common."""
        done = self.store.run("merge-base", base, tip, env={"LC_ALL": "C", **self._env})
        if done.status not in (0, 1):
            raise failure(done, ("merge-base",))
        return done.stdout.split()[0] if done.ok else None

    def own_commits(self, known: Sequence[str], tip: str) -> list[str]:
        """What a branch has beyond some commits, the oldest first, without its merges."""
        without = [f"^{each}" for each in known]
        return self._read("rev-list", "--reverse", "--topo-order", "--no-merges", tip, *without, "--").split()

    def own_messages(self, known: Sequence[str], tip: str) -> list[CommitMessage]:
        """What these commits say, in the order of their time."""
        out = self._read(
            *("log", "--reverse", "--no-merges", "--no-show-signature", "--encoding=UTF-8"),
            *("--format=%x01%H%x00%s%x00%B", tip, *(f"^{each}" for each in known), "--"),
        )
        return [CommitMessage(*each.split("\0", 2)) for each in out.split("\x01")[1:]]

    def parents(self, commits: Sequence[str]) -> dict[str, list[str]]:
        """The parents of each commit, by one git for all."""
        if not commits:
            return {}
        out = self._read("rev-list", "--no-walk=unsorted", "--parents", "--stdin", stdin="\n".join(commits))
        return {words[0]: words[1:] for words in map(str.split, out.splitlines())}

    def versions(self, base: str, tip: str, path: str, limit: int = 12) -> list[str]:
        """The ids that a file had on the way from a base to a tip, the newest first."""
        out = self._read(
            *("log", "--format=", "--raw", "-z", "--no-abbrev", "--no-renames", f"--max-count={limit}"),
            *(tip, f"^{base}", "--", path),
            env={"GIT_LITERAL_PATHSPECS": "1"},
        )
        return [entry.split(" ")[3] for entry in out.split("\0") if entry.startswith(":")]

    def patch(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        """What changed between two commits, for people and models."""
        return self._read(*DIFF, "--patch", old, new, "--", *paths, env={"GIT_LITERAL_PATHSPECS": "1"})

    def keep(self, name: str, commit: str) -> None:
        """Keep a commit under `refs/rookery/<name>`, whatever was kept there before."""
        if self.store.ref(SAVED + name) != commit:
            git_moves.keep_refs(self.store, {name: commit})

    def tip(self, branch: str) -> str | None:
        """Where a branch is."""
        return self.store.ref(HEADS + branch)

    def tips(self, branches: Sequence[str]) -> dict[str, str]:
        """Where branches are, those that are there."""
        return {name: at for name, at in ((name, self.tip(name)) for name in branches) if at is not None}

    def landed_branches(self, base: str) -> set[str]:
        """The branches that another one contains."""
        listed = self.store.read("for-each-ref", f"--merged={HEADS}{base}", "--format=%(refname)", HEADS)
        return {name.removeprefix(HEADS) for name in listed.splitlines()}

    def refs_with(self, commit: str) -> set[str]:
        """The whole names of the branches, tags and branches of remotes that contain a commit."""
        places = (HEADS, "refs/tags/", "refs/remotes/")
        return set(self._read("for-each-ref", f"--contains={commit}", "--format=%(refname)", *places).splitlines())

    def move(
        self, branch: str, commit: str, expected: str, why: str, fence: str | None = None, kept: _Kept = None
    ) -> None:
        """Move a branch that is still at `expected`, else raises RefMoved; see `git_moves`."""
        git_moves.move_branch(self.store, branch, commit, expected, why, fence=fence, kept=kept)

    def begin_forward(self, branch: str, old: str, new: str) -> list[Forward]:
        """Bring the files of every checkout of a branch to where it is about to go; all of them, or none."""
        begun: list[Forward] = []
        try:
            for folder in self._checkouts_of(branch):
                begun.append(git_forward.begin(self.store, folder, old, new))  # noqa: PERF401 - those begun are ended
        except BaseException:
            git_forward.end(begun, has_moved=False)
            raise
        return begun

    def mend_checkouts(self, branch: str) -> bool:
        """Finish or take back what a killed process left in the checkouts of a branch; True if there was something."""
        at = self.tip(branch)
        repaired = [git_forward.repair(self.store, each, at) for each in self._checkouts_of(branch) if at is not None]
        return any(repaired)

    def _checkouts_of(self, branch: str) -> list[str]:
        return [folder for folder, on in self._checkouts().items() if on == branch and os.path.isdir(folder)]

    def refresh(self) -> None:
        """Let the refs of the store tell what the branches are now."""

    def settle(self) -> None:
        """Let everybody who reads branches know that one was moved in the store."""

    def _read(self, *args: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        done = self.store.run(*args, stdin=stdin, env={"LC_ALL": "C", **self._env, **(env or {})})
        # `merge-tree` says with 1 that something conflicts; with --stdin it does not.
        if not done.ok:
            raise failure(done, args)
        return done.stdout


def objects_of(store: GitStore) -> str:
    """Where a repository keeps its objects."""
    return store.read("rev-parse", "--path-format=absolute", "--git-path", "objects").rstrip("\n")


def objects_apart(objects: str, folder: str) -> dict[str, str]:
    """The environment of a git that reads a repository's objects, and writes its own into a folder."""
    return {"GIT_OBJECT_DIRECTORY": folder, "GIT_ALTERNATE_OBJECT_DIRECTORIES": _escaped(objects)}


def _escaped(path: str) -> str:
    """A path within git's list of object folders: separated by colons, in quotes if need be."""
    if ":" not in path and not path.startswith('"'):
        return path
    inner = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'
