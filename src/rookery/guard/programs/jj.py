"""Judges jj commands. What is not listed is denied."""

from __future__ import annotations

from itertools import dropwhile

from rookery.guard.command import Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import check_own_checkout, check_write
from rookery.guard.programs.options import read

_READS = names("status st log diff show evolog obslog interdiff root version help")
_READ_PAIRS = frozenset(
    {
        ("file", "list"), ("file", "show"), ("file", "annotate"), ("op", "log"), ("operation", "log"), ("op", "show"),
        ("op", "diff"), ("bookmark", "list"), ("branch", "list"), ("workspace", "list"), ("workspace", "root"),
        ("config", "get"), ("config", "list"), ("config", "path"), ("tag", "list"), ("git", "remote"), ("git", "root"),
    }
)  # fmt: skip
_WRITES = names("commit ci describe desc new squash split restore rebase resolve absorb fix")
_WRITE_PAIRS = frozenset({("file", "track"), ("file", "untrack"), ("file", "chmod")})
_FLAGS = names("--no-pager --ignore-working-copy --quiet --no-color --debug --version --help -h -V")
_SHARED = ("jj-op", "operations are shared by all agents", "describe or squash your own changes")
_UNDO = ("jj-op", "operations are shared by all agents", "`jj restore PATH` restores files")
_BOOKMARK = ("jj-bookmark", "`rook` moves bookmarks", "describe your change")
_DENIED = {
    "git": ("jj-git", "agents exchange nothing with other repositories", "hand your work over by mail"),
    "op": _SHARED,
    "operation": _SHARED,
    "undo": _UNDO,
    "redo": _UNDO,
    "abandon": ("jj-abandon", "a change that is abandoned is gone for all agents", "`jj restore` empties your own"),
    "workspace": ("jj-workspace", "`rook sling` makes workspaces", "work in your own"),
    "edit": ("jj-edit", "an agent stays on its own change", "`jj new` makes one on top of it"),
    "bookmark": _BOOKMARK,
    "branch": _BOOKMARK,
    "config": ("jj-config", "people change the settings", "leave them"),
}
_VALUED = ("--message", "--revision", "--destination", "--source", "--branch", "--from", "--into", "--to", "--tool")


_STEERING = ("--config", "--repository", "-R", "--at-op", "--tool", "--editor")


def check(judge: Judge, _name: str, words: list[Word], shell: Shell) -> None:
    """Deny unless the command is harmless for the role."""
    words = list(dropwhile(lambda word: word.known and word.text in _FLAGS, words))
    if not words:
        return
    first, *rest = words
    for word in words:
        if word.text.startswith(_STEERING) or (word is first and word.text.startswith("-")):
            judge.deny("jj-option", f"jj {word.text} changes what jj does", "call jj without it")
    name, second = first.text, rest[0] if rest else Word("")
    if not first.known or (not second.known and name not in _READS | _WRITES):
        judge.deny_unknown("jj's subcommand")
    pair = (name, second.text)
    lists_remotes = [word.text for word in rest[1:]] == ["list"]
    if name in _READS or (pair in _READ_PAIRS and (pair != ("git", "remote") or lists_remotes)):
        if not judge.role.can_write and any(not word.known and not word.text for word in words):
            judge.deny_unknown("an option of jj")
        return
    if name not in _WRITES and pair not in _WRITE_PAIRS:
        fallback = ("jj", f"jj {name} is not for agents", "use describe, new, squash, diff, log or status")
        judge.deny(*_DENIED.get(name, fallback))
    check_own_checkout(judge, shell.cwds, "jj", name)
    if name == "restore":
        check_write(judge, shell.cwds, *read(rest, "mrdsbofti", _VALUED).operands)
