"""The main job, for real, on a temporary repository: `./rook-dev demo [--keep] [--fast] [--runtime claude]`.

First a plan and one task by hand, then a lead with four agents at once. Agents run on scripts: no key, no network.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dev import landing, real_agents, swarm


class Stage:
    """A temporary repository, and what is shown of the work in it."""

    def __init__(self, *, fast: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rook-demo-"))
        self.repo = self.folder / "acme"
        self.fast = fast or not sys.stdout.isatty()
        self.rook_program = shutil.which("rook") or sys.exit("rook is not installed: run ./rook-dev demo")

    def say(self, text: str) -> None:
        """Tell what comes next."""
        print(f"\n\033[1m# {text}\033[0m" if sys.stdout.isatty() else f"\n# {text}", flush=True)
        if not self.fast:
            time.sleep(0.8)

    def rook(self, *words: str, cwd: Path | None = None, may_fail: bool = False) -> None:
        """Run a command as a person would, and show it with what it prints."""
        shown = " ".join(_quoted(word) for word in words)
        print(f"\033[2m$\033[0m rook {shown}" if sys.stdout.isatty() else f"$ rook {shown}", flush=True)
        subprocess.run([self.rook_program, *words], cwd=cwd or self.repo, check=not may_fail)

    def ask(self, *words: str) -> Any:
        """Run a command as a program would."""
        done = subprocess.run(
            [self.rook_program, *words, "--json"], cwd=self.repo, check=True, capture_output=True, text=True
        )
        return json.loads(done.stdout)["data"]

    def agents(self) -> list[dict[str, Any]]:
        """All agents, those that have ended too."""
        shown = self.ask("status", "--all")
        return [*shown["agents"], *shown["ended"]]

    def stop_agents(self) -> None:
        """End what a demo that was interrupted has left alive."""
        done = subprocess.run(
            [self.rook_program, "status", "--json"], cwd=self.repo, capture_output=True, text=True, check=False
        )
        for agent in json.loads(done.stdout)["data"]["agents"] if done.returncode == 0 else ():
            subprocess.run([self.rook_program, "stop", agent["agent"], "--quiet"], cwd=self.repo, check=False)

    def remove(self) -> None:
        """Leave nothing behind."""
        subprocess.run([self.rook_program, "daemon", "stop", "--quiet"], cwd=self.repo, check=False)
        for _ in range(50):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
            time.sleep(0.1)  # processes that end close their files
        sys.exit(f"{self.folder} cannot be deleted")

    def git(self, *words: str) -> None:
        """Set something up with plain git."""
        identity = ("-c", "user.name=Demo", "-c", "user.email=demo@example.org")
        subprocess.run(["git", *identity, *words], cwd=self.repo, check=True, capture_output=True)


def main() -> None:
    """Walk through an epic with tasks, blockers, learnings and completion."""
    stage = Stage(fast="--fast" in sys.argv)
    try:
        if _runtime() == "claude":
            real_agents.play(stage)
        else:
            _plan_and_work(stage)
            swarm.play(stage)
            landing.play(stage)
    finally:
        if "--keep" in sys.argv:
            print(f"\nkept in {stage.repo}")
        else:
            stage.stop_agents()
            stage.remove()


def _runtime() -> str:
    """What `--runtime` says; the scripted one without it."""
    if "--runtime" not in sys.argv:
        return "scripted"
    name = (sys.argv[sys.argv.index("--runtime") + 1 :] or [""])[0]
    if name not in ("scripted", "claude"):
        sys.exit(f"no demo for the runtime {name!r}: scripted or claude")
    return name


def prepare(stage: Stage) -> str:
    """Make a repository with a project, a plan and an agent at work, without output; return the epic's id."""
    make_repository(stage)
    stage.ask("init", "--yes")
    epic, _, parse, _ = plan(stage)
    stage.ask("task", "complete", parse, "--result", "prices.py", "--learning", "Names hold no spaces.")
    stage.ask("task", "claim", "--agent", "ada", "--lease", "30m")
    failed = stage.ask("task", "create", "Import the old shop", "--parent", epic)["id"]
    stage.ask("task", "fail", failed, "--reason", "no access")
    return str(epic)


def make_repository(stage: Stage) -> None:
    """A small repository with one commit."""
    stage.repo.mkdir()
    stage.git("init", "-b", "main")
    (stage.repo / "shop.py").write_text("PRICES = {}\n")
    (stage.repo / ".gitignore").write_text("__pycache__/\n")
    stage.git("add", ".")
    stage.git("commit", "-m", "Begin")


def plan(stage: Stage) -> tuple[str, str, str, str]:
    """An epic with tasks that wait for each other."""
    epic = stage.ask("epic", "create", "Sell things", "--context", "Prices are in cents, always.")["id"]
    prices = stage.ask("task", "create", "Price list", "--parent", epic, "--priority", "1")["id"]
    parse = stage.ask("task", "create", "Read prices from a file", "--parent", prices)["id"]
    check = stage.ask("task", "create", "Refuse negative prices", "--parent", prices, "--blocked-by", parse)["id"]
    stage.ask("task", "create", "Checkout", "--parent", epic, "--blocked-by", prices)
    return epic, prices, parse, check


def _plan_and_work(stage: Stage) -> None:
    make_repository(stage)
    stage.say("A project in any repository")
    stage.rook("init", "--yes")

    stage.say("An epic, tasks under it, and what has to wait for what")
    epic, _, parse, check = plan(stage)
    stage.rook("task", "tree")

    stage.say("What comes next? The deepest task that waits for nothing")
    stage.rook("task", "next-ready", "--quiet")

    stage.say("Start it on a branch of its own, work, hand it in with what was learned, and land it")
    stage.rook("task", "start", parse, "--checkout", "--quiet")
    (stage.repo / "prices.py").write_text("def read(path):\n    return dict(line.split() for line in open(path))\n")
    stage.rook("task", "submit", "--result", "prices.py", "--learning", "Names hold no spaces.", "--quiet")
    stage.rook("merge", "--all")
    stage.rook("task", "tree")

    stage.say("Its sibling may begin now, and knows what was learned")
    stage.rook("task", "get", check)

    stage.say("Two agents ask at once: each gets a task of its own")
    stage.ask("task", "create", "Write the manual", "--parent", epic, "--priority", "5")
    for agent in ("ada", "ben"):
        stage.rook("task", "claim", "--agent", agent, "--lease", "30m", "--quiet")
    stage.rook("task", "tree")

    stage.say("When the last child is done, its parent is done too, and the next thing opens up")
    stage.rook("task", "complete", check, "--agent", "ada", "--result", "refused", "--quiet")
    stage.rook("task", "tree")
    stage.rook("task", "progress", epic)

    stage.say("Every step was an event")
    stage.rook("events", "--limit", "6")


def _quoted(word: str) -> str:
    if " " not in word:
        return word
    return f"'{word}'" if '"' in word else f'"{word}"'


if __name__ == "__main__":
    main()
