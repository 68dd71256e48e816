"""The tables of messages and groups. Every change of a message publishes its event."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rookery.base.ids import MESSAGE, parse_id, resolve_id
from rookery.base.json import dumps, loads
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.db.dialect import conditions, equals, ids_between, marks
from rookery.events.store import publish
from rookery.mail.model import PRIORITIES, QUIET_PRIORITY, SYSTEM, Message
from rookery.sessions.model import Session

_COLUMNS = Message.field_names()
_SELECT = "SELECT " + ", ".join(f"m.{column}" for column in _COLUMNS) + " FROM messages m"
_INSERT = f"INSERT INTO messages ({', '.join(_COLUMNS)}) VALUES ({marks(len(_COLUMNS))})"
URGENT_FIRST = (
    "CASE m.priority "
    + " ".join(f"WHEN '{name}' THEN {rank}" for rank, name in enumerate(reversed(PRIORITIES)))
    + f" ELSE {len(PRIORITIES)} END"
)
_UNREAD_ONLY = "m.read_at IS NULL"
_UNREAD = f"m.recipient = ? AND {_UNREAD_ONLY}"
# New: its recipient has not read it, and no turn that is still running has seen it.
_NEW = (
    f"{_UNREAD} AND (m.turn_id IS NULL "
    "OR NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn_id AND t.state = 'running'))"
)
WAKES = f"NOT (m.sender = '{SYSTEM}' AND m.priority = '{QUIET_PRIORITY}')"
"""Of messages `m`, those that begin a turn of an agent that waits."""
WANTS_ANSWER = "m.type IN ('question', 'decision_gate', 'escalation', 'error')"
"""Of messages `m`, those that a recipient has to answer or to deal with; an index has this very condition."""
UNANSWERED = (
    f"m.sender <> '{SYSTEM}' AND NOT EXISTS (SELECT 1 FROM messages a WHERE a.thread_id = m.thread_id "
    "AND a.sender = m.recipient AND a.seq > m.seq)"
)
"""Of messages `m`, those that their recipient has not answered in their thread. Rookery itself waits for no answer."""
_ACKNOWLEDGED = "EXISTS (SELECT 1 FROM inbox_marks k WHERE k.key = m.type || ':' || m.id AND k.until IS NULL)"
"""Of messages `m` to a person, those that the person has acknowledged without an answer."""
_OPEN = f"{WANTS_ANSWER} AND {UNANSWERED} AND NOT {_ACKNOWLEDGED}"
_DONE = f"m.read_at IS NOT NULL AND NOT ({_OPEN})"
"""Of messages `m`, those that are read and wait for no answer."""
_PUBLISHED = ("id", "from", "to", "type", "priority", "subject")
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Query(Record):
    """Which messages to list or to wait for; conditions add up."""

    sender: str | None = None
    recipient: str | None = None
    type: str | None = None
    thread: str | None = None
    """The id of a thread."""
    unread: bool = False
    unanswered: bool = False
    """Only questions and the like that their recipient has neither answered nor acknowledged."""
    limit: int = 0
    """How many at most; 0 for all."""
    before: str | None = None
    """The id of a message: only older ones."""
    viewer: str | None = None
    """Only what this agent or person sent or got."""


def insert(db: Database, message: Message) -> None:
    """Add a message. Its body stays out of the events."""
    payload = None if message.payload is None else dumps(message.payload)
    db.execute(_INSERT, message.replace(payload=payload).as_tuple())
    data = {name: value for name, value in message.to_json().items() if name in _PUBLISHED}
    publish(db, "mail.sent", message.id, data, actor=message.sender, at=message.created_at)


def resolve(db: Database, text: str) -> str:
    """The message id that the text names, whole or by a part of it."""
    lookup = ids_between(db, "messages")
    return resolve_id(MESSAGE, text, lookup, lambda one: get(db, one).subject)


def resolve_thread(db: Database, text: str) -> str:
    """The thread that the text names: by its own id, or by a message in it."""
    wanted = parse_id(MESSAGE, text)
    # A thread is named after its first message, which may have been purged since.
    threads = _texts(db, "SELECT thread_id FROM messages WHERE thread_id = ? LIMIT 1", wanted)
    return threads[0] if threads else get(db, resolve(db, text)).thread_id


def get(db: Database, message_id: str) -> Message:
    """The message with that whole id, which the caller knows to exist."""
    for message in _messages(db, "m.id = ?", message_id):
        return message
    raise LookupError(message_id)


def thread(db: Database, thread_id: str) -> list[Message]:
    """A thread's messages, oldest first."""
    return _messages(db, "m.thread_id = ? ORDER BY m.seq", thread_id)


def seen_by(db: Database, turn_id: str) -> list[Message]:
    """The messages that a turn has seen and that are not read yet, oldest first."""
    return _messages(db, "m.turn_id = ? AND m.read_at IS NULL ORDER BY m.seq", turn_id)


