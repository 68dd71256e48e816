"""What waits for a person follows from the tables, and what is put away stays away until something new happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mail.hive import LATER, NOW, Agent, Hive
from rookery.base.errors import InvalidInput, InvalidState
from rookery.base.ids import handle
from rookery.events.store import publish
from rookery.inbox import model, service, store
from rookery.inbox import ops as inbox_ops
from rookery.inbox.model import ACKNOWLEDGED, OPEN, SNOOZED, AmbiguousKey, Item, NoSuchItem
from rookery.mail import ops as mail_ops
from rookery.mail import store as mail_store
from rookery.merge import lease_store
from rookery.merge import store as merges
from rookery.merge.lease_store import LeaseRow
from rookery.merge.model import BASE_GATE, BUSY, CONFLICT, GATE, OUTSIDE, Entry
from rookery.processes import holder as holders
from rookery.tasks import lifecycle
from rookery.tasks.store import Author
from support import add

HOUR_LATER = "2026-01-31T13:00:00.000Z"


class Scene(Hive):
    """A project whose rows say what has gone wrong."""

    def items(self, now: str = NOW) -> list[Item]:
        """What waits and is not put away."""
        return [item for item in service.list_items(self.ctx(now=now)) if item.state == OPEN]

    def kinds(self, now: str = NOW) -> list[str]:
        """The kinds of that."""
        return [item.kind for item in self.items(now)]

    def set(self, table: str, id: str, **columns: object) -> None:
        """Change columns of a row."""
        names = ", ".join(f"{name} = ?" for name in columns)
        with self.db.write():
            self.db.execute(f"UPDATE {table} SET {names} WHERE id = ?", (*columns.values(), id))

    def agent(self, name: str, task: str | None = None, state: str = "waiting", **columns: object) -> Agent:
        """An agent at a task."""
        agent = self.add(name, "builder", str(columns.pop("parent", "human")), state)
        self.set("sessions", agent.session_id, task_id=task, branch=f"rook/{name}", **columns)
        return agent

    def crash(self, name: str, task: str | None) -> Agent:
        """An agent that has crashed at a task."""
        ended = {"outcome": "crashed", "reason": "exited with status 3", "ended_at": NOW, "step": "ready"}
        return self.agent(name, task, "ended", **ended)

    def fail(self, branch: str, kind: str, reason: str = "the gate tests failed", **more: Any) -> Entry:
        """A branch that could not land."""
        values: dict[str, Any] = {"id": f"mrg_{branch.upper():0>26}", "task_id": None, "agent": None} | more
        entry = Entry(
            **values,
            branch=branch,
            base="main",
            tip="0" * 40,
            lead=None,
            run_id=None,
            priority=3,
            requested_by="human",
            created_at=NOW,
            updated_at=NOW,
        )
        step = "hold" if kind in (BASE_GATE, BUSY) else "fail"
        with self.db.write():
            merges.insert(self.db, entry)
            return merges.change(self.db, entry, step, actor="human", at=LATER, kind=kind, reason=reason, attempts=1)


@pytest.fixture
def hive(tmp_path: Path) -> Iterator[Scene]:
    project = Scene(tmp_path / "project")
    yield project
    project.db.close()


def test_an_empty_inbox_says_who_is_at_work(hive: Scene) -> None:
    hive.agent("bee", add(hive.db), "working")
    hive.agent("rest", None, "ended")
    [inbox] = inbox_ops.inbox(hive.ctx())
    assert (inbox.items, inbox.open, inbox.put_away, inbox.working) == ((), 0, 0, ("bee",))


@pytest.mark.parametrize("kind", ["question", "decision_gate", "escalation", "error"])
def test_what_agents_ask_stays_until_it_is_answered_also_if_it_was_read(hive: Scene, kind: str) -> None:
    task = add(hive.db, "Write the parser")
    bee = hive.agent("bee", task)
    payload = {"decision_gate": {"options": ["a", "b"]}}.get(kind)
    asked = hive.send(bee, "human", "Which port?", type=kind, payload=payload)
    hive.send(bee, "human", "It goes well")
    mail_ops.check(hive.ctx())
    [item] = hive.items()
    assert (item.kind, item.id, item.who, item.about, item.why) == (
        *(kind, asked.id, "bee", "Write the parser", "Which port?"),
    )
    assert item.command == f'rook mail reply {asked.id[-6:].lower()} --body "…"'
    assert service.count_open(hive.ctx()) == 1
    mail_ops.reply(hive.ctx(), asked.id, body="8080")
    assert "Which port?" not in [item.why for item in hive.items()]


def test_a_question_that_is_acknowledged_is_answered(hive: Scene) -> None:
    asked = hive.send(hive.agent("bee"), "human", "Which port?", type="question")
    service.acknowledge(hive.ctx(), [asked.id[-6:]])
    assert hive.items() == []
    assert mail_store.count_unanswered(hive.db, "human") == 0
    assert mail_ops.list_mail(hive.ctx(), unanswered=True) == []
    service.reopen(hive.ctx(), [f"question:{asked.id}"])
    assert mail_store.count_unanswered(hive.db, "human") == 1


def test_what_rookery_itself_reports_by_mail_waits_for_no_answer(hive: Scene) -> None:
    from rookery.mail.service import send_from_system

    send_from_system(hive.db, "human", "given up", type="escalation", payload={}, now=NOW)
    assert hive.items() == []


def test_a_crash_waits_until_the_task_is_in_other_hands(hive: Scene) -> None:
    task = add(hive.db, "Write the parser")
    session = hive.crash("bee", task)
    [item] = hive.items()
    assert (item.kind, item.who, item.about, item.why, item.task_id) == (
        *("crash", "bee", "Write the parser", "crashed: exited with status 3", task),
    )
    hive.set("tasks", task, state="IN_PROGRESS", assignee="human")
    assert hive.items() == []
    hive.set("tasks", task, state="PENDING", assignee=None)
    assert hive.kinds() == ["crash"]
    for state in ("COMPLETED", "CANCELLED", "FAILED"):
        hive.set("tasks", task, state=state)
        assert hive.items() == []
    hive.set("tasks", task, state="PENDING")
    hive.agent("wasp", task, "working")
    assert hive.items() == []
    assert session.session_id == item.id


def test_a_crash_is_over_when_an_agent_of_that_name_works_again(hive: Scene) -> None:
    hive.crash("bee", None)
    assert hive.kinds() == ["crash"]
    hive.agent("bee", None, "working")
    assert hive.items() == []


def test_an_agent_that_never_began_is_slung_again_under_its_name(hive: Scene) -> None:
    task = add(hive.db)
    bee = hive.crash("bee", task)
    assert hive.items()[0].command == "rook resume bee"
    hive.set("sessions", bee.session_id, step="checked_out", outcome="failed")
    assert hive.items()[0].command == f"rook sling {task[-6:].lower()} --name bee"


def test_only_the_newest_try_of_a_branch_counts(hive: Scene) -> None:
    hive.fail("old", GATE)
    assert hive.kinds() == ["gate"]
    with hive.db.write():
        merges.insert(hive.db, merges.select(hive.db)[0].replace(id="mrg_" + "1" * 26, state="queued"))
    assert hive.kinds() == ["landing"]


def test_a_branch_that_failed_and_was_handed_in_again_waits_for_its_review(hive: Scene) -> None:
    task = add(hive.db)
    hive.agent("bee", task, "ended", outcome="completed", ended_at=NOW)
    hive.agent("wasp", task, "ended", outcome="completed", ended_at=NOW)
    hive.fail("rook/bee", CONFLICT, agent="bee", task_id=task)
    hive.set("tasks", task, state="PENDING_REVIEW", branch="rook/bee", commit_id="0" * 40)
    assert hive.kinds() == ["conflict"]
    hive.set("tasks", task, commit_id="1" * 40)
    [item] = hive.items()
    assert (item.kind, item.who) == ("review", "bee")


def test_what_is_queued_and_no_merger_lands_is_one_thing_for_each_base(hive: Scene) -> None:
    for branch in "xy":
        hive.fail(branch, GATE)
        hive.set("merges", f"mrg_{branch.upper():0>26}", state="queued")
    [item] = hive.items()
    assert (item.kind, item.about, item.command) == ("landing", "main", "rook merge run --into main")
    assert "2 branches are queued" in item.why
    me = holders.myself()
    with hive.db.write():
        lease_store.save(hive.db, LeaseRow("main", 1, "human", me, HOUR_LATER))
    assert hive.items() == []  # a merger is at work
    with hive.db.write():
        lease_store.free(hive.db, "main", 1)
    assert hive.kinds() == ["landing"]
    hive.agent("queen", None, "working")
    hive.set("merges", "mrg_" + "X".rjust(26, "0"), lead="queen")
    assert "y is queued" in hive.items()[0].why


def test_a_branch_that_failed_is_its_agents_while_that_is_at_work(hive: Scene) -> None:
    task = add(hive.db)
    bee = hive.agent("bee", task, "working")
    hive.fail("rook/bee", GATE, agent="bee", task_id=task)
    assert hive.items() == []
    hive.set("sessions", bee.session_id, state="ended", outcome="completed", ended_at=NOW)
    assert hive.kinds() == ["gate"]
    assert hive.items()[0].command == 'rook resume bee "The gate fails: fix it."'
    hive.set("sessions", bee.session_id, state="waiting", outcome=None, ended_at=None)
    assert next(item.command for item in hive.items() if item.kind == "gate").startswith("rook nudge bee ")
    hive.set("sessions", bee.session_id, state="ended", outcome="completed", ended_at=NOW)
    hive.agent("wasp", task, "ended", created_at=HOUR_LATER)  # another attempt replaces it
    assert hive.items() == []


def test_each_reason_has_its_command(hive: Scene) -> None:
    for branch, kind in (("g", GATE), ("c", CONFLICT), ("o", OUTSIDE), ("b", BUSY)):
        hive.fail(branch, kind)
    commands = {item.about: item.command for item in hive.items()}
    assert commands["c"] == "rook merge resolve 00000c"
    assert commands["g"] == "rook merge retry 00000g"
    assert commands["o"].startswith("rook merge --branch o")
    assert commands["b"].startswith("rook merge run")


def test_a_name_that_a_shell_would_obey_is_quoted(hive: Scene) -> None:
    hive.fail("a;reboot", OUTSIDE, id="mrg_" + "2" * 26)
    assert "--branch 'a;reboot'" in hive.items()[0].command


def test_a_base_that_fails_its_gate_is_one_thing_however_many_wait(hive: Scene) -> None:
    for branch in "xyz":
        hive.fail(branch, BASE_GATE, "main itself fails this gate (tests): it failed")
    [item] = hive.items()
    assert (item.kind, item.about) == ("base", "main")
    assert "3 branches wait" in item.why


def test_an_agent_that_waits_for_nothing_is_shown(hive: Scene) -> None:
    bee = hive.agent("bee", add(hive.db, "Write the parser"))
    [item] = hive.items()
    assert (item.kind, item.who, item.about) == ("idle", "bee", "Write the parser")
    assert any(command.startswith("rook task submit ") for command in item.commands)
    hive.send(None, "bee", "go on")
    assert hive.items() == []  # it has mail, which wakes it
    mail_ops.check(hive.ctx(bee))
    assert hive.kinds() == ["idle"]


def test_an_agent_whose_task_is_cancelled_or_deleted_waits_to_be_stopped(hive: Scene) -> None:
    task = add(hive.db, "Write the parser")
    hive.agent("bee", task, "working")
    assert hive.items() == []
    hive.set("tasks", task, state="CANCELLED")
    [item] = hive.items()
    assert (item.kind, item.who, item.commands[:2]) == (
        "cancelled",
        "bee",
        ("rook stop bee", f"rook task reopen {handle(task)}"),
    )
    for _ in range(2):
        with hive.db.write():
            publish(hive.db, "task.cancelled", task, {}, actor="human", at=NOW)
        service.acknowledge(hive.ctx(), [hive.items()[0].key])
        assert hive.items() == []
    with hive.db.write():
        publish(hive.db, "task.cancelled", task, {}, actor="human", at=NOW)
    hive.agent("wasp", "task_" + "0" * 26)
    assert [(item.kind, "deleted" in item.why) for item in hive.items()] == [("cancelled", False), ("cancelled", True)]


def test_an_agent_that_has_asked_a_living_one_waits_for_that(hive: Scene) -> None:
    queen = hive.agent("queen", None, "working")
    bee = hive.agent("bee", None, parent="queen")
    assert hive.kinds() == ["idle"]
    hive.send(bee, "queen", "which?", type="question")
    assert hive.items() == []
    hive.set("sessions", queen.session_id, state="ended", outcome="stopped")
    [item] = hive.items()
    assert (item.kind, item.why) == ("idle", "it has asked queen, who has ended, and nothing will wake it")


@pytest.mark.parametrize("state", ["PENDING_REVIEW", "APPROVED", "COMPLETED"])
def test_an_agent_that_handed_in_does_not_wait_for_nothing(hive: Scene, state: str) -> None:
    task = add(hive.db)
    hive.agent("bee", task)
    hive.set("tasks", task, state=state)
    assert "idle" not in hive.kinds()


def test_a_lead_waits_for_its_agents(hive: Scene) -> None:
    hive.agent("queen")
    hive.agent("bee", None, "working", parent="queen")
    assert hive.items() == []


def test_a_task_in_review_waits_for_a_person_unless_a_lead_is_there(hive: Scene) -> None:
    task = add(hive.db, "Write the parser")
    hive.set("tasks", task, state="PENDING_REVIEW", branch="rook/bee")
    assert hive.kinds() == ["review"]
    queen = hive.agent("queen", None, "working")
    hive.agent("bee", task, "ended", parent="queen", outcome="completed")
    assert hive.items() == []
    hive.set("sessions", queen.session_id, state="ended", outcome="completed")
    assert hive.kinds() == ["review"]
    entry = hive.fail("rook/bee", GATE, task_id=task)
    assert hive.kinds() == ["gate"]  # which says more of the same task
    with hive.db.write():
        merges.change(hive.db, entry, "retry", actor="human", at=HOUR_LATER)
    assert hive.kinds() == ["landing"]  # if a merger takes it


def test_work_that_is_handed_in_again_comes_back_though_no_commit_is_new(hive: Scene) -> None:
    task = add(hive.db, "Write the parser")
    hive.set("tasks", task, state="PENDING_REVIEW", branch="rook/bee", commit_id="b" * 40, start_commit="a" * 40)
    for _ in range(2):
        with hive.db.write():
            hive.db.execute(
                "INSERT INTO reviews (task_id, action, comment, actor, at) VALUES (?, 'submitted', '', 'bee', ?)",
                (task, NOW),
            )
        [item] = hive.items()
        service.acknowledge(hive.ctx(), [item.key])
        assert hive.items() == []


def test_what_is_approved_waits_until_it_is_landed(hive: Scene) -> None:
    task = add(hive.db, "Write the parser")
    hive.set("tasks", task, state="PENDING_REVIEW", branch="rook/bee", commit_id="b" * 40, start_commit="a" * 40)
    service.acknowledge(hive.ctx(), [f"review:{task}.{'b' * 40}"])
    hive.set("tasks", task, state="APPROVED")
    [item] = hive.items()
    assert (item.kind, item.command) == ("review", "rook merge --branch rook/bee")
    hive.set("tasks", task, state="COMPLETED")
    assert hive.items() == []


def test_work_without_a_commit_is_sent_back_or_completed_by_word(hive: Scene) -> None:
    task = add(hive.db)
    short = task[-6:].lower()
    hive.set("tasks", task, state="PENDING_REVIEW", branch="rook/bee", commit_id="a" * 40, start_commit="a" * 40)
    [item] = hive.items()
    assert "without a commit" in item.why
    assert item.command == f'rook review request-changes {short} "…"'
    assert f"rook review approve {short}" in item.commands
    hive.set("tasks", task, state="APPROVED")
    assert hive.items()[0].command == f"rook task complete {short}"


def test_a_rebase_that_no_agent_works_on_waits_for_a_person(hive: Scene) -> None:
    task = add(hive.db)
    bee = hive.agent("bee", task, "working")
    hive.set("tasks", task, state="NEEDS_REBASE", branch="rook/bee", assignee="bee")
    assert hive.items() == []
    hive.set("sessions", bee.session_id, state="waiting")
    assert hive.kinds() == ["idle"]
    hive.set("sessions", bee.session_id, state="ended", outcome="stopped", ended_at=NOW)
    [item] = hive.items()
    assert (item.kind, item.command) == ("review", 'rook resume bee "Rebase your branch onto its base."')


def test_what_a_living_lead_has_handed_over_is_the_persons(hive: Scene) -> None:
    task = add(hive.db)
    queen = hive.agent("queen", None, "waiting")
    hive.agent("bee", task, "ended", parent="queen", outcome="completed")
    hive.agent("fly", None, "working", parent="queen")
    hive.set("tasks", task, state="PENDING_REVIEW", branch="rook/bee")
    assert hive.items() == []
    ready = {"branch": "rook/bee", "task_id": task}
    hive.send(queen, "human", "bee is ready", type="merge_ready", payload=ready)
    assert hive.kinds() == ["review"]
    with hive.db.write():
        hive.db.execute(
            "INSERT INTO reviews (task_id, action, comment, actor, at) VALUES (?, 'submitted', '', 'bee', ?)",
            (task, HOUR_LATER),
        )
    assert hive.items() == []  # it came back to its lead since


def test_a_lead_that_handed_work_over_is_idle_once_that_has_landed(hive: Scene) -> None:
    task = add(hive.db)
    queen = hive.agent("queen")
    hive.agent("bee", task, "ended", parent="queen", outcome="completed")
    hive.set("tasks", task, state="APPROVED", branch="rook/bee")
    hive.send(queen, "human", "bee is ready", type="merge_ready", payload={"branch": "rook/bee", "task_id": task})
    assert hive.kinds() == ["review"]
    hive.set("tasks", task, state="COMPLETED")
    assert hive.kinds() == ["idle"]


def test_a_task_that_an_agent_gave_up_as_failed_waits_for_a_person(hive: Scene) -> None:
    mine, its, leads = add(hive.db, "Mine"), add(hive.db, "Its"), add(hive.db, "Its lead's")
    queen = hive.agent("queen", None, "working")
    hive.agent("bee", its, "ended", outcome="completed")
    hive.agent("fly", leads, "ended", outcome="completed", parent="queen")
    for task, actor in ((mine, "human"), (its, "bee"), (leads, "fly")):
        lifecycle.fail(hive.db, task, Author(actor, NOW), reason="it cannot be done")
    [item] = hive.items()
    assert (item.kind, item.who, item.about) == ("failed", "bee", "Its")
    assert "it cannot be done" in item.why
    assert item.command == f"rook task reopen {its[-6:].lower()}"
    hive.set("sessions", queen.session_id, state="ended", outcome="stopped", ended_at=NOW)
    assert len(hive.items()) == 2
    service.acknowledge(hive.ctx(), [item.handle])
    lifecycle.reopen(hive.db, its, Author("human", NOW))
    lifecycle.fail(hive.db, its, Author("bee", NOW), reason="again")
    assert "again" in " ".join(item.why for item in hive.items())


def test_an_agent_that_is_held_waits_for_nothing_but_its_handback(hive: Scene) -> None:
    bee = hive.agent("bee")
    hive.set("sessions", bee.session_id, hold='{"by": "human", "kind": "paused", "at": "2026-01-31T12:00:00.000Z"}')
    assert hive.items() == []


def give_up(hive: Scene, key: str, count: int = 8, at: str = NOW) -> None:
    with hive.db.write():
        hive.db.execute("INSERT OR REPLACE INTO loop_failures VALUES (?, ?, 0, 'no room', ?, '')", (key, count, at))


def test_an_action_that_the_loop_gave_up_waits_unless_its_agent_is_gone(hive: Scene) -> None:
    bee = hive.agent("bee", None, "working")
    give_up(hive, f"start turn {bee.session_id}")
    give_up(hive, "finish main", 7)
    [item] = hive.items()
    assert (item.kind, item.about, item.command) == ("action", "start turn bee", "rook loop run")
    assert "no room" in item.why
    hive.set("sessions", bee.session_id, state="ended", outcome="stopped", swept_at=NOW)
    assert hive.items() == []


def test_what_is_acknowledged_comes_back_when_something_new_happens(hive: Scene) -> None:
    entry = hive.fail("g", GATE)
    [item] = hive.items()
    [done] = service.acknowledge(hive.ctx(), [item.handle])
    assert (done.state, hive.items()) == (ACKNOWLEDGED, [])
    with hive.db.write():
        queued = merges.change(hive.db, entry, "retry", actor="human", at=HOUR_LATER)
        merges.change(hive.db, queued, "fail", actor="human", at=HOUR_LATER, kind=GATE, reason="again", attempts=2)
    assert hive.kinds() == ["gate"]
    bee = hive.agent("bee")
    service.acknowledge(hive.ctx(), [bee.session_id])
    assert "idle" not in hive.kinds()
    hive.end_turn(hive.begin_turn(bee))
    assert "idle" in hive.kinds()


def test_snoozed_is_away_until_its_time(hive: Scene) -> None:
    hive.fail("g", GATE)
    key = hive.items()[0].key
    [item] = service.snooze(hive.ctx(), [key], "30m")
    assert (item.state, item.until) == (SNOOZED, "2026-01-31T12:30:00.000Z")
    assert hive.items() == []
    assert service.count_open(hive.ctx(now=LATER)) == 0
    assert service.count_open(hive.ctx(now=HOUR_LATER)) == 1
    [shown] = next(inbox_ops.inbox(hive.ctx(), all=True)).items
    assert shown.state == SNOOZED
    service.reopen(hive.ctx(), [key])
    assert hive.kinds() == ["gate"]


def test_what_is_put_away_is_counted_above_it(hive: Scene) -> None:
    hive.fail("g", GATE)
    service.acknowledge(hive.ctx(), [hive.items()[0].key])
    hive.fail("h", GATE)
    assert hive.rook("inbox", "--all").out.startswith("1 thing waits for you.")
    service.acknowledge(hive.ctx(), [hive.items()[-1].key])
    assert hive.rook("inbox").out.startswith("Nothing waits for you.")
    assert hive.rook("inbox", "--all").out.startswith("2 things are put away; nothing else waits for you.")


def test_what_cannot_be_put_away_is_refused_and_nothing_changes(hive: Scene) -> None:
    hive.fail("g", GATE)
    key = hive.items()[0].key
    for wrong in ("nope", "", "gate:mrg_1", "x" * 5000):
        with pytest.raises(NoSuchItem):
            service.acknowledge(hive.ctx(), [key, wrong])
    with pytest.raises(InvalidInput):
        service.snooze(hive.ctx(), [key], "soon")
    with pytest.raises(InvalidState):
        service.reopen(hive.ctx(), [key])
    assert hive.kinds() == ["gate"]
    assert store.marks(hive.db) == {}


def test_a_text_that_fits_two_items_names_neither(hive: Scene) -> None:
    items = [
        Item(key=f"gate:{n}", kind="gate", id=f"mrg_{n}SAME", who="", about="", why="", since=NOW, commands=("x",))
        for n in "12"
    ]
    with pytest.raises(AmbiguousKey):
        model.find(items, "same")
    assert model.find(items, "1same").id == "mrg_1SAME"


def test_marks_of_what_is_settled_are_forgotten(hive: Scene) -> None:
    hive.fail("a", GATE)
    hive.fail("b", GATE)
    first, second = (item.key for item in hive.items())
    service.acknowledge(hive.ctx(), [first])
    settled = next(entry for entry in merges.select(hive.db) if first.startswith(f"gate:{entry.id}"))
    with hive.db.write():
        merges.change(hive.db, settled, "cancel", actor="human", at=HOUR_LATER)
    service.acknowledge(hive.ctx(), [second])
    assert store.marks(hive.db).keys() == {second}


def test_urgent_comes_first_then_what_holds_up_more_then_what_waits_longest(hive: Scene) -> None:
    bee = hive.agent("bee", None, "working")
    hive.fail("g", GATE)
    hive.crash("wasp", None)
    hive.send(bee, "human", "later", type="question", priority="low")
    hive.send(bee, "human", "first", type="question")
    hive.send(bee, "human", "second", type="question")
    hive.send(bee, "human", "now", type="error", priority="urgent")
    assert [item.why.split(" ")[0] for item in hive.items()] == ["now", "first", "second", "the", "crashed:", "later"]


def test_hostile_texts_stay_on_their_line(hive: Scene) -> None:
    bee = hive.agent("bee", add(hive.db, "two\nlines\x1b[2J"), "working")
    hive.send(bee, "human", "rm -rf\n\x1b]0;x\x07now", type="question")
    [item] = hive.items()
    assert "\n" not in item.why + item.about
    assert "\x1b" not in item.why + item.about


def test_an_agent_has_no_inbox(hive: Scene) -> None:
    bee = hive.agent("bee")
    for words in (("inbox",), ("inbox", "ack", "x")):
        assert hive.rook(*words, as_=bee).status == 1


def test_a_long_history_costs_nothing(hive: Scene) -> None:
    """Every query begins with what is wrong: none reads all messages, sessions, merges or tasks."""
    queries: list[tuple[str, Any]] = []
    ask = hive.db.all

    def noted(sql: str, values: Any = ()) -> list[Any]:
        queries.append((sql, values))
        return ask(sql, values)

    hive.db.all = noted  # type: ignore[method-assign]
    for query in (store.asked, store.broken, store.failed, store.stuck, store.queued, store.stray, store.in_review):
        query(hive.db)
    plans = [row[-1] for sql, values in queries for row in ask(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert len(queries) == 7
    small = ("merges_stuck", "merges_open", "sessions_broken")
    assert [plan for plan in plans if plan.startswith("SCAN") and not plan.endswith(small)] == []
    for index in ("messages_to_answer", "sessions_broken", "merges_stuck", "tasks_by_state"):
        assert any(index in plan for plan in plans), plans
