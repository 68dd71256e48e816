"""Where an agent may write and what it may read, after `~`, `..` and every symbolic link are resolved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from rookery.base import secret_paths
from rookery.base.file_scope import is_in_scope
from rookery.config import layout
from rookery.config.environ import read_environ
from rookery.guard.command import Word, names
from rookery.guard.judge import Judge

ANYWHERE = frozenset({".git"})
"""Never written, however deep it lies."""
AT_THE_TOP = names(
    f"{layout.FOLDER} .jj .claude .codex .gemini .opencode .mcp.json .envrc "
    "agents.md claude.md claude.local.md gemini.md"
)
"""Never written at the top of a worktree: what steers agents, and Rookery's own. Compared in lower case."""
INSTRUCTIONS = frozenset({"agents.md", "claude.md", "gemini.md"})
"""Of these, what a scope can give to an agent by naming it."""

_STATE_SECRETS = (layout.SESSIONS, layout.RUN, layout.ENVIRONMENT)
_PROCESS_SECRETS = ("environ", "mem", "auxv", "fd", "root", "cwd")

DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero")
MARKS = "*?["
"""Characters that make a word a pattern."""
_LONGEST = 4096

Folders = Iterable[str | None]
"""Where the shell may be; None stands for a folder that is not known."""


def check_write(
    judge: Judge,
    cwds: Folders,
    *words: Word,
    removes: bool = False,
    makes_folder: bool = False,
    restores: bool = False,
) -> None:
    """Deny unless every one of the paths may be written, whichever of the folders the shell is in.

    `restores`: they become what they are in the base, which an agent may do with files outside its scope, too.
    """
    for word in words:
        if not word.known:
            what = f"the path {word.text}…" if word.text else "the path that is written"
            judge.deny_unknown(what, "name the files, or run `find FOLDER -name PATTERN -exec COMMAND {} +`")
        if not word.text or "\0" in word.text or len(word.text) > _LONGEST:
            judge.deny("path", "the path is empty or broken", "name a file within your worktree")
        for cwd in sorted(cwds, key=lambda cwd: (cwd is None, cwd or "")):  # the same answer every time
            _check_write_from(judge, word, cwd, removes, makes_folder, restores)


def _check_write_from(
    judge: Judge, word: Word, cwd: str | None, removes: bool, makes_folder: bool, restores: bool
) -> None:
    if cwd is None and not os.path.isabs(word.text):
        hint = "name the file by its absolute path, or run `cd FOLDER` by itself before"
        judge.deny_unknown(f"the folder that {word.text} is in", hint)
    base, pattern = _split(word, cwd or "/")
    if ".." in pattern:
        judge.deny("path", f"{word.text} may lead anywhere", "name the folder without patterns before `..`")
    lexical = os.path.normpath(base)
    real = _resolve(base, follow_last=not removes or bool(pattern))
    if _is_device(real) or _is_device(lexical):
        return
    if _is_inside(real, judge.worktree):
        _check_own(judge, word, [*_parts(real, judge.worktree), *pattern], removes, makes_folder, restores)
        if _is_inside(lexical, judge.worktree):
            _check_protected(judge, word, [*_parts(lexical, judge.worktree), *pattern])
        return
    is_in_project = _is_inside(real, judge.root)
    if is_in_project or not _is_temporary(judge, word.text, real):
        where = "in another part of the project" if is_in_project else "outside of your worktree"
        hint = f"write within {judge.bounds.worktree}{_or_temp(judge)}"
        judge.deny("outside", f"{word.text} is {where}", hint)


def _check_own(judge: Judge, word: Word, path: list[str], removes: bool, makes_folder: bool, restores: bool) -> None:
    if not judge.role.can_write:
        judge.deny_to_reader("changes no files of the repository", "report it by mail", _or_temp(judge))
    _check_protected(judge, word, path)
    if removes and not path:
        judge.deny("path", "that is the worktree itself", "name what is in it")
    scope = judge.bounds.scope
    if scope and not restores and not is_in_scope(path, scope, makes_folder=makes_folder):
        hint = f"yours are {', '.join(scope)}; ask the agent that you answer to"
        judge.deny("scope", f"{word.text} is not among your files", hint)


