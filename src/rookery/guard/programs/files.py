"""Programs that write files: which of their words are written, and which only read."""

from __future__ import annotations

import os

from rookery.guard.case import Case
from rookery.guard.paths import check_read, check_write, check_writes, is_own_place
from rookery.guard.programs import table as programs
from rookery.guard.programs.options import Options, read
from rookery.guard.scene import Scene
from rookery.guard.shell.word import Word, names

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


def judge(case: Case, name: str, words: list[Word], scene: Scene) -> None:
    """Deny if it would write where it may not."""
    options = read(words, _TAKES.get(name, ""), _LONGS)
    if name in programs.REMOVERS or name in programs.MAKERS:
        for word in options.operands:
            check_write(case, word, scene.cwds, removes=name in programs.REMOVERS, makes_folder=name == "mkdir")
    elif name in programs.CHANGERS:
        check_writes(case, options.operands if options.has("--reference") else options.operands[1:], scene.cwds)
    elif name in programs.COPIERS:
        _judge_copy(case, name, options, scene)
    elif name in programs.PACKERS:
        _judge_pack(case, name, words, scene)
    elif name == "dd":
        for word in words:
            if word.text.startswith("of="):
                check_write(case, word.replace(text=word.text[3:]), scene.cwds)
            elif not word.known and "=" not in word.text:
                case.deny_unknown("what dd writes")
    elif name == "mktemp":
        check_writes(case, (*options.values("-p", "--tmpdir"), *options.operands), scene.cwds)
    else:
        written = options.operands if name != "patch" else ()
        check_writes(case, (*options.values("-d", "-o", "-B", "-r"), *written), scene.cwds)
        check_write(case, "x.orig", scene.cwds)


def _judge_copy(case: Case, name: str, options: Options, scene: Scene) -> None:
    targets = options.values("-t", "--target-directory")
    sources = list(options.operands)
    if name == "install" and options.has("-d", "--directory"):
        targets, sources = sources, []
    elif not targets and len(sources) > 1:
        targets = [sources.pop()]
    elif not targets and name == "ln":
        targets = [Word(os.path.basename(sources[0].text) or ".")] if sources else []
    if name == "rsync":
        _judge_rsync(case, options, sources + targets)
    for target in targets:
        check_write(case, target, scene.cwds)
    for source in sources:
        if name == "mv" or options.has("--remove-source-files"):
            check_write(case, source, scene.cwds, removes=True)
        check_read(case, source, scene.cwds, deep=options.has("-r", "-R", "-a", "--recursive", "--archive"))
        if name == "ln" or (name == "cp" and options.has("-s", "-l", "--symbolic-link", "--link")):
            _judge_link(case, source, targets, scene)


def _judge_rsync(case: Case, options: Options, words: list[Word]) -> None:
    if options.has("-e", "--rsh", "--rsync-path") or any(":" in word.text.partition("/")[0] for word in words):
        case.deny("network", "rsync would leave this machine", "work on what is here")
    if options.may_hide_options:
        case.deny_unknown("an option of rsync")


def _judge_link(case: Case, source: Word, targets: list[Word], scene: Scene) -> None:
    """A link must not lead out: what is written through it later would be written there."""
    if not source.known:
        case.deny_unknown("where the link leads")
    for cwd in scene.cwds:
        for target in targets:
            link = os.path.join(cwd or "/", target.text)
            for folder in (cwd or "/", link, os.path.dirname(link)):
                if not is_own_place(case, os.path.join(folder, source.text)):
                    case.deny("outside", f"the link would lead to {source.text}", "link within your worktree")


def _judge_pack(case: Case, name: str, words: list[Word], scene: Scene) -> None:
    if any(not word.known and word.text[:1] in ("", "-") for word in words):
        case.deny_unknown(f"an option of {name}")
    if name in ("tar", "gtar", "bsdtar"):
        _judge_tar(case, words, scene)
        return
    if name == "unzip":
        options = read(words, "dxP")
        if not options.has("-l", "-p", "-t", "-v", "-z", "-Z"):
            for word in options.values("-d") or [_HERE]:
                check_write(case, word, scene.cwds, makes_folder=True)
        return
    options = read(words, "STbtP", ("--suffix",))
    if name in ("zip", "7z", "7za"):
        targets = options.operands[:1] if name == "zip" else options.operands[1:2]
        if options.has("-T", "-TT", "--unzip-command"):
            case.deny("option", f"{name} would run another program", f"call {name} without it")
        check_writes(case, targets, scene.cwds)
        if name != "zip":
            check_write(case, _HERE, scene.cwds)
        return
    if not options.has("-c", "-l", "-t", "--stdout", "--to-stdout", "--list", "--test"):
        check_writes(case, options.operands, scene.cwds)


def _judge_tar(case: Case, words: list[Word], scene: Scene) -> None:
    first = words[0].text if words else ""
    if first and not first.startswith("-"):
        words = [words[0].replace(text="-" + first), *words[1:]]  # the old way: `tar xzf FILE`
        values = [letter for letter in first if letter in "fCbTXI"]
        if len(values) > 1:
            case.deny("option", "the options of tar cannot be told apart", "write each with its own `-`")
    options = read(words, "fCTXIbgHLNVK", ("--file", "--directory", "--files-from", "--exclude-from"))
    if options.has(
        "-I", "--use-compress-program", "--to-command", "--checkpoint-action", "--rsh-command", "--info-script", "-F",
        "--new-volume-script", "--rmt-command", "-P", "--absolute-names",
    ):  # fmt: skip
        case.deny("option", "tar would run another program, or leave its folder", "call tar without that option")
    folders = options.values("-C", "--directory")
    if options.has("-x", "--extract", "--get"):
        check_writes(case, folders or [_HERE], scene.cwds)
    elif options.has("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--delete", "--concatenate"):
        for word in options.values("-f", "--file"):
            if word.text != "-":
                check_write(case, word, scene.cwds)
        if options.has("--remove-files"):
            check_writes(case, options.operands, scene.cwds, removes=True)
