"""The prompt in a terminal: typed or pasted text in, one whole prompt out."""

from __future__ import annotations

import codecs
import os
import re
import select
import sys
import termios
from types import TracebackType
from typing import Self

from rookery.base.text import one_line
from rookery.runtimes.scripted import PROMPT

_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
_KEY = re.compile(r"\x1b(?:\[[0-9;?]*[@-~]|O.|[^\[O])")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f]+")
_ESCAPE_DELAY = 0.05
_WIDTH = 70


class Prompt:
    """The terminal while the agent runs in it; Ctrl-C stays an interrupt."""

    def __init__(self) -> None:
        self._buffer = ""
        self._text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._before: list[int | list[bytes | int]] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(0)
        raw = termios.tcgetattr(0)
        raw[0] = raw[0] & ~(termios.ICRNL | termios.IXON)
        raw[3] = raw[3] & ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(0, termios.TCSADRAIN, raw)
        self._write(_PASTE_ON)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write(_PASTE_OFF)
        termios.tcsetattr(0, termios.TCSADRAIN, self._before)

    def read(self) -> str | None:
        """The next prompt; None when nothing more will come. An interrupt only clears what was typed."""
        self._text = ""
        while True:
            self._write(f"\r\x1b[2K{PROMPT} {self._summary()}")
            try:
                is_done = self._take() if self._buffer else self._fill()
            except KeyboardInterrupt:
                self._text = self._buffer = ""
                continue
            if is_done:
                self._write("\r\n")
                return self._text or None

    def _fill(self) -> bool:
        """Read what is there; True at the end of the input."""
        try:
            chunk = os.read(0, 65536)
        except OSError:  # the terminal is gone
            chunk = b""
        self._buffer += self._decoder.decode(chunk)
        return not chunk

    def _take(self) -> bool:
        """Take one key, one paste or a run of plain text from the buffer; True if the prompt is complete."""
        first = self._buffer[0]
        if first == "\x1b":
            self._take_escape()
            return False
        plain = _PLAIN.match(self._buffer)
        self._buffer = self._buffer[plain.end() if plain else 1 :]
        if plain is not None:
            self._text += plain[0]
        elif first in "\r\n":
            return bool(self._text.strip())
        elif first in "\x7f\x08":
            self._text = self._text[:-1]
        elif first == "\x15":
            self._text = ""
        elif first == "\t":
            self._text += "\t"
        elif first == "\x04" and not self._text:
            self._buffer = ""
            return True
        return False

    def _take_escape(self) -> None:
        if self._buffer.startswith(_PASTE):
            while _PASTE_END not in self._buffer:
                if self._fill():
                    break
            pasted, _, self._buffer = self._buffer.removeprefix(_PASTE).partition(_PASTE_END)
            self._text += pasted.replace("\r\n", "\n").replace("\r", "\n")
            return
        key = _KEY.match(self._buffer)
        if key is not None:
            self._buffer = self._buffer[key.end() :]
        elif select.select([0], [], [], _ESCAPE_DELAY)[0]:
            self._fill()
        else:
            self._buffer = self._buffer[1:]  # the key itself

    def _summary(self) -> str:
        first, *more = self._text.split("\n")
        return one_line(first, _WIDTH) + (f" [+{len(more)} lines]" if more else "")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
