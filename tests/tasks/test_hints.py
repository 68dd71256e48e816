"""Every hint of a step that a task's state does not allow names commands that there are."""

from __future__ import annotations

import re
import shlex
from itertools import product
from typing import Any

import pytest

from rookery.base.errors import InvalidState
from rookery.ops.index import find
from rookery.tasks.model import STATES, TRANSITIONS, Task, next_state


@pytest.mark.parametrize("branch", [None, "rook/bee/task"])
def test_a_hint_names_commands_that_there_are(branch: str | None) -> None:
    seen = set()
    for step, state in product(TRANSITIONS, STATES):
        known: dict[str, Any] = {"id": "task_01ARZ3NDEKTSV4RRFFQ69G5FAV", "state": state, "branch": branch}
        task = Task(**{**dict.fromkeys(Task.field_names()), **known})
        if state in TRANSITIONS[step][0]:
            continue
        with pytest.raises(InvalidState) as refused:
            next_state(step, task)
        commands = re.findall(r"`rook ([^`]+)`", refused.value.hint or "")
        assert commands or state == "COMPLETED", (step, state, refused.value.hint)
        for command in commands:
            operation, taken = find(shlex.split(command))
            assert operation is not None, command
            seen.add(" ".join(shlex.split(command)[:taken]))
    assert {"task reopen", "review show", "review request-changes", "task get"} <= seen
