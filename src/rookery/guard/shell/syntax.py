"""A script's syntax tree, or a denial where the grammar and a real shell might not read it alike.

The grammar is forgiving where a shell is not: it leaves out characters, hides a substitution in a pattern, joins no
lines, ends here-documents early. Each of these would let a command pass unseen, so each is refused here.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from rookery.guard.command import names
from rookery.guard.judge import Judge
from rookery.guard.shell.expansion import decode_ansi_c

LONGEST = 1_000_000
_MOST_MENDINGS = 8
_HINT = "write it plainly, one simple command after another"

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
"""Nodes whose own text stands between their children."""
_TIGHT = frozenset({"simple_expansion", "concatenation", "variable_assignment", "command_name"})
"""Nodes whose parts stand together in a shell, while the grammar reads over blanks between them."""
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


def is_one_command(judge: Judge, text: str, program: str) -> bool:
    """True if the script is one plain call of a program: nothing before, after or within it that a shell would do."""
    root, _ = parse(judge, text.encode())
    if [each.type for each in root.children] != ["command"]:
        return False
    name = root.children[0].child_by_field_name("name")
    return name is not None and name.text == program.encode() and _is_plain(root)


def _is_plain(node: Node) -> bool:
    return node.type in _PLAIN and all(_is_plain(each) for each in node.named_children)


def parse(judge: Judge, source: bytes) -> tuple[Node, bytes]:
    """The tree of a script in which every command can be seen, and the text that it is the tree of."""
    if len(source) > LONGEST:
        judge.deny("syntax", "the command is too long to judge", "write long text with the Write tool")
    if any((byte < 32 and byte not in (9, 10)) or byte == 127 for byte in source):
        judge.deny("syntax", "the command has control characters in it", "leave them out, or write $'\\x1b' in quotes")
    for _ in range(_MOST_MENDINGS):
        root = _parser().parse(source.translate(_ASCII)).root_node
        torn = _torn_variables(root, source)
        if root.has_error or not torn:
            break
        for start, end in reversed(torn):
            source = b"%s{%s}%s" % (source[: start + 1], source[start + 1 : end], source[end:])
    if root.has_error or torn:
        judge.deny("syntax", "the command cannot be read for sure", _HINT)
    _inspect(judge, root, source)
    first, last = (root.children[0], root.children[-1]) if root.children else (root, root)
    if source[: first.start_byte].strip() or source[last.end_byte :].strip():
        judge.deny("syntax", "the command cannot be read for sure", _HINT)
    return root, source


def _torn_variables(root: Node, source: bytes) -> list[tuple[int, int]]:
    """Where the grammar takes the `$` from a variable: `$x/$y` has one. Written as `${y}` it is read rightly."""
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.type == "$" and node.parent is not None and node.parent.type != "simple_expansion":
            end = node.end_byte
            while source[end : end + 1].isalnum() or source[end : end + 1] == b"_":
                end += 1
            if end > node.end_byte:
                found.append((node.start_byte, end))
    return sorted(found)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _inspect(judge: Judge, root: Node, source: bytes) -> None:
    waiting = [root]
    counts = hides = False
    while waiting:
        node = waiting.pop()
        counts = (
            counts or node.type in _COUNTING or (node.type == "test_operator" and _text(node, source) in _COMPARING)
        )
        hides = hides or (not node.children and _may_run_when_counted(node, source))
        if node.is_named and node.type not in _KNOWN:
            judge.deny("syntax", f"the guard does not know the shell's {node.type}", _HINT)
        children = node.children
        if not children:
            _inspect_leaf(judge, node, source)
            continue
        waiting += children
        if node.type not in _LOOSE:
            _inspect_gaps(judge, node, children, source)
        if node.type == "expansion" and any(not each.is_named and each.type == "@" for each in children):
            judge.deny("syntax", "a transformed variable may run anything", _HINT)
        if node.type == "heredoc_redirect":
            _inspect_heredoc(judge, children, source)
        if node.type == "command_substitution" and children[0].type == "`" and b"\\" in _text(node, source):
            judge.deny("syntax", "backticks with backslashes in them read differently", "use $(…)")

    if counts and hides:
        judge.deny("syntax", "a text with a substitution in it may be run where a shell counts", _HINT)


def _may_run_when_counted(node: Node, source: bytes) -> bool:
    """Arithmetic takes a variable's text for an expression, and runs what stands in the brackets of it."""
    text = _text(node, source)
    if node.type == "ansi_c_string":
        text = decode_ansi_c(text.decode()).encode()
    text = text.replace(b"\\", b"").strip(b"'\"")
    return b"[$(" in text or b"[`" in text or (text.endswith((b"[$", b"[")) and len(text) > 1)


