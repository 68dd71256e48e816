"""Walks through a shell script and has every simple command in it judged, wherever it hides.

The guard follows the folder through `cd`: it judges a command in every folder in which that may run, and so its
redirections. A variable stands for every value that the script may give it, and a command is judged with each of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from tree_sitter import Node

from rookery.guard.command import FOR, UNKNOWN, WHILE, Cwds, Shell, Word, names
from rookery.guard.judge import WRITE_IT_OUT, Judge
from rookery.guard.paths import check_read, check_write, enter, is_there
from rookery.guard.programs import dispatch
from rookery.guard.programs import table as programs
from rookery.guard.shell import substitution
from rookery.guard.shell.assignments import check_name
from rookery.guard.shell.pipelines import CHAINED, OR, Pipeline, Stage, continues, read_pipelines
from rookery.guard.shell.syntax import Tree, parse
from rookery.guard.shell.values import Values
from rookery.guard.shell.variables import SETTERS

_DEEPEST = 12
_MOST_COMMANDS = 3000
_MOST_FOLDERS = 6
_TRANSPARENT = ("command", "builtin", "time", "noglob", "nocorrect")
_BLOCKS = names("program compound_statement do_group")
_SETTING = names("variable_assignment variable_assignments declaration_command unset_command")
_JUMPS = names("break continue return eval trap")
"""What may leave a loop or a function from within, by itself or by the script that it runs."""
_NOWHERE: Cwds = frozenset()
"""The folders of a command that is never reached."""
_ANYWHERE: Cwds = frozenset({None})


def check_script(judge: Judge, text: str, cwd: str, *, in_background: bool = False) -> None:
    """Deny the script if any of its commands is denied."""
    shell = Shell(frozenset({cwd}), lambda inner, around: _run(judge, inner, around, 1), may_block=in_background)
    _run(judge, text, shell, 0)


def _run(judge: Judge, text: str, shell: Shell, depth: int) -> None:
    if depth > _DEEPEST:
        judge.deny("syntax", "scripts are nested too deeply", WRITE_IT_OUT)
    within = shell.replace(run=lambda inner, around: _run(judge, inner, around, depth + 1))
    tree = parse(judge, text)
    walk = _Walk(judge, tree)
    if shell.is_eval and walk.values.variables:
        judge.deny("syntax", "variables are set where the guard cannot follow", WRITE_IT_OUT)
    walk.walk(tree.root, within)
    if walk.has_exited and walk.has_jumped:
        # A jump may pass over the `exit` that rules a folder out.
        _Walk(judge, tree, heeds_exit=False).walk(tree.root, within)


class _Walk:
    """One script. `walk` returns the folders after success and after failure, none where a shell has exited."""

    def __init__(self, judge: Judge, tree: Tree, *, heeds_exit: bool = True) -> None:
        self.judge = judge
        self.tree = tree
        self.values = Values(judge, tree)
        self.functions: dict[str, list[Node]] = {}
        self.calls: list[str] = []
        self.count = 0
        self.at = 0
        self.heeds_exit = heeds_exit
        self.has_changed = False
        """A command has run that may have removed folders."""
        self.has_exited = False
        self.has_jumped = False

    def walk(self, node: Node, shell: Shell) -> tuple[Cwds, Cwds]:
        kind = node.type
        cwds = shell.cwds
        if kind == "command":
            return self._command(node, shell, [], None)
        if kind in CHAINED:
            return self._chain(node, shell)
        if kind in ("subshell", "command_substitution", "process_substitution"):
            self._sequence(node.children, shell)
        elif kind in _BLOCKS:
            cwds = self._sequence(node.children, shell)
        elif kind == "if_statement":
            cwds = _few(_NOWHERE.union(*self._branch(node, shell)))
        elif kind in ("while_statement", "for_statement", "c_style_for_statement"):
            cwds = self._loop(node, shell)
        elif kind == "case_statement":
            cwds = self._case(node, shell)
        elif kind == "function_definition":
            self._define(node, shell)
        elif node.is_named and kind != "comment":
            self._within(node, shell)
            if kind in _SETTING:
                self._check_assignments(node, shell)
        return cwds, cwds

    def _sequence(self, nodes: list[Node], shell: Shell) -> Cwds:
        """One after the other, each in any folder that the ones before may have left."""
        for i, node in enumerate(nodes):
            in_background = i + 1 < len(nodes) and nodes[i + 1].type == "&"
            success, failure = self._reach(node, shell.replace(may_block=True) if in_background else shell)
            if not in_background:  # where it would be in a shell of its own
                shell = shell.replace(cwds=_few(success | failure))
        return shell.cwds

    def _reach(self, node: Node, shell: Shell) -> tuple[Cwds, Cwds]:
        """`walk`, also for what follows an `exit`: the guard judges it as if it could run anywhere."""
        if shell.cwds:
            return self.walk(node, shell)
        self.walk(node, shell.replace(cwds=_ANYWHERE))
        return _NOWHERE, _NOWHERE

    def _chain(self, node: Node, shell: Shell) -> tuple[Cwds, Cwds]:
        success, failure = shell.cwds, _NOWHERE
        for pipeline in read_pipelines(self.judge, node):
            cwds = failure if pipeline.operator == OR else success
            then, otherwise = self._pipeline(pipeline, shell.replace(cwds=cwds or shell.cwds))
            if not cwds:
                continue  # it is never reached, and judged all the same
            if pipeline.operator == OR:
                success, failure = _few(success | then), otherwise
            else:
                success, failure = then, _few(failure | otherwise)
        return success, failure

    def _pipeline(self, pipeline: Pipeline, shell: Shell) -> tuple[Cwds, Cwds]:
        first, *others = pipeline.stages
        success, failure = self._stage(first, shell)
        for stage in others:
            self._stage(stage, shell.replace(is_piped=True, stdin=None))
        if others:  # each is in a shell of its own
            return shell.cwds, shell.cwds
        return (failure, success) if pipeline.is_negated else (success, failure)

    def _stage(self, stage: Stage, shell: Shell) -> tuple[Cwds, Cwds]:
        body = stage.body
        extra, stdin = self._redirects(stage.redirects, shell)
        if body is not None and body.type == "command":
            return self._command(body, shell, extra, stdin)
        if extra:
            self.judge.deny("syntax", "words follow a redirection", WRITE_IT_OUT)
        if body is None:
            return shell.cwds, shell.cwds
        return self.walk(body, shell if stdin is None else shell.replace(stdin=stdin))

    def _branch(self, node: Node, shell: Shell) -> tuple[Cwds, Cwds]:
        """An `if` or `elif` with all that follows: the folders after it, and those where no branch was taken."""
        then = next(i for i, part in enumerate(node.children) if part.type == "then")
        success, failure = self._condition(node.children[1:then], shell)
        others = [part for part in node.children if part.type in ("elif_clause", "else_clause")]
        body = [part for part in node.children[then + 1 :] if part not in others]
        after = self._sequence(body, shell.replace(cwds=success))
        for clause in others:
            around = shell.replace(cwds=failure)
            if clause.type == "else_clause":
                more, failure = self._sequence(clause.children, around), _NOWHERE
            else:
                more, failure = self._branch(clause, around)
            after |= more
        return after, failure

    def _condition(self, nodes: list[Node], shell: Shell) -> tuple[Cwds, Cwds]:
        last = max(i for i, node in enumerate(nodes) if node.is_named and node.type != "comment")
        cwds = self._sequence(nodes[:last], shell)
        return self._reach(nodes[last], shell.replace(cwds=cwds))

    def _case(self, node: Node, shell: Shell) -> Cwds:
        after, carried = shell.cwds, _NOWHERE
        for part in node.children:
            if part.type != "case_item":
                self._reach(part, shell)
                continue
            cwds = self._sequence(part.children, shell.replace(cwds=shell.cwds | carried))
            carried = cwds if part.children[-1].type in (";&", ";;&") else _NOWHERE
            after |= cwds
        return _few(after)

    def _loop(self, node: Node, shell: Shell) -> Cwds:
        inner = shell.replace(loop=WHILE if node.type == "while_statement" else FOR)
        for value in node.children_by_field_name("value"):
            self._within(value, shell)
        cwds = shell.cwds
        for _ in range(3):
            had_changed = self.has_changed
            after = cwds | self._sequence(node.children, inner.replace(cwds=cwds))
            if after == cwds and self.has_changed == had_changed:
                return cwds
            cwds = _few(after)
        return self._sequence(node.children, inner.replace(cwds=cwds | _ANYWHERE)) | _ANYWHERE

    def _define(self, node: Node, shell: Shell) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            self.judge.deny("syntax", "a function without a name or a body", WRITE_IT_OUT)
        function = self.tree.text(name)
        if shell.is_eval:
            self.judge.deny("syntax", "a function is defined where the guard cannot follow", WRITE_IT_OUT)
        if dispatch.is_known(function):
            self.judge.deny("shadow", f"a function named {function} hides the program", "give it another name")
        self.functions.setdefault(function, []).append(body)
        self.walk(body, shell)
        self._redirects(node.children_by_field_name("redirect"), shell)

    def _redirects(self, nodes: Iterable[Node], shell: Shell) -> tuple[list[Node], Word | None]:
        """Judge redirections: words that belong to the command, and what it reads."""
        extra, stdin = list[Node](), None
        for node in nodes:
            words, stdin = self._redirect(node, shell, stdin)
            extra += words
        return extra, stdin

    def _redirect(self, node: Node, shell: Shell, stdin: Word | None) -> tuple[list[Node], Word | None]:
        """Judge one; `stdin` is what the command reads so far."""
        if node.type == "herestring_redirect":
            self._within(node, shell)
            return [], self.values.single(node.children[-1], shell)
        if node.type == "heredoc_redirect":
            return self._heredoc(node, shell)
        operator = next(part.type for part in node.children if not part.is_named)
        targets = node.children_by_field_name("destination")
        if not targets:
            return [], stdin
        target, *extra = targets
        self._within(target, shell)
        check = check_read if operator.startswith("<") else check_write
        for fields in self.values.choices([target], shell):
            for word in fields[0] or [Word("")]:
                is_descriptor = operator in (">&", "<&") and word.known and word.text.rstrip("-").isdigit()
                if word.text != "-" and not is_descriptor:
                    check(self.judge, shell.cwds, word)
        return extra, UNKNOWN if operator.startswith("<") else stdin

    def _heredoc(self, node: Node, shell: Shell) -> tuple[list[Node], Word | None]:
        extra: list[Node] = []
        for i, part in enumerate(node.children):
            field = node.field_name_for_child(i)
            if field == "redirect":
                extra += self._redirect(part, shell, None)[0]
            elif field == "argument":
                extra.append(part)
            elif part.type == "heredoc_body":
                self._within(part, shell)
        return extra, self.values.here_document(node, shell)

    def _command(self, node: Node, shell: Shell, extra: list[Node], stdin: Word | None) -> tuple[Cwds, Cwds]:
        self.count += 1
        if self.count > _MOST_COMMANDS:
            self.judge.deny("syntax", "there are too many commands to judge", "run them in smaller steps")
        self.at = node.start_byte
        name = node.child_by_field_name("name")
        words: list[Node] = []
        for i, part in enumerate(node.children):
            self._within(part, shell)
            if node.field_name_for_child(i) == "redirect":
                more, stdin = self._redirect(part, shell, stdin)
                words += more
                if continues(part):
                    self.judge.deny("syntax", "the command cannot be read for sure", WRITE_IT_OUT)
            elif part.type == "variable_assignment":
                self._check_assignment(part, shell, "" if name is None else self.tree.text(name))
            elif part.type in ("subshell", "compound_statement"):
                self.walk(part, shell)  # `time (…)`
            elif part.is_named or part.type == "$":
                words.append(part)
        for part in extra:
            self._within(part, shell)
        words += extra
        dash = [Word("-")] if self.tree.source[node.end_byte :].lstrip(b" \t\\\n")[:2] in (b"- ", b"-<") else []
        shell = shell if stdin is None else shell.replace(stdin=stdin, is_piped=False)
        success, failure = _NOWHERE, _NOWHERE
        for fields in self.values.choices(words, shell):
            then, otherwise = self._simple([word for field in fields for word in field] + dash, shell)
            success, failure = success | then, failure | otherwise
        return _few(success), _few(failure)

    def _simple(self, words: list[Word], shell: Shell) -> tuple[Cwds, Cwds]:
        while len(words) > 1 and words[0].known and words[0].text in _TRANSPARENT and words[1].text[:1] != "-":
            words = words[1:]
        if not words:
            return shell.cwds, shell.cwds
        name = words[0].text if words[0].known else ""
        if name in ("eval", "trap"):
            around = shell.replace(cwds=shell.cwds | {None}) if name == "trap" else shell
            shell = around.replace(outer=lambda name: self.values.variable(name, self.at, around))
        if name in SETTERS:
            self.values.check_set(words)
        if name in ("cd", "pushd", "popd"):
            return self._change_folder(words, shell)
        if name in self.functions:
            return self._call(name, shell)
        self.has_jumped = self.has_jumped or name in _JUMPS
        dispatch.check(self.judge, words, shell)
        self.has_changed = self.has_changed or words[0].text not in programs.PLAIN
        if self.heeds_exit and _exits(words):
            self.has_exited = True
            return _NOWHERE, _NOWHERE
        return shell.cwds, shell.cwds

    def _change_folder(self, words: list[Word], shell: Shell) -> tuple[Cwds, Cwds]:
        if shell.is_eval:
            self.judge.deny("syntax", "the folder is changed where the guard cannot follow", WRITE_IT_OUT)
        self.values.has_moved = True
        name, rest = words[0].text, [word for word in words[1:] if word not in _CD_OPTIONS]
        target = rest[0] if rest else substitution.home()
        is_lost = name == "popd" or (name == "pushd" and not rest) or len(rest) > 1
        if is_lost or target.text == "-" or target.text.startswith("+"):
            return _ANYWHERE, shell.cwds
        success = _few(_NOWHERE.union(*(enter(target, cwd) for cwd in shell.cwds)))
        succeeds = not self.has_changed and all(is_there(self.judge, cwd) for cwd in success)
        return success, _NOWHERE if succeeds else shell.cwds

    def _call(self, name: str, shell: Shell) -> tuple[Cwds, Cwds]:
        if name in self.calls:
            self.judge.deny("syntax", f"{name} calls itself", WRITE_IT_OUT)
        self.calls.append(name)
        results = [cwds for body in self.functions[name] for cwds in self.walk(body, shell)]
        self.calls.pop()
        cwds = _few(_NOWHERE.union(*results))
        return cwds, cwds

    def _within(self, node: Node, shell: Shell) -> None:
        """Judge every substitution in a word, a test, an assignment or a here-document."""
        if node.type in ("command_substitution", "process_substitution"):
            self.walk(node, shell.replace(stdin=None))
        elif node.type not in ("subshell", "compound_statement") or node.children[0].type == "((":
            for child in node.children:
                self._within(child, shell)

    def _check_assignments(self, node: Node, shell: Shell) -> None:
        """Deny the assignments, exports and removals in a node of the script."""
        if node.type == "variable_assignment":
            self._check_assignment(node, shell)
            return
        for part in node.children:
            if part.type in ("variable_assignment", "variable_assignments"):
                self._check_assignments(part, shell)
            elif part.is_named and part.type != "comment":
                self._check_declared(node, self.values.single(part, shell))

    def _check_declared(self, node: Node, word: Word) -> None:
        """Deny an option of `declare`, or the name of a variable that is exported or removed."""
        if node.type == "declaration_command" and word.text[:1] in "-+" and "n" in word.text:
            if self.tree.text(node).startswith("export"):
                return
            hint = "write it out plainly"
            self.judge.deny("syntax", "a variable that stands for another cannot be followed", hint)
        if not word.known:
            self.judge.deny_unknown("the name of a variable")
        check_name(self.judge, word.text, Word(""), removes=True)

    def _check_assignment(self, node: Node, shell: Shell, command: str | None = None) -> None:
        """Deny an assignment; `command` is the one that it is for, if it is for one alone."""
        name = node.child_by_field_name("name")
        value = self.values.single(node.child_by_field_name("value"), shell)
        variable = "" if name is None else self.tree.text(name).partition("[")[0]
        if variable != "IFS" or command != "read":  # for `read` it splits the input, and nothing else
            check_name(self.judge, variable, value, for_one=command is not None)


_CD_OPTIONS = [Word(option) for option in ("-L", "-P", "-e", "--")]


def _exits(words: list[Word]) -> bool:
    """True if a shell surely ends here; with a word too many, `exit` only complains."""
    first, *rest = words
    return first == Word("exit") and len(rest) <= 1 and all(word.known and word.text.isdigit() for word in rest)


def _few(cwds: Cwds) -> Cwds:
    return cwds if len(cwds) <= _MOST_FOLDERS else _ANYWHERE
