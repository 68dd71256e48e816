"""What the words of a script may stand for: every value that it may give its variables, wherever it does.

A word is read once for each combination of values, so that a command is judged with all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from tree_sitter import Node

from rookery.guard.command import UNKNOWN, Shell, Word
from rookery.guard.judge import Judge
from rookery.guard.shell import substitution
from rookery.guard.shell.assignments import check_name
from rookery.guard.shell.expansion import EXPANSIONS, Expander
from rookery.guard.shell.syntax import Tree
from rookery.guard.shell.variables import MAGIC, Assignment, collect

_MOST_LOOKUPS = 3000
_MOST_CHOICES = 64


class Values:
    """The variables of one script."""

    def __init__(self, judge: Judge, tree: Tree) -> None:
        self.judge = judge
        self.tree = tree
        self.variables = collect(tree)
        self.has_moved = False
        """The script has changed its folder."""
        self.count = 0
        self.looking_up: list[str] = []
        for name, assignments in self.variables.items():
            if any(assignment.is_unknown or assignment.splits for assignment in assignments):
                check_name(judge, name, UNKNOWN)

    def check_set(self, words: list[Word]) -> None:
        """Deny if a builtin sets a variable whose value counts as known."""
        if words[0].text == "printf" and not any(word.text.startswith("-v") or not word.known for word in words[1:2]):
            return
        for word in words[1:]:
            name = word.text.partition("=")[0].partition("[")[0]
            assignments = self.variables.get(name)
            check_name(self.judge, name, UNKNOWN)
            if assignments is None and name in substitution.PRESET:
                self.judge.deny("environment", f"{name} is not yours to set", "use another name")
            if assignments is not None and not any(assignment.is_unknown for assignment in assignments):
                self.judge.deny_unknown(f"the value of {name}")

    def choices(self, nodes: list[Node], shell: Shell) -> Iterator[list[list[Word]]]:
        """The fields of the words, once for every combination of values that their variables may have."""
        options = self._options(nodes, shell)
        if prod(len(values) or 1 for values in options.values()) > _MOST_CHOICES:
            options = {name: [UNKNOWN] if len(values) > 1 else values for name, values in options.items()}
        for combination in product(*options.values()):
            expander = Expander(self.judge, self.tree, dict(zip(options, combination, strict=True)))
            yield [expander.fields(node) for node in nodes]

    def single(self, node: Node | None, shell: Shell) -> Word:
        """The word as one value, unknown where there are several."""
        if node is None:
            return Word("")
        options = self._options([node], shell)
        values = {name: values[0] if len(values) == 1 else UNKNOWN for name, values in options.items()}
        return Expander(self.judge, self.tree, values).single(node)

    def here_document(self, redirect: Node, shell: Shell) -> Word:
        """The text of a here-document; nothing is expanded in it if its end is quoted."""
        parts = {part.type: part for part in redirect.children}
        body = parts.get("heredoc_body")
        is_quoted = self.tree.text(parts["heredoc_start"])[0] in "'\"\\"
        return Word(self.tree.text(body)) if body is not None and is_quoted else self.single(body, shell)

    def _options(self, nodes: list[Node], shell: Shell) -> dict[str, list[Word]]:
        """Every value that the expansions in the words may have, by the way they are written."""
        return {self.tree.text(part): self._expand(part, shell) for node in nodes for part in _expansions(node)}

    def _expand(self, node: Node, shell: Shell) -> list[Word]:
        if node.type not in ("simple_expansion", "expansion"):
            return [self._substitute(node, shell)]
        named = [part for part in node.children if part.type in ("variable_name", "special_variable_name")]
        operators = [part.type for part in node.children if not part.is_named and part.type not in ("$", "${", "}")]
        if len(named) != 1 or any(part.type == "subscript" for part in node.children):
            return [UNKNOWN]
        values = self.variable(self.tree.text(named[0]), node.start_byte, shell)
        if not operators and len(node.named_children) == 1:
            return values
        if operators == ["#"] and node.children[1].type == "#":
            return [substitution.NUMBER]
        if operators in ([":-"], ["-"]):
            defaults = [part for part in node.named_children if part not in named]
            return [*values, self.single(defaults[0], shell) if len(defaults) == 1 else Word("")]
        return [UNKNOWN]

    def _substitute(self, node: Node, shell: Shell) -> Word:
        """What a substitution puts in its place; its commands are judged apart from this."""
        if node.type == "arithmetic_expansion":
            return substitution.NUMBER
        if node.type == "process_substitution":
            return Word("/dev/fd/63")
        if len(node.named_children) != 1:
            return UNKNOWN
        inner = node.named_children[0]
        if inner.type == "redirected_statement":
            return self._cat(inner, shell)
        if inner.type != "command" or any(part.type == "variable_assignment" for part in inner.children):
            return UNKNOWN
        words = [self.single(part, shell) for part in inner.named_children]
        if not all(word.known and not word.glob for word in words):
            return UNKNOWN
        return substitution.printed(self.judge, [word.text for word in words], shell)

    def _cat(self, node: Node, shell: Shell) -> Word:
        """`$(cat <<'EOF' …)`, in which messages of commits are written."""
        body, redirects = node.child_by_field_name("body"), node.children_by_field_name("redirect")
        if body is None or self.tree.text(body) != "cat" or [part.type for part in redirects] != ["heredoc_redirect"]:
            return UNKNOWN
        if {part.type for part in redirects[0].named_children} - {"heredoc_start", "heredoc_body", "heredoc_end"}:
            return UNKNOWN
        text = self.here_document(redirects[0], shell)
        return Word(text.text.rstrip("\n") if text.known else text.text, text.known)

    def variable(self, name: str, at: int, shell: Shell) -> list[Word]:
        """Every value that a variable may have at a place of the script."""
        assignments = self.variables.get(name)
        if not assignments:
            return shell.outer(name) if shell.outer else substitution.preset_values(self.judge, name, shell)
        self.count += 1
        if name in MAGIC or name in self.looking_up or self.count > _MOST_LOOKUPS:
            return [UNKNOWN]
        self.looking_up.append(name)
        if self.has_moved:  # the folder may have been another when the value was made
            shell = shell.replace(cwds=frozenset({None}))
        values = [value for assignment in assignments for value in self._assigned(assignment, shell)]
        self.looking_up.pop()
        is_sure = any(
            assignment.block and assignment.block[0] <= at < assignment.block[1] for assignment in assignments
        )
        if not is_sure:
            values.append(Word("") if name.islower() else UNKNOWN)
        return list(dict.fromkeys(values))

    def _assigned(self, assignment: Assignment, shell: Shell) -> list[Word]:
        if assignment.is_unknown:
            return [UNKNOWN]
        if assignment.splits and assignment.value is not None:
            return [word for fields in self.choices([assignment.value], shell) for word in fields[0]]
        return [self.single(assignment.value, shell)]


def _expansions(node: Node) -> Iterator[Node]:
    """The expansions of a word itself, not those within its substitutions."""
    if node.type in EXPANSIONS:
        yield node
        return
    for child in node.children:
        yield from _expansions(child)
