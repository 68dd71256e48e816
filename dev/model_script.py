"""What the scripted model answers: a script in the conversation, and how far the conversation has come in it.

The script is the newest fenced block called `model-script` or `rook-script` in what the user said (task, specification
and prompt alike), or else in the system prompt. It is a YAML list of steps, the same language as the scripted
runtime's (docs/guides/scripted-runtime.md), here turned into calls of the program's own tools:

    say: TEXT                       words before the next tool, or alone at the end of a turn
    run: COMMAND                    the tool Bash
    edit: {path, text}              Write, for a new file (append: Bash; replace: Read and Edit)
    commit, rook, task, sling, mail, reply, sleep, child, hang      commands for Bash
    crash, signal, fail             the API refuses once, so that the turn ends badly
    wait: mail                      ends the turn
    until: {mail_from, mail_type}   ends turns until such mail was in a prompt
    repeat: N with steps: [...]     as often
    spend: {input, output, cache_read, cache_write}      tokens of the next answer; 100 in and 10 out otherwise

and of the model's own:

    tool: NAME with input: {...}    any tool, also of an MCP server
    tools: [{tool, input}, ...]     several in one answer
    slow: SECONDS                   the next answer stops for so long after its first byte
    error: STATUS with message: TEXT, times: N      the API refuses, for ever or so many times

In every text {agent}, {role}, {task}, {parent}, {worktree}, {branch} (from the instructions) and {mail.id},
{mail.from}, {mail.type}, {mail.subject}, {mail.body} (of the newest mail, or of what `until` waited for) are replaced.

Nothing is remembered between requests but how often an error was given: the place in the script is the number of
answers in the conversation since. So any number of agents can be served at once, killed and resumed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from rookery.base.errors import InvalidInput
from rookery.runtimes.scripted_agent.script import parse_script

NOTHING_LEFT = "There is nothing left to do."
WAITING = "I wait for mail."

_FENCE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?:model|rook)-script[ \t]*\n(?P<body>.*?)^[ \t]*(?P=fence)", re.M | re.S
)
_MAIL = re.compile(
    r"^message (?P<id>msg_\w+)[^\n]*? from (?P<from>\S+?)(?: to \S+)?, (?P<type>\w+), priority \w+, "
    r"subject (?P<subject>\"[^\n]*\")\n(?P<fence>`{3,})text\n(?P<body>.*?)\n(?P=fence)$",
    re.M | re.S,
)
_FACTS = {
    "agent": re.compile(r"^- agent: `([^`]+)`", re.M),
    "role": re.compile(r"^- agent: `[^`]+` \((\w+)", re.M),
    "task": re.compile(r"^- task: `([^`]+)`", re.M),
    "worktree": re.compile(r"^- worktree: `([^`]+)`", re.M),
    "branch": re.compile(r"^- branch: `([^`]+)`", re.M),
    "parent": re.compile(r"You answer to `([^`]+)`"),
}
_NAMES = re.compile(r"\{(agent|role|task|parent|worktree|branch|mail\.(?:id|from|type|subject|body))\}")
_DEFAULT_USAGE = {"input": 100, "output": 10, "cache_read": 0, "cache_write": 0}


class BadScript(Exception):
    """A script that says something that there is not."""


class Call(NamedTuple):
    """One use of a tool."""

    tool: str
    input: dict[str, Any]


class Answer(NamedTuple):
    """One message of the model, or a refusal of the API."""

    text: str
    calls: tuple[Call, ...] = ()
    usage: Mapping[str, int] = _DEFAULT_USAGE
    slow: float = 0.0
    error: int = 0
    times: int = 0
    """How often the error is given; 0 for ever."""
    until: Mapping[str, str] | None = None
    """Mail without which the conversation stays here."""
    label: str = ""


class Place(NamedTuple):
    """Where a conversation is in its script."""

    answer: Answer
    step: int
    steps: int
    agent: str


BUILT_IN = """
- edit: {path: "{agent}.md", text: "What {agent} did.\\n"}
- commit: Write a note
- mail: {to: "{parent}", type: worker_done, subject: "{agent} has written a note"}
"""
"""What an agent does whose instructions hold no script, where the server is told to use this."""


def read_place(request: Mapping[str, Any], has_erred: Callable[[str], int], built_in: str | None = None) -> Place:
    """The answer to a request. `has_erred` says how often the error of that key was given; raises BadScript.

    `built_in` is the script of agents that have none of their own.
    """
    messages = request["messages"]
    texts = [_text_of(message["content"]) if message["role"] != "assistant" else "" for message in messages]
    system = _text_of(request.get("system", ""))
    script, begun = _find(texts, system)
    facts = _read_facts([system, *texts])
    agent = facts.get("agent", "")
    if script is None and agent and "parent" in facts:
        script = built_in
    if script is None:
        return Place(Answer(NOTHING_LEFT), 0, 0, agent)
    answers = compile_script(script, facts)
    if not request.get("tools") and any(answer.calls for answer in answers):
        return Place(Answer("ok"), 0, 0, agent)
    at, mail = _replay(answers, messages, texts, begun, has_erred)
    if at == len(answers):
        return Place(Answer(NOTHING_LEFT), at, at, agent)
    known = facts | {f"mail.{key}": value for key, value in mail.items()}
    return Place(compile_script(script, known)[at], at + 1, len(answers), agent)


def _find(texts: Sequence[str], system: str) -> tuple[str | None, int]:
    """The script, and the number of the message that it came with."""
    for at in reversed(range(len(texts))):
        scripts = _FENCE.findall(texts[at])
        if scripts:
            return scripts[-1][1], at
    scripts = _FENCE.findall(system)
    return (scripts[-1][1], 0) if scripts else (None, 0)


def _replay(
    answers: Sequence[Answer],
    messages: Sequence[Mapping[str, Any]],
    texts: Sequence[str],
    begun: int,
    has_erred: Callable[[str], int],
) -> tuple[int, dict[str, str]]:
    """Go through the conversation so far: every answer in it took a step, except those that waited."""
    at, mail, waiting = 0, {}, []  # type: tuple[int, dict[str, str], list[dict[str, str]]]

    def settle() -> None:
        nonlocal at, mail
        while at < len(answers):
            answer = answers[at]
            if answer.until is not None:
                message = next((message for message in waiting if _fits(message, answer.until)), None)
                if message is None:
                    return
                waiting.remove(message)
                mail = message
            elif not (answer.error and answer.times and has_erred(answer.label) >= answer.times):
                return
            at += 1

    for number in range(begun, len(messages)):
        if messages[number]["role"] != "assistant":
            came = [_mail(match) for match in _MAIL.finditer(texts[number])]
            waiting += came
            mail = came[0] if came else mail
        elif not _is_filler(messages[number]) and (number == 0 or messages[number - 1]["role"] != "assistant"):
            settle()
            if at < len(answers) and answers[at].until is None and not answers[at].error:
                at += 1
    settle()
    return at, mail


def _is_filler(message: Mapping[str, Any]) -> bool:
    """True for what the program itself puts where a turn was cut off before the model had answered."""
    return _text_of(message["content"]) == "No response requested."


def _fits(mail: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(mail[key.removeprefix("mail_")] == value for key, value in wanted.items())


def _mail(match: re.Match[str]) -> dict[str, str]:
    return {key: match[key] for key in ("id", "from", "type", "body")} | {"subject": str(json.loads(match["subject"]))}


def _text_of(content: object) -> str:
    """The words of a message, without what tools gave back: a file that holds a script must not become one."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = (block for block in content if isinstance(block, dict) and block.get("type") == "text")
    return "\n".join(str(block.get("text", "")) for block in blocks)


