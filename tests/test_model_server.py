"""The scripted model: what it answers to a conversation, over real HTTP, and to what is no conversation at all."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from dev.model_script import NOTHING_LEFT, WAITING, BadScript, compile_script
from dev.model_server import ModelServer

from claude import model_script
from rookery.mail.inject import render
from rookery.mail.model import Message


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


KEY = {"authorization": "Bearer x"}
TOOLS = [{"name": "Bash"}]


def post(server: ModelServer, body: object, path: str = "/v1/messages", headers: Any = KEY) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=20)
    connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), headers)
    answer = connection.getresponse()
    reply = answer.status, answer.read()
    connection.close()
    return reply


def ask(server: ModelServer, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    status, body = post(server, {"model": "m", "messages": list(messages), "tools": TOOLS, **more})
    answer: dict[str, Any] = json.loads(body)
    return answer | {"status": status}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def assistant(answer: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": answer["content"]}


def result(text: str = "") -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": text}]}


def words(answer: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in answer["content"])


def calls(answer: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(block["name"], block["input"]) for block in answer["content"] if block["type"] == "tool_use"]


def mail(sender: str, body: str, kind: str = "status") -> str:
    return render([letter(sender, body, kind)], 0)


def letter(sender: str, body: str, kind: str) -> Message:
    return Message(
        id="msg_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        thread_id="msg_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        reply_to=None,
        sender=sender,
        recipient="ada",
        audience=None,
        type=kind,
        priority="normal",
        subject='a "subject"',
        body=body,
        payload=None,
        session_id=None,
        turn_id=None,
        created_at="2026-01-01T00:00:00.000Z",
        read_at=None,
    )


def test_a_conversation_walks_through_its_script(server: ModelServer) -> None:
    begun = user(model_script("- say: hello\n- run: ls\n- tool: Read\n  input: {file_path: /x}\n- say: bye"))
    first = ask(server, begun)
    assert (words(first), calls(first)[0][1]["command"], first["stop_reason"]) == ("hello", "ls", "tool_use")
    second = ask(server, begun, assistant(first), result())
    assert calls(second) == [("Read", {"file_path": "/x"})]
    third = ask(server, begun, assistant(first), result(), assistant(second), result())
    assert (words(third), third["stop_reason"]) == ("bye", "end_turn")
    rest = [assistant(first), result(), assistant(second), result(), assistant(third), user("and now?")]
    assert words(ask(server, begun, *rest)) == NOTHING_LEFT
    assert [request.step for request in server.served] == [1, 2, 3, 3]


def test_it_is_streamed_with_the_names_of_the_events_and_its_usage(server: ModelServer) -> None:
    script = model_script("- spend: {input: 5, output: 6, cache_read: 7, cache_write: 8}\n- run: ls")
    _, body = post(server, {"model": "m", "messages": [user(script)], "tools": TOOLS, "stream": True})
    blocks = [block.split("\n") for block in body.decode().strip().split("\n\n")]
    names = [name.removeprefix("event: ") for name, _ in blocks]
    events = [json.loads(data.removeprefix("data: ")) for _, data in blocks]
    assert names == [event["type"] for event in events]
    assert names == [
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta", "message_stop"),
    ]
    assert json.loads(events[2]["delta"]["partial_json"])["command"] == "ls"
    assert events[4]["usage"]["output_tokens"] == 6
    assert server.totals() == {"input": 5, "output": 6, "cache_read": 7, "cache_write": 8}


def test_a_newer_script_takes_over_and_a_file_that_holds_one_does_not(server: ModelServer) -> None:
    old, new = user(model_script("- say: old")), user(model_script("- say: new"))
    first = ask(server, old)
    assert words(ask(server, old, assistant(first), new)) == "new"
    seen = result(model_script("- say: read from a file"))
    assert words(ask(server, old, assistant(first), seen, user("go on"))) == NOTHING_LEFT


def test_it_waits_for_mail_and_each_message_counts_once(server: ModelServer) -> None:
    script = (
        "- until: {mail_from: human}\n- run: echo {mail.body}\n- until: {mail_from: human}\n- say: '{mail.subject}'"
    )
    begun = user(model_script(script))
    first = ask(server, begun)
    assert words(first) == WAITING
    other = ask(server, begun, assistant(first), user(mail("bee", "not you")))
    assert words(other) == WAITING
    history = [begun, assistant(first), user(mail("bee", "not you")), assistant(other), user(mail("human", "yes"))]
    third = ask(server, *history)
    assert calls(third)[0][1]["command"] == "echo yes"
    fourth = ask(server, *history, assistant(third), result())
    assert words(fourth) == WAITING
    assert words(ask(server, *history, assistant(third), result(), assistant(fourth), user(mail("human", "x")))) == (
        'a "subject"'
    )


def test_several_messages_in_one_prompt_are_told_apart(server: ModelServer) -> None:
    script = "- until: {mail_type: worker_done}\n- run: echo {mail.from}\n- until: {mail_type: worker_died}\n- say: all"
    begun = user(model_script(script))
    letters = [letter("ann", "one\n\ntwo", "worker_done"), letter("ben", "```\nx", "worker_died")]
    both = user(f"{render(letters, 0)}\nYou have mail.")
    answer = ask(server, begun, assistant(ask(server, begun)), both)
    assert calls(answer)[0][1]["command"] == "echo ann"
    assert words(ask(server, begun, assistant(ask(server, begun)), both, assistant(answer), result())) == "all"


def test_names_are_filled_in_and_cannot_leave_their_word(server: ModelServer) -> None:
    facts = "- agent: `ada` (builder, depth 1)\n- worktree: `/w/ada`\nYou answer to `queen`."
    script = model_script("- reply: \"{agent} to {parent}: {mail.body}\"\n- edit: {path: a.txt, text: '{role}'}")
    begun = user(f"{facts}\n{script}\n{mail('human', '$(rm -rf /) `x` ' + chr(39) + '; ls')}")
    first = ask(server, begun)
    command = calls(first)[0][1]["command"]
    assert command.endswith("""--body 'ada to queen: $(rm -rf /) `x` '"'"'; ls'""")
    assert "reply msg_01ARZ3NDEKTSV4RRFFQ69G5FAV " in command
    second = ask(server, begun, assistant(first), result())
    assert calls(second) == [("Write", {"file_path": "/w/ada/a.txt", "content": "builder"})]


def test_errors_for_ever_or_so_many_times(server: ModelServer) -> None:
    always = user(model_script("- error: 529\n  message: too much"))
    for _ in range(3):
        refused = ask(server, always)
        assert (refused["status"], refused["error"]) == (529, {"type": "overloaded_error", "message": "too much"})
    twice = user(model_script("- error: 500\n  times: 2\n- say: fine"))
    assert [ask(server, twice)["status"] for _ in range(3)] == [500, 500, 200]
    other = ask(server, twice, metadata={"user_id": "another conversation"})
    assert other["status"] == 500


def test_a_script_that_ends_badly_does_so_once(server: ModelServer) -> None:
    begun = user(model_script("- crash: 3\n- fail: no more\n- say: here again"))
    answers = [ask(server, begun) for _ in range(3)]
    assert [answer["error"]["message"] for answer in answers[:2]] == ["crash 3", "no more"]
    assert words(answers[2]) == "here again"


def test_what_a_program_puts_in_for_an_answer_that_never_came_is_no_step(server: ModelServer) -> None:
    begun = user(model_script("- run: ls\n- say: bye"))
    filler = {"role": "assistant", "content": [{"type": "text", "text": "No response requested."}]}
    assert calls(ask(server, begun, filler, user("go on")))


def test_a_request_beside_the_conversation_gets_a_plain_answer(server: ModelServer) -> None:
    beside = ask(server, user(model_script("- run: ls")), tools=[])
    assert (words(beside), beside["stop_reason"]) == ("ok", "end_turn")
    assert words(ask(server, user("hello"))) == NOTHING_LEFT
    assert (
        json.loads(post(server, {"messages": [user("x" * 400)]}, "/v1/messages/count_tokens")[1])["input_tokens"] > 90
    )


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b'{"messages":[]}', b'{"messages":[7]}', b'{"messages":[{"role":"user"}]}'),
        *(b'{"messages":[{"role":"king","content":"x"}]}', b"[" * 100_000, b"\xff\xfe"),
    ],
    ids=lambda body: body[:30].decode("latin1"),
)
def test_bad_input_is_refused_and_the_next_is_served(server: ModelServer, body: bytes) -> None:
    status, answer = post(server, body)
    assert (status, json.loads(answer)["error"]["type"]) == (400, "invalid_request_error")
    assert words(ask(server, user("hello"))) == NOTHING_LEFT


def test_keys_paths_and_a_check_whether_the_server_answers(server: ModelServer) -> None:
    assert post(server, {"messages": [user("x")]}, headers={})[0] == 401
    assert post(server, {"messages": [user("x")]}, "/v1/nothing")[0] == 404
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=20)
    connection.request("HEAD", "/")
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("{", "no YAML"),
        ("say: x", "no list"),
        ("- dance: 1", "no step `dance`"),
        ("- tool: Bash\n  input: 7", "a tool is written"),
        ("- edit: {text: x}", "`path` is missing"),
        ("- stubborn: true", "a model cannot do"),
    ],
)
def test_a_script_that_is_wrong_is_refused(server: ModelServer, script: str, complaint: str) -> None:
    with pytest.raises(BadScript, match=complaint):
        compile_script(script, {})
    refused = ask(server, user(model_script(script)))
    assert refused["status"] == 400
    assert complaint in refused["error"]["message"]


def test_many_at_once_and_an_end_that_waits_for_no_answer(server: ModelServer) -> None:
    begun = [user(model_script(f"- say: number {number}")) for number in range(40)]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda message: words(ask(server, message)), begun))
    assert answers == [f"number {number}" for number in range(40)]
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(ask, server, user(model_script("- slow: 60\n- say: late")))
        while not any(request.answer.slow for request in server.served):
            time.sleep(0.005)
        server.stopping.set()
        assert words(slow.result(20)) == "late"
