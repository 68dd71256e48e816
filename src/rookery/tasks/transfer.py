"""Export and import: one versioned file with every task and learning, exact both ways.

An import is checked as a whole before anything is written (`import_validation`), in any order of its records, and
commits in one transaction.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.errors import Refused
from rookery.base.record import Record
from rookery.config.project import make_state_folders
from rookery.db.database import Database
from rookery.events import store as events
from rookery.ops.context import Progress
from rookery.tasks import store
from rookery.tasks.import_validation import CONTRADICTORY, check_document
from rookery.tasks.model import ImportInvalid, Task, contradiction
from rookery.tasks.store import Author

FORMAT = "rookery"
VERSION = 1
_KINDS = ("task", "learning")
_MOST_BACKUPS = 5
_REPORT_EVERY = 100


@dataclass(frozen=True, slots=True)
class Exported(Record):
    """What was written."""

    PRINTS = ""
    path: str
    tasks: int
    learnings: int


@dataclass(frozen=True, slots=True)
class Imported(Record):
    """What was read, and what it replaced."""

    path: str
    tasks: int
    learnings: int
    deleted: int
    backup: str | None


def export_file(db: Database, path: str, now: str) -> Exported:
    """Write everything; the file appears whole."""
    with db.read():
        tasks = [task.as_dict() for task in store.every_task(db)]
        blocked_by = store.blockers(db, [task["id"] for task in tasks])
        learnings = [learning.as_dict() for learning in store.every_learning(db)]
    header: dict[str, Any] = {"format": FORMAT, "version": VERSION, "exported_at": now}
    contradictory = [task["id"] for task in tasks if contradiction(Task(**task))]
    if contradictory:
        header[CONTRADICTORY] = contradictory  # so that they can be imported as they are
    for task in tasks:
        task["blocked_by"] = [*blocked_by.get(task["id"], ())]
    if path.endswith(".jsonl"):
        records = [header, *({"task": task} for task in tasks), *({"learning": learning} for learning in learnings)]
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    else:
        document = {**header, "tasks": tasks, "learnings": learnings}
        text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    _write_whole(path, text)
    return Exported(path, len(tasks), len(learnings))


def import_file(db: Database, path: str, author: Author, *, clear: bool, backups: str, progress: Progress) -> Imported:
    """Read everything, or raise ImportInvalid that says where the file is wrong and change nothing."""
    document = _read(path)
    _check_header(document, path)
    if not clear:
        with db.write():
            return _import(db, document, path, author, progress)
    check_document(document, path, {}, [], set())
    for _ in range(_MOST_BACKUPS):
        backup, seen = _back_up(db, author, backups)
        with db.write():
            if events.read(db, after=seen, kinds=_KINDS, limit=1):
                continue  # something has changed while the file was written: that must be in it, too
            deleted = sum(len(store.delete(db, root.id, author)) for root in store.children(db, None))
            return _import(db, document, path, author, progress).replace(deleted=deleted, backup=backup)
    raise Refused(
        "the tasks change faster than they can be backed up",
        hint="stop the agents with `rook stop`, then import again; nothing was changed",
        code="busy",
    )


def _import(db: Database, document: Any, path: str, author: Author, progress: Progress) -> Imported:
    """Within the caller's transaction: add the document's tasks and learnings to those in the project."""
    present = {task.id: (task.parent_id, task.state) for task in store.every_task(db)}
    taken = {learning.id for learning in store.every_learning(db)}
    tasks, learnings = check_document(document, path, present, store.every_edge(db), taken)
    report = progress("importing", len(tasks))
    for number, (task, _) in enumerate(tasks, 1):
        store.insert(db, task, author)
        if number % _REPORT_EVERY == 0 or number == len(tasks):
            report(number)
    for task, blockers in tasks:
        for blocker in blockers:
            store.add_blocker(db, task.id, blocker, author)
    added = sum(store.insert_learning(db, learning, author) is learning for learning in learnings)
    return Imported(path, len(tasks), added, 0, None)


def _back_up(db: Database, author: Author, backups: str) -> tuple[str | None, int]:
    """Write all tasks into a file, if there are any; its path, and the number of an event up to which it is whole."""
    seen = events.last_seq(db)  # before the export: a later event may be in the file, and is noticed again
    if store.count(db) == 0:
        return None, seen
    make_state_folders(backups)
    path = os.path.join(backups, f"before-import-{author.now.replace(':', '')}.json")
    export_file(db, path, author.now)
    return path, seen


def _write_whole(path: str, text: str) -> None:
    target = os.path.realpath(path)  # a link stays one
    stream = _stream_number(path)
    try:
        if stream is not None or (os.path.lexists(path) and not os.path.isfile(target)):
            # An open file is continued where its last writer stopped; a pipe or a device must not be replaced.
            with open(path if stream is None else stream, "w", encoding="utf-8", closefd=stream is None) as file:
                file.write(text)
        else:
            write_whole(target, text, sync=True)
    except OSError as error:
        raise Refused(
            f"cannot write {path}: {error.strerror}", hint="choose a file in a folder that you may write to", code="io"
        ) from error


def _stream_number(path: str) -> int | None:
    """The number of the open file that `/dev/stdout` or `/dev/fd/3` stands for; None for any other path."""
    link = os.readlink(path) if os.path.dirname(path) == "/dev" and os.path.islink(path) else path
    folder, name = os.path.split(link)
    is_open_file = name.isdigit() and folder in ("/dev/fd", "/proc/self/fd", "/proc/thread-self/fd")
    return int(name) if is_open_file else None


def _read(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise ImportInvalid(f"cannot read {path}: {error.strerror}", hint="give the path of an export") from error
    except UnicodeDecodeError as error:
        raise ImportInvalid(f"{path} is not UTF-8 at byte {error.start}", hint=_HINT) from error
    return _join_lines(text, path) if path.endswith(".jsonl") else _parse(text, path)


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # a number with thousands of digits is a bare ValueError
        raise ImportInvalid(f"{where} is not JSON: {error}", hint=_HINT) from error


_HINT = "only files made by `rook data export` can be imported"


def _join_lines(text: str, path: str) -> Any:
    """The same document from one record a line."""
    # Not splitlines: JSON leaves U+2028 and its like as they are.
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    parsed = [(number, _parse(line, f"{path}: line {number}")) for number, line in numbered]
    records: dict[str, list[Any]] = {"task": [], "learning": []}
    for number, record in parsed[1:]:
        if not isinstance(record, dict) or len(record) != 1 or not record.keys() <= records.keys():
            raise ImportInvalid(f"{path}: line {number}: is neither a task nor a learning", hint=_HINT)
        for kind, raw in record.items():
            records[kind].append(raw)
    if not parsed or not isinstance(parsed[0][1], dict):
        return None
    return {**parsed[0][1], "tasks": records["task"], "learnings": records["learning"]}


def _check_header(document: Any, path: str) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ImportInvalid(f"{path} is not an export of Rookery", hint=_HINT)
    if document.get("version") is True or document.get("version") != VERSION:
        raise ImportInvalid(
            f"{path} has version {document.get('version')!r}, and this Rookery reads {VERSION}",
            hint="import it with the Rookery that wrote it, or a newer one",
        )
