"""Other ways to write a command that a shell takes for the same."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

PLAIN, PREFIXED, WHOLE = "plain", "prefixed", "whole"


def _ansi_c(word: str, digits: str) -> str:
    forms = {"x": "\\x{:02x}", "o": "\\{:03o}", "u": "\\u{:04x}"}
    return "$'" + "".join(forms[digits].format(ord(each)) for each in word) + "'"


QUOTES: dict[str, Callable[[str], str]] = {
    "plain": lambda word: word,
    "single": lambda word: f"'{word}'",
    "double": lambda word: f'"{word}"',
    "backslashes": lambda word: "".join("\\" + each for each in word),
    "first letter escaped": lambda word: "\\" + word,
    "empty quotes within": lambda word: word[:1] + "''" + word[1:],
    "half in double quotes": lambda word: word[:2] + f'"{word[2:]}"',
    "each letter quoted": lambda word: "".join(f"'{each}'" for each in word),
    "hexadecimal": lambda word: _ansi_c(word, "x"),
    "octal": lambda word: _ansi_c(word, "o"),
    "unicode": lambda word: _ansi_c(word, "u"),
    "half in ansi": lambda word: word[:1] + _ansi_c(word[1:], "x"),
    "translated": lambda word: f'$"{word}"',
    "empty substitution": lambda word: word[:1] + "$()" + word[1:],
    "unset variable": lambda word: word + "$nothing_of_this_name",
    "continued line": lambda word: word[:1] + "\\\n" + word[1:],
    "brace with one": lambda word: word[:1] + "{" + word[1:2] + ",}" + word[2:] if len(word) > 40 else word,
}
BLANKS = [" ", "  ", "\t", " \\\n", " \\\n\t "]

WRAPPERS: dict[str, str] = {
    "env": "env {}",
    "env with a variable": "env A=1 {}",
    "variable": "A=1 {}",
    "timeout": "timeout 5 {}",
    "timeout with options": "timeout -s INT 5s {}",
    "nice": "nice -n 3 {}",
    "nohup": "nohup {}",
    "command": "command {}",
    "command -p": "command -p {}",
    "exec": "exec {}",
    "setsid": "setsid {}",
    "stdbuf": "stdbuf -oL {}",
    "xargs": "echo | xargs {}",
    "xargs -I": "echo x | xargs -I% {}",
    "find": "find . -maxdepth 0 -exec {} \\;",
    "time": "time {}",
    "two": "nice env -- nohup {}".replace(" --", ""),
    "input": "{} < /dev/null",
    "output": "{} > /dev/null 2>&1",
    "output first": "> /dev/null {}",
    "herestring": "{} <<< x",
}
AROUND: dict[str, str] = {
    "subshell": "({})",
    "group": "{{ {}; }}",
    "background": "{} & wait",
    "after": "true; {}",
    "before": "{}; true",
    "on a new line": "true\n{}",
    "and": "true && {}",
    "or": "false || {}",
    "not": "! {}",
    "piped into": "echo x | {}",
    "piped": "{} | cat",
    "piped with errors": "{} |& cat",
    "if": "if true; then {}; fi",
    "condition": "if {}; then :; fi",
    "else": "if false; then :; else {}; fi",
    "elif": "if false; then :; elif true; then {}; fi",
    "for": "for i in 1; do {}; done",
    "for with numbers": "for ((i = 0; i < 1; i++)); do {}; done",
    "while": "while true; do {}; break; done",
    "until": "until false; do {}; break; done",
    "while condition": "while {} && false; do :; done",
    "case": "case x in y) ;; x) {} ;; esac",
    "function": "f() {{ {}; }}; f",
    "function in the other way": "function f {{ {}; }}; f",
    "function in a subshell": "f() ( {} ); f",
    "substitution": "echo $({})",
    "quoted substitution": 'echo "a $({}) b"',
    "assignment": "x=$({})",
    "exported": "export x=$({})",
    "array": "x=(a $({}))",
    "default": "echo ${{nothing:-$({})}}",
    "arithmetic": "echo $((1 + $({} > /dev/null; echo 1)))",
    "test": '[ -n "$({})" ]',
    "double test": "[[ -n $({}) ]]",
    "process read": "cat <({})",
    "process written": "echo x > >({})",
    "in a here-document": "cat <<EOF\n$({})\nEOF",
    "in a herestring": 'cat <<< "$({})"',
    "behind a here-document": "cat <<'EOF'\n'\nEOF\n{}",
    "behind a comment": "# it's \" nothing\n{}",
    "before a comment": "{} # nothing",
    "in another folder": "cd src && {}",
    "in a loop's list": "for i in $({}); do :; done",
    "switch": "case $({}) in *) ;; esac",
}
SCRIPTS: dict[str, str] = {
    "bash": "bash -c {}",
    "sh": "sh -c {}",
    "bash with options": "bash -eu -o pipefail -c {}",
    "eval": "eval {}",
    "trap": "trap {} EXIT",
    "herestring": "bash <<< {}",
    "xargs": "echo | xargs -I% bash -c {}",
    "find": "find . -maxdepth 0 -exec bash -c {} \\;",
    "env": "env A=1 bash -c {}",
    "timeout": "timeout 5 bash -c {}",
}


@st.composite
def simple(draw: DrawFn, words: list[str]) -> str:
    """The command with every word quoted in some way, or put into a variable."""
    assignments, found = [], []
    for i, word in enumerate(words):
        if draw(st.integers(0, 5)) == 0:
            assignments.append(f"v{i}={shlex.quote(word)}")
            found.append(draw(st.sampled_from([f"$v{i}", f"${{v{i}}}", f'"$v{i}"'])))
        else:
            found.append(QUOTES[draw(st.sampled_from(sorted(QUOTES)))](word))
    command = found[0]
    for each in found[1:]:
        command += draw(st.sampled_from(BLANKS)) + each
    if draw(st.booleans()):
        # A word before the command's own would take the place of a keyword such as `time`, which is then no keyword.
        command = WRAPPERS[draw(st.sampled_from(sorted(WRAPPERS)))].format(command)
    return "; ".join([*assignments, command])


@st.composite
def mutation(draw: DrawFn, words: list[str]) -> str:
    """The command, put into up to three constructs of the shell."""
    command: str = draw(simple(words))
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.integers(0, 3)) == 0:
            command = SCRIPTS[draw(st.sampled_from(sorted(SCRIPTS)))].format(shlex.quote(command))
        else:
            command = AROUND[draw(st.sampled_from(sorted(AROUND)))].format(command)
    return command
