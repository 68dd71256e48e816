"""Other ways to write a command that a shell takes for the same."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn


def _ansi_c(word: str, digits: str) -> str:
    forms = {"x": "\\x{:02x}", "o": "\\{:03o}", "u": "\\u{:04x}"}
    return "$'" + "".join(forms[digits].format(ord(letter)) for letter in word) + "'"


QUOTES: dict[str, Callable[[str], str]] = {
    "plain": lambda word: word,
    "single": lambda word: f"'{word}'",
    "double": lambda word: f'"{word}"',
    "backslashes": lambda word: "".join("\\" + letter for letter in word),
    "first letter escaped": lambda word: "\\" + word,
    "empty quotes within": lambda word: word[:1] + "''" + word[1:],
    "half in double quotes": lambda word: word[:2] + f'"{word[2:]}"',
    "each letter quoted": lambda word: "".join(f"'{letter}'" for letter in word),
    "hexadecimal": lambda word: _ansi_c(word, "x"),
    "octal": lambda word: _ansi_c(word, "o"),
    "unicode": lambda word: _ansi_c(word, "u"),
    "half in ansi": lambda word: word[:1] + _ansi_c(word[1:], "x"),
    "translated": lambda word: f'$"{word}"',
    "empty substitution": lambda word: word[:1] + "$()" + word[1:],
    "unset variable": lambda word: word + "$nothing_of_this_name",
    "continued line": lambda word: word[:1] + "\\\n" + word[1:],
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
    "exec": "exec {}",
    "setsid": "setsid {}",
    "stdbuf": "stdbuf -oL {}",
    "xargs": "echo | xargs {}",
    "xargs -I": "echo x | xargs -I% {}",
    "find": "find . -maxdepth 0 -exec {} \\;",
    "time": "time {}",
    "two": "nice env nohup {}",
    "input": "{} < /dev/null",
    "output": "{} > /dev/null 2>&1",
    "output first": "> /dev/null {}",
    "herestring": "{} <<< x",
}
# A blank behind each `(`: two of them side by side would be arithmetic.
AROUND: dict[str, str] = {
    "subshell": "( {} )",
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
    "substitution": "echo $( {} )",
    "quoted substitution": 'echo "a $( {} ) b"',
    "assignment": "x=$( {} )",
    "exported": "export x=$( {} )",
    "array": "x=(a $( {} ))",
    "default": "echo ${{nothing:-$( {} )}}",
    "arithmetic": "echo $((1 + $( {} > /dev/null; echo 1)))",
    "test": '[ -n "$( {} )" ]',
    "double test": "[[ -n $( {} ) ]]",
    "process read": "cat <( {} )",
    "process written": "echo x > >( {} )",
    "in a here-document": "cat <<EOF\n$( {} )\nEOF",
    "in a herestring": 'cat <<< "$( {} )"',
    "behind a here-document": "cat <<'EOF'\n'\nEOF\n{}",
    "behind a comment": "# it's \" nothing\n{}",
    "before a comment": "{} # nothing",
    "in another folder": "cd src && {}",
    "in a loop's list": "for i in $( {} ); do :; done",
    "switch": "case $( {} ) in *) ;; esac",
}
SCRIPTS: dict[str, str] = {
    "bash": "bash -c {}",
    "sh": "sh -c {}",
    "bash with options": "bash -eu -o pipefail -c {}",
    "eval": "eval {}",
    "trap": "trap {} EXIT",
    "herestring": "bash <<< {}",
    "xargs": "echo x | xargs -I% bash -c {}",
    "find": "find . -maxdepth 0 -exec bash -c {} \\;",
    "env": "env A=1 bash -c {}",
    "timeout": "timeout 5 bash -c {}",
}


_QUOTE = st.sampled_from(list(QUOTES.values()))
_BLANK = st.sampled_from(BLANKS)
_WRAPPER = st.sampled_from(["{}"] * len(WRAPPERS) + list(WRAPPERS.values()))
_SHELL = st.sampled_from(list(AROUND.values()))
_SCRIPT = st.sampled_from(list(SCRIPTS.values()))
_VARIABLE = st.sampled_from([None] * 12 + ["$v{}", "${{v{}}}", '"$v{}"'])
_DEPTH = st.lists(st.booleans(), max_size=3)


@st.composite
def mutation(draw: DrawFn, words: list[str]) -> str:
    """The command with every word quoted or in a variable, wrapped, and put into up to three constructs."""
    assignments, quoted = [], []
    for i, word in enumerate(words):
        variable = draw(_VARIABLE)
        if variable is not None:
            assignments.append(f"v{i}={shlex.quote(word)}; ")
            quoted.append(variable.format(i))
        else:
            quoted.append(draw(_QUOTE)(word))
    command = "".join(assignments) + draw(_WRAPPER).format(draw(_BLANK).join(quoted))
    for is_script in draw(_DEPTH):
        command = draw(_SCRIPT).format(shlex.quote(command)) if is_script else draw(_SHELL).format(command)
    return command
