"""No other way to write a denied command makes it allowed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from guard.mutations import AROUND, QUOTES, SCRIPTS, WRAPPERS, mutation
from rookery.guard.decide import decide
from rookery.guard.model import ALLOW, DENY, Bounds, Call
from rookery.roles.catalog import builtin_roles
from rookery.roles.model import YOLO

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
ALL_EXAMPLES = 850  # for each: more than 10,000 in all
EXAMPLES = 60


@pytest.mark.slow
@pytest.mark.parametrize("name", DENIED)
def test_no_mutation_of_a_denied_command_is_allowed(bounds: Bounds, name: str, request: pytest.FixtureRequest) -> None:
    @settings(
        max_examples=ALL_EXAMPLES if request.config.option.all else EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        command = data.draw(mutation(DENIED[name]))
        verdict = decide(builtin_roles()["builder"], YOLO, bounds, Call("Bash", {"command": command}))
        assert verdict.verdict != ALLOW, command

    check()


def _every_mutation() -> dict[str, str]:
    plain = "git push"
    commands = {f"quoted: {name}": f"{quote('git')} {quote('push')}" for name, quote in QUOTES.items()}
    commands |= {f"wrapped: {name}": form.format(plain) for name, form in WRAPPERS.items()}
    commands |= {f"around: {name}": form.format(plain) for name, form in AROUND.items()}
    commands |= {f"script: {name}": form.format(f"'{plain}'") for name, form in SCRIPTS.items()}
    return commands


@pytest.mark.slow
def test_a_shell_takes_every_mutation_for_the_same(tmp_path: Path) -> None:
    """Otherwise the test above would deny what never runs."""
    programs, log = tmp_path / "bin", tmp_path / "said"
    programs.mkdir()
    (tmp_path / "src").mkdir()
    (programs / "git").write_text(f'#!/bin/sh\necho "$1" >> "{log}"\n')
    (programs / "git").chmod(0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    for name, command in _every_mutation().items():
        log.write_text("")
        subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, timeout=20, check=False)
        assert "push" in log.read_text(), f"{name}: {command}"


@pytest.mark.parametrize("name", _every_mutation())
def test_every_single_mutation_is_denied(bounds: Bounds, name: str) -> None:
    for role in builtin_roles().values():
        verdict = decide(role, YOLO, bounds, Call("Bash", {"command": _every_mutation()[name]}))
        assert verdict.verdict == DENY, role.name
