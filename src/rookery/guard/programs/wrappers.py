"""Programs that run others: the guard takes out what they would run, and judges it like any other command."""

from __future__ import annotations

import os
from collections.abc import Callable

from rookery.guard.command import UNKNOWN, Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import check_read, check_write, folder_of, may_run_in
from rookery.guard.programs import table as programs
from rookery.guard.programs.find import check as check_find
from rookery.guard.programs.options import read
from rookery.guard.shell.assignments import OWN, check_name

Inner = list[tuple[list[Word], Shell]]
"""Commands that a wrapper would run, each with the shell around it."""

_LONGEST_BLOCK = 600.0
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_PREFIXES: dict[str, tuple[str, tuple[str, ...]]] = {
    "time": ("of", ("--output", "--format")),
    "nice": ("n", ("--adjustment",)),
    "ionice": ("cnpPu", ("--class", "--classdata")),
    "stdbuf": ("ioe", ("--input", "--output", "--error")),
    "caffeinate": ("tw", ()),
    "strace": ("oepPaEsuUbISX", ()),
    "ltrace": ("oepasuSX", ()),
    "npx": ("pw", ("--package", "--workspace")),
    "pnpx": ("p", ("--package",)),
    "uvx": ("p", ("--from", "--with", "--python")),
}
"""Programs that stand before the command, with the letters and long options that take a value."""
_WITHOUT_VALUES = names("nohup setsid command builtin busybox toybox noglob nocorrect chronic bunx")
_WITH_OPERAND = names("chrt taskset repeat")
"""Programs that stand before the command, with an operand of their own."""
_RUNNERS = {
    "uv": ("run",), "poetry": ("run",), "pipenv": ("run",), "pdm": ("run",), "rye": ("run",), "pipx": ("run",),
    "hatch": ("run",), "bundle": ("exec",), "pnpm": ("exec", "dlx"), "yarn": ("exec", "dlx"), "direnv": ("exec",),
}  # fmt: skip
_RUNNER_LONGS = ("--with", "--python", "--extra", "--group", "--env-file", "--project", "--directory", "--package")
_XARGS_LONGS = ("--max-args", "--max-procs", "--max-lines", "--delimiter", "--arg-file", "--replace")
_NO_IDENTITY = ("identity", "an empty environment takes your identity away", "leave the environment as it is")


def unwrap(judge: Judge, name: str, words: list[Word], shell: Shell) -> Inner | None:
    """The commands that a wrapper would run and that are not judged yet, or None if the program is no wrapper."""
    if name in _SPECIAL:
        return _SPECIAL[name](judge, words, shell)
    if name in programs.SHELLS:
        return _shell(judge, name, words, shell)
    if name in _PREFIXES or name in _WITHOUT_VALUES or name in _WITH_OPERAND:
        return _prefix(judge, name, words, shell)
    if not words or words[0].text not in _RUNNERS.get(name, ()):
        return None
    command = _skip(words[1:], "p", _RUNNER_LONGS)
    if command and command[0].text == "-m":
        return [([Word("python"), *command], shell)]
    return [(command[1:] if name == "direnv" else command, shell)]


def _skip(words: list[Word], takes: str, longs: tuple[str, ...] = ()) -> list[Word]:
    """The words behind the leading options; `-m` stays, because it names what runs."""
    at = 0
    while at < len(words):
        text = words[at].text
        if text == "--":
            return words[at + 1 :]
        if not text.startswith("-") or text in ("-", "-m"):
            break
        ends_with_value = text[-1] in takes and (len(text) == 2 or text[1:-1].isalpha())
        at += 2 if text in longs or (ends_with_value and not text.startswith("--")) else 1
    return words[at:]


def _prefix(judge: Judge, name: str, words: list[Word], shell: Shell) -> Inner:
    takes, longs = _PREFIXES.get(name, ("", ()))
    if name == "command" and words and words[0].text in ("-v", "-V", "-pv"):
        return []
    command = _skip(words, takes, longs)
    own = read(words[: len(words) - len(command)], takes, longs)
    if name in ("strace", "ltrace", "time"):
        check_write(judge, shell.cwds, *own.values("-o", "--output"))
    if name == "npx" and own.has("-c", "--call"):
        for word in own.values("--call") or command[:1]:
            _run_script(judge, word, shell)
        return []
    if name == "repeat" and not (words and words[0].known):
        judge.deny_unknown("what is repeated")
    return [(command[1:] if name in _WITH_OPERAND else command, shell)]


