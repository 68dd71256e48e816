"""The repository that agents work on: a gate that partial work does not pass, and a user's own unfinished changes."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import yaml

from dev.soak.site import Site

BASE = "main"
REGISTRY = "registry.md"
GATE = "check.py"
GATE_COMMAND = f"python3 -I -S {GATE}"
FIRST = ("first", "second")
"""Parts that are there from the beginning: what two sides add to a list is known as such where it has entries."""

_GATE_TEXT = '''\
"""Every registered part is there, is whole, runs, and finds what it needs; nothing is registered twice."""
import hashlib, pathlib

names = [line[2:] for line in pathlib.Path("registry.md").read_text().splitlines() if line.startswith("- ")]
assert len(names) == len(set(names)), f"registered twice: {sorted(n for n in set(names) if names.count(n) > 1)}"
there = {path.stem for path in pathlib.Path("parts").glob("*.py")}
assert there == set(names), f"parts and registry differ: {sorted(there ^ set(names))}"
for name in names:
    source = pathlib.Path(f"parts/{name}.py").read_bytes()
    whole = pathlib.Path(f"parts/{name}.sum").read_text().strip()
    assert hashlib.sha256(source).hexdigest() == whole, f"{name} is not whole"
    scope = {}
    exec(compile(source, name, "exec"), scope)
    assert scope["NAME"] == name, f"{name} calls itself {scope['NAME']}"
    missing = sorted(set(scope["NEEDS"]) - set(names))
    assert not missing, f"{name} needs {missing}"
'''

_USERS = {
    "notes.txt": ("untracked", "What I must not forget.\n"),
    "draft/plan.md": ("untracked", "# A plan\n\nNobody has seen it yet.\n"),
    "settings.ini": ("modified", "[user]\ncolour = red\n"),
    "prepared.txt": ("staged", "Added to the index, not committed.\n"),
}


@dataclass(frozen=True, slots=True)
class UsersFile:
    """A file of the user's own, as it was at the beginning."""

    path: str
    kind: str
    digest: str
    modified_ns: int


def make_repository(site: Site) -> None:
    """The first commit, with the gate in it."""
    site.git("init", "-q", "-b", BASE)
    site.git("config", "user.name", "Person")
    site.git("config", "user.email", "person@example.org")
    entries = "".join(f"- {name}\n" for name in FIRST)
    files = {GATE: _GATE_TEXT, REGISTRY: f"# Parts\n\n{entries}", "settings.ini": "[user]\ncolour = blue\n"}
    for name in FIRST:
        source = f"NAME = {name!r}\nNEEDS = []\n"
        files |= {f"parts/{name}.py": source, f"parts/{name}.sum": hashlib.sha256(source.encode()).hexdigest() + "\n"}
    for name, text in files.items():
        _write(site.repo / name, text)
    site.git("add", "-A")
    site.git("commit", "-q", "-m", "Begin")


def write_settings(site: Site, *, agents: int) -> None:
    """The user's own configuration: it is where a sandbox may be switched off, and needs no trust."""
    settings = {
        "sandbox": {"mode": "off"},
        "agents": {"max_concurrent": agents, "max_per_run": 100_000, "stop_grace": "1s"},
        "provision": {"ports": 0},
        "merge": {"tiers": ["mechanical"], "wait": "30s"},
        "gates": [{"name": "check", "run": GATE_COMMAND, "timeout": "60s"}],
    }
    _write(site.home / ".config" / "rookery" / "config.yaml", yaml.safe_dump(settings))


def add_users_files(site: Site) -> list[UsersFile]:
    """Untracked, modified and staged files in the user's checkout, none of which a landing needs to touch."""
    for name, (kind, text) in _USERS.items():
        _write(site.repo / name, text)
        if kind == "staged":
            site.git("add", name)
    return [describe(site.repo, name, kind) for name, (kind, _) in _USERS.items()]


def describe(repo: Path, name: str, kind: str) -> UsersFile:
    """A user's file as it is now."""
    path = repo / name
    return UsersFile(name, kind, hashlib.sha256(path.read_bytes()).hexdigest(), os.stat(path).st_mtime_ns)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
