"""Gates: what they are run on, what is remembered of them, and that a bad one does no harm."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from conftest import git
from rookery.merge.gates.service import matches
from rookery.processes.proctree import marked
from rookery.sandbox.probe import probe

from .yard import Yard

pytestmark = pytest.mark.slow


def run(yard: Yard, *words: str) -> tuple[int, list[dict[str, object]]]:
    ran = yard.rook.json("gate", "run", *words)
    return ran.status, ran.envelope["data"]["runs"]


def test_a_gate_sees_what_is_committed_and_nothing_else(yard: Yard) -> None:
    yard.settings("", "cat a.txt; ls; env | sort; pwd")
    yard.commit(a_txt="committed\n")
    (yard.folder / "a.txt").write_text("changed\n")
    (yard.folder / "loose.txt").write_text("loose\n")
    status, (result,) = run(yard)
    assert (status, result["verdict"]) == (0, "passed")
    log = Path(str(result["log"])).read_text()
    assert log.startswith("committed\n")
    assert "loose.txt" not in log
    assert "ROOKERY_TOKEN" not in log
    assert "GIT_DIR" not in log
    assert ".rookery/scratch/" in log
    yard.assert_tidy()


def test_provisioning_comes_first(yard: Yard) -> None:
    (yard.folder / ".env").write_text("SECRET=12345678\n")
    (yard.folder / ".git" / "info" / "exclude").write_text(".env\n")
    yard.settings(
        "", 'grep 12345678 .env && test -f made && test $COLOUR = blue && test -z "$(git status --porcelain)"'
    )
    config = yard.folder / ".rookery" / "config.local.yaml"
    config.write_text(
        config.read_text().replace(
            "provision:\n", "provision:\n  copy: [.env]\n  setup: touch made\n  env: {COLOUR: blue}\n"
        )
    )
    assert run(yard)[0] == 0


def test_what_passed_on_a_tree_is_not_run_again(yard: Yard, tmp_path: Path) -> None:
    count = tmp_path / "count"
    yard.settings("", f"echo x >> {count}")
    yard.branch("work", a_txt="a\n")
    assert run(yard, "--branch", "work")[0] == 0
    status, (again,) = run(yard, "--branch", "work")
    assert (status, again["is_cached"]) == (0, True)
    assert count.read_text() == "x\n"
    # The same tree lands without another run.
    assert yard.merge("--branch", "work").data["gate_runs"] == 0
    assert run(yard, "--branch", "work", "--fresh")[0] == 0
    assert count.read_text() == "x\nx\n"
    yard.settings("", f"echo x >> {count} ")  # another command
    assert run(yard, "--branch", "work")[1][0]["is_cached"] is False


def test_a_gate_with_paths_runs_where_they_changed(yard: Yard) -> None:
    (yard.folder / ".rookery" / "config.local.yaml").write_text(
        "gates:\n  - {name: docs, run: 'false', paths: [docs]}\n  - {name: all, run: 'true'}\n"
    )
    yard.branch("code", src__a_py="a\n")
    yard.branch("text", docs__a_md="a\n")
    assert yard.merge("--branch", "code").data["gate_runs"] == 1
    assert yard.merge("--branch", "text").status == 1
    assert "docs" in yard.entry("text")["reason"]


@pytest.mark.parametrize(
    ("path", "patterns", "fits"),
    [
        ("src/a.py", ("src",), True),
        ("src/a.py", ("src/",), True),
        ("srcs/a.py", ("src",), False),
        ("src/a.py", ("*.py",), True),
        ("README", ("src", "README"), True),
        ("a.js", ("*.py",), False),
    ],
)
def test_paths_are_files_folders_or_globs(path: str, patterns: tuple[str, ...], fits: bool) -> None:
    assert matches(path, patterns) is fits


def test_one_retry_tells_flaky_from_broken(yard: Yard, tmp_path: Path) -> None:
    once = tmp_path / "once"
    yard.settings("", f"test -e {once} || {{ touch {once}; echo not yet; exit 1; }}")
    yard.branch("work", a_txt="a\n")
    data = yard.merge("--branch", "work").data
    assert (data["entries"][0]["state"], data["flaky"], data["gate_runs"]) == ("landed", ["g1"], 2)
    (gate,) = yard.rook.json("gate", "list").data
    assert (gate["flaky"], gate["failed"]) == (1, 0)
    assert "gate.flaky" in yard.rook("events").out.decode()
    once.unlink()
    yard.settings("merge:\n  retries: 0\n", f"test -e {once} || {{ touch {once}; exit 1; }}")
    yard.branch("more", b_txt="b\n")
    assert yard.merge("--branch", "more").status == 1


def test_a_gate_that_repairs_the_files_and_fails_does_not_pass_on_what_it_repaired(yard: Yard) -> None:
    """As pre-commit does: the second run gets a checkout of its own, so that the branch does not land unformatted."""
    yard.settings("", "grep -q ugly a.txt || exit 0; echo pretty >a.txt; touch made; exit 1")
    yard.branch("work", a_txt="ugly\n")
    data = yard.merge("--branch", "work").envelope["data"]
    assert (yard.entry("work")["state"], data["flaky"], data["gate_runs"]) == ("failed", [], 3)
    yard.assert_tidy()


BUILD, TEST = "mkdir out; echo built; touch out/x", "test -e out/x || { echo not built; exit 2; }; test -e %s"


def test_a_gate_finds_what_those_before_it_made_also_when_these_are_known_to_pass(yard: Yard, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    yard.settings("", BUILD, TEST % flag)
    flag.touch()
    assert run(yard, "--base")[0] == 0
    yard.branch("work", a_txt="a\n")
    flag.unlink()
    assert yard.merge("--branch", "work").status == 1
    flag.touch()
    assert yard.rook("merge", "retry", "work").status == 0
    assert yard.merge("run").status == 0
    assert yard.contains("work")
    yard.assert_tidy()


def test_a_second_run_finds_what_the_gates_before_it_made(yard: Yard, tmp_path: Path) -> None:
    once = tmp_path / "once"
    yard.settings("", BUILD, f"test -e {once} || {{ touch {once}; exit 1; }}; {TEST % once}")
    yard.branch("work", a_txt="a\n")
    data = yard.merge("--branch", "work").data
    assert (data["entries"][0]["state"], data["flaky"], data["gate_runs"]) == ("landed", ["g2"], 4)
    yard.assert_tidy()


def test_a_gate_that_passed_and_fails_before_a_later_one_fails_the_commit(yard: Yard, tmp_path: Path) -> None:
    once, flag = tmp_path / "once", tmp_path / "flag"
    yard.settings("merge:\n  retries: 0\n", f"test ! -e {once}", f"test -e {flag}")
    assert run(yard)[0] == 1
    flag.touch()
    once.touch()
    status, runs = run(yard)
    assert (status, [(gate["name"], gate["is_cached"]) for gate in runs]) == (1, [("g1", False)])
    yard.assert_tidy()


def test_a_gate_that_hangs_is_ended_with_all_that_it_started(yard: Yard) -> None:
    (yard.folder / ".rookery" / "config.local.yaml").write_text(
        "gates:\n  - name: slow\n    timeout: 1s\n"
        "    run: 'test -e a.txt || exit 0; trap \"\" TERM INT; setsid sleep 1000 & echo begun; sleep 1000'\n"
    )
    yard.branch("work", a_txt="a\n")
    began = time.monotonic()
    assert yard.merge("--branch", "work").status == 1
    assert time.monotonic() - began < 60
    entry = yard.entry("work")
    assert (entry["state"], entry["kind"]) == ("failed", "gate")
    assert "did not end in time" in entry["reason"]
    assert not [pid for pid in _sleepers() if pid != os.getpid()]
    yard.assert_tidy()


def _sleepers() -> list[int]:
    """Processes of any scratch folder of this user's tests that are still alive."""
    pids = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                command = Path(f"/proc/{name}/cmdline").read_bytes()
                env = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if b"ROOKERY_SCRATCH=" in env and os.environ["HOME"].encode() in env and b"sleep" in command:
                pids.append(int(name))
    return pids


