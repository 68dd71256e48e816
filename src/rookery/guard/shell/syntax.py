"""A script's syntax tree, or a denial where the grammar and a real shell might not read it alike.

The grammar is forgiving where a shell is not: it leaves out characters, hides a substitution in a pattern, joins no
lines, ends here-documents early. Each of these would let a command pass unseen, so each is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from rookery.base.record import Record
from rookery.guard.command import names
from rookery.guard.judge import Judge
from rookery.guard.shell.quoting import decode_ansi_c

LONGEST = 1_000_000
_MOST_REPAIRS = 8
_HINT = "write it plainly, one simple command after another"
_UNSURE = ("syntax", "the command cannot be read for sure", _HINT)

_KNOWN = names(
    "program list pipeline compound_statement subshell do_group negated_command if_statement elif_clause else_clause "
    "while_statement for_statement c_style_for_statement case_statement case_item redirected_statement command "
    "command_name function_definition declaration_command unset_command test_command variable_assignment "
    "variable_assignments comment word number string string_content raw_string ansi_c_string translated_string "
    "concatenation simple_expansion expansion command_substitution process_substitution arithmetic_expansion "
    "brace_expression extglob_pattern regex variable_name special_variable_name subscript array file_redirect "
    "herestring_redirect heredoc_redirect heredoc_start heredoc_body heredoc_content heredoc_end file_descriptor "
    "binary_expression unary_expression postfix_expression ternary_expression parenthesized_expression "
    "test_operator"
)
_PLAIN = names("program command command_name word number string string_content raw_string concatenation")
_OPAQUE = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_start", "heredoc_end", "heredoc_body"})
"""Leaves in which nothing is expanded; a here-document without children has a quoted end, or nothing to expand."""
_LOOSE = frozenset({"string", "heredoc_body", "translated_string"})
"""Nodes that have text of their own between their children."""
_TIGHT = frozenset({"simple_expansion", "concatenation", "variable_assignment", "command_name"})
"""Nodes whose parts must touch in a shell, while the grammar ignores blanks between them."""
_ON_ONE_LINE = names(
    "command declaration_command unset_command file_redirect herestring_redirect redirected_statement "
    "variable_assignments negated_command"
)
"""Nodes that a new line ends in a shell."""
_LISTS = names("command declaration_command unset_command file_redirect for_statement array redirected_statement")
_WORDS = names(
    "word string raw_string ansi_c_string translated_string concatenation simple_expansion expansion number "
    "command_substitution process_substitution arithmetic_expansion brace_expression command_name $"
)
"""Two words that touch are one, whatever the grammar says."""
_COUNTING = frozenset({"arithmetic_expansion", "c_style_for_statement", "subscript", "postfix_expression", "(("})
_COMPARING = frozenset({b"-eq", b"-ne", b"-lt", b"-gt", b"-le", b"-ge", b"-v"})
_KEYWORDS = names("! { } if while until for case select function then do done fi esac elif else in [[ ]] coproc")

# The grammar looks characters up in C's table of 256, beyond its end for others, and crashes now and then. To a shell
# they are letters like any other.
_ASCII = bytes(range(128)) + b"x" * 128


@dataclass(frozen=True, slots=True)
class Tree(Record):
    """A script that is parsed, and the text that it is the tree of."""

    root: Node
    source: bytes

    def text(self, node: Node) -> str:
        """How the script writes the node."""
        return self.raw(node).decode()

    def raw(self, node: Node) -> bytes:
        """The bytes of the node."""
        return self.source[node.start_byte : node.end_byte]


def walk(node: Node, *closed: str) -> Iterator[Node]:
    """The node and all nodes in it, except those inside of nodes of the `closed` kinds."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if node.type not in closed:
            waiting += node.children


def is_one_command(judge: Judge, text: str, program: str) -> bool:
    """True if the script is one plain call of a program: nothing before, after or within it that a shell would do."""
    root = parse(judge, text).root
    if [node.type for node in root.children] != ["command"]:
        return False
    name = root.children[0].child_by_field_name("name")
    is_plain = all(node.type in _PLAIN or not node.is_named for node in walk(root))
    return is_plain and name is not None and name.text == program.encode()


def parse(judge: Judge, text: str) -> Tree:
    """The tree of a script in which every command can be seen."""
    source = text.encode()
    if len(source) > LONGEST:
        judge.deny("syntax", "the command is too long to judge", "write long text with the Write tool")
    if any((byte < 32 and byte not in (9, 10)) or byte == 127 for byte in source):
        judge.deny("syntax", "the command has control characters in it", "leave them out, or write $'\\x1b' in quotes")
    for _ in range(_MOST_REPAIRS):
        root = _parser().parse(source.translate(_ASCII)).root_node
        torn = _torn_variables(root, source)
        if root.has_error or not torn:
            break
        for start, end in reversed(torn):
            source = b"%s{%s}%s" % (source[: start + 1], source[start + 1 : end], source[end:])
    if root.has_error or torn:
        judge.deny(*_UNSURE)
    tree = Tree(root, source)
    _inspect(judge, tree)
    first, last = (root.children[0], root.children[-1]) if root.children else (root, root)
    if source[: first.start_byte].strip() or source[last.end_byte :].strip():
        judge.deny(*_UNSURE)
    return tree


