"""Programs that run others: what they would run is taken out and judged like any other command."""

from __future__ import annotations

import os
from collections.abc import Callable

from rookery.guard.command import UNKNOWN, Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import check_read, check_write, check_writes, folder_of, is_own_place
from rookery.guard.programs import table as programs
from rookery.guard.programs.find import check as check_find
from rookery.guard.programs.options import read
from rookery.guard.shell.assignments import OWN, check_name

Inner = list[tuple[list[Word], Shell]]

_LONGEST_BLOCK = 600.0

_PREFIXES: dict[str, tuple[str, tuple[str, ...], int]] = {
    # the letters and long options that take a value, and how many operands stand before the command
    **dict.fromkeys(names("nohup setsid command builtin busybox toybox noglob nocorrect chronic bunx"), ("", (), 0)),
    **dict.fromkeys(names("chrt taskset repeat"), ("", (), 1)),
    "time": ("of", ("--output", "--format"), 0),
    "nice": ("n", ("--adjustment",), 0),
    "ionice": ("cnpPu", ("--class", "--classdata"), 0),
    "stdbuf": ("ioe", ("--input", "--output", "--error"), 0),
    "caffeinate": ("tw", (), 0),
    "strace": ("oepPaEsuUbISX", (), 0),
    "ltrace": ("oepasuSX", (), 0),
    "npx": ("pw", ("--package", "--workspace"), 0),
    "pnpx": ("p", ("--package",), 0),
    "uvx": ("p", ("--from", "--with", "--python"), 0),
}
_RUNNERS = {
    "uv": ("run",), "poetry": ("run",), "pipenv": ("run",), "pdm": ("run",), "rye": ("run",), "pipx": ("run",),
    "hatch": ("run",), "bundle": ("exec",), "pnpm": ("exec", "dlx"), "yarn": ("exec", "dlx"), "direnv": ("exec",),
}  # fmt: skip
_RUNNER_LONGS = ("--with", "--python", "--extra", "--group", "--env-file", "--project", "--directory", "--package")


