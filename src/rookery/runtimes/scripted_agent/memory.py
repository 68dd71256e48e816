"""What the agent remembers from turn to turn: one file in the session's folder, written whole after every step."""

from __future__ import annotations

import json
import os
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState

FILE = "scripted.json"


class Memory:
    """How far the script is, and what mail was seen. A turn that was killed goes on at the step it was killed in."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, FILE)
        found = self._load()
        self.session: str = found.get("session") or f"scripted-{os.urandom(8).hex()}"
        self.script: str | None = found.get("script")
        self.turn: int = found.get("turn", 0)
        self.position: int = found.get("position", 0)
        self.is_stubborn: bool = found.get("is_stubborn", False)
        self.messages: list[dict[str, Any]] = found.get("messages", [])
        """Oldest first."""
        self.used: list[str] = found.get("used", [])
        """Messages that an `until` has waited for; the next one waits for others."""
        self.current: str | None = found.get("current")

    def _load(self) -> dict[str, Any]:
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise InvalidState(f"{self._path} is damaged", hint="remove it, and the script begins again") from error
        return found if isinstance(found, dict) else {}

    def save(self) -> None:
        """Write everything, whole or not at all."""
        data = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        write_whole(self._path, json.dumps(data))

    def see(self, messages: list[dict[str, Any]]) -> int:
        """Take note of mail, oldest first; gives how many of them are new."""
        known = {each["id"] for each in self.messages}
        fresh = [each for each in messages if each["id"] not in known]
        self.messages += fresh
        if fresh:
            self.current = fresh[-1]["id"]
        return len(fresh)

    def use(self, sender: str | None, kind: str | None) -> bool:
        """Take the first message, not yet used, of that sender and type as the current one; False if there is none."""
        for each in self.messages:
            fits = sender in (None, each.get("from")) and kind in (None, each.get("type"))
            if fits and each["id"] not in self.used:
                self.used.append(each["id"])
                self.current = each["id"]
                return True
        return False

    @property
    def mail(self) -> dict[str, Any] | None:
        """The message that `{mail.…}` and `reply` mean: the newest seen, or the one that was waited for."""
        return next((each for each in self.messages if each["id"] == self.current), None)
