"""Who calls is proved once, by the socket, the token or the line of parents; nothing overrides it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_rows import Agent
from rookery.base.call import Call, serving
from rookery.config.environ import read_environ
from rookery.ops.caller import ForgedSender
from rookery.ops.context import Context
from rookery.processes import proctable
from support import child_environ, rook_argv, wait_until

on_linux = pytest.mark.skipif(not proctable.has_proc(), reason="without /proc parents are not looked at")


@pytest.fixture
def ada(project: Path) -> Agent:
    return Agent(project, "ada")


@pytest.fixture
def bee(project: Path) -> Agent:
    return Agent(project, "bee")


def serve(env: dict[str, str], *, session_id: str | None = None, pid: int | None = None) -> Any:
    """The caller's name as the thread that serves the call sees it, or the error."""
    results: list[Any] = []

    def work() -> None:
        streams = (io.StringIO(), io.StringIO(), io.StringIO())
        call = Call(
            environ=env,
            cwd="/",
            umask=0o22,
            pid=os.getpid() if pid is None else pid,
            streams=streams,
            session_id=session_id,
        )
        with serving(call):
            ctx = Context(cwd="/", environ=read_environ(env))
            try:
                results.append(ctx.actor)
            except ForgedSender as error:
                results.append(error)
            finally:
                ctx.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return results[0]


def test_whose_socket_it_is_says_who_calls(ada: Agent, bee: Agent) -> None:
    root = {"ROOKERY_ROOT": str(bee.root), "HOME": "/nowhere"}
    assert serve(root, session_id=bee.session_id) == "bee"
    for env in (ada.env, {**bee.env, "ROOKERY_TOKEN": "wrong"}, {**root, "ROOKERY_AGENT": "human"}):
        assert serve({"HOME": "/nowhere", **env}, session_id=bee.session_id) == "bee"


def test_the_socket_of_an_ended_agent_identifies_no_caller(bee: Agent) -> None:
    bee.end()
    result = serve({"ROOKERY_ROOT": str(bee.root), "HOME": "/nowhere"}, session_id=bee.session_id)
    assert isinstance(result, ForgedSender)


def test_at_the_projects_socket_the_token_proves_it(ada: Agent, bee: Agent) -> None:
    assert serve({"HOME": "/nowhere", **bee.env}) == "bee"
    assert isinstance(serve({"HOME": "/nowhere", **bee.env, "ROOKERY_AGENT": "ada"}), ForgedSender)


@on_linux
def test_at_the_projects_socket_the_calling_process_is_looked_at(bee: Agent) -> None:
    plain = {"ROOKERY_ROOT": str(bee.root), "HOME": "/nowhere"}
    assert serve(plain) == "human"
    child = subprocess.Popen(["/bin/cat"], env={"ROOKERY_SESSION": "ses_1"}, stdin=subprocess.PIPE)
    try:
        wait_until(lambda: "ROOKERY_SESSION=ses_1" in proctable.environ_of(child.pid))  # before its exec it has ours
        refusal = serve(plain, pid=child.pid)
        assert isinstance(refusal, ForgedSender)
        assert "ses_1" in refusal.message
    finally:
        child.communicate()
    gone = serve(plain, pid=child.pid)
    assert isinstance(gone, ForgedSender)
    assert "has ended" in gone.message


def test_it_is_proved_once(bee: Agent) -> None:
    ctx = Context(cwd=str(bee.root), environ=read_environ({"HOME": "/nowhere", **bee.env}))
    assert ctx.caller is ctx.caller
    assert (ctx.caller.role, ctx.caller.task_id, ctx.caller.parent) == ("builder", bee.task, "human")
    ctx.close()


def test_a_person_needs_no_project(tmp_path: Path) -> None:
    ctx = Context(cwd=str(tmp_path), environ=read_environ({"HOME": "/nowhere"}))
    assert ctx.actor == "human"


_UNSET = "env -u ROOKERY_AGENT -u ROOKERY_TOKEN -u ROOKERY_SESSION -u ROOKERY_TURN -u ROOKERY_ROOT"


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        f'{_UNSET} "$@"; exit $?',
        f'{_UNSET} sh -c \'"$@"; exit $?\' sh "$@"; exit $?',
        'env -i PATH="$PATH" HOME="$HOME" PYTHONPATH="$PYTHONPATH" "$@"; exit $?',
        f'{_UNSET} ROOKERY_AGENT=human "$@"; exit $?',
        f'{_UNSET} ROOKERY_RUNNER= ROOKERY_SESSION= "$@"; exit $?',
    ],
)
@pytest.mark.parametrize("mark", ["ROOKERY_SESSION", "ROOKERY_RUNNER"])
def test_a_child_of_an_agent_that_drops_its_variables_is_no_person(project: Path, way: str, mark: str) -> None:
    words = [str(word) for word in rook_argv("task", "create", "more", "--json")]
    done = subprocess.run(
        ["/bin/sh", "-c", way, "sh", *words],
        cwd=project,
        env=child_environ({mark: "ses_gone"}),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1, done
    error = json.loads(done.stdout)["error"]
    assert (error["code"], "ses_gone" in error["message"]) == ("forged_sender", True)


@on_linux
@pytest.mark.slow
def test_a_person_may_start_it_by_whatever_means(project: Path) -> None:
    words = [str(word) for word in rook_argv("task", "create", "more", "--json")]
    way = 'setsid sh -c \'"$@"\' sh "$@"; exit $?'
    done = subprocess.run(
        ["/bin/sh", "-c", way, "sh", *words], cwd=project, env=child_environ(), capture_output=True, check=False
    )
    assert done.returncode == 0, done


@on_linux
def test_the_line_of_parents_ends_above_us() -> None:
    line = proctable.lineage(os.getpid())
    assert line[:2] == [os.getpid(), os.getppid()]
    assert proctable.lineage(2**22 + 1) == []
    script = (
        "import sys; from rookery.processes import proctable; print(proctable.lineage(__import__('os').getpid())[1])"
    )
    done = subprocess.run([sys.executable, "-c", script], env=child_environ(), capture_output=True, check=True)
    assert int(done.stdout) == os.getpid()
