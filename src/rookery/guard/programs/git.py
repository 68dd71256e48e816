"""Judges git commands. What is not listed is denied: aliases and programs on the path may be anything."""

from __future__ import annotations

import os
from collections.abc import Callable

from rookery.guard.command import Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import check_read, check_write, folder_of, is_in_worktree
from rookery.guard.programs.options import Options, read

READS = names(
    "status log show diff grep blame annotate ls-files ls-tree rev-parse rev-list cat-file merge-base merge-tree "
    "describe shortlog name-rev for-each-ref show-ref show-branch diff-tree diff-index diff-files cherry whatchanged "
    "count-objects check-ignore check-attr check-ref-format var help version range-diff verify-commit"
)
"""Subcommands that only read, for every role."""
_RUNS = ("--output", "--ext-diff", "--open-files-in-pager", "--upload-pack", "--exec", "--receive-pack")
_FLAGS = names("--no-pager -P -p --paginate --no-optional-locks --literal-pathspecs --glob-pathspecs --no-advice "
    "--noglob-pathspecs --icase-pathspecs --no-replace-objects --no-lazy-fetch --version -v --help -h")  # fmt: skip
_SETTINGS = ("color.", "advice.", "user.", "log.", "column.", "init.defaultbranch", "i18n.", "commit.gpgsign")
_NAMED_SETTINGS = names("core.quotepath core.pager core.abbrev core.editor diff.renames merge.conflictstyle "
    "rebase.autostash pull.rebase diff.mnemonicprefix diff.noprefix merge.renames core.autocrlf")  # fmt: skip

_BRANCH = "your work stays on your branch; `rook merge` lands it"
_OWN_BRANCH = "stay on your branch, and commit there"

DENIED = {
    "push": ("git-push", "nothing is pushed by agents", "hand your branch over by mail; `rook merge` lands it"),
    "pull": ("git-fetch", "the base is here already", "`git rebase` or `git merge` with the base branch"),
    "fetch": ("git-fetch", "the base is here already", "`git rebase` or `git merge` with the base branch"),
    "clone": ("git-clone", "an agent works in its own worktree", "read what is there, or ask by mail"),
    "clean": ("git-clean", "clean deletes what is nowhere else", "remove single files with rm"),
    "switch": ("git-branch", "an agent stays on its branch", _OWN_BRANCH),
    "worktree": ("git-worktree", "worktrees are made by `rook sling`", "work in your own"),
    "bisect": ("git-branch", "bisecting leaves your branch", "look at the history with git log and git show"),
    "update-ref": ("git-refs", "branches are not moved by hand", _BRANCH),
    "filter-branch": ("git-refs", "history is not rewritten", _BRANCH),
    "replace": ("git-refs", "history is not rewritten", _BRANCH),
    "gc": ("git-objects", "the object store is shared by all agents", "leave it; nothing needs to be tidied"),
    "prune": ("git-objects", "the object store is shared by all agents", "leave it; nothing needs to be tidied"),
    "repack": ("git-objects", "the object store is shared by all agents", "leave it; nothing needs to be tidied"),
    "difftool": ("git-tool", "it starts another program", "use git diff"),
    "mergetool": ("git-tool", "it starts another program", "edit the conflicting files, then git add them"),
    "submodule": ("git-submodule", "submodules reach beyond the worktree", "ask by mail"),
}
"""Subcommands that no agent uses; every other unknown one is denied with rule `git`."""


def check(judge: Judge, words: list[Word], shell: Shell) -> None:
    """Deny unless the command is harmless for the role, in the folder where it runs."""
    words, shell = _globals(judge, words, shell)
    if not words:
        return
    first = words[0]
    if not first.known or first.glob:
        judge.deny_unknown("git's subcommand")
    name, rest = first.text, words[1:]
    if any(word.known and word.text in ("--help", "-h") for word in rest[:1]):
        return
    if name in READS:
        _check_read(judge, name, rest, shell)
        return
    listing = _LISTINGS.get(name)
    if listing is not None and listing(rest):
        return
    writing = WRITES.get(name)
    if writing is None:
        rule, reason, hint = DENIED.get(
            name, ("git", f"git {name} is not for agents", "use add, commit, diff, log, status, rebase or merge")
        )
        judge.deny(rule, reason, hint)
    if not judge.role.can_write:
        if judge.role.can_spawn:
            judge.deny("read-only", f"a {judge.role.name} does not implement", "sling a builder: `rook sling TASK`")
        judge.deny("read-only", f"a {judge.role.name} does not git {name}", "read, and report by mail")
    if not all(is_in_worktree(judge, cwd) for cwd in shell.cwds):
        hint = f"run it in {judge.bounds.worktree}"
        judge.deny("git-elsewhere", f"git {name} would change another checkout", hint)
    writing(judge, rest, shell)


