"""A project with scripted agents in it: how tests of agents set the stage, wait and look."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from conftest import Rook, git
from daemons import kill_daemon_at, loops_of
from rookery.flows import loop
from rookery.processes.proctree import Identity, marked
from rookery.processes.python import module_command
from rookery.sessions.journal import find_runner
from support import IN_DAEMON, die_at, everyone, run_real_rook, wait_for_agent, wait_until
from templates import init_project


class Den:
    """A repository with a project whose agents run on scripts."""

    def __init__(self, repo: Path) -> None:
        self.folder = repo
        self.rook = Rook(repo)
        init_project(repo)
        (repo / ".rookery" / "config.local.yaml").write_text(
            "agents:\n  stop_grace: 0.3s\nprovision:\n  ports: 0\nsandbox:\n  mode: off\n"
        )

    @classmethod
    def at(cls, folder: Path) -> Den:
        """A project that is there already, such as a copy."""
        den = cls.__new__(cls)
        den.folder, den.rook = folder, Rook(folder)
        return den

    def task(self, title: str, steps: list[Any] | None = None, *more: str) -> str:
        """A task whose description is a script."""
        script = [] if steps is None else ["--description", f"```rook-script\n{yaml.safe_dump(steps)}```"]
        return str(self.rook.json("task", "create", title, *script, *more).data["id"])

    def sling(self, task: str, *more: str) -> dict[str, Any]:
        """Start an agent on a task."""
        agent: dict[str, Any] = self.rook.json("sling", task, *more).data["agents"][0]
        return agent

    def agent(self, name: str) -> dict[str, Any]:
        """An agent's present state; nothing if there never was one."""
        agents = everyone(self.rook.json("status", "--all").data)
        return next((agent for agent in agents if agent["agent"] == name), {})

    def wait_for(self, name: str, *states: str) -> dict[str, Any]:
        """Wait until an agent is in one of the states or has one of the outcomes."""
        try:
            wait_for_agent(self.rook, name, states)
        except AssertionError as error:
            raise AssertionError(f"{name} is {self.agent(name)}\n{self.logs()}") from error
        return self.agent(name)

    def logs(self) -> str:
        """The output and the activity of all agents, for the message of a failed test."""
        log = self.rook("events", "--source", "all", "--limit", "0").out.decode()
        return log + "\n".join(path.read_text() for path in self.folder.glob(".rookery/sessions/*/runner.log"))

    def mail(self, **fitting: str) -> list[dict[str, Any]]:
        """Messages, oldest first."""
        messages = self.rook.json("mail", "list", "--limit", "200").data
        return [
            message for message in reversed(messages) if all(message[key] == value for key, value in fitting.items())
        ]

    def killed(self, step: str, *words: str) -> None:
        """Run `rook` in a process that is killed right after a step."""
        ran = self.rook(*words, env={"ROOKERY_TEST_KILL": step})
        assert ran.status == -signal.SIGKILL, (step, ran)

    def killed_alone(self, step: str, *words: str) -> None:
        """The same without a daemon, so that nothing follows it up before the test says so."""
        ran = run_real_rook(self.folder, *words, env={"ROOKERY_TEST_KILL": step})
        assert ran.status == -signal.SIGKILL, (step, ran)

    def kill_loop(self, step: str) -> None:
        """Run the loop in a process, or in a daemon, that is killed right after a step."""
        if IN_DAEMON:
            kill_daemon_at(step, self.folder)
            return
        die_at(step, [*module_command("rookery.flows.loop_start"), str(self.folder)], self.folder)

    @contextmanager
    def without_loop(self) -> Iterator[None]:
        """No process runs the loop, and none begins to."""
        files: list[int] = []

        def is_taken() -> bool:
            for pid in loops_of(self.folder):
                os.kill(pid, signal.SIGKILL)
            file = loop.take_lock(str(self.folder))
            files.extend([] if file is None else [file])
            return bool(files)

        wait_until(is_taken)
        try:
            yield
        finally:
            os.close(files[0])

    def runner(self, name: str) -> Identity:
        """The process that runs an agent's turn, once there is one."""
        db = self.rook.open()
        runners: list[Identity] = []

        def is_there() -> bool:
            turn = db.value(
                "SELECT t.id FROM turns t JOIN sessions s ON s.id = t.session_id "
                "WHERE s.agent = ? AND t.state = 'running'",
                (name,),
            )
            runner = None if turn is None else find_runner(str(self.folder), turn)
            runners.extend([] if runner is None else [runner])
            return bool(runners)

        wait_until(is_there, 60)
        db.close()
        return runners[0]

    def assert_tidy(self, *, worktrees: int, branches: int) -> None:
        """The repository has this many worktrees and branches of agents, and no process is left over."""
        assert len(git(self.folder, "worktree", "list").splitlines()) == 1 + worktrees
        assert len(git(self.folder, "branch", "--list", "rook/*").splitlines()) == branches
        self.assert_no_process()

    def assert_no_process(self) -> None:
        """Nothing that an agent of this project started is alive."""
        db = self.rook.open()
        sessions = [row[0] for row in db.all("SELECT id FROM sessions")]
        db.close()
        for session in sessions:
            wait_until(lambda session=session: not marked("ROOKERY_SESSION", session), 20)  # type: ignore[misc]


DONE = {"mail": {"to": "{parent}", "type": "worker_done", "subject": "Done"}}
