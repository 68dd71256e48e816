"""Git in a worktree that a sandboxed agent writes runs in a cage: it can do no more there than the agent itself.

Such a worktree may hold anything: a repository inside it whose settings name programs, a link in the place of a file
that git writes. Whoever sandboxes an agent leaves the words that go before git in `.rookery/run/cages/<worktree>.json`;
they hold for the worktree and everything beneath it. A command that neither looks at the files nor writes to what the
agent could have replaced does without.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rookery.base.draft import write_whole
from rookery.base.record import Record
from rookery.config import layout

_WORKTREES = layout.path(os.sep, layout.WORKTREES, "")

# They read refs and objects, or write a ref by name, by settings that the agent cannot change.
_HARMLESS = frozenset(
    {
        *("cat-file", "check-ref-format", "config", "for-each-ref", "ls-tree", "merge-base", "rev-list", "rev-parse"),
        *("symbolic-ref", "update-ref", "worktree"),
    }
)
# Nobody is there to sign, and no program but git has a say.
_PLAIN = ("-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "commit.gpgSign=false")


@dataclass(frozen=True, slots=True)
class Cage(Record):
    """What stands before git in one worktree."""

    worktree: str
    words: tuple[str, ...]
    common: str
    """Where the repository keeps what belongs to all its worktrees."""

    def wrap(self, git: Sequence[str], folder: str, args: Sequence[str], env: Mapping[str, str]) -> list[str]:
        """The words that run git with its arguments in a folder of the worktree."""
        command = _command(args)
        if folder == self.worktree and command in _HARMLESS:
            # By the worktree's own folder it would also write the log of its HEAD, which may be a link to anywhere.
            return [*git, *((f"--git-dir={self.common}",) if command == "update-ref" else ()), *args]
        index = env.get("GIT_INDEX_FILE")
        room = [] if index is None else ["--bind", os.path.dirname(index), os.path.dirname(index)]
        return [*self.words, *room, "--chdir", folder, "--", *git, *_PLAIN, *args]


def find(folder: str) -> Cage | None:
    """The cage that a folder is to be entered by, if any."""
    before, found, rest = folder.partition(_WORKTREES)
    name = rest.partition(os.sep)[0]
    if not found or not name:
        return None
    try:
        with open(_path(before, name), encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    data = json.loads(text)
    return Cage(f"{before}{_WORKTREES}{name}", tuple(data["words"]), data["common"])


def keep(root: str, name: str, words: Sequence[str], common: str) -> None:
    """Let git in the worktree of that name run so from now on."""
    path = _path(root, name)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    text = json.dumps({"words": list(words), "common": common})
    write_whole(path, text)


def relocate(root: str, old: str) -> None:
    """The project was copied or moved: its cages name the new root instead of the old one."""
    folder = os.path.dirname(_path(root, ""))
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, entry)
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        words = [_relocated(word, root, old) for word in data["words"]]
        write_whole(path, json.dumps({"words": words, "common": _relocated(data["common"], root, old)}))


def _relocated(path: str, root: str, old: str) -> str:
    for top in sorted((root, old), key=len, reverse=True):  # one of the two may lie in the other
        if path == top or path.startswith(top + os.sep):
            return root + path[len(top) :]
    return path


def forget(folder: str) -> None:
    """The worktree is gone."""
    before, found, name = folder.partition(_WORKTREES)
    if found and os.sep not in name and os.path.exists(_path(before, name)):
        os.unlink(_path(before, name))


def _path(root: str, name: str) -> str:
    return layout.path(root, layout.CAGES, f"{name}.json")


def _command(args: Sequence[str]) -> str:
    """What git is to do, after the settings that go before it."""
    position = 0
    while position < len(args) and args[position] == "-c":
        position += 2
    return args[position] if position < len(args) else ""
