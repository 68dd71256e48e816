"""What a log shows of a call: the words of a command, and why it was denied or failed."""

from __future__ import annotations

import pytest

from rookery.base.json import dumps
from rookery.sessions.log import describe, explain

_REFUSED = {"v": 1, "ok": False, "error": {"code": "not_finished", "message": "no", "hint": "`rook x`"}}


def test_a_call_of_ours_is_shown_as_it_would_be_typed() -> None:
    assert describe({"input": {"args": ["mail", "send", "--subject=It is done"]}}) == "mail send '--subject=It is done'"
    assert describe({"input": {"path": "a.txt", "lines": 2}}) == "path=a.txt, lines=2"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (dumps(_REFUSED), "no\ninstead: `rook x`"),
        (dumps({"ok": False, "error": {"message": "no"}}), "no"),
        (dumps({"ok": False, "error": "no"}), 'exit status 1\n{"ok":false,"error":"no"}'),
        ("{broken", "exit status 1\n{broken"),
        ({"stderr": "no"}, 'exit status 1\n{"stderr":"no"}'),
        ("first\nlast", "exit status 1\nfirst\nlast"),
    ],
)
def test_a_failed_call_is_explained_by_its_own_error(output: object, shown: str) -> None:
    assert explain({"ok": False, "status": 1, "output": output}) == shown
