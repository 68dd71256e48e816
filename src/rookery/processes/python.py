"""The command that starts a module of ours as a program, in whatever folder and environment."""

from __future__ import annotations

import os
import sys

# The worktree may hold a `yaml.py`, or another Rookery, and PYTHONPATH may be relative: so not `-m`, which looks in
# the current folder first. Our own package comes from the folder that we ourselves run from.
# Our starter may block signals, as the host of a sandbox does, or ignore some, as under `nohup`; a child inherits both.
_START = (
    "import _signal, sys; _signal.pthread_sigmask(_signal.SIG_SETMASK, ()); "
    "[_signal.signal(number, _signal.SIG_DFL) for number in (1, 3, 14, 15)]; "
    "_signal.signal(2, _signal.default_int_handler); "
    "sys.path.insert(0, sys.argv.pop(1)); import rookery; del sys.path[0]; from {module} import main; sys.exit(main())"
)


def module_command(module: str, python: str = "", *, alone: bool = False) -> tuple[str, ...]:
    """The beginning of a command that calls `main()` of the module; its arguments follow.

    `alone`: Python ignores its variables in the environment, and the user's own packages.
    """
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return (python or sys.executable, "-I" if alone else "-P", "-c", _START.format(module=module), home)
