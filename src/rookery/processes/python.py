"""How to start a module of ours as a program, wherever the child stands and whatever its environment says."""

from __future__ import annotations

import os
import sys

# The worktree may hold a `yaml.py`, or another Rookery, and PYTHONPATH may be relative: so not `-m`, which looks in
# the current folder first, and our own package is found by the place that we ourselves run from.
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import rookery; del sys.path[0]; "
    "from {module} import main; sys.exit(main())"
)


def module_command(module: str, python: str = "", *, alone: bool = False) -> tuple[str, ...]:
    """The beginning of a command that calls `main()` of the module; its arguments follow.

    `alone`: nothing of the environment or of the user's own Python has a part in it.
    """
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return (python or sys.executable, "-I" if alone else "-P", "-c", _START.format(module=module), home)
