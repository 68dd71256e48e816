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
from rookery.base.ids import handle
from rookery.processes.process import run
from rookery.processes.proctree import descendants, identify, send
from rookery.runtimes.scripted_agent import steps
from rookery.runtimes.scripted_agent.memory import Memory
from rookery.runtimes.scripted_agent.script import DEFAULT, Step, find_script, parse_script
from rookery.runtimes.scripted_agent.voice import Voice

_NAMES = re.compile(r"\{(agent|role|task|handle|parent|turn|worktree|mail\.[a-z_]+)\}")
_ROOK_TIMEOUT = 600


class Agent:
    """Who it is, where it works, what it remembers, and where it reports what it does."""

    def __init__(self, options: Namespace, voice: Voice) -> None:
        self.folder: str = options.folder
        self.worktree: str = options.worktree
        self.model: str = options.model
        self.voice = voice
        self.result = ""
        """What it said last in this turn."""
        self.children: set[int] = set()
        """The processes that it started in the background; each leads a process session of its own."""
        self.memory = Memory(self.folder)
        if options.resume and options.resume != self.memory.session:
            raise InvalidState(f"there is no conversation {options.resume} in {self.folder}")
        self._names = {name: getattr(options, name) for name in ("agent", "role", "task", "parent", "worktree")}
        self._names["handle"] = handle(options.task)
        if self.memory.script is None:
            self.memory.script = _read_script(options.script, options.instructions)
        self.script = parse_script(self.memory.script)

    def take_turn(self) -> None:
        """Follow the script to the end of the turn. Raises RookError if it ends badly."""
        if self.memory.is_stubborn:
            steps.ignore_requests()
        self.memory.turn += 1
        self.result = ""
        self.memory.save()
        self.voice.tell("session", id=self.memory.session)
        self._read_mail()
        while self.memory.position < len(self.script):
            if self._do(self.script[self.memory.position]):
                break
        self.voice.tell("result", text=self.result or "There is nothing left to do.", ok=True)

    def _do(self, step: Step) -> bool:
        """Do one step; True if the turn ends with it."""
        try:
            outcome = steps.STEPS[step.kind][1](self, self._fill(step.value))
        except (RookError, OSError) as error:
            if step.kind == "fail":
                raise
            raise steps.StepFailed(f"{step}: {error}") from error
        if outcome != steps.STAY:
            self.advance()
        return outcome is not None

    def advance(self) -> None:
        """Go on to the next step: this one is done."""
        self.memory.position += 1
        self.memory.save()

    def end_tools(self) -> None:
        """Kill what was being run. An interrupt may have come just after its start, when it was not known yet."""
        me = identify(os.getpid())
        for process in descendants(me) if me is not None else ():
            with suppress(ProcessLookupError):
                if os.getsid(process.pid) not in self.children:
                    send(process, signal.SIGKILL)

    def _read_mail(self) -> None:
        """Note new mail, and leave it unread: Rookery marks it as read when the turn has ended well."""
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
            return _NAMES.sub(lambda match: self._look_up(match[1]), value)
        if isinstance(value, list):
            return [self._fill(item) for item in value]
        if isinstance(value, dict):
            return {key: self._fill(item) for key, item in value.items()}
        return value

    def _look_up(self, name: str) -> str:
        if name.startswith("mail."):
            content = (self.memory.mail or {}).get(name.removeprefix("mail."))
            return "" if content is None else str(content)
        return str(self.memory.turn if name == "turn" else self._names[name])


def _read_script(path: str, instructions: str) -> str:
    """The script's own file, the block in the instructions, or the built-in one."""
    if path:
        return _read(path)
    return find_script(_read(instructions) if os.path.exists(instructions) else "") or DEFAULT


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
