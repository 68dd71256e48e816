"""The configuration that is kept from one command to the next: always what the files say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rookery.base.errors import ConfigInvalid
from rookery.config.compiled import read_config
from rookery.config.compiled import section as section_of
from rookery.config.environ import Environ, read_environ
from rookery.config.loader import load_config


@pytest.fixture
def environ(tmp_path: Path) -> Environ:
    return read_environ({"HOME": str(tmp_path / "home")})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".rookery").mkdir()
    _write(tmp_path / ".rookery/config.yaml", "agents:\n  max_depth: 1\nprovision:\n  copy: [.env]\n  env: {A: b}\n")
    return tmp_path


def _write(path: Path, text: str) -> None:
    """As editors do it: the file's place is taken by a new one."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(path)


def _cached(root: Path) -> Path:
    return root / ".rookery/run/config.json"


def _settle(monkeypatch: pytest.MonkeyPatch, seconds: float = 0) -> None:
    # The time of a file's last change cannot be set back, so tests shorten the wait instead.
    monkeypatch.setattr("rookery.config.compiled._SETTLED_SECONDS", seconds)


def test_a_section_is_the_same_read_anew_and_kept(
    root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch
) -> None:
    _settle(monkeypatch)
    fresh, kept = read_config(str(root), environ, {}), read_config(str(root), environ, {})
    assert type(fresh) is not type(kept)
    assert section_of(fresh, "provision") == section_of(kept, "provision")
    assert section_of(kept, "provision")["env"] == {"A": "b"}
    assert section_of(kept, "nothing") == section_of(fresh, "nothing") == {}


def test_the_second_time_it_is_the_same_and_nothing_is_loaded(
    root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch
) -> None:
    _settle(monkeypatch)
    first = read_config(str(root), environ, {})
    assert _cached(root).exists()
    monkeypatch.setitem(sys.modules, "rookery.config.loader", None)  # importing it would fail now
    second = read_config(str(root), environ, {})
    for section in ("agents", "provision", "tasks", "worktrees"):
        kept = getattr(second, section)
        for name in type(getattr(first, section)).__dataclass_fields__:
            assert getattr(kept, name) == getattr(getattr(first, section), name), (section, name)
    assert second.provision.copy == (".env",)
    with pytest.raises(AttributeError):
        second.agents.max_depth = 7  # type: ignore[misc]


@pytest.mark.parametrize("name", ["config.yaml", "config.local.yaml"])
def test_a_changed_file_is_read_anew(root: Path, environ: Environ, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _settle(monkeypatch)
    assert read_config(str(root), environ, {}).agents.max_depth == 1
    _write(root / ".rookery" / name, "agents:\n  max_depth: 2\n")
    assert read_config(str(root), environ, {}).agents.max_depth == 2
    (root / ".rookery" / name).unlink()
    assert read_config(str(root), environ, {}).agents.max_depth == (1 if name == "config.local.yaml" else 2)


def test_the_users_own_file_counts(root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch) -> None:
    _settle(monkeypatch)
    assert read_config(str(root), environ, {}).agents.max_per_lead == 5
    Path(environ.user_config).parent.mkdir(parents=True)
    _write(Path(environ.user_config), "agents:\n  max_per_lead: 4\n")
    assert read_config(str(root), environ, {}).agents.max_per_lead == 4


def test_a_file_that_was_just_written_is_not_trusted_to_stay(root: Path, environ: Environ) -> None:
    (root / ".rookery/config.yaml").write_text("agents:\n  max_depth: 2\n")
    read_config(str(root), environ, {})
    assert not _cached(root).exists()


def test_variables_and_flags_are_read_every_time(root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch) -> None:
    _settle(monkeypatch)
    read_config(str(root), environ, {})
    assert read_config(str(root), environ, {"agents.max_depth": "0"}).agents.max_depth == 0
    given = environ.replace(settings={"ROOKERY_AGENTS_MAX_DEPTH": "2"})
    assert read_config(str(root), given, {}).agents.max_depth == 2
    assert read_config(str(root), environ, {}).agents.max_depth == 1


def test_a_mistake_is_told_and_not_kept(root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch) -> None:
    _settle(monkeypatch)
    _write(root / ".rookery/config.yaml", "agents:\n  max_depth: deep\n")
    for _ in range(2):
        with pytest.raises(ConfigInvalid, match="max_depth"):
            read_config(str(root), environ, {})
    assert not _cached(root).exists()


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"format":1}', b"\xff", b'{"format":1,"stamps":[],"sections":3}']
)
def test_a_damaged_copy_does_no_harm(
    root: Path, environ: Environ, damage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    _settle(monkeypatch)
    read_config(str(root), environ, {})
    _cached(root).write_bytes(damage)
    expected = load_config(str(root), environ, {}).config
    assert read_config(str(root), environ, {}).agents.max_depth == expected.agents.max_depth


def test_a_list_of_mappings_is_the_same_read_anew_and_kept(
    root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch
) -> None:
    _settle(monkeypatch)
    _write(root / ".rookery/config.yaml", "gates:\n  - {name: tests, run: pytest, paths: [src]}\n")
    fresh, kept = read_config(str(root), environ, {}), read_config(str(root), environ, {})
    assert type(fresh) is not type(kept)
    for config in (fresh, kept):
        (gate,) = config.gates
        assert (gate.name, gate.run, gate.paths, gate.timeout) == ("tests", "pytest", ("src",), 1800.0)
    assert section_of(kept, "gates") == section_of(fresh, "gates") == {}
