"""What the loop decides: pure functions from facts to actions."""

from __future__ import annotations

from typing import Any

import pytest

from rookery.flows import deadlines, identities, jobs, landings, leftovers, radar, sessions
from rookery.flows.model import LONGEST_WAIT, Timer, wait_after
from rookery.flows.sessions import Driver, Facts
from rookery.processes.proctable import Identity

NOW = 1_000_000.0
_ALIVE = Driver(sessions.ALIVE, Identity(7, "x"))
_GONE = Driver(sessions.GONE, Identity(7, "x"))
_ELSEWHERE = Driver(sessions.ELSEWHERE)


def facts(**changes: Any) -> Facts:
    """A headless agent that waits, with nothing to do."""
    whole: dict[str, Any] = {
        "id": "ses_x",
        "agent": "bee",
        "mode": "headless",
        "state": "waiting",
        "step": "ready",
        "updated": NOW - 5,
        "driver": Driver(),
        "stopper": Driver(),
        "turn": "done",
        "turn_ended": NOW - 5,
        "is_run": False,
        "lost": 0,
        "mail": 0,
        "nudged": 0,
    }
    return Facts(**(whole | changes))


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, []),
        ({"mail": 4}, ["start turn"]),
        ({"state": "booting", "turn": ""}, ["start turn"]),
        ({"state": "working"}, ["start turn"]),
        ({"state": "working", "turn": "running", "is_run": True, "mail": 4}, []),
        ({"state": "working", "turn": "running"}, ["settle turn"]),
        ({"turn": "lost", "lost": 1}, ["start turn"]),
        ({"turn": "lost", "lost": 2}, []),
        ({"turn": "lost", "lost": 2, "turn_ended": NOW - 11}, ["start turn"]),
        ({"turn": "lost", "lost": 2, "turn_ended": NOW + 9999}, ["start turn"]),
        ({"turn": "lost", "lost": 3}, ["give up"]),
        ({"state": "booting", "step": "reserved", "driver": _ALIVE}, []),
        ({"state": "booting", "step": "reserved", "driver": _ELSEWHERE}, []),
        ({"state": "booting", "step": "reserved", "driver": _GONE}, ["undo sling"]),
        ({"state": "booting", "step": "reserved"}, ["undo sling"]),
        ({"stopper": _ALIVE, "mail": 4}, []),
        ({"stopper": _GONE, "turn": "running"}, ["finish stop"]),
        ({"stopper": _ELSEWHERE}, []),
        ({"stopper": _ELSEWHERE, "updated": NOW - 601}, ["finish stop"]),
        ({"mode": "tmux", "driver": _ALIVE}, []),
        ({"mode": "tmux", "driver": _ALIVE, "mail": 4}, ["speak"]),
        ({"mode": "tmux", "driver": _ALIVE, "mail": 4, "nudged": 4}, []),
        ({"mode": "tmux", "driver": _ALIVE, "mail": 4, "state": "working", "turn": "running"}, []),
        ({"mode": "tmux", "driver": _GONE, "state": "working", "turn": "running"}, ["end terminal"]),
        ({"mode": "tmux", "driver": _ELSEWHERE}, []),
        ({"state": "ended"}, ["end processes"]),
    ],
)
def test_every_state_of_a_session_has_its_action(changes: dict[str, Any], wanted: list[str]) -> None:
    plan = sessions.decide([facts(**changes)], NOW)
    assert [action.name for action in plan.actions] == wanted
    assert all(action.name in sessions.ACTIONS for action in plan.actions)


def test_without_an_environment_no_turn_begins_and_a_person_is_told_of_it_once() -> None:
    waiting = [facts(id=f"ses_{number}", mail=number, problem="it is broken") for number in (1, 2)]
    idle, ending = facts(id="ses_3", problem="it is broken"), facts(id="ses_4", turn="running", problem="it is broken")
    plan = sessions.decide([*waiting, idle, ending], NOW)
    assert [(action.name, action.subject) for action in plan.actions] == [
        ("use the environment", "project"),
        ("settle turn", "ses_4"),
    ]
    assert all(action.name in sessions.ACTIONS for action in plan.actions)