def _inspect_leaf(judge: Judge, node: Node, source: bytes) -> None:
    text = _text(node, source)
    if node.type == "word" and _is_in(node, "command_name") and text.decode(errors="replace") in _KEYWORDS:
        judge.deny("syntax", "the command cannot be read for sure", _HINT)
    if not node.is_named or node.type in _OPAQUE:
        return
    bare = unescaped(text)
    if node.type == "word" and any(each in bare for each in b" \t\n;|&<>") and not _is_in(node, "expansion"):
        judge.deny("syntax", "the command cannot be read for sure", _HINT)
    if b"`" in bare or b"$(" in bare or b"${" in bare:
        judge.deny("syntax", "a substitution stands where it cannot be judged", _HINT)


def _is_in(node: Node, kind: str) -> bool:
    return node.parent is not None and node.parent.type == kind


def unescaped(text: bytes) -> bytes:
    """The text without what a backslash takes the meaning from."""
    parts = text.split(b"\\\\")
    return b"".join(part[:1] if i == 0 and not part else _drop_escapes(part) for i, part in enumerate(parts))


def _drop_escapes(part: bytes) -> bytes:
    first, *rest = part.split(b"\\")
    return first + b"".join(each[1:] for each in rest)


def _inspect_gaps(judge: Judge, node: Node, children: list[Node], source: bytes) -> None:
    """Between two parts there may be blanks and continued lines, and before a here-document a `-` that has no node."""
    for before, after in pairwise(children):
        gap = source[before.end_byte : after.start_byte]
        if not gap and node.type in _LISTS and before.type in _WORDS and after.type in _WORDS:
            judge.deny("syntax", "the command cannot be read for sure", "write words apart, and variables as ${name}")
        if not gap and before.type == "$" and node.type == "concatenation":
            judge.deny("syntax", "a dollar stands before something else", "leave the dollar out, or quote it")
        if gap and (node.type in _TIGHT or before.type == "${"):
            judge.deny("syntax", "the command cannot be read for sure", _HINT)
        if not gap or not gap.strip(b" \t"):
            continue
        if b"\n" in gap.replace(b"\\\n", b"") and node.type in _ON_ONE_LINE:
            judge.deny("syntax", "the command cannot be read for sure", _HINT)
        if not gap.replace(b"\\\n", b"").strip(b" \t\n"):
            if b"\\\n" in gap and not gap.replace(b"\\\n", b""):
                judge.deny("syntax", "a line is continued within a word", "write the word on one line")
            continue
        if node.type != "redirected_statement" or gap.replace(b"\\\n", b"").strip() != b"-":
            judge.deny("syntax", "the command cannot be read for sure", _HINT)


def _inspect_heredoc(judge: Judge, children: list[Node], source: bytes) -> None:
    found = {each.type: each for each in children}
    start, body, end = (found.get(name) for name in ("heredoc_start", "heredoc_body", "heredoc_end"))
    if start is None or end is None:
        judge.deny("syntax", "a here-document does not end", _HINT)
    word = _text(start, source)
    name = word[1:] if word[:1] == b"\\" else word[1:-1] if word[:1] in (b"'", b'"') else word
    plain = name.replace(b"_", b"").replace(b"-", b"").replace(b".", b"")
    line_start = source.rfind(b"\n", 0, end.start_byte) + 1
    ends_alone = (
        not source[line_start : end.start_byte].strip(b"\t")
        and _text(end, source) == name
        and source[end.end_byte : end.end_byte + 1] in (b"", b"\n")
    )
    if not plain.isalnum() or not ends_alone or (line_start < end.start_byte and "<<-" not in found):
        judge.deny("syntax", "the end of a here-document is unclear", "end it with a plain word alone on its line")
    text = source[body.start_byte : line_start] if body is not None else b""
    if word == name:
        text = text.replace(b"\\\n", b"")
    if any(line.strip(b"\t") == name for line in text.split(b"\n")):
        judge.deny("syntax", "the end of a here-document is unclear", "use an end word that is not in the text")


def _text(node: Node, source: bytes) -> bytes:
    return source[node.start_byte : node.end_byte]
