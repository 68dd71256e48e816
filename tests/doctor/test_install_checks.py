"""What the doctor asks of the installation."""

from __future__ import annotations

import compileall
import os
import py_compile
import sys
from pathlib import Path

import pytest

from rookery.base.check import ERROR, OK, WARNING, Place
from rookery.base.errors import StorageFailed
from rookery.doctor.checks import (
    check_bytecode,
    check_packages,
    check_permissions,
    check_python,
    check_sqlite,
    check_yaml_is_fast,
    is_compiled,
)

NOWHERE = Place(None, "/")


def test_python_must_be_new_enough() -> None:
    assert next(check_python(NOWHERE, (3, 11, 0))).status == OK
    old = next(check_python(NOWHERE, (3, 10, 14)))
    assert (old.status, old.message) == (ERROR, "Python 3.10.14 is too old")
    assert next(check_python(NOWHERE)).status == OK


def test_sqlite_must_be_past_the_bug() -> None:
    assert next(check_sqlite(NOWHERE, "3.51.3")).status == OK
    assert next(check_sqlite(NOWHERE, "3.52.0")).status == OK
    assert next(check_sqlite(NOWHERE, "3.51.2")).status == ERROR
    assert next(check_sqlite(NOWHERE, "3.9.99")).status == ERROR
    assert next(check_sqlite(NOWHERE)).status == OK


def test_packages_are_named_with_their_versions() -> None:
    assert [finding.name for finding in check_packages(NOWHERE)] == ["rookery", "apsw", "pydantic", "pyyaml", "rich"]
    assert all(finding.status == OK for finding in check_packages(NOWHERE))


def test_a_slow_yaml_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaml.__with_libyaml__", True)
    assert list(check_yaml_is_fast(NOWHERE)) == []
    monkeypatch.setattr("yaml.__with_libyaml__", False)
    assert [finding.status for finding in check_yaml_is_fast(NOWHERE)] == [WARNING]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    for name in ("one.py", "inner/two.py"):
        (tmp_path / name).write_text("x = 1\n")
    return tmp_path


def test_modules_without_bytecode_are_compiled(package: Path) -> None:
    finding = next(check_bytecode(NOWHERE, str(package)))
    assert (finding.status, finding.message.partition(",")[0]) == (WARNING, "2 of 2 modules are not compiled")
    assert finding.repair is not None
    assert finding.repair() == "compiled 2 modules"
    assert next(check_bytecode(NOWHERE, str(package))).status == OK


def test_bytecode_of_an_older_source_does_not_count(package: Path) -> None:
    compileall.compile_dir(str(package), quiet=2)
    os.utime(package / "one.py", (1, 1))
    assert not is_compiled(str(package / "one.py"))
    assert is_compiled(str(package / "inner" / "two.py"))


@pytest.mark.parametrize("mode", ["CHECKED_HASH", "UNCHECKED_HASH"])
def test_bytecode_with_a_hash_counts_while_python_takes_it(package: Path, mode: str) -> None:
    source = package / "one.py"
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode[mode])
    os.utime(source, (1, 1))
    assert is_compiled(str(source))
    source.write_text("x = 2\n")
    assert is_compiled(str(source)) == (mode == "UNCHECKED_HASH")


def test_a_damaged_or_foreign_file_does_not_count(package: Path) -> None:
    compileall.compile_dir(str(package), quiet=2)
    (compiled,) = (package / "__pycache__").iterdir()
    whole = compiled.read_bytes()
    for damaged in (b"", whole[:10], b"\0\0\0\0" + whole[4:]):
        compiled.write_bytes(damaged)
        assert not is_compiled(str(package / "one.py"))


def test_what_cannot_be_compiled_is_reported(package: Path) -> None:
    (package / "__pycache__").write_text("a file where the folder should be")
    finding = next(check_bytecode(NOWHERE, str(package)))
    assert finding.repair is not None
    with pytest.raises(StorageFailed):
        finding.repair()


def test_the_variable_that_prevents_bytecode_is_named(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert "PYTHONDONTWRITEBYTECODE" in next(check_bytecode(NOWHERE, str(package))).hint
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert "PYTHONDONTWRITEBYTECODE" not in next(check_bytecode(NOWHERE, str(package))).hint


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o710])
def test_a_folder_that_others_may_enter_is_closed(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / ".rookery"
    folder.mkdir()
    folder.chmod(mode)
    place = Place(str(tmp_path), str(tmp_path))
    (finding,) = check_permissions(place)
    assert finding.status == WARNING
    assert finding.repair is not None
    finding.repair()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [later.status for later in check_permissions(place)] == [OK]


def test_a_folder_that_is_gone_cannot_be_written(tmp_path: Path) -> None:
    assert [finding.status for finding in check_permissions(Place(str(tmp_path), "/"))] == [ERROR]
    assert list(check_permissions(NOWHERE)) == []
