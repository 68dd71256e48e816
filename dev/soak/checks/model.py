"""What a check finds, and what it looks at."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be."""

    check: str
    text: str


@dataclass(frozen=True, slots=True)
class Looks:
    """The messages that one turn showed, by the agent's own record."""

    ids: set[str] = field(default_factory=set)
    is_noted: bool = False
    """True if the turn's prompt was written down."""
    is_whole: bool = True
    """False if a message that the turn showed may be missing from the record."""

    def lacks(self, message: str) -> bool:
        """True if the turn surely did not show the message."""
        return self.is_noted and self.is_whole and message not in self.ids


@dataclass(frozen=True, slots=True)
class Ledger:
    """What agents wrote down outside the repository."""

    commits: dict[str, str]
    """The agent that made a commit, by the commit."""
    turns: dict[str, Looks]
    tried: set[str]
    """Numbers of messages that an agent began to send."""
    sent: dict[str, list[str]]
    """Ids that an agent was given for a message, by its number."""
    troubles: list[dict[str, Any]]
    """Calls that ended in a way that they never should."""


def read_ledger(folder: Path) -> Ledger:
    """All that was written down; a line that a kill cut short is left out."""
    lines = []
    path = folder / "ledger.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return gather(lines)


def gather(lines: list[dict[str, Any]]) -> Ledger:
    """The ledger that these lines make."""
    commits: dict[str, str] = {}
    ids: dict[str, set[str]] = defaultdict(set)
    noted, folded = set(), set()
    open_looks: set[tuple[str, int]] = set()
    tried, sent, troubles = set(), {}, []
    for line in lines:
        what, turn = line["what"], line.get("turn", "")
        if what == "commit":
            commits |= {commit: line["agent"] for commit in line["commits"] if commit not in commits}
        elif what == "turn":
            noted.add(turn)
            ids[turn].update(line["ids"])
            if line.get("folded"):
                folded.add(turn)
        elif what == "look":
            open_looks.add((turn, line["number"]))
        elif what == "looked":
            open_looks.discard((turn, line["number"]))
            ids[turn].update(line["ids"])
        elif what == "send":
            tried.add(line["nonce"])
        elif what == "sent":
            sent[line["nonce"]] = line["ids"]
        elif what in ("call", "gave_up", "broken"):
            troubles.append(line)
    cut = folded | {turn for turn, _ in open_looks}
    turns = {turn: Looks(ids[turn], turn in noted, turn not in cut) for turn in set(ids) | noted | cut}
    return Ledger(commits, turns, tried, sent, troubles)


def open_snapshot(database: Path) -> sqlite3.Connection:
    """The database as it is at this moment, in memory, while others go on writing."""
    snapshot = sqlite3.connect(":memory:")
    source = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        source.backup(snapshot)
    finally:
        source.close()
    return snapshot


def open_copy(database: Path, folder: Path) -> sqlite3.Connection:
    """A copy of the database with its log, for use when no process writes any more."""
    folder.mkdir(exist_ok=True)
    for suffix in ("", "-wal"):
        source = database.with_name(database.name + suffix)
        if source.exists():
            shutil.copyfile(source, folder / source.name)
    return sqlite3.connect(folder / database.name)


def git(repo: Path, *words: str) -> str:
    """What plain git says; raises CalledProcessError."""
    return subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True, text=True).stdout
