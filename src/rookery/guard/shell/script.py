"""Walks through a shell script and has every simple command in it judged, wherever it hides.

The folder is followed through `cd`: a command is judged in every folder in which it may run, and so are its
redirections. A variable stands for every value that the script may give it, and a command is judged with each of them.
"""

from __future__ import annotations

from tree_sitter import Node

from rookery.guard.command import FOR, UNKNOWN, WHILE, Cwds, Shell, Word, names
from rookery.guard.judge import WRITE_IT_OUT, Judge
from rookery.guard.paths import check_read, check_write, enter, is_there
from rookery.guard.programs import dispatch
from rookery.guard.programs import table as programs
from rookery.guard.shell import assignments, substitution
from rookery.guard.shell.pipelines import CHAINED, OR, Link, Stage, continues, read_chain
from rookery.guard.shell.syntax import parse
from rookery.guard.shell.values import Values
from rookery.guard.shell.variables import SETTERS

_DEEPEST = 12
_MOST_COMMANDS = 3000
_MOST_FOLDERS = 6
_SUBSTITUTIONS = ("command_substitution", "process_substitution")
_TRANSPARENT = ("command", "builtin", "time", "noglob", "nocorrect")
_BLOCKS = names("program compound_statement do_group")
_JUMPS = names("break continue return eval trap")
"""What may leave a loop or a function from within, by itself or by the script that it is given."""
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
    root, source = parse(judge, text.encode())
    walk = _Walk(judge, source, root)
    if shell.is_eval and walk.values.variables:
        judge.deny("syntax", "variables are set where it cannot be followed", WRITE_IT_OUT)
    walk.walk(root, within)
    if walk.has_exited and walk.has_jumped:
        # A jump may pass over the `exit` that rules a folder out.
        _Walk(judge, source, root, heeds_exit=False).walk(root, within)