def unwrap(judge: Judge, name: str, words: list[Word], shell: Shell) -> Inner | None:
    """The commands that a wrapper would run, or None if the program is no wrapper."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(judge, words[1:], shell)
    if name in _PREFIXES:
        return _prefix(judge, name, words[1:], shell)
    if name in _RUNNERS and len(words) > 1 and words[1].text in _RUNNERS[name]:
        rest = _skip(words[2:], "p", _RUNNER_LONGS)
        if rest and rest[0].text == "-m":
            return [([Word("python"), *rest], shell)]
        return [(rest[1:] if name == "direnv" else rest, shell)]
    return None


def _skip(words: list[Word], takes: str, longs: tuple[str, ...]) -> list[Word]:
    """The words behind the leading options; `-m` stays, for what it names is run."""
    at = 0
    while at < len(words):
        text = words[at].text
        if text == "--":
            return words[at + 1 :]
        if not text.startswith("-") or text in ("-", "-m"):
            break
        takes_next = text in longs or (
            not text.startswith("--") and text[-1] in takes and text[1:-1].isalpha() | (len(text) == 2)
        )
        at += 2 if takes_next else 1
    return words[at:]


def _prefix(judge: Judge, name: str, words: list[Word], shell: Shell) -> Inner:
    takes, longs, operands = _PREFIXES[name]
    if name == "command" and words and words[0].text in ("-v", "-V", "-pv"):
        return []
    command = _skip(words, takes, longs)
    own = read(words[: len(words) - len(command)], takes, longs)
    if name in ("strace", "ltrace", "time"):
        check_writes(judge, own.values("-o", "--output"), shell.cwds)
    if name == "npx" and own.has("-c", "--call"):
        for word in own.values("--call") or command[:1]:
            _script(judge, word, shell)
        return []
    if name == "repeat" and not (words and words[0].known):
        judge.deny_unknown("what is repeated")
    return [(command[operands:], shell)]


def _env(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    at = 0
    while at < len(words):
        word, text = words[at], words[at].text
        if not word.known and "=" not in text:
            judge.deny_unknown("what env runs")
        if text.startswith("-"):
            at = _skip_env_option(judge, words, at)
            continue
        name, equals, value = text.partition("=")
        if not equals:
            break
        check_name(judge, name, Word(value, word.known), for_one=True)
        at += 1
    return [(words[at:], shell)]


_ENV_OPTIONS = {
    "--ignore-environment": "i", "--unset": "u", "--split-string": "S", "--chdir": "C", "--argv0": "a",
    **dict.fromkeys(("--null", "--debug", "--block-signal", "--default-signal", "--ignore-signal"), "v"),
    **dict.fromkeys(("--list-signal-handling", "--help", "--version"), "v"),
}  # fmt: skip
"""The letter of each long option; `v` for all that change nothing of the environment."""


def _skip_env_option(judge: Judge, words: list[Word], at: int) -> int:
    """The place behind an option of env, with its value. Long ones may be shortened, letters may stand together."""
    word = words[at]
    if word.text == "--":
        return at + 1
    letters, value = _read_env_option(word.text)
    if "i" in letters:
        judge.deny("identity", "an empty environment takes your identity away", "leave the environment as it is")
    if not set(letters) <= set("uv0"):
        judge.deny("wrapper", f"env with {word.text} does more than set variables", "write the command plainly")
    if "u" not in letters:
        return at + 1
    given = words[at + 1 : at + 2] if value is None else [word.replace(text=value)]
    if not given or not given[0].known or given[0].text.startswith(OWN):
        judge.deny("identity", "that is not yours to unset", "leave the environment as it is")
    return at + (2 if value is None else 1)


def _read_env_option(text: str) -> tuple[str, str | None]:
    """The letters that an option of env stands for, and the value that is written with it, if one is."""
    if text == "-":
        return "i", None
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        letters = "".join(letter for option, letter in _ENV_OPTIONS.items() if option.startswith(name))
        return letters or "?", value if equals else None
    letters, u, value = text[1:].partition("u")
    return letters + u, value or None


def _exec(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    for word in words:
        if not word.text.startswith("-"):
            break
        if "c" in word.text:
            judge.deny("identity", "an empty environment takes your identity away", "leave the environment as it is")
    return [(_skip(words, "a", ()), shell)]


def _timeout(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    rest = _skip(words, "ks", ("--kill-after", "--signal"))
    if not rest or not rest[0].known:
        return [(rest[1:], shell)]
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    text = rest[0].text
    try:
        seconds = float(text.rstrip("smhd")) * units.get(text[-1:], 1)
    except ValueError:
        judge.deny("wrapper", "timeout is not told how long", "`timeout 60 COMMAND`")
    return [(rest[1:], shell.replace(may_block=shell.may_block or seconds <= _LONGEST_BLOCK))]


def _xargs(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    command = _skip(
        words, "InPLdaEs", ("--max-args", "--max-procs", "--max-lines", "--delimiter", "--arg-file", "--replace")
    )
    options = read(words[: len(words) - len(command)], "InPLdaEs")
    place = next((word.text for word in options.values("-I", "--replace")), "{}" if options.has("-i") else None)
    if place is None:
        command = [*(command or [Word("echo")]), UNKNOWN]
    else:
        command = [UNKNOWN if place in word.text else word for word in command]
    return [(command, shell.replace(stdin=None, is_piped=False))]


def _parallel(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    command = _skip(words, "jNnSa", ("--jobs", "--arg-file", "--results"))
    end = next((i for i, word in enumerate(command) if word.text.startswith(":::")), len(command))
    command = command[:end]
    if not command:
        judge.deny_unknown("what parallel runs")
    if " " in command[0].text:
        _script(judge, command[0], shell)
        return []
    return [([UNKNOWN if "{" in word.text else word for word in command] + [UNKNOWN], shell)]


def _flock(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    rest = _skip(words, "wE", ("--wait", "--timeout", "--conflict-exit-code"))
    if rest and not rest[0].text.isdigit():
        check_write(judge, rest[0], shell.cwds)
    if len(rest) > 2 and rest[1].text in ("-c", "--command"):
        _script(judge, rest[2], shell)
        return []
    return [(rest[1:], shell)]


def _eval(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    if not all(word.known and not word.glob for word in words):
        judge.deny_unknown("what eval runs")
    shell.run(" ".join(word.text for word in words if word.text != "--"), _same_shell(shell))
    return []


def _trap(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    words = [word for word in words if word.text != "--"]
    if len(words) > 1 and words[0].text not in ("", "-", "-p", "-l"):
        if not words[0].known:
            judge.deny_unknown("the script")
        shell.run(words[0].text, _same_shell(shell).replace(cwds=shell.cwds | {None}))
    return []


def _source(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    if not words or not words[0].known or words[0].glob:
        judge.deny_unknown("the script")
    _check_script_file(judge, words[0], shell)
    if not judge.role.can_write:
        if os.path.basename(words[0].text) != "activate":
            judge.deny("read-only", f"a {judge.role.name} runs no scripts", "read it instead")
        judge.doubt("checks", "that runs the project's own code", "read it instead")
    return []


def _check_script_file(judge: Judge, word: Word, shell: Shell) -> None:
    if word.text == "-" or word.text.startswith(("/dev/", "/proc/")):
        judge.deny_unknown("the script")
    check_read(judge, word, shell.cwds)
    for cwd in shell.cwds:
        folder = folder_of(Word(os.path.dirname(word.text) or "."), cwd)
        if not word.text.startswith("/") and not is_own_place(judge, folder):
            judge.deny("outside", f"{word.text} is not in your worktree", "run scripts of your own worktree")


def _script(judge: Judge, word: Word, shell: Shell) -> None:
    if not word.known:
        judge.deny_unknown("the script")
    shell.run(word.text, shell.replace(stdin=None, is_piped=False, is_eval=False, outer=None))


def _same_shell(shell: Shell) -> Shell:
    return shell.replace(stdin=None, is_piped=False, is_eval=True)


def check_shell(judge: Judge, name: str, words: list[Word], shell: Shell) -> bool:
    """Judge the script that a shell is given; False if it is a file, whose doings are those of any program."""
    if name in ("fish", "csh", "tcsh"):
        judge.deny("wrapper", f"{name} reads scripts in its own way", "use bash")
    at = 0
    while at < len(words) and words[at].text[:1] in ("-", "+") and words[at].text != "-":
        text = words[at].text
        if not words[at].known or text.startswith(("--rc", "--init")):
            judge.deny_unknown(f"an option of {name}")
        if text in programs.VERSION_WORDS - {"-v", "-h"}:
            return True
        at += 1
        if text == "--":
            break
        if text[0] == "-" and text[1:2] != "-" and "c" in text:
            at += sum(letter in "oO" for letter in text)
            rest = words[at:]
            while rest and rest[0].text[:1] in ("-", "+"):
                rest = rest[1:]
            if not rest:
                judge.deny_unknown("the script")
            if name in ("sh", "dash", "ash") and "((" in rest[0].text.replace("$((", ""):
                judge.deny("wrapper", f"{name} takes `((` for something else than bash does", "use bash")
            _script(judge, rest[0], shell)
            return True
        at += sum(letter in "oO" for letter in text[1:]) if text[1:2] != "-" else 0
    reads_input = any("s" in word.text[1:] and word.text[1:2] != "-" for word in words[:at])
    if at < len(words) and not reads_input and words[at].text != "-":
        if not words[at].known or words[at].glob:
            judge.deny_unknown("the script")
        _check_script_file(judge, words[at], shell)
        return False
    if shell.stdin is None or not shell.stdin.known or shell.is_piped:
        judge.deny_unknown(f"what {name} reads")
    _script(judge, shell.stdin, shell)
    return True


def _fd(judge: Judge, words: list[Word], shell: Shell) -> Inner:
    if any(not word.known and not word.text for word in words):
        judge.deny_unknown("an option of fd")
    for i, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            command = [UNKNOWN if "{" in each.text else each for each in words[i + 1 :]]
            return [([*command, UNKNOWN], shell)]
        if word.text.startswith("--exec") or (
            word.text[:1] == "-" and word.text[1:2] != "-" and word.text[-1:] in "xX"
        ):
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
