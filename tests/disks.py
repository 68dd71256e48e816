"""A small disk that can be filled up, for tests of what happens then."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_SIZE = "24m"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that is a filesystem of its own, of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "none", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"no filesystem can be mounted here (root is needed): {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, hole: int, name: str = "filler") -> Path:
    """Leave so many bytes free; return the file that takes the rest."""
    path = disk / name
    with path.open("wb", buffering=0) as file:
        while (size := free(disk) - hole) > 0:
            file.write(b"\0" * min(size, 1 << 20))
    return path


def free(disk: Path) -> int:
    """How many bytes are left."""
    space = os.statvfs(disk)
    return space.f_bavail * space.f_frsize
