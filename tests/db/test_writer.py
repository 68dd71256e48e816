"""Threads of one process write one after the other; those that wait share a commit, and none returns before it."""

from __future__ import annotations

import random
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.base import call as calls
from rookery.base.errors import StorageFailed
from rookery.db import writer
from rookery.db.database import Database
from rookery.db.migrate import remove
from rookery.db.pool import Pool
from rookery.db.writer import Writer
from served import Served, make_call
from support import start_python, wait_until
from templates import copy_database

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
LONG = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300000) SELECT count(*) FROM n"
Use = Callable[[Database], Any]


class Crowd:
    """Callers of one daemon, each in a thread of its own."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.pool = Pool()
        self.plain = apsw.Connection(path)
        self.plain.set_busy_timeout(20_000)
        self.plain.execute("CREATE TABLE IF NOT EXISTS written (name TEXT PRIMARY KEY, amount INTEGER)")

    def serve(self, use: Use) -> Served:
        call = make_call()
        call.connections = self.pool

        def run() -> Any:
            db = Database.open(self.path)
            try:
                return use(db)
            finally:
                db.close()

        return Served(call, run)

    def write(self, name: str, then: Use = lambda _: None) -> Served:
        """Write a row, and do something more in the same transaction."""

        def use(db: Database) -> None:
            with db.write():
                put(db, name)
                then(db)

        return self.serve(use)

    @property
    def writer(self) -> Writer:
        return self.pool._writers[self.path][1]

    def wait_for(self, waiting: int) -> None:
        wait_until(lambda: self.pool._writers and self.writer.waiting == waiting)

    def count_commits(self) -> list[None]:
        """A list that grows with every commit of the callers."""
        self.write("first").value()
        commits: list[None] = []
        connection = self.writer._connection
        assert connection is not None
        connection.set_commit_hook(lambda: bool(commits.append(None)))  # type: ignore[func-returns-value]
        return commits

    @property
    def names(self) -> set[str]:
        """What is committed."""
        return {name for name, _ in self.plain.execute("SELECT * FROM written WHERE name <> 'first'")}


class Gate:
    """Holds a thread within its transaction until it is opened."""

    def __init__(self) -> None:
        self.reached, self._opened = threading.Event(), threading.Event()

    def __call__(self, _db: object) -> None:
        self.reached.set()
        assert self._opened.wait(20)

    def wait(self) -> None:
        assert self.reached.wait(20)

    def open(self) -> None:
        self._opened.set()


def put(db: Database, name: str, amount: int = 1) -> None:
    db.execute("INSERT INTO written VALUES (?, ?)", (name, amount))


def fail(_db: Database) -> None:
    raise LookupError


@pytest.fixture
def crowd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crowd]:
    monkeypatch.setattr(writer, "_MOST_SECONDS", 60.0)  # however slow the machine is
    path = str(tmp_path / "rookery.db")
    copy_database(path)
    crowd = Crowd(path)
    yield crowd
    crowd.pool.close()
    crowd.plain.close()


def test_those_who_wait_share_one_commit_and_return_after_it(crowd: Crowd) -> None:
    commits = crowd.count_commits()
    first, last = Gate(), Gate()
    served = [crowd.write("a", first)]
    first.wait()
    served.append(crowd.write("b"))
    crowd.wait_for(1)
    served.append(crowd.write("c", last))
    crowd.wait_for(2)
    first.open()
    last.wait()
    assert not any(caller.has_ended for caller in served)
    assert crowd.names == set()
    last.open()
    for caller in served:
        caller.value()
    assert crowd.names == {"a", "b", "c"}
    assert len(commits) == 1


@pytest.mark.parametrize(("bound", "value"), [("_MOST_CALLERS", 1), ("_MOST_SECONDS", -1.0)])
def test_a_group_does_not_grow_for_ever(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    monkeypatch.setattr(writer, bound, value)
    commits = crowd.count_commits()
    first, last = Gate(), Gate()
    one = crowd.write("a", first)
    first.wait()
    other = crowd.write("b", last)
    crowd.wait_for(1)
    first.open()
    last.wait()
    one.value()
    assert crowd.names == {"a"}
    last.open()
    other.value()
    assert len(commits) == 2


def test_a_lone_writer_begins_and_commits_and_nothing_else(crowd: Crowd) -> None:
    crowd.write("x").value()
    statements: list[str] = []
    connection = crowd.writer._connection
    assert connection is not None

    def trace(_cursor: object, sql: str, _values: object) -> bool:
        statements.append(sql)
        return True

    connection.exec_trace = trace
    crowd.write("y").value()
    assert [statement.split()[0] for statement in statements] == ["BEGIN", "INSERT", "COMMIT"]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_caller_who_fails_takes_back_only_what_is_its_own(crowd: Crowd, failing: int) -> None:
    gate = Gate()

    def then(number: int) -> Use:
        def run(db: Database) -> None:
            if number == 0:
                gate(db)
            if number == failing:
                fail(db)

        return run

    served = [crowd.write("0", then(0))]
    gate.wait()
    for number in (1, 2):
        served.append(crowd.write(str(number), then(number)))
        crowd.wait_for(number)
    gate.open()
    ended = [type(caller.end()) for caller in served]
    assert ended == [LookupError if number == failing else type(None) for number in range(3)]
    assert crowd.names == {"0", "1", "2"} - {str(failing)}


def test_each_sees_its_own_changes_and_those_before_it_and_others_see_none(crowd: Crowd) -> None:
    gate, inside = Gate(), Gate()
    seen: list[set[str]] = []

    def look(db: Database) -> None:
        seen.append({row[0] for row in db.all("SELECT name FROM written")})
        with db.write():
            put(db, "c")
        with db.read(), db.rows("SELECT name FROM written") as rows:
            seen.append({row[0] for row in rows})
        inside(db)

    one = crowd.write("a", gate)
    gate.wait()
    other = crowd.write("b", look)
    crowd.wait_for(1)
    gate.open()
    inside.wait()
    outside = crowd.serve(lambda db: db.value("SELECT count(*) FROM written")).value()
    inside.open()
    one.value()
    other.value()
    assert (seen, outside) == ([{"a", "b"}, {"a", "b", "c"}], 0)
    assert crowd.serve(lambda db: db.value("SELECT count(*) FROM written")).value() == 3


@contextmanager
def files_cannot_grow() -> Iterator[None]:
    """As on a full disk: writing beyond what the log has now fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_commit_that_fails_fails_all_of_its_group_and_no_later_one(crowd: Crowd) -> None:
    first, last = Gate(), Gate()
    served = [crowd.write("a", first)]
    first.wait()
    served.append(crowd.write("b"))
    crowd.wait_for(1)
    served.append(crowd.write("c", last))
    crowd.wait_for(2)
    first.open()
    last.wait()
    with files_cannot_grow():
        last.open()
        errors = [caller.end() for caller in served]
    for error in errors:
        assert isinstance(error, StorageFailed)
        assert error.code in {"storage_full", "storage_io"}
        assert error.hint
    assert len(set(map(id, errors))) == 3
    assert crowd.names == set()
    crowd.write("d").value()
    assert crowd.names == {"d"}