def test_a_gate_that_ends_but_leaves_something_running(yard: Yard) -> None:
    yard.settings("", "setsid sleep 1000 & echo done")
    yard.branch("work", a_txt="a\n")
    assert yard.merge("--branch", "work").status == 0
    assert not _sleepers()
    assert not marked("ROOKERY_SCRATCH", "x")
    yard.assert_tidy()


def test_output_is_bounded_and_its_end_is_shown(yard: Yard) -> None:
    command = "test -e a.txt || exit 0; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1"
    yard.settings("merge:\n  gate_output: 1\n", command)
    yard.branch("work", a_txt="a\n")
    assert yard.merge("--branch", "work").status == 1
    log = max((yard.folder / ".rookery" / "gates").rglob("*.log"), key=lambda path: path.stat().st_size)
    assert 1_000_000 <= log.stat().st_size < 1_001_000
    assert "the rest was not kept" in log.read_text()[-100:]
    status, (result,) = run(yard, "--branch", "work")
    assert status == 1
    assert str(result["last_lines"]).endswith("the end")


@pytest.mark.parametrize(
    "command",
    [
        "head -c 60000000 /dev/zero > big; sleep 0.1; echo survived; exit 0",
        "i=0; while [ $i -lt 60 ]; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); sleep 0.02; done; sleep 100",
        "i=0; while [ $i -lt 60 ]; do head -c 1000000 /dev/zero > $TMPDIR/f$i; i=$((i+1)); sleep 0.02; done; sleep 100",
    ],
    ids=["one file", "many files", "temporary files"],
)
def test_a_gate_that_fills_the_disk_is_ended(yard: Yard, command: str) -> None:
    yard.settings("merge:\n  gate_disk: 20\n  retries: 0\n", f"set -e; test -e a.txt || exit 0; {command}")
    yard.branch("work", a_txt="a\n")
    assert yard.merge("--branch", "work").status == 1
    entry = yard.entry("work")
    assert entry["kind"] == "gate"
    yard.assert_tidy()