def test_a_turn_that_was_cut_off_twice_sets_a_timer() -> None:
    plan = sessions.decide([facts(turn="lost", lost=2)], NOW)
    assert plan.timers == (Timer(NOW - 5 + 10, "start another turn of bee, after 2 that were cut off"),)


def test_processes_that_have_an_agent_in_hand_are_watched_and_runners_counted() -> None:
    plan = sessions.decide(
        [facts(stopper=_ALIVE), facts(driver=_GONE), facts(state="working", turn="running", is_run=True)], NOW
    )
    assert plan.processes == (Identity(7, "x"),)
    assert plan.running == 1


def test_a_landing_is_settled_only_where_no_merger_may_live() -> None:
    held = landings.Facts("main", True, 0.0, Identity(7, "x"))
    elsewhere = landings.Facts("next", True, NOW + 5, None)
    left = landings.Facts("old", False, 0.0, None)
    plan = landings.decide([held, elsewhere, left], NOW)
    assert [(action.name, action.subject) for action in plan.actions] == [("settle landing", "old")]
    assert [timer.at for timer in plan.timers] == [NOW + 5]
    assert plan.processes == (Identity(7, "x"),)


@pytest.mark.parametrize(
    ("known", "count"),
    [
        (radar.Facts(None, False, 0), 0),
        (radar.Facts(3, False, 0), 1),
        (radar.Facts(3, True, 1), 0),
        (radar.Facts(3, False, radar.MOST_TRIES), 0),
    ],
)
def test_the_radar_is_looked_at_once_for_new_turns(known: radar.Facts, count: int) -> None:
    assert len(radar.decide(known, NOW).actions) == count


def test_waiting_doubles_up_to_five_minutes() -> None:
    assert [wait_after(number) for number in (1, 2, 3, 6, 50)] == [10, 20, 40, LONGEST_WAIT, LONGEST_WAIT]


def test_a_job_is_settled_once_it_has_ended_and_no_merger_waits_for_it() -> None:
    merger = Identity(7, "7")
    running = jobs.Facts("gate-1", "tests", is_running=True, is_left=True, owner=None)
    awaited = jobs.Facts("gate-2", "tests", is_running=False, is_left=False, owner=merger)
    left = jobs.Facts("gate-3", "tests", is_running=False, is_left=True, owner=None)
    plan = jobs.decide([running, awaited, left], NOW)
    assert [(action.name, action.subject) for action in plan.actions] == [("settle job", "gate-3")]
    assert plan.processes == (merger,)  # its end is a reason to look again
    assert plan.running == 0


def test_a_folder_goes_once_its_holder_is_gone() -> None:
    held = leftovers.Facts(leftovers.SCRATCH, "index-1", "index-1", False, Identity(7, "7"))
    elsewhere = leftovers.Facts(leftovers.CLEANING, "/a/bee", "bee", False, None)
    left = leftovers.Facts(leftovers.SCRATCH, "gate-2", "gate-2", True, None)
    cut_off = leftovers.Facts(leftovers.CLEANING, "/a/ant", "ant", True, None)
    plan = leftovers.decide([held, elsewhere, left, cut_off], NOW)
    assert [(action.name, action.subject) for action in plan.actions] == [
        ("remove scratch", "gate-2"),
        ("finish cleaning", "/a/ant"),
    ]
    assert all(action.name in leftovers.ACTIONS for action in plan.actions)
    assert (plan.timers, plan.processes, plan.running) == ((), (Identity(7, "7"),), 0)


def test_identity_files_that_are_out_of_date_are_written() -> None:
    plan = identities.decide([identities.Facts("bee", "ses_1"), identities.Facts("ant", "ses_2")], NOW)
    assert [(action.name, action.subject) for action in plan.actions] == [
        ("write identity", "bee"),
        ("write identity", "ant"),
    ]
    assert identities.decide([], NOW).actions == ()


def test_leases_are_set_back_with_a_clock_that_was_set_back() -> None:
    (action,) = deadlines.decide(deadlines.Facts(NOW + 86_400), NOW).actions
    assert action.title == "set back deadlines of leases"
    assert "by 86400 s or more" in action.why
    assert deadlines.decide(deadlines.Facts(NOW + 20), NOW).actions == ()
    assert deadlines.decide(deadlines.Facts(0.0), NOW).actions == ()
