"""What a substitution or a variable of the shell stands for, where everyday use makes that certain."""

from __future__ import annotations

import os
from collections.abc import Callable

from tree_sitter import Node

from rookery.guard.command import UNKNOWN, Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.paths import is_in_worktree

_NUMBERS = names("? $ # RANDOM SECONDS UID EUID PPID LINENO EPOCHSECONDS SRANDOM")
GIVEN = _NUMBERS | names("HOME PWD OLDPWD TMPDIR")
"""Variables that count as known although the script does not set them."""
_COUNTERS = names("date nproc seq")
_NUMBER = Word("7")
_COMMIT = Word("0000000000000000000000000000000000000000")


def home() -> Word:
    """The home folder."""
    return Word(os.path.expanduser("~"))


def given(judge: Judge, name: str, shell: Shell) -> list[Word]:
    """The value of a variable that the script itself does not set."""
    if name in _NUMBERS:
        return [_NUMBER]
    if name == "!":
        return [_NUMBER, Word("")]
    if name == "HOME":
        return [home()]
    if name == "PWD":
        return [UNKNOWN if cwd is None else Word(cwd) for cwd in shell.cwds]
    if name == "TMPDIR" and judge.bounds.temp:
        return [Word(judge.bounds.temp[0])]
    if name == "ROOKERY_ROOT":
        return [Word(judge.bounds.root)]
    if name == "ROOKERY_AGENT" and judge.bounds.agent:
        return [Word(judge.bounds.agent)]
    return [UNKNOWN]


def result(judge: Judge, node: Node, text: Callable[[Node], str], shell: Shell, single: Callable[[Node], Word]) -> Word:
    """What a substitution puts in its place; the commands within are judged apart from this."""
    if node.type == "arithmetic_expansion":
        return _NUMBER
    if node.type == "process_substitution":
        return Word("/dev/fd/63")
    inner = [each for each in node.children if each.is_named]
    if len(inner) != 1:
        return UNKNOWN
    if inner[0].type == "redirected_statement":
        return _here_document(inner[0], text, single)
    if inner[0].type != "command" or any(each.type == "variable_assignment" for each in inner[0].children):
        return UNKNOWN
    words = [single(each) for each in inner[0].children if each.is_named]
    if not all(word.known and not word.glob for word in words):
        return UNKNOWN
    return _printed(judge, [word.text for word in words], shell)


def _here_document(node: Node, text: Callable[[Node], str], single: Callable[[Node], Word]) -> Word:
    """`$(cat <<'EOF' …)`, in which messages of commits are written."""
    body, redirects = node.child_by_field_name("body"), node.children_by_field_name("redirect")
    if body is None or text(body) != "cat" or len(redirects) != 1 or redirects[0].type != "heredoc_redirect":
        return UNKNOWN
    parts = {each.type: each for each in redirects[0].children if each.is_named}
    if parts.keys() - {"heredoc_start", "heredoc_body", "heredoc_end"} or "heredoc_start" not in parts:
        return UNKNOWN
    content = parts.get("heredoc_body")
    if content is None:
        return Word("")
    quoted = text(parts["heredoc_start"])[0] in "'\"\\"
    found = Word(text(content)) if quoted else single(content)
    return Word(found.text.rstrip("\n") if found.known else found.text, found.known)


def _printed(judge: Judge, words: list[str], shell: Shell) -> Word:
    name, rest = words[0], words[1:]
    cwd = next(iter(shell.cwds)) if len(shell.cwds) == 1 else None
    if name == "pwd" and not rest and cwd is not None:
        return Word(cwd)
    if name in _COUNTERS and not any("/" in word or word == "-f" for word in rest):
        return _NUMBER
    if name == "mktemp" and rest in ([], ["-d"]) and judge.bounds.temp:
        return Word(os.path.join(judge.bounds.temp[0], "tmp.rook"))
    if name == "id" and rest == ["-u"]:
        return _NUMBER
    if name == "git" and rest:
        return _git(judge, rest, cwd)
    return UNKNOWN


def _git(judge: Judge, words: list[str], cwd: str | None) -> Word:
    if words == ["rev-parse", "--show-toplevel"] and is_in_worktree(judge, cwd):
        return Word(os.path.realpath(judge.bounds.worktree))
    if words in (["branch", "--show-current"], ["rev-parse", "--abbrev-ref", "HEAD"]) and is_in_worktree(judge, cwd):
        return Word(judge.bounds.branch)
    if words[0] in ("merge-base", "rev-parse"):
        flags = {word for word in words[1:] if word.startswith("-")}
        if flags <= {"--short", "--verify", "--fork-point", "-q"}:
            return _COMMIT
    return UNKNOWN
