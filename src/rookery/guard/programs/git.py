"""Judges git commands. What is not listed is denied: aliases and programs on the path may be anything."""

from __future__ import annotations

import os
from collections.abc import Callable

from rookery.guard.command import Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import MARKS, check_own_checkout, check_read, check_write, folder_of
from rookery.guard.programs.options import Options, read

READS = names(
    "status log show diff grep blame annotate ls-files ls-tree rev-parse rev-list cat-file merge-base merge-tree "
    "describe shortlog name-rev for-each-ref show-ref show-branch diff-tree diff-index diff-files cherry whatchanged "
    "count-objects check-ignore check-attr check-ref-format var help version range-diff verify-commit"
)
"""Subcommands that only read, for every role."""
_RUNS = ("--output", "--ext-diff", "--open-files-in-pager", "--upload-pack", "--exec", "--receive-pack")
_FLAGS = names(
    "--no-pager -P -p --paginate --no-optional-locks --literal-pathspecs --glob-pathspecs --no-advice "
    "--noglob-pathspecs --icase-pathspecs --no-replace-objects --no-lazy-fetch --version -v --help -h"
)
_SETTINGS = ("color.", "advice.", "user.", "log.", "column.", "init.defaultbranch", "i18n.", "commit.gpgsign")
_NAMED_SETTINGS = names(
    "core.quotepath core.pager core.abbrev core.editor diff.renames merge.conflictstyle "
    "rebase.autostash pull.rebase diff.mnemonicprefix diff.noprefix merge.renames core.autocrlf"
)
_SEARCH_VALUES = names("-n -e --author --grep -S -G --since --until -L")
"""Options of reading subcommands whose value may be any text."""

_BRANCH = "your work stays on your branch; `rook merge` lands it"
_OWN_BRANCH = "stay on your branch, and commit there"
_ON_TERMINAL = ("interactive", "that asks on a terminal", "name the files, and give the message with -m")
_RESTORE = ("git-branch", "an agent stays on its branch", "`git restore PATH` or `git checkout -- PATH` restore files")
_RESET = ("git-reset", "that throws away what is not committed", "`git restore PATH` for single files, or commit")
_BASE_IS_HERE = ("git-fetch", "the base is here already", "`git rebase` or `git merge` with the base branch")
_OBJECTS = ("git-objects", "the object store is shared by all agents", "leave it; nothing needs to be tidied")
_STASH = (
    "git-stash",
    "the stash is shared by all agents, who would take each other's",
    "commit on your branch instead; `git reset --soft HEAD~1` undoes that commit",
)

DENIED = {
    "push": ("git-push", "agents push nothing", "hand your branch over by mail; `rook merge` lands it"),
    "pull": _BASE_IS_HERE,
    "fetch": _BASE_IS_HERE,
    "clone": ("git-clone", "an agent works in its own worktree", "read what is there, or ask by mail"),
    "clean": ("git-clean", "clean deletes what is nowhere else", "remove single files with rm"),
    "switch": ("git-branch", "an agent stays on its branch", _OWN_BRANCH),
    "worktree": ("git-worktree", "`rook sling` makes worktrees", "work in your own"),
    "bisect": ("git-branch", "bisecting leaves your branch", "look at the history with git log and git show"),
    "update-ref": ("git-refs", "agents do not move branches by hand", _BRANCH),
    "filter-branch": ("git-refs", "agents do not rewrite history", _BRANCH),
    "replace": ("git-refs", "agents do not rewrite history", _BRANCH),
    "gc": _OBJECTS,
    "prune": _OBJECTS,
    "repack": _OBJECTS,
    "difftool": ("git-tool", "it starts another program", "use git diff"),
    "mergetool": ("git-tool", "it starts another program", "edit the conflicting files, then git add them"),
    "submodule": ("git-submodule", "submodules reach beyond the worktree", "ask by mail"),
}
"""Subcommands that no agent uses; every other unknown one is denied with rule `git`."""

