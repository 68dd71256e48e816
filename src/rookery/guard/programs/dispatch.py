"""Judges one simple command: which program it is, and what that program would do."""

from __future__ import annotations

import os
from collections.abc import Callable

from rookery.guard.command import Shell, Word, names
from rookery.guard.judge import Denied, Judge
from rookery.guard.paths import check_read, check_write, is_elsewhere, is_guarded, may_run_in
from rookery.guard.programs import files, git, jj, rook, wrappers
from rookery.guard.programs import table as programs
from rookery.guard.programs.options import read
from rookery.guard.programs.sed_awk import check_awk, check_sed
from rookery.guard.shell.assignments import OWN
from rookery.guard.shell.variables import SETTERS
from rookery.roles.model import STRICT

_LONGEST_SLEEP = 5
_MODULE = Word("-m")
_PRETTY = ["-m", "json.tool"]
_CARRIERS = names("git jj rook rm sudo doas bash sh zsh eval ssh")
_EVALUATORS = names("test [ printf read unset let declare typeset export readonly local")
"""Builtins that may run a substitution in the index of an array."""
_NO_READERS = names("echo printf test [ set export")
"""Builtins whose words are no files that they read."""
_SEARCHERS = names("grep egrep fgrep zgrep ag ack")


def is_known(name: str) -> bool:
    """True if the guard has an opinion on a program of that name."""
    return name in _KNOWN or name.startswith("git-")


def check(judge: Judge, words: list[Word], shell: Shell) -> None:
    """Deny, or note a doubt, if the command may not run there."""
    first, *rest = words
    if not first.known or first.glob or not first.text:
        judge.deny_unknown("the command" + (f" {first.text}…" if first.text else ""))
    if first.text.startswith(("=", "%", "-")) and first.text != "-":
        judge.deny("syntax", f"{first.text} is not a program's name", "name the program")
    name = program_name(first.text)
    inner = wrappers.unwrap(judge, name, rest, shell)
    if inner is None:
        _check_program(judge, name, rest, shell)
    for command, around in inner or ():
        if command:
            _refuse_hidden_changes(judge, command)
            check(judge, command, around)


def _refuse_hidden_changes(judge: Judge, words: list[Word]) -> None:
    """`time -p cd ..` changes the folder of the script, and the guard does not follow it there."""
    name = words[0].text
    if name in ("cd", "pushd", "popd") or (name in SETTERS and (name != "printf" or words[1:2] == [Word("-v")])):
        judge.deny("syntax", f"{name} is an argument of another command", "write it plainly, as a command of its own")


def program_name(text: str) -> str:
    """The program that a path or a versioned name stands for."""
    name = os.path.basename(text)
    for program in ("python", "pip", "node", "ruby", "perl", "php", "lua"):
        if name.startswith(program) and not name[len(program) :].strip("0123456789.w"):
            return program
    return name


