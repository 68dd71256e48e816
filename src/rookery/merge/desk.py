"""What every part of landing needs: the project, its repository, who asks, and whom to tell."""

from __future__ import annotations

import os
from collections.abc import Callable

from rookery.base.errors import InvalidInput, InvalidState
from rookery.merge.model import GateRun
from rookery.sessions.home import Home
from rookery.worktrees import service as worktrees


def _say_nothing(_text: str) -> None:
    pass


class Desk:
    """A project, as somebody who lands work sees it."""

    def __init__(self, home: Home, actor: str, say: Callable[[str], None] = _say_nothing) -> None:
        self.home = home
        self.db = home.db
        self.config = home.config
        self.actor = actor
        self.say = say
        """Called with what gates print, as it comes, and with what is done."""
        self.vcs = worktrees.open_repository(home.root, home.config.vcs)
        self.merging = self.vcs.merging()
        self.merging.refresh()
        self.red: dict[tuple[str, str], GateRun] = {}
        """Gates that failed since we began; a later command tries them again."""
        self.gate_runs = 0

    def now(self) -> str:
        """The time, as it is written in records."""
        return self.home.now()

    def path(self, *parts: str) -> str:
        """A path beneath `.rookery/`."""
        return self.home.path(*parts)

    def base(self, name: str | None = None) -> str:
        """The branch to land on: the one that is named, else the project's."""
        found = name or self.config.project.base or self.vcs.default_branch()
        if not found:
            raise InvalidState("there is no branch to land on", hint="set project.base, or say --into BRANCH")
        if self.vcs.branch_tip(found) is None:
            raise InvalidInput(f"there is no branch {found} to land on", hint="`rook vcs status` shows where you are")
        return found

    def scratch(self, name: str) -> str:
        """A folder for something that is thrown away."""
        return os.path.join(self.path("scratch"), name)
