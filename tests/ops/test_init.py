"""`rook init`, on real repositories."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import rookery
from conftest import git
from rookery.base import call
from rookery.base.errors import ConfigInvalid, InvalidInput, NoRepository, Refused, StorageFailed
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.model import GateConfig, VcsConfig
from rookery.config.project import find_root
from rookery.ops.context import Context
from rookery.ops.guess import guess_gates
from rookery.ops.index import find
from rookery.ops.init import Initialised, init
from rookery.vcs.backend import Vcs
from rookery.vcs.model import UnknownRevision

EVERYTHING = (".rookery/", ".rookery/.gitignore", ".rookery/config.yaml", ".rookery/rookery.db")


def context(cwd: Path, *, interactive: bool = False, env: dict[str, str] | None = None, **flags: str) -> Context:
    dotted = {name.replace("_", "."): text for name, text in flags.items()}
    ctx = Context(cwd=str(cwd), environ=read_environ(dict(os.environ) | (env or {})), flags=dotted)
    ctx.is_interactive = interactive
    return ctx


def base_in_force(root: Path) -> str:
    return load_config(str(root), read_environ(), {}).config.project.base


def forbid_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(prompt: str = "") -> str:
        raise AssertionError(f"asked: {prompt}")

    monkeypatch.setattr(call, "ask", ask)


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    asked: list[str] = []

    def say(prompt: str = "") -> str:
        asked.append(prompt)
        return text

    monkeypatch.setattr(call, "ask", say)
    return asked


def test_a_repository_becomes_a_project(repo: Path) -> None:
    result = init(context(repo))
    assert (result.root, result.vcs, result.base) == (str(repo), "git", "main")
    assert result.created == EVERYTHING
    assert (result.kept, result.notes) == ((), ())
    assert any("rook task create" in step for step in result.next)
    assert find_root(str(repo)) == str(repo)
    assert base_in_force(repo) == "main"


def test_no_other_user_can_look_into_it(repo: Path) -> None:
    init(context(repo))
    assert (repo / ".rookery").stat().st_mode & 0o777 == 0o700


def test_git_sees_nothing_of_it(repo: Path) -> None:
    init(context(repo))
    assert git(repo, "status", "--porcelain", "--untracked-files=all") == ""
    git(repo, "add", "-A")
    assert git(repo, "status", "--porcelain") == ""


def test_what_the_user_chooses_can_be_kept_in_git(repo: Path) -> None:
    init(context(repo))
    git(repo, "add", "-f", ".rookery/config.yaml")
    assert git(repo, "status", "--porcelain") == "A  .rookery/config.yaml"


def test_a_second_run_keeps_everything(repo: Path) -> None:
    init(context(repo))
    config = repo / ".rookery" / "config.yaml"
    config.write_text("project:\n  base: main\ntasks:\n  lease: 2h\n")
    database = (repo / ".rookery" / "rookery.db").read_bytes()
    again = init(context(repo))
    assert (again.created, again.kept) == ((), EVERYTHING)
    assert "lease: 2h" in config.read_text()
    assert (repo / ".rookery" / "rookery.db").read_bytes() == database


@pytest.mark.parametrize("missing", EVERYTHING[1:])
def test_what_is_missing_is_made_again(repo: Path, missing: str) -> None:
    init(context(repo))
    (repo / missing).unlink()
    again = init(context(repo))
    assert again.created == (missing,)
    assert (repo / missing).stat().st_size > 0


def test_what_a_kill_left_half_made_is_finished(repo: Path) -> None:
    folder = repo / ".rookery"
    folder.mkdir()
    (folder / ".gitignore").touch()
    (folder / "config.yaml.new").write_text("tas")
    result = init(context(repo))
    assert result.kept == (".rookery/",)
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith("rookery.db-")) == [
        ".gitignore",
        "config.yaml",
        "rookery.db",
    ]
    assert git(repo, "status", "--porcelain") == ""


_KILLED = """
import os, signal, sys
from rookery.ops.context import Context
from rookery.ops.init import init

