"""The two files of the project's environment: private, written together or not at all, bound to the project's path."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import Rook
from disks import fill, small_disk
from rookery.environment import store
from rookery.environment.model import Variables
from rookery.environment.service import own_environ, project_environ
from rookery.environment.store import EnvironmentUnusable, Stored

__all__ = ["small_disk"]

_NOW = "2026-01-31T12:00:00.000Z"


def put(root: Path, plain: dict[str, str], credentials: dict[str, str], state: Path) -> Path:
    """Write a record; return the file of the credentials."""
    with store.writing(str(root)):
        path = store.write(str(root), str(state), Variables(plain, credentials), at=_NOW, by="ada", how="sling")
    return Path(path)


def get(root: Path) -> Stored:
    stored = store.read(str(root))
    assert stored is not None
    return stored


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_credentials_lie_apart_and_everything_is_private(project: Path, state: Path) -> None:
    path = put(project, {"A": "1"}, {"A_KEY": "hush"}, state)
    assert get(project).variables == Variables({"A": "1"}, {"A_KEY": "hush"})
    assert path.is_relative_to(state / "rookery")
    record = project / ".rookery/environment.json"
    assert "hush" not in record.read_text()
    assert (mode(record), mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o600, 0o700, 0o700)


def test_without_credentials_there_is_no_second_file(project: Path, state: Path) -> None:
    put(project, {"A": "1"}, {"A_KEY": "hush"}, state)
    put(project, {"A": "2"}, {}, state)
    assert get(project).variables == Variables({"A": "2"}, {})
    assert [path for path in state.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "value", ["two\nlines\n", "", " ", "\udcff\udc80 bytes", "=", "'\"$(id)`", "ünïcödé 🐦", "x" * 131_000, "\x1b[31m"]
)
def test_hostile_values_come_back_as_they_are(project: Path, state: Path, value: str) -> None:
    put(project, {"A": value}, {"A_KEY": value}, state)
    assert get(project).variables == Variables({"A": value}, {"A_KEY": value})


def test_what_no_program_can_be_started_with_is_left_out(project: Path, state: Path) -> None:
    path = put(project, {"A": "1"}, {"K": "1"}, state)
    for file, key in ((project / ".rookery/environment.json", "plain"), (path, "values")):
        data = json.loads(file.read_text())
        data[key] |= {"B=C": "x", "": "x", "N\0": "x", "V": "x\0y", "L": "x" * 200_000, "I": 1}
        file.write_text(json.dumps(data))
    assert get(project).variables == Variables({"A": "1"}, {"K": "1"})


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _link_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to("elsewhere")


def _give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(path, 12345, 12345)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


_SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "it is gone": (lambda path: path.unlink(), "is gone"),
    "its folder is gone": (lambda path: shutil.rmtree(path.parent), "is gone"),
    "others may read it": (lambda path: path.chmod(0o640), "others may read"),
    "it is a link": (_link, "is a link"),
    "its folder is a link": (_link_folder, "not a folder that only you can change"),
    "others may write its folder": (lambda path: path.parent.chmod(0o777), "not a folder that only you can change"),
    "it is another user's": (_give_away, "belongs to another user"),
    "it is no JSON": (lambda path: path.write_text("{"), "is broken"),
    "it is a list": (lambda path: path.write_text("[]"), "is broken"),
    "it has no values": (lambda path: path.write_text(path.read_text().replace('"values"', '"x"')), "is broken"),
    "it is a pipe": (_pipe, "is no file"),
    "it is another project's": (lambda path: path.write_text('{"root": "/x", "values": {}}'), "another project"),
}


@pytest.mark.parametrize("name", _SPOILED)
def test_a_spoiled_file_is_refused_and_nothing_takes_its_place(
    project: Path, state: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(project, {"A": "recorded"}, {"A_KEY": "hush"}, state)
    spoil, problem = _SPOILED[name]
    spoil(path)
    with pytest.raises(EnvironmentUnusable, match=problem) as refused:
        store.read(str(project))
    assert refused.value.hint
    monkeypatch.setenv("A", "the caller's")
    with pytest.raises(EnvironmentUnusable, match=problem):
        project_environ(str(project))
    assert own_environ(str(project)).keys() & {"A", "A_KEY"} in ({"A"}, set())
    assert own_environ(str(project)).get("A", "recorded") == "recorded"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"v": 1}', '{"v": 9, "plain": {}, "names": []}', "[" * 99_999]
)
def test_a_broken_record_is_refused(project: Path, content: str) -> None:
    path = project / ".rookery/environment.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(EnvironmentUnusable, match="is broken"):
        store.read(str(project))


def test_no_record_is_no_error(project: Path) -> None:
    assert store.read(str(project)) is None


def test_a_record_that_has_vanished_is_one(project: Path, state: Path) -> None:
    put(project, {"A": "1"}, {}, state)
    (project / ".rookery/environment.json").unlink()
    with pytest.raises(EnvironmentUnusable, match="is gone"):
        store.read(str(project))


def test_an_attempt_to_record_is_no_record(project: Path, state: Path) -> None:
    with pytest.raises(OSError, match="stop"), store.writing(str(project)):
        raise OSError("stop")
    assert store.read(str(project)) is None


def test_the_lock_of_the_writer_is_no_link(project: Path, tmp_path: Path) -> None:
    (project / ".rookery/run").mkdir(exist_ok=True)
    (tmp_path / "elsewhere").touch()
    (project / ".rookery/run/environment.lock").symlink_to(tmp_path / "elsewhere")
    assert Rook(project)("env", "refresh").status == 1
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_nothing_is_written_where_a_link_leads(project: Path, state: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    state.mkdir()
    (state / "rookery").symlink_to(elsewhere)
    with pytest.raises(EnvironmentUnusable, match="is a link"):
        put(project, {}, {"A_KEY": "hush"}, state)
    assert list(elsewhere.iterdir()) == []
    assert store.read(str(project)) is None


def test_a_folder_that_others_can_look_into_is_closed(project: Path, state: Path) -> None:
    (state / "rookery").mkdir(parents=True, mode=0o755)
    path = put(project, {}, {"A_KEY": "hush"}, state)
    assert mode(path.parent.parent) == 0o700


def test_a_copy_of_the_project_has_no_credentials(project: Path, state: Path, tmp_path: Path) -> None:
    put(project, {"A": "1"}, {"A_KEY": "hush"}, state)
    copy = tmp_path / "copy"
    shutil.copytree(project, copy)
    with pytest.raises(EnvironmentUnusable, match=f"recorded for {project}.*copied or moved"):
        store.read(str(copy))
    ran = Rook(copy)("env", "show")
    assert ran.status == 0
    assert "copied or moved" in " ".join(ran.out.decode().split())
    assert get(project).variables.credentials == {"A_KEY": "hush"}
    # Its own record is another file, and the first one stays.
    put(copy, {"A": "2"}, {"A_KEY": "other"}, state)
    assert get(copy).variables.credentials == {"A_KEY": "other"}
    assert get(project).variables.credentials == {"A_KEY": "hush"}


@pytest.mark.parametrize(("step", "kept"), [("credentials written", "old"), ("environment written", "new")])
def test_killed_between_the_two_files(project: Path, step: str, kept: str) -> None:
    rook = Rook(project)
    assert rook("env", "refresh", env={"A": "old", "A_KEY": "old"}).status == 0
    ran = rook("env", "refresh", env={"A": "new", "A_KEY": "new", "ROOKERY_TEST_KILL": step})
    assert ran.status == -signal.SIGKILL
    variables = get(project).variables
    assert (variables.plain["A"], variables.credentials["A_KEY"]) == (kept, kept)
    # What was left is gone after the next one.
    assert rook("env", "refresh", env={"A": "third", "A_KEY": "third"}).status == 0
    stored = get(project)
    assert (stored.variables.plain["A"], stored.variables.credentials["A_KEY"]) == ("third", "third")
    assert [path.name for path in Path(stored.credentials_path).parent.iterdir()] == [
        os.path.basename(stored.credentials_path)
    ]


def test_who_writes_keeps_others_out(project: Path) -> None:
    path = project / ".rookery/run/environment.lock"
    with store.writing(str(project)), path.open("w") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with path.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.slow
def test_many_refreshes_at_once_leave_one_of_them_whole(project: Path) -> None:
    rook = Rook(project)
    words = [f"value-{number}" for number in range(6)]

    def refresh(word: str) -> int:
        return rook("env", "refresh", env={"A": word, "A_KEY": word, "B_KEY": word}).status

    with ThreadPoolExecutor(len(words)) as pool:
        running = [pool.submit(refresh, word) for word in words]
        while not all(refreshing.done() for refreshing in running):  # a reader sees one whole record meanwhile, too
            record = store.read(str(project))
            if record is not None:
                values = record.variables.whole
                assert len({values["A"], values["A_KEY"], values["B_KEY"]}) == 1
        assert [refreshing.result() for refreshing in running] == [0] * len(words)
    stored = get(project)
    assert stored.variables.plain["A"] == stored.variables.credentials["A_KEY"]
    assert len(list(Path(stored.credentials_path).parent.iterdir())) == 1


@pytest.mark.parametrize("full", ["the state folder's", "the project's"])
def test_a_full_disk_changes_nothing(project: Path, tmp_path: Path, small_disk: Path, full: str) -> None:
    home = tmp_path / "own"
    if full == "the project's":
        shutil.move(project, small_disk / "repo")
        project = small_disk / "repo"
    else:
        home = small_disk
    rook = Rook(project)
    env = {"XDG_STATE_HOME": str(home)}
    big = "x" * 100_000
    assert rook("env", "refresh", env={**env, "A": "old", "A_KEY": "old"}).status == 0
    filler = fill(small_disk, 20_000)
    ran = rook("env", "refresh", env={**env, "A": big, "A_KEY": big})
    assert (ran.status, b"Traceback" in ran.err) == (1, False), ran
    assert b"No space left" in ran.err
    variables = get(project).variables
    assert (variables.plain["A"], variables.credentials["A_KEY"]) == ("old", "old")
    filler.unlink()
    assert rook("env", "refresh", env={**env, "A": big, "A_KEY": big}).status == 0
    assert get(project).variables.credentials["A_KEY"] == big
