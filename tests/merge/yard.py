"""A project with branches in it: how tests of landing set the stage and look."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import yaml

from conftest import Rook, git
from daemons import kill_daemon_at
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.flows.store import unseen_ends
from rookery.merge.lease import Lease
from rookery.merge.lease_store import LeaseRow
from rookery.merge.merger import Merger
from rookery.ops.context import Context
from support import IN_DAEMON, Ran, everyone, run_real_rook, wait_for_agent, wait_until
from templates import init_project


def unfenced(holding: Lease | LeaseRow) -> Lease | LeaseRow:
    """A lease without the value of its fence, which differs each time."""
    return holding.replace(fence="") if isinstance(holding, Lease) else holding


DONE = {"mail": {"to": "{parent}", "type": "worker_done", "subject": "Done"}}


class Yard:
    """A repository with a project, and branches that are to land on main."""

    def __init__(self, repo: Path) -> None:
        self.folder = repo
        self.rook = Rook(repo)
        init_project(repo)
        self.settings("")

    def settings(self, text: str, *gates: str) -> None:
        """Settings of the checkout; each gate is a command, called g1, g2 …

        One slot unless said otherwise: how many gates run must not depend on the machine.
        """
        if "slots:" not in text:
            head, section, rest = text.partition("merge:\n")
            text = f"{head}{section}  slots: 1\n{rest}" if section else f"{text.rstrip()}\nmerge:\n  slots: 1\n"
        listed = "".join(f"  - name: g{number}\n    run: {run!r}\n" for number, run in enumerate(gates, 1))
        extra = f"gates:\n{listed}" if gates else ""
        (self.folder / ".rookery" / "config.local.yaml").write_text(
            f"agents:\n  stop_grace: 0.3s\nprovision:\n  ports: 0\n{extra}{text}"
        )

    def write(self, **files: str | bytes | None) -> None:
        """Change files in the checkout; `__` in a name stands for a slash, `_` for a dot."""
        for name, content in files.items():
            path = self.folder / name.replace("__", "/").replace("_", ".")
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, **files: str | bytes | None) -> str:
        """Change files and commit them where the checkout is."""
        self.write(**files)
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-qm", f"Change {', '.join(files)}")
        return git(self.folder, "rev-parse", "HEAD")

    def branch(self, name: str, at: str = "main", **files: str | bytes | None) -> str:
        """A branch with one commit; the checkout goes back to main."""
        git(self.folder, "switch", "-qc", name, at)
        commit = self.commit(**files)
        git(self.folder, "switch", "-q", "main")
        return commit

    def show(self, path: str, at: str = "main") -> str:
        """A file on a branch."""
        return git(self.folder, "show", f"{at}:{path}")

    def main(self) -> str:
        """The commit of the base."""
        return git(self.folder, "rev-parse", "main")

    def merge(self, *words: str) -> Ran:
        """`rook merge …`."""
        return self.rook.json("merge", *words)

    def entry(self, branch: str) -> dict[str, Any]:
        """The newest entry of a branch."""
        entries = self.rook.json("merge", "list", "--all").data
        return next(entry for entry in entries if entry["branch"] == branch)

    def states(self) -> dict[str, str]:
        """The state of every branch's newest entry."""
        entries = self.rook.json("merge", "list", "--all", "--limit", "200").data
        return {entry["branch"]: entry["state"] for entry in reversed(entries)}

    def contains(self, branch: str, within: str = "main") -> bool:
        """True if a branch is on another."""
        done = subprocess.run(["git", "merge-base", "--is-ancestor", branch, within], cwd=self.folder, check=False)
        return done.returncode == 0

    def wait_for_loop(self) -> None:
        """Wait until a daemon, if there is one, has done all that is due: it may answer a call before that."""

        def is_quiet() -> bool:
            if not IN_DAEMON:
                self.rook("loop", "run")  # again, as a gate may go on for a while
            explained = self.rook.json("loop", "explain").data
            return not explained["actions"] and not explained["facts"]["landings"]  # nor does any process hold a lease

        wait_until(is_quiet)

    def killed(self, step: str, *words: str) -> None:
        """Run `rook` in a process that is killed right after a step."""
        ran = self.rook(*words, env={"ROOKERY_TEST_KILL": step})
        assert ran.status == -signal.SIGKILL, (step, ran)

    def killed_alone(self, step: str, *words: str) -> None:
        """The same without a daemon, so that nothing follows it up before the test says so."""
        ran = run_real_rook(self.folder, *words, env={"ROOKERY_TEST_KILL": step})
        assert ran.status == -signal.SIGKILL, (step, ran)

    def killed_in_recovery(self, step: str) -> None:
        """Kill what recovers from a killed merger right after a step: the loop of a daemon, or the next merger."""
        if IN_DAEMON:
            kill_daemon_at(step, self.folder)
        else:
            self.killed(step, "merge", "run")

    def task(self, title: str, steps: list[Any], *more: str) -> str:
        """A task whose description is a script."""
        script = ["--description", f"```rook-script\n{yaml.safe_dump(steps)}```"]
        return str(self.rook.json("task", "create", title, *script, *more).data["id"])

    def sling(self, name: str, steps: list[Any], *more: str) -> str:
        """Start an agent on a task of its own; return the task."""
        task = self.task(f"Task of {name}", steps)
        assert self.rook("sling", task, "--name", name, *more).status == 0
        return task

    def agent(self, name: str) -> dict[str, Any]:
        """An agent's present state."""
        agents = everyone(self.rook.json("status", "--all").data)
        return next((agent for agent in agents if agent["agent"] == name), {})

    def wait_for(self, name: str, *states: str) -> None:
        """Wait until an agent is in one of the states or has one of the outcomes."""
        wait_for_agent(self.rook, name, states)

    def finished(self, name: str, steps: list[Any], *more: str) -> str:
        """An agent that did its task, committed its work and reported it as done; return the task."""
        task = self.sling(name, [*steps, DONE], *more)
        self.wait_for(name, "completed")
        return task

    def mail(self, **fitting: str) -> list[dict[str, Any]]:
        """Messages, oldest first."""
        messages = self.rook.json("mail", "list", "--limit", "200").data
        return [
            message for message in reversed(messages) if all(message[key] == value for key, value in fitting.items())
        ]

    def is_all_seen(self) -> bool:
        """True if the radar was looked at since the last turn ended."""
        db = self.rook.open()
        try:
            return unseen_ends(db) is None
        finally:
            db.close()

    def merger(self) -> Merger:
        """The project, as the code under test sees it; the database is the caller's to close."""
        db = Database.open(database_path(str(self.folder)))
        config = load_config(str(self.folder), read_environ({"HOME": "/nowhere"}), {}).config
        return Merger(Context.at(str(self.folder), db, config), "human")

    def assert_tidy(self) -> None:
        """Nothing that a landing needs for a while is left over."""
        scratch = self.folder / ".rookery" / "scratch"
        assert not scratch.exists() or not list(scratch.iterdir())
        assert not list((self.folder / ".git").glob("*.lock"))
        assert not list((self.folder / ".git").glob("rookery-forward*"))
        git(self.folder, "fsck", "--connectivity-only")
