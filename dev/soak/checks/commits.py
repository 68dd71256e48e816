"""No commit is lost: each is on the base, on a branch, or kept by a ref of Rookery's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from dev.soak.checks.model import Violation, git
from dev.soak.repository import GATE, REGISTRY

_KEPT = ("refs/heads", "refs/rookery/rescue", "refs/rookery/snapshots")


def check_commits(repo: Path, commits: dict[str, str]) -> Iterator[Violation]:
    """Every commit that an agent wrote down can still be reached."""
    reached = set(_reachable(repo))
    for commit, agent in sorted(commits.items()):
        if commit not in reached:
            there = subprocess.run(["git", "cat-file", "-e", commit], cwd=repo, capture_output=True, check=False)
            where = "no branch, rescue or snapshot leads to it" if there.returncode == 0 else "it is not there any more"
            yield Violation("commits", f"commit {commit} of {agent} is lost: {where}")


def _reachable(repo: Path) -> list[str]:
    refs = git(repo, "for-each-ref", "--format=%(objectname)", *_KEPT).split()
    done = subprocess.run(
        ["git", "rev-list", "--stdin"], cwd=repo, input="\n".join(refs), check=True, capture_output=True, text=True
    )
    return done.stdout.split()


def check_base(repo: Path, scratch: Path, base: str) -> Iterator[Violation]:
    """Every commit that the base ever stood at passes the gate."""
    git(repo, "clone", "-q", "--shared", "--no-checkout", str(repo), str(scratch))
    for commit in git(repo, "rev-list", "--first-parent", "--reverse", base).split():
        git(scratch, "checkout", "-q", "--force", "--detach", commit)
        done = subprocess.run(
            [sys.executable, "-I", "-S", GATE], cwd=scratch, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            last_line = (done.stderr.strip().splitlines() or ["no output"])[-1]
            title = git(repo, "log", "-1", "--format=%s", commit).strip()
            yield Violation("base", f"commit {commit} of {base} ({title}) does not pass the gate: {last_line}")


def registered(repo: Path, base: str) -> list[str]:
    """The parts that the base's tree registers, with doubles."""
    text = git(repo, "show", f"{base}:{REGISTRY}")
    return [line[2:] for line in text.splitlines() if line.startswith("- ")]
