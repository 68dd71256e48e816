"""What `./rook-dev replay` reads from a repository: every merge of two commits, done again, and what people made of it.

The repository is only read: what git has to write while it merges goes to a folder that is removed afterwards.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

VERSIONS = 40
"""How many earlier versions of a file are looked at on each side."""
LARGEST = 2_000_000
"""Files of more bytes than this are not read."""
_NOT_OURS = ("--exclude=refs/pull/*/merge", "--exclude=refs/stash", "--all")
_ABSENT = "0" * 40


@dataclass(frozen=True)
class Conflict:
    """One path that git could not merge, as the names of its contents; None where it is absent."""

    merge: str
    path: str
    modes: tuple[str | None, str | None, str | None]
    base: str | None
    ours: str | None
    theirs: str | None
    human: str | None
    ours_history: tuple[str, ...] = ()
    theirs_history: tuple[str, ...] = ()
    one_sided: bool = False
    """The whole merge has the tree of one parent: nothing of the other was merged, in this file or in any."""


@dataclass
class History:
    """All merges of a repository."""

    name: str
    merges: int = 0
    unreadable: int = 0
    clean_same: int = 0
    clean_different: int = 0
    conflicted: int = 0
    duplicates: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)

    def content(self, blob: str | None) -> bytes | None:
        """The content that a name stands for; None for an absent file."""
        return None if blob is None else self.blobs[blob]


def read(repository: Path, *, limit: int | None = None) -> Iterator[History]:
    """Do every merge again; the same history is given after each, so that progress can be shown."""
    with _opened(repository) as git:
        history = History(_name(repository))
        seen: set[tuple[str | None, ...]] = set()
        blobs = _Blobs(git, history.blobs)
        for merge, tree, parents in _merges(git, limit):
            _redo(git, history, blobs, seen, merge, tree, parents)
            yield history
        blobs.close()


def _name(repository: Path) -> str:
    path = repository.resolve()
    return path.parent.name if path.name in ("repo", ".git") else path.name


@dataclass(frozen=True)
class _Git:
    folder: Path
    env: dict[str, str]

    def run(self, *args: str, fine: tuple[int, ...] = (0,)) -> tuple[int, bytes]:
        done = subprocess.run(["git", *args], cwd=self.folder, env=self.env, capture_output=True, check=False)
        if done.returncode not in fine:
            stderr = done.stderr.decode(errors="replace").strip()
            raise SystemExit(f"git {args[0]} failed in {self.folder}: {stderr}")
        return done.returncode, done.stdout


@contextmanager
def _opened(repository: Path) -> Iterator[_Git]:
    if not repository.is_dir():
        raise SystemExit(f"there is no folder {repository}")
    with tempfile.TemporaryDirectory(prefix="rook-replay-") as scratch:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        env |= {"LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
        common = _Git(repository, env).run("rev-parse", "--path-format=absolute", "--git-common-dir")[1]
        objects = Path(common.decode().strip()) / "objects"
        yield _Git(
            repository, env | {"GIT_OBJECT_DIRECTORY": scratch, "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects)}
        )


def _merges(git: _Git, limit: int | None) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Merges, newest first, without the test merges that a forge makes by itself: no person resolved those."""
    some = () if limit is None else (f"--max-count={limit}",)
    _, listed = git.run(
        *("rev-list", "--min-parents=2", "--max-parents=2", "--topo-order", "--format=%H %T %P"), *some, *_NOT_OURS
    )
    for line in listed.decode().splitlines():
        if not line.startswith("commit "):
            merge, tree, first, second = line.split()
            yield merge, tree, (first, second)


