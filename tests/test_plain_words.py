"""The code, its texts and the documentation use the words of the trade. This test lists the ones to avoid."""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

NAMES = {"found", "told", "said", "given", "made", "each"}
"""Names that say how a value was come by, not what it is. The decorator `given` of Hypothesis is allowed."""

WORDS = {
    r"whoever|whomever|somebody|(?<!-u )nobody|everybody|anybody": "the caller, an agent, no process, ...",
    r"(?<![`\"])(?<!write: )(?<!own, )beneath(?![`\"])": "under, below",
    r"anew": "again",
    r"mend|mends|mended|mending": "fix, repair",
    r"doings": "telemetry, tool calls",
    r"last words": "the last lines of its output",
    r"life|lives": "session; runs, is kept in",
    r"thereby|therein|whence|hence|whereby|thereof": "so, in it, from which",
    r"(?:take|takes|taken|took|taking) (?:it |them |that |this )?back": "undo, revert",
    r"(?:take|takes|taken|took|taking) (?:it |them |that |this )?up again": "resume, reopen",
    r"in (?:its|the|their|his) way": "the file that blocks it",
    r"meet|meets|meeting": "overlap with, conflict with, reach",
    r"is to be|are to be|was to be|were to be": "must be, will be, has to be",
}
"""Words of our old dialect, and what to write instead."""

_HYPOTHESIS = re.compile(r"from hypothesis import|\s*@given\b")
_WORD = re.compile("|".join(rf"(?P<w{n}>\b(?:{word})\b)" for n, word in enumerate(WORDS)), re.IGNORECASE)


def complaints(path: Path) -> Iterator[str]:
    """Every word of the old dialect in a file, with its line."""
    text = path.read_text()
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and token.string in NAMES and not _HYPOTHESIS.match(token.line):
                yield f"{path}:{token.start[0]}: the name `{token.string}`: say what it is"
    for number, line in enumerate(text.splitlines(), 1):
        for match in _WORD.finditer(line):
            if match[0].isupper():
                continue  # a constant: what it holds is a word of a file format
            index = next(n for n in range(len(WORDS)) if match[f"w{n}"])
            yield f"{path}:{number}: {match[0]!r}: {list(WORDS.values())[index]}"


def _files(*folders: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in ((ROOT / folder).rglob("*") if (ROOT / folder).is_dir() else [ROOT / folder])
        if path.suffix in (".py", ".md") and path != Path(__file__).resolve()  # which lists the words
    )


@pytest.mark.parametrize("folder", ["src", "docs", "README.md", "CONTRIBUTING.md", "tests", "dev", "bench"])
def test_only_words_of_the_trade(folder: str) -> None:
    assert [complaint for path in _files(folder) for complaint in complaints(path)] == []


if __name__ == "__main__":  # python tests/test_plain_words.py src/rookery/mail
    for path in _files(*sys.argv[1:]):
        for complaint in complaints(path):
            print(complaint)
