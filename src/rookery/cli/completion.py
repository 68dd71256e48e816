"""Completions for bash, zsh and fish: scripts that ask `rook complete` for what can stand at the cursor.

Commands, options and choices come from the operations; ids, names, branches and settings from the project, so the
daemon answers. A candidate is a line: the word, a space, and what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import RookError
from rookery.base.ids import handle
from rookery.base.record import Record
from rookery.base.text import in_words, one_line
from rookery.cli.help import ABOUT, visible_groups
from rookery.config.schema import keys
from rookery.doctor.service import CATEGORIES
from rookery.inbox.service import list_items
from rookery.mail import store as mail
from rookery.mail.addressing import KIN_GROUPS
from rookery.mail.model import HUMAN
from rookery.merge import store as merges
from rookery.ops import index, operation
from rookery.ops.command_line import GLOBALS, options_of, read_globals
from rookery.ops.context import Context
from rookery.ops.operation import FLAG, Choices, Doc, Op, Param, op
from rookery.roles.catalog import list_roles, role_groups
from rookery.sessions import store as sessions
from rookery.tasks import service as tasks
from rookery.tasks import store as task_store
from rookery.tasks.listing_store import Query

SHELLS = ("bash", "zsh", "fish")
_MOST = 200
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A word that can stand at the cursor, and what it is."""

    HIDDEN = ("id",)
    word: str
    about: str = ""
    id: str = ""
    """The whole id, where the word is a handle."""


@op("completion", needs="project.read", view="plain.lines")
def completion(ctx: Context, shell: Annotated[str, Choices(SHELLS), Doc("Which shell.")]) -> str:
    """Print a completion script.

    bash: `eval "$(rook completion bash)"` in ~/.bashrc; zsh: the same in ~/.zshrc, after compinit;
    fish: `rook completion fish > ~/.config/fish/completions/rook.fish`.
    """
    return SCRIPTS[shell]


@op("complete", needs="project.read", view="plain.candidates")
def complete(
    ctx: Context,
    words: Annotated[tuple[str, ...], Doc("The words behind `rook`, behind `--`; the last one is being typed.")] = (),
) -> list[Candidate]:
    """Tell a shell what can be typed next; the scripts of `rook completion` call it."""
    *before, typed = words or ("",)
    try:
        candidates = list(_candidates(ctx, before, typed))
    except RookError:
        return []
    matches = [candidate for candidate in candidates if candidate.word.startswith(typed)]
    if matches or not typed:
        return matches
    # An id may be typed whole or as `task_` and its handle, and a choice or handle in another case.
    for way in (_whole_id, _prefixed_handle, _lower_case):
        matches = [
            candidate.replace(word=word)
            for candidate in candidates
            if (word := way(candidate)).lower().startswith(typed.lower())
        ]
        if matches:
            return matches
    # A part of a title stands for its id, if no other title has it.
    titled = [candidate for candidate in candidates if typed.lower() in candidate.about.lower()]
    return titled if len(titled) == 1 else []


def _whole_id(candidate: Candidate) -> str:
    return candidate.id


def _prefixed_handle(candidate: Candidate) -> str:
    return candidate.id.partition("_")[0] + "_" + candidate.word if candidate.id else ""


def _lower_case(candidate: Candidate) -> str:
    return candidate.word


def _candidates(ctx: Context, before: list[str], typed: str) -> Iterator[Candidate]:
    _settings, words = read_globals(before)
    if not words:
        groups = (Candidate(group, ABOUT[group]) for group in visible_groups())
        yield from (_options(GLOBALS) if typed.startswith("-") else groups)
        return
    words = index.expand(words)
    if words[0] not in index.GROUPS:
        return
    operation, length = index.find(words)
    verbs = [op for op in index.load_group(words[0]) if " " in op.name]
    if len(words) == 1 and verbs and not typed.startswith("-"):
        yield from (Candidate(op.name.partition(" ")[2], op.summary) for op in verbs)
    if operation is not None:
        yield from _of_operation(ctx, operation, words[length:], typed)


def _of_operation(ctx: Context, operation: Op, words: list[str], typed: str) -> Iterator[Candidate]:
    params = (*operation.params, *GLOBALS)
    options = options_of(params)
    places = [param for param in operation.params if param.positional]
    arguments = 0
    rest = iter(words)
    for word in rest:
        param = options.get(word)
        if param is None:
            arguments += not word.startswith("-")
        elif param.kind != FLAG and next(rest, None) is None:
            yield from _values(ctx, param)
            return
    if typed.startswith("-"):
        yield from _options(params)
    elif arguments < len(places) or (places and places[-1].many):
        yield from _values(ctx, places[min(arguments, len(places) - 1)])


def _options(params: tuple[Param, ...]) -> Iterator[Candidate]:
    return (Candidate(param.flag, param.help) for param in params if not param.positional)


def _values(ctx: Context, param: Param) -> Iterator[Candidate]:
    if param.choices:
        return map(Candidate, param.words)
    return iter(_NAMED[param.names](ctx) if param.names in _NAMED else ())


