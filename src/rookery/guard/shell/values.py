"""What the words of a script may stand for: every value that it may give its variables, wherever it does.

A word is read once for each combination of values, so that a command is judged with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from tree_sitter import Node

from rookery.guard.command import UNKNOWN, Shell, Word
from rookery.guard.judge import Judge
from rookery.guard.shell import substitution
from rookery.guard.shell.assignments import check_name
from rookery.guard.shell.expansion import EXPANSIONS, Expander
from rookery.guard.shell.variables import MAGIC, collect

_MOST_LOOKUPS = 3000
_MOST_CHOICES = 64


class Values:
    """The variables of one script."""

    def __init__(self, judge: Judge, source: bytes, root: Node) -> None:
        self.judge = judge
        self.source = source
        self.variables = collect(root, source)
        self.has_moved = False
        """The script has changed its folder."""
        self.count = 0
        self.looking_up: list[str] = []
        self.chosen: dict[str, Word] = {}
        self.expander = Expander(judge, source, self._value)
        for name, found in self.variables.items():
            if any(each.is_unknown or each.splits for each in found):
                check_name(judge, name, UNKNOWN)

    def text(self, node: Node) -> str:
        """How the node is written."""
        return self.source[node.start_byte : node.end_byte].decode()

    def check_set(self, words: list[Word]) -> None:
        """Deny if a builtin sets a variable whose value counts as known."""
        if words[0].text == "printf" and not any(word.text.startswith("-v") or not word.known for word in words[1:2]):
            return
        for word in words[1:]:
            name = word.text.partition("=")[0].partition("[")[0]
            found = self.variables.get(name)
            check_name(self.judge, name, UNKNOWN)
            if found is None and name in substitution.GIVEN:
                self.judge.deny("environment", f"{name} is not yours to set", "use another name")
            if found is not None and not any(each.is_unknown for each in found):
                self.judge.deny_unknown(f"the value of {name}")

    def choices(self, nodes: list[Node], shell: Shell) -> Iterator[list[list[Word]]]:
        """The fields of the words, once for every combination of values that their variables may have."""
        options = {self.text(each): self._options(each, shell) for node in nodes for each in _expansions(node)}
        several = {name: values for name, values in options.items() if len(values) > 1}
        count = 1
        for values in several.values():
            count *= len(values)
        if count > _MOST_CHOICES:
            options = {name: [UNKNOWN] if name in several else values for name, values in options.items()}
        for combination in product(*options.values()):
            chosen, self.chosen = self.chosen, dict(zip(options, combination, strict=True))
            fields = [self.expander.fields(node) for node in nodes]
            self.chosen = chosen
            yield fields

    def single(self, node: Node, shell: Shell) -> Word:
        """The word as one value, unknown where there are several."""
        options = {self.text(each): self._options(each, shell) for each in _expansions(node)}
        chosen, self.chosen = (
            self.chosen,
            {name: values[0] if len(values) == 1 else UNKNOWN for name, values in options.items()},
        )
        word = self.expander.single(node)
        self.chosen = chosen
        return word

    def reader(self, shell: Shell) -> Callable[[Node], Word]:
        """Reads single words in a shell."""
        return lambda node: self.single(node, shell)

    def _value(self, node: Node) -> Word:
        """What an expansion stands for in the combination that is being judged."""
        return self.chosen.get(self.text(node), UNKNOWN)

    def _options(self, node: Node, shell: Shell) -> list[Word]:
        """Every value that an expansion may have."""
        if node.type not in ("simple_expansion", "expansion"):
            return [substitution.result(self.judge, node, self.text, shell, self.reader(shell))]
        named = [each for each in node.children if each.type in ("variable_name", "special_variable_name")]
        operators = [each for each in node.children if not each.is_named and each.type not in ("$", "${", "}")]
        if len(named) != 1 or any(each.type == "subscript" for each in node.children):
            return [UNKNOWN]
        values = self.variable(self.text(named[0]), node.start_byte, shell)
        if not operators and sum(each.is_named for each in node.children) == 1:
            return values
        if len(operators) == 1 and operators[0].type == "#" and node.children[1].type == "#":
            return [Word("7")]
        if len(operators) == 1 and operators[0].type in (":-", "-"):
            default = [each for each in node.children if each.is_named and each not in named]
            return [*values, self.single(default[0], shell) if len(default) == 1 else Word("")]
        return [UNKNOWN]

    def variable(self, name: str, at: int, shell: Shell) -> list[Word]:
        """Every value that a variable may have at a place of the script."""
        found = self.variables.get(name)
        if not found:
            return shell.outer(name) if shell.outer else substitution.given(self.judge, name, shell)
        self.count += 1
        if name in MAGIC or name in self.looking_up or self.count > _MOST_LOOKUPS:
            return [UNKNOWN]
        self.looking_up.append(name)
        if self.has_moved:  # the folder may have been another when the value was made
            shell = shell.replace(cwds=frozenset({None}))
        values: list[Word] = []
        for each in found:
            if each.is_empty:
                values.append(Word(""))
            elif each.value is None:
                values.append(UNKNOWN)
            elif each.splits:
                values += [word for fields in self.choices([each.value], shell) for word in fields[0]]
            else:
                values.append(self.single(each.value, shell))
        self.looking_up.pop()
        surely = any(each.block and each.block[0] <= at < each.block[1] for each in found)
        if not surely:
            values.append(Word("") if name.islower() else UNKNOWN)
        return list(dict.fromkeys(values))


def _expansions(node: Node) -> Iterator[Node]:
    """The expansions of a word itself, not those within its substitutions."""
    if node.type in EXPANSIONS:
        yield node
        return
    for each in node.children:
        yield from _expansions(each)
