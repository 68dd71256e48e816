"""What is the scripted runtime's own: every step, and what it remembers between turns and after a kill."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from conftest import git
from process_tools import Mark, wait_until, written_pid
from rookery.agents.reservation import Request, reserve
from rookery.base.errors import InvalidInput
from rookery.config.environ import read_environ
from rookery.config.layout import FOLDER
from rookery.config.loader import load_config
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.processes import proctree
from rookery.processes.proctree import end_tree, is_alive
from rookery.runtimes import model, scripted
from rookery.runtimes.model import Launch
from rookery.runtimes.scripted_agent.memory import Memory
from rookery.terminal.tmux import Tmux
from support import add

from .contract import Played, finish_turn, play_turn, start_turn


class Actor:
    """An agent with a script."""

    def __init__(self, repo: Path, mark: Mark) -> None:
        self.repo = repo
        self.mark = mark
        self.folder = repo.parent / "session"
        self.launch = Launch("ada", "builder", str(repo), str(self.folder), "big", None, {}, "task_1", "eve")

    def follow(self, script: str) -> Actor:
        """Give it a script."""
        path = self.repo.parent / "script.yaml"
        path.write_text(script)
        self.launch = self.launch.replace(settings={"script": str(path)})
        scripted.prepare(self.launch)
        return self

    def turn(self) -> Played:
        """Take a turn to its end."""
        return play_turn(scripted, self.launch, "Go on.", self.mark)

    def texts(self) -> list[str]:
        """What it says in a turn that goes well."""
        played = self.turn()
        assert played.status == 0, played
        return [event.data["text"] for event in played.of(model.TEXT)]


@pytest.fixture
def actor(repo: Path, mark: Mark) -> Actor:
    return Actor(repo, mark)


def test_names_are_filled_in_and_other_braces_left_alone(actor: Actor) -> None:
    actor.follow('- say: "{agent} {role} {task} {parent} {turn} {worktree} {other} {} {{agent}}"')
    assert actor.texts() == [f"ada builder task_1 eve 1 {actor.repo} {{other}} {{}} {{ada}}"]


def test_edits_of_every_kind(actor: Actor) -> None:
    actor.follow(
        """
