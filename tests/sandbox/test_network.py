"""What a sandboxed agent reaches: everything, nothing, or what is listed. Servers are on loopback alone."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rookery.base.errors import InvalidInput
from rookery.sandbox.proxy import NotAllowed, find_address, is_public, read_rule, split_address
from sandbox.cell import Cell, needs_bubblewrap

_FETCH = """
import sys, urllib.request, urllib.error
for url in sys.argv[1:]:
    try:
        print(url, urllib.request.urlopen(url, timeout=5).read().decode().strip())
    except urllib.error.HTTPError as error:
        print(url, error.code, error.read().decode().strip())
    except OSError as error:
        print(url, "unreachable")
"""
_CONNECT = """
import socket, sys
line = socket.create_connection(("127.0.0.1", 3128), 5)
line.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode())
print(line.recv(1000).split(b"\\r\\n")[0].decode())
line.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
print(line.makefile().read())
"""


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"hello {self.path} {self.headers.get('Connection')} {self.headers.get('Proxy-Authorization')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Two servers on this machine."""
    servers = [HTTPServer(("127.0.0.1", 0), _Hello) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield (servers[0].server_port, servers[1].server_port)
    for server in servers:
        server.shutdown()
        server.server_close()


def fetch(cell: Cell, *urls: str) -> list[str]:
    steps = [{"edit": {"path": "fetch.py", "text": _FETCH}}, f"python3 fetch.py {' '.join(urls)}"]
    return cell.run(*steps)[0].splitlines()


@pytest.mark.slow
@needs_bubblewrap
def test_open_reaches_everything(repo: Path, ports: tuple[int, int]) -> None:
    url = f"http://127.0.0.1:{ports[0]}/a"
    assert fetch(Cell(repo), url) == [f"{url} hello /a close None"]


@pytest.mark.slow
@needs_bubblewrap
def test_off_reaches_nothing(repo: Path, ports: tuple[int, int]) -> None:
    url = f"http://127.0.0.1:{ports[0]}/"
    cell = Cell(repo, network="off")
    assert fetch(cell, url) == [f"{url} unreachable"]
    assert cell.mail(type="worker_done")


@pytest.mark.slow
@needs_bubblewrap
def test_allow_reaches_what_is_listed(repo: Path, ports: tuple[int, int]) -> None:
    """An address that is listed is reached; a listed name that resolves to this machine is refused."""
    listed, other = ports
    cell = Cell(repo, network="allow", allow=[f"127.0.0.1:{listed}", f"localhost:{listed}"])
    urls = [f"http://127.0.0.1:{listed}/a?b", f"http://127.0.0.1:{other}/", f"http://localhost:{listed}/"]
    steps = [
        {"edit": {"path": "fetch.py", "text": _FETCH}},
        {"edit": {"path": "connect.py", "text": _CONNECT}},
        f"python3 fetch.py {' '.join(urls)}",
        f"env -i python3 fetch.py {urls[0]}",
        f"python3 connect.py 127.0.0.1:{listed}",
        f"python3 connect.py 127.0.0.1:{other}",
        "env | grep -ci _proxy=",
    ]
    outputs = cell.run(*steps)
    assert outputs[0].splitlines() == [
        f"{urls[0]} hello /a?b close None",
        f"{urls[1]} 403 rook: 127.0.0.1:{other} is not in sandbox.allow",
        f"{urls[2]} 403 rook: localhost leads to {_loopback()}, which is not in the open network",
    ]
    assert outputs[1] == f"{urls[0]} unreachable\n"
    assert outputs[2].startswith("HTTP/1.1 200 Connection established\n")
    assert "hello / None None" in outputs[2]
    assert outputs[3].startswith("HTTP/1.1 403 Forbidden\n")
    assert outputs[4] == "8\n"
    log = (cell.session_folder("bee") / "sandbox.log").read_text()
    assert f"refused: 127.0.0.1:{other} is not in sandbox.allow" in log


def _loopback() -> str:
    import socket

    return ", ".join(
        sorted({str(address[4][0]) for address in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)})
    )


@pytest.mark.parametrize(
    ("rule", "host", "port", "fits"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "example.org", 80, True),
        ("example.org", "example.org", 22, False),
        ("example.org", "a.example.org", 443, False),
        ("example.org", "example.org.evil.net", 443, False),
        ("Example.ORG.", "example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("*.example.org:8443", "a.example.org", 8443, True),
        ("*.example.org:8443", "a.example.org", 443, False),
        ("[::1]:80", "::1", 80, True),
        ("::1", "0:0::1", 80, False),
    ],
)
def test_rules(rule: str, host: str, port: int, fits: bool) -> None:
    assert read_rule(rule).fits(host, port) is fits


@pytest.mark.parametrize("text", ["", "*", "*.", "a*b.org", "example.org:0", "example.org:99999", "http://x/", "a b"])
def test_a_rule_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_rule(text)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        *(
            (address, False)
            for address in ("127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1")
        ),
        *(
            (address, False)
            for address in ("::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "224.0.0.1")
        ),
        *((address, False) for address in ("64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1", "::")),
    ],
)
def test_addresses_of_the_machine_and_its_own_network_are_not_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


def test_an_address_is_spelled_in_one_way() -> None:
    rules = [read_rule("[::1]:80")]
    assert str(find_address(rules, "0:0:0:0:0:0:0:1", 80)) == "::1"
    for host in ("127.1", "0x7f.1", "2130706433"):
        with pytest.raises(NotAllowed):
            find_address([read_rule("127.0.0.1:80")], host, 80)
    assert split_address("[::1]:8080", 1) == ("::1", 8080)
