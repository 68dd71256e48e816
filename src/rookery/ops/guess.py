"""Which commands a repository seems to be tested by, from the files at its top. A guess, for a person to confirm."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from rookery.base.lockfiles import LOCKFILES
from rookery.base.record import Record
from rookery.config.model import GateConfig

_NO_TEST = "no test specified"
_MOST = 1_000_000
_MANIFEST = "package.json"
_MANAGER = "npm"


@dataclass(frozen=True, slots=True)
class Guess(Record):
    """A gate that fits, and the program that it needs if that is not there."""

    gate: GateConfig
    why: str
    missing: str = ""


def guess_gates(root: str) -> list[Guess]:
    """The gates that fit, each with its reason; `make test` only where no other fits."""
    guesses = list(_guesses(root))
    if not guesses and re.search(r"^test\s*:", _read(root, "Makefile"), re.MULTILINE):
        return [_guess("make test", "the Makefile has a target `test`")]
    return guesses


def _guesses(root: str) -> Iterator[Guess]:
    if _uses_pytest(root):
        yield _guess("pytest -q", "it has tests for pytest")
    manager = _package_manager(root)
    if manager is not None:
        yield _guess(f"{manager} test", "package.json has a script `test`")
    if _read(root, "Cargo.toml"):
        yield _guess("cargo test", "it has a Cargo.toml")
    if _read(root, "go.mod"):
        yield _guess("go test ./...", "it has a go.mod")


def _guess(run: str, why: str) -> Guess:
    program = run.partition(" ")[0]
    missing = "" if shutil.which(program) else program
    return Guess(GateConfig(program if program != "make" else "test", run), why, missing)


def _uses_pytest(root: str) -> bool:
    if os.path.isfile(os.path.join(root, "pytest.ini")) or "[tool.pytest" in _read(root, "pyproject.toml"):
        return True
    if "[tool:pytest]" in _read(root, "setup.cfg"):
        return True
    folders = (os.path.join(root, name) for name in ("tests", "test"))
    return any(_is_test(name) for folder in folders if os.path.isdir(folder) for name in os.listdir(folder))


def _is_test(name: str) -> bool:
    return name == "conftest.py" or (name.startswith("test_") and name.endswith(".py"))


def _package_manager(root: str) -> str | None:
    try:
        manifest = json.loads(_read(root, _MANIFEST))
    except (ValueError, RecursionError):
        return None
    scripts = manifest.get("scripts") if isinstance(manifest, dict) else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    if not isinstance(script, str) or not script.strip() or _NO_TEST in script:
        return None
    locks = (lock for lock in LOCKFILES if _MANIFEST in lock.manifests and lock.program != _MANAGER)
    return next((lock.program for lock in locks if os.path.exists(os.path.join(root, lock.name))), _MANAGER)


def _read(root: str, name: str) -> str:
    """A file's text; nothing if it is not there, is no file or is no text."""
    path = os.path.join(root, name)
    if not os.path.isfile(path) or os.path.getsize(path) > _MOST:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""