def _globals(judge: Judge, words: list[Word], shell: Shell) -> tuple[list[Word], Shell]:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if not words[at].known:
            judge.deny_unknown("an option of git")
        at += 1
        if text in _FLAGS:
            continue
        value = words[at] if at < len(words) else Word("")
        if text == "-C":
            at += 1
            shell = shell.replace(cwds=frozenset(folder_of(value, cwd) for cwd in shell.cwds))
        elif text == "-c" and value.known and _is_harmless(value.text):
            at += 1
        else:
            judge.deny("git-option", f"git {text} changes what git does", "call git without it")
    return words[at:], shell


def _is_harmless(setting: str) -> bool:
    name, _, value = setting.lower().partition("=")
    if name in ("core.pager", "core.editor"):
        return value in ("", "cat", "true", ":")
    return name.startswith(_SETTINGS) or name in _NAMED_SETTINGS


def _check_read(judge: Judge, name: str, rest: list[Word], shell: Shell) -> None:
    for i, word in enumerate(rest):
        text = word.text.partition("=")[0]
        if word.known and text == "--":
            break
        if not word.known and word.text[:1] in ("", "-") and not _is_value(rest, i):
            judge.deny_unknown(f"an option of git {name}")
        if text.startswith("--") and any(each.startswith(text) for each in _RUNS if len(text) > 3):
            judge.deny("git-option", f"git {name} {text} writes or runs something", f"call git {name} without it")
        if name == "grep" and text.startswith("-") and not text.startswith("--") and "O" in text:
            judge.deny("git-option", "git grep -O starts another program", "call git grep without it")
    if name in ("diff", "grep") and any(word.text == "--no-index" for word in rest):
        for word in rest:
            if not word.text.startswith("-"):
                check_read(judge, word, shell.cwds, deep=name == "grep")


def _is_value(rest: list[Word], at: int) -> bool:
    return (
        at > 0
        and rest[at - 1].known
        and rest[at - 1].text in ("-n", "-e", "--author", "--grep", "-S", "-G", "--since", "--until", "-L")
    )


def _words(rest: list[Word]) -> list[str]:
    return [word.text for word in rest]


_FILTERS = ("--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--sort", "--format")
_BRANCH_FLAGS = names("-a -r -v -l -i --all --remotes --list --verbose --show-current --color --no-color --column "
    "--no-column --ignore-case --abbrev --no-abbrev")  # fmt: skip


def _lists(rest: list[Word], takes: str, flags: frozenset[str]) -> bool:
    """True if branches or tags are only listed."""
    options = read(rest, takes, _FILTERS)
    if not all(word.known for word in rest) or not {name for name, _ in options.given} <= flags.union(_FILTERS):
        return False
    return not options.operands or options.has("-l", "--list")


_READING_SETTINGS = names("--get --get-all --get-regexp --list -l --get-urlmatch")
_HARMLESS_SETTINGS = _READING_SETTINGS | names("--global --local --system --worktree --show-origin --name-only "
    "--show-scope --type --bool --int --path -z --null --includes --default --all")  # fmt: skip


def _reads_settings(rest: list[Word]) -> bool:
    words = _words(rest)
    if not all(word.known for word in rest) or not words:
        return False
    plain = [word for word in words if not word.startswith("-")]
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    if not flags <= _HARMLESS_SETTINGS:
        return False
    return bool(flags & _READING_SETTINGS) or plain[:1] in (["get"], ["list"]) or len(plain) == 1


