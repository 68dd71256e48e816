"""Which tests run: by default all but a part of the sweeps, with `--fast` the fast ones, with `--all` everything.

A sweep is a test with many cases of one kind: every backend, every step to be killed at. By default a sample of its
cases runs, the same one every time, and one line says how many were left out. A test that is named runs in any case.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

import pytest
from _pytest.terminal import TerminalReporter

T = TypeVar("T")


class Sample(Protocol):
    """What the fixture `sample` gives."""

    def __call__(self, cases: Sequence[T], count: int) -> list[T]:
        """A sample of this size from the cases; all of them with `--all`."""


SLOW = "slow tests"
JJ = "tests with jj that run with git too"
CASES = "cases of sweeps"
_JJ_KINDS = ("jj", "jj-colocated")
_JJ_ONE_IN = 6
_CASES_ONE_IN = 5
_DESELECTED = pytest.StashKey[Counter[str]]()
_SKIPPED = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rookery")
    group.addoption("--fast", action="store_true", help="leave out what is marked slow")
    group.addoption("--all", action="store_true", help="run every case of every sweep")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_DESELECTED] = Counter()
    config.stash[_SKIPPED] = Counter()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any("::" in arg for arg in config.args):
        return
    reasons: dict[pytest.Item, str] = {}
    if not config.option.all:
        with_jj = [item for item in items if _backend(item) in _JJ_KINDS]
        reasons |= dict.fromkeys(_all_but_one_in(_JJ_ONE_IN, with_jj), JJ)
        sweeps: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            if item.get_closest_marker("sweep"):
                sweeps[item.nodeid.partition("[")[0]].append(item)
        for cases in sweeps.values():
            reasons |= dict.fromkeys(_all_but_one_in(_CASES_ONE_IN, cases), CASES)
    if config.option.fast:
        reasons |= {item: JJ for item in items if _backend(item) in _JJ_KINDS}
        reasons |= {item: SLOW for item in items if item.get_closest_marker("slow")}
    if reasons:
        config.stash[_DESELECTED].update(reasons.values())
        config.hook.pytest_deselected(items=list(reasons))
        items[:] = [item for item in items if item not in reasons]


def _all_but_one_in(one_in: int, items: list[pytest.Item]) -> list[pytest.Item]:
    chosen = choose([item.nodeid for item in items], -(-len(items) // one_in))
    return [item for item in items if item.nodeid not in chosen]


def _backend(item: pytest.Item) -> str | None:
    """The one of several backends that this case is about."""
    params: dict[str, object] = getattr(item, "callspec").params if hasattr(item, "callspec") else {}  # noqa: B009
    return next((param for param in params.values() if param in ("git", *_JJ_KINDS)), None)


def choose(names: Iterable[str], count: int) -> set[str]:
    """A sample of this size from the names, without a pattern and always the same."""
    return set(sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:count])


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Sample:
    """Chooses so many of the cases that a test goes through by itself; all of them with `--all`."""

    def choose_cases(cases: Sequence[T], count: int) -> list[T]:
        if request.config.option.all:
            return list(cases)
        chosen = choose((f"{request.node.nodeid} {case}" for case in cases), count)
        request.config.stash[_SKIPPED][CASES] += max(0, len(cases) - count)
        return [case for case in cases if f"{request.node.nodeid} {case}" in chosen]

    return choose_cases


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        counts = (session.config.stash[_DESELECTED], session.config.stash[_SKIPPED])
        session.config.workeroutput["left_out"] = [dict(count.items()) for count in counts]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Add up what the workers left out: each of them has collected everything, but run tests of its own."""
    config: pytest.Config = getattr(node, "config")  # noqa: B009
    deselected, skipped = getattr(node, "workeroutput", {}).get("left_out", ({}, {}))
    config.stash[_DESELECTED] |= Counter(deselected)
    config.stash[_SKIPPED] += Counter(skipped)


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    if left_out := config.stash[_DESELECTED] + config.stash[_SKIPPED]:
        counts = ", ".join(f"{number} {reason}" for reason, number in sorted(left_out.items()))
        terminalreporter.line(f"left out: {counts}; `--all` runs every case")
