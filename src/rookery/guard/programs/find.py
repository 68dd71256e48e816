"""Judges `find`: where it looks, what it deletes or writes, and what it runs on what it finds."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from rookery.guard.command import Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import AT_THE_TOP, check_read, check_write

_VALUED = names(
    "-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -regextype -type -xtype -newer "
    "-anewer -cnewer -mtime -atime -ctime -mmin -amin -cmin -size -maxdepth -mindepth -perm -user -group -uid -gid "
    "-printf -samefile -inum -links -fstype -used -newermt -context -D"
)
_RUNS = names("-exec -execdir -ok -okdir")
_PRINTS = names("-fprint -fprint0 -fls -fprintf")
_HELD = (*AT_THE_TOP, ".git", "settings.json", "settings.local.json", "head", "config", "index", "hooks")


def check(judge: Judge, words: list[Word], shell: Shell) -> list[tuple[list[Word], Shell]]:
    """The commands that it runs."""
    starts, at = [], 0
    while at < len(words) and words[at].known and words[at].text in ("-H", "-L", "-P"):
        at += 1
    while at < len(words) and not words[at].text.startswith(("-", "(", "!")):
        starts.append(words[at])
        at += 1
    starts = starts or [Word(".")]
    for start in starts:
        if not start.known and not start.text:
            judge.deny_unknown("where find looks")
        check_read(judge, start, shell.cwds)
    expression = words[at:]
    found = [_found(judge, start, expression, shell) for start in starts]
    inner, at = [], 0
    while at < len(expression):
        word = expression[at]
        at += 1
        if not word.known:
            judge.deny_unknown("an option of find")
        if word.text in _VALUED:
            at += 1
        elif word.text == "-delete":
            for each in found:
                check_write(judge, each, shell.cwds, removes=True)
        elif word.text in _PRINTS:
            if at < len(expression):
                check_write(judge, expression[at], shell.cwds)
            at += 2 if word.text == "-fprintf" else 1
        elif word.text in _RUNS:
            end = next((i for i in range(at, len(expression)) if expression[i].text in (";", "+")), len(expression))
            command = expression[at:end]
            here = shell.replace(cwds=frozenset({None})) if word.text in ("-execdir", "-okdir") else shell
            here = here.replace(stdin=None, is_piped=False)
            inner += [([_filled(each, place) for each in command], here) for place in found]
            at = end + 1
    return inner


def _filled(word: Word, place: Word) -> Word:
    if word.text == "{}":
        return place
    return Word("", known=False) if "{}" in word.text else word


def _found(judge: Judge, start: Word, expression: list[Word], shell: Shell) -> Word:
    """A path that stands for all that may be found: one that is held, where something held may be among them."""
    if not start.known or start.glob:
        return start if start.glob else Word("", known=False)
    names = [
        expression[i + 1]
        for i, word in enumerate(expression[:-1])
        if word.text in ("-name", "-iname") and (i == 0 or expression[i - 1].text not in ("!", "-not"))
    ]
    either = any(word.text in ("-o", "-or", ",") for word in expression)
    here = start.text.rstrip("/") or "/"
    if not names or not all(each.known for each in names) or (either and len(names) < 2):
        return Word(os.path.join(here, ".git" if _is_wide(judge, start, shell) else "found"))
    if _is_wide(judge, start, shell) and any(fnmatchcase(h, name.text.lower()) for h in _HELD for name in names):
        return Word(os.path.join(here, ".git"))
    return Word(os.path.join(here, "found"))


def _is_wide(judge: Judge, start: Word, shell: Shell) -> bool:
    """True if the whole worktree, or more, is looked through."""
    worktree = os.path.realpath(judge.bounds.worktree)
    for cwd in shell.cwds:
        real = os.path.realpath(os.path.join(cwd or "/", start.text))
        if worktree == real or worktree.startswith(real.rstrip("/") + "/"):
            return True
    return False