def _env(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    rest = words.copy()
    while rest and ("=" in rest[0].text or rest[0].text.startswith("-") or not rest[0].known):
        word = rest.pop(0)
        name, equals, value = word.text.partition("=")
        if not word.known and not equals:
            judge.deny_unknown("what env runs")
        if word.text.startswith("-"):
            _check_env_option(judge, word, rest)
        else:
            check_name(judge, name, Word(value, word.known), for_one=True)
    return [(rest, shell)]


_ENV_OPTIONS = {
    "--ignore-environment": "i", "--unset": "u", "--split-string": "S", "--chdir": "C", "--argv0": "a",
    "--null": "v", "--debug": "v", "--block-signal": "v", "--default-signal": "v", "--ignore-signal": "v",
    "--list-signal-handling": "v", "--help": "v", "--version": "v",
}  # fmt: skip
"""The letter of each long option; `v` for all that change nothing of the environment."""


def _check_env_option(judge: Judge, word: Word, rest: list[Word]) -> None:
    """Deny, or skip with its value, an option of env. Long ones may be shortened, letters may stand together."""
    if word.text == "--":
        return
    if word.text.startswith("--"):
        name, has_value, value = word.text.partition("=")
        letters = "".join(letter for option, letter in _ENV_OPTIONS.items() if option.startswith(name)) or "?"
    else:
        letters, u, value = word.text[1:].partition("u")
        letters, has_value = letters + u or "i", value
    if "i" in letters:
        judge.deny(*_NO_IDENTITY)
    if not set(letters) <= set("uv0"):
        judge.deny("wrapper", f"env with {word.text} does more than set variables", "write the command plainly")
    if "u" in letters:
        variable = word.replace(text=value) if has_value else rest.pop(0) if rest else UNKNOWN
        if not variable.known or variable.text.startswith(OWN):
            judge.deny("identity", "that is not yours to unset", "leave the environment as it is")


def _exec(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    for word in words:
        if not word.text.startswith("-"):
            break
        if "c" in word.text:
            judge.deny(*_NO_IDENTITY)
    return [(_skip(words, "a"), shell)]


def _timeout(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    duration, *command = _skip(words, "ks", ("--kill-after", "--signal")) or [UNKNOWN]
    seconds = read_seconds(duration)
    if duration.known and seconds is None:
        judge.deny("wrapper", "timeout lacks a duration", "`timeout 60 COMMAND`")
    is_short = seconds is not None and seconds <= _LONGEST_BLOCK
    return [(command, shell.replace(may_block=shell.may_block or is_short))]


def read_seconds(word: Word) -> float | None:
    """How long a word tells `sleep` or `timeout` to wait; None if that is not known."""
    try:
        return float(word.text.rstrip("smhd")) * _UNITS.get(word.text[-1:], 1) if word.known else None
    except ValueError:
        return None


def _xargs(_judge: Judge, words: list[Word], shell: Shell) -> Inner:
    command = _skip(words, "InPLdaEs", _XARGS_LONGS)
    options = read(words[: len(words) - len(command)], "InPLdaEs")
    mark = next((word.text for word in options.values("-I", "--replace")), "{}" if options.has("-i") else None)
    if mark is None:
        command = [*(command or [Word("echo")]), UNKNOWN]
    else:
        command = [UNKNOWN if mark in word.text else word for word in command]
    return [(command, shell.replace(stdin=None, is_piped=False))]


def _parallel(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    command = _skip(words, "jNnSa", ("--jobs", "--arg-file", "--results"))
    end = next((i for i, word in enumerate(command) if word.text.startswith(":::")), len(command))
    command = command[:end]
    if not command:
        judge.deny_unknown("what parallel runs")
    if " " in command[0].text:
        return _run_script(judge, command[0], shell)
    return [(_fill_braces(command), shell)]


def _fill_braces(command: list[Word]) -> list[Word]:
    """The command with a word that is not known in place of each `{}`, and at its end."""
    return [*(UNKNOWN if "{" in word.text else word for word in command), UNKNOWN]


def _flock(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    rest = _skip(words, "wE", ("--wait", "--timeout", "--conflict-exit-code"))
    if rest and not rest[0].text.isdigit():
        check_write(judge, shell.cwds, rest[0])
    if len(rest) > 2 and rest[1].text in ("-c", "--command"):
        return _run_script(judge, rest[2], shell)
    return [(rest[1:], shell)]


def _eval(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    if not all(word.known and not word.glob for word in words):
        judge.deny_unknown("the script")
    script = " ".join(word.text for word in words if word.text != "--")
    shell.run(script, shell.replace(stdin=None, is_piped=False, is_eval=True))
    return []


def _trap(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    words = [word for word in words if word.text != "--"]
    if len(words) > 1 and words[0].text not in ("", "-", "-p", "-l"):
        return _eval(judge, [words[0].replace(glob=False)], shell.replace(cwds=shell.cwds | {None}))
    return []


def _source(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    _check_script_file(judge, words[0] if words else UNKNOWN, shell)
    if not judge.role.can_write:
        if os.path.basename(words[0].text) != "activate":
            judge.deny("read-only", f"a {judge.role.name} runs no scripts", "read it instead")
        judge.doubt("checks", "that runs the project's own code", "read it instead")
    return []


def _check_script_file(judge: Judge, word: Word, shell: Shell) -> None:
    if not word.known or word.glob or word.text == "-" or word.text.startswith(("/dev/", "/proc/")):
        judge.deny_unknown("the script")
    check_read(judge, shell.cwds, word)
    for cwd in shell.cwds:
        folder = folder_of(Word(os.path.dirname(word.text) or "."), cwd)
        if not word.text.startswith("/") and not may_run_in(judge, folder):
            judge.deny("outside", f"{word.text} is not in your worktree", "run scripts of your own worktree")


def _run_script(judge: Judge, word: Word, shell: Shell) -> Inner:
    """Judge a script that runs in a shell of its own; it leaves no other command to judge."""
    if not word.known:
        judge.deny_unknown("the script")
    shell.run(word.text, shell.replace(stdin=None, is_piped=False, is_eval=False, outer=None))
    return []


def _shell(judge: Judge, name: str, words: list[Word], shell: Shell) -> Inner | None:
    """Judge the script that a shell gets; None if it is a file, which is judged like any other program."""
    if name in ("fish", "csh", "tcsh"):
        judge.deny("wrapper", f"{name} reads scripts in its own way", "use bash")
    rest = words.copy()
    while rest and rest[0].text[:1] in ("-", "+") and rest[0].text != "-":
        option = rest.pop(0)
        text = option.text
        if not option.known or text.startswith(("--rc", "--init")):
            judge.deny_unknown(f"an option of {name}")
        if text in programs.VERSION_WORDS - {"-v", "-h"}:
            return []
        if text == "--":
            break
        if text[1:2] == "-":
            continue
        del rest[: sum(letter in "oO" for letter in text)]  # the names of options of the shell
        if text[0] == "-" and "c" in text:
            script = next((word for word in rest if word.text[:1] not in ("-", "+")), UNKNOWN)
            if name in ("sh", "dash", "ash") and "((" in script.text.replace("$((", ""):
                judge.deny("wrapper", f"{name} takes `((` for something else than bash does", "use bash")
            return _run_script(judge, script, shell)
    options = words[: len(words) - len(rest)]
    reads_input = any("s" in word.text[1:] and word.text[1:2] != "-" for word in options)
    if rest and not reads_input and rest[0].text != "-":
        _check_script_file(judge, rest[0], shell)
        return None
    if shell.stdin is None or not shell.stdin.known or shell.is_piped:
        judge.deny_unknown(f"what {name} reads")
    return _run_script(judge, shell.stdin, shell)


def _fd(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    if any(not word.known and not word.text for word in words):
        judge.deny_unknown("an option of fd")
    for i, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            return [(_fill_braces(words[i + 1 :]), shell)]
        is_short = word.text[:1] == "-" and word.text[1:2] != "-"
        if word.text.startswith("--exec") or (is_short and word.text[-1:] in "xX"):
            judge.deny_unknown("what fd runs")
    return []


_SPECIAL: dict[str, Callable[[Judge, list[Word], Shell], Inner]] = {
    "env": _env,
    "exec": _exec,
    "timeout": _timeout,
    "gtimeout": _timeout,
    "xargs": _xargs,
    "parallel": _parallel,
    "flock": _flock,
    "eval": _eval,
    "trap": _trap,
    "source": _source,
    ".": _source,
    "find": check_find,
    "fd": _fd,
    "fdfind": _fd,
}
WRAPPERS = _WITHOUT_VALUES.union(_WITH_OPERAND, _PREFIXES, _SPECIAL, _RUNNERS) - programs.BUILD_TOOLS
"""Programs that do nothing but run others."""
