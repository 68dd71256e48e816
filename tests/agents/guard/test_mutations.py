"""No other way to write a denied command makes it allowed."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mutations import AROUND, QUOTES, SCRIPTS, WRAPPERS, mutation
from rookery.agents.guard.decide import decide
from rookery.agents.guard.model import ALLOW, Bounds, Call
from rookery.agents.roles import ROLES, YOLO

if TYPE_CHECKING:
    from pathlib import Path

DENIED = {
    "git push": ["git", "push"],
    "git push origin": ["git", "push", "origin", "main"],
    "git -C push": ["git", "-C", ".", "push"],
    "git reset": ["git", "reset", "-q", "--hard"],
    "git clean": ["git", "clean", "-fdx"],
    "git switch": ["git", "switch", "main"],
    "rm outside": ["rm", "-rf", "../../../../x"],
    "rm root": ["rm", "-rf", "/etc/x"],
    "rm .git": ["rm", "-f", "/etc/../etc/y"],
    "sudo": ["sudo", "ls"],
    "rook": ["rook", "init"],
    "touch": ["touch", "/etc/x"],
}
"""Commands whose words stand for themselves, so that every mutation means the same."""
EXAMPLES = 850  # for each: more than 10,000 in all


@pytest.mark.parametrize("name", DENIED)
def test_no_mutation_of_a_denied_command_is_allowed(bounds: Bounds, name: str) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        command = data.draw(mutation(DENIED[name]))
        verdict = decide(ROLES["builder"], YOLO, bounds, Call("Bash", {"command": command}))
        assert verdict.verdict != ALLOW, command

    check()
