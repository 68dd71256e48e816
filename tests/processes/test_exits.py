"""How a program ended, in words."""

from __future__ import annotations

import pytest

from rookery.processes.exits import how_it_ended, killed_by


@pytest.mark.parametrize(
    ("status", "output", "words"),
    [
        (3, "", "exited with status 3, no output"),
        (3, "no such model", "exited with status 3: no such model"),
        (137, "", "killed (exit status 137, often out of memory); no output"),
        (-9, "bye", "killed (exit status 137, often out of memory): bye"),
        (-11, "", "ended by SIGSEGV (exit status 139); no output"),
        (255, "", "exited with status 255, no output"),
    ],
)
def test_a_signal_is_named_and_other_statuses_are_numbers(status: int, output: str, words: str) -> None:
    assert how_it_ended(status, output) == words


@pytest.mark.parametrize("status", [None, 0, 1, 128, 255])
def test_what_no_signal_ended_was_not_killed(status: int | None) -> None:
    assert killed_by(status) == ""
