"""The doctor itself: it never falls over, repairs what it can and says what it did."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import InvalidInput, StorageFailed
from rookery.doctor import service
from rookery.doctor.ops import doctor
from rookery.ops.context import Context
from rookery.ops.index import find

PLACE = Place(None, "/")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The checks of the only module that there is."""
    module = ModuleType("only_checks")
    registered: list[object] = []
    module.CHECKS = registered  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "only_checks", module)
    monkeypatch.setattr(service, "CATEGORIES", {"only": "only_checks"})
    return registered


def summary(report: service.Report) -> list[tuple[str, str, str]]:
    return [(one.name, one.status, one.fixed) for one in report.checks]


def test_the_worst_finding_is_the_status(checks: list[object]) -> None:
    assert service.examine(PLACE) == service.Report(OK, ())
    for status, exit_status in ((OK, 0), (WARNING, 0), (ERROR, 1)):
        checks.append(lambda _place, status=status: iter([Finding("x", status, status, "said")]))
        report = service.examine(PLACE)
        assert (report.status, report.exit_status) == (status, exit_status)
    assert {one.category for one in report.checks} == {"only"}


def test_a_check_that_raises_is_an_error_and_the_others_go_on(checks: list[object]) -> None:
    def first(_place: Place) -> Iterator[Finding]:
        yield Finding("only", "before", OK, "fine")
        raise RuntimeError("boom")

    def second(_place: Place) -> Iterator[Finding]:
        raise StorageFailed("no disk", hint="buy one")

    checks += [first, second, lambda _place: iter([Finding("only", "after", OK, "fine")])]
    report = service.examine(PLACE)
    assert [(one.name, one.status) for one in report.checks] == [
        ("before", OK),
        ("first", ERROR),
        ("second", ERROR),
        ("after", OK),
    ]
    assert report.checks[1].message == "this could not be checked: RuntimeError: boom"
    assert (report.checks[2].message, report.checks[2].hint) == ("this could not be checked: no disk", "buy one")


def test_a_module_that_cannot_be_loaded_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "CATEGORIES", {"only": "rookery.gone"})
    report = service.examine(PLACE)
    assert report.exit_status == 1
    assert "ModuleNotFoundError" in report.checks[0].message


def test_fix_repairs_and_checks_again(checks: list[object], tmp_path: Path) -> None:
    thing = tmp_path / "thing"

    def repair() -> str:
        thing.touch()
        return "made the thing"

    def check(_place: Place) -> Iterator[Finding]:
        if thing.exists():
            yield Finding("only", "thing", OK, "there")
        else:
            yield Finding("only", "thing", ERROR, "missing", "--fix", repair)
        yield Finding("only", "other", WARNING, "odd")

    checks.append(check)
    assert summary(service.examine(PLACE)) == [("thing", ERROR, ""), ("other", WARNING, "")]
    assert not thing.exists()
    fixed = service.examine(PLACE, fix=True)
    assert summary(fixed) == [("thing", OK, "made the thing"), ("other", WARNING, "")]
    assert fixed.status == WARNING
    assert summary(service.examine(PLACE, fix=True)) == [("thing", OK, ""), ("other", WARNING, "")]


def test_a_problem_that_is_gone_is_reported_as_fixed(checks: list[object]) -> None:
    left = {"a", "b"}

    def remove(name: str) -> str:
        left.remove(name)
        return f"removed {name}"

    def check(_place: Place) -> Iterator[Finding]:
        for name in sorted(left):
            yield Finding("only", "stray", WARNING, name, "", partial(remove, name))

    checks.append(check)
    report = service.examine(PLACE, fix=True)
    assert summary(report) == [("stray", OK, "removed a"), ("stray", OK, "removed b")]
    assert report.status == OK


def test_what_cannot_be_repaired_stays_and_says_why(checks: list[object]) -> None:
    def fail() -> str:
        raise PermissionError("not yours")

    checks.append(lambda _place: iter([Finding("only", "thing", ERROR, "broken", "", fail)]))
    report = service.examine(PLACE, fix=True)
    assert summary(report) == [("thing", ERROR, "")]
    assert "not yours" in report.checks[0].hint
    assert report.exit_status == 1


def test_one_category_asks_no_other_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "CATEGORIES", {"gone": "rookery.gone", "terminal": "rookery.terminal.checks"})
    assert {one.category for one in service.examine(PLACE, category="terminal").checks} == {"terminal"}


def test_an_unknown_category_names_those_there_are() -> None:
    with pytest.raises(InvalidInput) as caught:
        service.examine(PLACE, category="plumbing")
    assert caught.value.hint == "one of " + ", ".join(service.CATEGORIES)
    assert {"install", "roles", "terminal"} <= service.CATEGORIES.keys()


def test_it_works_outside_a_project(tmp_path: Path) -> None:
    report = doctor(Context(cwd=str(tmp_path)))
    assert [one.message for one in report.checks if one.status == ERROR] == []
    assert {one.category for one in report.checks} >= {"install", "config", "terminal"}


def test_it_works_with_a_broken_configuration_and_a_damaged_database(repo: Path) -> None:
    folder = repo / ".rookery"
    folder.mkdir()
    (folder / ".gitignore").write_text("*\n")
    (folder / "config.yaml").write_text("tasks: [\n")
    (folder / "rookery.db").write_bytes(b"garbage" * 1000)
    report = doctor(Context(cwd=str(repo)))
    assert {one.category for one in report.checks if one.status == ERROR} == {"config", "database"}
    assert not any(one.message.startswith("this could not be checked") for one in report.checks)
    assert report.exit_status == 1


def test_it_works_with_a_wrong_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_ROOT", str(tmp_path / "gone"))
    report = doctor(Context(cwd=str(tmp_path)))
    assert [(one.category, one.name) for one in report.checks if one.status == ERROR] == [("config", "project")]


def test_it_is_offered_and_may_change_something() -> None:
    operation, words = find(["doctor"])
    assert operation is not None
    assert (words, operation.view, operation.changes_state) == (1, "doctor.report", True)
    assert operation.summary == "Check the installation and the project, and say what is wrong."