left = int(sys.argv[1])

def watch(event, args):
    global left
    if event in {"open", "os.mkdir", "os.rename", "os.link", "os.remove"} and "/.rookery" in str(args[0]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
init(Context())
"""


@pytest.mark.slow
def test_what_a_kill_at_any_step_leaves_is_finished_by_the_next_run(repo: Path) -> None:
    sources = os.path.dirname(os.path.dirname(os.path.abspath(rookery.__file__)))
    steps = 0
    status = -signal.SIGKILL
    while status == -signal.SIGKILL:
        steps += 1
        shutil.rmtree(repo / ".rookery", ignore_errors=True)
        argv = [sys.executable, "-c", _KILLED, str(steps)]
        status = subprocess.run(argv, cwd=repo, env=os.environ | {"PYTHONPATH": sources}, timeout=60).returncode
        init(context(repo))
        assert find_root(str(repo)) == str(repo)
        assert base_in_force(repo) == "main"
        assert git(repo, "status", "--porcelain") == ""
    assert status == 0
    assert steps > 5


def test_below_the_top_the_whole_repository_is_initialised(repo: Path) -> None:
    (repo / "a" / "b").mkdir(parents=True)
    result = init(context(repo / "a" / "b"))
    assert result.root == str(repo)
    assert result.notes == (f"you are in {repo}/a/b; the project is at {repo}, the repository's main checkout",)
    assert not (repo / "a" / "b" / ".rookery").exists()


def test_in_a_linked_worktree_the_main_checkout_is_initialised(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    result = init(context(tmp_path / "linked"))
    assert (result.root, result.base) == (str(repo), "main")
    assert not (tmp_path / "linked" / ".rookery").exists()
    assert git(tmp_path / "linked", "status", "--porcelain") == ""


def test_worktrees_of_a_bare_repository_share_one_project(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "one"))
    result = init(context(tmp_path / "one"))
    assert (result.root, result.base) == (str(tmp_path / "bare.git"), "main")
    assert find_root(str(tmp_path / "one")) == result.root


def test_a_repository_without_a_commit_works(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "unborn")
    result = init(context(tmp_path))
    assert result.base == "unborn"
    assert result.next[0].startswith("make a first commit")


def test_where_no_base_is_found_the_user_is_told_to_set_it(repo: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    git(repo, "branch", "-q", "-D", "main")
    result = init(context(repo))
    assert result.base is None
    assert result.next[0].startswith("set project.base")
    assert base_in_force(repo) == ""


def test_the_base_can_be_given(repo: Path) -> None:
    git(repo, "branch", "develop")
    assert init(context(repo, project_base="develop")).base == "develop"
    assert base_in_force(repo) == "develop"


def test_a_base_that_does_not_exist_is_refused_and_nothing_made(repo: Path) -> None:
    with pytest.raises(UnknownRevision):
        init(context(repo, project_base="develop"))
    assert not (repo / ".rookery").exists()


def test_a_kept_configuration_gives_the_base(repo: Path) -> None:
    (repo / ".rookery").mkdir()
    (repo / ".rookery" / "config.yaml").write_text("project:\n  base: release\n")
    assert init(context(repo)).base == "release"


def test_the_settings_of_version_control_reach_it(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import rookery.vcs.detect as detect

    real = detect.open_vcs
    seen: list[VcsConfig] = []

    def watch(start: str, config: VcsConfig) -> Vcs:
        seen.append(config)
        return real(start, config)

    monkeypatch.setattr("rookery.ops.init.open_vcs", watch)
    init(context(repo, vcs_backend="git", vcs_timeout="7s"))
    assert [(config.backend, config.timeout) for config in seen] == [("git", 7.0)]


def test_outside_a_repository_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(NoRepository) as caught:
        init(context(tmp_path))
    assert "git init" in caught.value.hint
    assert "--force" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_force_plans_without_version_control(tmp_path: Path) -> None:
    result = init(context(tmp_path), force=True)
    assert (result.root, result.vcs, result.base) == (str(tmp_path), None, None)
    assert "git init" in result.next[0]
    (tmp_path / "below").mkdir()
    again = init(context(tmp_path / "below"))
    assert (again.root, again.created) == (str(tmp_path), ())


def test_force_writes_the_configuration_again_and_keeps_the_old(repo: Path) -> None:
    init(context(repo))
    config = repo / ".rookery" / "config.yaml"
    for number in (1, 2):
        config.write_text(f"broken {number}: [")
        result = init(context(repo), force=True)
        assert result.created == (f".rookery/config.yaml.bak-{number}", ".rookery/config.yaml")
        assert (repo / ".rookery" / f"config.yaml.bak-{number}").read_text() == f"broken {number}: ["
    assert base_in_force(repo) == "main"
    assert init(context(repo), force=True).created == ()


def test_a_broken_configuration_is_reported_and_kept(repo: Path) -> None:
    (repo / ".rookery").mkdir()
    (repo / ".rookery" / "config.yaml").write_text("tasks: [")
    with pytest.raises(ConfigInvalid):
        init(context(repo))
    assert [path.name for path in (repo / ".rookery").iterdir()] == ["config.yaml"]


def test_a_person_confirms_the_base(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repo, "branch", "develop")
    asked = answer(monkeypatch, "")
    assert init(context(repo, interactive=True)).base == "main"
    assert len(asked) == 1
    assert "[main]" in asked[0]
    shutil.rmtree(repo / ".rookery")
    answer(monkeypatch, " develop ")
    assert init(context(repo, interactive=True)).base == "develop"
    assert base_in_force(repo) == "develop"


def test_nothing_is_asked_where_the_answer_could_not_be_used(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_questions(monkeypatch)
    init(context(repo, interactive=True), yes=True)
    init(context(repo, interactive=True))
    (repo / ".rookery" / "config.yaml").write_text("# no base here\n")
    init(context(repo, interactive=True))
    shutil.rmtree(repo / ".rookery")
    init(context(repo, interactive=False))
    shutil.rmtree(repo / ".rookery")
    init(context(repo, interactive=True, project_base="main"))


def test_a_wrong_or_missing_answer_makes_nothing(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "nonsense")
    with pytest.raises(UnknownRevision):
        init(context(repo, interactive=True))

    def end(_prompt: str = "") -> str:
        raise EOFError

    monkeypatch.setattr(call, "ask", end)
    with pytest.raises(Refused):
        init(context(repo, interactive=True))
    assert not (repo / ".rookery").exists()


def test_a_file_in_place_of_the_folder_is_refused(repo: Path) -> None:
    (repo / ".rookery").write_text("mine")
    with pytest.raises(Refused, match="is not a folder"):
        init(context(repo))
    assert (repo / ".rookery").read_text() == "mine"


@pytest.mark.parametrize("target", ["outside", "gone"])
def test_a_link_that_leads_out_is_refused(repo: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "outside").mkdir()
    (repo / ".rookery").symlink_to(tmp_path / target)
    with pytest.raises(Refused, match="leads out"):
        init(context(repo))
    assert list((tmp_path / "outside").iterdir()) == []
    assert not (tmp_path / "gone").exists()


def test_a_link_within_the_repository_is_followed(repo: Path) -> None:
    (repo / "state").mkdir()
    (repo / ".rookery").symlink_to("state")
    assert init(context(repo)).root == str(repo)
    assert (repo / "state" / "rookery.db").is_file()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a file system that no user can write")
def test_a_folder_that_cannot_be_written() -> None:
    with pytest.raises(StorageFailed, match=r"/proc/\.rookery cannot be written"):
        init(context(Path("/proc")), force=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(repo: Path) -> None:
    repo.chmod(0o555)
    with pytest.raises(StorageFailed, match="Permission denied"):
        init(context(repo))
    repo.chmod(0o755)


def test_the_environment_can_name_the_root(repo: Path, tmp_path: Path) -> None:
    assert init(context(tmp_path, env={"ROOKERY_ROOT": str(repo)})).root == str(repo)
    with pytest.raises(InvalidInput):
        init(context(repo, env={"ROOKERY_ROOT": str(tmp_path / "gone")}))


def _init_at(folder: str) -> Initialised:
    result: Initialised = init(Context(cwd=folder))
    return result


@pytest.mark.slow
def test_many_at_once_make_everything_once(repo: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(_init_at, [str(repo)] * 8))
    assert sorted(path for result in results for path in result.created) == sorted(EVERYTHING)
    assert git(repo, "status", "--porcelain") == ""


def test_an_init_that_waits_for_another_keeps_its_files(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock
    others: list[Initialised] = []

    def wait(handle: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        others.append(init(context(repo)))
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", wait)
    mine = init(context(repo))
    assert [other.created for other in others] == [EVERYTHING[1:]]
    assert (mine.created, mine.kept) == (EVERYTHING[:1], EVERYTHING[1:])


def test_a_file_system_without_locks_is_no_obstacle(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_handle: int, _how: int) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", fail)
    assert init(context(repo)).created == EVERYTHING


def test_it_is_offered() -> None:
    operation, words = find(["init"])
    assert operation is not None
    assert (words, operation.needs, operation.view) == (1, "project.write", "project.init")


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"pytest.ini": ""}, ["pytest -q"]),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ["pytest -q"]),
        ({"tests/test_a.py": ""}, ["pytest -q"]),
        ({"tests/readme.md": ""}, []),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, ["npm test"]),
        ({"package.json": '{"scripts": {"test": "jest"}}', "pnpm-lock.yaml": ""}, ["pnpm test"]),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ({"package.json": "["}, []),
        ({"package.json": '{"scripts": []}'}, []),
        ({"Cargo.toml": "[package]\n"}, ["cargo test"]),
        ({"go.mod": "module a\n"}, ["go test ./..."]),
        ({"Makefile": "build:\n\ttrue\ntest: build\n\ttrue\n"}, ["make test"]),
        ({"Makefile": "build:\n\ttrue\n"}, []),
        ({"Makefile": "test:\n\ttrue\n", "go.mod": "module a\n"}, ["go test ./..."]),
        ({"pytest.ini": "", "Cargo.toml": "x"}, ["pytest -q", "cargo test"]),
    ],
)
def test_gates_are_guessed_from_what_is_there(tmp_path: Path, files: dict[str, str], wanted: list[str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [guess.gate.run for guess in guess_gates(str(tmp_path))] == wanted


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest is installed, cargo is not."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "pytest").touch(mode=0o755)
    real = shutil.which("git")
    assert real is not None
    (folder / "git").symlink_to(real)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.usefixtures("tools")
def test_guessed_gates_are_written_and_shown(repo: Path) -> None:
    (repo / "pytest.ini").write_text("")
    (repo / "Cargo.toml").write_text("[package]\n")
    result = init(context(repo))
    assert result.gates == ("pytest -q",)
    assert any("cargo is not installed" in note for note in result.notes)
    assert context(repo).config.gates == (GateConfig("pytest", "pytest -q"),)
    assert init(context(repo)).gates == ("pytest -q",)


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(("answer", "wanted"), [("", 1), ("y", 1), ("n", 0)])
def test_a_person_is_asked_about_gates(repo: Path, monkeypatch: pytest.MonkeyPatch, answer: str, wanted: int) -> None:
    (repo / "pytest.ini").write_text("")
    answers = iter(["", answer])
    monkeypatch.setattr(call, "ask", lambda _prompt: next(answers))
    init(context(repo, interactive=True))
    assert len(context(repo).config.gates) == wanted