def test_a_commit_that_fails_after_a_caller_who_failed_fails_the_others(crowd: Crowd) -> None:
    gate = Gate()

    def spoil(db: Database) -> None:
        gate(db)
        fail(db)

    begin = Gate()
    one = crowd.write("a", begin)
    begin.wait()
    other = crowd.write("b", spoil)
    crowd.wait_for(1)
    begin.open()
    gate.wait()
    with files_cannot_grow():
        gate.open()
        assert isinstance(one.end(), StorageFailed)
        assert isinstance(other.end(), LookupError)
    assert crowd.names == set()


def test_a_transaction_that_sqlite_rolled_back_fails_all_before_and_keeps_nothing_after(crowd: Crowd) -> None:
    gate = Gate()

    def lose(db: Database) -> None:
        assert db.connection is not db._own
        db.connection.execute("ROLLBACK")  # as SQLite does when the disk is full
        for _ in range(2):
            with pytest.raises(StorageFailed):
                put(db, "alone")

    one = crowd.write("a", gate)
    gate.wait()
    other = crowd.write("b", lose)
    crowd.wait_for(1)
    third = crowd.write("c")
    crowd.wait_for(2)
    gate.open()
    assert isinstance(one.end(), StorageFailed)
    assert isinstance(other.end(), StorageFailed)
    third.value()
    assert crowd.names == {"c"}


