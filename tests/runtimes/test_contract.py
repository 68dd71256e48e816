"""What every runtime does, with its real program as a real child."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from conftest import git
from process_tools import Mark, wait_until, written_pid
from rookery.base.errors import ProgramFailed
from rookery.processes import proctree
from rookery.processes.proctable import identity_of
from rookery.processes.proctree import end_tree, is_alive
from rookery.runtimes import model
from rookery.runtimes.model import Launch, Runtime
from rookery.runtimes.registry import RUNTIMES
from rookery.terminal.tmux import Tmux

from .contract import (
    BENCHES,
    BUSY,
    FAIL,
    GARBAGE,
    STUBBORN,
    WORK,
    Bench,
    finish_turn,
    interrupt_turn,
    play_turn,
    start_turn,
    submit,
)


@pytest.fixture(params=sorted(RUNTIMES))
def bench(request: pytest.FixtureRequest) -> Bench:
    """Every runtime in turn."""
    return BENCHES[request.param]()


@pytest.fixture
def runtime(bench: Bench) -> Runtime:
    return bench.runtime


def ready(bench: Bench, behaviour: str, repo: Path) -> Launch:
    """An agent in the repository, prepared."""
    launch = bench.launch(behaviour, repo, repo.parent / "session")
    bench.runtime.prepare(launch)
    return launch


def test_every_runtime_is_on_the_bench() -> None:
    assert set(BENCHES) == set(RUNTIMES)


def test_it_says_what_it_is(runtime: Runtime) -> None:
    assert RUNTIMES[runtime.NAME]
    assert set(runtime.MODES) <= set(model.MODES)
    assert not Path(runtime.INSTRUCTIONS).is_absolute()


def test_a_session_without_transcripts_has_used_nothing(runtime: Runtime, tmp_path: Path) -> None:
    assert list(runtime.usage_since(str(tmp_path), "")) == []
    assert list(runtime.usage_of_turn(str(tmp_path), "trn_1", lambda _turn: True)) == []


def test_a_program_that_is_there_and_one_that_is_not(bench: Bench, repo: Path) -> None:
    bench.runtime.check_installed(ready(bench, WORK, repo).settings)
    with pytest.raises(ProgramFailed) as caught:
        bench.runtime.check_installed(bench.missing)
    assert caught.value.code == "program_missing"
    assert caught.value.hint


def test_preparing_again_changes_nothing_in_the_repository(bench: Bench, repo: Path) -> None:
    launch = ready(bench, WORK, repo)
    bench.runtime.prepare(launch)
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_turn_edits_commits_and_tells_of_it(bench: Bench, repo: Path, mark: Mark) -> None:
    played = play_turn(bench.runtime, ready(bench, WORK, repo), "Do the work.", mark)
    assert played.status == 0, played
    assert (repo / "work.txt").exists()
    assert git(repo, "log", "-1", "--format=%s") == "Work"
    assert git(repo, "status", "--porcelain") == ""
    assert len(played.of(model.SESSION)) >= 1
    assert played.of(model.TEXT)
    ended = [tool.data["ok"] for tool in played.of(model.TOOL) if "ok" in tool.data]
    assert ended
    assert all(ended)
    (usage,) = played.of(model.USAGE)
    assert usage.data["input"] > 0
    assert usage.data["output"] > 0
    assert usage.data["model"]
    (result,) = played.of(model.RESULT)
    assert result.data["ok"] is True
    assert played.of(model.ERROR) == []


@pytest.mark.slow
def test_the_next_turn_goes_on_with_the_conversation(bench: Bench, repo: Path, mark: Mark) -> None:
    launch = ready(bench, WORK, repo)
    first = play_turn(bench.runtime, launch, "Do the work.", mark)
    session = first.of(model.SESSION)[0].data["id"]
    second = play_turn(bench.runtime, launch.replace(runtime_session=session), "Go on.", mark)
    assert second.status == 0
    assert {event.data["id"] for event in second.of(model.SESSION)} == {session}
    assert "again" in second.of(model.RESULT)[0].data["text"]
    assert git(repo, "rev-list", "--count", "HEAD") == "2"


@pytest.mark.slow
def test_a_conversation_that_is_not_there_is_refused(bench: Bench, repo: Path, mark: Mark) -> None:
    played = play_turn(bench.runtime, ready(bench, WORK, repo).replace(runtime_session="no-such"), "Go on.", mark)
    assert played.status != 0
    assert not (repo / "work.txt").exists()


@pytest.mark.slow
def test_a_turn_that_cannot_be_done_says_why(bench: Bench, repo: Path, mark: Mark) -> None:
    played = play_turn(bench.runtime, ready(bench, FAIL, repo), "Do the work.", mark)
    assert played.status not in (0, None)
    assert "out of tokens" in played.of(model.ERROR)[0].data["message"]
    assert not any(result.data["ok"] for result in played.of(model.RESULT))


@pytest.mark.slow
def test_an_interrupt_ends_the_turn_and_its_children(bench: Bench, repo: Path, mark: Mark) -> None:
    launch = ready(bench, BUSY, repo)
    child = start_turn(bench.runtime, launch, "Do the work.", mark)
    busy = written_pid(repo / "busy.pid")
    interrupt_turn(bench.runtime, launch, child)
    played = finish_turn(bench.runtime, child)
    assert played.status not in (0, None)
    assert not any(result.data["ok"] for result in played.of(model.RESULT))
    wait_until(lambda: not is_alive(busy))
    assert mark.carriers() == []


@pytest.mark.slow
def test_a_stubborn_one_is_ended_with_everything(bench: Bench, repo: Path, mark: Mark) -> None:
    child = start_turn(bench.runtime, ready(bench, STUBBORN, repo), "Do the work.", mark)
    busy, stray = written_pid(repo / "busy.pid"), written_pid(repo / "stray.pid")
    proctree.send(child.identity, signal.SIGINT)
    proctree.send(child.identity, signal.SIGTERM)
    assert is_alive(child.identity)
    assert end_tree(child.identity, mark.pair, 0.2) == []
    assert not is_alive(busy)
    assert not is_alive(stray)
    assert finish_turn(bench.runtime, child).status == -signal.SIGKILL


@pytest.mark.slow
def test_output_of_a_tool_is_not_taken_for_an_event(bench: Bench, repo: Path, mark: Mark) -> None:
    played = play_turn(bench.runtime, ready(bench, GARBAGE, repo), "Do the work.", mark)
    assert played.status == 0, played.last_words
    assert [result.data["text"] for result in played.of(model.RESULT)] != ["forged"]
    assert len(played.of(model.RESULT)) == 1
    assert any("forged" in tool.data.get("output", "") or tool.data.get("ok") for tool in played.of(model.TOOL))


@pytest.mark.parametrize(
    "line",
    [
        *("", "hello", "{", "[]", "null", "7", '"text"', "{}", '{"type":7}', '{"type":"text"}', "\0"),
        *('{"type":"text","text":7}', '{"type":"nothing"}', '{"type":["text"]}', '{"type":"result","ok":1}'),
        "\N{REPLACEMENT CHARACTER}" * 9,
        "[" * 100_000,
    ],
    ids=lambda line: line[:20],
)
def test_lines_that_say_nothing(runtime: Runtime, line: str) -> None:
    assert list(runtime.read_line(line)) == []


@pytest.mark.slow
def test_a_session_in_a_terminal(bench: Bench, repo: Path, mark: Mark, tmux: Tmux) -> None:
    runtime, launch = bench.runtime, ready(bench, WORK, repo)
    if model.TMUX not in runtime.MODES:
        pytest.skip(f"{runtime.NAME} runs headless only")
    assert not runtime.is_ready("")
    command = runtime.terminal_command(launch)
    tmux.new_session("ada", str(repo), command.argv, {**mark.env, **command.env})
    wait_until(lambda: runtime.is_ready(tmux.capture("ada")))
    tmux.send_text("ada", 'Do the work.\n\tIt\'s; "here".\nThe end.')
    submit(tmux, lambda: git(repo, "log", "-1", "--format=%s") == "Work")
    wait_until(lambda: runtime.is_ready(tmux.capture("ada")))
    assert "at work" in tmux.capture("ada")
    tmux.send_text("ada", "Go on.")
    submit(tmux, lambda: "again" in tmux.capture("ada"))
    wait_until(lambda: runtime.is_ready(tmux.capture("ada")))
    assert not tmux.list()["ada"].dead


@pytest.mark.slow
def test_an_interrupt_in_a_terminal_leads_back_to_the_prompt(bench: Bench, repo: Path, mark: Mark, tmux: Tmux) -> None:
    runtime, launch = bench.runtime, ready(bench, BUSY, repo)
    if model.TMUX not in runtime.MODES:
        pytest.skip(f"{runtime.NAME} runs headless only")
    command = runtime.terminal_command(launch)
    tmux.new_session("ada", str(repo), command.argv, {**mark.env, **command.env})
    pane = identity_of(tmux.list()["ada"].pid)
    wait_until(lambda: runtime.is_ready(tmux.capture("ada")))
    tmux.send_text("ada", "Do the work.")
    submit(tmux, (repo / "busy.pid").exists)
    busy = written_pid(repo / "busy.pid")
    assert not runtime.is_ready(tmux.capture("ada"))
    tmux.send_key("ada", runtime.INTERRUPT_KEY)
    wait_until(lambda: runtime.is_ready(tmux.capture("ada")))
    wait_until(lambda: not is_alive(busy))
    assert is_alive(pane)
    assert end_tree(pane, mark.pair, 0) == []
