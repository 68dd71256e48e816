"""What the agent remembers from turn to turn: one file in the session's folder, written whole after every step."""

from __future__ import annotations

import json
import os
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState
from rookery.base.files import read_text

FILE = "scripted.json"


class Memory:
    """The position in the script, and the mail seen so far. A killed turn goes on at the step it was killed in."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, FILE)
        saved = self._load()
        self.session: str = saved.get("session") or f"scripted-{os.urandom(8).hex()}"
        self.script: str | None = saved.get("script")
        self.turn: int = saved.get("turn", 0)
        self.position: int = saved.get("position", 0)
        self.is_stubborn: bool = saved.get("is_stubborn", False)
        self.messages: list[dict[str, Any]] = saved.get("messages", [])
        """Oldest first."""
        self.used: list[str] = saved.get("used", [])
        """Messages that an `until` has waited for; the next one waits for others."""
        self.current: str | None = saved.get("current")

    def _load(self) -> dict[str, Any]:
        text = read_text(self._path)
        try:
            saved = {} if text is None else json.loads(text)
        except ValueError as error:
            raise InvalidState(f"{self._path} is damaged", hint="remove it, and the script begins again") from error
        return saved if isinstance(saved, dict) else {}

    def save(self) -> None:
        """Write everything, whole or not at all."""
        data = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        write_whole(self._path, json.dumps(data))

    def see(self, messages: list[dict[str, Any]]) -> int:
        """Note mail, oldest first; returns how many messages are new."""
        known = {message["id"] for message in self.messages}
        fresh = [message for message in messages if message["id"] not in known]
        self.messages += fresh
        if fresh:
            self.current = fresh[-1]["id"]
        return len(fresh)

    def use(self, sender: str | None, kind: str | None) -> bool:
        """Make the first unused message of that sender and type the current one; False if there is none."""
        for message in self.messages:
            fits = sender in (None, message.get("from")) and kind in (None, message.get("type"))
            if fits and message["id"] not in self.used:
                self.used.append(message["id"])
                self.current = message["id"]
                return True
        return False

    @property
    def mail(self) -> dict[str, Any] | None:
        """The message that `{mail.…}` and `reply` mean: the newest seen, or the one that was waited for."""
        return next((message for message in self.messages if message["id"] == self.current), None)