_TAKING: dict[str, tuple[str, tuple[str, ...]]] = {
    "commit": ("mCcFtuS", ("--message", "--file", "--author", "--date", "--template", "--fixup", "--squash",
        "--reuse-message", "--reedit-message", "--trailer", "--cleanup")),
    "rm": ("", ("--pathspec-from-file",)),
    "mv": ("", ("--pathspec-from-file",)),
    "restore": ("sU", ("--source", "--conflict")),
    "checkout": ("bB", ("--orphan", "--conflict")),
    "rebase": ("xsXC", ("--onto", "--exec", "--strategy", "--strategy-option", "--empty")),
    "merge": ("mFsXS", ("--message", "--file", "--strategy", "--strategy-option", "--into-name", "--cleanup")),
    "revert": ("mXS", ("--mainline", "--strategy", "--strategy-option")),
    "cherry-pick": ("mXS", ("--mainline", "--strategy", "--strategy-option")),
    "apply": ("pC", ("--directory", "--build-fake-ancestor", "--exclude", "--include")),
    "am": ("pC", ("--directory", "--build-fake-ancestor", "--exclude", "--include")),
    "format-patch": ("ovn", ("--output-directory", "--output")),
}  # fmt: skip
"""The letters and the long options that take a value, by subcommand."""


def check(judge: Judge, _name: str, words: list[Word], shell: Shell) -> None:
    """Deny unless the command is harmless for the role, in the folder where it runs."""
    words, shell = _skip_globals(judge, words, shell)
    if not words:
        return
    first, *rest = words
    name = first.text
    if not first.known or first.glob:
        judge.deny_unknown("git's subcommand")
    if rest and rest[0].known and rest[0].text in ("--help", "-h"):
        return
    if name in READS:
        _check_read(judge, name, rest, shell)
        return
    if _only_lists(name, rest):
        return
    if name not in WRITES:
        hint = "use add, commit, diff, log, status, rebase or merge"
        judge.deny(*DENIED.get(name, ("git", f"git {name} is not for agents", hint)))
    check_own_checkout(judge, shell.cwds, "git", name)
    WRITES[name](judge, name, rest, shell)


def _skip_globals(judge: Judge, words: list[Word], shell: Shell) -> tuple[list[Word], Shell]:
    rest = words.copy()
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0)
        if not option.known:
            judge.deny_unknown("an option of git")
        if option.text in _FLAGS:
            continue
        value = rest.pop(0) if rest else Word("")
        if option.text == "-C":
            shell = shell.replace(cwds=frozenset(folder_of(value, cwd) for cwd in shell.cwds))
        elif option.text != "-c" or not value.known or not _is_harmless(value.text):
            judge.deny("git-option", f"git {option.text} changes what git does", "call git without it")
    return rest, shell


def _is_harmless(setting: str) -> bool:
    name, _, value = setting.lower().partition("=")
    if name in ("core.pager", "core.editor"):
        return value in ("", "cat", "true", ":")
    return name.startswith(_SETTINGS) or name in _NAMED_SETTINGS


