"""A git repository without its checkout: commits, refs and ancestry. The one place that starts git.

Behind every jj repository lies such a store too, so both backends use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from rookery.base.call import sleep
from rookery.base.errors import InvalidInput, InvalidState, NoRepository, ProgramFailed
from rookery.config.environ import child_environ
from rookery.processes import process
from rookery.processes.process import Finished, run, run_bytes
from rookery.vcs import cage
from rookery.vcs.git import locks as git_locks
from rookery.vcs.git.porcelain import parse_diff
from rookery.vcs.git.refs import AskGit, RefFiles
from rookery.vcs.model import EMAIL, NAME, FileDiff, UnknownRevision, moved
from rookery.vcs.ref_names import HEADS, SAVED

# The user's own settings must not change what we read.
DIFF = (
    *("-c", "diff.autoRefreshIndex=true", "diff", "--no-color", "--no-ext-diff"),
    *("--no-textconv", "--no-relative", "--find-renames", "--ignore-submodules=none"),
)
COUNTED = ("--raw", "--numstat", "-z", "--no-abbrev")
PATCH = ("--patch", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")

_READING = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_WRITING = {"GIT_TERMINAL_PROMPT": "0"}
_DIED = 128
_WAITS = (0.01, 0.03, 0.1, 0.3, 1.0)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_LOCKED = (".lock'", "lock config file", "packed-refs.new")
"""What git's words contain if a lock file stops it, in every language but for the second."""
_NOWHERE = ("not a git repository", "must be run in a work tree")


