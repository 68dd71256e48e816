"""What a runner's journal says is kept once, and a kill in between loses nothing of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from den import DONE, Den
from rookery.config import layout
from rookery.events.telemetry import Telemetry
from rookery.ops.context import Context
from rookery.turns.headless import read_journal
from support import wait_until


class Killed(BaseException):
    """What a kill does: nothing after it happens."""


@pytest.mark.slow
def test_the_conversation_is_known_before_its_line_counts_as_read(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    den = Den(repo)
    den.sling(den.task("Stay", [{"run": "[ -e busy ] || { touch busy; exec sleep 300; }"}, DONE]), "--name", "bee")
    db = den.rook.open()
    wait_until(lambda: db.value("SELECT runtime_session FROM sessions"), 60)
    known = db.one("SELECT id, runtime_session FROM sessions")
    assert known is not None
    turn_id = str(db.value("SELECT id FROM turns"))
    with db.write():
        db.execute("UPDATE sessions SET runtime_session = NULL")
    path = layout.path(str(repo), layout.TELEMETRY)
    with closing(Telemetry(path)) as telemetry, telemetry.db.write():
        telemetry.write_offset(turn_id, 0)

    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(Telemetry, "write_offset", kill)
    with pytest.raises(Killed):
        read_journal(Context.at(str(repo), db), known[0], turn_id)
    assert db.one("SELECT id, runtime_session FROM sessions") == known
    with closing(Telemetry(path)) as telemetry:
        assert telemetry.read_offset(turn_id) == 0
    db.close()
    den.rook("stop", "bee")
