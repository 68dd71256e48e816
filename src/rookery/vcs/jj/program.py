"""Running jj for one workspace, and what all questions about it need: its commit, its bookmarks, its git store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from rookery.base import call as calls
from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState, ProgramFailed, Refused
from rookery.config.environ import child_environ
from rookery.config.project import main_checkout
from rookery.processes.process import Finished, run
from rookery.vcs.folders import read_text
from rookery.vcs.git.repository import GitStore
from rookery.vcs.jj.view import (
    BOOKMARK_TEMPLATE,
    HERE,
    HERE_TEMPLATE,
    PATH_TEMPLATE,
    Here,
    parse_bookmarks,
    parse_here,
    parse_rows,
)
from rookery.vcs.model import Conflicted, UnknownRevision

AS_IT_IS = "--ignore-working-copy"
_MEMORY = "rookery-branch"
_LOCK = "rookery.lock"


class JjProgram:
    """A jj workspace, without the questions and steps of the Protocol."""

    def __init__(self, root: str, timeout: float) -> None:
        self.root = root
        self._timeout = timeout

    def list_files(self, files: str, *options: str) -> list[str]:
        """The tracked files that a fileset names, as jj last read them from the disk."""
        return parse_rows(self._jj("file", "list", AS_IT_IS, "--template=" + PATH_TEMPLATE, *options, files))

    def _here(self, *config: str) -> Here:
        """The working copy, with what is on disk now: `jj log` reads that first."""
        return parse_here(self._jj(*show(HERE, HERE_TEMPLATE), *config))

    def _bookmarks(self) -> dict[str, list[str]]:
        """Every bookmark. With a `.git` beside it jj also imports what git did to the branches, unless it is told
        to ignore the working copy."""
        return parse_bookmarks(self._jj("bookmark", "list", "--template=" + BOOKMARK_TEMPLATE))

    def branch_tip(self, name: str) -> str | None:
        """Where a bookmark is, None if it is not there; raises Conflicted if it is at several commits."""
        at = self._bookmarks().get(name)
        return None if at is None else one(name, at)

    def _tip(self, name: str) -> str:
        tip = self.branch_tip(name)
        if tip is None:
            raise UnknownRevision(f"there is no bookmark {name}")
        return tip

    def _identity(self) -> list[str]:
        """Options that name the user where the user has not: as git knows him, else as Rookery."""
        is_set = self._run("config", "list", "user", "--template=" + 'name ++ "\\n"').stdout.split()
        return [f"--config={key}={quoted(value)}" for key, value in self._store.identity().items() if key not in is_set]

    def _remember(self, branch: str) -> None:
        write_whole(os.path.join(self.root, ".jj", _MEMORY), branch)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Only one of us at a time moves bookmarks: jj itself lets two succeed and calls the bookmark conflicted."""
        first = main_checkout(self.root) or self.root
        with open(os.path.join(first, ".jj", "repo", _LOCK), "w", encoding="utf-8") as file:
            calls.lock(file)
            yield

    @cached_property
    def _git_folder(self) -> str:
        """The folder of the git store."""
        return self._jj("git", "root", AS_IT_IS).rstrip("\n")

    @cached_property
    def _store(self) -> GitStore:
        return GitStore(self.root, self._timeout, options=(f"--git-dir={self._git_folder}",))

    @property
    def _files_store(self) -> GitStore:
        """The store, with the workspace's files as git's own checkout."""
        return replace(self._store, options=(*self._store.options, f"--work-tree={self.root}"))

    def _jj(self, *args: str) -> str:
        done = self._run(*args)
        if not done.ok:
            raise failed(done)
        return done.stdout

    def _run(self, *args: str) -> Finished:
        argv = ["jj", "--no-pager", "--color=never", "--quiet", f"--repository={self.root}", *args]
        return run(argv, cwd=self.root, timeout=self._timeout, env=child_environ(), check=False)


def failed(done: Finished) -> Refused:
    """The error for a jj command that failed."""
    if "working copy is stale" in done.stderr:
        return InvalidState(
            "this workspace is stale: its commit was changed from elsewhere",
            hint="run `jj workspace update-stale` here",
        )
    command = " ".join(word for word in done.argv[1:] if not word.startswith("-"))
    return ProgramFailed(f"`jj {command[:100]}` exited with {done.status}: {done.last_output}")


def show(revisions: str, template: str) -> tuple[str, ...]:
    """Arguments that print commits by a template."""
    return ("log", "--no-graph", f"--revisions={revisions}", f"--template={template}")


def quoted(text: str) -> str:
    """A string of jj's own languages, and of TOML."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def one(name: str, commits: list[str]) -> str:
    """The one commit that a bookmark is at."""
    if len(commits) != 1:
        raise conflicted(name)
    return commits[0]


def conflicted(name: str) -> Conflicted:
    """The error for a bookmark that is in two places."""
    return Conflicted(f"bookmark {name} is conflicted", hint=f"say where it belongs: `jj bookmark set {name} -r …`")


def remembered(root: str) -> str:
    """The bookmark that was last switched to or committed on in a workspace."""
    return read_text(os.path.join(root, ".jj", _MEMORY))


def jj_version() -> str:
    """The version that `jj --version` prints; raises ProgramFailed."""
    return run(["jj", "--version"], timeout=10, env=child_environ()).stdout.removeprefix("jj ").strip()
