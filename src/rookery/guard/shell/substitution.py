"""What the shell's own variables, and commands in substitutions, print where everyday use makes that certain."""

from __future__ import annotations

import os

from rookery.guard.command import UNKNOWN, Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import is_in_worktree

_NUMBERS = names("? $ # RANDOM SECONDS UID EUID PPID LINENO EPOCHSECONDS SRANDOM")
PRESET = _NUMBERS | names("HOME PWD OLDPWD TMPDIR")
"""Variables that count as known although the script does not set them."""
_COUNTERS = names("date nproc seq")
NUMBER = Word("7")
"""Stands for any number."""
_COMMIT = Word("0000000000000000000000000000000000000000")


def home() -> Word:
    """The home folder."""
    return Word(os.path.expanduser("~"))


def preset_values(judge: Judge, name: str, shell: Shell) -> list[Word]:
    """The values of a variable that the script itself does not set."""
    bounds = judge.bounds
    if name == "PWD":
        return [UNKNOWN if cwd is None else Word(cwd) for cwd in shell.cwds]
    if name in _NUMBERS:
        return [NUMBER]
    if name == "!":
        return [NUMBER, Word("")]
    if name == "HOME":
        return [home()]
    texts = {"TMPDIR": "".join(bounds.temp[:1]), "ROOKERY_ROOT": bounds.root, "ROOKERY_AGENT": bounds.agent}
    return [Word(texts[name]) if texts.get(name) else UNKNOWN]


def printed(judge: Judge, words: list[str], shell: Shell) -> Word:
    """The output of a command; UNKNOWN where that is not certain."""
    name, *rest = words
    cwd = next(iter(shell.cwds)) if len(shell.cwds) == 1 else None
    if name == "pwd" and not rest and cwd is not None:
        return Word(cwd)
    if name in _COUNTERS and not any("/" in word or word == "-f" for word in rest):
        return NUMBER
    if name == "mktemp" and rest in ([], ["-d"]) and judge.bounds.temp:
        return Word(os.path.join(judge.bounds.temp[0], "tmp.rook"))
    if words == ["id", "-u"]:
        return NUMBER
    if name == "git" and rest:
        return _git(judge, rest, cwd)
    return UNKNOWN


def _git(judge: Judge, words: list[str], cwd: str | None) -> Word:
    if is_in_worktree(judge, cwd) and words == ["rev-parse", "--show-toplevel"]:
        return Word(judge.worktree)
    if is_in_worktree(judge, cwd) and words in (["branch", "--show-current"], ["rev-parse", "--abbrev-ref", "HEAD"]):
        return Word(judge.bounds.branch)
    flags = {word for word in words[1:] if word.startswith("-")}
    is_commit = words[0] in ("merge-base", "rev-parse") and flags <= {"--short", "--verify", "--fork-point", "-q"}
    return _COMMIT if is_commit else UNKNOWN
