"""`rook gate run` executes a branch's code outside of the sandbox, so no agent may call it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_rows import Agent
from conftest import Rook
from daemons import run_as_guest
from rookery.daemon.hello import Guest
from rookery.roles.catalog import builtin_roles
from support import child_environ

pytestmark = pytest.mark.slow


class Gate:
    """A project whose only gate leaves a file behind."""

    def __init__(self, rook: Rook, ran: Path) -> None:
        self.rook = rook
        self.ran = ran
        (rook.folder / ".rookery" / "config.local.yaml").write_text(
            f"sandbox:\n  mode: off\ngates:\n  - name: touch\n    run: touch {ran}\n"
        )

    def assert_not_run(self) -> None:
        assert not self.ran.exists()
        db = self.rook.open()
        assert db.value("SELECT count(*) FROM gate_runs") == 0
        db.close()


@pytest.fixture
def gate(rook: Rook, tmp_path: Path) -> Gate:
    return Gate(rook, tmp_path / "ran")


def test_a_person_runs_gates(gate: Gate) -> None:
    assert gate.rook("gate", "run").status == 0
    assert gate.ran.exists()


@pytest.mark.parametrize("role", builtin_roles())
def test_no_agent_runs_gates(gate: Gate, role: str) -> None:
    agent = Agent(gate.rook.folder, "bee", role)
    refused = gate.rook.json("gate", "run", env=agent.env)
    assert (refused.status, refused.error["code"]) == (1, "not_permitted")
    assert gate.rook.json("gate", "list", env=agent.env).status == 0
    gate.assert_not_run()


def test_no_agent_runs_gates_from_within_its_sandbox(gate: Gate) -> None:
    agent = Agent(gate.rook.folder, "bee")
    guest = Guest(agent.env["ROOKERY_SESSION"], child_environ(agent.env), str(gate.rook.folder))
    status, _, err = run_as_guest(str(gate.rook.folder), guest, "gate", "run")
    assert status == 1
    assert b"may not `rook gate run`" in err
    gate.assert_not_run()
