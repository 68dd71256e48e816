"""State that came with a repository, or belongs to another user, is refused before anything of it is used."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import end_processes, plant

from conftest import git
from daemons import run_as_guest
from rookery.base.errors import UntrustedState
from rookery.config.environ import is_own
from rookery.config.layout import FOLDER
from rookery.daemon.hello import Guest
from rookery.doctor.ops import doctor
from rookery.ops import state_owner
from rookery.ops.context import Context
from rookery.ops.init import init
from rookery.ops.state_owner import check_state, find_project
from rookery.processes.python import module_command
from rookery.runtimes.hooks import hook_command
from rookery.vcs import tracked
from rookery.vcs.tracked import is_state
from support import child_environ, run_rook
from vcs.repositories import KINDS, JjRepository, Repository, find_jj, run

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
ANOTHER = 12345


class Clone:
    """A fresh clone of a hostile repository, and the file that its command would make."""

    def __init__(self, root: Path, canary: Path) -> None:
        self.root = root
        self.canary = canary

    def assert_nothing_ran(self) -> None:
        """No runner was started: its log is there before it is."""
        assert list(self.root.glob(".rookery/sessions/*/runner.log")) == []
        assert not self.canary.exists()

    def agent(self) -> dict[str, str]:
        """The environment of the agent that the state says is alive."""
        (folder,) = self.root.glob(".rookery/sessions/*")
        token = (folder / "token").read_text()
        variables = {"ROOT": str(self.root), "AGENT": "builder-1", "SESSION": folder.name, "TOKEN": token}
        return {f"ROOKERY_{name}": value for name, value in variables.items()}


@pytest.fixture(params=["git", "jj", "jj-colocated"])
def clone(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clone]:
    """A clone by each version control; the author used git."""
    if request.param != "git":
        find_jj(monkeypatch)
    author, canary, root = tmp_path / "author", tmp_path / "canary", tmp_path / "clone"
    author.mkdir()
    git(author, "init", "-q")
    plant(author, canary)
    git(author, "add", "-f", ".")
    git(author, "commit", "-qm", "Begin")
    if request.param == "jj":
        # Not by `jj git clone`, which wants a newer git than every machine has.
        run(tmp_path, "jj", "--quiet", "git", "init", f"--git-repo={author}/.git", "clone")
        run(root, "jj", "--quiet", "new", "main")
    else:
        git(tmp_path, "clone", "-q", str(author), "clone")
    if request.param == "jj-colocated":
        run(root, "jj", "--quiet", "git", "init", "--colocate")
    assert (root / ".rookery" / "rookery.db").exists()
    yield Clone(root, canary)
    end_processes(root)


COMMANDS = (
    ("status",),
    ("init", "--yes"),
    ("sling", "something", "--role", "builder"),
    ("merge", "--all"),
    ("mail", "check"),
    ("task", "list"),
    ("config", "show"),
)


def test_no_command_uses_state_that_came_with_the_repository(clone: Clone, tmp_path: Path) -> None:
    for words in COMMANDS:
        for folder, env in ((clone.root, {}), (tmp_path, {"ROOKERY_ROOT": str(clone.root)})):
            done = run_rook(folder, *words, "--json", env=env)
            assert (done.status, done.error["code"]) == (1, "untrusted_state"), (words, done)
            assert "rookery.db" in done.error["hint"]
    clone.assert_nothing_ran()


def test_an_agents_hook_refuses_it_and_a_persons_stays_silent(clone: Clone) -> None:
    statuses = {}
    for event in ("pre-tool", "session-start", "prompt"):
        payload = {"tool_name": "Read", "tool_input": {"file_path": "README.md"}, "cwd": str(clone.root)}
        for env in (clone.agent(), {}):
            done = subprocess.run(
                hook_command(event),
                input=json.dumps(payload).encode(),
                env=child_environ(env),
                cwd=clone.root,
                capture_output=True,
                timeout=60,
                check=False,
            )
            statuses[event, bool(env)] = done.returncode
            assert done.stdout == b""
            assert not env or b"would run as you" in done.stderr
    assert {event: statuses[event, True] for event, _ in statuses} == {"pre-tool": 2, "session-start": 1, "prompt": 1}
    assert {statuses[event, False] for event, _ in statuses} == {0}
    clone.assert_nothing_ran()


def test_the_processes_that_work_in_the_background_refuse_it(clone: Clone) -> None:
    for module, words in (("flows.loop_start", []), ("flows.radar", ["2", "1"])):
        done = subprocess.run(
            [*module_command(f"rookery.{module}"), str(clone.root), *words],
            env=child_environ(),
            cwd=clone.root,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert b"would run as you" in done.stderr
    clone.assert_nothing_ran()


def test_a_sandboxed_agent_is_refused_too(clone: Clone) -> None:
    env = clone.agent()
    guest = Guest(env["ROOKERY_SESSION"], child_environ(env), str(clone.root))
    status, _, err = run_as_guest(str(clone.root), guest, "task", "list")
    assert status == 1
    assert b"would run as you" in err
    status, _, err = run_as_guest(str(clone.root), guest, "pre-tool", message=b"{}")
    assert status == 2
    assert b"would run as you" in err
    clone.assert_nothing_ran()


def test_the_doctor_reports_it_whatever_it_is_asked_for(clone: Clone) -> None:
    for category in (None, "agents"):
        report = doctor(Context(cwd=str(clone.root)), fix=True, category=category)
        errors = [(check.category, check.name) for check in report.checks if check.status == "error"]
        assert errors == [("config", "state")]
        assert report.exit_status == 1
    clone.assert_nothing_ran()


def test_the_hint_gets_rid_of_it(clone: Clone) -> None:
    with pytest.raises(UntrustedState) as caught:
        init(Context(cwd=str(clone.root)))
    subprocess.run(caught.value.hint.split("`")[1], shell=True, check=True, capture_output=True)
    init(Context(cwd=str(clone.root)), yes=True)
    done = run_rook(clone.root, "status", "--json")
    assert done.data["agents"] == []
    clone.assert_nothing_ran()


@pytest.mark.parametrize("kind", KINDS)
def test_what_one_tracked_by_mistake_is_kept_by_the_other_hint(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind != "git":
        find_jj(monkeypatch)
    repository = KINDS[kind](tmp_path / "it's mine")
    repository.begin()
    init(Context(cwd=str(repository.path)), yes=True)
    (repository.path / ".rookery" / ".gitignore").write_text("cache\n")
    track(repository, ".rookery/rookery.db")
    with pytest.raises(UntrustedState) as caught:
        check_state(str(repository.path))
    subprocess.run(caught.value.hint.split("`")[5], shell=True, check=True, capture_output=True)
    assert find_project(str(repository.path)) == str(repository.path)
    assert (repository.path / ".rookery" / "rookery.db").stat().st_size > 0


def track(repository: Repository, *names: str) -> None:
    """Let the repository track files, ignored or not."""
    if isinstance(repository, JjRepository):
        files = [f"root:{json.dumps(name, ensure_ascii=False)}" for name in names]
        repository.jj("file", "track", "--include-ignored", *files)
    else:
        run(repository.path, "git", "add", "-f", "--", *names)


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        (".rookery/config.yaml", False),
        (".rookery/.gitignore", False),
        (".rookery/roles/builder.md", False),
        (".rookery/roles/deep/er.md", False),
        ("src/.rookery/rookery.db", False),
        (".rookery-notes/rookery.db", False),
        (".rookery", True),
        (".Rookery", True),
        (".rookery/rookery.db", True),
        (".ROOKERY/rookery.db", True),
        (".Rookery/config.yaml", True),
        (".roo\N{KELVIN SIGN}ery/rookery.db", True),
        (".rookery/Config.yaml", True),
        (".rookery/config.local.yaml", True),
        (".rookery/config.yaml/x", True),
        (".rookery/roles", True),
        (".rookery/Roles/builder.md", True),
        (".rookery/cache/untracked", True),
        (".rookery/run/config.json", True),
        (".rookery/new\nline", True),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_only_configuration_and_roles_may_be_tracked(
    kind: str, path: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_state(path) == refused
    assert is_state(f"a/b/{path}", "a/b") == refused
    if kind != "git":
        find_jj(monkeypatch)
    repository = KINDS[kind](tmp_path / "repo")
    repository.write(path)
    track(repository, path)
    if not refused:
        check_state(str(repository.path))
        return
    with pytest.raises(UntrustedState):
        check_state(str(repository.path))


def test_a_tracked_link_in_the_place_of_the_folder_is_refused(repo: Path) -> None:
    (repo / "elsewhere").mkdir()
    (repo / "elsewhere" / "rookery.db").touch()
    (repo / FOLDER).symlink_to("elsewhere")
    check_state(str(repo))
    git(repo, "add", "-f", FOLDER)
    with pytest.raises(UntrustedState):
        find_project(str(repo))


def test_state_in_a_folder_of_a_repository_is_refused_too(repo: Path, tmp_path: Path) -> None:
    inner = repo / "sub[1]" / "in\\ner*"
    plant(inner_of(inner), tmp_path / "canary")
    # A folder that git tracks can look like a repository of jj; it must not hide the one around it.
    (inner / ".jj").mkdir()
    (inner / ".jj" / "x").touch()
    git(repo, "add", "-f", ".")
    for start, root in ((inner, None), (tmp_path, str(inner)), (tmp_path, f"{repo}/sub[1]/../sub[1]/{inner.name}")):
        with pytest.raises(UntrustedState):
            find_project(str(start), root)
    (repo / "link").symlink_to(inner)
    with pytest.raises(UntrustedState):
        find_project(str(repo), str(repo / "link"))


@pytest.mark.parametrize("kind", KINDS)
def test_no_name_of_a_folder_hides_its_state(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind != "git":
        find_jj(monkeypatch)
    repository = KINDS[kind](tmp_path / "repo")
    for folder in ("in\\ner", "a[b]c", "*", "-o", 'quo"te', ":(top)x", "{a,b}", "~"):
        repository.write(f"{folder}/.rookery/rookery.db")
        check_state(str(repository.path / folder))
        track(repository, f"./{folder}/.rookery/rookery.db" if kind == "git" else f"{folder}/.rookery/rookery.db")
        with pytest.raises(UntrustedState):
            check_state(str(repository.path / folder))


def test_a_repository_that_calls_itself_bare_is_asked(project: Path) -> None:
    git(project, "config", "core.bare", "true")
    check_state(str(project))
    git(project, "--work-tree=.", "add", "-f", ".rookery/rookery.db")
    with pytest.raises(UntrustedState):
        check_state(str(project))


def inner_of(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def test_state_in_a_submodule_is_refused(repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", "other")
    plant(other, tmp_path / "canary")
    git(other, "add", "-f", ".")
    git(other, "commit", "-qm", "Begin")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    with pytest.raises(UntrustedState):
        find_project(str(repo / "sub"))


def test_state_in_an_index_of_another_form_is_refused(project: Path) -> None:
    git(project, "config", "core.splitIndex", "true")
    git(project, "config", "index.version", "4")
    git(project, "update-index", "--split-index", "--index-version", "4")
    check_state(str(project))
    git(project, "add", "-f", ".rookery/rookery.db")
    with pytest.raises(UntrustedState):
        check_state(str(project))


def test_version_control_is_asked_only_after_a_change(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    really = tracked.check_untracked

    def ask(root: str, top: str, index: str) -> None:
        asked.append(top)
        really(root, top, index)

    monkeypatch.setattr(state_owner, "check_untracked", ask)
    for _ in range(3):
        find_project(str(project))
    assert len(asked) == 1
    (project / "new").touch()
    git(project, "add", "new")
    for _ in range(3):
        find_project(str(project))
    assert len(asked) == 2
    git(project, "add", "-f", ".rookery/rookery.db")
    for _ in range(3):
        with pytest.raises(UntrustedState):
            find_project(str(project))
    assert len(asked) == 5
    git(project, "rm", "-q", "--cached", ".rookery/rookery.db")
    find_project(str(project))


def test_an_answer_from_another_clone_does_not_count(project: Path, tmp_path: Path) -> None:
    """The author of a repository commits the answer that he got before he committed the rest."""
    find_project(str(project))
    assert (project / ".rookery" / "cache" / "untracked").stat().st_size > 0
    git(project, "add", "-f", ".")
    git(project, "commit", "-qm", "Begin")
    git(tmp_path, "clone", "-q", str(project), "clone")
    assert (tmp_path / "clone" / ".rookery" / "cache" / "untracked").exists()
    with pytest.raises(UntrustedState):
        find_project(str(tmp_path / "clone"))


def test_it_is_refused_where_git_does_not_answer(project: Path) -> None:
    (project / ".git" / "index").write_bytes(b"damaged")
    with pytest.raises(UntrustedState, match="does not say") as caught:
        check_state(str(project))
    command = shlex.split(caught.value.hint.split("`")[1])
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_no_program_of_the_repository_is_asked(project: Path, tmp_path: Path) -> None:
    git(project, "config", "core.fsmonitor", f"touch {tmp_path}/canary;")
    git(project, "config", "core.hooksPath", str(tmp_path))
    check_state(str(project))
    assert not (tmp_path / "canary").exists()


def test_whose_state_may_act_for_whom() -> None:
    assert is_own(1000, 1000, None)
    assert is_own(0, 0, 1000)
    assert is_own(1000, 0, 1000)
    assert not is_own(1000, 0, None)
    assert not is_own(1001, 0, 1000)
    assert not is_own(0, 1000, None)
    assert not is_own(1001, 1000, 1001)


@needs_root
@pytest.mark.parametrize("what", [FOLDER, f"{FOLDER}/rookery.db"])
def test_state_of_another_user_is_refused(repo: Path, tmp_path: Path, what: str) -> None:
    clone = Clone(repo, tmp_path / "canary")
    plant(repo, clone.canary)
    os.chown(repo / what, ANOTHER, -1)
    for words in COMMANDS:
        for folder, env in ((repo, {}), (tmp_path, {"ROOKERY_ROOT": str(repo)})):
            done = run_rook(folder, *words, "--json", env=env)
            assert (done.status, done.error["code"]) == (1, "untrusted_state"), (words, done)
    clone.assert_nothing_ran()
    report = doctor(Context(cwd=str(repo)), fix=True)
    assert [check.name for check in report.checks if check.status == "error"] == ["state"]
    with pytest.raises(UntrustedState) as caught:
        find_project(str(repo))
    command = shlex.split(caught.value.hint.split("`")[3])
    assert command[0] == "sudo"
    subprocess.run(command[1:], check=True)
    assert find_project(str(repo)) == str(repo)


@needs_root
def test_a_link_of_another_user_or_to_his_state_is_refused(project: Path, tmp_path: Path) -> None:
    target = (project / FOLDER).rename(tmp_path / "state")
    (project / FOLDER).symlink_to(target)
    check_state(str(project))
    os.chown(project / FOLDER, ANOTHER, -1, follow_symlinks=False)
    with pytest.raises(UntrustedState):
        check_state(str(project))
    os.chown(project / FOLDER, 0, -1, follow_symlinks=False)
    os.chown(target, ANOTHER, -1)
    with pytest.raises(UntrustedState):
        check_state(str(project))


@needs_root
def test_root_by_sudo_uses_the_state_of_the_user_who_called_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (project / FOLDER, project / FOLDER / "rookery.db"):
        os.chown(path, ANOTHER, -1)
    for uid in ("", "1", "x"):
        monkeypatch.setenv("SUDO_UID", uid)
        with pytest.raises(UntrustedState):
            check_state(str(project))
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    check_state(str(project))
