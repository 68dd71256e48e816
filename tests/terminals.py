"""A command with a terminal of its own, which a test types into and reads from."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from support import child_environ, rook_argv, wait_until


class Terminal:
    """`rook` with a terminal as all its streams."""

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        self._file, theirs = pty.openpty()
        whole = child_environ({"TERM": "xterm-256color", "COLUMNS": "80", **env})
        self.program = subprocess.Popen(
            rook_argv(*words), cwd=folder, env=whole, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self._shown = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):
            while chunk := os.read(self._file, 65536):
                self._shown += chunk

    @property
    def shown(self) -> str:
        """What was shown, without colours."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._shown.decode(errors="replace")).replace("\r", "")

    def wait_for_question(self, number: int = 1, question: str = "Undo all this? [y/N]: ") -> None:
        wait_until(lambda: self.shown.count(question) == number, 60)

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def end(self) -> int:
        status = self.program.wait(60)
        self._reader.join(20)
        os.close(self._file)
        return status
