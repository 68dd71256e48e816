"""What a soak does: its plan, its agents' work, the processes that it finds, and what it prints."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from dev.soak import processes, report
from dev.soak.checks import commits
from dev.soak.checks.known import KNOWN, Known, sort_out
from dev.soak.checks.model import Violation, open_copy, open_snapshot, read_ledger
from dev.soak.plan import CLEAN, FILL, FREEZE, JOB_KINDS, JUMP, KILL, LAND, STOP, make_deeds, make_jobs
from dev.soak.repository import FIRST, GATE_COMMAND
from dev.soak.scripts import describe_job
from soaked import Place, call
from soaked import place as place

from rookery.runtimes.scripted_agent.script import find_script, parse_script
from support import child_environ, wait_until

ROOT = Path(__file__).parents[2]


def test_the_same_seed_gives_the_same_plan() -> None:
    assert make_deeds(7, 60, can_fill=True) == make_deeds(7, 60, can_fill=True)
    assert make_deeds(7, 60, can_fill=True) != make_deeds(8, 60, can_fill=True)
    assert list(islice(make_jobs(7), 50)) == list(islice(make_jobs(7), 50))


def test_a_disk_that_cannot_be_filled_changes_nothing_else() -> None:
    full = make_deeds(7, 60, can_fill=True)
    assert {deed.kind for deed in full} == {KILL, FREEZE, FILL, JUMP, STOP, CLEAN, LAND}
    assert make_deeds(7, 60, can_fill=False) == [deed for deed in full if deed.kind != FILL]


def test_jobs_need_only_earlier_ones_and_every_kind_comes_early() -> None:
    jobs = list(islice(make_jobs(7), 60))
    seen: set[str] = set()
    for job in jobs:
        assert set(job.needs) <= seen
        seen.add(job.key)
    assert {job.kind for job in jobs[: len(JOB_KINDS)]} == set(JOB_KINDS)


def test_every_kind_of_job_has_a_script_that_the_runtime_understands() -> None:
    for job in islice(make_jobs(1), len(JOB_KINDS)):
        script = find_script(describe_job(job, Path("/ledger")))
        assert script is not None
        assert len(parse_script(script)) > 5


@pytest.mark.slow
def test_work_that_is_only_begun_does_not_pass_the_gate(place: Place) -> None:
    gate = ["/bin/sh", "-c", GATE_COMMAND]
    assert subprocess.run(gate, cwd=place.repo).returncode == 0
    place.work("k1", "begin")
    assert subprocess.run(gate, cwd=place.repo, stderr=subprocess.DEVNULL).returncode != 0
    place.work("k1", "finish")
    assert subprocess.run(gate, cwd=place.repo).returncode == 0


@pytest.mark.slow
def test_a_hand_that_works_twice_makes_the_same_once(place: Place) -> None:
    first = place.work("k1", "begin", "finish", branch="rook/a/1")
    assert place.work("k1", "begin", "finish", branch="rook/a/1") == first
    assert commits.registered(place.repo, "rook/a/1") == [*FIRST, "k1"]
    assert first in read_ledger(place.site.ledger).commits


@pytest.mark.slow
def test_an_attempt_whose_work_is_there_already_has_a_commit_of_its_own(place: Place) -> None:
    landed = place.work("k1", "finish")
    assert place.work("k1", "finish", branch="rook/b/1") != landed
    assert commits.registered(place.repo, "rook/b/1") == [*FIRST, "k1"]


def test_known_faults_are_told_apart() -> None:
    fault = Known("killed-cook-leaves-soup", "leftovers", r"^temporary file \S+/soup-\w+$", "it is left on the stove")
    old = Violation("leftovers", "temporary file /tmp/soup-abc")
    new = [Violation("leftovers", "lock file .git/index.lock"), Violation("doctor", old.text)]
    fresh, known = sort_out([old, *new], [fault])
    assert fresh == new
    assert known == [(fault, old)]
    assert all(entry.reason for entry in KNOWN)
    of_gc, of_index = (
        Violation("leftovers", f"lock file .git/worktrees/bee/{name}.lock") for name in ("gc.log", "index")
    )
    fresh, known = sort_out([of_gc, of_index])
    assert (fresh, [violation for _, violation in known]) == ([of_index], [of_gc])


def test_the_copy_of_a_database_has_what_is_only_in_its_log(tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / "rookery.db")
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE t (x)")
    writer.execute("INSERT INTO t VALUES (1)")
    writer.commit()
    for copy in (open_copy(tmp_path / "rookery.db", tmp_path / "copy"), open_snapshot(tmp_path / "rookery.db")):
        assert copy.execute("SELECT x FROM t").fetchall() == [(1,)]
        copy.close()
    writer.close()


@pytest.mark.slow
def test_only_processes_of_the_soak_are_found(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path / "home"), "ROOKERY_SESSION": "ses_1"}
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], env={})"
    theirs = subprocess.Popen([sys.executable, "-c", child], env=env, stdin=subprocess.PIPE)
    other = subprocess.Popen([sys.executable, "-c", "input()"], env={**env, "HOME": "/"}, stdin=subprocess.PIPE)
    try:
        wait_until(lambda: len(processes.of_site(tmp_path / "home")) == 2)
        running = processes.of_site(tmp_path / "home")
        assert theirs.pid in [process.pid for process in running]
        assert not {other.pid, os.getpid(), os.getppid()} & {process.pid for process in running}
        first = next(process for process in running if process.pid == theirs.pid)
        assert (first.kind, first.session) == (processes.TOOL, "ses_1")
        assert not processes.send(replace(first, start=first.start + 1), signal.SIGKILL)
        assert processes.end_all(tmp_path / "home") == {process.pid for process in running}
        assert theirs.wait(20) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for process in (theirs, other):
            process.kill()
            process.communicate()


def test_git_of_the_soak_is_found_while_it_runs(tmp_path: Path) -> None:
    argv = ["git", "hash-object", "--stdin"]
    theirs, other = (
        subprocess.Popen(argv, env={**os.environ, "HOME": home}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for home in (str(tmp_path), "/")
    )
    try:
        wait_until(lambda: [process.pid for process in processes.named(tmp_path, "git")] == [theirs.pid])
        assert processes.named(tmp_path, "git")[0].kind == processes.GIT
    finally:
        theirs.communicate()
        other.communicate()


@pytest.mark.parametrize(
    ("words", "session", "kind"),
    [
        ("python -I -c … rookery.daemon.main /repo", "", processes.DAEMON),
        ("python -I -c … rookery.daemon.worker 5", "", processes.WORKER),
        ("python -P -c … rookery.turns.runner /repo ses_1", "", processes.RUNNER),
        ("python -P -c … rookery.runtimes.scripted_agent.__main__", "ses_1", processes.AGENT),
        ("/venv/bin/python /venv/bin/rook merge --all", "", processes.CLIENT),
        ("/usr/lib/git-core/git merge-tree", "", processes.GIT),
        ("python hand.py", "ses_1", processes.TOOL),
        ("sh -c python3 check.py", "", processes.OTHER),
    ],
)
def test_processes_are_known_by_their_words(words: str, session: str, kind: str) -> None:
    assert processes.classify(words, session) == kind


def test_numbers_of_calls() -> None:
    assert report.percentile([], 0.5) == 0
    assert report.percentile([3, 1, 2], 0.5) == 2
    assert report.percentile(list(range(100)), 0.95) == 95
    shown = dict(report.show_latency([call("status"), call("merge", "run"), call("sling", status=-signal.SIGKILL)]))
    assert shown["short calls"].startswith("1, p50 0.100 s")
    assert shown["long calls"].startswith("1, ")


@pytest.mark.slow
def test_a_soak_without_failures_ends_well() -> None:
    argv = [sys.executable, "-m", "dev.soak", "--calm", "--minutes", "0.1", "--agents", "3", "--seed", "5"]
    env = {name: value for name, value in child_environ().items() if not name.startswith("ROOKERY_")}
    env["PYTHONPATH"] += os.pathsep + str(ROOT)
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "violations    0 (" in done.stdout
    folder = Path(next(line for line in done.stdout.splitlines() if line.startswith("in "))[3:])
    assert not folder.exists()
