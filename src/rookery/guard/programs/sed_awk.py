"""Judges sed and awk: whether their programs only print, and neither write files nor run commands."""

from __future__ import annotations

import re

from rookery.guard.command import Shell, Word
from rookery.guard.judge import Judge
from rookery.guard.paths import check_read, check_write
from rookery.guard.programs.options import read

_SIMPLE = re.compile(r"[=dDgGhHnNpPxzF{}]|[#aic](?:\\.?|[^\\\n])*|[btT:][^;\n]*|[qQlL][\d ]*", re.DOTALL)
"""The commands of sed that are harmless, but for `s` and `y`."""
_STRING = re.compile(r'"(?:\\.|[^"\\])*(?:"|\\?\Z)', re.DOTALL)


def check_sed(judge: Judge, _name: str, words: list[Word], shell: Shell) -> None:
    """Deny unless the script only prints, or changes files that may be written."""
    options = read(words, "efl", ("--expression", "--file", "--line-length"))
    is_in_place = options.has("-i", "--i", "--in-place")
    scripts = options.values("-e", "--expression")
    operands = list(options.operands)
    has_file = options.has("-f", "--file")
    if not scripts and not has_file and operands:
        scripts = [operands.pop(0)]
    is_known = not has_file and not options.may_hide_options and all(script.known for script in scripts)
    if not is_known and not judge.role.can_write:
        judge.deny_unknown("what sed would do")
    if any(script.known and not sed_only_prints(script.text) for script in scripts):
        judge.deny("script", "the sed script may write a file or run a command", "use plain s, d and p commands")
    check = check_write if is_in_place else check_read
    check(judge, shell.cwds, *operands)


def check_awk(judge: Judge, name: str, words: list[Word], shell: Shell) -> None:
    """Deny unless the program only prints."""
    options = read(words, "Fvf", ("--assign", "--field-separator", "--file"))
    operands = list(options.operands)
    has_file = options.has("-f", "--file")
    has_others = options.has_others(("-F", "-v", "-f", "--assign", "--field-separator"))
    if (has_others and not judge.role.can_write) or options.has(
        "-i", "--include", "-l", "--load", "-e", "--source", "-E", "--exec"
    ):
        judge.deny("script", f"{name} does more than print with such options", f"use {name} -F and -v only")
    program = operands.pop(0) if operands and not has_file else None
    if not judge.role.can_write and (has_file or (program is not None and not program.known)):
        judge.deny_unknown(f"what {name} would do")
    if program is not None and program.known and not awk_only_prints(program.text):
        judge.deny("script", f"the {name} program may write a file or run a command", "redirect in the shell instead")
    check_read(judge, shell.cwds, *operands)


def sed_only_prints(script: str) -> bool:
    """True if every command of the script is understood, and none writes to a file or runs anything."""
    at: int | None = 0
    while at is not None:
        at = _skip(" \t\n;{}", script, at)
        if at >= len(script):
            return True
        start = _skip_address(script, at)
        at = None if start is None else _skip_command(script, start)
    return False


def _skip(characters: str, script: str, at: int) -> int:
    while at < len(script) and script[at] in characters:
        at += 1
    return at


def _skip_address(script: str, at: int) -> int | None:
    """Where the command begins that follows the addresses; None without one."""
    while at < len(script):
        character = script[at]
        if character == "/" or (character == "\\" and at + 1 < len(script)):
            start = at + 1 if character == "/" else at + 2
            end = _skip_delimited(script, start, script[start - 1])
            if end is None:
                return None
            at = _skip("IM", script, end)
        elif character.isdigit() or character in "$,!~+ \t":
            at += 1
        else:
            return at
    return None


def _skip_command(script: str, at: int) -> int | None:
    """The place behind a harmless command; None if it is another one."""
    simple = _SIMPLE.match(script, at)
    if simple:
        return simple.end()
    command = script[at]
    if command not in "sy" or at + 1 == len(script):
        return None
    middle = _skip_delimited(script, at + 2, script[at + 1])
    end = middle and _skip_delimited(script, middle, script[at + 1])
    if end is None:
        return None
    if command == "s":
        end = _skip("gpiIMm0123456789", script, end)
    return end if script[end : end + 1] in ("", " ", "\t", "\n", ";", "}") else None


def _skip_delimited(script: str, at: int, delimiter: str) -> int | None:
    """The place behind the next delimiter; None if there is none, or it is in brackets, where programs differ."""
    if delimiter in "\n\\":
        return None
    no_end = f"(?!{re.escape(delimiter)})"
    brackets = rf"\[(?:{no_end}(?:\\.|[^\\\]]))*{no_end}\]"
    text = re.compile(rf"(?:{no_end}(?:\\.|[^\\\[]|{brackets}))*", re.DOTALL).match(script, at)
    end = text.end() if text else at
    return end + 1 if script[end : end + 1] == delimiter else None


def awk_only_prints(program: str) -> bool:
    """True if the program can neither redirect what it prints, nor pipe, nor run anything. Sometimes too careful."""
    if "system" in program or "@" in program or ("getline" in program and "|" in program):
        return False
    _, printed, behind = program.partition("print")
    if "/" not in program:
        behind = _STRING.sub("", behind)
    behind = behind.replace("||", "").replace(">=", "")
    return not printed or (">" not in behind and "|" not in behind)