def new_ids(db: Database, recipient: str, limit: int = _CHUNK, **wanted: str | None) -> list[str]:
    """What is new for a recipient, with these values in its columns: urgent first, and of those the newest."""
    where, values = equals({f"m.{column}": value for column, value in wanted.items()})
    return _in_order(db, " AND ".join((_NEW, *where)), recipient, *values, limit)


def unread_ids(db: Database, recipient: str, limit: int = _CHUNK) -> list[str]:
    """What a recipient has not read, seen by a running turn or not; in the same order."""
    return _in_order(db, _UNREAD, recipient, limit)


def _in_order(db: Database, condition: str, *values: object) -> list[str]:
    sql = f"SELECT m.id FROM messages m WHERE {condition} ORDER BY {URGENT_FIRST}, m.seq DESC LIMIT ?"
    return _texts(db, sql, *values)


def count_new(db: Database, recipient: str) -> int:
    """How many messages are new for a recipient."""
    return int(db.value(f"SELECT count(*) FROM messages m WHERE {_NEW}", (recipient,)))


def has_waking(db: Database, recipient: str) -> bool:
    """True if a message is new that begins a turn of an agent that waits."""
    return db.value(f"SELECT 1 FROM messages m WHERE {_NEW} AND {WAKES} LIMIT 1", (recipient,)) is not None


def newest_new(db: Database, recipient: str) -> int:
    """The number of the newest message that is new for a recipient; 0 if there is none."""
    return int(db.value(f"SELECT coalesce(max(m.seq), 0) FROM messages m WHERE {_NEW}", (recipient,)))


def count_unread(db: Database, recipient: str) -> int:
    """How many messages a recipient has not read."""
    return int(db.value(f"SELECT count(*) FROM messages m WHERE {_UNREAD}", (recipient,)))


def count_unanswered(db: Database, recipient: str) -> int:
    """How many questions and the like a recipient has neither answered nor acknowledged, read or not."""
    return int(db.value(f"SELECT count(*) FROM messages m WHERE m.recipient = ? AND {_OPEN}", (recipient,)))


def mark(db: Database, recipient: str, ids: Sequence[str], turn_id: str | None, now: str) -> None:
    """Let a recipient's messages count as seen by a turn or, outside of one, as read."""
    if not ids:
        return
    read_at = now if turn_id is None else None
    sql = "UPDATE messages SET turn_id = ?, read_at = ? WHERE id = ?"
    db.execute_many(sql, [(turn_id, read_at, message_id) for message_id in ids])
    _publish(db, "mail.read" if turn_id is None else "mail.delivered", recipient, ids, turn_id, now)


def settle_turn(db: Database, turn_id: str, *, read: bool, now: str) -> int:
    """What a turn has seen is read, or is new again; how many messages that were."""
    change = "read_at = ?" if read else "turn_id = nullif(turn_id, ?)"
    rows = db.all(
        f"UPDATE messages SET {change} WHERE turn_id = ? AND read_at IS NULL RETURNING recipient, id",
        (now if read else turn_id, turn_id),
    )
    for recipient in dict.fromkeys(row[0] for row in rows):
        ids = [row[1] for row in rows if row[0] == recipient]
        _publish(db, "mail.read" if read else "mail.returned", recipient, ids, turn_id, now)
    return len(rows)


def select(db: Database, query: Query) -> list[Message]:
    """The messages that fit, newest first."""
    where, values = conditions(
        {
            "m.sender = ?": query.sender,
            "m.recipient = ?": query.recipient,
            "m.type = ?": query.type,
            "m.thread_id = ?": query.thread,
            "m.seq < (SELECT seq FROM messages WHERE id = ?)": query.before,
        }
    )
    if query.viewer is not None:
        where.append("(m.sender = ? OR m.recipient = ?)")  # not IN: this uses an index for each
        values += [query.viewer, query.viewer]
    where += [
        condition for condition, is_wanted in ((_UNREAD_ONLY, query.unread), (_OPEN, query.unanswered)) if is_wanted
    ]
    condition = " AND ".join(where) or "TRUE"
    return _messages(db, f"{condition} ORDER BY m.seq DESC LIMIT ?", *values, query.limit or -1)


def settled(db: Database, *, before: str | None, busy: Collection[str], unread_too: bool) -> tuple[int, int]:
    """How many messages `purge` would delete, and the length of their texts."""
    chosen, values = _settled(before, unread_too, busy=busy)
    sizes = "coalesce(sum(length(m.subject) + length(m.body) + length(coalesce(m.payload, ''))), 0)"
    count, size = db.one(f"SELECT count(*), {sizes} FROM messages m WHERE m.seq IN ({chosen})", values) or (0, 0)
    return int(count), int(size)


def purge(
    db: Database,
    *,
    before: str | None,
    unread_too: bool,
    actor: str,
    now: str,
    agent: str | None = None,
    busy: Collection[str] = (),
) -> int:
    """Delete messages that are read and wait for no answer, or with `unread_too` all; none of busy agents."""
    chosen, values = _settled(before, unread_too, agent=agent, busy=busy)
    db.execute(f"DELETE FROM messages WHERE seq IN ({chosen})", values)
    count = db.changed
    if count:
        data = {"deleted": count, "before": before, "agent": agent, "unread_too": unread_too}
        publish(db, "mail.purged", agent or "mail", data, actor=actor, at=now)
    return count