class GitStore:
    """The repository that git finds in `folder`, or at `options` such as `--git-dir`."""

    def __init__(
        self,
        folder: str,
        timeout: float,
        *,
        options: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        known: dict[tuple[str, ...], Any] | None = None,
    ) -> None:
        self.folder = folder
        self._timeout = timeout
        self.timeout = timeout
        self._options = options
        self._env = dict(env or {})
        self.known: dict[tuple[str, ...], Any] = {} if known is None else known
        """What was found out about commits, by their ids: it never changes."""

    def at(self, folder: str) -> GitStore:
        """The same for another checkout."""
        env = self._env | {"GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}
        return GitStore(folder, self._timeout, options=self._options, env=env, known=self.known)

    def within(self, seconds: float) -> GitStore:
        """The same, with less patience."""
        return GitStore(self.folder, min(self._timeout, seconds), options=self._options, env=self._env)

    @cached_property
    def common(self) -> str:
        """The folder that all worktrees of the repository share; it is plain to see in the main checkout."""
        plain = os.path.join(self.folder, ".git")
        if not self._options and os.path.isfile(os.path.join(plain, "HEAD")) and not os.path.islink(plain):
            return plain
        return self.read("rev-parse", "--path-format=absolute", "--git-common-dir").rstrip("\n")

    @cached_property
    def _files(self) -> RefFiles:
        return RefFiles(self.common)

    def read(self, *args: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        """What git prints for a question that changes nothing; raises if it fails."""
        done = self.run(*args, stdin=stdin, env=_READING | dict(env or {}))
        if not done.ok:
            raise failure(done, args)
        return done.stdout

    def ask(self, *args: str) -> str | None:
        """What git prints for a question that may have no answer."""
        done = self.run(*args, env=_READING)
        if done.status not in (0, 1):
            raise failure(done, args)
        return done.stdout if done.ok else None

    def write(self, *args: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> None:
        """Run a command that changes the repository; raises if it fails."""
        done = self.run(*args, stdin=stdin, env=_WRITING | dict(env or {}))
        if not done.ok:
            raise failure(done, args)

    def run(self, *args: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Finished:
        """Run git to its end, whatever comes of it; once more if only the lock of a killed git was in its way."""
        argv, whole = self._command(args, env)
        done = self._run(argv, whole, stdin)
        if done.ok or not any(mark in done.stderr for mark in _LOCKED):
            return done
        paths = git_locks.named(done.stderr, self.folder)
        held = git_locks.remove_dead(paths)
        if held:
            reasons = "".join(f"{each.path} stays: {each.reason}\n" for each in held)
            return done.replace(stderr=f"{done.stderr.rstrip()}\n{reasons}")
        return self._run(argv, whole, stdin) if paths else done

    def _command(self, args: tuple[str, ...], env: Mapping[str, str] | None) -> tuple[list[str], dict[str, str]]:
        """The words and the environment by which git is started."""
        whole = child_environ() | self._env | (dict(env) if env else {})
        git, words = ["git", "--no-pager"], [*self._options, *args]
        found = cage.find(self.folder)
        return [*git, *words] if found is None else found.wrap(git, self.folder, words, whole), whole

    @contextmanager
    def beside(
        self, *args: str, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> Iterator[Callable[[], str | None]]:
        """Ask git something while the block asks it something else; the answer is None if it fails in any way.

        It is for what is asked again, and in earnest, where there is no answer.
        """
        argv, whole = self._command(args, _READING | dict(env or {}))
        with process.beside(argv, cwd=self.folder, timeout=self._timeout, env=whole, stdin=stdin) as finish:

            def answer() -> str | None:
                try:
                    done = finish()
                except ProgramFailed:
                    return None
                return done.stdout if done.ok else None

            yield answer

    def _run(self, argv: list[str], env: dict[str, str], stdin: str | None) -> Finished:
        for wait in (*_WAITS, None):
            done = run(argv, cwd=self.folder, timeout=self._timeout, env=env, stdin=stdin, check=False)
            if wait is None or not _met_half_made(done):
                break
            sleep(wait)
        return done

    def read_bytes(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """What git prints, byte by byte; raises if it fails."""
        return run_bytes(
            ["git", "--no-pager", *self._options, *args],
            cwd=self.folder,
            timeout=self._timeout,
            env=child_environ() | self._env | _READING | (dict(env) if env else {}),
            stdin=stdin,
        )

    def find_commit(self, *names: str) -> str | None:
        """The commit that the first name with a meaning stands for.

        The names go in by standard input, so that none can be taken as an option.
        """
        if any(char in name for name in names for char in "\n\0"):
            return None
        answers = self.read("cat-file", "--batch-check", stdin="".join(f"{name}^{{commit}}\n" for name in names))
        for answer in answers.splitlines():
            words = answer.split(" ")
            if len(words) == 3 and words[1] == "commit":
                return words[0]
        return None

    def get_commit(self, *names: str) -> str:
        """The same; raises UnknownRevision."""
        found = self.find_commit(*names)
        if found is None:
            raise UnknownRevision(f"{names[-1]!r} stands for no commit here")
        return found

    def ref(self, name: str) -> str | None:
        """The id that a ref holds, None if there is no such ref."""
        if "\0" in name or "\n" in name:
            return None
        try:
            return self._files.read(name)
        except AskGit:
            return self._listed_refs(name).get(name)

    def refs(self, under: str) -> dict[str, str]:
        """Every ref beneath a folder of refs, without that folder, and the commit that it is at."""
        try:
            found = self._files.under(under)
        except AskGit:
            found = self._listed_refs(under)
        return {name.removeprefix(under): commit for name, commit in found.items()}

    def count_refs(self, under: str) -> int:
        """How many refs there are under a folder of refs."""
        try:
            return len(self._files.names_under(under))
        except AskGit:
            return len(self._listed_refs(under))

    def symbolic(self, name: str) -> str | None:
        """The ref that a symbolic one leads to, None if it is not there or none."""
        try:
            return self._files.target(name)
        except AskGit:
            found = self.ask("symbolic-ref", "--quiet", name)
            return None if found is None else found.rstrip("\n")

    def checkouts(self) -> dict[str, str] | None:
        """Every checkout, the main one first, and the branch that it is on; None if only git can tell."""
        try:
            return self._files.checkouts()
        except AskGit:
            return None

    def _listed_refs(self, pattern: str) -> dict[str, str]:
        lines = self.read("for-each-ref", "--format=%(refname)%00%(objectname)", pattern).splitlines()
        return {name: commit for name, _, commit in (line.partition("\0") for line in lines)}

    def create_ref(self, ref: str, commit: str) -> None:
        """Make a ref; there already at the commit is fine, elsewhere raises RefMoved."""
        words = ("update-ref", "--no-deref", "-m", "rook: create", ref, commit, "")
        made = self.run(*_hooks_for(ref), *words, env=_WRITING)
        if made.ok:
            return
        current = self.find_commit(ref)
        if current is None:
            raise failure(made, ("update-ref",))
        if current != commit:
            raise moved(ref.removeprefix(HEADS), commit, current)

    def delete_ref(self, ref: str, expected: str) -> None:
        """Delete a ref that is still at `expected`, else raises RefMoved. What it may lead to stays."""
        self._change_ref(ref, expected, "rook: delete", "-d", ref, expected)

    def delete_refs(self, refs: Mapping[str, str]) -> None:
        """Delete refs of Rookery's own that are still where the caller saw them; all, or none."""
        lines = "".join(f"delete {ref} {commit}\n" for ref, commit in refs.items())
        words = ("-c", "core.hooksPath=/dev/null", "update-ref", "--no-deref", "-m", "rook: prune", "--stdin")
        self.write(*words, stdin=lines)

    def save_ref(self, name: str, commit: str) -> None:
        """Keep a commit under `refs/rookery/`."""
        self.check_saved_name(name)
        self.create_ref(SAVED + name, self.get_commit(commit))

    def check_saved_name(self, name: str) -> str:
        """The name itself, if something can be kept under it."""
        if is_plain_name(name):
            return name
        if "\0" in name or not self.run("check-ref-format", SAVED + name).ok:
            raise InvalidInput(f"{name!r} cannot be the name of a ref", hint="see `git help check-ref-format`")
        return name

    def replace_ref(self, ref: str, commit: str, expected: str) -> None:
        """Move a ref that is still at `expected`, else raises RefMoved."""
        self._change_ref(ref, expected, "rook: replace", ref, commit, expected)

    def _change_ref(self, ref: str, expected: str, *words: str) -> None:
        done = self.run(*_hooks_for(ref), "update-ref", "--no-deref", "-m", *words, env=_WRITING)
        if done.ok:
            return
        current = self.find_commit(ref)
        if current == expected:
            raise failure(done, ("update-ref",))
        raise moved(ref.removeprefix(HEADS), expected, current)

    def saved_refs(self, prefix: str) -> dict[str, str]:
        """What is kept under `refs/rookery/`, by the names that begin with `prefix`."""
        return {name: commit for name, commit in self.refs(SAVED).items() if name.startswith(prefix)}

    def check_branch_name(self, name: str) -> str:
        """The name itself, if a branch can have it."""
        if is_plain_name(name):
            return name
        done = self.run("check-ref-format", "--branch", name) if "\0" not in name else None
        # `@{-1}` is understood, as the branch before: only a name that stands for itself is one.
        if done is None or done.stdout != name + "\n":
            raise InvalidInput(f"{name!r} cannot be the name of a branch", hint="see `git help check-ref-format`")
        return name

    def contains(self, commit: str, within: str) -> bool:
        """True if a commit is another or one of its ancestors. Both are ids."""
        key = ("contains", commit, within)
        if key not in self.known:
            self.known[key] = commit == within or self.ask("merge-base", "--is-ancestor", commit, within) is not None
        return bool(self.known[key])

    def count_commits(self, tip: str, base: str) -> int:
        """How many commits one contains that the other does not."""
        return int(self.read("rev-list", "--count", tip, f"^{base}", "--"))

    def count_unpushed(self) -> int:
        """How many commits no remote is known to have, stashes included."""
        tips = ["HEAD"] if self.find_commit("HEAD") else []
        tips += ["refs/stash"] if self.find_commit("refs/stash") else []
        return int(self.read("rev-list", "--count", *tips, "--branches", "--tags", "--not", "--remotes", "--"))

    def commits_without_branch(self, tips: Iterable[str]) -> dict[str, list[str]]:
        """All that some commits lead to and no branch, tag or remote does, each with its parents."""
        asked = "".join(f"{tip}\n" for tip in dict.fromkeys(tips))
        if not asked:
            return {}
        words = ("rev-list", "--parents", "--stdin", "--not", "--branches", "--tags", "--remotes")
        lines = (line.split() for line in self.read(*words, stdin=asked).splitlines())
        return {commit: parents for commit, *parents in lines}

    def fork_point(self, base: str, tip: str | None) -> str:
        """Where `tip` parted from `base`; `base` itself if they have nothing in common."""
        found = None if tip is None else self.ask("merge-base", base, tip)
        return base if found is None else found.strip()

    def empty_tree(self) -> str:
        """What the first commit is compared with."""
        return self.read("hash-object", "-t", "tree", "--stdin", stdin="").strip()

    def diff(self, old: str, new: str) -> list[FileDiff]:
        """What changed between two commits or trees."""
        return parse_diff(self.read(*DIFF, *COUNTED, old, new, "--"))

    def identity(self) -> dict[str, str]:
        """The name and address that the user has given git, else Rookery's own."""
        given = self.ask("config", "-z", "--get-regexp", r"^user\.(name|email)$") or ""
        found = dict(entry.split("\n", 1) for entry in given.split("\0") if "\n" in entry)
        return {"user.name": found.get("user.name") or NAME, "user.email": found.get("user.email") or EMAIL}


def is_plain_name(name: str) -> bool:
    """True if the name is so simple that git need not be asked whether a branch can have it."""
    is_simple = all(word and _PLAIN.issuperset(word) for word in name.split("/"))
    return is_simple and not name.startswith("-") and name != "HEAD"


def _hooks_for(ref: str) -> tuple[str, ...]:
    """No hook hears of, or can refuse, what is kept for Rookery alone."""
    return ("-c", "core.hooksPath=/dev/null") if ref.startswith(SAVED) else ()


def _met_half_made(done: Finished) -> bool:
    """True if git died, before it did anything, of a worktree that another git is just making.

    Git looks through all worktrees for the branches that are checked out, and does not stand the moment in which the
    file that leads from a new one to its repository is there and still empty.
    """
    return done.status == _DIED and "worktrees/" in done.stderr and "/commondir" in done.stderr


def failure(done: Finished, args: tuple[str, ...]) -> Exception:
    """The error for a git command that failed."""
    said = done.last_words
    if any(words in said for words in _NOWHERE):
        return NoRepository(f"git finds no checkout here: {said}")
    if "index.lock" in said:
        return InvalidState(
            f"git is locked: {said}", hint="wait for the other git; if none runs, it was killed: remove the lock file"
        )
    return ProgramFailed(f"`git {' '.join(args)[:100]}` exited with {done.status}: {said}")


def git_version() -> str:
    """What `git --version` says of itself; raises ProgramFailed."""
    return run(["git", "--version"], timeout=10, env=child_environ()).stdout.removeprefix("git version ").strip()
