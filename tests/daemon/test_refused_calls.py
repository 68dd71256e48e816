"""A sample of the refused actions through a real daemon and its client, as an agent outside of a sandbox calls."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest
from live import Live, client_argv
from live import live as live

from actions import Scene, make_scene
from rookery.processes.proctable import has_proc

pytestmark = pytest.mark.slow

SAMPLE = {
    "bee": [
        *("epic delete {epic}", "epic update {epic} --title x", "task update {ada.task} --title x", "doctor --fix"),
        *("task complete {ada.task}", "task block {ada.task} --by {bee.task}", "task delete {ada.task}", "gate run"),
        *("worktree rebase ada", "sling {ada.task}", "daemon stop", "init", "data export x", "mail purge --all"),
    ],
    "queen": ["task cancel {ada.task}", "epic cancel {epic}", "stop ada"],
}
ALLOWED = {
    "bee": ["task update {bee.task} --title x"],
    "queen": ["task update {drone.task} --title x", "epic update {queen.task} --title x"],
    "cora": ["task update {ada.task} --title y", "epic update {epic} --title y"],
    "": ["task update {ada.task} --title z", "epic delete {epic}"],
}


@pytest.fixture
def scene(live: Live) -> Scene:
    return make_scene(live.folder)


def test_refused_and_nothing_changed(live: Live, scene: Scene) -> None:
    live.run("task", "list")
    before = scene.state()
    for name, commands in SAMPLE.items():
        for command in commands:
            ran = live.run(*scene.words(command), "--json", env=scene.agents[name].env)
            assert ran.status == 1, ran
            assert ran.error["code"] == "not_permitted" or ran.error["code"].startswith("foreign_"), ran
            assert "`rook mail send " in ran.error["hint"]
            assert scene.state() == before
    assert live.log().count("serving") == 1


def test_who_may_succeeds(live: Live, scene: Scene) -> None:
    for name, commands in ALLOWED.items():
        for command in commands:
            env = scene.agents[name].env if name else {}
            assert live.run(*scene.words(command), "--json", env=env).status == 0, command


@pytest.mark.skipif(not has_proc(), reason="without /proc parents are not looked at")
@pytest.mark.parametrize("trick", ["env --u=ROOKERY_TOKEN", "env -i PATH=/usr/bin:/bin", "env -i setsid -w"])
def test_the_daemon_looks_at_the_parents_of_its_caller(live: Live, scene: Scene, trick: str) -> None:
    live.run("task", "list")
    before = scene.state()
    line = f"{trick} {shlex.join(client_argv(*scene.words('epic delete {epic}'), '--json'))}; exit $?"
    ran = subprocess.run(
        ["sh", "-c", line],
        cwd=live.folder,
        env=live.environ(scene.agents["bee"].env),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1, ran
    assert json.loads(ran.stdout)["error"]["code"] == "forged_sender"
    assert scene.state() == before
    assert live.log().count("serving") == 1
