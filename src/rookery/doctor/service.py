"""Runs the checks of every feature and repairs what can be repaired.

The doctor is called when something is broken, so nothing that a check does can bring it down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import InvalidInput, RookError
from rookery.base.record import Record

CATEGORIES = {
    "install": "rookery.doctor.checks",
    "config": "rookery.ops.config_checks",
    "database": "rookery.db.checks",
    "location": "rookery.location.checks",
    "roles": "rookery.roles.checks",
    "tasks": "rookery.tasks.checks",
    "agents": "rookery.agents.checks",
    "loop": "rookery.flows.checks",
    "environment": "rookery.agents.environment_checks",
    "sandbox": "rookery.sandbox.checks",
    "merge": "rookery.merge.checks",
    "remote": "rookery.remote.checks",
    "vcs": "rookery.vcs.checks",
    "terminal": "rookery.terminal.checks",
}
"""Each category and the module whose `CHECKS` belong to it."""


@dataclass(frozen=True, slots=True)
class Report(Record):
    """All findings; `status` is the worst of them."""

    status: str
    checks: tuple[Finding, ...]

    @property
    def exit_status(self) -> int:
        """1 if an error remains."""
        return 1 if self.status == ERROR else 0

    @classmethod
    def of(cls, checks: Iterable[Finding]) -> Report:
        """The report with these findings."""
        findings = tuple(checks)
        statuses = {finding.status for finding in findings}
        return cls(next((status for status in (ERROR, WARNING) if status in statuses), OK), findings)

    def with_findings(self, more: Iterable[Finding]) -> Report:
        """The same with more findings."""
        return Report.of((*self.checks, *more))


def examine(place: Place, *, category: str | None = None, fix: bool = False) -> Report:
    """Check everything, or one category; with `fix`, repair what can be repaired and check again."""
    if category is not None and category not in CATEGORIES:
        raise InvalidInput(f"there is no category {category}", hint="one of " + ", ".join(CATEGORIES))
    chosen = CATEGORIES if category is None else {category: CATEGORIES[category]}
    findings = _examine(place, chosen)
    broken = [finding for finding in findings if finding.status != OK] if fix else []
    repaired = [_repair(finding, finding.repair) for finding in broken if finding.repair is not None]
    if repaired:
        findings = _examine(place, chosen)
    return Report.of(_with_repairs(findings, repaired))


def _examine(place: Place, chosen: dict[str, str]) -> list[Finding]:
    findings = [finding for category, module in chosen.items() for finding in _ask(place, category, module)]
    if place.refused is not None:
        # Whatever category was asked for: without the state, most checks have nothing to look at.
        findings.insert(0, Finding("config", "state", ERROR, place.refused.message, place.refused.hint))
    return findings


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
            name = getattr(check, "__name__", module).removeprefix("check_").replace("_", " ")
            yield _broken(category, name, error)


def _broken(category: str, name: str, error: Exception) -> Finding:
    hint = error.hint if isinstance(error, RookError) else ""
    return Finding(category, name, ERROR, f"this could not be checked: {_message(error)}", hint)


def _repair(finding: Finding, repair: Callable[[], str]) -> Finding:
    """Repair one thing. If that fails, the hint says why."""
    try:
        return finding.replace(fixed=repair())
    except Exception as error:
        return finding.replace(hint=f"it could not be repaired: {_message(error)}")


def _message(error: Exception) -> str:
    return error.message if isinstance(error, RookError) else f"{type(error).__name__}: {error}"


def _with_repairs(findings: list[Finding], repaired: list[Finding]) -> Iterator[Finding]:
    """The findings, together with what was repaired before them."""
    for finding in findings:
        names = (finding.category, finding.name)
        before = next((one for one in repaired if (one.category, one.name) == names), None)
        if before is None:
            yield finding
            continue
        repaired.remove(before)
        yield finding.replace(fixed=before.fixed) if before.fixed else finding.replace(hint=before.hint)
    for before in repaired:
        yield before.replace(status=OK, hint="") if before.fixed else before
