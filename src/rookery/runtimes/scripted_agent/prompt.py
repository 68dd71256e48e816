"""The prompt in a terminal: typed or pasted text in, one whole prompt out."""

from __future__ import annotations

import sys

from rookery.runtimes.scripted import PROMPT

_SETTINGS = ("editing-mode emacs", "enable-bracketed-paste on", "echo-control-characters off")
_CLEAR = "\r\x1b[2K"


def read_prompt() -> str | None:
    """The next prompt; None when nothing more will come. An interrupt only clears what was typed."""
    import readline  # not for headless turns: it puts COLUMNS and LINES into the environment of what we start

    for setting in _SETTINGS:  # whatever the user's own say: a paste of many lines is one prompt
        readline.parse_and_bind(f"set {setting}")
    text = ""
    while not text.strip():
        try:
            text = input(f"{PROMPT} ")
        except KeyboardInterrupt:
            sys.stdout.write(_CLEAR)
        except EOFError:
            return None
    return text
