"""Programs that write files: which of their words they write, and which they only read."""

from __future__ import annotations

import os

from rookery.guard.command import Shell, Word
from rookery.guard.judge import Judge
from rookery.guard.paths import check_read, check_write, may_run_in
from rookery.guard.programs import table as programs
from rookery.guard.programs.options import Options, read

HANDLED = programs.REMOVERS | programs.MAKERS | programs.CHANGERS | programs.COPIERS | programs.PACKERS
HANDLED |= programs.OTHER_WRITERS
_TAKES = {
    "truncate": "sr", "shred": "ns", "mkdir": "m", "touch": "dtr", "cp": "tS", "mv": "tS", "ln": "tS",
    "install": "mogtS", "rsync": "efTB", "patch": "dipoBrYzVDF", "split": "abCln", "csplit": "fbn", "mktemp": "p",
}  # fmt: skip
_LONGS = ("--target-directory", "--suffix", "--mode", "--size", "--reference", "--rsh", "--exclude", "--include")
_TAR_LONGS = ("--file", "--directory", "--files-from", "--exclude-from")
_TAR_RUNS = (
    "-I", "--use-compress-program", "--to-command", "--checkpoint-action", "--rsh-command", "--info-script", "-F",
    "--new-volume-script", "--rmt-command", "-P", "--absolute-names",
)  # fmt: skip
_TAR_WRITES = ("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--delete", "--concatenate")
_HERE = Word(".")


def check(judge: Judge, name: str, words: list[Word], shell: Shell) -> None:
    """Deny if it would write where it may not."""
    options = read(words, _TAKES.get(name, ""), _LONGS)
    operands = options.operands
    if name in programs.COPIERS:
        _check_copy(judge, name, options, shell)
    elif name in programs.PACKERS:
        _check_pack(judge, name, words, shell)
    elif name in programs.REMOVERS or name in programs.MAKERS:
        removes = name in programs.REMOVERS
        check_write(judge, shell.cwds, *operands, removes=removes, makes_folder=name == "mkdir")
    elif name in programs.CHANGERS:
        check_write(judge, shell.cwds, *(operands if options.has("--reference") else operands[1:]))
    elif name == "dd":
        for word in words:
            if word.text.startswith("of="):
                check_write(judge, shell.cwds, word.replace(text=word.text[3:]))
            elif not word.known and "=" not in word.text:
                judge.deny_unknown("what dd writes")
    elif name == "mktemp":
        check_write(judge, shell.cwds, *options.values("-p", "--tmpdir"), *operands)
    else:
        written = operands if name != "patch" else ()
        check_write(judge, shell.cwds, *options.values("-d", "-o", "-B", "-r"), *written, Word("x.orig"))


def _check_copy(judge: Judge, name: str, options: Options, shell: Shell) -> None:
    targets = options.values("-t", "--target-directory")
    sources = list(options.operands)
    if name == "install" and options.has("-d", "--directory"):
        targets, sources = sources, []
    elif not targets and len(sources) > 1:
        targets = [sources.pop()]
    elif not targets and name == "ln":
        targets = [Word(os.path.basename(source.text) or ".") for source in sources]
    if name == "rsync":
        _check_rsync(judge, options, sources + targets)
    check_write(judge, shell.cwds, *targets)
    for source in sources:
        if name == "mv" or options.has("--remove-source-files"):
            check_write(judge, shell.cwds, source, removes=True)
        check_read(judge, shell.cwds, source, deep=options.has("-r", "-R", "-a", "--recursive", "--archive"))
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
                if not may_run_in(judge, os.path.join(folder, source.text)):
                    judge.deny("outside", f"the link would lead to {source.text}", "link within your worktree")


def _check_pack(judge: Judge, name: str, words: list[Word], shell: Shell) -> None:
    if any(word.may_be_option for word in words):
        judge.deny_unknown(f"an option of {name}")
    if name in programs.TARS:
        _check_tar(judge, words, shell)
        return
    options = read(words, "dxP") if name == "unzip" else read(words, "STbtP", ("--suffix",))
    if name == "unzip":
        if not options.has("-l", "-p", "-t", "-v", "-z", "-Z"):
            check_write(judge, shell.cwds, *(options.values("-d") or [_HERE]), makes_folder=True)
    elif name in ("zip", "7z", "7za"):
        if options.has("-T", "-TT", "--unzip-command"):
            judge.deny("option", f"{name} would run another program", f"call {name} without it")
        written = options.operands[:1] if name == "zip" else (*options.operands[1:2], _HERE)
        check_write(judge, shell.cwds, *written)
    elif not options.has("-c", "-l", "-t", "--stdout", "--to-stdout", "--list", "--test"):
        check_write(judge, shell.cwds, *options.operands)


def _check_tar(judge: Judge, words: list[Word], shell: Shell) -> None:
    first = words[0].text if words else ""
    if first and not first.startswith("-"):
        words = [words[0].replace(text="-" + first), *words[1:]]  # the old way: `tar xzf FILE`
        if sum(letter in "fCbTXI" for letter in first) > 1:
            judge.deny("option", "the options of tar cannot be told apart", "write each with its own `-`")
    options = read(words, "fCTXIbgHLNVK", _TAR_LONGS)
    if options.has(*_TAR_RUNS):
        judge.deny("option", "tar would run another program, or leave its folder", "call tar without that option")
    if options.has("-x", "--extract", "--get"):
        check_write(judge, shell.cwds, *(options.values("-C", "--directory") or [_HERE]))
    elif options.has(*_TAR_WRITES):
        check_write(judge, shell.cwds, *(word for word in options.values("-f", "--file") if word.text != "-"))
        if options.has("--remove-files"):
            check_write(judge, shell.cwds, *options.operands, removes=True)