def test_a_full_database_tells_each_caller_what_is_true(crowd: Crowd) -> None:
    gate = Gate()

    def fill(db: Database) -> None:
        pages = db.value("PRAGMA page_count")
        db.execute(f"PRAGMA max_page_count = {pages + 2}")
        try:
            db.execute("INSERT INTO written VALUES (zeroblob(100000), 1)")
        finally:
            db.connection.execute("PRAGMA max_page_count = 1000000")

    one = crowd.write("a", gate)
    gate.wait()
    other = crowd.write("b", fill)
    crowd.wait_for(1)
    gate.open()
    error = other.end()
    assert isinstance(error, StorageFailed)
    assert error.code == "storage_full"
    assert crowd.names == ({"a"} if one.end() is None else set())


@pytest.mark.parametrize("sql", [f"UPDATE written SET amount = ({LONG})", ENDLESS], ids=["change", "query"])
def test_an_interrupt_of_one_caller_does_not_touch_another(crowd: Crowd, sql: str) -> None:
    """SQLite rolls the whole transaction back when a change is interrupted: so it is not, while others' work is in."""
    gate, inside = Gate(), Gate()

    def compute(db: Database) -> None:
        inside(db)
        db.execute(sql)
        db.all(ENDLESS)

    one = crowd.write("a", gate)
    gate.wait()
    other = crowd.write("b", compute)
    crowd.wait_for(1)
    gate.open()
    inside.wait()
    other.call.interrupt()
    inside.open()
    assert isinstance(other.end(), KeyboardInterrupt)
    assert one.end() is None
    assert crowd.names == {"a"}


def test_an_interrupt_ends_the_change_of_a_caller_who_is_alone(crowd: Crowd) -> None:
    one = crowd.write("a", lambda db: db.execute(f"UPDATE written SET amount = ({ENDLESS})"))
    one.call.interrupt()
    assert isinstance(one.end(), KeyboardInterrupt)
    assert crowd.names == set()
    crowd.write("b").value()


def test_an_interrupt_after_the_own_part_does_not_undo_it(crowd: Crowd) -> None:
    first, last = Gate(), Gate()
    one = crowd.write("a", first)
    first.wait()
    other = crowd.write("b", last)
    crowd.wait_for(1)
    first.open()
    last.wait()
    one.call.interrupt()
    last.open()
    assert one.end() is None
    assert other.end() is None
    assert crowd.names == {"a", "b"}


def test_who_is_interrupted_while_waiting_leaves_the_queue(crowd: Crowd) -> None:
    gate = Gate()
    one = crowd.write("a", gate)
    gate.wait()
    other, third = crowd.write("b"), crowd.write("c")
    crowd.wait_for(2)
    other.call.interrupt()
    assert isinstance(other.end(), KeyboardInterrupt)
    gate.open()
    assert one.end() is None
    assert third.end() is None
    assert crowd.names == {"a", "c"}


def test_a_caller_stopped_while_it_waits_delays_no_other(crowd: Crowd) -> None:
    gate = Gate()
    one = crowd.write("a", gate)
    gate.wait()
    stopped = crowd.write("b")
    crowd.wait_for(1)
    stopped.call.stop()
    wait_until(lambda: crowd.writer.waiting == 0)
    third = crowd.write("c")
    crowd.wait_for(1)
    gate.open()
    assert one.end() is None
    assert third.end() is None
    assert not stopped.has_ended
    assert crowd.names == {"a", "c"}
    stopped.call.go_on()
    assert stopped.end() is None
    assert crowd.names == {"a", "b", "c"}


