"""Programs that write files: which of their words are written, and which only read."""

from __future__ import annotations

import os

from rookery.guard.command import Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import check_read, check_write, check_writes, is_own_place
from rookery.guard.programs import table as programs
from rookery.guard.programs.options import Options, read

_OTHERS = names("dd patch split csplit mktemp")
_ALL = programs.REMOVERS | programs.MAKERS | programs.CHANGERS | programs.COPIERS | programs.PACKERS | _OTHERS
_TAKES = {
    "truncate": "sr", "shred": "ns", "mkdir": "m", "touch": "dtr", "cp": "tS", "mv": "tS", "ln": "tS",
    "install": "mogtS", "rsync": "efTB", "patch": "dipoBrYzVDF", "split": "abCln", "csplit": "fbn", "mktemp": "p",
}  # fmt: skip
_LONGS = ("--target-directory", "--suffix", "--mode", "--size", "--reference", "--rsh", "--exclude", "--include")
_HERE = Word(".")


def handles(name: str) -> bool:
    """True if the program's files can be told."""
    return name in _ALL


def check(judge: Judge, name: str, words: list[Word], shell: Shell) -> None:
    """Deny if it would write where it may not."""
    options = read(words, _TAKES.get(name, ""), _LONGS)
    if name in programs.REMOVERS or name in programs.MAKERS:
        for word in options.operands:
            check_write(judge, word, shell.cwds, removes=name in programs.REMOVERS, makes_folder=name == "mkdir")
    elif name in programs.CHANGERS:
        check_writes(judge, options.operands if options.has("--reference") else options.operands[1:], shell.cwds)
    elif name in programs.COPIERS:
        _check_copy(judge, name, options, shell)
    elif name in programs.PACKERS:
        _check_pack(judge, name, words, shell)
    elif name == "dd":
        for word in words:
            if word.text.startswith("of="):
                check_write(judge, word.replace(text=word.text[3:]), shell.cwds)
            elif not word.known and "=" not in word.text:
                judge.deny_unknown("what dd writes")
    elif name == "mktemp":
        check_writes(judge, (*options.values("-p", "--tmpdir"), *options.operands), shell.cwds)
    else:
        written = options.operands if name != "patch" else ()
        check_writes(judge, (*options.values("-d", "-o", "-B", "-r"), *written), shell.cwds)
        check_write(judge, "x.orig", shell.cwds)


def _check_copy(judge: Judge, name: str, options: Options, shell: Shell) -> None:
    targets = options.values("-t", "--target-directory")
    sources = list(options.operands)
    if name == "install" and options.has("-d", "--directory"):
        targets, sources = sources, []
    elif not targets and len(sources) > 1:
        targets = [sources.pop()]
    elif not targets and name == "ln":
        targets = [Word(os.path.basename(sources[0].text) or ".")] if sources else []
    if name == "rsync":
        _check_rsync(judge, options, sources + targets)
    for target in targets:
        check_write(judge, target, shell.cwds)
    for source in sources:
        if name == "mv" or options.has("--remove-source-files"):
            check_write(judge, source, shell.cwds, removes=True)
        check_read(judge, source, shell.cwds, deep=options.has("-r", "-R", "-a", "--recursive", "--archive"))
        if name == "ln" or (name == "cp" and options.has("-s", "-l", "--symbolic-link", "--link")):
            _check_link(judge, source, targets, shell)


def _check_rsync(judge: Judge, options: Options, words: list[Word]) -> None:
    if options.has("-e", "--rsh", "--rsync-path") or any(":" in word.text.partition("/")[0] for word in words):
        judge.deny("network", "rsync would leave this machine", "work on what is here")
    if options.may_hide_options:
        judge.deny_unknown("an option of rsync")


def _check_link(judge: Judge, source: Word, targets: list[Word], shell: Shell) -> None:
    """A link must not lead out: what is written through it later would be written there."""
    if not source.known:
        judge.deny_unknown("where the link leads")
    for cwd in shell.cwds:
        for target in targets:
            link = os.path.join(cwd or "/", target.text)
            for folder in (cwd or "/", link, os.path.dirname(link)):
                if not is_own_place(judge, os.path.join(folder, source.text)):
                    judge.deny("outside", f"the link would lead to {source.text}", "link within your worktree")


def _check_pack(judge: Judge, name: str, words: list[Word], shell: Shell) -> None:
    if any(not word.known and word.text[:1] in ("", "-") for word in words):
        judge.deny_unknown(f"an option of {name}")
    if name in ("tar", "gtar", "bsdtar"):
        _check_tar(judge, words, shell)
        return
    if name == "unzip":
        options = read(words, "dxP")
        if not options.has("-l", "-p", "-t", "-v", "-z", "-Z"):
            for word in options.values("-d") or [_HERE]:
                check_write(judge, word, shell.cwds, makes_folder=True)
        return
    options = read(words, "STbtP", ("--suffix",))
    if name in ("zip", "7z", "7za"):
        targets = options.operands[:1] if name == "zip" else options.operands[1:2]
        if options.has("-T", "-TT", "--unzip-command"):
            judge.deny("option", f"{name} would run another program", f"call {name} without it")
        check_writes(judge, targets, shell.cwds)
        if name != "zip":
            check_write(judge, _HERE, shell.cwds)
        return
    if not options.has("-c", "-l", "-t", "--stdout", "--to-stdout", "--list", "--test"):
        check_writes(judge, options.operands, shell.cwds)


def _check_tar(judge: Judge, words: list[Word], shell: Shell) -> None:
    first = words[0].text if words else ""
    if first and not first.startswith("-"):
        words = [words[0].replace(text="-" + first), *words[1:]]  # the old way: `tar xzf FILE`
        values = [letter for letter in first if letter in "fCbTXI"]
        if len(values) > 1:
            judge.deny("option", "the options of tar cannot be told apart", "write each with its own `-`")
    options = read(words, "fCTXIbgHLNVK", ("--file", "--directory", "--files-from", "--exclude-from"))
    if options.has(
        "-I", "--use-compress-program", "--to-command", "--checkpoint-action", "--rsh-command", "--info-script", "-F",
        "--new-volume-script", "--rmt-command", "-P", "--absolute-names",
    ):  # fmt: skip
        judge.deny("option", "tar would run another program, or leave its folder", "call tar without that option")
    folders = options.values("-C", "--directory")
    if options.has("-x", "--extract", "--get"):
        check_writes(judge, folders or [_HERE], shell.cwds)
    elif options.has("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--delete", "--concatenate"):
        for word in options.values("-f", "--file"):
            if word.text != "-":
                check_write(judge, word, shell.cwds)
        if options.has("--remove-files"):
            check_writes(judge, options.operands, shell.cwds, removes=True)
