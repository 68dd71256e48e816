"""Outside the sandbox: lets an agent without a network reach the hosts that the configuration lists, and no others.

It is an HTTP proxy: it takes CONNECT, and plain requests with a whole address. It looks a name up once, and refuses one
that leads to this machine or its own network. An address there can be reached only if the list has the address itself.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rookery.base.clock import stamp
from rookery.base.errors import InvalidInput, Refused
from rookery.base.record import Record
from rookery.config.environ import now
from rookery.sandbox.relay import pump

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_WEB = (80, 443)
_MOST = 256
_LONGEST_HEAD = 65536
_SECONDS = 30.0
_CHUNK = 65536
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class NotAllowed(Refused):
    """A host that is not on the list, or that leads into our own network."""

    code = "host_not_allowed"


@dataclass(frozen=True, slots=True)
class Rule(Record):
    """A host, or all of its subdomains, and a port; without one those of the web."""

    host: str
    port: int | None
    has_subdomains: bool = False

    def fits(self, host: str, port: int) -> bool:
        """True if the rule lets this through."""
        if port not in ((self.port,) if self.port else _WEB):
            return False
        return host.endswith("." + self.host) if self.has_subdomains else host == self.host


def read_rule(text: str) -> Rule:
    """`example.org`, `*.example.org:8443`, `10.0.0.5:5432`, `[::1]:80`."""
    host, port = split_address(text.strip().lower(), None)
    has_subdomains = host.startswith("*.")
    name = host.removeprefix("*.").rstrip(".")
    if not name or "*" in name or "/" in name or " " in name:
        raise InvalidInput(f"{text!r} is not a host", hint="such as example.org or *.example.org:8443")
    return Rule(_plain(name), port, has_subdomains)


def split_address(text: str, default: int | None) -> tuple[str, int | None]:
    """Host and port of `host:port`, `[v6]:port`, or either without a port."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        host, port = text, ""
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise InvalidInput(f"{text!r} names no port", hint="a number from 1 to 65535")
    return host, int(port) if port else default


def find_address(rules: Sequence[Rule], host: str, port: int) -> Address:
    """The address to connect to; raises NotAllowed. A name is looked up only if the name itself is allowed."""
    name = _plain(host.lower().rstrip("."))
    if not any(rule.fits(name, port) for rule in rules):
        raise NotAllowed(f"{name}:{port} is not in sandbox.allow")
    if (literal := _address(name)) is not None:
        return literal
    try:
        answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotAllowed(f"{name} has no address") from error
    texts = sorted({str(answer[4][0]).partition("%")[0] for answer in answers})
    addresses = [ipaddress.ip_address(text) for text in texts]
    if not all(is_public(address) for address in addresses):
        raise NotAllowed(f"{name} leads to {', '.join(texts)}, which is not in the open network")
    return addresses[0]


def is_public(address: Address) -> bool:
    """True if it lies in the open network, and so do the addresses that it wraps."""
    return all(inner.is_global and not inner.is_multicast for inner in (address, *_wrapped(address)))


def _wrapped(address: Address) -> Iterator[Address]:
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        for inner in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())):
            if inner is not None:
                yield inner


class Proxy:
    """Listens on a socket, with a thread for every connection. Refusals are written to a log."""

    def __init__(self, path: str, allow: Sequence[str], log: str) -> None:
        self._rules = tuple(read_rule(text) for text in allow)
        self._log = log
        self._room = threading.BoundedSemaphore(_MOST)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(_MOST)

    def start(self) -> None:
        """Begin to listen."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            line, _ = self._listener.accept()
            if self._room.acquire(blocking=False):
                threading.Thread(target=self._serve, args=(line,), daemon=True).start()
            else:
                line.close()

    def _serve(self, line: socket.socket) -> None:
        try:
            with line, suppress(OSError):
                line.settimeout(_SECONDS)
                try:
                    self._forward(line, *_read_head(line))
                except Refused as error:
                    self._note(error.message)
                    _refuse(line, error.message)
        finally:
            self._room.release()

    def _forward(self, line: socket.socket, head: bytes, rest: bytes) -> None:
        first, _, headers = head.partition(b"\r\n")
        words = first.decode("latin-1").split(" ")
        if len(words) != 3:
            raise InvalidInput("that is no request to a proxy")
        method, target, version = words
        if method == "CONNECT":
            host, port = split_address(target, 443)
            begin, answer = rest, b"HTTP/1.1 200 Connection established\r\n\r\n"
        else:
            host, port, path = _split_url(target)
            begin = f"{method} {path} {version}\r\n".encode("latin-1") + _rewrite(headers) + b"\r\n\r\n" + rest
            answer = b""
        with self._connect(host, port or 80) as far:
            line.settimeout(None)
            far.settimeout(None)
            line.sendall(answer)
            far.sendall(begin)
            pump(line, far)

    def _connect(self, host: str, port: int) -> socket.socket:
        address = find_address(self._rules, host, port)
        try:
            return socket.create_connection((str(address), port), _SECONDS)
        except OSError as error:
            raise NotAllowed(f"{host}:{port} does not answer: {error.strerror or error}") from error

    def _note(self, message: str) -> None:
        with suppress(OSError), open(self._log, "a", encoding="utf-8") as file:
            file.write(f"{stamp(now())}  refused: {message}\n")


def _read_head(line: socket.socket) -> tuple[bytes, bytes]:
    """The head of a request, without its empty line, and what has come after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = line.recv(_CHUNK)
        if not chunk or len(data) > _LONGEST_HEAD:
            raise InvalidInput("that is no request to a proxy")
        data += chunk
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _split_url(url: str) -> tuple[str, int | None, str]:
    if not url.startswith("http://"):
        raise InvalidInput(f"{url[:100]!r} is no address for a proxy")
    place, slash, path = url.removeprefix("http://").partition("/")
    host, port = split_address(place.rpartition("@")[2], 80)
    return host, port, slash + path or "/"


def _rewrite(headers: bytes) -> bytes:
    """The headers for the server. One request a connection: the next may be for another server."""
    unwanted = (b"proxy-", b"connection:")
    passed = [header for header in headers.split(b"\r\n") if not header.lower().startswith(unwanted)]
    return b"\r\n".join([*passed, b"Connection: close"])


def _refuse(line: socket.socket, message: str) -> None:
    body = f"rook: {message}\n".encode()
    head = f"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    line.sendall(head.encode() + b"\r\n" + body)


def _plain(host: str) -> str:
    """An address in its one usual spelling; a name as it is."""
    return str(_address(host) or host)


def _address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