def test_who_is_stopped_with_the_turn_goes_on_until_others_can_write(crowd: Crowd) -> None:
    gate = Gate()

    def use(db: Database) -> None:
        with db.write():
            put(db, "a")
            gate(db)
            assert make_note(db)
        assert not stopped.call.is_writing
        db.connection.set_busy_handler(None)

    def make_note(_db: Database) -> bool:
        calls.sleep(0.001)  # a stopped call would wait here, with the lock
        return stopped.call.is_writing

    stopped = crowd.serve(use)
    gate.wait()
    other = crowd.write("b")
    crowd.wait_for(1)
    stopped.call.stop()
    gate.open()
    assert other.end() is None
    assert stopped.end() is None
    assert crowd.names == {"a", "b"}


def test_another_process_may_write_between(crowd: Crowd) -> None:
    crowd.plain.execute("BEGIN IMMEDIATE; INSERT INTO written VALUES ('theirs', 1)")
    one, other = crowd.write("a"), crowd.write("b")
    crowd.wait_for(1)
    crowd.plain.execute("COMMIT")
    one.value()
    other.value()
    assert crowd.names == {"a", "b", "theirs"}


def test_an_interrupt_ends_the_waiting_for_another_process_and_the_next_goes_on(crowd: Crowd) -> None:
    crowd.plain.execute("BEGIN IMMEDIATE; INSERT INTO written VALUES ('theirs', 1)")
    one, other = crowd.write("a"), crowd.write("b")
    crowd.wait_for(1)
    one.call.interrupt()
    other.call.interrupt()
    assert isinstance(one.end(), KeyboardInterrupt)
    assert isinstance(other.end(), KeyboardInterrupt)
    crowd.plain.execute("COMMIT")
    crowd.write("c").value()
    assert crowd.names == {"c", "theirs"}


def test_what_others_have_written_is_noticed_whichever_connection_committed_it(crowd: Crowd) -> None:
    gate = Gate()

    def use(db: Database) -> tuple[int, int, int]:
        before = db.data_version
        with db.write():
            put(db, "a")
            db.execute("UPDATE written SET amount = 2")
            assert db.changed == 1
            gate(db)
        after = db.data_version
        other.value()
        crowd.write("c").value()
        return before, after, db.data_version

    one = crowd.serve(use)
    gate.wait()
    other = crowd.write("b")
    crowd.wait_for(1)
    gate.open()
    before, after, later = one.value()
    assert before != after != later


def test_a_file_that_was_replaced_is_opened_again_for_writing(crowd: Crowd) -> None:
    crowd.write("a").value()
    crowd.plain.close()
    remove(crowd.path)
    copy_database(crowd.path)
    crowd.plain = apsw.Connection(crowd.path)
    crowd.plain.execute("CREATE TABLE written (name, amount)")
    crowd.write("b").value()
    assert crowd.names == {"b"}


def test_nothing_stays_open_after_the_pool_is_closed(crowd: Crowd) -> None:
    gate = Gate()
    one = crowd.write("a", gate)
    gate.wait()
    own = crowd.writer
    crowd.pool.close()
    gate.open()
    one.value()
    assert own._connection is None
    crowd.write("b").value()
    assert crowd.names == {"a", "b"}


def test_a_database_that_is_closed_within_its_transaction_spoils_nothing(crowd: Crowd) -> None:
    crowd.write("a", lambda db: db.close()).end()
    crowd.write("b").value()
    assert "b" in crowd.names


_PARTS = st.lists(st.lists(st.sampled_from(["ok", "fail", "fail late", "nested"]), max_size=3), min_size=2, max_size=16)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plans=_PARTS)
def test_whatever_fails_each_caller_is_told_what_was_kept(crowd: Crowd, plans: list[list[str]]) -> None:
    _run_plans(crowd, plans)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_sixteen_threads_with_random_failures(crowd: Crowd, seed: int) -> None:
    draw = random.Random(seed)
    kinds = ["ok", "ok", "ok", "nested", "fail", "fail late", "interrupt", "rollback"]
    _run_plans(crowd, [[draw.choice(kinds) for _ in range(60)] for _ in range(16)])


