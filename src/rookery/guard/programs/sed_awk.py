"""Whether a sed or awk program only prints: neither writes files nor runs commands."""

from __future__ import annotations

_BARE = frozenset("=dDgGhHnNpPxzF")
_LABELLED = frozenset("btT:")
_COUNTED = frozenset("qQlL")


def sed_only_prints(script: str) -> bool:
    """True if every command of the script is understood, and none writes to a file or runs anything."""
    at = 0
    while True:
        while at < len(script) and script[at] in " \t\n;{}":
            at += 1
        if at >= len(script):
            return True
        end = _address(script, at)
        if end is None or end >= len(script):
            return False
        after = _command(script, end)
        if after is None:
            return False
        at = after


def _address(script: str, at: int) -> int | None:
    """Where the command begins that stands behind the addresses."""
    while at < len(script):
        character = script[at]
        if character == "/" or (character == "\\" and at + 1 < len(script)):
            start = at + 1 if character == "/" else at + 2
            end = _delimited(script, start, script[start - 1])
            if end is None:
                return None
            at = end
            while at < len(script) and script[at] in "IM":
                at += 1
        elif character.isdigit() or character in "$,!~+ \t":
            at += 1
        else:
            return at
    return at


def _command(script: str, at: int) -> int | None:
    command, at = script[at], at + 1
    if command in _BARE or command in "{}":
        return at
    if command in "#aic":
        while at < len(script) and script[at] != "\n":
            at += 2 if script[at] == "\\" else 1
        return at
    if command in _LABELLED:
        while at < len(script) and script[at] not in ";\n":
            at += 1
        return at
    if command in _COUNTED:
        while at < len(script) and (script[at].isdigit() or script[at] == " "):
            at += 1
        return at
    if command in "sy" and at < len(script):
        delimiter = script[at]
        middle = _delimited(script, at + 1, delimiter)
        end = middle and _delimited(script, middle, delimiter)
        while end is not None and command == "s" and end < len(script) and script[end] in "gpiIMm0123456789":
            end += 1
        return end if end is None or end >= len(script) or script[end] in " \t\n;}" else None
    return None


def _delimited(script: str, at: int, delimiter: str) -> int | None:
    """The place behind the next delimiter; None if there is none, or it stands in brackets, where programs differ."""
    if delimiter in "\n\\":
        return None
    brackets = False
    while at < len(script):
        character = script[at]
        if character == "\\":
            at += 2
            continue
        if character == delimiter:
            return None if brackets else at + 1
        brackets = character == "[" or (brackets and character != "]")
        at += 1
    return None


def awk_only_prints(program: str) -> bool:
    """True if the program can neither redirect what it prints, nor pipe, nor run anything. Sometimes too careful."""
    if "system" in program or "@" in program or ("getline" in program and "|" in program):
        return False
    printed = program.find("print")
    if printed < 0:
        return True
    behind = program[printed:]
    if "/" not in program:
        behind = _without_strings(behind)
    behind = behind.replace("||", "").replace(">=", "")
    return ">" not in behind and "|" not in behind


def _without_strings(program: str) -> str:
    kept, inside, characters = [], False, iter(program)
    for character in characters:
        if inside and character == "\\":
            next(characters, "")
        elif character == '"':
            inside = not inside
        elif not inside:
            kept.append(character)
    return "".join(kept)
