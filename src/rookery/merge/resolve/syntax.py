"""What a stretch of lines is in a syntax tree: whole nodes side by side, and what they are called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node, Tree

from rookery.base.record import Record
from rookery.merge.resolve.regions import Lines

DEFINITIONS = "definitions"
ITEMS = "items"
IMPORTS = "imports"
_COMMENTS = frozenset(("comment", "line_comment", "block_comment"))
_WRAPPED = {"decorated_definition": "definition", "export_statement": "declaration"}
_DEFINITIONS = frozenset(
    (
        *("function_definition", "class_definition", "function_declaration", "generator_function_declaration"),
        *("class_declaration", "abstract_class_declaration", "interface_declaration", "type_alias_declaration"),
        *("enum_declaration", "method_definition", "method_declaration", "type_declaration", "function_item"),
        *("struct_item", "enum_item", "trait_item", "mod_item"),
    )
)
_COLLECTIONS = frozenset(
    (
        *("list", "set", "dictionary", "array", "object", "argument_list", "arguments", "interface_body"),
        *("object_type", "enum_body", "enum_variant_list", "field_declaration_list", "literal_value"),
        *("field_initializer_list", "block_mapping", "block_sequence", "table", "document", "flow_mapping"),
        *("match_block",),
    )
)
_HUSKS = frozenset(("document", "block_node", "block_mapping", "block_sequence"))
"""Nodes of YAML that begin and end with what is in them."""


@dataclass(frozen=True, slots=True)
class Units(Record):
    """Whole nodes that fill a stretch of lines."""

    kind: str
    """`definitions`, `items` of a collection, `imports`, or `other`."""
    parent: str
    names: tuple[str, ...]


def units(tree: Tree, lines: Lines, start: int) -> Units | None:
    """What the lines that begin at `start` are made of; None if a node sticks out."""
    filled = [at for at, line in enumerate(lines, start) if line.strip()]
    if not filled:
        return None
    first, end = filled[0], filled[-1] + 1
    node: Node | None = tree.root_node
    while node is not None:
        within = [child for child in node.children if child.start_point[0] >= first and _last(child) < end]
        partly = [child for child in node.children if child.start_point[0] < end and _last(child) >= first]
        partly = [child for child in partly if child not in within]
        if len(within) == 1 and within[0].type in _HUSKS:
            node = within[0]
            continue
        if within and not partly:
            exact = within[0].start_point[0] == first and _last(within[-1]) == end - 1
            return _classify(node, [child for child in within if child.is_named]) if exact else None
        node = partly[0] if len(partly) == 1 and not within else None
    return None


def _classify(parent: Node, nodes: list[Node]) -> Units | None:
    nodes = [node for node in nodes if node.type not in _COMMENTS]
    if not nodes:
        return None
    names = tuple(name for node in nodes for name in _names(node))
    if all(_bare(node).type in _DEFINITIONS for node in nodes) and len(names) >= len(nodes):
        return Units(DEFINITIONS, parent.type, names)
    if any(map(_is_import, (parent, *nodes))):
        return Units(IMPORTS, parent.type, names)
    if parent.type in _COLLECTIONS:
        return Units(ITEMS, parent.type, names or tuple(_text(node) for node in nodes))
    return Units("other", parent.type, names)


def _is_import(node: Node) -> bool:
    return "import" in node.type or node.type in ("use_declaration", "use_list")


def _bare(node: Node) -> Node:
    """A definition without its decorators, or without `export`."""
    inner = node.child_by_field_name(_WRAPPED[node.type]) if node.type in _WRAPPED else None
    return inner or node


def _names(node: Node) -> Iterator[str]:
    """What a node is called; nothing if it has no name."""
    node = _bare(node)
    if node.type == "type_declaration":
        yield from (_text(name) for child in node.named_children if (name := child.child_by_field_name("name")))
        return
    for field in ("name", "key", "left"):
        name = node.child_by_field_name(field)
        if name is not None:
            receiver = node.child_by_field_name("receiver")
            yield (_text(receiver) + "." if receiver is not None else "") + _text(name)
            return
    if node.type == "pair" and node.named_children:
        yield _text(node.named_children[0])


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _last(node: Node) -> int:
    """The last line of a node; one that ends with a newline does not reach into the next."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row
