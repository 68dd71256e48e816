"""The written configuration and the reference say what the model says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dev.configuration_page import render_reference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.model import Config, GateConfig
from rookery.config.schema import keys
from rookery.config.template import render_template, yaml_value


def load(folder: Path, text: str) -> Config:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    environ = read_environ({"HOME": str(folder)}).replace(user_config=str(path))
    return load_config(None, environ, {}).config


def test_the_template_changes_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, render_template()) == Config()


def test_every_key_of_the_template_can_be_uncommented_as_it_stands(tmp_path: Path) -> None:
    text, count = re.subn(r"^(  )?# (\w+: )(?=\S+$|\[|\{|\"\")", r"\1\2", render_template(), flags=re.MULTILINE)
    assert count == len(keys())
    environ = read_environ({"HOME": str(tmp_path)}).replace(user_config=str(tmp_path / "config.yaml"))
    (tmp_path / "config.yaml").write_text(text)
    loaded = load_config(None, environ, {})
    assert loaded.config == Config()
    assert {values[-1].origin.layer for values in loaded.entries.values()} == {"user"}


def test_the_template_tells_what_each_key_is_for() -> None:
    text = " ".join(render_template().replace("#", "").split())
    assert all(" ".join(key.documentation.split()) in text for key in keys().values())
    assert "One of: auto, git, jj." in text
    assert max(map(len, render_template().splitlines())) <= 110


def test_a_value_that_is_known_is_written_uncommented(tmp_path: Path) -> None:
    config = load(tmp_path, render_template({"project.base": "develop", "tasks.lease": 90.0}))
    assert (config.project.base, config.tasks.lease) == ("develop", 90.0)
    assert "\n  lease: 90s\n" in render_template({"tasks.lease": 90.0})


@pytest.mark.parametrize(
    "base", ["no", "1.0", "null", "a: b", "#x", "@", "-", "ünïcode", "a'b", 'a"b', "2026-01-31", "~", " x"]
)
def test_any_branch_name_survives(tmp_path: Path, base: str) -> None:
    assert load(tmp_path, render_template({"project.base": base})).project.base == base


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(base=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300))
def test_any_text_survives(tmp_path: Path, base: str) -> None:
    assert load(tmp_path, render_template({"project.base": base})).project.base == base


@pytest.mark.parametrize("run", ["pytest -q", "echo {a}, [b]", "a: b", "# c", "x | y && z", "'", '"', "- d", "yes"])
def test_any_command_of_a_gate_survives(tmp_path: Path, run: str) -> None:
    gates = (GateConfig("one", run, paths=("a, b", "*.py"), timeout=90.0), GateConfig("two", "true"))
    assert load(tmp_path, render_template({"gates": gates})).gates == gates
    environ = read_environ({"HOME": str(tmp_path)})
    assert load_config(None, environ, {"gates": yaml_value(gates)}).config.gates == gates


def test_every_kind_can_be_written() -> None:
    assert yaml_value(True) == "true"
    assert yaml_value(90.0) == "90s"
    assert yaml_value(3) == "3"
    assert yaml_value(("a", "b, c", "1")) == "[a, \"b, c\", '1']"
    assert yaml_value({"A": "1"}) == "{A: '1'}"


def test_the_reference_names_every_key_with_default_and_variable() -> None:
    page = render_reference()
    for key in keys().values():
        assert f"### `{key.name}`" in page
        assert key.documentation in page
        assert f"`{key.variable}`" in page
    assert "- Default: `30m`" in page
    assert "- Accepts: one of auto, git, jj" in page
