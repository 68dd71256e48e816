"""Runs the checks of every feature and repairs what can be repaired.

The doctor is called when something is broken, so nothing that a check does can bring it down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import InvalidInput, RookError
from rookery.base.record import Record

CATEGORIES = {
    "install": "rookery.doctor.checks",
    "config": "rookery.config.checks",
    "database": "rookery.db.checks",
    "location": "rookery.location.checks",
    "roles": "rookery.roles.checks",
    "tasks": "rookery.tasks.checks",
    "agents": "rookery.agents.checks",
    "loop": "rookery.flows.checks",
    "environment": "rookery.agents.environment_checks",
    "sandbox": "rookery.sandbox.checks",
    "merge": "rookery.merge.checks",
    "vcs": "rookery.vcs.checks",
    "terminal": "rookery.terminal.checks",
}
"""Each category and the module whose `CHECKS` belong to it."""


@dataclass(frozen=True, slots=True)
class Checked(Record):
    """One finding as it is told."""

    category: str
    name: str
    status: str
    message: str
    hint: str = ""
    fixed: str = ""
    """What was done to repair it; empty if nothing was."""


@dataclass(frozen=True, slots=True)
class Report(Record):
    """Everything that was found; `status` is the worst of it."""

    status: str
    checks: tuple[Checked, ...]

    @property
    def exit_status(self) -> int:
        """1 if an error remains."""
        return 1 if self.status == ERROR else 0


def examine(place: Place, *, category: str | None = None, fix: bool = False) -> Report:
    """Check everything, or one category; with `fix`, repair what can be repaired and check again."""
    chosen = _choose(category)
    findings = _findings(place, chosen)
    if not fix:
        return _report(_checked(finding) for finding in findings)
    done = [_repair(finding) for finding in findings if finding.status != OK and finding.repair is not None]
    if not done:
        return _report(_checked(finding) for finding in findings)
    return _report(_with_repairs(_findings(place, chosen), done))


def _choose(category: str | None) -> dict[str, str]:
    if category is None:
        return CATEGORIES
    if category not in CATEGORIES:
        raise InvalidInput(f"there is no category {category}", hint="one of " + ", ".join(CATEGORIES))
    return {category: CATEGORIES[category]}


def _findings(place: Place, chosen: dict[str, str]) -> list[Finding]:
    found = [] if place.refused is None else [_refused(place.refused)]
    return [*found, *(each for category, module in chosen.items() for each in _ask(place, category, module))]


def _refused(error: RookError) -> Finding:
    """Told whatever was asked for: without the state, most checks have nothing to look at."""
    return Finding("config", "state", ERROR, error.message, error.hint)


def _ask(place: Place, category: str, module: str) -> Iterator[Finding]:
    """The findings of one module under its category, whatever it calls itself."""
    try:
        checks = import_module(module).CHECKS
    except Exception as error:
        yield _broken(category, module, error)
        return
    for check in checks:
        try:
            for finding in check(place):
                yield finding.replace(category=category)
        except Exception as error:
            yield _broken(category, getattr(check, "__name__", module), error)


def _broken(category: str, name: str, error: Exception) -> Finding:
    said = error.message if isinstance(error, RookError) else f"{type(error).__name__}: {error}"
    hint = error.hint if isinstance(error, RookError) else ""
    return Finding(category, name, ERROR, f"this could not be checked: {said}", hint)


def _repair(finding: Finding) -> Checked:
    """Repair one thing. A repair that fails is told with its finding."""
    if finding.repair is None:
        return _checked(finding)
    try:
        return _checked(finding).replace(fixed=finding.repair())
    except Exception as error:
        said = error.message if isinstance(error, RookError) else f"{type(error).__name__}: {error}"
        return _checked(finding).replace(hint=f"it could not be repaired: {said}")


def _with_repairs(findings: list[Finding], done: list[Checked]) -> Iterator[Checked]:
    """The second look, together with what was done after the first."""
    repaired = list(done)
    for finding in findings:
        before = next((one for one in repaired if (one.category, one.name) == (finding.category, finding.name)), None)
        checked = _checked(finding)
        if before is None:
            yield checked
            continue
        repaired.remove(before)
        yield checked.replace(fixed=before.fixed) if before.fixed else checked.replace(hint=before.hint)
    for before in repaired:
        yield before.replace(status=OK, hint="") if before.fixed else before


def _checked(finding: Finding) -> Checked:
    return Checked(finding.category, finding.name, finding.status, finding.message, finding.hint)


def _report(checks: Iterable[Checked]) -> Report:
    found = tuple(checks)
    statuses = {checked.status for checked in found}
    return Report(next((status for status in (ERROR, WARNING) if status in statuses), OK), found)
