"""A file is there whole or not at all, also when many threads of one process write it at once."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path

import pytest

from rookery.base.draft import draft_name, write_whole
from rookery.hooks.settings import _write
from rookery.tasks.transfer import _write_whole
from rookery.vcs import cage
from served import Served, make_call
from support import touch_database


def test_many_threads_write_one_file_and_it_is_always_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    begin = threading.Barrier(4)

    def write(letter: str) -> None:
        begin.wait(20)
        for _ in range(100):
            write_whole(str(path), letter * 20_000)
            text = path.read_text()
            assert len(text) == 20_000
            assert len(set(text)) == 1

    threads = [Served(make_call(), partial(write, letter)) for letter in "abcd"]
    assert [thread.end() for thread in threads] == [None] * 4
    assert os.listdir(tmp_path) == ["file"]


def test_writers_that_rename_at_the_same_moment_do_not_harm_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has written its draft when the first of them is renamed."""
    barrier, rename = threading.Barrier(2), os.replace

    def replace(source: str, target: str) -> None:
        barrier.wait(20)
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    touch_database(tmp_path)
    for write in (
        lambda: cage.keep(str(tmp_path / ".rookery/worktrees/ada"), ["bwrap"], "/common"),
        lambda: _write(str(tmp_path / "settings.json"), "{}"),
        lambda: _write_whole(str(tmp_path / "export.json"), "{}"),
    ):
        threads = [Served(make_call(), write) for _ in range(2)]
        assert [thread.end() for thread in threads] == [None, None]


def test_no_two_drafts_have_one_name() -> None:
    names = {draft_name("/somewhere/file") for _ in range(1000)}
    assert len(names) == 1000
    assert {os.path.dirname(name) for name in names} == {"/somewhere"}


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(str(tmp_path / "folder"), "text")
    assert os.listdir(tmp_path) == ["folder"]
    with pytest.raises(UnicodeEncodeError):
        write_whole(str(tmp_path / "file"), "\udcff")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_callers_umask_decides(umask: int, mode: int, tmp_path: Path) -> None:
    Served(make_call(umask=umask), lambda: write_whole(str(tmp_path / "file"), "text")).value()
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_a_mode_that_is_asked_for_is_the_mode(tmp_path: Path) -> None:
    write_whole(str(tmp_path / "file"), b"\xff", mode=0o666)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666
    write_whole(str(tmp_path / "file"), b"\xff", mode=0o600, sync=True)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "file").read_bytes() == b"\xff"