def _redo(
    git: _Git,
    history: History,
    blobs: _Blobs,
    seen: set[tuple[str | None, ...]],
    merge: str,
    tree: str,
    parents: tuple[str, str],
) -> None:
    status, output = git.run("merge-tree", "--write-tree", "-z", "--no-messages", *parents, fine=(0, 1, 128))
    if status == 128:
        # A clone need not have every object.
        history.unreadable += 1
        return
    history.merges += 1
    merged, *entries = output.decode("utf-8", "surrogateescape").split("\0")
    if status == 0:
        history.clean_same += merged == tree
        history.clean_different += merged != tree
        return
    history.conflicted += 1
    stages = _stages(entries)
    human = blobs.names(tree, list(stages))
    fresh: list[tuple[str, tuple[str | None, ...]]] = []
    for path, sides in stages.items():
        key = (path, *(sides.get(stage, (None, None))[1] for stage in "123"), human[path])
        history.duplicates += key in seen
        if key not in seen:
            seen.add(key)
            fresh.append((path, key[1:4]))
    if not fresh:
        return
    paths = [path for path, sides in fresh if None not in sides[1:]]
    one_sided = tree in blobs.trees(parents)
    ours = _versions(git, parents[0], parents[1], paths)
    theirs = _versions(git, parents[1], parents[0], paths)
    for path, (base, our, their) in fresh:
        modes = tuple(stages[path].get(stage, (None, None))[0] for stage in "123")
        conflict = Conflict(
            *(merge, path, modes, base, our, their, human[path]),  # type: ignore[arg-type]
            tuple(blob for blob in ours.get(path, ()) if blob not in (base, our)),
            tuple(blob for blob in theirs.get(path, ()) if blob not in (base, their)),
            one_sided,
        )
        wanted = (base, our, their, conflict.human, *conflict.ours_history, *conflict.theirs_history)
        if all(blobs.read(blob) for blob in wanted if blob is not None):
            history.conflicts.append(conflict)


def _stages(entries: list[str]) -> dict[str, dict[str, tuple[str | None, str | None]]]:
    """Each conflicted path with the mode and blob of its stages: 1 the base, 2 ours, 3 theirs."""
    conflicts: dict[str, dict[str, tuple[str | None, str | None]]] = {}
    for entry in entries:
        facts, tab, path = entry.partition("\t")
        if tab:
            mode, blob, stage = facts.split(" ")
            conflicts.setdefault(path, {})[stage] = (mode, blob)
    return conflicts


def _versions(git: _Git, side: str, other: str, paths: list[str]) -> dict[str, list[str]]:
    """The contents that each path had on one side alone, newest first."""
    if not paths:
        return {}
    _, output = git.run(
        *("--literal-pathspecs", "log", "--format=", "--raw", "--no-abbrev", "--no-renames", "-m", "--full-history"),
        *("-z", "--topo-order", side, "--not", other, "--", *paths),
    )
    words = output.decode("utf-8", "surrogateescape").split("\0")
    by_path: dict[str, list[str]] = {}
    for facts, path in zip(words[::2], words[1::2], strict=False):
        old, new = facts.split(" ")[2:4]
        versions = by_path.setdefault(path, [])
        for blob in (new, old):
            if blob != _ABSENT and blob not in versions and len(versions) < VERSIONS:
                versions.append(blob)
    return by_path


class _Blobs:
    """Reads contents from one git that stays open."""

    def __init__(self, git: _Git, into: dict[str, bytes]) -> None:
        self._into = into
        self._git = subprocess.Popen(
            ["git", "cat-file", "--batch"],
            cwd=git.folder,
            env=git.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def names(self, tree: str, paths: list[str]) -> dict[str, str | None]:
        """The blob at each path of a tree."""
        blobs: dict[str, str | None] = {}
        for path in paths:
            name, kind, content = self._ask(f"{tree}:{path}") if "\n" not in path else ("", "", b"")
            blobs[path] = name if kind == "blob" else None
            if kind == "blob":
                self._into[name] = content
        return blobs

    def trees(self, commits: tuple[str, ...]) -> list[str]:
        """The tree of each commit."""
        return [self._ask(f"{commit}^{{tree}}")[0] for commit in commits]

    def read(self, blob: str) -> bool:
        """Have a blob's content at hand; false if it is none, or too large."""
        if blob not in self._into:
            _, kind, content = self._ask(blob)
            if kind != "blob":
                return False
            self._into[blob] = content
        return len(self._into[blob]) <= LARGEST

    def _ask(self, name: str) -> tuple[str, str, bytes]:
        assert self._git.stdin is not None
        assert self._git.stdout is not None
        self._git.stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
        self._git.stdin.flush()
        facts = self._git.stdout.readline().decode("utf-8", "surrogateescape").strip().rsplit(" ", 2)
        if len(facts) != 3 or not facts[2].isdigit():
            return "", "missing", b""
        content = self._git.stdout.read(int(facts[2]))
        self._git.stdout.read(1)
        return facts[0], facts[1], content

    def close(self) -> None:
        """End the git that stayed open."""
        assert self._git.stdin is not None
        self._git.stdin.close()
        self._git.wait()