def _read_facts(texts: Sequence[str]) -> dict[str, str]:
    facts = {}
    for name, pattern in _FACTS.items():
        match = next((hit for text in texts if (hit := pattern.search(text))), None)
        if match is not None:
            facts[name] = match[1]
    return facts


def _fill(value: Any, known: Mapping[str, str]) -> Any:
    """The value with names such as `{agent}` replaced in its texts; those that are not known are left alone."""
    if isinstance(value, str):
        # A step with a text that came out empty would be no step.
        return _NAMES.sub(lambda match: known.get(match[1], match[0]), value) or (value and " ")
    if isinstance(value, list):
        return [_fill(item, known) for item in value]
    if isinstance(value, dict):
        return {key: _fill(item, known) for key, item in value.items()}
    return value


def compile_script(text: str, known: Mapping[str, str]) -> list[Answer]:
    """The answers that a script stands for, with what is known filled in; raises BadScript with what is wrong."""
    try:
        steps = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadScript(f"the script is no YAML: {error}") from error
    if not isinstance(steps, list):
        raise BadScript("the script is no list of steps")
    answers: list[Answer] = []
    draft = Answer("")
    for number, step in enumerate(steps, 1):
        # Filled in before anything is quoted for a shell: no message can break out of its word.
        for kind, value, whole in _steps(_fill(step, known), number):
            draft, is_whole = _add(draft, kind, value, whole, number, known)
            if is_whole:
                answers.append(draft._replace(label=f"{hash(text)} {len(answers)}"))
                draft = Answer("")
    if draft != Answer(""):
        answers.append(draft)
    return answers


