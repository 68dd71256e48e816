"""The only place that reads the process's environment.

`ROOKERY_ROOT`, `ROOKERY_AGENT`, `ROOKERY_TOKEN` and `ROOKERY_TURN` are what an agent's process is given; every other
`ROOKERY_…` variable overrides a configuration key.
"""

from __future__ import annotations

import os

from rookery.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HUMAN = "human"


class Environ(Record):
    """What the environment says."""

    root: str | None
    """`ROOKERY_ROOT`: the project, whatever the current folder is."""
    agent: str
    """`ROOKERY_AGENT`: who is calling; a person unless said otherwise."""
    no_color: bool
    """`NO_COLOR` (any value) or `TERM=dumb`."""
    home: str
    user_config: str
    """The user's own configuration file."""
    settings: dict[str, str]
    """`ROOKERY_TASKS_LEASE=1h` as `{"ROOKERY_TASKS_LEASE": "1h"}`."""
    token: str | None = None
    """`ROOKERY_TOKEN`: proves that the caller is the agent that it says it is."""
    turn: str | None = None
    """`ROOKERY_TURN`: the turn that the caller runs in."""


_OWN = {"ROOKERY_ROOT", "ROOKERY_AGENT", "ROOKERY_TOKEN", "ROOKERY_TURN"}


def read_environ(source: Mapping[str, str] | None = None) -> Environ:
    """Read the environment once; nothing else in Rookery does."""
    env = os.environ if source is None else source
    home = env.get("HOME") or os.path.expanduser("~")
    config_home = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return Environ(
        root=env.get("ROOKERY_ROOT") or None,
        agent=env.get("ROOKERY_AGENT") or HUMAN,
        no_color="NO_COLOR" in env or env.get("TERM") == "dumb",
        home=home,
        user_config=os.path.join(config_home, "rookery", "config.yaml"),
        settings={k: v for k, v in env.items() if k.startswith("ROOKERY_") and k not in _OWN},
        token=env.get("ROOKERY_TOKEN") or None,
        turn=env.get("ROOKERY_TURN") or None,
    )