def _torn_variables(root: Node, source: bytes) -> list[tuple[int, int]]:
    """Where the grammar takes the `$` from a variable: `$x/$y` has one. Written as `${y}` it is read rightly."""
    places = []
    for node in walk(root):
        if node.type == "$" and not _is_in(node, "simple_expansion"):
            name = re.compile(rb"[a-zA-Z0-9_]+").match(source, node.end_byte)
            if name:
                places.append((node.start_byte, name.end()))
    return sorted(places)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _inspect(judge: Judge, tree: Tree) -> None:
    counts = hides = False
    for node in walk(tree.root):
        kind, children = node.type, node.children
        if node.is_named and kind not in _KNOWN:
            judge.deny("syntax", f"the guard does not know the shell's {kind}", _HINT)
        counts = counts or kind in _COUNTING or (kind == "test_operator" and tree.raw(node) in _COMPARING)
        if not children:
            hides = hides or _may_run_when_counted(node, tree)
            _inspect_leaf(judge, node, tree)
        elif kind not in _LOOSE:
            _inspect_gaps(judge, node, tree)
        if kind == "expansion" and any(not child.is_named and child.type == "@" for child in children):
            judge.deny("syntax", "a transformed variable may run anything", _HINT)
        if kind == "heredoc_redirect":
            _inspect_heredoc(judge, children, tree)
        if kind == "command_substitution" and children[0].type == "`" and b"\\" in tree.raw(node):
            judge.deny("syntax", "backticks with backslashes in them read differently", "use $(…)")
    if counts and hides:
        judge.deny("syntax", "a text with a substitution in it may be run where a shell counts", _HINT)


def _may_run_when_counted(node: Node, tree: Tree) -> bool:
    """Arithmetic takes a variable's text for an expression, and runs a substitution in its brackets."""
    text = decode_ansi_c(tree.text(node)).encode() if node.type == "ansi_c_string" else tree.raw(node)
    text = text.replace(b"\\", b"").strip(b"'\"")
    return b"[$(" in text or b"[`" in text or (text.endswith((b"[$", b"[")) and len(text) > 1)


def _inspect_leaf(judge: Judge, node: Node, tree: Tree) -> None:
    text, is_word = tree.raw(node), node.type == "word"
    if is_word and _is_in(node, "command_name") and text.decode(errors="replace") in _KEYWORDS:
        judge.deny(*_UNSURE)
    if not node.is_named or node.type in _OPAQUE:
        return
    bare = re.sub(rb"\\.?", b"", text, flags=re.DOTALL)  # without what a backslash takes the meaning from
    if is_word and any(byte in bare for byte in b" \t\n;|&<>") and not _is_in(node, "expansion"):
        judge.deny(*_UNSURE)
    if b"`" in bare or b"$(" in bare or b"${" in bare:
        judge.deny("syntax", "a substitution stands where it cannot be judged", _HINT)


def _is_in(node: Node, kind: str) -> bool:
    return node.parent is not None and node.parent.type == kind


def _inspect_gaps(judge: Judge, node: Node, tree: Tree) -> None:
    """Between two parts there may be blanks and continued lines, and before a here-document a `-` that has no node."""
    kind = node.type
    for before, after in pairwise(node.children):
        gap = tree.source[before.end_byte : after.start_byte]
        joined = gap.replace(b"\\\n", b"")
        if not gap and kind in _LISTS and before.type in _WORDS and after.type in _WORDS:
            judge.deny("syntax", "the command cannot be read for sure", "write words apart, and variables as ${name}")
        if not gap and before.type == "$" and kind == "concatenation":
            judge.deny("syntax", "a dollar stands before something else", "leave the dollar out, or quote it")
        is_apart = bool(gap) and (kind in _TIGHT or before.type == "${")
        is_ended = b"\n" in joined and kind in _ON_ONE_LINE
        is_lost = bool(joined.strip(b" \t\n")) and (kind != "redirected_statement" or joined.strip() != b"-")
        if is_apart or is_ended or is_lost:
            judge.deny(*_UNSURE)
        if gap and not joined:
            judge.deny("syntax", "a line is continued within a word", "write the word on one line")


def _inspect_heredoc(judge: Judge, children: list[Node], tree: Tree) -> None:
    parts = {child.type: child for child in children}
    start, body, end = (parts.get(name) for name in ("heredoc_start", "heredoc_body", "heredoc_end"))
    if start is None or end is None:
        judge.deny("syntax", "a here-document does not end", _HINT)
    source, word = tree.source, tree.raw(start)
    name = word[1:] if word[:1] == b"\\" else word[1:-1] if word[:1] in (b"'", b'"') else word
    line_start = source.rfind(b"\n", 0, end.start_byte) + 1
    ends_alone = (
        not source[line_start : end.start_byte].strip(b"\t")
        and tree.raw(end) == name
        and source[end.end_byte : end.end_byte + 1] in (b"", b"\n")
    )
    is_plain = name.translate(None, b"_-.").isalnum()
    if not is_plain or not ends_alone or (line_start < end.start_byte and "<<-" not in parts):
        judge.deny("syntax", "the end of a here-document is unclear", "end it with a plain word alone on its line")
    text = source[body.start_byte : line_start] if body is not None else b""
    if word == name:
        text = text.replace(b"\\\n", b"")
    if any(line.strip(b"\t") == name for line in text.split(b"\n")):
        judge.deny("syntax", "the end of a here-document is unclear", "use an end word that is not in the text")
