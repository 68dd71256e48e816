"""`rook bug-report`: what helps is in it, and nothing that is the user's own."""

from __future__ import annotations

from pathlib import Path

from conftest import Rook
from fake_secrets import SECRETS
from rookery.base.clock import stamp
from rookery.events.store import publish
from support import run_rook
from templates import init_project


def test_a_report_has_no_secret_no_title_and_no_home(repo: Path) -> None:
    init_project(repo)
    rook = Rook(repo)
    secret = next(iter(SECRETS.values()))
    rook("task", "create", "a private title", "--description", "private words")
    (repo / ".rookery" / "logs").mkdir(exist_ok=True)
    (repo / ".rookery" / "logs" / "bug-20260101-000000-1-1.log").write_text(f"Traceback\n{secret}\n```\n")
    (repo / ".rookery" / "config.local.yaml").write_text(
        "agents: {max_concurrent: 3}\nprovision: {env: {PRIVATE: hidden-value}}\n"
    )
    written = rook.json("bug-report").data
    text = Path(written["path"]).read_text()
    assert Path(written["path"]).parent == repo
    assert Path(written["path"]).stat().st_mode & 0o777 == 0o600
    assert "agents.max_concurrent: 3" in text
    assert "provision.env: 1 variable" in text
    assert "task.created human" in text
    assert "Traceback" in text
    for private in (secret, "private title", "private words", "hidden-value"):
        assert private not in text
    assert text.count("```") == 2 * len(written["sections"])


def test_no_words_of_settings_and_events_are_in_it(repo: Path) -> None:
    init_project(repo)
    rook = Rook(repo)
    (repo / ".rookery" / "config.local.yaml").write_text(
        "agents: {mode: tmux}\nsandbox: {read: [~/private-folder]}\nclaude: {args: [--header, private-value]}\n"
        "provision: {setup: fetch private-host, copy: [private-file?]}\n"
    )
    rook.json("task", "create", "Work")
    db = rook.open()
    with db.write():
        data = {"step": "reserved", "session": {"settings": {"prompt": "private prompt", "files": ["private.txt"]}}}
        publish(db, "agent.reserved", "ann", data, actor="human", at=stamp(0))
    db.close()
    text = Path(rook.json("bug-report").data["path"]).read_text()
    assert "private" not in text
    assert "agents.mode: tmux" in text
    assert "claude.args: 2 entries" in text
    assert '"step":"reserved"' in text


def test_a_value_that_is_wrong_in_a_setting_is_not_quoted(repo: Path) -> None:
    init_project(repo)
    (repo / ".rookery" / "config.local.yaml").write_text("provision: {env: {DB_PASS=hunter2hunter2}}\n")
    text = Path(Rook(repo).json("bug-report").data["path"]).read_text()
    assert "hunter2" not in text
    assert "provision.env holds '[left out]'" in text


def test_a_credential_that_agents_get_is_taken_out_of_the_logs(repo: Path) -> None:
    init_project(repo)
    rook = Rook(repo)
    assert rook("env", "refresh", env={"DEPLOY_TOKEN": "swordfish99"}).status == 0
    (repo / ".rookery" / "logs").mkdir(exist_ok=True)
    (repo / ".rookery" / "logs" / "loop.log").write_text("cannot go on: swordfish99 is refused\n")
    text = Path(rook.json("bug-report").data["path"]).read_text()
    assert "swordfish99" not in text
    assert "cannot go on" in text


def test_it_works_without_a_project_and_writes_over_nothing(tmp_path: Path) -> None:
    ran = run_rook(tmp_path, "bug-report", "--output", "report.md")
    assert (ran.status, "Nothing was sent" in ran.out.decode()) == (0, True)
    before = (tmp_path / "report.md").read_text()
    again = run_rook(tmp_path, "bug-report", "--output", "report.md")
    assert (again.status, "already exists" in again.err.decode()) == (1, True)
    assert (tmp_path / "report.md").read_text() == before


def test_it_works_with_a_broken_database(repo: Path) -> None:
    init_project(repo)
    (repo / ".rookery" / "rookery.db").write_bytes(b"broken" * 1000)
    ran = run_rook(repo, "bug-report", "--output", "report.md")
    assert ran.status == 0, ran
    assert "this cannot be read" in (repo / "report.md").read_text()