def _check_protected(judge: Judge, word: Word, path: list[str]) -> None:
    parts = [part.lower() for part in path]
    if not any(_may_be(part, ANYWHERE) for part in parts) and not any(_may_be(part, AT_THE_TOP) for part in parts[:1]):
        return
    if parts[0] not in INSTRUCTIONS or "/".join(path) not in judge.bounds.scope:
        judge.deny("protected", f"{word.text} steers agents or version control", "leave it; report what should change")


def _may_be(part: str, names: Iterable[str]) -> bool:
    if not any(mark in part for mark in MARKS):
        return part in names
    return any(_matches(part, name) for name in names)


def check_read(judge: Judge, cwds: Folders, *words: Word, deep: bool = False) -> None:
    """Deny if one of the paths is a secret, or, read `deep`, holds the home folder with all of its secrets."""
    for word in words:
        if "\0" in word.text or len(word.text) > _LONGEST:
            judge.deny("path", "the path is broken", "name a file")
        for cwd in cwds if word.text else ():
            if cwd is not None or os.path.isabs(word.text):
                _check_read_from(judge, word, cwd or "/", deep)


def _check_read_from(judge: Judge, word: Word, cwd: str, deep: bool) -> None:
    base, pattern = _split(word, cwd)
    real = os.path.realpath(base)
    if any(_reaches(real, pattern, secret) for secret in _secrets(judge)) or _is_process_secret(real, pattern):
        judge.deny("secret", f"{word.text} holds secrets", "do without; ask for what you need by mail")
    if deep and _is_inside(_home(), real):
        judge.deny("secret", f"searching {word.text} reads secrets too", "search a narrower folder")


def folder_of(word: Word, cwd: str | None) -> str | None:
    """Where `cd` to the word leads, or None if that cannot be known."""
    if not word.known or word.glob or (cwd is None and not os.path.isabs(word.text)):
        return None
    return os.path.realpath(os.path.join(cwd or "/", word.text))


def enter(word: Word, cwd: str | None) -> frozenset[str | None]:
    """Where `cd` to the word may lead: `..` goes back by the path's own names, or, as in `cd -P`, where links lead."""
    real = folder_of(word, cwd)
    if real is None:
        return frozenset({None})
    named = os.path.normpath(os.path.join(cwd or "/", word.text))
    return frozenset({named} if os.path.realpath(named) == real else {named, real})


def is_there(judge: Judge, cwd: str | None) -> bool:
    """True if `cd` surely gets into the folder. A sandbox may show other things outside of the worktree."""
    return cwd is not None and is_in_worktree(judge, cwd) and os.path.isdir(cwd) and os.access(cwd, os.X_OK)


def is_in_worktree(judge: Judge, cwd: str | None) -> bool:
    """True if the folder is in the agent's own worktree."""
    return cwd is not None and _is_inside(os.path.realpath(cwd), judge.worktree)


def check_own_checkout(judge: Judge, cwds: Folders, program: str, subcommand: str) -> None:
    """Deny a command that changes a checkout to roles that only read, and outside of the agent's worktree."""
    if not judge.role.can_write:
        judge.deny_to_reader(f"does not {program} {subcommand}")
    if not all(is_in_worktree(judge, cwd) for cwd in cwds):
        hint = f"run it in {judge.bounds.worktree}"
        judge.deny(f"{program}-elsewhere", f"{program} {subcommand} would change another checkout", hint)


def may_run_in(judge: Judge, cwd: str | None) -> bool:
    """True if a program may run there: in the worktree, or in a temporary folder."""
    if cwd is None or is_in_worktree(judge, cwd):
        return cwd is not None
    real = os.path.realpath(cwd)
    return not _is_inside(real, judge.root) and _is_temporary(judge, real, real)


