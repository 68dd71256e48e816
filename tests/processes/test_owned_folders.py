"""Folders with a note of their holder: found whatever a kill leaves, and never taken from a living one."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rookery.processes import holder, owned_folders, proctable
from rookery.processes.proctable import Identity

_NOBODY = 4_190_000


def note(path: Path, owner: holder.HolderId) -> None:
    path.with_name(path.name + owned_folders.NOTE).symlink_to(f"{owner.pid} {owner.text}")


def test_a_folder_is_its_makers_until_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "scratch" / "one"
    owned_folders.make(str(path))
    assert path.stat().st_mode & 0o777 == 0o700
    assert owned_folders.names(str(path.parent)) == ["one"]
    assert owned_folders.owner_of(str(path)) == holder.myself()
    assert not owned_folders.is_left(str(path), time.time())


def test_a_note_and_a_folder_are_found_each_without_the_other(tmp_path: Path) -> None:
    note(tmp_path / "noted", holder.of(Identity(_NOBODY, f"{proctable.this_boot()}-1")))
    (tmp_path / "bare").mkdir()
    assert owned_folders.names(str(tmp_path)) == ["bare", "noted"]
    assert all(owned_folders.is_left(str(tmp_path / name), time.time()) for name in ("bare", "noted"))
    owned_folders.forget(str(tmp_path / "noted"))
    owned_folders.forget(str(tmp_path / "noted"))
    assert owned_folders.names(str(tmp_path)) == ["bare"]
    assert owned_folders.names(str(tmp_path / "nowhere")) == []


def test_a_holder_elsewhere_keeps_it_for_a_day(tmp_path: Path) -> None:
    path = tmp_path / "one"
    note(path, holder.HolderId(Identity(_NOBODY, "0a1b2c3d-1"), "another-host", "1"))
    noted = os.lstat(f"{path}{owned_folders.NOTE}").st_mtime
    assert not owned_folders.is_left(str(path), noted + 86_000)
    assert owned_folders.is_left(str(path), noted + 87_000)
