"""A gate that fails on the base itself: no branch is blamed, all of them wait, and land once the base is repaired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import git
from rookery.base.text import end_of_output
from rookery.merge import store
from rookery.merge.model import FAILED_GATE, GateRun, is_alike

from .yard import Yard

pytestmark = pytest.mark.slow

NEEDS_DEPS = "test -e deps.txt || { echo deps are missing; exit 3; }; ! grep -l broken *.txt"


def queue(yard: Yard, *names: str) -> None:
    for name in names:
        content = {"deps_txt": "deps\n"} if name.startswith("fix") else {f"{name}_txt": "good\n"}
        yard.branch(name, **({f"{name}_txt": "broken\n"} if name.startswith("bad") else content))
    assert yard.rook("merge", "enqueue", *names).status == 0


def entries(yard: Yard) -> dict[str, tuple[str, str | None, int]]:
    return {
        entry["branch"]: (entry["state"], entry["kind"], entry["attempts"])
        for entry in yard.rook.json("merge", "list", "--all").data
    }


def test_a_branch_is_not_blamed_for_the_base(yard: Yard) -> None:
    yard.settings("", NEEDS_DEPS)
    before = yard.main()
    yard.branch("work", a_txt="a\n")
    data = yard.merge("--branch", "work").envelope["data"]
    assert entries(yard) == {"work": ("waiting", "base_gate", 0)}
    entry = yard.entry("work")
    assert "main itself fails this gate (g1)" in entry["reason"]
    assert Path(entry["log"]).read_text() == "deps are missing\n"
    (failed,) = data["failed_gates"]
    assert (failed["branch"], failed["is_base"], failed["run"]["status"]) == ("work", True, 3)
    assert failed["run"]["last_lines"] == "deps are missing"
    assert yard.main() == before
    # The branch and its retry, the base and its retry: each is known after that.
    assert data["gate_runs"] == 4
    yard.assert_tidy()


def test_what_waits_for_the_base_lands_without_a_retry_once_it_is_repaired(yard: Yard) -> None:
    yard.settings("", NEEDS_DEPS)
    queue(yard, "one", "two")
    assert yard.merge("run").status == 1
    assert entries(yard) == {"one": ("waiting", "base_gate", 0), "two": ("waiting", "base_gate", 0)}
    yard.commit(deps_txt="deps\n")
    assert yard.merge("run").status == 0
    assert yard.states() == {"one": "landed", "two": "landed"}
    assert (yard.show("one.txt"), yard.show("two.txt")) == ("good", "good")
    assert yard.entry("one")["log"] is None


def test_what_provision_setup_makes_repairs_it_too(yard: Yard) -> None:
    yard.settings("", "test -e made")
    queue(yard, "one")
    assert yard.merge("run").status == 1
    config = yard.folder / ".rookery" / "config.local.yaml"
    config.write_text(config.read_text().replace("provision:\n", "provision:\n  setup: touch made\n"))
    assert yard.merge("run").status == 0
    assert yard.contains("one")


def with_setup(yard: Yard, command: str) -> None:
    config = yard.folder / ".rookery" / "config.local.yaml"
    config.write_text(config.read_text().replace("provision:\n", f"provision:\n  setup: {command!r}\n"))


def test_a_branch_that_breaks_the_setup_command_fails_alone(yard: Yard) -> None:
    """As a package-lock.json that does not fit does: without this no branch would ever land."""
    yard.settings("", "test -e made")
    with_setup(yard, "test -e bad.txt && { echo no such package; exit 3; }; touch made")
    queue(yard, "one", "bad", "two")
    assert yard.merge("run").status == 1
    assert yard.states() == {"one": "landed", "bad": "failed", "two": "landed"}
    entry = yard.entry("bad")
    assert (entry["kind"], entry["last_lines"].splitlines()[-1]) == ("gate", "no such package")
    assert "exited with 3" in Path(entry["log"]).read_text()
    yard.assert_tidy()


def test_a_setup_command_that_fails_on_the_base_is_the_bases_fault(yard: Yard) -> None:
    yard.settings("", "true")
    with_setup(yard, "test -e deps.txt")
    queue(yard, "one")
    assert yard.merge("run").status == 1
    assert entries(yard) == {"one": ("waiting", "base_gate", 0)}
    assert yard.rook.json("doctor", "--category", "merge", "--gates").status == 1
    yard.commit(deps_txt="deps\n")
    assert yard.merge("run").status == 0
    assert yard.contains("one")
    yard.assert_tidy()


@pytest.mark.parametrize("batch", [1, 8])
def test_a_whole_queue_learns_it_once(yard: Yard, tmp_path: Path, batch: int) -> None:
    count = tmp_path / "count"
    yard.settings(f"merge:\n  batch: {batch}\n", f"echo x >> {count}; {NEEDS_DEPS}")
    names = [f"w{number:02}" for number in range(12)]
    queue(yard, *names)
    assert yard.merge("run").status == 1
    assert set(entries(yard).values()) == {("waiting", "base_gate", 0)}
    first = len(count.read_text().splitlines())
    assert first <= 8
    # The next pass asks the base first (with its retry), and then everything at once: a branch may repair it.
    assert yard.merge("run").envelope["data"]["gate_runs"] == 3
    yard.assert_tidy()


@pytest.mark.parametrize("names", [("one", "fix", "three"), ("one", "bad", "fix", "four"), ("fix", "bad", "three")])
@pytest.mark.parametrize("settings", ["merge:\n  batch: 1\n", "", "merge:\n  slots: 3\n  batch: 2\n"])
def test_the_branch_that_repairs_the_base_lands_and_then_the_others(
    yard: Yard, names: tuple[str, ...], settings: str
) -> None:
    yard.settings(settings, NEEDS_DEPS)
    queue(yard, *names)
    yard.merge("run")
    expected = {name: ("failed", "gate", 1) if name == "bad" else ("landed", None, 0) for name in names}
    assert entries(yard) == expected
    assert yard.show("deps.txt") == "deps"
    assert yard.contains("bad") is False if "bad" in names else True
    yard.assert_tidy()


def test_the_repair_lands_by_name_whatever_waits(yard: Yard) -> None:
    yard.settings("", NEEDS_DEPS)
    queue(yard, "one", "bad")
    assert yard.merge("run").status == 1
    yard.branch("fix", deps_txt="deps\n")
    assert yard.merge("--branch", "fix").status == 0
    assert yard.merge("run").status == 1
    assert yard.states() == {"one": "landed", "bad": "failed", "fix": "landed"}


def test_waiting_for_the_base_counts_as_no_failure(yard: Yard) -> None:
    yard.settings("", NEEDS_DEPS)
    queue(yard, "one", "two", "three")
    yard.merge("run")
    merger = yard.merger()
    assert store.recent_failures(merger.ctx.db, 40) == (0, 0)
    merger.ctx.db.close()


def test_a_gate_that_is_flaky_on_the_base_is_said_to_be(yard: Yard, tmp_path: Path) -> None:
    """It fails on the branch, and on the base at the first time only."""
    once = tmp_path / "once"
    gate = f"! test -e a.txt && {{ test -e {once} || {{ touch {once}; exit 1; }}; }}"
    yard.settings("", gate)
    yard.branch("work", a_txt="a\n")
    data = yard.merge("--branch", "work").envelope["data"]
    entry = yard.entry("work")
    assert (entry["state"], entry["kind"], data["flaky"]) == ("failed", "gate", ["g1"])
    assert "flaky" in entry["reason"]
    assert "main" in entry["reason"]


def test_a_gate_for_paths_that_the_base_lacks_is_the_branches_own(yard: Yard) -> None:
    (yard.folder / ".rookery" / "config.local.yaml").write_text(
        "gates:\n  - {name: docs, run: 'exit 1', paths: [docs]}\nmerge: {slots: 1}\n"
    )
    yard.branch("text", docs__a_md="a\n")
    yard.merge("--branch", "text")
    assert entries(yard)["text"][:2] == ("failed", "gate")
    git(yard.folder, "merge", "-q", "text")  # now the base has such files, and fails too
    yard.branch("more", docs__b_md="b\n")
    yard.merge("--branch", "more")
    assert entries(yard)["more"][:2] == ("waiting", "base_gate")


def test_agent_and_lead_are_told_that_it_is_not_their_fault_once(yard: Yard) -> None:
    yard.settings("", "echo deps are missing; false")
    yard.finished("bee", [{"edit": {"path": "a.txt", "text": "a\n"}}, {"commit": "Work"}])
    assert yard.merge("--branch", "bee").status == 1
    assert yard.merge("run").status == 1
    (entry,) = yard.rook.json("merge", "list").data
    for name in ("bee", "human"):
        (body,) = (message["body"] for message in yard.mail(to=name) if "itself fails this gate" in message["subject"])
        for text in ("not the fault of the branch", "deps are missing", entry["log"], "provision.setup"):
            assert text in body
    yard.settings("", "true")
    assert yard.merge("--all").status == 0
    assert yard.show("a.txt") == "a"


def test_hints_name_a_base_that_is_not_the_projects(yard: Yard) -> None:
    yard.settings("", "false")
    git(yard.folder, "branch", "dev")
    yard.finished("bee", [{"edit": {"path": "a.txt", "text": "a\n"}}, {"commit": "Work"}])
    shown = yard.rook("merge", "--branch", "bee", "--into", "dev").out.decode()
    (body,) = (message["body"] for message in yard.mail(to="bee") if "itself fails this gate" in message["subject"])
    checks = yard.rook("doctor", "--category", "merge").out.decode()
    for text in (shown, body, checks):
        assert "rook merge run --into dev" in " ".join(text.split())
    yard.settings("", "true")
    assert yard.rook("merge", "run", "--into", "dev").status == 0
    assert yard.show("a.txt", "dev") == "a"


def test_a_conflict_costs_no_agent_while_the_base_is_broken(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n", NEEDS_DEPS)
    yard.commit(shared_txt="1\n2\n3\n")
    yard.branch("clash", shared_txt="1\nx\n3\n")
    yard.commit(shared_txt="1\ny\n3\n")
    queue(yard, "one")
    yard.rook("merge", "enqueue", "clash")
    yard.merge("run")
    assert {name: row[:2] for name, row in entries(yard).items()} == {
        "one": ("waiting", "base_gate"),
        "clash": ("waiting", "base_gate"),
    }


@pytest.mark.parametrize("step", ["gate started:3", "gate remembered:2", "gated:2"])
def test_a_merger_killed_while_it_asks_the_base(yard: Yard, step: str) -> None:
    yard.settings("", NEEDS_DEPS)
    queue(yard, "one", "two")
    yard.killed(step, "merge", "run")
    yard.wait_for_loop()
    yard.merge("run")
    assert set(entries(yard).values()) == {("waiting", "base_gate", 0)}
    yard.wait_for_loop()
    yard.assert_tidy()


def gate_run(**more: Any) -> GateRun:
    values: dict[str, Any] = {"name": "g", "tree": "t", "verdict": FAILED_GATE, "status": 1, "seconds": 1, "log": "l"}
    return GateRun(**values | {"at": "2026"} | more)


def test_failures_are_alike_but_for_numbers() -> None:
    one = gate_run(last_lines="/x/scratch/gate-0a1b2c-9f/tree/a.py: 3 failed in 0.12s (deadbeef1)")
    other = gate_run(last_lines="/x/scratch/gate-77aa00-ab/tree/a.py: 3 failed in 2.50s (cafebabe2)")
    assert is_alike(one, other)
    assert not is_alike(one, other.replace(last_lines="b.py: 3 failed"))
    assert not is_alike(one, other.replace(status=2))


def test_the_end_of_output_holds_nothing_that_a_terminal_obeys() -> None:
    output = (
        "first\n\x1b[31mred\x1b[0m \x1b]0;title\x07text\r\n10%\r50%\r100%\n\x1b[2Jx\x07\u202ey\n" + "z" * 1000 + "\n\n"
    )
    shown = end_of_output(output, 4).split("\n")
    assert shown[:3] == ["red text", "100%", "x\\x07\\u202ey"]
    assert len(shown[3]) == 401
    assert end_of_output("", 5) == ""


def test_the_log_of_a_failed_branch_is_shown_everywhere(yard: Yard) -> None:
    yard.settings("merge:\n  retries: 0\n", "! test -e a.txt || { printf 'told you\\033[31m so'; false; }")
    yard.branch("work", a_txt="a\n")
    shown = yard.rook("merge", "--branch", "work").out.decode()
    log = yard.entry("work")["log"]
    assert Path(log).read_bytes() == b"told you\x1b[31m so"
    for text in (shown, yard.rook("merge", "explain", "work").out.decode()):
        assert log in text
        assert "told you so" in text
    assert log in yard.rook("merge", "list", "--all").out.decode()
    ran = yard.rook("gate", "run", "--branch", "work")
    assert ran.status == 1
    assert log in ran.out.decode()
    assert "told you so" in ran.out.decode()


def test_gate_run_on_the_base(yard: Yard) -> None:
    yard.settings("", NEEDS_DEPS)
    git(yard.folder, "switch", "-qc", "elsewhere")
    yard.commit(deps_txt="deps\n")
    assert yard.rook.json("gate", "run").status == 0
    assert yard.rook.json("gate", "run", "--base").status == 1
    assert "provision.setup" in yard.rook("gate", "run", "--base").out.decode()
    assert yard.rook.json("gate", "run", "--base", "--branch", "elsewhere").error["code"] == "invalid_input"


def test_the_doctor_tries_gates_with_the_settings_of_its_call(yard: Yard) -> None:
    yard.settings("", "test -e made")
    assert yard.rook.json("doctor", "--category", "merge", "--gates").status == 1
    assert yard.rook.json("doctor", "--category", "merge", "--gates", "-c", "provision.setup=touch made").status == 0


def test_the_doctor_reports_everything_else_where_the_gates_cannot_be_tried(yard: Yard) -> None:
    yard.settings("project: {base: nowhere}\n", "true")
    ran = yard.rook.json("doctor", "--gates")
    assert ran.status == 1
    checks = {(check["category"], check["name"]): check for check in ran.envelope["data"]["checks"]}
    assert "no branch nowhere" in checks["merge", "gates on the base"]["message"]
    assert ("vcs", "git") in checks


def test_the_doctor_tries_every_gate_on_the_base(yard: Yard) -> None:
    yard.settings("merge:\n  retries: 0\n", "true", "echo broken; exit 4", "echo fine")
    ran = yard.rook.json("doctor", "--category", "merge", "--gates")
    assert ran.status == 1
    checks = {check["name"]: check for check in ran.envelope["data"]["checks"]}
    assert [checks[f"gate g{number}"]["status"] for number in (1, 2, 3)] == ["ok", "error", "ok"]
    assert "exit status 4" in checks["gate g2"]["message"]
    assert ".rookery/gates/" in checks["gate g2"]["message"]
    assert checks["gate g2"]["output"] == "broken"
    assert "provision.setup" in checks["gate g2"]["hint"]
    db = yard.rook.open()
    assert db.all("SELECT name, verdict FROM gate_runs ORDER BY seq") == [
        ("g1", "passed"),
        ("g2", "failed"),
        ("g3", "passed"),
    ]
    db.close()
    yard.settings("", "true")
    assert yard.rook.json("doctor", "--category", "merge", "--gates").status == 0
    yard.assert_tidy()
