"""Git in a worktree that a sandboxed agent writes runs in a cage: it can do no more there than the agent itself.

Such a worktree may hold anything: a repository inside it whose settings name programs, a link in the place of a file
that git writes. `sandbox/wrap.py` writes the words that go before git to `.rookery/run/cages/<worktree>.json`, or for a
worktree outside of `.rookery` to a folder beside it, which the agent does not see. They hold for the worktree and
everything in it. A command that neither reads the files nor writes to what the agent could have replaced runs without
them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rookery.base.draft import write_whole
from rookery.base.record import Record
from rookery.config import layout
from rookery.config.project import make_state_folders, upward
from rookery.vcs.folders import read_text, relocated

_WORKTREES = layout.path(os.sep, layout.WORKTREES)
_BESIDE = ".rookery-cages"

# They read refs and objects, or write a ref by name, with settings that the agent cannot change.
_HARMLESS = frozenset(
    {
        *("cat-file", "check-ref-format", "config", "for-each-ref", "ls-tree", "merge-base", "rev-list", "rev-parse"),
        *("symbolic-ref", "update-ref", "worktree"),
    }
)
# No person is there to sign, and no program but git runs.
_PLAIN = ("-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "commit.gpgSign=false")


@dataclass(frozen=True, slots=True)
class Cage(Record):
    """The words that go before git in one worktree."""

    worktree: str
    words: tuple[str, ...]
    common: str
    """The folder that all worktrees of the repository share."""

    def wrap(self, git: Sequence[str], folder: str, args: Sequence[str], env: Mapping[str, str]) -> list[str]:
        """The words that run git with its arguments in a folder of the worktree."""
        command = _command(args)
        if folder == self.worktree and command in _HARMLESS:
            # With the worktree's own folder it would also write the log of its HEAD, which may be a link to anywhere.
            return [*git, *((f"--git-dir={self.common}",) if command == "update-ref" else ()), *args]
        index = env.get("GIT_INDEX_FILE")
        bind = [] if index is None else ["--bind", os.path.dirname(index), os.path.dirname(index)]
        return [*self.words, *bind, "--chdir", folder, "--", *git, *_PLAIN, *args]


def find(folder: str) -> Cage | None:
    """The cage in which git must run in a folder, if any."""
    # From the top: what an agent puts into its worktree lies below the worktree's own.
    for worktree in reversed(upward(folder)[:-1]):
        try:
            if os.stat(_path(worktree)).st_uid != os.geteuid():
                continue  # another user's, in a folder such as /tmp
            with open(_path(worktree), encoding="utf-8") as file:
                data = json.load(file)  # an empty or broken file must not let git run without its cage
        except (FileNotFoundError, NotADirectoryError):
            continue
        return Cage(worktree, tuple(data["words"]), data["common"])
    return None


def keep(worktree: str, words: Sequence[str], common: str) -> None:
    """Let git in a worktree run so from now on."""
    path = _path(worktree)
    make_state_folders(os.path.dirname(path))
    write_whole(path, json.dumps({"words": list(words), "common": common}))


def relocate(root: str, old: str, elsewhere: Sequence[str] = ()) -> None:
    """The project was copied or moved: its cages, also those of worktrees elsewhere, name the new root."""
    folder = layout.path(root, layout.CAGES)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for worktree in (*(layout.path(root, layout.WORKTREES, name.removesuffix(".json")) for name in names), *elsewhere):
        if not os.path.exists(_path(worktree)):
            continue
        data = json.loads(read_text(_path(worktree)))
        words = [relocated(word, root, old) or word for word in data["words"]]
        keep(worktree, words, relocated(data["common"], root, old) or data["common"])


def forget(folder: str) -> None:
    """The worktree is gone."""
    path = _path(folder)
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)
    if os.path.basename(os.path.dirname(path)) == _BESIDE:
        with suppress(OSError):
            os.rmdir(os.path.dirname(path))


def _path(worktree: str) -> str:
    """Where the words for a worktree are: out of reach of its agent."""
    parent, name = os.path.split(worktree)
    root = parent.removesuffix(_WORKTREES)
    folder = os.path.join(parent, _BESIDE) if root == parent else layout.path(root, layout.CAGES)
    return os.path.join(folder, f"{name}.json")


def _command(args: Sequence[str]) -> str:
    """The command of git, after the settings that go before it."""
    position = 0
    while position < len(args) and args[position] == "-c":
        position += 2
    return args[position] if position < len(args) else ""