def _named(id: str, about: str) -> Candidate:
    return Candidate(handle(id), about, id)


def _tasks(ctx: Context) -> list[Candidate]:
    views = tasks.list_tasks(ctx.db, Query(limit=_MOST), ctx.now())
    return [_named(view.task.id, view.task.title) for view in views]


def _agents(ctx: Context) -> list[Candidate]:
    alive = sessions.sessions(ctx.db, alive=True)
    about = {session.agent: f"{session.role}, {in_words(session.state)}" for session in alive}
    about |= {name: "ended" for name in sessions.agent_names(ctx.db) if name not in about}
    return [Candidate(name, text) for name, text in about.items()][:_MOST]


def _branches(ctx: Context) -> list[Candidate]:
    return [*(agent for agent in _agents(ctx) if agent.about != "ended"), *map(Candidate, ctx.vcs().branches())]


def _addresses(ctx: Context) -> list[Candidate]:
    groups = (*KIN_GROUPS, *role_groups(ctx.root), *mail.group_names(ctx.db))
    return [Candidate(HUMAN, "people"), *_agents(ctx), *(Candidate(f"@{name}", "group") for name in groups)]


def _inbox(ctx: Context) -> list[Candidate]:
    return [Candidate(item.handle, one_line(f"{item.who} {item.why}", _WIDTH)) for item in list_items(ctx)[:_MOST]]


def _messages(ctx: Context) -> list[Candidate]:
    messages = mail.select(ctx.db, mail.Query(limit=_MOST))
    return [_named(message.id, f"{message.sender}: {message.subject}") for message in messages]


def _merges(ctx: Context) -> list[Candidate]:
    entries = merges.select(ctx.db, limit=_MOST)
    return [_named(entry.id, f"{entry.branch}, {in_words(entry.state)}") for entry in entries] + _agents(ctx)


def _learnings(ctx: Context) -> list[Candidate]:
    return [_named(learning.id, learning.content) for learning in task_store.recent_learnings(ctx.db, _MOST)]


_NAMED: dict[str, Callable[[Context], list[Candidate]]] = {
    operation.TASKS: _tasks,
    operation.AGENTS: _agents,
    operation.WORK: lambda ctx: _agents(ctx) + _tasks(ctx),
    operation.BRANCHES: _branches,
    operation.ADDRESSES: _addresses,
    operation.MESSAGES: _messages,
    operation.INBOX: _inbox,
    operation.MERGES: _merges,
    operation.LEARNINGS: _learnings,
    operation.MAIL_GROUPS: lambda ctx: list(map(Candidate, mail.group_names(ctx.db))),
    operation.RUNS: lambda ctx: [_named(run.id, run.title) for run in sessions.runs(ctx.db)],
    operation.ROLES: lambda ctx: [Candidate(role.name, role.purpose) for role in list_roles(ctx.root)],
    operation.SETTINGS: lambda _ctx: [Candidate(name, key.documentation) for name, key in keys().items()],
    operation.GATES: lambda ctx: [Candidate(gate.name, gate.run) for gate in ctx.config.gates],
    operation.CHECKS: lambda _ctx: list(map(Candidate, CATEGORIES)),
}


def as_line(candidate: Candidate) -> str:
    """A candidate as the scripts read it."""
    return f"{candidate.word} {one_line(candidate.about, _WIDTH)}".rstrip()


_BASH = """\
# Completions of rook for bash.
_rook() {
  local line="${COMP_LINE:0:COMP_POINT}" word="${COMP_WORDS[COMP_CWORD]}" typed each
  local -a words=() found=()
  read -ra words <<<"$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  typed="${words[-1]}"
  mapfile -t found < <(rook complete -- "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  for each in "${found[@]}"; do
    # A list on the screen says what each word is; what goes onto the line is the word alone.
    [[ "$COMP_TYPE" == 63 && ${#found[@]} -gt 1 ]] || each="${each%% *}"
    # bash breaks words at @ and =, and replaces only what is behind them.
    COMPREPLY+=("${each#"${typed%"$word"}"}")
  done
}
complete -o default -F _rook rook
"""

_ZSH = """\
# Completions of rook for zsh, after compinit.
_rook() {
  local -a found described
  local each
  found=("${(@f)$(rook complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for each in $found; do
    described+=("${${each%% *}//:/\\\\:}:${each#* }")
  done
  if (( $#described )); then _describe rook described -U; else _files; fi
}
compdef _rook rook
"""

_FISH = """\
# Completions of rook for fish.
function __rook_complete
  set -l before (commandline -opc)
  set -l typed (commandline -ct)
  set -l found (rook complete -- $before[2..] "$typed" 2>/dev/null)
  if test (count $found) -eq 0
    __fish_complete_path "$typed"
  else
    string replace ' ' \\t -- $found
  end
end
complete -c rook -f -a '(__rook_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
