"""The variables of a script: every value that each may have, wherever in the script it is assigned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from rookery.base.record import Record
from rookery.guard.command import names
from rookery.guard.shell.syntax import Tree, walk

_BLOCKS = names(
    "program compound_statement subshell do_group if_statement elif_clause else_clause case_item "
    "command_substitution process_substitution"
)
SETTERS = names("read mapfile readarray printf getopts let wait unset export declare typeset local readonly")
"""Builtins that set, or unset, the variables that are their arguments."""
MAGIC = names(
    "BASH_REMATCH COPROC DIRSTACK FUNCNAME LINENO MAPFILE OLDPWD OPTARG OPTIND PIPESTATUS PWD RANDOM REPLY SECONDS _"
)
"""Variables that the shell sets by itself."""


@dataclass(frozen=True, slots=True)
class Assignment(Record):
    """One place where a variable gets a value."""

    value: Node | None
    """The word that it gets, or None where that is only known when it runs."""
    block: tuple[int, int] | None = None
    """Where the value surely holds: the rest of the block around the assignment; None if it may be skipped."""
    splits: bool = False
    """A loop's list: the word may become several."""
    is_empty: bool = False

    @property
    def is_unknown(self) -> bool:
        """True if the value is only known when it runs."""
        return self.value is None and not self.is_empty


_UNSURE = Assignment(None)


def collect(tree: Tree) -> dict[str, list[Assignment]]:
    """The assignments by the variable's name."""
    assignments: dict[str, list[Assignment]] = {}
    for node in walk(tree.root):
        for name, assignment in _assignments(node, tree):
            assignments.setdefault(name, []).append(assignment)
    return assignments


def _assignments(node: Node, tree: Tree) -> Iterator[tuple[str, Assignment]]:
    if node.type == "variable_assignment":
        yield from _plain(node, tree)
    elif node.type == "for_statement":
        yield from _loop(node, tree)
    elif _sets_by_name(node):
        for part in walk(node, "do_group"):
            if part.type in ("variable_name", "word"):
                yield tree.text(part), _UNSURE
    elif node.type == "unset_command":
        for part in node.children[1:]:
            yield tree.text(part), Assignment(None, is_empty=True)
    elif node.type == "command":
        words = [tree.text(part) for part in node.named_children]
        is_setter = any(word.strip("\\'\"") in SETTERS for word in words[:3])
        for word in words[1:] if is_setter else ():
            yield word.strip("'\"").partition("=")[0].partition("[")[0].rstrip("+-"), _UNSURE


def _sets_by_name(node: Node) -> bool:
    """True for arithmetic and `${x:=…}`, which may set any variable in them."""
    if node.type == "expansion":
        return any(not part.is_named and part.type in (":=", "=") for part in node.children)
    if node.type in ("arithmetic_expansion", "compound_statement"):
        return node.children[0].type in ("((", "$((")
    return node.type == "c_style_for_statement"


def _plain(node: Node, tree: Tree) -> Iterator[tuple[str, Assignment]]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    is_array = value is not None and value.type == "array"
    if name is not None and name.type == "subscript":
        name, is_array = name.child_by_field_name("name"), True
    if name is None:
        return
    if is_array or any(part.type == "+=" for part in node.children) or _is_transformed(node, tree):
        yield tree.text(name), _UNSURE
    else:
        yield tree.text(name), Assignment(value, _block(node), is_empty=value is None)


def _is_transformed(node: Node, tree: Tree) -> bool:
    """`declare` expands braces and, with an attribute, changes the value; a `local` outside of a function fails."""
    parent = node.parent
    if parent is None or parent.type != "declaration_command":
        return False
    options = {tree.text(part) for part in parent.children if part.type == "word"}
    is_outside = parent.children[0].type == "local" and not _is_in_function(parent)
    return is_outside or b"{" in tree.raw(node) or not options <= {"-x", "-r", "-g"}


def _is_in_function(node: Node | None) -> bool:
    while node is not None and node.type != "function_definition":
        node = node.parent
    return node is not None


def _loop(node: Node, tree: Tree) -> Iterator[tuple[str, Assignment]]:
    variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
    if variable is None or body is None:
        return
    values = node.children_by_field_name("value")
    block = (body.start_byte, body.end_byte)
    if not values or node.children[0].type == "select":  # the answer may name nothing
        yield tree.text(variable), Assignment(None, block)
    for value in values:
        yield tree.text(variable), Assignment(value, block, splits=True)


def _block(node: Node) -> tuple[int, int] | None:
    """The block in which the assignment is a statement of its own, so that the statements after it see the value."""
    child, parent = node, node.parent
    while parent is not None and parent.type in ("variable_assignments", "declaration_command", "list"):
        if parent.type == "list" and parent.children[0] != child:
            return None
        child, parent = parent, parent.parent
    behind = child.next_sibling
    if parent is None or parent.type not in _BLOCKS or (behind is not None and behind.type == "&"):
        return None
    return (node.end_byte, parent.end_byte)
