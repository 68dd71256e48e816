"""How the loop looks."""

from __future__ import annotations

from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Table, line, text
from rookery.flows.model import Action
from rookery.flows.ops import Explained, Ran


def explained(found: Explained, _values: dict[str, Any]) -> list[Block]:
    """What the loop sees and decides."""
    if None in found.facts.values():
        return [text("The project's agents run at another place that works in the same folder.", "busy")]
    state = "A process runs the loop." if found.runs else "No process runs the loop: every command looks at its end."
    blocks: list[Block] = [text(state, "good" if found.runs else "dim"), *_sessions(found.facts["sessions"])]
    blocks += _landings(found.facts["landings"])
    blocks += _jobs(found.facts["jobs"])
    blocks += _leftovers(found.facts["leftovers"])
    unseen = found.facts["radar"]["ended"]
    if unseen is not None:
        is_looking = found.facts["radar"]["is_looking"]
        blocks.append(text("The radar " + ("is being looked at." if is_looking else "has not seen every turn."), "dim"))
    stale = ", ".join(each["agent"] for each in found.facts["identities"])
    if stale:
        blocks.append(text(f"The identity file is out of date: {stale}.", "dim"))
    if found.actions:
        blocks.append(_actions("to do", found.actions))
    else:
        blocks.append(text("Nothing is to be done now.", "dim"))
    for each in found.failures:
        then = f"next try at {_time(each.next_at)}" if each.next_at else "given up: `rook loop run` tries again"
        times = "once" if each.count == 1 else f"{each.count} times"
        blocks.append(text(f"{each.name} {each.label} failed {times}; {then}", "bad"))
        blocks.append(text(f"  {one_line(each.error, 400)}"))
    if found.timers:
        rows = tuple((line(_time(each.at)), line(each.why)) for each in found.timers)
        blocks.append(Table(("timer", "what for"), rows, stretch=1))
    else:
        blocks.append(text("No timer is set.", "dim"))
    return blocks


def _time(at: str) -> str:
    """The time of a stamp, to the second, in UTC as everywhere."""
    return at[11:19] + "Z"


def _sessions(facts: list[dict[str, Any]]) -> list[Block]:
    rows = tuple(
        (
            line((each["agent"], "bold")),
            line(each["state"]),
            line(_turn(each)),
            line("yes" if each["mail"] else "no"),
            line(each["driver"].state if each["driver"].state != "none" else "-"),
        )
        for each in facts
    )
    return [Table(("agent", "state", "last turn", "new mail", "process"), rows, stretch=2)] if rows else []


def _turn(each: dict[str, Any]) -> str:
    if each["turn"] == "running":
        return "running" if each["is_run"] or each["mode"] == "tmux" else "running, its runner has ended"
    return f"lost, {each['lost']} in a row" if each["lost"] else each["turn"] or "-"


def _landings(facts: list[dict[str, Any]]) -> list[Block]:
    rows = tuple((line((each["base"], "bold")), line("a merger" if each["is_held"] else "none")) for each in facts)
    return [Table(("base", "held by"), rows)] if rows else []


def _jobs(facts: list[dict[str, Any]]) -> list[Block]:
    rows = tuple(
        (
            line((each["label"] or each["name"], "bold")),
            line("running" if each["is_running"] else "ended"),
            line("nobody, its merger is gone" if each["is_left"] else "a merger"),
        )
        for each in facts
    )
    return [Table(("job", "state", "awaited by"), rows)] if rows else []


def _leftovers(facts: list[dict[str, Any]]) -> list[Block]:
    rows = tuple(
        (
            line((each["label"], "bold")),
            line(each["kind"]),
            line("nobody, its process is gone" if each["is_left"] else "a process"),
        )
        for each in facts
    )
    return [Table(("leftover", "kind", "held by"), rows)] if rows else []


def ran(found: Ran, _values: dict[str, Any]) -> list[Block]:
    """What was done."""
    blocks: list[Block] = (
        [_actions("done", found.actions)] if found.actions else [text("There was nothing to do.", "dim")]
    )
    return [*blocks, *(text(each, "bad") for each in found.problems)]


def _actions(title: str, actions: tuple[Action, ...]) -> Table:
    rows = tuple(
        (line((each.name, "bold")), line(each.label or each.subject), line((each.why, "dim"))) for each in actions
    )
    return Table((title, "for", "because"), rows, stretch=2)
