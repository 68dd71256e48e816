"""The scripted agent as a program: one turn with events on standard output, or a session in a terminal.

Exit status: 0 the turn ended well, 1 it did not, 130 it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys

from rookery.base.errors import INTERRUPTED, REFUSED, RookError
from rookery.processes.process import run
from rookery.runtimes.scripted_agent.agent import Agent
from rookery.runtimes.scripted_agent.memory import Memory
from rookery.runtimes.scripted_agent.prompt import read_prompt
from rookery.runtimes.scripted_agent.steps import rook_command
from rookery.runtimes.scripted_agent.voice import Voice

TRANSCRIPT = "transcript.jsonl"


def main(argv: list[str] | None = None) -> int:
    """Run the program and return its exit status."""
    options = _parse(argv)
    # The process that starts us may ignore interrupts, and a child inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.makedirs(options.folder, exist_ok=True)
    if options.interactive:
        return _serve_terminal(options)
    sys.stdin.buffer.read()  # the script says what to do; the prompt only says that it is time
    return _take_turn(options, Voice(sys.stdout))


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripted-agent", allow_abbrev=False)
    for name in ("folder", "worktree", "agent"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("role", "parent", "task", "instructions", "script", "resume"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--interactive", action="store_true")
    return parser.parse_args(argv)


def _take_turn(options: argparse.Namespace, voice: Voice) -> int:
    """Take a turn, and report the error if it ends badly."""
    agent = None
    try:
        agent = Agent(options, voice)
        agent.take_turn()
    except RookError as error:
        voice.tell("error", message=error.message)
        return REFUSED
    except KeyboardInterrupt:
        if agent is not None:
            agent.end_tools()
        voice.tell("error", message="interrupted")
        return INTERRUPTED
    return 0


def _serve_terminal(options: argparse.Namespace) -> int:
    """Read prompts and take turns until there are no more."""
    memory = Memory(options.folder)
    memory.save()  # from here on the conversation has its name
    with open(os.path.join(options.folder, TRANSCRIPT), "a", encoding="utf-8") as transcript:
        voice = Voice(transcript, on_screen=True, report=lambda line: _record(line, options))
        while (text := read_prompt()) is not None and text.strip() != "/exit":
            sys.stdout.write("· at work; Ctrl-C interrupts\r\n")
            sys.stdout.flush()
            _call_hook("begin", {"prompt": text}, options, "--conversation", memory.session)
            status = _take_turn(options, voice)
            _call_hook("end", {"status": status}, options)
    return 0


def _call_hook(name: str, fields: dict[str, object], options: argparse.Namespace, *words: str) -> None:
    """Tell Rookery of a turn's beginning or end, as other programs do by their hooks. A failure stops nothing."""
    data = {"hook_event_name": name, "cwd": options.worktree, **fields}
    run([*rook_command(), "turn", name, *words], cwd=options.worktree, stdin=json.dumps(data), check=False)


def _record(line: str, options: argparse.Namespace) -> None:
    """Tell Rookery what was done, for `rook logs`. A failure stops nothing."""
    run([*rook_command(), "turn", "record", "-"], cwd=options.worktree, stdin=line, check=False)


if __name__ == "__main__":
    sys.exit(main())
