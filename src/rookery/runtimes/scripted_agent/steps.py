"""The steps: what the value of each has to be, and how it is done.

A step is done by a function of the agent and the value, which returns whether the turn ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING

from rookery.base.errors import Refused
from rookery.base.files import read_text
from rookery.config.environ import child_environ
from rookery.processes.process import run
from rookery.processes.python import module_command
from rookery.processes.spawning import start_detached

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rookery.runtimes.scripted_agent.agent import Agent

    Rule = Callable[[Any], str]
    Do = Callable[[Agent, Any], str | None]

END = "end"
"""The turn ends here; the next one goes on with the step after."""
STAY = "stay"
"""The turn ends here; the next one comes to this step again."""

_LONGEST = 86_400.0
_OUTPUT = 10_000

# An agent uses version control through its shell.
_COMMIT = """
if [ -d .jj ]; then jj commit -m "$1" && jj log --no-graph -r @- -T commit_id
else git add -A && git commit -q -m "$1" && git rev-parse HEAD; fi
"""


class StepFailed(Refused):
    """A step could not be done."""

    code = "step_failed"


def say(agent: Agent, value: str) -> None:
    agent.result = value
    agent.voice.tell("text", text=value)


def edit(agent: Agent, value: Mapping[str, Any]) -> None:
    path = os.path.join(agent.worktree, value["path"])
    before = read_text(path)
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


def commit(agent: Agent, value: str) -> None:
    use_tool(agent, "commit", {"message": value}, ["/bin/sh", "-c", _COMMIT, "sh", value])


def run_command(agent: Agent, value: str) -> None:
    use_tool(agent, "shell", {"command": value}, ["/bin/sh", "-c", value])


def rook(agent: Agent, value: list[Any]) -> None:
    words = [str(word) for word in value]
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
    for key, content in value.items():
        option = "--" + key.replace("_", "-")
        if key != "task" and content is True:
            words.append(option)
        elif key != "task" and content is not False:
            words += [f"{option}={item}" for item in (content if isinstance(content, list) else [content])]
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
    number = signal.Signals[_signal_name(value)]
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


def use_tool(agent: Agent, name: str, tool_input: dict[str, Any], argv: list[str]) -> None:
    """Run a program in the worktree and report its result. A failure does not end the turn."""
    begun = time.monotonic()
    done = run(argv, cwd=agent.worktree, timeout=_LONGEST, check=False)
    output = (done.stdout + done.stderr).encode("utf-8", "replace").decode()
    duration = round((time.monotonic() - begun) * 1000)
    failed = {} if done.ok else {"status": done.status}
    output = output[-_OUTPUT:]
    agent.voice.tell("tool", name=name, input=tool_input, ok=done.ok, output=output, duration_ms=duration, **failed)


def _wants(what: str, fits: Callable[[Any], bool]) -> Rule:
    return lambda value: "" if fits(value) else what


def _signal_name(value: str) -> str:
    return f"SIG{value.removeprefix('SIG')}"


_TEXT = _wants("a text is wanted", lambda value: isinstance(value, str) and value != "")
_TRUE = _wants("it is written with `true`", lambda value: value is True)
_MAIL = _wants("it is written as `wait: mail`", lambda value: value == "mail")
_SECONDS = _wants("a number of seconds is wanted", lambda value: type(value) in (int, float) and value >= 0)
_STATUS = _wants("an exit status from 0 to 255 is wanted", lambda value: type(value) is int and 0 <= value <= 255)
_SIGNAL = _wants(
    "a signal's name is wanted, as TERM",
    lambda value: isinstance(value, str) and _signal_name(value) in signal.Signals.__members__,
)
_TASK = _wants("`task` is missing", lambda value: isinstance(value, dict) and "task" in value)


def _words(value: Any) -> str:
    is_list = isinstance(value, list) and value
    return "" if is_list and all(type(word) in (str, int, float) for word in value) else "a list of words is wanted"


def _keys(value: Any, types: Mapping[str, type], needed: str = "") -> str:
    """What is wrong with keys and values of these types; a number must not be negative."""
    if not isinstance(value, dict):
        return "keys with values are wanted"
    if needed and needed not in value:
        return f"`{needed}` is missing"
    for key, content in value.items():
        if key not in types:
            return f"there is no `{key}`"
        if not isinstance(content, types[key]) or (isinstance(content, int) and content < 0):
            return f"`{key}` {_WANTED[types[key]]}"
    return ""


_WANTED = {
    str: "must be a text",
    int: "must be a number of tokens",
    dict: "has keys with values",
    list: "is a list of the old and the new text",
}


def _edit(value: Any) -> str:
    problem = _keys(value, {"path": str, "text": str, "append": str, "replace": list}, "path")
    if problem:
        return problem
    if len(value) != 2:
        return "`path` and one of `text`, `append`, `replace` are wanted"
    pair = value.get("replace", ["old", "new"])
    is_pair = len(pair) == 2 and all(isinstance(part, str) for part in pair) and pair[0]
    return "" if is_pair else f"`replace` {_WANTED[list]}"


def _mail(value: Any) -> str:
    return _keys(value, {**dict.fromkeys(("to", "type", "subject", "body", "priority"), str), "payload": dict}, "to")


def _spend(value: Any) -> str:
    return _keys(value, {**dict.fromkeys(("input", "output", "cache_read", "cache_write"), int), "model": str})


def _until(value: Any) -> str:
    problem = _keys(value, {"mail_from": str, "mail_type": str})
    return problem or ("" if value else "`mail_from` or `mail_type` is wanted")


STEPS: dict[str, tuple[Rule, Do]] = {
    "say": (_TEXT, say),
    "edit": (_edit, edit),
    "commit": (_TEXT, commit),
    "run": (_TEXT, run_command),
    "mail": (_mail, mail),
    "reply": (_TEXT, reply),
    "task": (_words, task),
    "rook": (_words, rook),
    "sling": (_TASK, sling),
    "wait": (_MAIL, wait),
    "until": (_until, until),
    "sleep": (_SECONDS, sleep),
    "spend": (_spend, spend),
    "crash": (_STATUS, crash),
    "signal": (_SIGNAL, send_signal),
    "hang": (_TRUE, hang),
    "stubborn": (_TRUE, stubborn),
    "child": (_TEXT, child),
    "fail": (_TEXT, fail),
}
"""Every kind of step but `repeat`: what is wrong with its value, and how it is done."""