def test_a_gate_that_writes_into_its_repository_reaches_only_its_own(yard: Yard) -> None:
    yard.settings(
        "",
        "git branch -f main HEAD~0; git checkout -qb evil; echo evil > evil.txt; git add .; git commit -qm evil; "
        "git branch -f main; git update-ref refs/heads/work HEAD; git config user.name Evil; git gc -q --prune=now; "
        "git reset -q --hard HEAD~1; git stash list; rm -rf .git; git status; true",
    )
    tip = yard.branch("work", a_txt="a\n")
    before = yard.main()
    config = (yard.folder / ".git" / "config").read_text()
    assert yard.merge("--branch", "work").status == 0
    assert git(yard.folder, "rev-parse", "work") == tip
    assert git(yard.folder, "log", "-1", "--format=%P", "main").split() == [before, tip]
    assert git(yard.folder, "branch", "--list", "evil") == ""
    assert (yard.folder / ".git" / "config").read_text() == config
    assert "evil.txt" not in git(yard.folder, "ls-tree", "--name-only", "main")
    assert git(yard.folder, "status", "--porcelain") == ""
    yard.assert_tidy()


def test_a_gate_that_moves_the_real_base_lands_nothing_untested(yard: Yard) -> None:
    """The gate uses the absolute path; the merger sees the move, and builds the candidate again on top of it."""
    yard.branch("work", a_txt="a\n")
    other = yard.branch("other", b_txt="b\n")
    yard.settings(
        "sandbox:\n  mode: 'off'\n",
        f"git -C {yard.folder} update-ref refs/heads/main {other}; test -e b.txt || echo without b",
    )
    git(yard.folder, "switch", "-q", "--detach")
    assert yard.merge("--branch", "work").data["gate_runs"] == 2
    assert yard.contains("other")
    assert yard.contains("work")


def need_sandbox() -> None:
    if not probe().works:
        pytest.skip(f"no sandbox here: {probe().reason}")


def test_a_gate_in_a_sandbox_can_only_read_the_project(yard: Yard, tmp_path: Path) -> None:
    need_sandbox()
    elsewhere = tmp_path / "elsewhere"
    attempts = [
        f"echo evil > {yard.folder}/README.md",
        f"echo evil > {yard.folder}/evil.txt",
        f"git -C {yard.folder} update-ref refs/heads/main HEAD~1",
        f"git -C {yard.folder} config user.name Evil",
        f"rm -rf {yard.folder}/.git/refs",
        f"echo x > {yard.folder}/.rookery/rookery.db",
    ]
    tried = "; ".join(f"{attempt} && exit 7" for attempt in attempts)
    yard.settings("", f"{tried}; echo fine > mine.txt && echo fine > $TMPDIR/t && echo fine > {elsewhere}")
    yard.branch("work", a_txt="a\n")
    before = (yard.folder / ".git" / "config").read_text()
    data = yard.merge("--branch", "work").data
    assert data["entries"][0]["state"] == "landed"
    assert elsewhere.read_text() == "fine\n"
    assert (yard.folder / "README.md").read_text() == "hello\n"
    assert (yard.folder / ".git" / "config").read_text() == before
    assert git(yard.folder, "status", "--porcelain") == ""
    yard.assert_tidy()


def test_the_setup_command_of_a_branch_can_only_read_the_project_too(yard: Yard) -> None:
    """It runs the branch's own code, such as the scripts of its package.json."""
    need_sandbox()
    yard.settings("", "test -e mine.txt")
    yard.branch("work", setup_sh=f"echo evil >{yard.folder}/evil.txt; touch mine.txt; echo $TMPDIR >$TMPDIR/t\n")
    config = yard.folder / ".rookery" / "config.local.yaml"
    setup = "provision:\n  setup: if test -e setup.sh; then sh setup.sh; else touch mine.txt; fi\n"
    config.write_text(config.read_text().replace("provision:\n", setup))
    assert yard.merge("--branch", "work").status == 0
    assert not (yard.folder / "evil.txt").exists()
    yard.assert_tidy()


def test_what_is_linked_into_a_checkout_stays_writable_in_the_sandbox(yard: Yard) -> None:
    need_sandbox()
    (yard.folder / "deps").mkdir()
    (yard.folder / ".git" / "info" / "exclude").write_text("deps\n")
    yard.settings("", "echo cached > deps/cache")
    config = yard.folder / ".rookery" / "config.local.yaml"
    config.write_text(config.read_text().replace("provision:\n", "provision:\n  link: [deps]\n"))
    assert run(yard)[0] == 0
    assert (yard.folder / "deps" / "cache").read_text() == "cached\n"


def test_wrong_words(yard: Yard) -> None:
    yard.settings("", "true")
    assert yard.rook.json("gate", "run", "g9").error["code"] == "invalid_input"
    assert yard.rook.json("gate", "run", "--branch", "main", "--commit", "main").error["code"] == "invalid_input"
    assert yard.rook.json("gate", "run", "--commit", "nowhere").error["code"] == "unknown_revision"
    assert run(yard, "g1")[0] == 0