def is_guarded(judge: Judge, path: str, cwds: Folders) -> bool:
    """True if the path leads to what steers agents or version control, in the worktree or the project."""
    for cwd in cwds if judge.worktree != judge.root else ():
        real = os.path.realpath(os.path.join(cwd or "/", path))
        folder = judge.worktree if _is_inside(real, judge.worktree) else judge.root
        parts = [part.lower() for part in _parts(real, folder)] if _is_inside(real, folder) else []
        if not ANYWHERE.isdisjoint(parts) or parts[:1] in ([layout.FOLDER], [".jj"], [".claude"]):
            return True
    return False


def is_elsewhere(judge: Judge, path: str, cwds: Folders) -> bool:
    """True if the path leads into the project, but not into the agent's worktree."""
    reals = [os.path.realpath(os.path.join(cwd or "/", path)) for cwd in cwds]
    return any(_is_inside(real, judge.root) and not _is_inside(real, judge.worktree) for real in reals)


def _split(word: Word, cwd: str) -> tuple[str, list[str]]:
    """The path up to its first pattern, and the parts from there on."""
    text = os.path.join(cwd, word.text)
    if not word.glob:
        return text, []
    parts = text.split("/")
    first = next((i for i, part in enumerate(parts) if any(mark in part for mark in MARKS)), len(parts))
    return "/".join(parts[:first]) or "/", [part for part in parts[first:] if part not in ("", ".")]


def _resolve(path: str, *, follow_last: bool) -> str:
    if follow_last:
        return os.path.realpath(path)
    head, tail = os.path.split(path.rstrip("/") or "/")
    return os.path.join(os.path.realpath(head), tail) if tail not in ("", ".", "..") else os.path.realpath(path)


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _parts(path: str, folder: str) -> list[str]:
    return [part for part in path[len(folder) :].split("/") if part]


def _is_device(path: str) -> bool:
    return path in DEVICES or path.startswith(("/dev/fd/", "/dev/pts/"))


def _is_temporary(judge: Judge, text: str, real: str) -> bool:
    for folder in judge.bounds.temp:
        temp = os.path.realpath(folder)
        if real == temp or not _is_inside(real, temp) or _parts(real, temp)[0].startswith(("rookery-", "tmux-")):
            continue
        # A project that itself lies in a temporary folder is left by an absolute path, never by climbing out.
        if not (_is_inside(judge.root, temp) and (".." in text.split("/") or _is_inside(judge.root, real))):
            return True
    return False


def _or_temp(judge: Judge) -> str:
    return f", or in {judge.bounds.temp[0]}" if judge.bounds.temp else ""


def _home() -> str:
    return os.path.realpath(os.path.expanduser("~"))


def _secrets(judge: Judge) -> list[str]:
    home = _home()
    return [
        *(os.path.join(home, path) for path in secret_paths.IN_HOME),
        os.path.join(os.path.realpath(read_environ().state_home), "rookery"),
        *secret_paths.OF_THE_SYSTEM,
        *(layout.path(judge.root, path) for path in _STATE_SECRETS),
    ]


def _reaches(base: str, pattern: Sequence[str], secret: str) -> bool:
    if _is_inside(base, secret):
        return True
    if not pattern or not _is_inside(secret, base):
        return False
    return all(_matches(part, name) for part, name in zip(pattern, _parts(secret, base), strict=False))


def _is_process_secret(base: str, pattern: Sequence[str]) -> bool:
    parts = [*_parts(base, ""), *pattern]
    return parts[:1] == ["proc"] and len(parts) > 2 and _may_be(parts[-1], _PROCESS_SECRETS)


def _matches(pattern: str, name: str) -> bool:
    if name.startswith(".") and pattern[:1] in ("*", "?"):
        return False
    return fnmatchcase(name, pattern.replace("[^", "[!")) or (name.startswith(".") and pattern.startswith("["))
