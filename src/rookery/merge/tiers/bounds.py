"""The hook of an agent that resolves conflicts: it may read and write in its scratch folder, and nothing else.

Agent programs call it at their events, as other agents call `rookery.client.hook`. It denies what it does not know,
and what leads out of the folder. `guard.decide` does not fit here: it lets agents read outside of their worktree, and
keeps them from files that steer agents, such as CLAUDE.md, in which there may be a conflict to resolve.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from rookery.config.environ import child_environ

FOLDER = "ROOKERY_SCRATCH_FOLDER"
"""The variable that names the folder."""
_TOOLS = frozenset({"Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Glob", "Grep", "LS", "TodoWrite"})
_PATHS = ("file_path", "path", "notebook_path")
_DENIED = 2


def main() -> int:
    """Answer one event: 0 allows it, 2 keeps a tool from running."""
    if sys.argv[1:2] != ["pre-tool"]:
        return 0
    try:
        reason = judge(json.load(sys.stdin), child_environ().get(FOLDER, ""))
    except Exception as error:
        reason = f"it cannot be judged: {error}"
    decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny" if reason else "allow"}
    if reason:
        decision["permissionDecisionReason"] = f"rook: {reason}"
        sys.stderr.write(f"rook: {reason}\n")
    # No person is there who could be asked.
    sys.stdout.write(json.dumps({"hookSpecificOutput": decision}) + "\n")
    return _DENIED if reason else 0


def judge(call: Any, folder: str) -> str:
    """Why a tool call is denied; empty if it is allowed."""
    name, values = call.get("tool_name"), call.get("tool_input") or {}
    if name not in _TOOLS:
        return f"{name} is not for resolving conflicts: read and edit the files, and end your turn"
    if not folder:
        return "there is no folder to work in"
    top = os.path.realpath(folder)
    for key in _PATHS:
        path = values.get(key)
        if path is None:
            continue
        real = os.path.realpath(os.path.join(top, str(path)))
        if real != top and not real.startswith(top + os.sep):
            return f"{path} is outside of the folder"
        if real.startswith(os.path.join(top, ".git") + os.sep) and name not in ("Read", "Glob", "Grep"):
            return f"{path} is git's own"
    pattern = str(values.get("pattern", "")) if name == "Glob" else ""
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        return f"{pattern} leads out of the folder"
    return ""
