"""Draws the README's picture from a real terminal: `python -m dev.picture docs/images/status.svg`."""

from __future__ import annotations

import html
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

_WIDTH = 118
_ROOK = str(Path(sys.executable).with_name("rook"))
_SECONDS = 60
_SPACED = re.compile(r'(<text [^>]*?x=")([\d.]+)(" [^>]*?textLength=")([\d.]+)("[^>]*>)([^<]*)</text>')


def main() -> None:
    """Play the first minutes of a first day, and draw what the person sees."""
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder, "shop")
        _rook(Path(folder), "demo", "--practice", str(shop))
        try:
            _wait_for_the_builders(shop)
            console = Console(record=True, width=_WIDTH, file=io.StringIO(), color_system="truecolor")
            for words in (["status"], ["inbox"]):
                console.print(Text(f"$ rook {' '.join(words)}", style="bold"))
                console.print(Text.from_ansi(_on_a_terminal(shop, words)))
        finally:
            _rook(shop, "deinit", "--yes", "--force")
    # Rich links a font from elsewhere; a picture in a repository should need nothing but itself.
    drawn = re.sub(r"@font-face {.*?}\s*", "", console.export_svg(title="rook"), flags=re.DOTALL)
    Path(sys.argv[1]).write_text(_SPACED.sub(_without_spaces, drawn))


def _without_spaces(element: re.Match[str]) -> str:
    """A text that begins at its first letter: not every program that draws pictures keeps spaces."""
    start, x, middle, length, end, escaped = element.groups()
    text = html.unescape(escaped)
    plain = text.strip("\xa0")
    if not plain:
        return ""
    cell = float(length) / len(text)
    left = float(x) + cell * (len(text) - len(text.lstrip("\xa0")))
    return f"{start}{left:g}{middle}{cell * len(plain):g}{end}{html.escape(plain)}</text>"


def _rook(folder: Path, *words: str) -> str:
    return subprocess.run([_ROOK, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def _wait_for_the_builders(shop: Path) -> None:
    """Until three have handed in, one asks, and one has crashed."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        status = json.loads(_rook(shop, "status", "--json"))["data"]
        if len(status["ended"]) == 4 and status["inbox"] == 2:
            return
        time.sleep(0.2)
    raise SystemExit("the builders did not come so far")


def _on_a_terminal(folder: Path, words: list[str]) -> str:
    reader, writer = pty.openpty()
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        for stream in (0, 1, 2):
            os.dup2(writer, stream)
        environ = os.environ | {"COLUMNS": str(_WIDTH), "TERM": "xterm-256color"}
        os.execve(_ROOK, ["rook", *words], environ)
    os.close(writer)
    output = b""
    try:
        while chunk := os.read(reader, 65536):
            output += chunk
    except OSError:  # the terminal is gone with its program
        pass
    os.waitpid(pid, 0)
    return output.decode().replace("\r\n", "\n")


if __name__ == "__main__":
    main()
