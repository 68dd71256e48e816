"""A git repository without its checkout: commits, refs and ancestry. The one place that starts git.

Behind every jj repository lies such a store too, so both backends use it.
"""

from __future__ import annotations

import os
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rookery.base.call import sleep
from rookery.base.errors import InvalidInput, InvalidState, NoRepository, ProgramFailed
from rookery.config.environ import child_environ
from rookery.config.project import git_folder
from rookery.processes import process
from rookery.processes.process import Finished, Watch, run, run_bytes
from rookery.vcs import cage
from rookery.vcs.folders import read_line
from rookery.vcs.git import locks as git_locks
from rookery.vcs.git.pointers import common_folder
from rookery.vcs.git.porcelain import parse_diff
from rookery.vcs.git.refs import AskGit, RefFiles
from rookery.vcs.model import EMAIL, NAME, FileDiff, RefMoved, UnknownRevision, moved
from rookery.vcs.ref_names import HEADS, SAVED

Env = Mapping[str, str]

# The user's own settings must not change what we read.
DIFF = (
    *("-c", "diff.autoRefreshIndex=true", "diff", "--no-color", "--no-ext-diff"),
    *("--no-textconv", "--no-relative", "--find-renames", "--ignore-submodules=none"),
)
COUNTED = ("--raw", "--numstat", "-z", "--no-abbrev")
PATCH = ("--patch", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
LOG = ("log", "--no-show-signature", "--encoding=UTF-8")
NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
"""The environment in which a path names itself, whatever characters it has."""

_READING = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_WRITING = {"GIT_TERMINAL_PROMPT": "0"}
_DIED = 128
_WAITS = (0.01, 0.03, 0.1, 0.3, 1.0)
_PLAIN = frozenset(string.ascii_letters + string.digits + "_-")
_LOCKED = (".lock'", "lock config file", "packed-refs.new")
"""What git's error contains if a lock file stops it, in every language but for the second."""
_NOWHERE = ("not a git repository", "must be run in a work tree")


@dataclass(frozen=True, eq=False)
class GitStore:
    """The repository that git finds in `folder`, or at `options` such as `--git-dir`."""

    folder: str
    timeout: float
    options: tuple[str, ...] = ()
    env: Env = field(default_factory=dict)
    known: dict[tuple[str, ...], Any] = field(default_factory=dict)
    """Facts about commits, by their ids: they never change."""

    def at(self, folder: str) -> GitStore:
        """The same repository for another checkout."""
        return replace(self, folder=folder, env={**self.env, "GIT_CEILING_DIRECTORIES": os.path.dirname(folder)})

    def writing_to(self, folder: str) -> GitStore:
        """The same repository, whose new objects git writes into a folder of their own."""
        objects = self.objects
        if ":" in objects or objects.startswith('"'):  # colons separate the folders of this list
            objects = '"' + objects.replace("\\", "\\\\").replace('"', '\\"') + '"'
        env = {**self.env, "GIT_OBJECT_DIRECTORY": folder, "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
        return replace(self, env=env, known=dict(self.known))

    @property
    def objects(self) -> str:
        """Where the repository keeps its objects."""
        return os.path.join(self.common, "objects")

    @cached_property
    def common(self) -> str:
        """The folder that all worktrees of the repository share."""
        return common_folder(self.own_folder())

    def own_folder(self) -> str:
        """The folder that git keeps for this checkout alone; git is asked only where `.git` does not tell."""
        own = None if self.options else git_folder(self.folder)
        if own is not None and os.path.isfile(os.path.join(own, "HEAD")):
            return own
        return self.read("rev-parse", "--absolute-git-dir").rstrip("\n")

    @cached_property
    def files(self) -> RefFiles:
        """The refs and checkouts, as far as their files tell."""
        return RefFiles(self.common)

    def read(self, *args: str, stdin: str | None = None, env: Env | None = None) -> str:
        """What git prints for a question that changes nothing; raises if it fails."""
        return self._check(args, stdin, {**_READING, **(env or {})})

    def read_list(self, *args: str, stdin: str | None = None, env: Env | None = None) -> list[str]:
        """The fields, each ended by NUL, that git prints for a question."""
        return self.read(*args, stdin=stdin, env=env).split("\0")[:-1]

    def read_parents(self, *args: str, stdin: str | None = None) -> dict[str, list[str]]:
        """The commits that `git rev-list` lists, each with its parents."""
        lines = self.read("rev-list", "--parents", *args, stdin=stdin).splitlines()
        return {commit: parents for commit, *parents in map(str.split, lines)}

    def read_log(self, fields: Sequence[str], *args: str) -> list[tuple[str, ...]]:
        """The fields of the commits that `git log` lists."""
        values = self.read_list(*LOG, "-z", "--no-patch", "--format=tformat:" + "%x00".join(fields), *args)
        return list(zip(*[iter(values)] * len(fields), strict=True))

    def first_parents(self, tip: str, without: str, limit: int) -> list[tuple[str, ...]]:
        """What a branch went through that a commit lacks, the newest first: commit, author and subject."""
        return self.read_log(("%H", "%an", "%s"), "--first-parent", f"--max-count={limit}", tip, f"^{without}", "--")

    def ask(self, *args: str) -> str | None:
        """What git prints for a question that may have no answer, without the end of its line."""
        done = self.run(*args, env=_READING)
        if done.status not in (0, 1):
            raise failure(done, args)
        return done.stdout.removesuffix("\n") if done.ok else None

    def write(self, *args: str, stdin: str | None = None, env: Env | None = None) -> None:
        """Run a command that changes the repository; raises if it fails."""
        self._check(args, stdin, {**_WRITING, **(env or {})})

    def _check(self, args: tuple[str, ...], stdin: str | None, env: Env) -> str:
        done = self.run(*args, stdin=stdin, env=env)
        if not done.ok:
            raise failure(done, args)
        return done.stdout

    def run(self, *args: str, stdin: str | None = None, env: Env | None = None, watch: Watch | None = None) -> Finished:
        """Run git to its end, whether it fails or not; once more if only the lock of a killed git stopped it."""
        argv, whole = self._command(args, env)
        done = self._run(argv, whole, stdin, watch)
        if done.ok or not any(mark in done.stderr for mark in _LOCKED):
            return done
        paths = git_locks.named(done.stderr, self.folder)
        held = git_locks.remove_dead(paths)
        if held:
            reasons = "".join(f"{path} stays: {reason}\n" for path, reason in held.items())
            return done.replace(stderr=f"{done.stderr.rstrip()}\n{reasons}")
        return self._run(argv, whole, stdin, watch) if paths else done

    def _command(self, args: tuple[str, ...], env: Env | None) -> tuple[list[str], dict[str, str]]:
        """The words and the environment with which git is started."""
        whole = {**child_environ(), **self.env, **(env or {})}
        git, words = ["git", "--no-pager"], [*self.options, *args]
        own_cage = cage.find(self.folder)
        return [*git, *words] if own_cage is None else own_cage.wrap(git, self.folder, words, whole), whole

    @contextmanager
    def beside(
        self, *args: str, stdin: str | None = None, env: Env | None = None
    ) -> Iterator[Callable[[], str | None]]:
        """Ask git something while the block asks it something else; the answer is None if it fails in any way.

        Where there is no answer, the caller asks again and sees the error.
        """
        argv, whole = self._command(args, {**_READING, **(env or {})})
        with process.in_background(argv, cwd=self.folder, timeout=self.timeout, env=whole, stdin=stdin) as finish:

            def answer() -> str | None:
                with suppress(ProgramFailed):
                    done = finish()
                    return done.stdout if done.ok else None
                return None

            yield answer

    def _run(self, argv: list[str], env: dict[str, str], stdin: str | None, watch: Watch | None) -> Finished:
        for wait in (*_WAITS, None):
            done = run(argv, cwd=self.folder, timeout=self.timeout, env=env, stdin=stdin, check=False, watch=watch)
            if wait is None or not _died_of_half_made(done):
                break
            sleep(wait)
        return done

    def read_bytes(self, *args: str, stdin: bytes = b"", env: Env | None = None) -> bytes:
        """What git prints, byte by byte; raises if it fails."""
        argv, whole = self._command(args, {**_READING, **(env or {})})
        return run_bytes(argv, cwd=self.folder, timeout=self.timeout, env=whole, stdin=stdin)

    def find_commit(self, *names: str) -> str | None:
        """The commit of the first name that stands for one.

        The names go in by standard input, so that none can be taken as an option.
        """
        if any(char in name for name in names for char in "\n\0"):
            return None
        return next(iter(self.find_commits(names)), None)

    def find_commits(self, names: Iterable[str]) -> list[str]:
        """The commits that those of some names stand for that stand for one."""
        answers = self.read("cat-file", "--batch-check", stdin="".join(f"{name}^{{commit}}\n" for name in names))
        return [words[0] for words in map(str.split, answers.split("\n")) if len(words) == 3 and words[1] == "commit"]

    def get_commit(self, *names: str) -> str:
        """The same; raises UnknownRevision."""
        commit = self.find_commit(*names)
        if commit is None:
            raise UnknownRevision(f"{names[-1]!r} is not a commit here")
        return commit

    def ref(self, name: str) -> str | None:
        """The id that a ref holds, None if there is no such ref."""
        if "\0" in name or "\n" in name:
            return None
        try:
            return self.files.read(name)
        except AskGit:
            return self._listed_refs(name).get(name)

    def refs(self, under: str) -> dict[str, str]:
        """Every ref under a folder of refs, without that folder, and the commit that it is at."""
        try:
            refs = self.files.under(under)
        except AskGit:
            refs = self._listed_refs(under)
        return {name.removeprefix(under): commit for name, commit in refs.items()}

    def count_refs(self, under: str) -> int:
        """How many refs there are under a folder of refs."""
        try:
            return len(self.files.names_under(under))
        except AskGit:
            return len(self._listed_refs(under))

    def symbolic(self, name: str) -> str | None:
        """The ref that a symbolic one leads to, None if it is not there or is not symbolic."""
        if not self.files.is_plain:
            return self.ask("symbolic-ref", "--quiet", name)
        content = read_line(os.path.join(self.common, name))  # git packs no symbolic ref
        return content.removeprefix("ref: ") if content.startswith("ref: ") else None

    def _listed_refs(self, pattern: str) -> dict[str, str]:
        lines = self.read("for-each-ref", "--format=%(refname)%00%(objectname)", pattern).splitlines()
        return {name: commit for name, _, commit in (line.partition("\0") for line in lines)}

    def change_ref(self, ref: str, *, old: str | None, new: str | None) -> None:
        """Make, move or (without `new`) delete a ref that is still at `old`, else raises RefMoved.

        There already at `new` is fine. What the ref may lead to stays.
        """
        hooks = NO_HOOKS if ref.startswith(SAVED) else ()  # nothing of the user's has a say in what is ours alone
        why, words = ("replace" if old else "create", (ref, new)) if new else ("delete", ("-d", ref))
        done = self.run(*hooks, "update-ref", "--no-deref", "-m", f"rook: {why}", *words, old or "", env=_WRITING)
        if done.ok:
            return
        current = self.ref(ref)
        if current == old:
            raise failure(done, ("update-ref",))
        if new is None or current != new:
            raise moved(ref.removeprefix(HEADS), old or new, current)

    def delete_refs(self, refs: Mapping[str, str]) -> None:
        """Delete refs of Rookery's own that are still where the caller saw them; all, or none."""
        lines = "".join(f"delete {ref} {commit}\n" for ref, commit in refs.items())
        self.write(*NO_HOOKS, "update-ref", "--no-deref", "-m", "rook: prune", "--stdin", stdin=lines)

    def delete_ref_at(self, ref: str, commit: str) -> None:
        """Delete a ref of Rookery's own; one that another process has moved or deleted stays as it is."""
        with suppress(RefMoved):
            self.change_ref(ref, old=commit, new=None)

    def check_saved_name(self, name: str) -> None:
        """Raise InvalidInput if no ref under `refs/rookery/` can have this name."""
        if not is_plain_name(name) and ("\0" in name or not self.run("check-ref-format", SAVED + name).ok):
            raise InvalidInput(f"{name!r} cannot be the name of a ref", hint="see `git help check-ref-format`")

    def check_branch_name(self, name: str) -> None:
        """Raise InvalidInput if no branch can have this name."""
        if is_plain_name(name):
            return
        # Git takes `@{-1}` for the branch before: only a name that stands for itself is one.
        if "\0" in name or self.run("check-ref-format", "--branch", name).stdout != name + "\n":
            raise InvalidInput(f"{name!r} cannot be the name of a branch", hint="see `git help check-ref-format`")

    def check_branch(self, name: str) -> None:
        """Raise UnknownRevision if there is no such branch."""
        self.check_branch_name(name)
        if self.ref(HEADS + name) is None:
            raise UnknownRevision(f"there is no branch {name}")

    def contains(self, commit: str, within: str) -> bool:
        """True if a commit is another or one of its ancestors. Both are ids."""
        key = ("contains", commit, within)
        if key not in self.known:
            self.known[key] = commit == within or self.ask("merge-base", "--is-ancestor", commit, within) is not None
        return bool(self.known[key])

    def count_commits(self, tip: str, base: str) -> int:
        """How many commits one contains that the other does not."""
        return int(self.read("rev-list", "--count", tip, f"^{base}", "--"))

    def count_many(self, tips: Iterable[str], base: str) -> dict[str, int]:
        """The same for each of many commits, by one git."""
        asked = list(dict.fromkeys(tips))
        parents = self.read_parents("--stdin", stdin="".join(f"{tip}\n" for tip in (*asked, f"^{base}")))
        return {tip: len(_ancestors(tip, parents)) for tip in asked}

    def commits_without_branch(self, tips: Iterable[str]) -> dict[str, list[str]]:
        """All that some commits lead to and no branch, tag or remote does, each with its parents."""
        asked = "".join(f"{tip}\n" for tip in dict.fromkeys(tips))
        return self.read_parents("--stdin", "--not", "--branches", "--tags", "--remotes", stdin=asked) if asked else {}

    def fork_point(self, base: str, tip: str) -> str | None:
        """Where two commits parted; None if they have nothing in common."""
        commits = self.ask("merge-base", base, tip)
        return None if commits is None else commits.split()[0]

    def empty_tree(self) -> str:
        """What the first commit is compared with."""
        return self.read("hash-object", "-t", "tree", "--stdin", stdin="").strip()

    def tree_paths(self, revision: str) -> list[str]:
        """Every file of a commit or tree."""
        return self.read_list("ls-tree", "-r", "-z", "--name-only", "--full-tree", revision)

    def untracked(self, *options: str, env: Env | None = None) -> list[str]:
        """What git neither tracks nor ignores; a repository inside this one ends in `/`."""
        return self.read_list("ls-files", "-z", "--others", "--exclude-standard", *options, env=env)

    def diff(self, old: str, new: str) -> list[FileDiff]:
        """What changed between two commits or trees."""
        return parse_diff(self.read(*DIFF, *COUNTED, old, new, "--"))

    def commit_tree(self, tree: str, parents: Sequence[str], message: str, env: Env | None = None) -> str:
        """A commit by the user, to which no ref leads yet."""
        words = ("commit-tree", tree, *(word for parent in parents for word in ("-p", parent)), "-F", "-")
        try:  # without this option git makes a user up from the machine's names where it knows none
            return self.read("-c", "user.useConfigOnly=true", *words, stdin=message, env=env).strip()
        except ProgramFailed:
            return self.read(*self.identity_options(), *words, stdin=message, env=env).strip()

    def identity(self) -> dict[str, str]:
        """The name and address that the user has set in git, else Rookery's own."""
        text = self.ask("config", "-z", "--get-regexp", r"^user\.(name|email)$") or ""
        settings = dict(entry.split("\n", 1) for entry in text.split("\0") if "\n" in entry)
        return {"user.name": settings.get("user.name") or NAME, "user.email": settings.get("user.email") or EMAIL}

    def identity_options(self) -> list[str]:
        """The options by which git commits under that name."""
        return [word for key, value in self.identity().items() for word in ("-c", f"{key}={value}")]


def _ancestors(tip: str, parents: Mapping[str, Sequence[str]]) -> set[str]:
    """A commit and all that it leads to, of those whose parents are known."""
    seen: set[str] = set()
    left = [tip]
    while left:
        commit = left.pop()
        if commit in parents and commit not in seen:
            seen.add(commit)
            left += parents[commit]
    return seen


def open_store(folder: str, timeout: float) -> GitStore:
    """The repository of a checkout. A broken `.git` must not lead git on to one further up."""
    return GitStore(folder, timeout, env={"GIT_CEILING_DIRECTORIES": os.path.dirname(folder)})


def is_plain_name(name: str) -> bool:
    """True if the name is so simple that git need not be asked whether a branch can have it."""
    is_simple = all(word and _PLAIN.issuperset(word) for word in name.split("/"))
    return is_simple and not name.startswith("-") and name != "HEAD"


def _died_of_half_made(done: Finished) -> bool:
    """True if git died, before it did anything, of a worktree that another git is just making.

    Git looks through all worktrees for the branches that are checked out, and fails while the file
    that leads from a new one to its repository is there and still empty.
    """
    return done.status == _DIED and "worktrees/" in done.stderr and "/commondir" in done.stderr


def failure(done: Finished, args: tuple[str, ...]) -> Exception:
    """The error for a git command that failed."""
    output = done.last_output
    if any(words in output for words in _NOWHERE):
        return NoRepository(f"git finds no checkout here: {output}")
    if "index.lock" in output:
        return InvalidState(
            f"git is locked: {output}", hint="wait for the other git; if none runs, it was killed: remove the lock file"
        )
    return ProgramFailed(f"`git {' '.join(args)[:100]}` exited with {done.status}: {output}")


def git_version() -> str:
    """The version that `git --version` prints; raises ProgramFailed."""
    return run(["git", "--version"], timeout=10, env=child_environ()).stdout.removeprefix("git version ").strip()
