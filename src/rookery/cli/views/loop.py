"""How the loop looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Cell, Table, text
from rookery.flows.model import Action
from rookery.flows.ops import Explained, Ran


def explained(result: Explained, _values: dict[str, Any]) -> Iterator[Block]:
    """What the loop sees and decides."""
    facts = result.facts
    if None in facts.values():
        yield text("The project's agents run at another place that works in the same folder.", "busy")
        return
    state = "A process runs the loop." if result.runs else "No process runs the loop: every command runs it at its end."
    yield text(state, "good" if result.runs else "dim")
    yield from _table(
        ("agent", "state", "last turn", "new mail", "process"), map(_session, facts["sessions"]), stretch=2
    )
    landings = ((base["base"], "a merger" if base["is_held"] else "none") for base in facts["landings"])
    yield from _table(("base", "held by"), landings)
    yield from _table(("job", "state", "awaited by"), map(_job, facts["jobs"]))
    yield from _table(("leftover", "kind", "held by"), map(_leftover, facts["leftovers"]))
    if facts["radar"]["ended"] is not None:
        doing = "is at work." if facts["radar"]["is_looking"] else "has not seen every turn."
        yield text(f"The radar {doing}", "dim")
    stale = ", ".join(identity["agent"] for identity in facts["identities"])
    if stale:
        yield text(f"The identity file is out of date: {stale}.", "dim")
    if facts["daily"]["is_due"]:
        doing = "is being done" if facts["daily"]["is_working"] else "is due"
        yield text(f"The backup of the day {doing}.", "dim")
    yield _actions("to do", result.actions, "There is nothing to do now.")
    for failure in result.failures:
        then = f"next try at {_time(failure.next_at)}" if failure.next_at else "given up: `rook loop run` tries again"
        times = "once" if failure.count == 1 else f"{failure.count} times"
        yield text(f"{failure.name} {failure.label} failed {times}; {then}", "bad")
        yield text(f"  {one_line(failure.error, 400)}")
    timers = [(_time(timer.at), timer.why) for timer in result.timers]
    yield Table(("timer", "what for"), timers, stretch=1, empty="No timer is set.")


def _time(at: str) -> str:
    """The time of a stamp, to the second, in UTC as everywhere."""
    return at[11:19] + "Z"


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]], stretch: int = -1) -> list[Table]:
    """A table whose first column is bold; nothing if it has no rows."""
    cells: list[tuple[Cell, ...]] = [((first, "bold"), *rest) for first, *rest in rows]
    return [Table(headings, cells, stretch)] if cells else []


def _session(session: dict[str, Any]) -> tuple[str, ...]:
    driver, turn = session["driver"].state, session["turn"] or "-"
    if turn == "running" and not (session["is_run"] or session["mode"] == "tmux"):
        turn = "running, its runner has ended"
    elif session["lost"]:
        turn = f"lost, {session['lost']} in a row"
    return session["agent"], session["state"], turn, "yes" if session["mail"] else "no", driver.replace("none", "-")


def _job(job: dict[str, Any]) -> tuple[str, ...]:
    state = "running" if job["is_running"] else "ended"
    return job["label"] or job["name"], state, "none, its merger is gone" if job["is_left"] else "a merger"


def _leftover(leftover: dict[str, Any]) -> tuple[str, ...]:
    return leftover["label"], leftover["kind"], "none, its process is gone" if leftover["is_left"] else "a process"


def ran(result: Ran, _values: dict[str, Any]) -> list[Block]:
    """What was done."""
    done = _actions("done", result.actions, "There was nothing to do.")
    return [done, *(text(problem, "bad") for problem in result.problems)]


def _actions(title: str, actions: tuple[Action, ...], empty: str) -> Table:
    rows = [((action.name, "bold"), action.label or action.subject, (action.why, "dim")) for action in actions]
    return Table((title, "for", "because"), rows, stretch=2, empty=empty)