def _check_read(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    before = Word("")
    for word in rest:
        text = word.text.partition("=")[0]
        if word.known and text == "--":
            break
        if word.may_be_option and not (before.known and before.text in _SEARCH_VALUES):
            judge.deny_unknown(f"an option of git {name}")
        if len(text) > 3 and text.startswith("--") and any(option.startswith(text) for option in _RUNS):
            judge.deny("git-option", f"git {name} {text} writes or runs something", f"call git {name} without it")
        if name == "grep" and text.startswith("-") and not text.startswith("--") and "O" in text:
            judge.deny("git-option", "git grep -O starts another program", "call git grep without it")
        before = word
    if name in ("diff", "grep") and any(word.text == "--no-index" for word in rest):
        files = [word for word in rest if not word.text.startswith("-")]
        check_read(judge, shell.cwds, *files, deep=name == "grep")


_FILTERS = names("--contains --no-contains --merged --no-merged --points-at --sort --format")
_BRANCH_FLAGS = names(
    "-a -r -v -l -i --all --remotes --list --verbose --show-current --color --no-color --column "
    "--no-column --ignore-case --abbrev --no-abbrev"
)
_LISTING_FLAGS = {"branch": _FILTERS | _BRANCH_FLAGS, "tag": _FILTERS | names("-l --list -n")}
_LISTING_WORDS: dict[str, tuple[str | None, ...]] = {
    "stash": ("list", "show"),
    "worktree": ("list",),
    "remote": (None, "get-url"),
    "reflog": (None, "show", "list", "exists"),
    "notes": (None, "show", "list"),
    "submodule": ("status", "summary"),
}
"""The first words with which a subcommand only lists; None without any."""
_READING_SETTINGS = names("--get --get-all --get-regexp --list -l --get-urlmatch")
_HARMLESS_SETTINGS = _READING_SETTINGS | names(
    "--global --local --system --worktree --show-origin --name-only "
    "--show-scope --type --bool --int --path -z --null --includes --default --all"
)


def _only_lists(name: str, rest: list[Word]) -> bool:
    """True if a subcommand that can also write is called to list something."""
    texts = [word.text for word in rest]
    is_known = all(word.known for word in rest)
    plain = [text for text in texts if not text.startswith("-")]
    if name in _LISTING_FLAGS:
        options = read(rest, "n" if name == "tag" else "", _FILTERS)
        lists_all = not options.operands or options.has("-l", "--list")
        return is_known and lists_all and not options.has_others(_LISTING_FLAGS[name])
    if name == "config":
        flags = {text.partition("=")[0] for text in texts if text.startswith("-")}
        reads = bool(flags & _READING_SETTINGS) or plain[:1] in (["get"], ["list"]) or len(plain) == 1
        return is_known and bool(texts) and reads and flags <= _HARMLESS_SETTINGS
    if name == "symbolic-ref":
        return is_known and len(plain) == 1 and set(texts) <= {"HEAD", "--short", "-q", "--quiet"}
    if name == "remote" and texts in (["-v"], ["--verbose"]):
        return True
    is_sure = is_known or name not in ("stash", "reflog")
    return is_sure and next(iter(texts), None) in _LISTING_WORDS.get(name, ())


def _read(judge: Judge, name: str, rest: list[Word]) -> Options:
    """The options of a subcommand, if none of its words may hide another one."""
    options = read(rest, *_TAKING.get(name, ()))
    if options.may_hide_options:
        judge.deny_unknown(f"an option of git {name}")
    return options


def _add(judge: Judge, _name: str, rest: list[Word], _shell: Shell) -> None:
    for word in rest:
        if word.known and word.text in ("-i", "-p", "-e", "--interactive", "--patch", "--edit"):
            judge.deny(*_ON_TERMINAL)


def _commit(judge: Judge, name: str, rest: list[Word], _shell: Shell) -> None:
    options = _read(judge, name, rest)
    if options.has("-n", "--no-verify"):
        judge.deny("git-hooks", "the project's hooks must pass", "repair what the hook complains about")
    if options.has("-p", "--patch", "--interactive"):
        judge.deny(*_ON_TERMINAL)


def _check_paths(
    judge: Judge, words: list[Word], shell: Shell, *, removes: bool = False, restores: bool = False
) -> None:
    for word in words:
        if word.text.startswith(":"):
            judge.deny("path", f"{word.text} is not a plain path", "name the files")
        word = word.replace(glob=word.glob or any(mark in word.text for mark in MARKS))
        check_write(judge, shell.cwds, word, removes=removes, restores=restores)


def _move(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    """rm and mv: every operand is written."""
    _check_paths(judge, list(read(rest, *_TAKING[name]).operands), shell, removes=True)
    if any(word.text.startswith("--pathspec-from") for word in rest):
        judge.deny_unknown("what is named in that file")


def _restore(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    options = read(rest, *_TAKING[name])
    if options.has("--pathspec-from-file", "-p", "--patch"):
        judge.deny_unknown("what would be restored")
    _check_paths(judge, list(options.operands), shell)


def _checkout(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    at = next((i for i, word in enumerate(rest) if word.known and word.text == "--"), None)
    options = read(rest[:at], *_TAKING[name])
    flags = names("-f --force -q --quiet --ours --theirs -m --merge --no-overlay --conflict")
    if options.may_hide_options or options.has_others(flags):
        judge.deny(*_RESTORE)
    paths = list(options.operands) if at is None else rest[at + 1 :]
    if at is None and [word.text for word in rest] == [judge.bounds.branch]:
        return
    names_files = len(options.operands) <= 1 if at is not None else all(_exists(word, shell) for word in paths)
    if not paths or not names_files:
        judge.deny(*_RESTORE)
    source = options.operands if at is not None else ()
    _check_paths(judge, paths, shell, restores=bool(source) and _is_base(judge, source[0]))


def _is_base(judge: Judge, word: Word) -> bool:
    """True if the word names the base, or a commit by its hash: what a program changed is put back from there."""
    return word.known and bool(word.text) and (word.text == judge.bounds.base or _is_hash(word.text))


def _exists(word: Word, shell: Shell) -> bool:
    return word.known and all(cwd is not None and os.path.lexists(os.path.join(cwd, word.text)) for cwd in shell.cwds)


def _reset(judge: Judge, name: str, rest: list[Word], _shell: Shell) -> None:
    if _read(judge, name, rest).has_others(names("--soft --mixed -q --quiet -N --intent-to-add --no-refresh")):
        judge.deny(*_RESET)


def _integrate(judge: Judge, name: str, rest: list[Word], denied: tuple[str, ...]) -> Options:
    options = _read(judge, name, rest)
    if not all(word.known for word in rest):
        judge.deny_unknown(f"what is {name}d")
    if options.has(*denied):
        judge.deny("git-option", f"that option makes git {name} do more", f"call git {name} without it")
    refs = [word.text for word in (*options.operands, *options.values("--onto"))]
    if not judge.role.can_land and not all(_is_own(judge, ref) for ref in refs):
        base = judge.bounds.base or "the base"
        judge.deny("git-foreign", f"only {base} comes into your branch", f"git {name} {base}")
    return options


def _is_own(judge: Judge, ref: str) -> bool:
    """True if the revision is the base, the own branch, or a commit by its hash."""
    base, own = judge.bounds.base, judge.bounds.branch
    stem = ref.partition("~")[0].partition("^")[0].partition("@{")[0]
    if not base or stem in (base, f"origin/{base}", own, "HEAD", "ORIG_HEAD", "@", "MERGE_HEAD"):
        return True
    return _is_hash(stem)


def _is_hash(text: str) -> bool:
    return len(text) >= 7 and not text.strip("0123456789abcdef")


def _rebase(judge: Judge, name: str, rest: list[Word], _shell: Shell) -> None:
    denied = ("-x", "--exec", "--update-refs", "-s", "--strategy", "--root")
    operands = _integrate(judge, name, rest, denied).operands
    if len(operands) > 1 and operands[1].text not in (judge.bounds.branch, "HEAD"):
        judge.deny("git-branch", "that would rebase another branch", _OWN_BRANCH)


def _merge(judge: Judge, name: str, rest: list[Word], _shell: Shell) -> None:
    messages = {i + 1 for i, word in enumerate(rest) if word.known and word.text in ("-m", "--message")}
    _integrate(judge, name, [Word("") if i in messages else word for i, word in enumerate(rest)], ("--no-verify",))


def _pick(judge: Judge, name: str, rest: list[Word], _shell: Shell) -> None:
    if _read(judge, name, rest).has("--strategy"):
        judge.deny_unknown("what is picked")


def _apply(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    options = read(rest, *_TAKING[name])
    if options.may_hide_options or options.has("--unsafe-paths", "--build-fake-ancestor"):
        judge.deny("git-option", "that option lets a patch leave the worktree", "call git apply without it")
    check_read(judge, shell.cwds, *options.operands)


def _format_patch(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    options = _read(judge, name, rest)
    if not options.has("--stdout"):
        written = options.values("-o", "--output-directory", "--output") or [Word("0001.patch")]
        check_write(judge, shell.cwds, *written, makes_folder=True)


def _stash(judge: Judge, _name: str, _rest: list[Word], _shell: Shell) -> None:
    judge.deny(*_STASH)


WRITES: dict[str, Callable[[Judge, str, list[Word], Shell], None]] = {
    "add": _add,
    "stage": _add,
    "commit": _commit,
    "rm": _move,
    "mv": _move,
    "restore": _restore,
    "checkout": _checkout,
    "reset": _reset,
    "rebase": _rebase,
    "merge": _merge,
    "revert": _pick,
    "cherry-pick": _pick,
    "apply": _apply,
    "am": _apply,
    "format-patch": _format_patch,
    "stash": _stash,
}
"""Subcommands that change the worktree or the own branch, for roles that write."""
