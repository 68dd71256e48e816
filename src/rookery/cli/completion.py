"""Completions for bash, zsh and fish, generated from the operations."""

from __future__ import annotations

from typing import Annotated

from rookery.ops import index
from rookery.ops.context import Context
from rookery.ops.operation import FLAG, PATH, Choices, Doc, Op, op
from rookery.ops.options import GLOBALS

SHELLS = ("bash", "zsh", "fish")


@op("completion", needs="project.read", long=True, view="plain.lines")
def completion(ctx: Context, shell: Annotated[str, Choices(SHELLS), Doc("Which shell.")]) -> str:
    """Print a completion script.

    bash: `eval "$(rook completion bash)"` in ~/.bashrc; zsh: the same in ~/.zshrc, after compinit;
    fish: `rook completion fish > ~/.config/fish/completions/rook.fish`.
    """
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](index.load_all())


def bash(operations: list[Op]) -> str:
    """The script for bash."""
    return _BASH.replace("@CASES@", _cases(operations)).replace("@GROUPS@", " ".join(index.GROUPS))


def zsh(operations: list[Op]) -> str:
    """The script for zsh, by way of its bash completion."""
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash(operations)


def fish(operations: list[Op]) -> str:
    """The script for fish."""
    lines = ["# Completions for rook.", "complete -c rook -f"]
    groups: dict[str, list[Op]] = {}
    for each in operations:
        groups.setdefault(each.group, []).append(each)
    for group, members in groups.items():
        summary = members[0].summary if len(members) == 1 else f"{group} commands"
        lines.append(f"complete -c rook -n __fish_use_subcommand -a {group} -d {_quoted(summary)}")
        for each in members:
            words = each.name.split()
            seen = f"__fish_seen_subcommand_from {group}"
            if len(words) > 1:
                lines.append(f"complete -c rook -n '{seen}' -a {words[1]} -d {_quoted(each.summary)}")
                seen += f"; and __fish_seen_subcommand_from {words[1]}"
            for param in (*each.params, *GLOBALS):
                if param.positional:
                    continue
                more = (
                    "" if param.kind == FLAG else " -r" + (f" -a '{' '.join(param.choices)}'" if param.choices else "")
                )
                files = " -F" if param.kind == PATH or param.name == "directory" else ""
                lines.append(f"complete -c rook -n '{seen}' -l {param.flag[2:]}{more}{files} -d {_quoted(param.help)}")
    return "\n".join(lines) + "\n"


def _cases(operations: list[Op]) -> str:
    common = [param.flag for param in GLOBALS]
    lines = []
    for group in index.GROUPS:
        verbs = [each.name.partition(" ")[2] for each in operations if each.group == group]
        if any(verbs):
            lines.append(f'    "{group} ") words="{" ".join(verbs)}" ;;')
    for each in operations:
        flags = " ".join([param.flag for param in each.params if not param.positional] + common)
        choices = " ".join(choice for param in each.params if param.positional for choice in param.choices)
        group, _, verb = each.name.partition(" ")
        lines.append(f'    "{group} {verb}") words="{(choices + " " + flags).strip()}" ;;')
        lines += [
            f'    "{group} {verb} {param.flag}") words="{" ".join(param.choices)}" ;;'
            for param in each.params
            if param.choices and not param.positional
        ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_BASH = """\
# Completions for rook.
_rook() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" group="" verb="" words="" key each
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$each" in -*) continue ;; esac
    if [ -z "$group" ]; then group="$each"; elif [ -z "$verb" ]; then verb="$each"; fi
  done
  [ -z "$group" ] && { COMPREPLY=($(compgen -W "@GROUPS@" -- "$word")); return; }
  for key in "$group $verb $before" "$group $verb" "$group "; do
    case "$key" in
@CASES@
    esac
    [ -n "$words" ] && break
  done
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [ ${#COMPREPLY[@]} -eq 0 ] && COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _rook rook
"""
