"""Doing the steps. Each is a function of the agent and the step's value; it gives what the turn does next."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING

from rookery.base.errors import Refused
from rookery.config.environ import child_environ
from rookery.processes.process import run
from rookery.processes.python import module_command
from rookery.processes.spawning import start_detached
from rookery.runtimes.scripted_agent.script import signal_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rookery.runtimes.scripted_agent.agent import Agent

    Do = Callable[[Agent, Any], str | None]

END = "end"
"""The turn ends here; the next one goes on with the step after."""
STAY = "stay"
"""The turn ends here; the next one comes to this step again."""

_LONGEST = 86_400.0
_OUTPUT = 10_000

# An agent uses version control as anybody does, through its shell.
_COMMIT = """
if [ -d .jj ]; then jj commit -m "$1" && jj log --no-graph -r @- -T commit_id
else git add -A && git commit -q -m "$1" && git rev-parse HEAD; fi
"""


class StepFailed(Refused):
    """A step could not be done."""

    code = "step_failed"


def say(agent: Agent, value: str) -> None:
    agent.said = value
    agent.voice.tell("text", text=value)


def edit(agent: Agent, value: Mapping[str, Any]) -> None:
    path = os.path.join(agent.worktree, value["path"])
    before = _read(path)
    if "replace" in value:
        old, new = value["replace"]
        if before is None or old not in before:
            raise StepFailed(f"{value['path']} does not hold {old!r}")
        after = before.replace(old, new, 1)
    else:
        after = value["text"] if "text" in value else (before or "") + value["append"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(after)
    agent.voice.tell("file", path=value["path"], change="created" if before is None else "modified")


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None


def commit(agent: Agent, value: str) -> None:
    use_tool(agent, "commit", {"message": value}, ["/bin/sh", "-c", _COMMIT, "sh", value])


def run_command(agent: Agent, value: str) -> None:
    use_tool(agent, "shell", {"command": value}, ["/bin/sh", "-c", value])


def rook(agent: Agent, value: list[Any]) -> None:
    words = [str(each) for each in value]
    use_tool(agent, "rook", {"args": words}, [*rook_command(), *words, "--json"])


def task(agent: Agent, value: list[Any]) -> None:
    rook(agent, ["task", *value])


def mail(agent: Agent, value: Mapping[str, Any]) -> None:
    subject = value.get("subject") or value.get("body", "").partition("\n")[0][:80] or value.get("type", "status")
    words = ["mail", "send", f"--to={value['to']}", f"--subject={subject}"]
    words += [f"--{key}={value[key]}" for key in ("body", "type", "priority") if key in value]
    if "payload" in value:
        words.append(f"--payload={json.dumps(value['payload'])}")
    rook(agent, words)


def reply(agent: Agent, value: str) -> None:
    message = agent.memory.mail
    if message is None:
        raise StepFailed("there is no message to reply to")
    rook(agent, ["mail", "reply", message["id"], f"--body={value}"])


def sling(agent: Agent, value: Mapping[str, Any]) -> None:
    words = ["sling", str(value["task"])]
    for key, each in value.items():
        name = "--" + key.replace("_", "-")
        if key == "task" or each is False:
            continue
        if each is True:
            words.append(name)
        else:
            words += [f"{name}={one}" for one in (each if isinstance(each, list) else [each])]
    rook(agent, words)


def wait(agent: Agent, value: str) -> str:
    return END


def until(agent: Agent, value: Mapping[str, str]) -> str | None:
    return None if agent.memory.use(value.get("mail_from"), value.get("mail_type")) else STAY


def sleep(agent: Agent, value: float) -> None:
    time.sleep(value)


def spend(agent: Agent, value: Mapping[str, Any]) -> None:
    counts = {key: value.get(key, 0) for key in ("input", "output", "cache_read", "cache_write")}
    agent.voice.tell("usage", model=value.get("model") or agent.model, **counts)


def crash(agent: Agent, value: int) -> None:
    agent.advance()  # or it would crash at every start
    os._exit(value)


def send_signal(agent: Agent, value: str) -> None:
    agent.advance()
    number = signal_number(value) or signal.SIGKILL
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def hang(agent: Agent, value: bool) -> None:
    while True:
        time.sleep(_LONGEST)


def stubborn(agent: Agent, value: bool) -> None:
    agent.memory.is_stubborn = True
    ignore_requests()


def ignore_requests() -> None:
    """From now on only SIGKILL ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def child(agent: Agent, value: str) -> None:
    output = os.path.join(agent.folder, "children.log")
    started = start_detached(["/bin/sh", "-c", value], cwd=agent.worktree, env=child_environ(), output=output)
    agent.children.add(started.pid)
    agent.voice.tell("tool", name="child", input={"command": value}, ok=True, output=str(started.pid), duration_ms=0)


def fail(agent: Agent, value: str) -> None:
    agent.advance()
    raise StepFailed(value)


def rook_command() -> tuple[str, ...]:
    """How the agent calls `rook`: the same Rookery that it is a part of, as a child like any agent's."""
    return module_command("rookery.client.main")


def use_tool(agent: Agent, name: str, given: dict[str, Any], argv: list[str]) -> None:
    """Run a program in the worktree and tell how it went. That it failed is for whoever reads it to judge."""
    begun = time.monotonic()
    done = run(argv, cwd=agent.worktree, timeout=_LONGEST, check=False)
    said = (done.stdout + done.stderr).encode("utf-8", "replace").decode()
    duration = round((time.monotonic() - begun) * 1000)
    agent.voice.tell("tool", name=name, input=given, ok=done.ok, output=said[-_OUTPUT:], duration_ms=duration)


DO: dict[str, Do] = {
    "say": say,
    "edit": edit,
    "commit": commit,
    "run": run_command,
    "mail": mail,
    "reply": reply,
    "task": task,
    "rook": rook,
    "sling": sling,
    "wait": wait,
    "until": until,
    "sleep": sleep,
    "spend": spend,
    "crash": crash,
    "signal": send_signal,
    "hang": hang,
    "stubborn": stubborn,
    "child": child,
    "fail": fail,
}
