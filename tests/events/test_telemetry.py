"""The first process that needs the file of records creates it, also when several come at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rookery.events.telemetry import Telemetry
from support import SOURCE

_WRITE = """
import sys
sys.path.insert(0, sys.argv[1])
from rookery.events.telemetry import Telemetry
print("ready", flush=True)
sys.stdin.read()
Telemetry(sys.argv[2]).add(at="x", agent="bee", session_id="s", turn_id=None, kind="tool", data={})
"""


@pytest.mark.slow
def test_several_who_make_it_at_once_lose_no_record(tmp_path: Path) -> None:
    for number in range(5):
        path = str(tmp_path / f"{number}.db")
        pipe = subprocess.PIPE
        writers = [
            subprocess.Popen([sys.executable, "-c", _WRITE, SOURCE, path], stdin=pipe, stdout=pipe) for _ in "1234"
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.close()
        for writer in writers:
            assert writer.wait(30) == 0
            assert writer.stdout is not None
            writer.stdout.close()
        telemetry = Telemetry(path)
        assert len(telemetry.read(agent="bee")) == 4
        telemetry.close()
