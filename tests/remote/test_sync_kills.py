"""Killed or interrupted at any step, the next `rook sync` does the rest, and tells each fact once."""

from __future__ import annotations

import pytest

from conftest import git
from support import INTERRUPTS, run_interrupted

from .team import Team

pytestmark = pytest.mark.slow

_SYNC = ("upstream fetched", "sync forwarded", "sync checked", "sync moved", "sync settled", "sync recorded")
_PUSH = ("upstream fetched", "push noted", "pushed", "push recorded")


def check_synced(team: Team, theirs: str) -> None:
    yard = team.yard
    yard.wait_for_loop()
    assert team.sync().status == 0
    assert yard.main() == theirs
    assert (yard.folder / "README.md").read_text() == "theirs\n"
    assert (yard.folder / "mine.txt").read_text() == "changed\n"
    assert git(yard.folder, "status", "--porcelain").splitlines() == ["?? mine.txt"]
    assert [event["commit"] for event in team.events("remote.synced")] == [theirs]
    assert git(yard.folder, "for-each-ref", "refs/rookery/synced") == ""
    yard.assert_tidy()


def prepare(team: Team) -> str:
    (team.yard.folder / "mine.txt").write_text("changed\n")
    return team.push_theirs(README_md="theirs\n", b_txt="b\n")


@pytest.mark.parametrize("step", _SYNC)
def test_the_next_sync_finishes_what_a_killed_one_began(team: Team, step: str) -> None:
    theirs = prepare(team)
    team.yard.killed(step, "sync")
    check_synced(team, theirs)


@pytest.mark.sweep
@pytest.mark.parametrize("step", _SYNC)
def test_any_command_settles_the_checkout_after_a_killed_sync(team: Team, step: str) -> None:
    yard, before = team.yard, team.yard.main()
    theirs = prepare(team)
    yard.killed(step, "sync")
    assert yard.rook("loop", "run").status == 0
    yard.wait_for_loop()
    has_moved = step in ("sync moved", "sync settled", "sync recorded")
    assert yard.main() == (theirs if has_moved else before)
    assert git(yard.folder, "status", "--porcelain").splitlines() == ["?? mine.txt"]
    yard.assert_tidy()


@pytest.mark.sweep
@pytest.mark.parametrize("how", INTERRUPTS)
@pytest.mark.parametrize("step", _SYNC)
def test_an_interrupted_sync_leaves_nothing_half_done(team: Team, step: str, how: str) -> None:
    theirs = prepare(team)
    run_interrupted(team.yard.folder, how, step, "sync")
    assert git(team.yard.folder, "status", "--porcelain").splitlines() == ["?? mine.txt"]
    check_synced(team, theirs)


@pytest.mark.parametrize("step", _PUSH)
def test_a_push_that_was_cut_off_is_told_once(team: Team, step: str) -> None:
    yard = team.yard
    mine = yard.commit(own_txt="o\n")
    yard.killed(step, "sync", "--push")
    has_pushed = step in ("pushed", "push recorded")
    assert (team.upstream() == mine) is has_pushed
    yard.wait_for_loop()
    assert team.sync("--push").status == 0
    assert team.upstream() == mine
    assert [event["commit"] for event in team.events("remote.pushed")] == [mine]
    assert git(yard.folder, "for-each-ref", "refs/rookery/push") == ""
