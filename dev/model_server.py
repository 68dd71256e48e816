"""A scripted fake of the Messages API on loopback: real agent programs run against it without a key or a network.

`./rook-dev model-server [--port N]` prints what to export and logs a line for each request; tests use `ModelServer`.
What it answers is written in the conversation itself: see `dev/model_script.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

from dev.model_script import BUILT_IN, Answer, BadScript, Place, read_place

TOKEN = "scripted-model"
_LARGEST = 64_000_000
_STREAM = "text/event-stream"
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Served(NamedTuple):
    """A request and what became of it."""

    path: str
    status: int
    agent: str
    model: str
    step: int
    steps: int
    answer: Answer
    request: Mapping[str, Any]


class ModelServer:
    """The server, in threads of its own, from entering to leaving."""

    def __init__(self, port: int = 0, log: Callable[[str], None] | None = None, *, built_in: str | None = None) -> None:
        self._built_in = built_in
        self.served: list[Served] = []
        """Every request for an answer, in the order of their answers."""
        self.stopping = threading.Event()
        self._errors: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._log = log
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), name="model", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def environ(self) -> dict[str, str]:
        """What a program needs to talk to this server, and to no other."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_AUTH_TOKEN": TOKEN,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def answer(self, path: str, request: Mapping[str, Any]) -> Place:
        """Decide what to answer, and keep it; raises Refusal."""
        session = str(request.get("metadata", ""))
        try:
            with self._lock:
                place = read_place(request, lambda label: self._errors[f"{session} {label}"], self._built_in)
                if place.answer.error:
                    self._errors[f"{session} {place.answer.label}"] += 1
        except BadScript as error:
            raise Refusal(400, str(error)) from error
        self.keep(path, place.answer.error or 200, request, place)
        if place.answer.error:
            raise Refusal(place.answer.error, place.answer.text)
        return place

    def keep(self, path: str, status: int, request: Mapping[str, Any], place: Place) -> None:
        """Write down a request, once."""
        model = str(request.get("model", ""))
        served = Served(path, status, place.agent, model, place.step, place.steps, place.answer, request)
        self.served.append(served)
        self.log(describe(served))

    def log(self, line: str) -> None:
        """Pass a line to the server's log function, if it has one."""
        if self._log is not None:
            self._log(line)

    def totals(self) -> dict[str, int]:
        """The tokens of all answers that were given."""
        sums: Counter[str] = Counter()
        for request in self.served:
            if request.status == 200:
                sums.update(request.answer.usage)
        return dict(sums)

    def run(self) -> None:
        """Serve until the process is interrupted."""
        self._http.serve_forever()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)


def describe(served: Served) -> str:
    """A request on one line."""
    answer = served.answer
    gist = ", ".join(call.tool for call in answer.calls) or repr(answer.text[:60])
    where = f"{served.step}/{served.steps}" if served.steps else "-"
    return f"{served.status} {served.agent or '-'} {served.model} {where} {gist}"


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    block_on_close = False
    owner: ModelServer

    def handle_error(self, request: object, client_address: object) -> None:
        """A program that was killed has hung up: that is its business."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            self.owner.log(f"failed: {error!r}")


class _Handler(BaseHTTPRequestHandler):
    """One connection. An answer is one write: two small ones would wait for each other's acknowledgement."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 600

    @property
    def owner(self) -> ModelServer:
        """The server that this belongs to."""
        return cast(_Http, self.server).owner

    def do_HEAD(self) -> None:
        """Programs check whether the server answers."""
        self._send(200, b"", "text/plain")

    def do_GET(self) -> None:
        """There is nothing to get."""
        self._refuse(Refusal(404, f"there is no {self.path}"))

    def do_POST(self) -> None:
        """An answer, streamed or whole."""
        try:
            request = self._read()
            path = self.path.partition("?")[0]
            if path == "/v1/messages/count_tokens":
                self._send_json(200, {"input_tokens": max(1, len(json.dumps(request)) // 4)})
            elif path == "/v1/messages":
                self._answer(path, request)
            else:
                raise Refusal(404, f"there is no {path}")  # noqa: TRY301
        except Refusal as refusal:
            self._refuse(refusal)
        except ConnectionError:
            raise
        except Exception as error:
            self.owner.log(f"failed: {error!r}")
            self._refuse(Refusal(500, repr(error)))

    def _read(self) -> dict[str, Any]:
        try:
            length = int(self.headers.get("content-length", ""))
        except ValueError:
            self.close_connection = True
            raise Refusal(400, "content-length is missing") from None
        if not 0 <= length <= _LARGEST:
            self.close_connection = True
            raise Refusal(413, "the request is too large")
        body = self.rfile.read(length)
        if not (self.headers.get("x-api-key") or self.headers.get("authorization")):
            raise Refusal(401, "no key was given")
        try:
            request = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, f"the request is no JSON: {error}") from error
        problem = _problem(request)
        if problem:
            raise Refusal(400, problem)
        return cast(dict[str, Any], request)

    def _answer(self, path: str, request: dict[str, Any]) -> None:
        place = self.owner.answer(path, request)
        answer, message = place.answer, _message(place.answer, str(request.get("model", "")))
        if not request.get("stream"):
            self.owner.stopping.wait(answer.slow)
            self._send_json(200, message)
            return
        first, *rest = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in _events(message))
        if answer.slow:
            self._send_slowly([first, b"".join(rest)], answer.slow)
        else:
            self._send(200, b"".join([first, *rest]), _STREAM)

    def _send_slowly(self, parts: list[bytes], seconds: float) -> None:
        """Each part as a chunk, with a pause before the next. The connection stays: programs use one again at once."""
        self.send_response(200)
        self.send_header("content-type", _STREAM)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, part in enumerate(parts):
            if number:
                self.wfile.flush()
                self.owner.stopping.wait(seconds)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, refusal: Refusal) -> None:
        kind = _ERRORS.get(refusal.status, "api_error")
        self._send_json(refusal.status, {"type": "error", "error": {"type": kind, "message": refusal.message}})

    def _send_json(self, status: int, body: object) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("request-id", f"req_{uuid.uuid4().hex}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The server's own log tells more."""


def _problem(request: object) -> str:
    """What is wrong with a request, in words."""
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list) or not request["messages"]:
        return "messages: a list of at least one is wanted"
    for number, message in enumerate(request["messages"]):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
            return f"messages.{number}.role: user or assistant is wanted"
        if not isinstance(message.get("content"), str | list):
            return f"messages.{number}.content: a text or a list of blocks is wanted"
    return ""


def _message(answer: Answer, model: str) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if answer.text or not answer.calls:
        blocks.append({"type": "text", "text": answer.text})
    blocks += [
        {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": call.tool, "input": call.input}
        for call in answer.calls
    ]
    usage = {
        "input_tokens": answer.usage["input"],
        "output_tokens": answer.usage["output"],
        "cache_read_input_tokens": answer.usage["cache_read"],
        "cache_creation_input_tokens": answer.usage["cache_write"],
    }
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The message as it is streamed."""
    usage = message["usage"]
    opening = message | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield {"type": "message_start", "message": opening}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="rook-dev model-server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="where to listen on 127.0.0.1; any free one by default")
    options = parser.parse_args()
    server = ModelServer(
        options.port, lambda line: print(time.strftime("%H:%M:%S"), line, flush=True), built_in=BUILT_IN
    )
    for name, value in server.environ.items():
        print(f"export {name}={value}")
    print("# Ctrl-C ends it", flush=True)
    try:
        server.run()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
