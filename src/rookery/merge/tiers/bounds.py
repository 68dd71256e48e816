"""The hook of an agent that resolves conflicts: it may read and write in its scratch folder, and nothing else.

Agent programs call it at their events, as other agents call `rookery.cli.hook_edge`. It fails closed: what it
does not know, or what leads out of the folder, does not happen.
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
    """Answer one event: 0 lets it be, 2 keeps a tool from running."""
    if sys.argv[1:2] != ["pre-tool"]:
        return 0
    try:
        reason = judge(json.load(sys.stdin), child_environ().get(FOLDER, ""))
    except Exception as error:
        reason = f"it cannot be judged: {error}"
    if reason:
        sys.stderr.write(f"rook: {reason}\n")
        return _DENIED
    # Nobody is there to be asked.
    allowed = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    sys.stdout.write(json.dumps({"hookSpecificOutput": allowed}) + "\n")
    return 0


def judge(call: Any, folder: str) -> str:
    """Why a tool may not be used so; nothing if it may."""
    name, given = call.get("tool_name"), call.get("tool_input") or {}
    if name not in _TOOLS:
        return f"{name} is not for resolving conflicts: read and edit the files, and end your turn"
    if not folder:
        return "there is no folder to work in"
    top = os.path.realpath(folder)
    for key in _PATHS:
        path = given.get(key)
        if path is None:
            continue
        real = os.path.realpath(os.path.join(top, str(path)))
        if real != top and not real.startswith(top + os.sep):
            return f"{path} is outside of the folder"
        if real.startswith(os.path.join(top, ".git") + os.sep) and name not in ("Read", "Glob", "Grep"):
            return f"{path} is git's own"
    pattern = str(given.get("pattern", "")) if name == "Glob" else ""
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        return f"{pattern} leads out of the folder"
    return ""
