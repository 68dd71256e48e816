"""Pipelines joined by `&&` and `||`, as a shell joins them.

The grammar hangs a redirection on the whole list before it, and makes that list the first part of a pipeline:
`cd src && make 2>&1 | tee log` is `(cd src && make 2>&1) | tee log` to it. To a shell, redirections belong to the last
command, and pipes bind closer than `&&`. Here every command gets what is its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from rookery.base.record import Record
from rookery.guard.judge import WRITE_IT_OUT, Judge

CHAINED = ("list", "pipeline", "redirected_statement", "negated_command")
"""The kinds of nodes that a chain is made of."""
AND, OR = "&&", "||"
_PIPES = ("|", "|&")


@dataclass(frozen=True, slots=True)
class Stage(Record):
    """A command, simple or compound, with its redirections; None where there are only these."""

    body: Node | None
    redirects: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline(Record):
    """A pipeline, and whether it runs after success (`&&`) or after failure (`||`) of what is before it."""

    operator: str
    stages: tuple[Stage, ...]
    is_negated: bool = False


def read_pipelines(judge: Judge, node: Node) -> list[Pipeline]:
    """The pipelines of a list in their order; of anything else, itself alone."""
    parts = [part for part in node.children if part.type != "comment"]
    if node.type == "list":
        if len(parts) != 3 or parts[1].type not in (AND, OR):
            judge.deny("syntax", "the command cannot be read for sure", WRITE_IT_OUT)
        return _join(read_pipelines(judge, parts[0]), parts[1].type, read_pipelines(judge, parts[2]))
    if node.type == "pipeline":
        pipelines: list[Pipeline] = []
        for part in parts:
            if part.type not in _PIPES:
                pipelines = _join(pipelines, "", read_pipelines(judge, part))
        return pipelines
    if node.type == "negated_command":
        first, *rest = read_pipelines(judge, parts[-1])
        return [first.replace(is_negated=not first.is_negated), *rest]
    if node.type == "redirected_statement":
        return _redirect(judge, node)
    return [Pipeline("", (Stage(node),))]


def continues(redirect: Node) -> bool:
    """True if a here-document carries the commands that follow it on its line."""
    return any(True for _ in _behind(redirect))


def _redirect(judge: Judge, node: Node) -> list[Pipeline]:
    body = node.child_by_field_name("body")
    redirects = node.children_by_field_name("redirect")
    *before, last = [Pipeline("", (Stage(None),))] if body is None else read_pipelines(judge, body)
    *stages, stage = last.stages
    stage = stage.replace(redirects=(*stage.redirects, *redirects))
    pipelines = [*before, last.replace(stages=(*stages, stage))]
    for redirect in redirects:
        for operator, behind in _behind(redirect):
            pipelines = _join(pipelines, operator, read_pipelines(judge, behind))
    return pipelines


def _behind(redirect: Node) -> Iterator[tuple[str, Node]]:
    """What follows a here-document on its line, with its operator; a pipeline goes on and has none."""
    operator = ""
    for i, part in enumerate(redirect.children if redirect.type == "heredoc_redirect" else ()):
        field = redirect.field_name_for_child(i)
        if field == "operator":
            operator = part.type
        elif field == "right":
            yield operator, part
        elif field == "redirect":
            yield from _behind(part)
        elif part.type == "pipeline":
            yield "", part


def _join(pipelines: list[Pipeline], operator: str, more: list[Pipeline]) -> list[Pipeline]:
    """One after the other; without an operator, a pipe leads from the last of these to the first of the others."""
    first, *rest = more
    if operator:
        return [*pipelines, first.replace(operator=operator), *rest]
    *before, last = pipelines or [Pipeline("", (), first.is_negated)]
    return [*before, last.replace(stages=(*last.stages, *first.stages)), *rest]
