"""The variables of a script: every value that each may have, wherever in the script it is assigned."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from rookery.base.record import Record
from rookery.guard.command import names

_BLOCKS = names(
    "program compound_statement subshell do_group if_statement elif_clause else_clause case_item "
    "command_substitution process_substitution"
)
SETTERS = names("read mapfile readarray printf getopts let wait unset export declare typeset local readonly")
"""Builtins that set, or unset, the variables that they are given."""
MAGIC = names(
    "BASH_REMATCH COPROC DIRSTACK FUNCNAME LINENO MAPFILE OLDPWD OPTARG OPTIND PIPESTATUS PWD RANDOM REPLY SECONDS _"
)
"""Variables that the shell sets by itself."""


@dataclass(frozen=True, slots=True)
class Assignment(Record):
    """One place where a variable gets a value."""

    value: Node | None
    """The word that it gets, or None where that is only known when it runs."""
    at: int
    block: tuple[int, int] | None
    """Where the value surely holds: the rest of the block that the assignment stands in; None if it may be skipped."""
    splits: bool = False
    """A loop's list: the word may become several."""
    is_empty: bool = False

    @property
    def is_unknown(self) -> bool:
        """True if the value is only known when it runs."""
        return self.value is None and not self.is_empty


def collect(root: Node, source: bytes) -> dict[str, list[Assignment]]:
    """The assignments by the variable's name."""
    found: dict[str, list[Assignment]] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.type == "variable_assignment":
            _assign(node, source, found)
        elif node.type == "for_statement":
            _loop(node, source, found)
        elif (
            node.type == "c_style_for_statement"
            or (node.type == "expansion" and _assigns(node))
            or (node.type in ("arithmetic_expansion", "compound_statement") and node.children[0].type in ("((", "$(("))
        ):
            _spoil(node, source, found)
        elif node.type == "unset_command":
            for each in node.children[1:]:
                found.setdefault(_name(each, source), []).append(Assignment(None, node.start_byte, None, is_empty=True))
        elif node.type == "command":
            words = [source[each.start_byte : each.end_byte].decode() for each in node.children if each.is_named]
            if any(word.strip("\\'\"") in SETTERS for word in words[:3]):
                for word in words[1:]:
                    name = word.strip("'\"").partition("=")[0].partition("[")[0].rstrip("+-")
                    found.setdefault(name, []).append(Assignment(None, node.start_byte, None))
    return found


def _assign(node: Node, source: bytes, found: dict[str, list[Assignment]]) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None:
        return
    adds = any(each.type == "+=" for each in node.children)
    array = name.type == "subscript" or (value is not None and value.type == "array")
    plain = name.child_by_field_name("name") if name.type == "subscript" else name
    if plain is None:
        return
    unknown = adds or array or _is_transformed(node, source)
    found.setdefault(_name(plain, source), []).append(
        Assignment(
            None if unknown else value,
            node.end_byte,
            None if unknown else _block(node),
            is_empty=not unknown and value is None,
        )
    )


def _is_transformed(node: Node, source: bytes) -> bool:
    """`declare` expands braces and, with an attribute, changes the value; a `local` outside of a function fails."""
    parent = node.parent
    if parent is None or parent.type != "declaration_command":
        return False
    options = {_name(each, source) for each in parent.children if each.type == "word"}
    outside = parent.children[0].type == "local" and not _has_ancestor(parent, "function_definition")
    return outside or b"{" in source[node.start_byte : node.end_byte] or not options <= {"-x", "-r", "-g"}


def _has_ancestor(node: Node, kind: str) -> bool:
    above = node.parent
    while above is not None and above.type != kind:
        above = above.parent
    return above is not None


def _loop(node: Node, source: bytes, found: dict[str, list[Assignment]]) -> None:
    variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
    if variable is None or body is None:
        return
    values = node.children_by_field_name("value")
    here = (body.start_byte, body.end_byte)
    name = _name(variable, source)
    if not values or node.children[0].type == "select":  # whose answer may name nothing
        found.setdefault(name, []).append(Assignment(None, body.start_byte, here))
    for value in values:
        found.setdefault(name, []).append(Assignment(value, body.start_byte, here, splits=True))


def _spoil(node: Node, source: bytes, found: dict[str, list[Assignment]]) -> None:
    """Arithmetic and `${x:=…}` may set whatever they name."""
    waiting = list(node.children)
    while waiting:
        each = waiting.pop()
        if each.type in ("variable_name", "word"):
            found.setdefault(_name(each, source), []).append(Assignment(None, each.start_byte, None))
        if each.type != "do_group":
            waiting += each.children


def _assigns(node: Node) -> bool:
    return any(not each.is_named and each.type in (":=", "=") for each in node.children)


def _block(node: Node) -> tuple[int, int] | None:
    """The block in which the assignment is a statement of its own, so that what follows there sees it."""
    child, parent = node, node.parent
    while parent is not None and parent.type in ("variable_assignments", "declaration_command", "list"):
        if parent.type == "list" and parent.children[0] != child:
            return None
        child, parent = parent, parent.parent
    behind = child.next_sibling
    if parent is None or parent.type not in _BLOCKS or (behind is not None and behind.type == "&"):
        return None
    return (node.end_byte, parent.end_byte)


def _name(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode()
