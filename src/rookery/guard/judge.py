"""The judge of one tool call: the first denial ends it, and the profile settles doubts."""

from __future__ import annotations

import os
from functools import cached_property
from typing import NoReturn

from rookery.guard.model import ALLOW, ASK, DENY, Bounds, Verdict
from rookery.roles.model import STRICT, YOLO, Role
from rookery.roles.tools import has_tool

_LONGEST = 400
WRITE_IT_OUT = "write it out plainly, without variables or tricks, so that it can be judged"


class Denied(Exception):
    """The call is denied, with the verdict that says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


class Judge:
    """Knows the agent's role, profile and bounds, and the first doubt so far."""

    def __init__(self, role: Role, profile: str, bounds: Bounds) -> None:
        self.role = role
        self.profile = profile
        self.bounds = bounds
        self.question: Verdict | None = None

    @cached_property
    def worktree(self) -> str:
        """The agent's worktree without symbolic links."""
        return os.path.realpath(self.bounds.worktree)

    @cached_property
    def root(self) -> str:
        """The project's main checkout without symbolic links."""
        return os.path.realpath(self.bounds.root)

    def has_tool(self, tool: str) -> bool:
        """True if the role has the tool, and the agent was slung with it."""
        return has_tool(self.role.tools, tool) and has_tool(self.bounds.tools, tool)

    def deny(self, rule: str, reason: str, hint: str) -> NoReturn:
        """Refuse the call, whatever the profile."""
        raise Denied(Verdict(DENY, _short(reason), _short(hint), rule))

    def deny_unknown(self, what: str, hint: str = WRITE_IT_OUT) -> NoReturn:
        """Refuse what can only be known when it runs."""
        self.deny("unknown", f"{what} is only known when it runs", hint)

    def deny_to_reader(self, what: str, instead: str = "read, and report by mail", more: str = "") -> NoReturn:
        """Refuse what only a role that writes may do; one that slings agents can have a builder do it instead."""
        if self.role.can_spawn:
            instead = "sling a builder: `rook sling TASK --role builder`"
        self.deny("read-only", f"a {self.role.name} {what}", instead + more)

    def ask(self, rule: str, reason: str, hint: str) -> None:
        """Leave it to a person, unless something else is denied."""
        self.question = self.question or Verdict(ASK, _short(reason), _short(hint), rule)

    def doubt(self, rule: str, reason: str, hint: str) -> None:
        """What is not known to be harmless: denied if strict, asked if relaxed, allowed in yolo."""
        if self.profile == STRICT:
            self.deny(rule, reason, hint)
        if self.profile != YOLO:
            self.ask(rule, reason, hint)

    def verdict(self) -> Verdict:
        """The answer if nothing was denied."""
        return self.question or Verdict(ALLOW, "no rule forbids it")


def _short(text: str) -> str:
    """The text without its middle, if a path or a command in it makes it long."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