def _settled(
    before: str | None, unread_too: bool, *, agent: str | None = None, busy: Collection[str] = ()
) -> tuple[str, list[object]]:
    """A query for the numbers of the messages to delete. With a question that stays, its thread stays from there on."""
    where, values = conditions({"m.created_at < ?": before, "? IN (m.sender, m.recipient)": agent})
    names = marks(len(busy))
    where += [f"m.sender NOT IN ({names})", f"m.recipient NOT IN ({names})"]
    values += [*busy, *busy]
    if not unread_too:
        where.append(_DONE)
    return (
        f"WITH chosen AS (SELECT m.seq, m.thread_id FROM messages m WHERE {' AND '.join(where)}) "
        "SELECT c.seq FROM chosen c WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.thread_id = c.thread_id "
        f"AND m.seq < c.seq AND {WANTS_ANSWER} AND m.seq NOT IN (SELECT seq FROM chosen))"
    ), values


def terminal_message(db: Database, session: Session) -> Message | None:
    """The message with which a session said that its work is over, if it did."""
    types = session.settings.ends_with
    condition = f"m.sender = ? AND m.session_id = ? AND m.type IN ({marks(len(types))}) ORDER BY m.seq DESC LIMIT 1"
    return next(iter(_messages(db, condition, session.agent, session.id, *types)), None)


def first_since(db: Database, sender: str, recipient: str, at: str) -> Message | None:
    """The first message from one to another since a time, if there is one."""
    condition = "m.recipient = ? AND m.sender = ? AND m.created_at >= ? ORDER BY m.seq LIMIT 1"
    return next(iter(_messages(db, condition, recipient, sender, at)), None)


def group_members(db: Database, group: str) -> list[str]:
    """The members of a named group; none if there is no such group."""
    return _texts(db, "SELECT member FROM mail_groups WHERE name = ? ORDER BY member", group)


def group_names(db: Database) -> list[str]:
    """Every named group."""
    return _texts(db, "SELECT DISTINCT name FROM mail_groups ORDER BY name")


def add_member(db: Database, group: str, member: str, now: str) -> None:
    """Put a name into a group, which exists as soon as it has a member."""
    db.execute(
        "INSERT INTO mail_groups (name, member, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (group, member, now),
    )


def remove_members(db: Database, group: str, members: Iterable[str]) -> None:
    """Take names out of a group; without members it no longer exists."""
    db.execute_many("DELETE FROM mail_groups WHERE name = ? AND member = ?", [(group, member) for member in members])


def branches_announced(db: Database, session_id: str) -> set[str]:
    """The branches that a session has announced as ready to land."""
    sql = "SELECT json_extract(payload, '$.branch') FROM messages WHERE session_id = ? AND type = 'merge_ready'"
    return {str(branch) for branch in _texts(db, sql, session_id)}


def endorser(db: Database, branch: str, *, author: str, since: str) -> str | None:
    """The last sender but its author that announced, at or after a time, that a branch may land."""
    sender: str | None = db.value(
        "SELECT sender FROM messages WHERE type = 'merge_ready' AND json_extract(payload, '$.branch') = ? "
        "AND sender <> ? AND created_at >= ? ORDER BY seq DESC LIMIT 1",
        (branch, author, since),
    )
    return sender


def unanswered(db: Database, recipient: str, since: str) -> list[Message]:
    """Questions since a time that the recipient has not answered in their thread."""
    condition = (
        "m.recipient = ? AND m.type = 'question' AND m.created_at >= ? AND NOT EXISTS (SELECT 1 FROM messages a "
        "WHERE a.thread_id = m.thread_id AND a.sender = m.recipient AND a.seq > m.seq) ORDER BY m.seq"
    )
    return _messages(db, condition, recipient, since)


def last_body(db: Database, sender: str, session_id: str) -> str | None:
    """What an agent wrote last in one session."""
    body: str | None = db.value(
        "SELECT body FROM messages WHERE session_id = ? AND sender = ? ORDER BY seq DESC LIMIT 1", (session_id, sender)
    )
    return body


def _publish(db: Database, kind: str, recipient: str, ids: Iterable[str], turn_id: str | None, now: str) -> None:
    actor = SYSTEM if kind == "mail.returned" else recipient
    publish(db, kind, recipient, {"ids": list(ids), "turn_id": turn_id}, actor=actor, at=now)


def _messages(db: Database, condition: str, *values: object) -> list[Message]:
    messages = (Message(*row) for row in db.all(f"{_SELECT} WHERE {condition}", values))
    return [
        message if message.payload is None else message.replace(payload=loads(str(message.payload)))
        for message in messages
    ]


def _texts(db: Database, sql: str, *values: object) -> list[str]:
    return [row[0] for row in db.all(sql, values)]
