"""Every message is there once, and exactly one turn that ended well showed it to its agent."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator

from dev.soak.checks.model import Ledger, Violation

_SETTLED = ("done", "interrupted")
_HUMAN = "human"


def check_sent(db: sqlite3.Connection, ledger: Ledger) -> Iterator[Violation]:
    """Every message that `rook` reported as sent is there, and none is there twice."""
    by_nonce: dict[str, list[str]] = defaultdict(list)
    for message, body in db.execute("SELECT id, body FROM messages WHERE body LIKE 'nonce %'"):
        by_nonce[body.split()[1]].append(message)
    for nonce, ids in sorted(ledger.sent.items()):
        if by_nonce.get(nonce, []) != ids:
            yield Violation("mail", f"message {nonce} was sent as {ids}, and is there as {by_nonce.get(nonce, [])}")
    for nonce, messages in sorted(by_nonce.items()):
        if len(messages) > 1:
            yield Violation("mail", f"message {nonce} was sent once, and is there {len(messages)} times: {messages}")
        if nonce not in ledger.tried:
            yield Violation("mail", f"message {messages} with number {nonce} is there, and no agent sent it")


def check_delivery(db: sqlite3.Connection, ledger: Ledger) -> Iterator[Violation]:
    """Exactly one turn that ended well showed an agent its message, and because of that turn the message is read."""
    state = dict(db.execute("SELECT id, state FROM turns"))
    turns_of: dict[str, list[str]] = defaultdict(list)
    for turn, looks in sorted(ledger.turns.items()):
        if state.get(turn) in _SETTLED:
            for message in looks.ids:
                turns_of[message].append(turn)
    query = "SELECT id, recipient, type, turn_id, read_at FROM messages WHERE recipient <> ? ORDER BY seq"
    for message, recipient, kind, turn, read_at in db.execute(query, (_HUMAN,)):
        name = f"{kind} {message} to {recipient}"
        turns = turns_of[message]
        if len(turns) > 1:
            yield Violation("mail", f"{name} was told in {len(turns)} turns that ended well: {turns}")
        if turns and read_at is None:
            yield Violation("mail", f"{name} was told in {turns[0]}, which ended well, and is still unread")
        if read_at is not None and turn is not None:
            if state.get(turn) not in _SETTLED:
                yield Violation("mail", f"{name} is read by {turn}, which is {state.get(turn)}")
            elif turn in ledger.turns and ledger.turns[turn].lacks(message):
                yield Violation("mail", f"{name} is read by {turn}, which was never told it")


def check_unread(db: sqlite3.Connection) -> Iterator[Violation]:
    """Nothing waits for an agent that is alive."""
    query = (
        "SELECT m.id, m.type, s.agent, s.state FROM messages m JOIN sessions s ON s.agent = m.recipient "
        "WHERE s.state <> 'ended' AND m.read_at IS NULL ORDER BY m.seq"
    )
    for message, kind, agent, state in db.execute(query):
        yield Violation("mail", f"{kind} {message} to {agent} is unread, and {agent} is {state}")


def check_mail_events(db: sqlite3.Connection) -> Iterator[Violation]:
    """By the events, too: each message is sent once and read at most once."""
    sent: dict[str, int] = defaultdict(int)
    read: dict[str, int] = defaultdict(int)
    for kind, subject, data in db.execute(
        "SELECT type, subject, data FROM events WHERE type IN ('mail.sent', 'mail.read') ORDER BY seq"
    ):
        for message in [subject] if kind == "mail.sent" else json.loads(data)["ids"]:
            (sent if kind == "mail.sent" else read)[message] += 1
    for message, read_at in db.execute("SELECT id, read_at FROM messages ORDER BY seq"):
        if sent[message] != 1:
            yield Violation("mail", f"{message} has {sent[message]} events that say it was sent")
        if read[message] != (read_at is not None):
            yield Violation("mail", f"{message} has {read[message]} events that say it was read, read_at is {read_at}")


def check_record(db: sqlite3.Connection, ledger: Ledger) -> Iterator[Violation]:
    """The agents' own record holds enough turns to judge mail by."""
    settled = [row[0] for row in db.execute("SELECT id FROM turns WHERE state IN ('done', 'interrupted')")]
    noted = sum(turn in ledger.turns and ledger.turns[turn].is_noted for turn in settled)
    if noted < len(settled) / 2:
        yield Violation("soak", f"the ledger knows of {noted} of {len(settled)} turns: too few to judge mail by")
