"""Values of every type of result, with long and realistic texts, made from the types themselves.

A type whose fields the names do not explain (a state, a dict) has its values in `VALUES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from rookery.base.ids import new_id
from rookery.base.page import Page

STAMP = "2026-01-31T12:00:00.123Z"
PATH = "packages/frontend/src/components/settings/AccountSettingsPanel.test.tsx"
SENTENCE = (
    "the retry of the upload must keep the order of the parts, and stop after the third failure with an error that "
    "names the part and its size"
)
BRANCH = "rook/builder-of-the-account-settings-panel/7k2m9q"
NAME = "builder-frontend-12"

_PREFIXES = {
    "Task": "task",
    "Learning": "lrn",
    "Message": "msg",
    "Opened": "msg",
    "Run": "run",
    "Entry": "mrg",
    "Undone": "mrg",
    "ReopenedTask": "task",
    "Withdrawn": "mrg",
    "Session": "ses",
    "Turn": "trn",
}
_ID_NAMES = {
    "parent_id": "task",
    "task_id": "task",
    "source_task_id": "task",
    "blocked_by": "task",
    "blocks": "task",
    "waits_for": "task",
    "deleted": "task",
    "reply_to": "msg",
    "thread_id": "msg",
    "message_id": "msg",
    "run_id": "run",
    "merge_id": "mrg",
    "session_id": "ses",
    "turn_id": "trn",
    "last_turn": "trn",
}
_OURS = {"reason", "error"}
"""Sentences that Rookery writes, which may name ids."""
_SENTENCES = {
    "why",
    "problem",
    "hint",
    "title",
    "subject",
    "goal",
    "text",
    "content",
    "purpose",
    "about",
    "doing",
}
_SENTENCES |= {"task_title", "last_words", "summary", "documentation", "description", "message"}
_PATHS = {"path", "old_path", "file", "files", "log", "worktree", "output", "changed", "folder", "theirs", "ours"}
_COMMITS = {"commit", "tip", "base_commit", "start_commit", "candidate", "base_before", "before", "after", "tree"}
_BRANCHES = {"branch", "one", "other", "upstream", "rescue"}

VALUES: dict[tuple[str, str], Any] = {
    ("Task", "state"): "IN_PROGRESS",
    ("Session", "state"): "working",
    ("AgentStatus", "state"): "working",
    ("Session", "outcome"): None,
    ("AgentStatus", "outcome"): None,
    ("Cleaned", "verdict"): "removable",
    ("Branch", "verdict"): "removable",
    ("Verdict", "verdict"): "deny",
    ("GateRun", "verdict"): "failed",
    ("Finding", "status"): "warning",
    ("Report", "status"): "warning",
    ("Variable", "shell"): "changed",
    ("Change", "what"): "changed",
    ("Message", "priority"): "urgent",
    ("Entry", "state"): "failed",
    ("Entry", "kind"): "conflicts",
    ("Undo", "mail"): (),
    ("ConflictedPath", "kind"): "modify/delete",
    ("FileOutcome", "hunks"): ({"start": 1, "rule": "additions", "why": SENTENCE, "ours": "a\nb", "result": "c"},),
    ("Rebased", "conflicts"): ({"path": PATH, "kind": "content"},),
    ("Synced", "conflicts"): ({"path": PATH, "kind": "content"},),
    ("Overlap", "agents"): (NAME, NAME),
    ("Identity", "recent_tasks"): (
        {"session_id": new_id("ses"), "task_id": new_id("task"), "outcome": None, "title": SENTENCE},
    ),
    ("Decided", "action"): "approved",
    ("DaemonStatus", "open_files_limit"): "1024",
    ("Costs", "by"): "agent",
    ("TaskTree", "children"): (),
    ("TaskView", "depth"): 2,
    ("TaskView", "learnings"): ((), (), ()),
    ("OutsideFile", "reason"): SENTENCE,
    ("Explained", "facts"): {
        "sessions": [
            {
                "agent": NAME,
                "state": "working",
                "driver": SimpleNamespace(state="none"),
                "turn": "running",
                "mode": "headless",
                "is_run": False,
                "lost": 0,
                "mail": True,
            }
        ],
        "landings": [{"base": "main", "is_held": True}],
        "jobs": [{"label": NAME, "name": NAME, "is_running": True, "is_left": True}],
        "leftovers": [{"label": PATH, "kind": "worktree", "is_left": True}],
        "radar": {"ended": 3, "is_looking": False},
        "identities": [{"agent": NAME}],
        "daily": {"is_due": True, "is_working": False},
    },
}


def samples(hint: Any) -> Iterator[Any]:
    """Values of a type of result: with one of everything, and with three, each with all flags on and off."""
    plain = _bare(hint)
    parts = get_args(plain) if get_origin(plain) in (Union, UnionType) else (plain,)
    for part in parts:
        if part is not NoneType:
            for count in (1, 3):
                for flag in (True, False):
                    yield Maker(count, flag).make(part, "", "")


class Maker:
    """Makes values; `count` of whatever can be there several times, and every flag set to `flag`."""

    def __init__(self, count: int, flag: bool) -> None:
        self.count, self.flag = count, flag

    def make(self, hint: Any, owner: str, name: str) -> Any:
        """A value of the type, for a field of that name."""
        if (owner, name) in VALUES:
            return VALUES[owner, name]
        hint = _bare(hint)
        origin, inner = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            return self.make(next(part for part in inner if part is not NoneType), owner, name)
        if origin is Page:
            return Page([self.make(inner[0], owner, name) for _ in range(self.count)], next="more")
        if origin in (list, tuple) or hint in (list, tuple):
            parts = inner[:1] * self.count if origin is list or inner[-1:] == (...,) else inner
            values = [self.make(part, owner, name) for part in parts]
            return values if origin is list else tuple(values)
        if (origin is not None and issubclass(origin, dict)) or hint is dict:
            return {}
        if hint is bool:
            return self.flag
        if hint in (int, float):
            return hint(self.count)
        if is_dataclass(hint):
            return self._record(hint)
        return _text(owner, name) if hint is str else None

    def _record(self, kind: Any) -> Any:
        hints = get_type_hints(kind)
        names = [field.name for field in fields(kind) if field.init]
        return kind(**{name: self.make(hints[name], kind.__name__, name) for name in names})


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _text(owner: str, name: str) -> str:
    """A text as long as such texts may well be."""
    if name == "id":
        return new_id(_PREFIXES.get(owner, "task"))
    if name in _ID_NAMES:
        return new_id(_ID_NAMES[name])
    if name.endswith("_at") or name in ("at", "since", "until", "first_seen", "last_seen", "lease_until"):
        return STAMP
    if name in _COMMITS or name.endswith("_commit"):
        return "0123456789abcdef" * 2 + "01234567"
    for names, value in (
        (_OURS, f"{SENTENCE}: {new_id('task')}"),
        (_SENTENCES, SENTENCE),
        (_PATHS, PATH),
        (_BRANCHES, BRANCH),
    ):
        if name in names:
            return value
    if re.search(r"state|status|kind|mode|tier|verdict|outcome|type", name):
        return "needs attention"
    return NAME
