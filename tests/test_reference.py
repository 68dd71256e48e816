"""The generated documentation is current, and every operation says what it has to say."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from dev import docs
from rookery.cli.help import ABOUT
from rookery.ops import index
from rookery.ops.operation import FLAG, INTEGER, PATH, TEXT, Op

ROOT = Path(__file__).resolve().parents[1]
OPERATIONS = index.load_all()
by_name = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


def test_the_committed_files_are_current() -> None:
    wrong = docs.differences(docs.DOCS, docs.render_all())
    assert not wrong, f"`./rook-dev docs` writes them again: {', '.join(wrong)}"


def test_writing_and_checking_agree(tmp_path: Path) -> None:
    wanted = docs.render_all()
    assert docs.differences(tmp_path, wanted).keys() == wanted.keys()
    assert docs.write(tmp_path) == sorted(wanted)
    assert docs.differences(tmp_path, wanted) == {}
    assert docs.write(tmp_path) == []
    (tmp_path / "reference" / "task.md").write_text("old\n")
    (tmp_path / "reference" / "gone.md").write_text("of an operation that is no more\n")
    wrong = docs.differences(tmp_path, wanted)
    assert wrong.keys() == {"reference/task.md", "reference/gone.md"}
    assert "-old" in wrong["reference/task.md"]
    docs.write(tmp_path)
    assert docs.differences(tmp_path, wanted) == {}


@by_name
def test_an_operation_documents_itself(operation: Op) -> None:
    assert operation.summary.endswith("."), "the first line is one sentence"
    assert operation.needs.count(".") == 1
    assert operation.needs.rpartition(".")[2] in ("read", "write")
    for param in operation.params:
        assert param.help.endswith("."), param.name
        assert param.help[0].isupper(), param.name
        assert param.kind in (TEXT, INTEGER, FLAG, PATH), param.name
        assert not (param.required and param.default), param.name


@by_name
def test_an_operation_has_a_view(operation: Op) -> None:
    module, _, function = operation.view.partition(".")
    view = getattr(import_module(f"rookery.cli.views.{module}"), function)
    assert len(inspect.signature(view).parameters) == 2


@by_name
def test_positional_parameters_are_not_ambiguous(operation: Op) -> None:
    places = [param for param in operation.params if param.positional]
    for before, after in pairwise(places):
        assert not before.many, f"{before.name} would swallow {after.name}"
        assert before.required or not after.required, f"{after.name} follows an optional {before.name}"


@pytest.mark.parametrize("group", index.GROUPS)
def test_the_modules_of_a_group_declare_it_and_others_do_not(group: str) -> None:
    declared = {operation.run.__module__ for operation in OPERATIONS if operation.group == group}
    assert declared == set(index.GROUPS[group])


def test_every_group_is_described() -> None:
    assert ABOUT.keys() == index.GROUPS.keys()


def test_every_error_has_a_code_and_a_docstring() -> None:
    docs.load_all_modules()
    for error in docs.error_classes():
        assert error.__doc__, error
        assert error.code.replace("_", "").isalnum(), error
        assert error.exit_status in (1, 2), error


def test_checking_is_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dev.docs", "--check"],
        cwd=docs.DOCS.parent,
        env={"PYTHONPATH": str(docs.DOCS.parent / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


_GUIDES = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guides").glob("*.md")]
_MODULE = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)`")


@pytest.mark.parametrize("guide", _GUIDES, ids=lambda path: path.stem)
def test_every_module_that_a_guide_names_is_there(guide: Path) -> None:
    named = _MODULE.findall(guide.read_text())
    assert [name for name in named if not any((base / name).is_file() for base in (ROOT / "src/rookery", ROOT))] == []
