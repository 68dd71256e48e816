"""Judges jj commands. What is not listed is denied."""

from __future__ import annotations

from rookery.guard.command import Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import check_writes, is_in_worktree
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
_DENIED = {
    "git": ("jj-git", "nothing is exchanged with other repositories", "hand your work over by mail"),
    "op": ("jj-op", "operations are shared by all agents", "describe or squash your own changes"),
    "operation": ("jj-op", "operations are shared by all agents", "describe or squash your own changes"),
    "undo": ("jj-op", "operations are shared by all agents", "`jj restore PATH` takes files back"),
    "redo": ("jj-op", "operations are shared by all agents", "`jj restore PATH` takes files back"),
    "abandon": ("jj-abandon", "a change that is abandoned is gone for everybody", "`jj restore` empties your own"),
    "workspace": ("jj-workspace", "workspaces are made by `rook sling`", "work in your own"),
    "edit": ("jj-edit", "an agent stays on its own change", "`jj new` makes one on top of it"),
    "bookmark": ("jj-bookmark", "bookmarks are moved by `rook`", "describe your change"),
    "branch": ("jj-bookmark", "bookmarks are moved by `rook`", "describe your change"),
    "config": ("jj-config", "settings are changed by people", "leave them"),
}
_VALUED = ("--message", "--revision", "--destination", "--source", "--branch", "--from", "--into", "--to", "--tool")


def check(judge: Judge, words: list[Word], shell: Shell) -> None:
    """Deny unless the command is harmless for the role."""
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        if not words[at].known or words[at].text not in _FLAGS:
            judge.deny("jj-option", f"jj {words[at].text} changes what jj does", "call jj without it")
        at += 1
    if at == len(words):
        return
    for word in words[at:]:
        if word.text.startswith(("--config", "--repository", "-R", "--at-op", "--tool", "--editor")):
            judge.deny("jj-option", f"jj {word.text} changes what jj does", "call jj without it")
    first, second = words[at], words[at + 1] if at + 1 < len(words) else Word("")
    if not first.known or (not second.known and first.text not in _READS | _WRITES):
        judge.deny_unknown("jj's subcommand")
    pair = (first.text, second.text)
    if first.text in _READS or (
        pair in _READ_PAIRS and not (pair == ("git", "remote") and _words(words)[at + 2 :] != ["list"])
    ):
        if judge.role.writes == "nothing" and any(not word.known and not word.text for word in words):
            judge.deny_unknown("an option of jj")
        return
    if first.text not in _WRITES and pair not in _WRITE_PAIRS:
        fallback = ("jj", f"jj {first.text} is not for agents", "use describe, new, squash, diff, log or status")
        judge.deny(*_DENIED.get(first.text, fallback))
    if not judge.role.can_write:
        judge.deny("read-only", f"a {judge.role.name} does not jj {first.text}", "read, and report by mail")
    if not all(is_in_worktree(judge, cwd) for cwd in shell.cwds):
        judge.deny(
            "jj-elsewhere", f"jj {first.text} would change another workspace", f"run it in {judge.bounds.worktree}"
        )
    options = read(words[at + 1 :], "mrdsbofti", _VALUED)
    if first.text == "restore":
        check_writes(judge, options.operands, shell.cwds)


def _words(words: list[Word]) -> list[str]:
    return [word.text for word in words]
