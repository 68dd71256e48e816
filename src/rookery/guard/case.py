"""One call while it is being judged: the first denial ends it, doubts are settled by the profile."""

from __future__ import annotations

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


class Case:
    """Who asks, within which bounds, and what was doubtful so far."""

    def __init__(self, role: Role, profile: str, bounds: Bounds) -> None:
        self.role = role
        self.profile = profile
        self.bounds = bounds
        self.question: Verdict | None = None

    @property
    def is_writer(self) -> bool:
        """True if the role may change files at all."""
        return self.role.can_write

    def has_tool(self, tool: str) -> bool:
        """True if the tool is the role's, and was left to the agent when it was slung."""
        return has_tool(self.role.tools, tool) and has_tool(self.bounds.tools, tool)

    def deny(self, rule: str, reason: str, hint: str) -> NoReturn:
        """Refuse the call, whatever the profile."""
        raise Denied(Verdict(DENY, _short(reason), _short(hint), rule))

    def deny_unknown(self, what: str, hint: str = WRITE_IT_OUT) -> NoReturn:
        """Refuse what can only be known when it runs."""
        self.deny("unknown", f"{what} is only known when it runs", hint)

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
        """What it comes to if nothing was denied."""
        return self.question or Verdict(ALLOW, "nothing speaks against it")


def _short(text: str) -> str:
    """The text without the middle, if somebody's path or command makes it long."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
