"""The loop at the end of a command."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from den import DONE, Den
from rookery.flows import loop
from rookery.flows.loop import Assessment
from rookery.flows.loop_process import react
from rookery.ops.context import Context
from rookery.ops.state import open_state


@pytest.mark.slow
def test_what_another_command_left_to_a_command_that_was_about_to_end_is_done(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one finds the lock held, and ends; the one that holds it has made its last check before."""
    den = Den(repo)
    den.sling(den.task("Wait", [{"wait": "mail"}, DONE]), "--name", "ann")
    den.wait_for("ann", "waiting")
    run_once = loop.run_once
    sent: list[int] = []

    def run_and_be_late(ctx: Context, log: Callable[[str], None]) -> Assessment:
        assessment = run_once(ctx, log)
        if not sent:
            sent.append(den.rook("mail", "send", "ann", "--subject", "Go", "--body", "on").status)
        return assessment

    monkeypatch.setattr(loop, "run_once", run_and_be_late)
    with den.without_loop():
        pass  # that of the last turn has ended
    with closing(open_state(str(repo))) as db:
        react(Context.at(str(repo), db))
        assert sent == [0]
        turns = db.value("SELECT count(*) FROM turns t JOIN sessions s ON s.id = t.session_id WHERE s.agent = 'ann'")
    assert turns == 2
    den.wait_for("ann", "completed")


def test_what_a_killed_process_leaves_to_a_command_that_was_about_to_end_is_removed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of the database tells of it."""
    run_once = loop.run_once
    folder = project / ".rookery" / "scratch" / "left"

    def run_and_be_late(ctx: Context, log: Callable[[str], None]) -> Assessment:
        assessment = run_once(ctx, log)
        if not seen:
            folder.mkdir(parents=True)
        seen.append(assessment)
        return assessment

    seen: list[Assessment] = []
    monkeypatch.setattr(loop, "run_once", run_and_be_late)
    with closing(open_state(str(project))) as db:
        react(Context.at(str(project), db))
    assert not folder.exists()
    assert len(seen) == 2
