"""Judges one simple command: which program it is, and what that program would do."""

from __future__ import annotations

import os

from rookery.guard.command import Shell, Word, names
from rookery.guard.judge import Denied, Judge
from rookery.guard.paths import check_read, check_write, check_writes, is_elsewhere, is_guarded, is_own_place
from rookery.guard.programs import files, git, jj, rook, wrappers
from rookery.guard.programs import table as programs
from rookery.guard.programs.options import read
from rookery.guard.programs.sed_awk import awk_only_prints, sed_only_prints
from rookery.guard.shell.assignments import OWN
from rookery.guard.shell.variables import SETTERS
from rookery.roles.model import STRICT

_LONGEST_SLEEP = 5
_WAIT = "end your turn, or wait with `rook mail wait`"
_MODULE = Word("-m")
_PRETTY = ["-m", "json.tool"]
_CARRIERS = names("git jj rook rm sudo doas bash sh zsh eval ssh")


def is_known(name: str) -> bool:
    """True if the guard has an opinion on a program of that name."""
    return name in programs.KNOWN or name.startswith("git-")


def check(judge: Judge, words: list[Word], shell: Shell) -> None:
    """Deny, or note a doubt, if the command may not run there."""
    first = words[0]
    if not first.known or first.glob or not first.text:
        judge.deny_unknown("the command" + (f" {first.text}…" if first.text else ""))
    if first.text.startswith(("=", "%", "-")) and first.text != "-":
        judge.deny("syntax", f"{first.text} is not a program's name", "name the program")
    name = program_name(first.text)
    inner = wrappers.unwrap(judge, name, words, shell)
    if inner is not None:
        for command, around in inner:
            if command:
                _refuse_hidden_changes(judge, command)
                check(judge, command, around)
        return
    _check_program(judge, name, words, shell)


def _refuse_hidden_changes(judge: Judge, words: list[Word]) -> None:
    """`time -p cd ..` changes the folder of the script, which is not followed there."""
    name = words[0].text
    if name in ("cd", "pushd", "popd") or (name in SETTERS and (name != "printf" or words[1:2] == [Word("-v")])):
        judge.deny("syntax", f"{name} stands behind another command", "write it plainly, as a command of its own")


def program_name(text: str) -> str:
    """The program that a path or a versioned name stands for."""
    name = os.path.basename(text)
    for each in ("python", "pip", "node", "ruby", "perl", "php", "lua"):
        if name.startswith(each) and not name[len(each) :].strip("0123456789.w"):
            return each
    return name


def _check_program(judge: Judge, name: str, words: list[Word], shell: Shell) -> None:
    rest = words[1:]
    if name in programs.FORBIDDEN or name.startswith("mkfs"):
        rule, why, hint = programs.FORBIDDEN.get(name, ("system", "changes the machine", "ask for it by mail"))
        judge.deny(rule, f"{name} {why}", hint)
    if name in ("git", "hub"):
        git.check(judge, rest, shell)
    elif name.startswith("git-"):
        judge.deny("git", f"{name} is git by another name", "call `git` itself")
    elif name == "jj":
        jj.check(judge, rest, shell)
    elif name == "rook":
        rook.check(judge, rest, shell)
    elif name == "python" and rest[:1] == [_MODULE] and rest[1:] and rest[1].text.partition(".")[0] == "rookery":
        if rest[1].text != "rookery":
            judge.deny("rook", f"{rest[1].text} is not for agents", "call `rook`")
        rook.check(judge, rest[2:], shell)
    elif name in programs.PLAIN:
        _check_plain(judge, name, rest, shell)
    elif name in programs.CAREFUL:
        _check_careful(judge, name, rest, shell)
    elif name in ("sed", "gsed"):
        _check_sed(judge, rest, shell)
    elif name in ("awk", "gawk", "mawk", "nawk"):
        _check_awk(judge, name, rest, shell)
    elif name == "sleep":
        _check_sleep(judge, rest, shell)
    elif name == "kill":
        _check_kill(judge, rest)
    elif name == "shopt":
        if any(word.text in ("dotglob", "expand_aliases", "extglob") or not word.known for word in rest):
            judge.deny("shell-state", "that changes how commands are read", "leave the shell's options as they are")
    elif files.handles(name):
        files.check(judge, name, rest, shell)
    elif name in programs.SHELLS:
        if not wrappers.check_shell(judge, name, rest, shell):
            _check_unknown(judge, name, words, shell)
    else:
        _check_other(judge, name, words, shell)


