"""`rook` as a copy of a loaded process behaves as the program itself does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import Rook
from support import run_real_rook, run_rook

pytestmark = pytest.mark.slow

_CALLS: dict[str, tuple[str | bytes, ...]] = {
    "version": ("--version",),
    "help": ("--help",),
    "help of a command": ("task", "create", "--help"),
    "a list": ("task", "list", "--json"),
    "no such command": ("nonsense",),
    "no such option": ("task", "list", "--nonsense"),
    "refused": ("task", "get", "task_none", "--json"),
    "bytes that are no text": ("task", "get", b"\xff\xfe", "--json"),
    "a long table": ("config", "show"),
}


@pytest.mark.parametrize("call", _CALLS)
def test_a_call_ends_and_prints_alike(rook: Rook, call: str) -> None:
    words = _CALLS[call]
    assert run_rook(rook.folder, *words) == run_real_rook(rook.folder, *words)


def test_input_folder_and_environment_are_its_own(rook: Rook, tmp_path: Path) -> None:
    text = "Grüße\n" * 100_000
    words = ("task", "create", "Greet", "--description", "-", "--json")
    for run in (run_rook, run_real_rook):
        assert run(rook.folder, *words, stdin=text.encode()).data["description"] == text
    assert run_rook(tmp_path, "task", "list", "--json").error["code"] == "not_initialised"
    assert len(run_rook(tmp_path, "task", "list", "--json", env={"ROOKERY_ROOT": str(rook.folder)}).data) == 2
    assert b"7h" in rook("config", "show", env={"ROOKERY_TASKS_LEASE": "7h"}).out
    assert b"7h" not in rook("config", "show").out


def test_what_an_interpreter_reads_at_its_start_counts(rook: Rook) -> None:
    assert b"import time:" in rook("--version", env={"PYTHONPROFILEIMPORTTIME": "1"}).err
    assert rook("--version").err == b""


def test_one_that_takes_too_long_is_ended(rook: Rook) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_rook(rook.folder, "events", "--follow", timeout=0.5)
    assert rook("task", "list").status == 0
