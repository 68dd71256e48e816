"""The configuration that is kept from one call to the next: always what the files say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rookery.base.errors import ConfigInvalid
from rookery.config import loader
from rookery.config.environ import Environ, read_environ
from rookery.config.loader import load_config, read_config, section


@pytest.fixture
def environ(tmp_path: Path) -> Environ:
    return read_environ({"HOME": str(tmp_path / "home")})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".rookery").mkdir()
    _write(tmp_path / ".rookery/config.yaml", "agents:\n  max_depth: 1\nprovision:\n  copy: [.env]\n  env: {A: b}\n")
    return tmp_path


def _write(path: Path, text: str) -> None:
    """Write as editors do: a new file replaces the old one."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(path)


def _settle(monkeypatch: pytest.MonkeyPatch) -> None:
    # The time of a file's last change cannot be set back, so tests shorten the wait instead.
    monkeypatch.setattr("rookery.config.loader._SETTLED_SECONDS", -1.0)


def test_a_section_is_what_a_runtime_gets(root: Path, environ: Environ) -> None:
    config = read_config(str(root), environ, {})
    assert section(config, "provision")["env"] == {"A": "b"}
    assert section(config, "provision")["copy"] == (".env",)
    assert section(config, "nothing") == section(config, "gates") == {}


def test_the_second_time_it_is_the_same_and_no_file_is_read(
    root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch
) -> None:
    _settle(monkeypatch)
    first = read_config(str(root), environ, {})
    assert first == load_config(str(root), environ, {}).config
    monkeypatch.setattr(loader, "load_config", None)  # calling it would fail now
    assert read_config(str(root), environ, {}) is first
    with ThreadPoolExecutor(4) as pool:
        assert all(config is first for config in pool.map(lambda _: read_config(str(root), environ, {}), range(20)))


def test_nothing_kept_can_be_changed(root: Path, environ: Environ) -> None:
    with pytest.raises(AttributeError):
        read_config(str(root), environ, {}).agents.max_depth = 7  # type: ignore[misc]


def test_projects_and_users_are_kept_apart(root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch) -> None:
    _settle(monkeypatch)
    other = environ.replace(user_config=str(root / "other.yaml"))
    _write(root / "other.yaml", "agents:\n  max_per_lead: 4\n")
    for _ in range(2):
        assert read_config(str(root), environ, {}).agents.max_per_lead == 5
        assert read_config(str(root), other, {}).agents.max_per_lead == 4
        assert read_config(None, environ, {}).agents.max_depth == 2


@pytest.mark.parametrize("name", ["config.yaml", "config.local.yaml"])
def test_a_changed_file_is_read_again(root: Path, environ: Environ, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert read_config(str(root), environ, {}) is not read_config(str(root), environ, {})


def test_variables_and_flags_are_read_every_time(root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch) -> None:
    _settle(monkeypatch)
    read_config(str(root), environ, {})
    assert read_config(str(root), environ, {"agents.max_depth": "0"}).agents.max_depth == 0
    changed = environ.replace(settings={"ROOKERY_AGENTS_MAX_DEPTH": "2"})
    assert read_config(str(root), changed, {}).agents.max_depth == 2
    assert read_config(str(root), environ, {}).agents.max_depth == 1


def test_a_mistake_is_reported_and_not_kept(root: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch) -> None:
    _settle(monkeypatch)
    _write(root / ".rookery/config.yaml", "agents:\n  max_depth: deep\n")
    for _ in range(2):
        with pytest.raises(ConfigInvalid, match="max_depth"):
            read_config(str(root), environ, {})
    _write(root / ".rookery/config.yaml", "agents:\n  max_depth: 1\n")
    assert read_config(str(root), environ, {}).agents.max_depth == 1
