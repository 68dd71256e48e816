"""Every refusal has a code, a hint and an exit status, is one line of JSON, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Rook
from rookery.cli import main as cli
from rookery.tasks import lifecycle, service
from support import AUTHOR, add, everything, run_rook

_NONE = "task_01ARZ3NDEKTSV4RRFFQ69G5FAV"

# {epic} > {task} > {subtask}; {other} > {other_child}, which waits for {epic}; {free} is completed; {held} is ada's.
_REFUSED: list[tuple[str, str]] = [
    ("invalid_input", "task create ''"),
    ("invalid_input", "task create ' '"),
    ("invalid_input", "task update {task} --title ''"),
    ("invalid_input", "task update {task}"),
    ("invalid_input", "task create x --priority 0"),
    ("invalid_input", "task create x --priority 6"),
    ("invalid_input", "task list --limit -1"),
    ("invalid_input", "events --limit -1"),
    ("invalid_input", "events --since yesterday"),
    ("invalid_input", "task search ''"),
    ("invalid_input", "learning add {task} ''"),
    ("invalid_input", "task claim --lease 0"),
    ("invalid_input", "task claim --lease 1h --agent ../x"),
    ("invalid_input", "epic get {task}"),
    ("invalid_id", "task get lrn_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    ("invalid_id", f"task get {_NONE}0"),
    ("invalid_id", "task get abc"),
    ("invalid_id", "task get ''"),
    ("ambiguous_id", "task get {prefix}"),
    ("not_found", f"task get {_NONE}"),
    ("not_found", f"task delete {_NONE}"),
    ("not_found", f"learning add {_NONE} x"),
    ("not_found", "learning delete lrn_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    ("parent_not_found", f"task create x --parent {_NONE}"),
    ("parent_not_found", f"task update {{task}} --parent {_NONE}"),
    ("blocker_not_found", f"task create x --blocked-by {_NONE}"),
    ("blocker_not_found", "task unblock {task} --by {other}"),
    ("max_depth", "task create x --parent {subtask}"),
    ("max_depth", "task update {other} --parent {task}"),
    ("parent_cycle", "task update {epic} --parent {subtask}"),
    ("blocker_cycle", "task block {epic} --by {epic}"),
    ("blocker_cycle", "task block {epic} --by {other_child}"),
    ("blocker_cycle", "task block {task} --by {other}"),
    ("invalid_relation", "task block {subtask} --by {epic}"),
    ("invalid_relation", "task create x --parent {epic} --blocked-by {epic}"),
    ("invalid_state", "task release {task}"),
    ("invalid_state", "task renew {task} --lease 1h"),
    ("invalid_state", "task reopen {task}"),
    ("invalid_state", "task archive {task}"),
    ("invalid_state", "task unarchive {task}"),
    ("invalid_state", "task cancel {free}"),
    ("invalid_state", "task create x --parent {free}"),
    ("invalid_state", "task delete {held}"),
    ("already_claimed", "task release {held} --agent bob"),
    ("already_claimed", "task renew {held} --agent bob --lease 1h"),
    ("already_claimed", "task fail {held} --agent bob"),
    ("import_invalid", "data import none.json"),
    ("io", "data export no/such/folder.json"),
]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A project for all refusals: none of them may change it."""
    from rookery.db.database import Database

    root = tmp_path_factory.mktemp("refusing")
    (root / ".rookery").mkdir()
    db = Database.create(str(root / ".rookery" / "rookery.db"))
    ids = {"root": str(root), "held": add(db, "held", priority=1)}
    ids["epic"], ids["other"], ids["free"] = add(db), add(db), add(db)
    ids["task"] = add(db, parent=ids["epic"])
    ids["subtask"] = add(db, parent=ids["task"])
    ids["other_child"] = add(db, parent=ids["other"], blocked_by=(ids["epic"],))
    ids["prefix"] = ids["task"][:8]
    lifecycle.claim(db, AUTHOR.replace(name="ada"), lease=3e8, clock=1_769_860_800.0)
    lifecycle.complete(db, ids["free"], AUTHOR)
    db.close()
    return ids


def _words(line: str, names: dict[str, str]) -> list[str]:
    import shlex

    return [word.format(**names) for word in shlex.split(line)]


@pytest.mark.parametrize(("code", "line"), _REFUSED)
def test_refused(names: dict[str, str], code: str, line: str) -> None:
    from pathlib import Path

    from rookery.db.database import Database

    root = Path(names["root"])
    db = Database.open(str(root / ".rookery" / "rookery.db"))
    before = everything(db)
    ran = run_rook(root, *_words(line, names), "--json")
    assert ran.error["code"] == code
    assert ran.status == 1
    assert ran.error["message"]
    assert ran.error["hint"]
    assert ran.err == b""
    assert everything(db) == before
    db.close()