def _check_plain(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    if name in ("test", "[", "printf", "read", "unset", "let", "declare", "typeset", "export", "readonly", "local"):
        for word in rest:
            if "[" in word.text and ("$(" in word.text or "`" in word.text):
                judge.deny("syntax", "that text would be run", "leave the substitution out")
            if name == "unset" and (word.text.startswith(OWN) or not word.known):
                judge.deny("identity", "that is not yours to unset", "leave it")
    if name in ("echo", "printf", "test", "[", "set", "export"):
        return
    deep = name in ("grep", "egrep", "fgrep", "zgrep", "ag", "ack") and _is_recursive(name, rest)
    for word in rest:
        if not word.text.startswith("-"):
            check_read(judge, word, shell.cwds, deep=deep and "/" in word.text)


def _is_recursive(name: str, rest: list[Word]) -> bool:
    if name in ("ag", "ack"):
        return True
    return read(rest, "efmABCd", ("--include", "--exclude", "--exclude-dir", "--regexp", "--file")).has(
        "-r", "-R", "--recursive", "--dereference-recursive"
    )


def _check_careful(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    rules = programs.CAREFUL[name]
    options = read(rest, rules.takes, rules.longs)
    if (rules.writes or rules.runs) and options.may_hide_options:
        judge.deny_unknown(f"an option of {name}")
    if rules.runs and options.has(*rules.runs):
        judge.deny("option", f"{name} does more than read with that option", f"call {name} without it")
    check_writes(judge, options.values(*rules.writes), shell.cwds)
    if name == "tail" and options.has("-f", "-F", "--follow") and not shell.may_block:
        judge.deny("polling", "tail would follow the file without end", "read the file as it is: `tail -n 50 FILE`")
    for word in options.operands[rules.most :]:
        if not (name == "date" or word.text.startswith("+")):
            check_write(judge, word, shell.cwds)
    for word in options.operands[: rules.most]:
        check_read(judge, word, shell.cwds, deep=name == "rg" and "/" in word.text)


def _check_sed(judge: Judge, rest: list[Word], shell: Shell) -> None:
    options = read(rest, "efl", ("--expression", "--file", "--line-length"))
    in_place = [
        each for each, _ in options.given if each == "-i" or (each.startswith("--i") and "--in-place".startswith(each))
    ]
    scripts = options.values("-e", "--expression")
    operands = list(options.operands)
    has_file = options.has("-f", "--file")
    if not scripts and not has_file and operands:
        scripts = [operands.pop(0)]
    if not judge.role.can_write and (has_file or options.may_hide_options or any(not each.known for each in scripts)):
        judge.deny_unknown("what sed would do")
    if any(each.known and not sed_only_prints(each.text) for each in scripts):
        judge.deny("script", "the sed script may write a file or run a command", "use plain s, d and p commands")
    for word in operands:
        if in_place:
            check_write(judge, word, shell.cwds)
        else:
            check_read(judge, word, shell.cwds)


def _check_awk(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    options = read(rest, "Fvf", ("--assign", "--field-separator", "--file"))
    operands = list(options.operands)
    has_file = options.has("-f", "--file")
    others = [each for each, _ in options.given if each not in ("-F", "-v", "-f", "--assign", "--field-separator")]
    if (others and not judge.role.can_write) or options.has(
        "-i", "--include", "-l", "--load", "-e", "--source", "-E", "--exec"
    ):
        judge.deny("script", f"{name} does more than print with such options", f"use {name} -F and -v only")
    program = None if has_file or not operands else operands.pop(0)
    if not judge.role.can_write and (has_file or (program is not None and not program.known)):
        judge.deny_unknown(f"what {name} would do")
    if program is not None and program.known and not awk_only_prints(program.text):
        judge.deny("script", f"the {name} program may write a file or run a command", "redirect in the shell instead")
    for word in operands:
        check_read(judge, word, shell.cwds)


def _check_sleep(judge: Judge, rest: list[Word], shell: Shell) -> None:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    total = 0.0
    for word in rest:
        digits = word.text.rstrip("smhd")
        try:
            total += float(digits) * units.get(word.text[len(digits) :], 1) if word.known else float("inf")
        except ValueError:
            total = float("inf")
    if total > _LONGEST_SLEEP and not shell.may_block:
        judge.deny("polling", "sleeping keeps your turn open for nothing", _WAIT)


def _check_kill(judge: Judge, rest: list[Word]) -> None:
    if not judge.role.can_write:
        judge.deny("kill", f"a {judge.role.name} ends no processes", "use the KillShell tool for a shell of your own")
    targets = rest[1:] if rest and rest[0].text.startswith("-") else rest
    if any(word.known and word.text in ("-1", "0", "1") for word in targets):
        judge.deny("kill", "that ends what belongs to others", "end what you started by its process id")


def _check_other(judge: Judge, name: str, words: list[Word], shell: Shell) -> None:
    """Interpreters, tools that check or build, the network, and everything that is not known."""
    rest = [word.text for word in words[1:]]
    first = next((word for word in rest if not word.startswith("-")), "")
    if (name, first) in programs.PUBLISHING:
        judge.deny("publish", f"{name} {first} changes what is outside of this repository", "leave that to people")
    if name in ("npm", "pnpm", "yarn", "bun") and any(word in ("-g", "--global", "global") for word in rest):
        judge.deny("system", "that installs for the whole machine", "install into your worktree")
    if name in programs.NETWORK:
        _check_network(judge, name, words, shell)
        return
    if name in programs.CONTAINERS:
        judge.doubt("container", f"{name} reaches beyond the worktree", "work within your worktree")
    _check_unknown(judge, name, words, shell)


def _check_network(judge: Judge, name: str, words: list[Word], shell: Shell) -> None:
    if name in ("gh", "glab"):
        verbs = [word.text for word in words[1:] if not word.text.startswith("-")]
        if len(verbs) < 2 or verbs[1] not in programs.FORGE_READS:
            judge.deny("forge", f"{name} changes what others see", "hand your work over by mail; `rook merge` lands it")
    options = read(words[1:], "oOPTKxXHdFubAeEmw" if name == "curl" else "oOPaie", ("--output", "--output-document"))
    named = options.values("-o", "--output", "--output-document", "--directory-prefix", "--output-dir")
    check_writes(judge, named, shell.cwds)
    if name == "wget" and not options.values("-O", "--output-document"):
        check_write(judge, "index.html", shell.cwds)
    check_writes(judge, options.values("-P") if name == "wget" else [], shell.cwds)
    for word in options.values("-O") if name == "wget" else []:
        if word.text != "-":
            check_write(judge, word, shell.cwds)
    if name == "curl" and options.has("-O", "-J", "--remote-name", "--remote-name-all"):
        check_write(judge, "download", shell.cwds)
    judge.doubt("network", f"{name} reaches beyond this machine", "work with what is here")


def _check_unknown(judge: Judge, name: str, words: list[Word], shell: Shell) -> None:
    if name in programs.TOOLCHAIN and len(words) == 2 and words[1].text in programs.VERSION_WORDS:
        return
    if not judge.role.can_write:
        _check_for_reader(judge, name, words)
    if None in shell.cwds:
        judge.deny_unknown(f"the folder that {name} would run in", "write the folder out: `cd FOLDER && COMMAND`")
    if not all(is_own_place(judge, cwd) for cwd in shell.cwds):
        judge.deny("outside", f"{name} would run outside of your worktree", f"run it in {judge.bounds.worktree}")
    for word in words[1:]:
        path = word.text.partition("=")[2] if "=" in word.text else word.text
        if path and "\0" not in path and len(path) < 4096:
            if is_guarded(judge, path, shell.cwds):
                judge.deny("protected", f"{path} steers agents or version control", "leave it to `git` and `rook`")
            if is_elsewhere(judge, path, shell.cwds):
                hint = f"use what is in {judge.bounds.worktree}"
                judge.deny("outside", f"{name} would work on another part of the project", hint)
            if "/" in path or path.startswith("."):
                check_read(judge, path, shell.cwds)
    if name not in programs.INTERPRETERS:
        _check_carried(judge, words, shell)
    if judge.profile == STRICT and judge.role.can_write and not _is_check(name, [word.text for word in words[1:]]):
        judge.ask("unknown-program", f"the guard does not know what {name} does", "use a program that is known")


def _check_carried(judge: Judge, words: list[Word], shell: Shell) -> None:
    """A program may run another that is named behind it: `strace git push`."""
    for i, word in enumerate(words[1:], 1):
        if word.known and program_name(word.text) in _CARRIERS and i + 1 < len(words):
            check(judge, words[i:], shell)
            return
        if word.known and " " in word.text and program_name(word.text.split()[0]) in _CARRIERS:
            try:
                shell.run(word.text, shell.replace(outer=None, is_eval=False))
            except Denied as denied:
                if denied.verdict.rule != "syntax":
                    raise


def _check_for_reader(judge: Judge, name: str, words: list[Word]) -> None:
    rest = [word.text for word in words[1:]]
    is_known = all(word.known for word in words)
    if is_known and ((name, next(iter(rest), "")) in programs.INFORMING or (name, rest) == ("python", _PRETTY)):
        return
    if not is_known or not _is_check(name, rest):
        hint = (
            "sling a builder: `rook sling TASK --role builder`" if judge.role.can_spawn else "read, and report by mail"
        )
        judge.deny("read-only", f"a {judge.role.name} runs only what reads, and {name} may do more", hint)
    if judge.role.runs_checks:
        if judge.profile == STRICT:
            judge.ask("checks", f"{name} runs the project's own code", "read the code instead")
        return
    judge.doubt("checks", f"{name} runs the project's own code", "read the code, or ask a reviewer to run it")


def _is_check(name: str, rest: list[str]) -> bool:
    """True if the command checks the project and promises to change none of its files."""
    if any(word.partition("=")[0] in programs.FIXES for word in rest):
        return False
    if name == "python" and rest[:1] == ["-m"] and len(rest) > 1:
        return _is_check(rest[1], rest[2:])
    if name in programs.CHECKERS:
        return True
    words = [word for word in rest if not word.startswith("-")]
    if name == "ruff":
        return words[:1] == ["check"] or (words[:1] == ["format"] and ("--check" in rest or "--diff" in rest))
    if name in ("black", "isort", "prettier", "rustfmt", "gofmt", "biome"):
        return any(word in ("--check", "--check-only", "--diff", "-l", "-c", "check") for word in rest)
    if name in programs.BUILD_TOOLS:
        chosen = words[1:2] if words[:1] in (["run"], ["exec"], ["run-script"]) else words[:1]
        if chosen == ["fmt"]:
            return "--check" in rest
        return bool(chosen) and chosen[0].partition(":")[0] in programs.CHECKING_WORDS
    return False
