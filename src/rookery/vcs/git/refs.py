"""Refs and checkouts, read from the files in which git keeps them: a landing asks often, and a git takes 2 ms.

What is not a plain file with an id in it is left to git: a symbolic ref, a half-written file, another kind of storage.
"""

from __future__ import annotations

import os
import re

from rookery.vcs.git.pointers import linked_worktrees
from rookery.vcs.ref_names import HEADS

_IS_ID = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\n?").fullmatch
_HEAD = f"ref: {HEADS}"
# Settings by which the folder above `.git` is no checkout, or that lie elsewhere.
_UNUSUAL = re.compile(r"(?im)^\s*(bare\b(?!\s*=\s*false\s*$)|worktree\b|\[include)")


class AskGit(Exception):
    """The files do not tell."""


class RefFiles:
    """The refs of the repository whose worktrees share a folder."""

    def __init__(self, common: str) -> None:
        self._common = common
        is_reftable = os.path.exists(os.path.join(common, "reftable"))
        self.is_plain = not is_reftable and os.path.isfile(os.path.join(common, "HEAD"))
        """True if every ref has a file of its own, or stands in `packed-refs`."""

    def read(self, ref: str) -> str | None:
        """The id that a ref holds, None if there is none; raises AskGit.

        First the ref's own file, then the packed ones: git packs a ref before it removes the file.
        """
        self._check(ref)
        return self._loose(ref) or self._packed(ref).get(ref)

    def under(self, prefix: str) -> dict[str, str]:
        """The refs in a folder of refs, those in folders below it too; raises AskGit."""
        loose = {ref: commit for ref in self._loose_names(prefix) if (commit := self._loose(ref)) is not None}
        return dict(sorted((self._packed(prefix) | loose).items()))

    def names_under(self, prefix: str) -> set[str]:
        """The names of the same, without reading what they hold; raises AskGit."""
        return {*self._packed(prefix), *self._loose_names(prefix)}

    def _loose_names(self, prefix: str) -> list[str]:
        self._check(prefix.rstrip("/"))
        top = os.path.join(self._common, prefix)
        return [
            prefix + os.path.relpath(os.path.join(place, name), top)
            for place, _, names in os.walk(top)
            for name in names
            if not name.startswith(".") and not name.endswith(".lock")
        ]

    def _check(self, ref: str) -> None:
        if not self.is_plain or any(part in ("", ".", "..") for part in ref.split("/")):
            raise AskGit(ref)

    def _loose(self, ref: str) -> str | None:
        try:
            with open(os.path.join(self._common, ref), "rb") as file:
                content = file.read(100)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise AskGit(ref) from error
        if not _IS_ID(content):
            raise AskGit(ref)
        return content.strip().decode()

    def _packed(self, start: str) -> dict[str, str]:
        """The packed refs whose names begin so."""
        try:
            with open(os.path.join(self._common, "packed-refs"), "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise AskGit(start) from error
        refs = {}
        # Not line by line: there may be very many.
        for name in re.finditer(re.escape(b" " + os.fsencode(start)) + rb"[^\n]*", content):
            commit = content[content.rfind(b"\n", 0, name.start()) + 1 : name.start()]
            if _IS_ID(commit):
                refs[os.fsdecode(name[0][1:])] = commit.decode()
        return refs

    def checkouts(self) -> dict[str, str]:
        """Every checkout, the main one first: its folder and the branch that it is on, if any; raises AskGit."""
        top, name = os.path.split(self._common)
        has_own = os.path.exists(os.path.join(self._common, "config.worktree"))
        if not self.is_plain or name != ".git" or has_own or _UNUSUAL.search(_read(self._common, "config")):
            raise AskGit(self._common)
        linked = {folder: _branch_of(own) for own, folder in linked_worktrees(self._common).items()}
        return {top: _branch_of(self._common)} | linked


def _branch_of(own: str) -> str:
    head = _read(own, "HEAD")
    return head.rstrip("\n").removeprefix(_HEAD) if head.startswith(_HEAD) else ""


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise AskGit(folder) from error