def _steps(step: Any, number: int) -> list[tuple[str, Any, dict[str, Any]]]:
    """The step as kind and value: of the model's own language, or what the scripted runtime makes of it."""
    if isinstance(step, dict):
        for kind in ("tools", "tool", "error", "slow"):
            if kind in step:
                return [(kind, step[kind], step)]
    try:
        return [(parsed.kind, parsed.value, {}) for parsed in parse_script(yaml.safe_dump([step]))]
    except InvalidInput as error:
        raise BadScript(f"step {number}: {error.message}") from error


def _add(
    draft: Answer, kind: str, value: Any, whole: dict[str, Any], number: int, known: Mapping[str, str]
) -> tuple[Answer, bool]:
    """The answer with one more step, and whether it is complete by that."""
    if kind == "say":
        return draft._replace(text=f"{draft.text}\n{value}".strip()), False
    if kind == "spend":
        counts = {key: int(value.get(key, 0)) for key in _DEFAULT_USAGE}
        return draft._replace(usage=counts), False
    if kind == "slow":
        return draft._replace(slow=float(value)), False
    if kind == "error":
        message = str(whole.get("message", f"scripted error {value}"))
        return draft._replace(text=message, error=int(value), times=int(whole.get("times", 0))), True
    if kind in ("crash", "signal", "fail"):
        return draft._replace(text=value if kind == "fail" else f"{kind} {value}", error=400, times=1), True
    if kind == "wait":
        return draft._replace(text=draft.text or WAITING), True
    if kind == "until":
        return draft._replace(text=draft.text or WAITING, until=value), True
    if kind in ("tool", "tools"):
        calls = whole["tools"] if kind == "tools" else [whole]
        return draft._replace(calls=tuple(_call(call, number) for call in calls)), True
    return draft._replace(calls=_translate(kind, value, number, known)), True


def _call(call: Any, number: int) -> Call:
    name, tool_input = (call.get("tool"), call.get("input", {})) if isinstance(call, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(tool_input, dict):
        raise BadScript(f"step {number}: a tool is written as `tool: NAME` with `input: {{...}}`")
    return Call(name, tool_input)


def _translate(kind: str, value: Any, number: int, known: Mapping[str, str]) -> tuple[Call, ...]:
    """A step of the scripted runtime in the tools of the program."""
    if kind == "edit":
        return _edit(value, os.path.join(known.get("worktree", ""), value["path"]))
    if kind == "run":
        return (_bash(value),)
    commands: dict[str, Callable[[], str]] = {
        "commit": lambda: f"git add -A && git commit -q -m {shlex.quote(value)}",
        "rook": lambda: _rook(value),
        "task": lambda: _rook(["task", *value]),
        "mail": lambda: _rook(["mail", "send", "--to", value["to"], "--subject", _subject(value), *_options(value)]),
        "reply": lambda: _rook(["mail", "reply", known.get("mail.id", "none"), "--body", value]),
        "sling": lambda: _rook(["sling", value["task"], *_flags(value)]),
        "sleep": lambda: f"sleep {value}",
        "hang": lambda: "sleep 100000",
        "child": lambda: f"setsid sh -c {shlex.quote(value)} >/dev/null 2>&1 </dev/null & echo $!",
    }
    if kind not in commands:
        raise BadScript(f"step {number}: a model cannot do `{kind}`")
    return (_bash(commands[kind]()),)


def _edit(value: Mapping[str, Any], path: str) -> tuple[Call, ...]:
    if "append" in value:
        return (_bash(f"printf %s {shlex.quote(value['append'])} >> {shlex.quote(value['path'])}"),)
    if "replace" in value:
        old, new = value["replace"]
        return (
            Call("Read", {"file_path": path}),
            Call("Edit", {"file_path": path, "old_string": old, "new_string": new}),
        )
    return (Call("Write", {"file_path": path, "content": value["text"]}),)


def _bash(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "A step of the script"})


def _rook(words: Sequence[Any]) -> str:
    return "rook " + " ".join(shlex.quote(str(word)) for word in words)


def _subject(value: Mapping[str, Any]) -> str:
    return str(
        value.get("subject") or str(value.get("body", "")).partition("\n")[0][:80] or value.get("type", "status")
    )


def _options(value: Mapping[str, Any]) -> list[str]:
    words = [f"--{key}={value[key]}" for key in ("body", "type", "priority") if key in value]
    return [*words, *([f"--payload={json.dumps(value['payload'])}"] if "payload" in value else [])]


def _flags(value: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for key, setting in value.items():
        if key == "task" or setting is False:
            continue
        name = "--" + key.replace("_", "-")
        words += (
            [name]
            if setting is True
            else [f"{name}={one}" for one in (setting if isinstance(setting, list) else [setting])]
        )
    return words