- edit: {path: a/new.txt, text: "one\\n"}
- edit: {path: a/new.txt, append: "two\\n"}
- edit: {path: a/new.txt, replace: ["one", "1"]}
- edit: {path: log.txt, append: "begun"}
- edit: {path: log.txt, replace: ["absent", "x"]}
- say: never
"""
    )
    played = actor.turn()
    assert (actor.repo / "a" / "new.txt").read_text() == "1\ntwo\n"
    assert [event.data["change"] for event in played.of(model.FILE)] == ["created", "modified", "modified", "created"]
    assert played.status == 1
    assert played.of(model.ERROR)[0].data["message"] == "step 5 (edit): log.txt does not hold 'absent'"
    (actor.repo / "log.txt").write_text("absent")
    assert actor.texts() == ["never"]


def test_tools_tell_how_they_went(actor: Actor) -> None:
    played = actor.follow("- run: echo out; echo err >&2; exit 3\n- commit: Nothing to commit\n- say: further").turn()
    shell, commit = played.of(model.TOOL)
    assert shell.data["input"] == {"command": "echo out; echo err >&2; exit 3"}
    assert shell.data["output"] == "out\nerr\n"
    assert shell.data["ok"] is False
    assert shell.data["duration_ms"] >= 0
    assert commit.data["ok"] is False
    assert played.status == 0


def test_it_calls_rook_as_any_agent_does(actor: Actor) -> None:
    (actor.repo / FOLDER).mkdir()
    db = Database.create(database_path(str(actor.repo)))
    ctx = Context.at(str(actor.repo), db, load_config(None, read_environ({}), {}).config)
    own = add(db, "its own")
    session = reserve(ctx, Request(own, "builder", "human", "0" * 40, name="ada", mode="tmux"))
    token = (actor.repo / FOLDER / "sessions" / session.id / "token").read_text()
    db.close()
    actor.follow(f'- task: [create, "By {{agent}}", --parent, {own}]\n- rook: [task, list]\n- task: [get, nothing]')
    actor.mark.env |= {"ROOKERY_ROOT": str(actor.repo), "ROOKERY_AGENT": "ada", "ROOKERY_TOKEN": token}
    actor.mark.env["ROOKERY_SESSION"] = session.id
    played = actor.turn()
    created, listed, refused = played.of(model.TOOL)
    assert json.loads(created.data["output"])["data"]["title"] == "By ada"
    assert {task["title"] for task in json.loads(listed.data["output"])["data"]} == {"its own", "By ada"}
    assert created.data["name"] == "rook"
    assert created.data["input"]["args"] == ["task", "create", "By ada", "--parent", own]
    assert refused.data["ok"] is False
    assert played.status == 0


def test_tokens_are_recorded_with_the_model_of_the_launch(actor: Actor) -> None:
    played = actor.follow("- spend: {input: 5}\n- spend: {output: 1, model: small}").turn()
    first, second = played.of(model.USAGE)
    assert first.data == {"model": "big", "input": 5, "output": 0, "cache_read": 0, "cache_write": 0}
    assert second.data["model"] == "small"


def test_a_turn_that_was_killed_goes_on_at_its_step(actor: Actor) -> None:
    actor.follow("- say: once\n- run: echo x >> tries; echo $$ > at.pid; test -e free || sleep 300\n- say: after")
    child = start_turn(scripted, actor.launch, "Go.", actor.mark)
    written_pid(actor.repo / "at.pid")
    assert end_tree(child.identity, actor.mark.pair, 0) == []
    assert finish_turn(scripted, child).status == -signal.SIGKILL
    (actor.repo / "free").touch()
    assert actor.texts() == ["after"]
    assert (actor.repo / "tries").read_text() == "x\nx\n"


def test_what_ends_itself_goes_on_after_it(actor: Actor) -> None:
    actor.follow("- crash: 7\n- signal: KILL\n- signal: SIGTERM\n- fail: no tokens\n- say: still here")
    assert [actor.turn().status for _ in range(4)] == [7, -9, -15, 1]
    assert actor.texts() == ["still here"]
    assert actor.turn().of(model.RESULT)[0].data == {"text": "There is nothing left to do.", "ok": True}


def test_it_hangs_until_it_is_ended_and_stays_stubborn(actor: Actor) -> None:
    actor.follow("- stubborn: true\n- run: touch up\n- hang: true")
    for turn in (1, 2):
        child = start_turn(scripted, actor.launch, "Go.", actor.mark)
        wait_until(partial(lambda turn: turn == Memory(actor.launch.folder).turn, turn))
        wait_until((actor.repo / "up").exists)
        assert proctree.send(child.identity, signal.SIGTERM)
        assert proctree.send(child.identity, signal.SIGINT)
        assert is_alive(child.identity)
        assert end_tree(child.identity, None, 0.1) == []
        assert finish_turn(scripted, child).status == -signal.SIGKILL


def test_a_child_outlives_the_turn_in_a_session_of_its_own(actor: Actor) -> None:
    actor.follow("- child: echo $$ > child.pid; exec sleep 300\n- say: gone")
    assert actor.texts() == ["gone"]
    child = written_pid(actor.repo / "child.pid")
    assert os.getsid(child.pid) == child.pid
    assert actor.mark.carriers() == [child]
    assert end_tree(None, actor.mark.pair, 0) == []


def test_an_interrupt_spares_what_runs_in_the_background(actor: Actor) -> None:
    actor.follow("- child: echo $$ > child.pid; exec sleep 300\n- run: echo $$ > run.pid; exec sleep 300")
    turn = start_turn(scripted, actor.launch, "Go.", actor.mark)
    child, running = written_pid(actor.repo / "child.pid"), written_pid(actor.repo / "run.pid")
    assert proctree.send(turn.identity, signal.SIGINT)
    assert finish_turn(scripted, turn).status == 130
    wait_until(lambda: not is_alive(running))
    assert actor.mark.carriers() == [child]
    assert end_tree(None, actor.mark.pair, 0) == []


def test_the_script_is_the_one_that_it_began_with(actor: Actor) -> None:
    actor.follow("- say: one\n- wait: mail\n- say: two")
    assert actor.texts() == ["one"]
    actor.follow("- say: other\n- say: other\n- say: other")
    assert actor.texts() == ["two"]


def test_instructions_hold_the_script_and_the_setting_goes_first(actor: Actor) -> None:
    (actor.repo / "AGENTS.md").write_text("# Do\n```rook-script\n- say: as told\n```\n")
    assert actor.texts() == ["as told"]
    (Path(actor.launch.folder) / "scripted.json").unlink()
    assert actor.follow("- say: as set").texts() == ["as set"]


def test_without_a_script_it_is_a_small_honest_worker(actor: Actor) -> None:
    scripted.prepare(actor.launch)
    played = actor.turn()
    assert (actor.repo / "ada.md").read_text() == "A note by ada, for task_1.\n"
    assert git(actor.repo, "log", "-1", "--format=%s") == "Add a note by ada"
    words = played.of(model.TOOL)[-1].data["input"]["args"]
    assert words[:2] == ["mail", "send"]
    assert "--to=eve" in words
    assert "--type=worker_done" in words


def test_a_mistake_is_told_when_it_is_prepared_and_when_it_is_met(actor: Actor) -> None:
    with pytest.raises(InvalidInput, match="step 1: there is no step `dance`"):
        actor.follow("- dance: now")
    actor.launch = actor.launch.replace(settings={"script": "nowhere.yaml"})
    with pytest.raises(InvalidInput, match="cannot read the script"):
        scripted.prepare(actor.launch)
    actor.launch = actor.launch.replace(settings={})
    (actor.repo / "AGENTS.md").write_text("```rook-script\n- crash: yes\n```\n")
    played = actor.turn()
    assert played.status == 1
    assert played.of(model.ERROR)[0].data["message"].startswith("step 1 (crash): an exit status")


def test_messages_are_seen_once_and_waited_for_in_order(tmp_path: Path) -> None:
    memory = Memory(str(tmp_path))
    first = {"id": "msg_1", "from": "eve", "type": "status"}
    second = {"id": "msg_2", "from": "bob", "type": "question"}
    assert memory.see([first, second]) == 2
    assert memory.see([first, second]) == 0
    assert memory.mail == second
    assert memory.use("eve", None)
    assert memory.mail == first
    assert not memory.use("eve", None)
    memory.save()
    again = Memory(str(tmp_path))
    assert not again.use("eve", None)
    assert again.use(None, "question")
    assert not again.use(None, None)
    assert os.listdir(tmp_path) == ["scripted.json"]


class TestTerminal:
    """The same in a terminal."""

    def begin(self, actor: Actor, tmux: Tmux, script: str) -> None:
        actor.follow(script)
        command = scripted.terminal_command(actor.launch)
        tmux.new_session("ada", str(actor.repo), command.argv, {**actor.mark.env, **command.env})
        self.ready(tmux)

    def ready(self, tmux: Tmux) -> None:
        wait_until(lambda: scripted.is_ready(tmux.capture("ada")))

    def prompt(self, tmux: Tmux, answer: str) -> None:
        tmux.send_text("ada", "go")
        tmux.enter("ada")
        wait_until(lambda: answer in tmux.capture("ada"))
        self.ready(tmux)

    def test_typed_text_can_be_deleted(self, actor: Actor, tmux: Tmux) -> None:
        self.begin(actor, tmux, "- say: begun")
        tmux.send_text("ada", "helloé")
        wait_until(lambda: tmux.capture("ada").endswith("helloé"))
        tmux.send_key("ada", "BSpace")
        wait_until(lambda: tmux.capture("ada").endswith("hello"))
        tmux.send_key("ada", "C-u")
        tmux.send_key("ada", "Up")
        tmux.send_key("ada", "Escape")
        tmux.enter("ada")
        tmux.send_text("ada", "more")
        wait_until(lambda: tmux.capture("ada").endswith("more"))
        tmux.send_key("ada", "C-c")
        wait_until(
            lambda: tmux.capture("ada").splitlines()[-1] == scripted.PROMPT
        )  # it takes a paste as one prompt again
        tmux.send_text("ada", "\n".join(f"line {n}" for n in range(400)))
        wait_until(lambda: tmux.capture("ada").endswith("line 399"))
        tmux.enter("ada")
        wait_until(lambda: "begun" in tmux.capture("ada"))
        self.ready(tmux)
        assert tmux.capture("ada", 1000).count("at work") == 1

    def test_failures_lead_back_to_the_prompt_and_exit_leaves(self, actor: Actor, tmux: Tmux) -> None:
        self.begin(actor, tmux, "- fail: no tokens\n- spend: {input: 9}")
        self.prompt(tmux, "error: no tokens")
        self.prompt(tmux, "9 tokens in")
        kinds = [json.loads(line)["type"] for line in (actor.folder / "transcript.jsonl").read_text().splitlines()]
        assert kinds == ["session", "error", "session", "usage", "result"]
        tmux.send_text("ada", "/exit")
        tmux.enter("ada")
        wait_until(lambda: tmux.list()["ada"].dead)
        wait_until(lambda: tmux.list()["ada"].exit_status == 0)

    def test_a_crash_is_seen_with_its_status(self, actor: Actor, tmux: Tmux) -> None:
        self.begin(actor, tmux, "- say: before the crash\n- crash: 9")
        tmux.send_text("ada", "go")
        tmux.enter("ada")
        wait_until(lambda: tmux.list()["ada"].dead)
        wait_until(lambda: tmux.list()["ada"].exit_status == 9)
        assert "before the crash" in tmux.capture("ada")
