"""What the doctor asks of the installation itself."""

from __future__ import annotations

import compileall
import importlib.util
import os
import shutil
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import apsw
import yaml

import rookery
from rookery.base.check import ERROR, OK, WARNING, Check, Finding, Place
from rookery.base.clock import is_future, stamp
from rookery.base.errors import StorageFailed
from rookery.config import layout
from rookery.config.environ import now
from rookery.config.project import PRIVATE
from rookery.events.store import latest_time
from rookery.ops.checks import open_for_checks

_CATEGORY = "install"
_PYTHON = (3, 11)
_SQLITE = (3, 51, 3)
_PACKAGES = ("apsw", "pydantic", "pyyaml", "rich")
_LOW, _FULL = 1_000_000_000, 100_000_000
"""So few free bytes are worth a warning, and so few an error."""
_PYC_HEADER = "<4sL8s"
_PACKAGE = os.path.dirname(os.path.abspath(rookery.__file__))


def check_python(_place: Place, version: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Finding]:
    """Python is new enough."""
    shown = "Python " + ".".join(map(str, version))
    if version >= _PYTHON:
        yield Finding(_CATEGORY, "python", OK, shown)
    else:
        hint = "install Rookery with Python 3.11 or later"
        yield Finding(_CATEGORY, "python", ERROR, f"{shown} is too old", hint)


def check_sqlite(_place: Place, version: str = apsw.sqlite_lib_version()) -> Iterator[Finding]:
    """The SQLite that apsw contains is past the bug that corrupts databases in WAL mode."""
    if tuple(map(int, version.split("."))) >= _SQLITE:
        yield Finding(_CATEGORY, "sqlite", OK, f"SQLite {version}")
    else:
        message = f"SQLite {version} has a bug that can corrupt the database when several agents write"
        yield Finding(_CATEGORY, "sqlite", ERROR, message, "upgrade apsw to 3.51.3 or later")


def check_packages(_place: Place) -> Iterator[Finding]:
    """The packages that Rookery needs are installed."""
    yield Finding(_CATEGORY, "rookery", OK, f"rookery {rookery.__version__}")
    for name in _PACKAGES:
        try:
            yield Finding(_CATEGORY, name, OK, f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            yield Finding(_CATEGORY, name, ERROR, f"{name} is not installed", "install Rookery again")


def check_yaml_is_fast(_place: Place) -> Iterator[Finding]:
    """PyYAML was built with libyaml; without it every file takes ten times as long."""
    if not yaml.__with_libyaml__:
        message = "PyYAML was built without libyaml and is slow"
        yield Finding(_CATEGORY, "libyaml", WARNING, message, "install a PyYAML wheel for this platform")


def check_bytecode(_place: Place, package: str = _PACKAGE) -> Iterator[Finding]:
    """Rookery's modules are compiled; else every command compiles them again and takes twice as long."""
    sources = [str(path) for path in Path(package).rglob("*.py")]
    stale = [path for path in sources if not is_compiled(path)]
    if not stale:
        yield Finding(_CATEGORY, "bytecode", OK, f"{len(sources)} modules are compiled")
        return
    hint = "`rook doctor --fix` compiles them"
    if sys.dont_write_bytecode:
        hint += "; Python does not do it by itself here, as PYTHONDONTWRITEBYTECODE is set"
    message = f"{len(stale)} of {len(sources)} modules are not compiled, which makes every command slower"
    yield Finding(_CATEGORY, "bytecode", WARNING, message, hint, lambda: _compile(package, len(stale)))


def is_compiled(path: str) -> bool:
    """True if Python would take the compiled form of a source file instead of compiling it."""
    try:
        with open(importlib.util.cache_from_source(path), "rb") as file:
            magic, kind, stamp = struct.unpack(_PYC_HEADER, file.read(struct.calcsize(_PYC_HEADER)))
        source = os.stat(path)
        if kind & 1:  # compiled against a hash; Python compares it only if the second bit says so
            is_current = not kind & 2 or stamp == importlib.util.source_hash(Path(path).read_bytes())
        else:
            is_current = stamp == struct.pack("<LL", int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)
    except (OSError, struct.error):
        return False
    return bool(is_current and magic == importlib.util.MAGIC_NUMBER)


def check_permissions(place: Place) -> Iterator[Finding]:
    """We can write the project's folder, and other users cannot even read it."""
    if place.root is None:
        return
    folder = layout.path(place.root)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        hint = f"`chmod {PRIVATE:o} {folder}`"
        yield Finding(_CATEGORY, "permissions", ERROR, f"{folder} cannot be written", hint)
        return
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    if not mode & ~PRIVATE:
        yield Finding(_CATEGORY, "permissions", OK, f"{folder} is yours alone")
        return

    def close() -> str:
        os.chmod(folder, PRIVATE)
        return f"closed {folder} to other users"

    message = f"other users of this machine can read or write in {folder} (mode {mode:o})"
    yield Finding(_CATEGORY, "permissions", WARNING, message, f"`chmod {PRIVATE:o} {folder}`", close)


def check_disk(place: Place, usage: Callable[[str], tuple[int, int, int]] = shutil.disk_usage) -> Iterator[Finding]:
    """There is room for worktrees and the database."""
    folder = place.root or place.cwd
    free = usage(folder)[2]
    shown = f"{free / 1e9:.1f} GB are free at {folder}"
    if free >= _LOW:
        yield Finding(_CATEGORY, "disk", OK, shown)
        return
    status = ERROR if free < _FULL else WARNING
    hint = "make room; `rook worktree clean --dry-run` shows worktrees that can be removed"
    yield Finding(_CATEGORY, "disk", status, f"only {shown}", hint)


def check_clock(place: Place) -> Iterator[Finding]:
    """The clock is not behind what is recorded already: leases and deadlines are compared with it."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        latest, present = latest_time(ctx.db), now()
    if not is_future(latest, present):
        yield Finding(_CATEGORY, "clock", OK, f"it is {stamp(present)}")
        return
    message = f"the clock says {stamp(present)}, but something was recorded at {stamp(latest)}: it was set back"
    yield Finding(
        _CATEGORY, "clock", WARNING, message, "set the clock (`timedatectl` shows whether it is synchronised)"
    )


def _compile(package: str, count: int) -> str:
    if not compileall.compile_dir(package, quiet=2):
        raise StorageFailed(f"not every module under {package} could be compiled")
    return f"compiled {count} modules"


CHECKS: tuple[Check, ...] = (
    check_python,
    check_sqlite,
    check_packages,
    check_yaml_is_fast,
    check_bytecode,
    check_permissions,
    check_disk,
    check_clock,
)