@pytest.mark.parametrize(("code", "line"), [("pending_children", "{epic}"), ("not_ready", "{other_child}")])
def test_refused_to_complete(names: dict[str, str], code: str, line: str) -> None:
    from rookery.base.errors import RookError
    from rookery.db.database import Database

    db = Database.open(names["root"] + "/.rookery/rookery.db")
    before = everything(db)
    with pytest.raises(RookError) as caught:
        lifecycle.complete(db, line.format(**names), AUTHOR)
    assert (caught.value.code, bool(caught.value.hint)) == (code, True)
    assert everything(db) == before
    db.close()


@pytest.mark.parametrize(
    "words",
    [
        ["task", "create"],
        ["task", "create", "a", "b"],
        ["task", "create", "a", "--nonsense"],
        ["task", "create", "a", "--priority", "high"],
        ["task", "list", "--limit", "99999999999999999999"],
        ["task", "list", "--state", "DONE"],
        ["task", "lisst"],
        ["task"],
        ["taks", "list"],
        ["--nonsense", "task", "list"],
        ["task", "list", "-C", "/no/such/folder"],
        ["task", "list", "-c", "lease"],
        ["completion", "tcsh"],
        [],
    ],
)
def test_wrong_usage(rook: Rook, words: list[str]) -> None:
    ran = rook("--json", *words)
    assert (ran.status, ran.error["code"]) == (2, "usage")
    assert ran.error["hint"]
    assert ran.err == b""
    plain = rook(*words)
    assert plain.status == (0 if not words else 2)
    assert b"Traceback" not in plain.err


def test_bytes_that_are_no_text(rook: Rook) -> None:
    before = rook.count_events()
    for ran in (
        rook.json("task", "create", b"bad \xff title"),
        rook.json("task", "create", "x", "--description", "-", stdin=b"a\0b"),
        rook.json("task", "claim", "--agent", "a\nb"),
        rook.json("task", "claim", "--agent", b"\xff"),
        rook.json("task", "search", b"\xff"),
    ):
        assert (ran.status, ran.error["code"]) == (1, "invalid_input")
        assert ran.error["hint"]
    assert rook.json("task", "create", "x", "--description", "-", stdin=b"\xff").error["code"] == "usage"
    assert rook.json("task", "get", b"\xff\xff\xff\xff\xff\xff").error["code"] == "invalid_id"
    for name in ("a\nb", "\udcff"):
        ran = rook.json("task", "create", "x", env={"ROOKERY_AGENT": name})
        assert (ran.status, ran.error["code"]) == (1, "forged_sender")
    assert rook.count_events() == before


def test_no_project(tmp_path: Path) -> None:
    ran = run_rook(tmp_path, "task", "list", "--json")
    assert (ran.status, ran.error["code"]) == (1, "not_initialised")
    assert "rook init" in ran.error["hint"]
    ran = run_rook(tmp_path, "task", "list", "--json", env={"ROOKERY_ROOT": str(tmp_path)})
    assert ran.error["code"] == "not_initialised"


def test_people_read_errors_on_standard_error(rook: Rook) -> None:
    ran = rook("task", "get", _NONE)
    assert (ran.status, ran.out) == (1, b"")
    assert ran.err.decode().splitlines() == [f"error: no task {_NONE}", "hint: `rook task list` lists them"]


_TASKS = "`rook task list` lists them"
_WORK = "`rook status --all` lists agents, `rook task list` tasks"


@pytest.mark.parametrize(
    ("line", "says", "hint"),
    [
        ("task get nosuch", "no task nosuch", _TASKS),
        ("epic fail nosuch", "no task nosuch", _TASKS),
        ("review show nosuch", "no task nosuch", _WORK),
        ("compare nosuch", "no task nosuch", _WORK),
        ("trace nosuch", "no task nosuch", _WORK),
        ("mail read nosuch", "no message nosuch", "`rook mail list` lists them"),
        ("run show nosuch", "no run nosuch", "`rook run list` lists them"),
        ("merge explain nosuch", "'nosuch' is neither queued nor has it landed", "`rook merge list --all` lists"),
    ],
)
def test_a_wrong_name_is_refused_with_the_command_that_lists_the_right_ones(
    rook: Rook, line: str, says: str, hint: str
) -> None:
    ran = rook(*line.split())
    assert ran.status == 1
    message, offer = ran.err.decode().splitlines()
    assert message == f"error: {says}"
    assert offer.startswith(f"hint: {hint}")


def test_our_bug_leaves_a_log(
    rook: Rook, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from support import Ran

    def explode(*_args: object) -> None:
        raise ZeroDivisionError("oh \udcff no")

    monkeypatch.setattr(service, "get", explode)
    monkeypatch.chdir(rook.folder)
    for words in (["--json", "task", "get", _NONE], ["task", "get", _NONE]):
        status = cli.main(words)
        out, err = capfdbinary.readouterr()
        assert status == 3
        assert b"Traceback" not in out + err
        if "--json" in words:
            error = Ran(status, out, err).error
            assert error["code"] == "bug"
            with open(error["log"], encoding="utf-8") as log:
                text = log.read()
            assert "ZeroDivisionError" in text
            assert error["log"].startswith(str(rook.folder))