def _run_plans(crowd: Crowd, plans: list[list[str]]) -> None:
    """Let every thread write as its plan says, and compare the outcome that it saw with the rows that are there."""
    crowd.plain.execute("DELETE FROM written")
    outcomes: list[dict[str, BaseException | None]] = [{} for _ in plans]
    begin = threading.Barrier(len(plans))

    def follow(number: int, plan: list[str]) -> Use:
        def use(db: Database) -> None:
            begin.wait(20)
            for place, kind in enumerate(plan):
                name = f"{number}-{place}"
                try:
                    _write_part(db, name, kind)
                except (LookupError, StorageFailed, KeyboardInterrupt) as error:
                    outcomes[number][name] = error
                else:
                    outcomes[number][name] = None

        return use

    served = [crowd.serve(follow(number, plan)) for number, plan in enumerate(plans)]
    for caller in served:
        caller.value()
    kept: dict[Any, Any] = dict(crowd.plain.execute("SELECT * FROM written").fetchall())  # type: ignore[arg-type]
    for number, plan in enumerate(plans):
        for place, kind in enumerate(plan):
            name = f"{number}-{place}"
            error = outcomes[number][name]
            rows = [kept.get(name), kept.get(name + "+")]
            assert rows == ([1, 2] if error is None else [None, None]), (name, kind, error)
            if kind.startswith("fail"):
                assert isinstance(error, LookupError)
            elif kind == "interrupt":
                assert isinstance(error, KeyboardInterrupt | StorageFailed)
            elif kind == "rollback":
                assert isinstance(error, StorageFailed)
            elif not any("rollback" in steps for steps in plans):
                assert error is None
    assert not any(plans) or crowd.writer.waiting == 0


def _write_part(db: Database, name: str, kind: str) -> None:
    with db.write():
        put(db, name)
        if kind == "fail":
            raise LookupError
        if kind == "nested":
            with db.write():
                put(db, name + "+", 2)
        else:
            put(db, name + "+", 2)
        assert db.value("SELECT count(*) FROM written WHERE name IN (?, ?)", (name, name + "+")) == 2
        if kind == "fail late":
            raise LookupError
        if kind == "interrupt":
            raise KeyboardInterrupt
        if kind == "rollback":
            db.connection.execute("ROLLBACK")


_WRITE_UNTIL_KILLED = """
import io, sys, threading
from rookery.base.call import Call, serving
from rookery.db.database import Database
from rookery.db.pool import Pool
path, pool, print_lock = sys.argv[1], Pool(), threading.Lock()

def write(number):
    streams = (io.StringIO(), io.StringIO(), io.StringIO())
    call = Call(environ={}, cwd="/", umask=0o022, pid=1, streams=streams)
    call.connections = pool
    with serving(call):
        db = Database.open(path)
        place = 0
        while True:
            name = f"{number}-{place}"
            with db.write():
                db.execute("INSERT INTO written VALUES (?, 1)", (name,))
                db.execute("INSERT INTO written VALUES (?, 2)", (name + "+",))
            with print_lock:
                sys.stdout.write(name + chr(10))
                sys.stdout.flush()
            place += 1

print("here", flush=True)
sys.stdin.readline()
for number in range(16):
    threading.Thread(target=write, args=(number,)).start()
"""


@pytest.mark.slow
@pytest.mark.parametrize("answers", [1, 7, 50, 200])
def test_a_process_that_is_killed_has_kept_every_answer_and_nothing_by_halves(crowd: Crowd, answers: int) -> None:
    child = start_python(_WRITE_UNTIL_KILLED, crowd.path)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"go\n")
    child.stdin.flush()
    first = [child.stdout.readline() for _ in range(answers)]
    child.kill()
    rest, _ = child.communicate()
    lines = b"".join(first) + rest[: rest.rfind(b"\n") + 1]
    named = {line for line in lines.decode().split() if line != "here"}
    assert len(named) >= answers - 1
    kept = crowd.names
    assert named <= kept
    assert {name + "+" for name in kept if not name.endswith("+")} == {name for name in kept if name.endswith("+")}
    assert crowd.plain.pragma("integrity_check") == "ok"
