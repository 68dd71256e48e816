"""What text may enter the state: anything that comes back as it went in."""

from __future__ import annotations

import re

from rookery.base.errors import InvalidInput

MAX_TITLE = 1_000
MAX_NAME = 48
MAX_BODY = 16 * 1024 * 1024
_LONGEST_LINE = 400
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def is_placeholder(text: str) -> bool:
    """True for the … of a command that was typed as it was shown."""
    return text.strip() in ("…", "...")


def check_text(name: str, text: str, *, limit: int = MAX_BODY) -> str:
    """The text itself, if it can be stored and given back exactly."""
    if "\0" in text:
        raise InvalidInput(f"{name} holds a NUL byte", hint="remove it; text cannot hold NUL bytes")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{name} is not valid UTF-8", hint="send text as UTF-8") from error
    if size > limit:
        raise InvalidInput(f"{name} has {size:,} bytes", hint=f"at most {limit:,} are kept")
    return text


def check_name(kind: str, name: str) -> str:
    """The name itself, if `kind` ("an agent") can have it: it becomes part of branch, folder and tmux names."""
    bare = name.replace("-", "").replace("_", "")
    if not (bare.isascii() and bare.isalnum() and name[0].isalnum() and len(name) <= MAX_NAME):
        raise InvalidInput(
            f"{name!r} is not a valid name for {kind}", hint=f"letters, digits, - and _, at most {MAX_NAME}"
        )
    return name


def check_title(text: str) -> str:
    """A title is text with something to see in it."""
    if not text.strip():
        raise InvalidInput("the title is empty", hint="say in a few words what has to be done")
    return check_text("the title", text, limit=MAX_TITLE * 4)


def visible(text: str) -> str:
    """The text with everything shown that a terminal would obey or hide: escapes, bidi overrides, invisible letters.

    Line feeds and tabs stay.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(char if _is_plain(char) else ascii(char)[1:-1] for char in text)


def end_of_output(output: str, count: int) -> str:
    """The last lines of what a program printed, for people: nothing that a terminal would obey.

    Of a line that was written over, only the last text is kept; long ones are cut.
    """
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in _ESCAPES.sub("", output).rstrip().split("\n")[-count:]]
    cut = (line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…" for line in lines)
    return visible("\n".join(cut)).strip("\n")


def _is_plain(char: str) -> bool:
    # Variation selectors beyond this point are printable, invisible, and can carry any bytes.
    return char in "\n\t" or (char.isprintable() and char < "\U000e0000")


def as_utf8(text: str) -> str:
    """The text, with bytes that are not UTF-8 written out: a file's name may hold some, and no state or JSON can."""
    return text.encode("utf-8", "backslashreplace").decode()


def one_line(text: str, width: int = 0) -> str:
    """The text on one line for people: white space folded, control characters shown, cut at `width`."""
    folded = " ".join(text.split())
    shown = visible(folded)
    return shown if not width or len(shown) <= width else shown[: width - 1] + "…"


def columns_of(text: str) -> int:
    """How many columns the text takes in a terminal: wide characters take two, marks that join others none."""
    if text.isascii():
        return len(text)
    import unicodedata  # 1 MB that most texts do without

    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.category(char) in ("Mn", "Me", "Cf") for char in text)


def plural(count: int, noun: str, many: str = "") -> str:
    """`1 task`, `2 tasks`; `many` is for nouns that take no s."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def in_words(state: str) -> str:
    """A state as people read it: `IN_PROGRESS` is `in progress`."""
    return state.lower().replace("_", " ")
