"""An agent with a script: what it knows, and one turn of it."""

from __future__ import annotations

import json
import os
import re
import signal
from argparse import Namespace
from contextlib import suppress
from typing import Any

from rookery.base.errors import InvalidInput, InvalidState, RookError
from rookery.processes.process import run
from rookery.processes.proctree import descendants, identify, send
from rookery.runtimes.scripted_agent import steps
from rookery.runtimes.scripted_agent.memory import Memory
from rookery.runtimes.scripted_agent.script import DEFAULT, Step, find_script, parse_script
from rookery.runtimes.scripted_agent.voice import Voice

_NAMES = re.compile(r"\{(agent|role|task|parent|turn|worktree|mail\.[a-z_]+)\}")
_ROOK_TIMEOUT = 600


class Agent:
    """Who it is, where it works, what it remembers, and to whom it tells what it does."""

    def __init__(self, options: Namespace, voice: Voice) -> None:
        self.folder: str = options.folder
        self.worktree: str = options.worktree
        self.model: str = options.model
        self.voice = voice
        self.said = ""
        self.children: set[int] = set()
        """What it started in the background, each the leader of a session."""
        self.memory = Memory(self.folder)
        if options.resume and options.resume != self.memory.session:
            raise InvalidState(f"there is no conversation {options.resume} in {self.folder}")
        self._names = {"agent": options.agent, "role": options.role, "task": options.task, "parent": options.parent}
        self.script = self._learn(options.script, options.instructions)

    def _learn(self, path: str, instructions: str) -> tuple[Step, ...]:
        """Read the script once: from its file, from the instructions, or the one for a small honest worker."""
        if self.memory.script is None:
            if path:
                self.memory.script = _read(path)
            else:
                told = _read(instructions) if os.path.exists(instructions) else ""
                self.memory.script = find_script(told) or DEFAULT
        return parse_script(self.memory.script)

    def take_turn(self) -> None:
        """Follow the script to where the turn ends. RookError says that it ended badly."""
        if self.memory.is_stubborn:
            steps.ignore_requests()
        self.memory.turn += 1
        self.said = ""
        self.memory.save()
        self.voice.tell("session", id=self.memory.session)
        self._read_mail()
        while self.memory.position < len(self.script):
            if self._do(self.script[self.memory.position]):
                break
        self.voice.tell("result", text=self.said or "There is nothing left to do.", ok=True)

    def _do(self, step: Step) -> bool:
        """Do one step; True if the turn ends with it."""
        try:
            outcome = steps.DO[step.kind](self, self._fill(step.value))
        except steps.StepFailed as error:
            if step.kind == "fail":
                raise
            raise steps.StepFailed(f"{step}: {error.message}") from error
        except (RookError, OSError) as error:
            raise steps.StepFailed(f"{step}: {error}") from error
        if outcome != steps.STAY:
            self.advance()
        return outcome is not None

    def advance(self) -> None:
        """The step is done."""
        self.memory.position += 1
        self.memory.save()

    def end_tools(self) -> None:
        """Kill what was being run. An interrupt may have come while it was only just started, and not yet known."""
        me = identify(os.getpid())
        for each in descendants(me) if me is not None else ():
            with suppress(ProcessLookupError):
                if os.getsid(each.pid) not in self.children:
                    send(each, signal.SIGKILL)

    def _read_mail(self) -> None:
        """See what is new, and leave it unread: whoever began this turn marks it when the turn has ended well."""
        if not any(step.kind in ("reply", "until") or "{mail." in repr(step.value) for step in self.script):
            return
        words = ["mail", "list", f"--to={self._names['agent']}", "--unread", "--json"]
        done = run([*steps.rook_command(), *words], cwd=self.worktree, timeout=_ROOK_TIMEOUT, check=False)
        if not done.ok:
            raise steps.StepFailed(f"cannot read mail: {done.last_output}")
        self.memory.see(list(reversed(json.loads(done.stdout)["data"])))
        self.memory.save()

    def _fill(self, value: Any) -> Any:
        """The value with names such as `{agent}` replaced in its texts; other braces are left alone."""
        if isinstance(value, str):
            return _NAMES.sub(lambda found: self._known(found[1]), value)
        if isinstance(value, list):
            return [self._fill(each) for each in value]
        if isinstance(value, dict):
            return {key: self._fill(each) for key, each in value.items()}
        return value

    def _known(self, name: str) -> str:
        if name.startswith("mail."):
            field = name.removeprefix("mail.")
            found = (self.memory.mail or {}).get(field)
            return "" if found is None else str(found)
        if name == "turn":
            return str(self.memory.turn)
        return self.worktree if name == "worktree" else str(self._names[name])


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
