"""How the loop looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rookery.base.ids import with_handles
from rookery.base.text import one_line, plural
from rookery.cli.document import Block, Cell, Table, clock, text
from rookery.flows.model import Action
from rookery.flows.ops import Explained, Ran


def explained(result: Explained, _values: dict[str, Any]) -> Iterator[Block]:
    """What the loop sees and decides."""
    facts = result.facts
    if None in facts.values():
        yield text("The agents of this project run in another container or on another host.", "busy")
        return
    state = (
        "The control loop is running."
        if result.runs
        else "No process runs the control loop; each command runs it at its end."
    )
    yield text(state, "good" if result.runs else "dim")
    yield from _table(("agent", "state", "last turn", "new mail", "process"), map(_session, facts["sessions"]))
    landings = ((base["base"], "a merger" if base["is_held"] else "none") for base in facts["landings"])
    yield from _table(("base", "held by"), landings)
    yield from _table(("job", "state", "awaited by"), map(_job, facts["jobs"]))
    yield from _table(("leftover", "kind", "held by"), map(_leftover, facts["leftovers"]))
    if facts["radar"]["ended"] is not None:
        doing = "is running." if facts["radar"]["is_looking"] else "has not checked every turn yet."
        yield text(f"The radar {doing}", "dim")
    stale = ", ".join(identity["agent"] for identity in facts["identities"])
    if stale:
        yield text(f"The identity file is out of date: {stale}.", "dim")
    if facts["daily"]["is_due"]:
        doing = "is being done" if facts["daily"]["is_working"] else "is due"
        yield text(f"The backup of the day {doing}.", "dim")
    yield _actions("to do", result.actions, "Nothing to do.")
    for failure in result.failures:
        then = (
            f"next attempt at {clock(failure.next_at)}"
            if failure.next_at
            else "no further attempt until `rook loop run`"
        )
        yield text(f"{failure.name} {failure.label} failed {plural(failure.count, 'time')}; {then}", "bad")
        yield text(with_handles(one_line(failure.error)), indent=2)
    timers = [(clock(timer.at), with_handles(timer.why)) for timer in result.timers]
    yield Table(("timer", "what for"), timers, empty="No timer is set.")


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[Table]:
    """A table whose first column is bold; nothing if it has no rows."""
    cells: list[tuple[Cell, ...]] = [((first, "bold"), *rest) for first, *rest in rows]
    return [Table(headings, cells)] if cells else []


def _session(session: dict[str, Any]) -> tuple[str, ...]:
    driver, turn = session["driver"].state, session["turn"] or "-"
    if turn == "running" and not (session["is_run"] or session["mode"] == "tmux"):
        turn = "running, but its runner has ended"
    elif session["lost"]:
        turn = f"lost, {session['lost']} in a row"
    return session["agent"], session["state"], turn, "yes" if session["mail"] else "no", driver.replace("none", "-")


def _job(job: dict[str, Any]) -> tuple[str, ...]:
    state = "running" if job["is_running"] else "ended"
    return job["label"] or job["name"], state, "its merger has ended" if job["is_left"] else "a merger"


def _leftover(leftover: dict[str, Any]) -> tuple[str, ...]:
    return leftover["label"], leftover["kind"], "its process has ended" if leftover["is_left"] else "a process"


def ran(result: Ran, _values: dict[str, Any]) -> list[Block]:
    """What was done."""
    done = _actions("done", result.actions, "Nothing to do.")
    return [done, *(text(problem, "bad") for problem in result.problems)]


def _actions(title: str, actions: tuple[Action, ...], empty: str) -> Table:
    rows = [
        ((action.name, "bold"), with_handles(action.label or action.subject), (with_handles(action.why), "dim"))
        for action in actions
    ]
    return Table((title, "for", "reason"), rows, empty=empty)
