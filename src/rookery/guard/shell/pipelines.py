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
class Link(Record):
    """A pipeline, and whether it runs after success (`&&`) or after failure (`||`) of what is before it."""

    operator: str
    stages: tuple[Stage, ...]
    is_negated: bool = False


def read_chain(judge: Judge, node: Node) -> list[Link]:
    """The pipelines of a list in their order; of anything else, itself alone."""
    parts = [each for each in node.children if each.type != "comment"]
    if node.type == "list":
        if len(parts) != 3 or parts[1].type not in (AND, OR):
            judge.deny("syntax", "the command cannot be read for sure", WRITE_IT_OUT)
        return _append(read_chain(judge, parts[0]), parts[1].type, read_chain(judge, parts[2]))
    if node.type == "pipeline":
        links: list[Link] = []
        for each in parts:
            if each.type not in _PIPES:
                links = _pipe(links, read_chain(judge, each))
        return links
    if node.type == "negated_command":
        first, *rest = read_chain(judge, parts[-1])
        return [first.replace(is_negated=not first.is_negated), *rest]
    if node.type == "redirected_statement":
        return _redirect(judge, node)
    return [Link("", (Stage(node),))]


def continues(redirect: Node) -> bool:
    """True if a here-document carries what stands behind it on its line."""
    return any(True for _ in _behind(redirect))


def _redirect(judge: Judge, node: Node) -> list[Link]:
    body = node.child_by_field_name("body")
    redirects = node.children_by_field_name("redirect")
    links = [Link("", (Stage(None),))] if body is None else read_chain(judge, body)
    *before, last = links
    *stages, stage = last.stages
    stage = stage.replace(redirects=(*stage.redirects, *redirects))
    links = [*before, last.replace(stages=(*stages, stage))]
    for redirect in redirects:
        for operator, behind in _behind(redirect):
            more = read_chain(judge, behind)
            links = _append(links, operator, more) if operator else _pipe(links, more)
    return links


def _behind(redirect: Node) -> Iterator[tuple[str, Node]]:
    """What stands behind a here-document on its line, with its operator; a pipeline goes on and has none."""
    operator = ""
    for i, each in enumerate(redirect.children if redirect.type == "heredoc_redirect" else ()):
        field = redirect.field_name_for_child(i)
        if field == "operator":
            operator = each.type
        elif field == "right":
            yield operator, each
        elif field == "redirect":
            yield from _behind(each)
        elif each.type == "pipeline":
            yield "", each


def _append(links: list[Link], operator: str, more: list[Link]) -> list[Link]:
    first, *rest = more
    return [*links, first.replace(operator=operator), *rest]


def _pipe(links: list[Link], more: list[Link]) -> list[Link]:
    """The first of the second chain reads what the last of the first writes."""
    if not links:
        return more
    *before, last = links
    first, *rest = more
    return [*before, last.replace(stages=(*last.stages, *first.stages)), *rest]