_LISTINGS: dict[str, Callable[[list[Word]], bool]] = {
    "branch": lambda rest: _lists(rest, "", _BRANCH_FLAGS),
    "tag": lambda rest: _lists(rest, "n", names("-l --list -n")),
    "config": _reads_settings,
    "stash": lambda rest: _words(rest)[:1] in (["list"], ["show"]) and all(word.known for word in rest),
    "worktree": lambda rest: _words(rest)[:1] == ["list"],
    "remote": lambda rest: _words(rest) in ([], ["-v"], ["--verbose"]) or _words(rest)[:1] in (["get-url"],),
    "reflog": lambda rest: _words(rest)[:1] in ([], ["show"], ["list"], ["exists"]) and all(w.known for w in rest),
    "notes": lambda rest: _words(rest)[:1] in (["show"], ["list"], []),
    "submodule": lambda rest: _words(rest)[:1] in (["status"], ["summary"]),
    "symbolic-ref": lambda rest: sum(not t.startswith("-") for t in _words(rest)) == 1
    and all(w.known and w.text in ("HEAD", "--short", "-q", "--quiet") for w in rest),
}  # fmt: skip


def _add(judge: Judge, rest: list[Word], _scene: Shell) -> None:
    for word in rest:
        if word.known and word.text in ("-i", "-p", "-e", "--interactive", "--patch", "--edit"):
            judge.deny("interactive", "that asks on a terminal", "name the files to add")


def _commit(judge: Judge, rest: list[Word], _scene: Shell) -> None:
    options = read(rest, "mCcFtuS", ("--message", "--file", "--author", "--date", "--template", "--fixup", "--squash",
        "--reuse-message", "--reedit-message", "--trailer", "--cleanup"))  # fmt: skip
    if options.may_hide_options:
        judge.deny_unknown("an option of git commit")
    if options.has("-n", "--no-verify"):
        judge.deny("git-hooks", "the project's hooks are there to be passed", "repair what the hook complains about")
    if options.has("-p", "--patch", "--interactive"):
        judge.deny("interactive", "that asks on a terminal", "add the files, then commit with -m")


def _paths(judge: Judge, rest: list[Word], shell: Shell) -> None:
    """rm and mv: every operand is written."""
    for word in read(rest, "", ("--pathspec-from-file",)).operands:
        check_write(judge, _pathspec(judge, word), shell.cwds, removes=True)
    if any(word.text.startswith("--pathspec-from") for word in rest):
        judge.deny_unknown("what is named in that file")


def _pathspec(judge: Judge, word: Word) -> Word:
    if word.text.startswith(":"):
        judge.deny("path", f"{word.text} is not a plain path", "name the files")
    return word.replace(glob=word.glob or any(mark in word.text for mark in "*?["))


def _restore(judge: Judge, rest: list[Word], shell: Shell) -> None:
    options = read(rest, "sU", ("--source", "--conflict"))
    if options.has("--pathspec-from-file") or options.has("-p", "--patch"):
        judge.deny_unknown("what would be restored")
    for word in options.operands:
        check_write(judge, _pathspec(judge, word), shell.cwds)


def _checkout(judge: Judge, rest: list[Word], shell: Shell) -> None:
    rule = (
        "git-branch",
        "an agent stays on its branch",
        "`git restore PATH` or `git checkout -- PATH` take files back",
    )
    texts = _words(rest)
    at = next((i for i, word in enumerate(rest) if word.known and word.text == "--"), None)
    options = read(rest[:at], "bB", ("--orphan", "--conflict"))
    flags = {"-f", "--force", "-q", "--quiet", "--ours", "--theirs", "-m", "--merge", "--no-overlay", "--conflict"}
    if options.may_hide_options or any(name not in flags for name, _ in options.given):
        judge.deny(*rule)
    if at is not None:
        paths = rest[at + 1 :]
        if not paths or len(options.operands) > 1:
            judge.deny(*rule)
    else:
        if texts == [judge.bounds.branch]:
            return
        paths = list(options.operands)
        if not paths or not all(word.known and _exists(word, shell) for word in paths):
            judge.deny(*rule)
    for word in paths:
        check_write(judge, _pathspec(judge, word), shell.cwds)


def _exists(word: Word, shell: Shell) -> bool:
    return all(cwd is not None and os.path.lexists(os.path.join(cwd, word.text)) for cwd in shell.cwds)


