"""Draws the README's picture from a real terminal: `python -m dev.picture docs/images/tree.svg`."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from dev.demo import Stage, prepare

_WIDTH = 104


def main() -> None:
    """Play the first half of the demo, and draw what a person sees at its end."""
    stage = Stage(fast=True)
    try:
        epic = prepare(stage)
        shown = [("rook task tree", ["task", "tree"]), (f"rook task progress {epic[:14]}…", ["task", "progress", epic])]
        console = Console(record=True, width=_WIDTH, file=io.StringIO(), color_system="truecolor")
        for title, words in shown:
            console.print(Text("$ " + title, style="bold"))
            console.print(Text.from_ansi(_on_a_terminal(stage, words)))
        # Rich links a font from elsewhere; a picture in a repository should need nothing but itself.
        drawn = re.sub(r"@font-face {.*?}\s*", "", console.export_svg(title="rook"), flags=re.DOTALL)
        Path(sys.argv[1]).write_text(drawn)
    finally:
        stage.remove()


def _on_a_terminal(stage: Stage, words: list[str]) -> str:
    reader, writer = pty.openpty()
    pid = os.fork()
    if pid == 0:
        os.chdir(stage.repo)
        for stream in (0, 1, 2):
            os.dup2(writer, stream)
        environ = os.environ | {"COLUMNS": str(_WIDTH), "TERM": "xterm-256color"}
        os.execve(stage.rook_program, ["rook", *words], environ)
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