class _Walk:
    """One script. `walk` returns the folders after success and after failure, none where a shell has exited."""

    def __init__(self, judge: Judge, source: bytes, root: Node, *, heeds_exit: bool = True) -> None:
        self.judge = judge
        self.source = source
        self.values = Values(judge, source, root)
        self.functions: dict[str, list[Node]] = {}
        self.calls: list[str] = []
        self.count = 0
        self.at = 0
        self.heeds_exit = heeds_exit
        self.has_changed = False
        """A command has run that may have taken folders away."""
        self.has_exited = False
        self.has_jumped = False

    def walk(self, node: Node, shell: Shell) -> tuple[Cwds, Cwds]:
        kind = node.type
        if kind == "command":
            return self._command(node, shell, [], None)
        if kind in CHAINED:
            return self._chain(node, shell)
        if kind in ("subshell", "command_substitution", "process_substitution"):
            self._sequence(node.children, shell)
        elif kind in _BLOCKS:
            cwds = self._sequence(node.children, shell)
            return cwds, cwds
        elif kind == "if_statement":
            cwds, otherwise = self._branch(node, shell)
            return _few(cwds | otherwise), _few(cwds | otherwise)
        elif kind in ("while_statement", "for_statement", "c_style_for_statement"):
            cwds = self._loop(node, shell)
            return cwds, cwds
        elif kind == "case_statement":
            cwds = self._case(node, shell)
            return cwds, cwds
        elif kind == "function_definition":
            self._define(node, shell)
        elif kind in ("variable_assignment", "variable_assignments", "declaration_command", "unset_command"):
            self._within(node, shell)
            assignments.check(self.judge, node, self.values.text, self.values.reader(shell))
        elif node.is_named and kind != "comment":
            self._within(node, shell)
        return shell.cwds, shell.cwds

    def _sequence(self, nodes: list[Node], shell: Shell) -> Cwds:
        """One after the other, each in any folder that the ones before may have left."""
        for i, node in enumerate(nodes):
            in_background = i + 1 < len(nodes) and nodes[i + 1].type == "&"
            inner = shell.replace(may_block=True) if in_background else shell
            success, failure = self._reach(node, inner)
            if not in_background:  # where it would be in a shell of its own
                shell = shell.replace(cwds=_few(success | failure))
        return shell.cwds

    def _reach(self, node: Node, shell: Shell) -> tuple[Cwds, Cwds]:
        """`walk`, also for what stands behind an `exit`: it is judged as if it could run anywhere."""
        if shell.cwds:
            return self.walk(node, shell)
        self.walk(node, shell.replace(cwds=_ANYWHERE))
        return _NOWHERE, _NOWHERE

    def _chain(self, node: Node, shell: Shell) -> tuple[Cwds, Cwds]:
        success, failure = shell.cwds, _NOWHERE
        for link in read_chain(self.judge, node):
            here = failure if link.operator == OR else success
            then, otherwise = self._link(link, shell.replace(cwds=here or shell.cwds))
            if not here:
                continue  # it is never reached, and judged all the same
            if link.operator == OR:
                success, failure = _few(success | then), otherwise
            else:
                success, failure = then, _few(failure | otherwise)
        return success, failure

    def _link(self, link: Link, shell: Shell) -> tuple[Cwds, Cwds]:
        if len(link.stages) == 1:
            success, failure = self._stage(link.stages[0], shell)
            return (failure, success) if link.is_negated else (success, failure)
        piped = shell.replace(is_piped=True, stdin=None)
        for i, stage in enumerate(link.stages):
            self._stage(stage, piped if i else shell)  # in a shell of its own
        return shell.cwds, shell.cwds

    def _stage(self, stage: Stage, shell: Shell) -> tuple[Cwds, Cwds]:
        body = stage.body
        extra: list[Node] = []
        stdin: Word | None = None
        for each in stage.redirects:
            words, text = self._redirect(each, shell)
            extra += words
            stdin = text if text is not None else stdin
        if body is not None and body.type == "command":
            return self._command(body, shell, extra, stdin)
        if extra:
            self.judge.deny("syntax", "words stand behind a redirection", WRITE_IT_OUT)
        if body is None:
            return shell.cwds, shell.cwds
        return self.walk(body, shell if stdin is None else shell.replace(stdin=stdin))

    def _branch(self, node: Node, shell: Shell) -> tuple[Cwds, Cwds]:
        """An `if` or `elif` with all that follows: the folders after it, and those where no branch was taken."""
        then = next(i for i, each in enumerate(node.children) if each.type == "then")
        success, failure = self._condition(node.children[1:then], shell)
        others = [each for each in node.children if each.type in ("elif_clause", "else_clause")]
        body = [each for each in node.children[then + 1 :] if each not in others]
        after = self._sequence(body, shell.replace(cwds=success))
        for each in others:
            around = shell.replace(cwds=failure)
            if each.type == "else_clause":
                more, failure = self._sequence(each.children, around), _NOWHERE
            else:
                more, failure = self._branch(each, around)
            after |= more
        return after, failure

    def _condition(self, nodes: list[Node], shell: Shell) -> tuple[Cwds, Cwds]:
        last = max(i for i, each in enumerate(nodes) if each.is_named and each.type != "comment")
        cwds = self._sequence(nodes[:last], shell)
        return self._reach(nodes[last], shell.replace(cwds=cwds))

    def _case(self, node: Node, shell: Shell) -> Cwds:
        after, carried = shell.cwds, _NOWHERE
        for each in node.children:
            if each.type != "case_item":
                self._reach(each, shell)
                continue
            cwds = self._sequence(each.children, shell.replace(cwds=shell.cwds | carried))
            carried = cwds if each.children[-1].type in (";&", ";;&") else _NOWHERE
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
        called = self.values.text(name)
        if shell.is_eval:
            self.judge.deny("syntax", "a function is defined where it cannot be followed", WRITE_IT_OUT)
        if dispatch.is_known(called):
            self.judge.deny("shadow", f"a function named {called} hides the program", "give it another name")
        self.functions.setdefault(called, []).append(body)
        self.walk(body, shell)
        for each in node.children_by_field_name("redirect"):
            self._redirect(each, shell)

    def _redirect(self, node: Node, shell: Shell) -> tuple[list[Node], Word | None]:
        """Judge one redirection: words that belong to the command, and what it reads."""
        if node.type == "herestring_redirect":
            self._within(node, shell)
            return [], self.values.single(node.children[-1], shell)
        if node.type == "heredoc_redirect":
            return self._heredoc(node, shell)
        operator = next(each.type for each in node.children if not each.is_named)
        targets = node.children_by_field_name("destination")
        if not targets:
            return [], None
        target, *extra = targets
        self._within(target, shell)
        for chosen in self.values.choices([target], shell):
            for word in chosen[0] or [Word("")]:
                if word.text == "-" or (operator in (">&", "<&") and word.known and word.text.rstrip("-").isdigit()):
                    continue
                if operator.startswith("<"):
                    check_read(self.judge, word, shell.cwds)
                else:
                    check_write(self.judge, word, shell.cwds)
        return extra, UNKNOWN if operator.startswith("<") else None

    def _heredoc(self, node: Node, shell: Shell) -> tuple[list[Node], Word | None]:
        extra: list[Node] = []
        start = next(each for each in node.children if each.type == "heredoc_start")
        quoted = self.values.text(start)[0] in "'\"\\"
        body: Word = Word("")
        for i, each in enumerate(node.children):
            field = node.field_name_for_child(i)
            if each.type == "heredoc_body":
                self._within(each, shell)
                body = Word(self.values.text(each)) if quoted else self.values.single(each, shell)
            elif field == "argument":
                extra.append(each)
            elif field == "redirect":
                more, _ = self._redirect(each, shell)
                extra += more
        return extra, body

    def _command(self, node: Node, shell: Shell, extra: list[Node], stdin: Word | None) -> tuple[Cwds, Cwds]:
        self.count += 1
        if self.count > _MOST_COMMANDS:
            self.judge.deny("syntax", "there are too many commands to judge", "run them in smaller steps")
        self.at = node.start_byte
        words: list[Node] = []
        for i, each in enumerate(node.children):
            field = node.field_name_for_child(i)
            self._within(each, shell)
            if field == "redirect":
                more, text = self._redirect(each, shell)
                words += more
                stdin = text if text is not None else stdin
                if continues(each):
                    self.judge.deny("syntax", "the command cannot be read for sure", WRITE_IT_OUT)
            elif each.type == "variable_assignment":
                name = node.child_by_field_name("name")
                prefixed = "" if name is None else self.values.text(name)
                assignments.check(self.judge, each, self.values.text, self.values.reader(shell), prefixed=prefixed)
            elif each.type in ("subshell", "compound_statement"):
                self.walk(each, shell)  # `time (…)`
            elif each.is_named or each.type == "$":
                words.append(each)
        for each in extra:
            self._within(each, shell)
        words += extra
        dash = [Word("-")] if self.source[node.end_byte :].lstrip(b" \t\\\n")[:2] in (b"- ", b"-<") else []
        shell = shell if stdin is None else shell.replace(stdin=stdin, is_piped=False)
        success: Cwds = frozenset()
        failure: Cwds = frozenset()
        for fields in self.values.choices(words, shell):
            ok, bad = self._simple([word for field in fields for word in field] + dash, shell)
            success, failure = success | ok, failure | bad
        return _few(success), _few(failure)

    def _simple(self, words: list[Word], shell: Shell) -> tuple[Cwds, Cwds]:
        if not words:
            return shell.cwds, shell.cwds
        first = words[0]
        while first.known and first.text in _TRANSPARENT and len(words) > 1 and words[1].text[:1] != "-":
            words = words[1:]
            first = words[0]
        if first.known and first.text in ("eval", "trap"):
            around = shell.replace(cwds=shell.cwds | {None}) if first.text == "trap" else shell
            shell = around.replace(outer=lambda name: self.values.variable(name, self.at, around))
        if first.known and first.text in SETTERS:
            self.values.check_set(words)
        if first.known and first.text in ("cd", "pushd", "popd"):
            return self._change_folder(words, shell)
        if first.known and first.text in self.functions:
            return self._call(first.text, shell)
        if first.known and first.text in _JUMPS:
            self.has_jumped = True
        dispatch.check(self.judge, words, shell)
        self.has_changed = self.has_changed or first.text not in programs.PLAIN
        if self.heeds_exit and _exits(words):
            self.has_exited = True
            return _NOWHERE, _NOWHERE
        return shell.cwds, shell.cwds

    def _change_folder(self, words: list[Word], shell: Shell) -> tuple[Cwds, Cwds]:
        if shell.is_eval:
            self.judge.deny("syntax", "the folder is changed where it cannot be followed", WRITE_IT_OUT)
        self.values.has_moved = True
        rest = [word for word in words[1:] if not (word.known and word.text in ("-L", "-P", "-e", "--"))]
        if words[0].text == "popd" or (words[0].text == "pushd" and not rest) or len(rest) > 1:
            return _ANYWHERE, shell.cwds
        target = rest[0] if rest else substitution.home()
        if target.text == "-" or target.text.startswith("+"):
            return _ANYWHERE, shell.cwds
        success = _few(_NOWHERE.union(*(enter(target, cwd) for cwd in shell.cwds)))
        succeeds = not self.has_changed and all(is_there(self.judge, cwd) for cwd in success)
        return success, _NOWHERE if succeeds else shell.cwds

    def _call(self, name: str, shell: Shell) -> tuple[Cwds, Cwds]:
        if name in self.calls:
            self.judge.deny("syntax", f"{name} calls itself", WRITE_IT_OUT)
        self.calls.append(name)
        results = [self.walk(body, shell) for body in self.functions[name]]
        self.calls.pop()
        cwds = _few(_NOWHERE.union(*(success | failure for success, failure in results)))
        return cwds, cwds

    def _within(self, node: Node, shell: Shell) -> None:
        """Judge every substitution in a word, a test, an assignment or a here-document."""
        if node.type in _SUBSTITUTIONS:
            self.walk(node, shell.replace(stdin=None))
            return
        if node.type in ("subshell", "compound_statement") and node.children[0].type != "((":
            return
        for each in node.children:
            self._within(each, shell)


def _exits(words: list[Word]) -> bool:
    """True if a shell surely ends here; with a word too many, `exit` only complains."""
    return (
        words[0] == Word("exit") and len(words) <= 2 and all(each.known and each.text.isdigit() for each in words[1:])
    )


def _few(cwds: Cwds) -> Cwds:
    return cwds if len(cwds) <= _MOST_FOLDERS else _ANYWHERE
