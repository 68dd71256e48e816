"""The command that each item names is run, and the item is gone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from den import Den
from merge.yard import Yard
from support import wait_until


class Desk:
    """What a person sees and does at the terminal."""

    def __init__(self, place: Den | Yard) -> None:
        self.rook = place.rook

    def items(self) -> dict[str, dict[str, Any]]:
        """What waits, by kind."""
        return {item["kind"]: item for item in self.rook.json("inbox").data["items"]}

    def settle(self, kind: str, *more: str) -> None:
        """Run the command of an item as it is shown."""
        words = shlex.split(self.items()[kind]["commands"][0].replace("…", "8080"))
        done = self.rook(*words[1:], *more)
        assert done.status == 0, (words, done)


@pytest.mark.slow
def test_what_agents_leave_to_a_person_is_settled_by_its_command(repo: Path) -> None:
    den = Den(repo)
    desk = Desk(den)
    ask = [{"mail": {"to": "human", "type": "question", "subject": "Which port?", "body": "8080?"}}, {"wait": "mail"}]
    done = {"mail": {"to": "{parent}", "type": "worker_done", "subject": "Done"}}
    den.sling(den.task("Ask", [*ask, done]), "--name", "ask")
    den.sling(den.task("Crash", [{"crash": 3}]), "--name", "crash")
    den.sling(den.task("Idle", [{"wait": "mail"}, done]), "--name", "idle")
    den.sling(den.task("Work", [{"edit": {"path": "a.txt", "text": "a"}}, {"commit": "a"}, done]), "--name", "work")
    den.wait_for("ask", "waiting")
    den.wait_for("crash", "crashed")
    den.wait_for("idle", "waiting")
    den.wait_for("work", "completed")
    items = desk.items()
    assert items.keys() == {"question", "crash", "idle", "review"}
    assert [item["who"] for item in items.values()] == ["ask", "crash", "idle", "work"]

    shown = den.rook("inbox").out.decode()
    assert "4 things wait for you." in shown
    assert max(map(len, shown.splitlines())) <= 80
    opened = den.rook("inbox", "show", items["question"]["handle"]).out.decode()
    assert "8080?" in opened
    before = den.rook.count_events()
    assert desk.items().keys() == items.keys()
    assert den.rook.count_events() == before  # looking changes nothing

    desk.settle("review")
    assert "review" not in desk.items()
    assert git(den.folder, "show", "main:a.txt") == "a"
    desk.settle("question")
    desk.settle("idle")
    wait_until(lambda: {"question", "idle"}.isdisjoint(desk.items()), 30)
    desk.settle("crash")
    wait_until(lambda: "crash" not in desk.items() or desk.items()["crash"]["id"] != items["crash"]["id"], 30)


@pytest.mark.slow
def test_work_that_nobody_takes_further_is_settled_by_its_command(repo: Path) -> None:
    den = Den(repo)
    desk = Desk(den)
    done = {"mail": {"to": "{parent}", "type": "worker_done", "subject": "Done"}}
    fails = [{"task": ["fail", "{task}", "--reason", "it cannot be done"]}, done]
    den.sling(den.task("Fail", fails), "--name", "fail")
    den.sling(den.task("Work", [{"edit": {"path": "a.txt", "text": "a"}}, {"commit": "a"}, done]), "--name", "work")
    den.sling(den.task("Nothing", [done]), "--name", "nothing")
    for name in ("fail", "work", "nothing"):
        den.wait_for(name, "completed")
    review = {item["who"]: item for item in den.rook.json("inbox").data["items"] if item["kind"] == "review"}
    assert "it cannot be done" in desk.items()["failed"]["why"]
    assert "without a commit" in review["nothing"]["why"]
    desk.settle("failed")
    assert "failed" not in desk.items()

    for name in ("work", "nothing"):
        den.rook("review", "approve", name)
    commands = [shlex.split(item["commands"][0])[1:] for item in den.rook.json("inbox").data["items"]]
    assert [words[:2] for words in commands] == [["merge", "--branch"], ["task", "complete"]]
    for words in commands:
        assert den.rook(*words).status == 0
    assert desk.items() == {}
    assert git(den.folder, "show", "main:a.txt") == "a"


@pytest.mark.slow
def test_what_could_not_land_is_settled_by_its_command(repo: Path) -> None:
    yard = Yard(repo)
    desk = Desk(yard)
    yard.settings("", "! test -e bad.txt")
    yard.branch("bad", bad_txt="x\n")
    yard.branch("conflict", a_txt="theirs\n")
    yard.branch("blocked", b_txt="b\n")
    yard.commit(a_txt="ours\n")
    yard.write(b_txt="mine, and not committed\n")
    for branch in ("bad", "conflict", "blocked"):
        yard.merge("--branch", branch)
    items = desk.items()
    assert items.keys() == {"gate", "conflict", "landing"}
    assert [item["about"] for item in items.values()] == ["conflict", "bad", "blocked"]

    (yard.folder / "b.txt").unlink()
    desk.settle("landing")
    assert "landing" not in desk.items()
    assert yard.show("b.txt") == "b"
    desk.settle("gate")
    assert "gate" not in desk.items()

    desk.settle("conflict")
    [item] = [item for item in desk.items().values() if item["kind"] == "conflict"]
    assert item["commands"][0].endswith("--done")
    place = Path(item["why"].rpartition(" ")[2])
    (yard.folder / place / "a.txt").write_text("both\n")
    git(yard.folder / place, "commit", "-qam", "resolve")
    desk.settle("conflict", "--accept-loss")
    assert "conflict" not in desk.items()
    assert yard.show("a.txt") == "both"


@pytest.mark.slow
def test_a_base_that_fails_its_gate_is_shown_once_and_landing_it_again_settles_it(repo: Path) -> None:
    yard = Yard(repo)
    desk = Desk(yard)
    yard.commit(bad_txt="x\n")
    yard.settings("", "echo broken; ! test -e bad.txt")
    yard.branch("one", one_txt="1\n")
    yard.branch("two", two_txt="2\n")
    yard.rook("merge", "enqueue", "one", "two")
    yard.rook("merge", "run")
    items = desk.items()
    assert items.keys() == {"base"}
    assert "2 branches wait" in items["base"]["why"]
    assert "broken" in yard.rook("inbox", "show", items["base"]["handle"]).out.decode()
    yard.commit(bad_txt=None)
    desk.settle("base")
    assert desk.items() == {}
    assert "Nothing waits for you." in yard.rook("inbox").out.decode()
