"""A pytest plugin for `.ci/run`: tries failures once more, each alone, and shows what takes long.

A test that fails and then passes is listed as flaky. The run is red if a test fails again, or if more than two failed
at first: that many are not bad luck.

A run of all tests through the daemon leaves out those that ran no command when all tests ran without it, just before:
for them it would be the same run again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import PurePath

import pytest
from _pytest.terminal import TerminalReporter

MOST_FLAKY = 2
SLOW_SECONDS = 1.0
"""A test that takes longer is marked `slow`, so that `--fast` stays fast."""
WITH_COMMANDS = ".dev/tests-with-commands"
"""Lists the tests that ran commands in the last run without a daemon."""
_LONGEST = 600
_SHOWN = 30


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the process that starts the workers sees all reports
        config.pluginmanager.register(Report(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    path = config.rootpath / WITH_COMMANDS
    if not _is_in_daemon() or not _is_whole(config) or not path.exists():
        return
    listed = set(path.read_text().splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in listed])
    items[:] = [item for item in items if item.nodeid in listed]


def _is_in_daemon() -> bool:
    return os.environ.get("ROOKERY_TESTS_IN") == "daemon"


def _is_whole(config: pytest.Config) -> bool:
    """True if no folder, module or test was named."""
    root = config.rootpath
    return {config.invocation_params.dir / argument for argument in config.args} <= {root, root / "tests"}


class Report:
    """The outcome of the run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = {}
        self._tests: Counter[str] = Counter()
        self._functions: dict[str, float] = {}
        """The seconds of all cases of a test."""
        self._unmarked: dict[str, float] = {}
        self._with_commands: dict[str, None] = {}
        self._failed: dict[str, None] = {}
        self._flaky: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = _folder(report.nodeid)
        self._seconds[folder] = self._seconds.get(folder, 0) + report.duration
        function = report.nodeid.partition("[")[0]
        self._functions[function] = self._functions.get(function, 0) + report.duration
        if report.when == "call":
            self._tests[folder] += 1
        if "slow" not in report.keywords:
            self._unmarked[report.nodeid] = self._unmarked.get(report.nodeid, 0) + report.duration
        if "commands" in dict(report.user_properties):
            self._with_commands[report.nodeid] = None
        if report.failed:
            self._failed[report.nodeid] = None

    @pytest.hookimpl(trylast=True)  # the workers are gone by then
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if _is_whole(self._config) and not _is_in_daemon():
            path = self._config.rootpath / WITH_COMMANDS
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(self._with_commands))
        if exitstatus != pytest.ExitCode.TESTS_FAILED or len(self._failed) > MOST_FLAKY:
            return
        self._flaky = [test for test in self._failed if self._passes_alone(test)]
        _forgive(self._config, self._flaky)
        if len(self._flaky) == len(self._failed):
            session.exitstatus = pytest.ExitCode.OK

    def _passes_alone(self, test: str) -> bool:
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
        done = subprocess.run(
            argv, cwd=self._config.rootpath, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
        if done.returncode != pytest.ExitCode.OK:
            _reporter(self._config).write(f"\nagain, alone:\n{done.stdout}{done.stderr}")
        return done.returncode == pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        terminalreporter.section("time by folder")
        for folder, seconds in sorted(self._seconds.items(), key=lambda entry: -entry[1]):
            terminalreporter.line(f"{seconds:8.1f} s  {self._tests[folder]:5} tests  {folder}")
        terminalreporter.line(f"{sum(self._seconds.values()):8.1f} s  {self._tests.total():5} tests  in all")
        terminalreporter.section("tests that took longest, with all their cases")
        for test, seconds in sorted(self._functions.items(), key=lambda entry: -entry[1])[:_SHOWN]:
            terminalreporter.line(f"{seconds:8.1f} s  {test}")
        for test, seconds in sorted(self._unmarked.items(), key=lambda entry: -entry[1]):
            if seconds > SLOW_SECONDS:
                terminalreporter.line(f"SLOW {test} took {seconds:.1f} s: make it faster, or mark it slow")
        if len(self._failed) > MOST_FLAKY:
            terminalreporter.line(f"{len(self._failed)} tests failed; more than {MOST_FLAKY} are not tried again")
        for report in terminalreporter.stats.get("flaky", []):
            terminalreporter.section(f"FLAKY {report.nodeid}")
            terminalreporter.line(report.longreprtext)
        for test in self._flaky:
            terminalreporter.line(f"FLAKY {test}")


def _forgive(config: pytest.Config, tests: list[str]) -> None:
    """Count tests as flaky that were counted as failed."""
    stats = _reporter(config).stats
    for outcome in ("failed", "error"):
        kept = [report for report in stats.get(outcome, []) if report.nodeid not in tests]
        moved = [report for report in stats.get(outcome, []) if report.nodeid in tests]
        if moved:
            stats[outcome] = kept
            stats.setdefault("flaky", []).extend(moved)


def _reporter(config: pytest.Config) -> TerminalReporter:
    reporter: TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    return reporter


def _folder(nodeid: str) -> str:
    """`tests/merge` of `tests/merge/resolve/test_diff.py::test_one`."""
    parts = PurePath(nodeid.partition("::")[0]).parent.parts
    return "/".join(parts[:2]) or "."