def _reset(judge: Judge, rest: list[Word], _scene: Shell) -> None:
    options = read(rest)
    if options.may_hide_options:
        judge.deny_unknown("an option of git reset")
    known = {"--soft", "--mixed", "-q", "--quiet", "-N", "--intent-to-add", "--no-refresh"}
    if any(name not in known for name, _ in options.given):
        judge.deny(
            "git-reset", "that throws away what is not committed", "`git restore PATH` for single files, or commit"
        )


def _integrate(
    judge: Judge, rest: list[Word], takes: str, longs: tuple[str, ...], denied: tuple[str, ...], what: str
) -> Options:
    options = read(rest, takes, longs)
    if options.may_hide_options or any(not word.known for word in rest):
        judge.deny_unknown(f"what is {what}d")
    if options.has(*denied):
        judge.deny("git-option", f"that option makes git {what} do more", f"call git {what} without it")
    refs = [word.text for word in (*options.operands, *options.values("--onto"))]
    if not judge.role.can_land and not all(_is_own(judge, each) for each in refs):
        base = judge.bounds.base or "the base"
        judge.deny("git-foreign", f"only {base} comes into your branch", f"git {what} {base}".strip())
    return options


def _is_own(judge: Judge, ref: str) -> bool:
    """True if the revision is the base, the own branch, or a commit by its hash."""
    base, own = judge.bounds.base, judge.bounds.branch
    stem = ref.partition("~")[0].partition("^")[0].partition("@{")[0]
    if not base or stem in (base, f"origin/{base}", own, "HEAD", "ORIG_HEAD", "@", "MERGE_HEAD"):
        return True
    return len(stem) >= 7 and not stem.strip("0123456789abcdef")


def _rebase(judge: Judge, rest: list[Word], _scene: Shell) -> None:
    denied = ("-x", "--exec", "--update-refs", "-s", "--strategy", "--root")
    longs = ("--onto", "--exec", "--strategy", "--strategy-option", "--empty")
    operands = _integrate(judge, rest, "xsXC", longs, denied, "rebase").operands
    if len(operands) > 1 and operands[1].text not in (judge.bounds.branch, "HEAD"):
        judge.deny("git-branch", "that would rebase another branch", _OWN_BRANCH)


def _merge(judge: Judge, rest: list[Word], _scene: Shell) -> None:
    longs = ("--message", "--file", "--strategy", "--strategy-option", "--into-name", "--cleanup")
    messages = {i + 1 for i, word in enumerate(rest) if word.known and word.text in ("-m", "--message")}
    kept = [Word("") if i in messages else word for i, word in enumerate(rest)]
    _integrate(judge, kept, "mFsXS", longs, ("--no-verify",), "merge")


def _pick(judge: Judge, rest: list[Word], _scene: Shell) -> None:
    options = read(rest, "mXS", ("--mainline", "--strategy", "--strategy-option"))
    if options.may_hide_options or options.has("--strategy"):
        judge.deny_unknown("what is picked")


def _apply(judge: Judge, rest: list[Word], shell: Shell) -> None:
    options = read(rest, "pC", ("--directory", "--build-fake-ancestor", "--exclude", "--include"))
    if options.may_hide_options or options.has("--unsafe-paths", "--build-fake-ancestor"):
        judge.deny("git-option", "that option lets a patch leave the worktree", "call git apply without it")
    for word in options.operands:
        check_read(judge, word, shell.cwds)


def _format_patch(judge: Judge, rest: list[Word], shell: Shell) -> None:
    options = read(rest, "ovn", ("--output-directory", "--output"))
    if options.may_hide_options:
        judge.deny_unknown("an option of git format-patch")
    if options.has("--stdout"):
        return
    for word in options.values("-o", "--output-directory", "--output") or [Word("0001.patch")]:
        check_write(judge, word, shell.cwds, makes_folder=True)


def _stash(judge: Judge, _rest: list[Word], _scene: Shell) -> None:
    judge.deny(
        "git-stash",
        "the stash is shared by all agents, who would take each other's",
        "commit on your branch instead; `git reset --soft HEAD~1` takes that back",
    )


WRITES: dict[str, Callable[[Judge, list[Word], Shell], None]] = {
    "add": _add,
    "stage": _add,
    "commit": _commit,
    "rm": _paths,
    "mv": _paths,
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
