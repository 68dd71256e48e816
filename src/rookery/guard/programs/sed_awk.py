"""Judges sed and awk: whether their programs only print, and neither write files nor run commands."""

from __future__ import annotations

import re

from rookery.guard.command import Shell, Word
from rookery.guard.judge import Judge
from rookery.guard.paths import check_read, check_write
from rookery.guard.programs.options import read


def _delimited(name: str, parts: int) -> str:
    """A delimiter, and so many texts that end with it. None may stand in brackets, where programs differ."""
    other = f"(?!(?P={name}))"
    brackets = rf"\[(?:{other}(?:\\.|[^\\\]]))*{other}\]"
    return rf"(?P<{name}>[^\n\\])" + rf"(?:{other}(?:\\.|[^\\\[]|{brackets}))*+(?P={name})" * parts


_BETWEEN = r"[ \t\n;{}]*+"
_ADDRESSES = rf"(?:(?:(?=/)|\\){_delimited('address', 1)}[IM]*+|[\d$,!~+ \t])*+"
_SIMPLE = r"[=dDgGhHnNpPxzF{}]|[#aic](?:\\.?|[^\\\n])*+|[btT:][^;\n]*+|[qQlL][\d ]*+"
_CHANGING = rf"(?:s{_delimited('s', 2)}[gpiIMm0-9]*+|y{_delimited('y', 2)})(?=[ \t\n;}}]|\Z)"
_SED_SCRIPT = re.compile(rf"(?:{_BETWEEN}{_ADDRESSES}(?>{_SIMPLE}|{_CHANGING}))*+{_BETWEEN}", re.DOTALL)
"""A script of sed that only prints: addresses, then a simple command, `s` or `y`, one after the other."""
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
    return _SED_SCRIPT.fullmatch(script) is not None


def awk_only_prints(program: str) -> bool:
    """True if the program can neither redirect what it prints, nor pipe, nor run anything. Sometimes too careful."""
    if "system" in program or "@" in program or ("getline" in program and "|" in program):
        return False
    _, printed, behind = program.partition("print")
    if "/" not in program:
        behind = _STRING.sub("", behind)
    behind = behind.replace("||", "").replace(">=", "")
    return not printed or (">" not in behind and "|" not in behind)
