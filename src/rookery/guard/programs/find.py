"""Judges `find`: where it searches, what it deletes or writes, and what it runs on the files that it finds."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from itertools import dropwhile, islice, takewhile

from rookery.guard.command import UNKNOWN, Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import AT_THE_TOP, check_read, check_write

_VALUED = names(
    "-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -regextype -type -xtype -newer "
    "-anewer -cnewer -mtime -atime -ctime -mmin -amin -cmin -size -maxdepth -mindepth -perm -user -group -uid -gid "
    "-printf -samefile -inum -links -fstype -used -newermt -context -D"
)
_RUNS = names("-exec -execdir -ok -okdir")
_PRINTS = names("-fprint -fprint0 -fls -fprintf")
_PROTECTED = (*AT_THE_TOP, ".git", "settings.json", "settings.local.json", "head", "config", "index", "hooks")


def check(judge: Judge, words: list[Word], shell: Shell) -> list[tuple[list[Word], Shell]]:
    """Deny what it would read, delete or write itself; the commands that it runs."""
    words = list(dropwhile(lambda word: word.known and word.text in ("-H", "-L", "-P"), words))
    starts = list(takewhile(lambda word: not word.text.startswith(("-", "(", "!")), words))
    expression = words[len(starts) :]
    starts = starts or [Word(".")]
    for start in starts:
        if not start.known and not start.text:
            judge.deny_unknown("where find searches")
        check_read(judge, shell.cwds, start)
    samples = [_sample(judge, start, expression, shell) for start in starts]
    inner, parts = [], iter(expression)
    for word in parts:
        if not word.known:
            judge.deny_unknown("an option of find")
        if word.text in _VALUED:
            next(parts, None)
        elif word.text == "-delete":
            check_write(judge, shell.cwds, *samples, removes=True)
        elif word.text in _PRINTS:
            check_write(judge, shell.cwds, *islice(parts, 1))
            if word.text == "-fprintf":
                next(parts, None)
        elif word.text in _RUNS:
            command = list(takewhile(lambda part: part.text not in (";", "+"), parts))
            cwds = frozenset({None}) if word.text in ("-execdir", "-okdir") else shell.cwds
            around = shell.replace(cwds=cwds, stdin=None, is_piped=False)
            inner += [([_fill(part, sample) for part in command], around) for sample in samples]
    return inner


def _fill(word: Word, path: Word) -> Word:
    if word.text == "{}":
        return path
    return UNKNOWN if "{}" in word.text else word


def _sample(judge: Judge, start: Word, expression: list[Word], shell: Shell) -> Word:
    """A path that stands for every file that may match: a protected one if one of those may match."""
    if start.glob or not start.known:
        return start if start.glob else UNKNOWN
    patterns = [
        expression[i + 1]
        for i, word in enumerate(expression[:-1])
        if word.text in ("-name", "-iname") and (i == 0 or expression[i - 1].text not in ("!", "-not"))
    ]
    has_or = any(word.text in ("-o", "-or", ",") for word in expression)
    is_open = not patterns or not all(word.known for word in patterns) or (has_or and len(patterns) < 2)
    may_match = is_open or any(fnmatchcase(name, word.text.lower()) for name in _PROTECTED for word in patterns)
    is_protected = may_match and _covers_worktree(judge, start, shell)
    return Word(os.path.join(start.text.rstrip("/") or "/", ".git" if is_protected else "found"))


def _covers_worktree(judge: Judge, start: Word, shell: Shell) -> bool:
    """True if it searches the whole worktree, or more."""
    reals = [os.path.realpath(os.path.join(cwd or "/", start.text)) for cwd in shell.cwds]
    return any(f"{judge.worktree}/".startswith(real.rstrip("/") + "/") for real in reals)
