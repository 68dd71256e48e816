"""Tests for the names of what lies under `.rookery/`."""

from __future__ import annotations

import os

from rookery.client import discovery
from rookery.config import layout


def test_the_client_names_the_same_files() -> None:
    assert os.fsencode(layout.path("", layout.DATABASE)) == discovery._STATE.removeprefix(b"/")
    assert os.fsencode(layout.path("/r", layout.DAEMON_LOCK)) == b"/r" + discovery._LOCK


def test_no_name_stands_twice() -> None:
    names = {name: value for name, value in vars(layout).items() if name.isupper()}
    in_session = [value for name, value in names.items() if name.startswith("SESSION_")]
    in_state = [value for name, value in names.items() if not name.startswith("SESSION_")]
    assert len(in_session) == len(set(in_session))
    assert len(in_state) == len(set(in_state))