def _check_program(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    if name in programs.FORBIDDEN or name.startswith("mkfs"):
        rule, why, hint = programs.FORBIDDEN.get(name, programs.FORBIDDEN["mount"])
        judge.deny(rule, f"{name} {why}", hint)
    if name.startswith("git-"):
        judge.deny("git", f"{name} is git by another name", "call `git` itself")
    _CHECKS.get(name, _check_other)(judge, name, rest, shell)


def _check_plain(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    for word in rest if name in _EVALUATORS else ():
        if "[" in word.text and ("$(" in word.text or "`" in word.text):
            judge.deny("syntax", "that text would be run", "leave the substitution out")
        if name == "unset" and (word.text.startswith(OWN) or not word.known):
            judge.deny("identity", "that is not yours to unset", "leave it")
    is_deep = name in _SEARCHERS and _is_recursive(name, rest)
    for word in rest if name not in _NO_READERS else ():
        if not word.text.startswith("-"):
            check_read(judge, shell.cwds, word, deep=is_deep and "/" in word.text)


def _is_recursive(name: str, rest: list[Word]) -> bool:
    longs = ("--include", "--exclude", "--exclude-dir", "--regexp", "--file")
    options = read(rest, "efmABCd", longs)
    return name in ("ag", "ack") or options.has("-r", "-R", "--recursive", "--dereference-recursive")


def _check_careful(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    rules = programs.CAREFUL[name]
    options = read(rest, rules.takes, rules.longs)
    if (rules.writes or rules.runs) and options.may_hide_options:
        judge.deny_unknown(f"an option of {name}")
    if options.has(*rules.runs):
        judge.deny("option", f"{name} does more than read with that option", f"call {name} without it")
    check_write(judge, shell.cwds, *options.values(*rules.writes))
    if name == "tail" and options.has("-f", "-F", "--follow") and not shell.may_block:
        judge.deny("polling", "tail would follow the file without end", "read the file as it is: `tail -n 50 FILE`")
    written = options.operands[rules.most :] if name != "date" else ()
    check_write(judge, shell.cwds, *(word for word in written if not word.text.startswith("+")))
    for word in options.operands[: rules.most]:
        check_read(judge, shell.cwds, word, deep=name == "rg" and "/" in word.text)


def _check_sleep(judge: Judge, _name: str, rest: list[Word], shell: Shell) -> None:
    times = [wrappers.read_seconds(word) for word in rest]
    is_long = None in times or sum(filter(None, times)) > _LONGEST_SLEEP
    if is_long and not shell.may_block:
        hint = "end your turn, or wait with `rook mail wait`"
        judge.deny("polling", "sleeping keeps your turn open for nothing", hint)


def _check_kill(judge: Judge, _name: str, rest: list[Word], _shell: Shell) -> None:
    if not judge.role.can_write:
        judge.deny("kill", f"a {judge.role.name} ends no processes", "use the KillShell tool for a shell of your own")
    targets = rest[1:] if rest and rest[0].text.startswith("-") else rest
    if any(word.known and word.text in ("-1", "0", "1") for word in targets):
        judge.deny("kill", "that ends what belongs to others", "end what you started by its process id")


def _check_shopt(judge: Judge, _name: str, rest: list[Word], _shell: Shell) -> None:
    if any(word.text in ("dotglob", "expand_aliases", "extglob") or not word.known for word in rest):
        judge.deny("shell-state", "that changes how commands are read", "leave the shell's options as they are")


def _check_other(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    """Interpreters, tools that check or build, the network, and everything that is not known."""
    if name == "python" and rest[:1] == [_MODULE] and rest[1:] and rest[1].text.partition(".")[0] == "rookery":
        if rest[1].text != "rookery":
            judge.deny("rook", f"{rest[1].text} is not for agents", "call `rook`")
        rook.check(judge, "rook", rest[2:], shell)
        return
    texts = [word.text for word in rest]
    first = next((text for text in texts if not text.startswith("-")), "")
    if (name, first) in programs.PUBLISHING:
        judge.deny("publish", f"{name} {first} changes what is outside of this repository", "leave that to people")
    if name in ("npm", "pnpm", "yarn", "bun") and not {"-g", "--global", "global"}.isdisjoint(texts):
        judge.deny("system", "that installs for the whole machine", "install into your worktree")
    if name in programs.NETWORK:
        _check_network(judge, name, rest, shell)
        return
    if name in programs.CONTAINERS:
        judge.doubt("container", f"{name} reaches beyond the worktree", "work within your worktree")
    _check_unknown(judge, name, rest, shell)


def _check_network(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    if name in ("gh", "glab"):
        verbs = [word.text for word in rest if not word.text.startswith("-")]
        if len(verbs) < 2 or verbs[1] not in programs.FORGE_READS:
            judge.deny("forge", f"{name} changes what others see", "hand your work over by mail; `rook merge` lands it")
    options = read(rest, "oOPTKxXHdFubAeEmw" if name == "curl" else "oOPaie", ("--output", "--output-document"))
    written = options.values("-o", "--output", "--output-document", "--directory-prefix", "--output-dir")
    if name == "wget":
        if not options.values("-O", "--output-document"):
            written.append(Word("index.html"))
        written += options.values("-P")
        written += [word for word in options.values("-O") if word.text != "-"]
    elif name == "curl" and options.has("-O", "-J", "--remote-name", "--remote-name-all"):
        written.append(Word("download"))
    check_write(judge, shell.cwds, *written)
    judge.doubt("network", f"{name} reaches beyond this machine", "work with what is here")


def _check_unknown(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    if name in programs.TOOLCHAIN and len(rest) == 1 and rest[0].text in programs.VERSION_WORDS:
        return
    if not judge.role.can_write:
        _check_for_reader(judge, name, rest)
    if None in shell.cwds:
        judge.deny_unknown(f"the folder that {name} would run in", "write the folder out: `cd FOLDER && COMMAND`")
    if not all(may_run_in(judge, cwd) for cwd in shell.cwds):
        judge.deny("outside", f"{name} would run outside of your worktree", f"run it in {judge.bounds.worktree}")
    for word in rest:
        _check_mentioned(judge, name, word.text.partition("=")[2] if "=" in word.text else word.text, shell)
    if name not in programs.INTERPRETERS:
        _check_carried(judge, rest, shell)
    if judge.profile == STRICT and judge.role.can_write and not _is_check(name, [word.text for word in rest]):
        judge.ask("unknown-program", f"the guard does not know what {name} does", "use a program that is known")


def _check_mentioned(judge: Judge, name: str, path: str, shell: Shell) -> None:
    """Deny a path in the words of a program of which nothing is known."""
    if not path or "\0" in path or len(path) >= 4096:
        return
    if is_guarded(judge, path, shell.cwds):
        judge.deny("protected", f"{path} steers agents or version control", "leave it to `git` and `rook`")
    if is_elsewhere(judge, path, shell.cwds):
        hint = f"use what is in {judge.bounds.worktree}"
        judge.deny("outside", f"{name} would work on another part of the project", hint)
    if "/" in path or path.startswith("."):
        check_read(judge, shell.cwds, Word(path))


def _check_carried(judge: Judge, rest: list[Word], shell: Shell) -> None:
    """A program may run another that is among its words: `strace git push`."""
    for i, word in enumerate(rest):
        if word.known and program_name(word.text) in _CARRIERS and i + 1 < len(rest):
            check(judge, rest[i:], shell)
            return
        if word.known and " " in word.text and program_name(word.text.split()[0]) in _CARRIERS:
            try:
                shell.run(word.text, shell.replace(outer=None, is_eval=False))
            except Denied as denied:
                if denied.verdict.rule != "syntax":
                    raise


def _check_for_reader(judge: Judge, name: str, rest: list[Word]) -> None:
    texts = [word.text for word in rest]
    is_known = all(word.known for word in rest)
    if is_known and ((name, next(iter(texts), "")) in programs.INFORMING or (name, texts) == ("python", _PRETTY)):
        return
    if not is_known or not _is_check(name, texts):
        judge.deny_to_reader(f"runs only what reads, and {name} may do more")
    if not judge.role.runs_checks:
        judge.doubt("checks", f"{name} runs the project's own code", "read the code, or ask a reviewer to run it")
    elif judge.profile == STRICT:
        judge.ask("checks", f"{name} runs the project's own code", "read the code instead")


def _is_check(name: str, rest: list[str]) -> bool:
    """True if the command checks the project and promises to change none of its files."""
    if any(text.partition("=")[0] in programs.FIXES for text in rest):
        return False
    if name == "python" and rest[:1] == ["-m"] and len(rest) > 1:
        return _is_check(rest[1], rest[2:])
    words = [text for text in rest if not text.startswith("-")]
    if name == "ruff":
        return words[:1] == ["check"] or (words[:1] == ["format"] and ("--check" in rest or "--diff" in rest))
    if name in programs.FORMATTERS:
        return any(text in ("--check", "--check-only", "--diff", "-l", "-c", "check") for text in rest)
    if name in programs.BUILD_TOOLS:
        chosen = words[1:2] if words[:1] in (["run"], ["exec"], ["run-script"]) else words[:1]
        if chosen == ["fmt"]:
            return "--check" in rest
        return bool(chosen) and chosen[0].partition(":")[0] in programs.CHECKING_WORDS
    return name in programs.CHECKERS


_CHECKS: dict[str, Callable[[Judge, str, list[Word], Shell], None]] = {
    **dict.fromkeys(files.HANDLED, files.check),
    **dict.fromkeys(programs.AWKS, check_awk),
    **dict.fromkeys(programs.SEDS, check_sed),
    **dict.fromkeys(programs.CAREFUL, _check_careful),
    **dict.fromkeys(programs.PLAIN, _check_plain),
    **{"sleep": _check_sleep, "kill": _check_kill, "shopt": _check_shopt},
    **{"git": git.check, "hub": git.check, "jj": jj.check, "rook": rook.check},
}
_KNOWN = names("cd pushd popd corepack dotenv").union(
    _CHECKS, programs.FORBIDDEN, programs.NETWORK, programs.INTERPRETERS, programs.SHELLS, wrappers.WRAPPERS
)
"""Names that a function may not take."""
