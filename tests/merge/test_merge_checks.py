"""What the doctor says of landing."""

from __future__ import annotations

from typing import Any

from .yard import Yard


def findings(yard: Yard, *words: str) -> dict[str, dict[str, Any]]:
    checks = yard.rook.json("doctor", "--category", "merge", *words).data["checks"]
    return {check["name"]: check for check in checks}


def test_all_is_well(yard: Yard) -> None:
    yard.settings("", "true")
    assert {finding["status"] for finding in findings(yard).values()} == {"ok"}


def test_no_gate_is_worth_a_word(yard: Yard) -> None:
    assert findings(yard)["gates"]["status"] == "warning"


def test_a_landing_that_was_cut_off_is_repaired(yard: Yard) -> None:
    yard.settings("", "true")
    yard.branch("one", a_txt="a\n")
    yard.rook("merge", "enqueue", "one")
    yard.killed("base moved", "merge", "run")
    (yard.folder / ".rookery" / "scratch" / "left").mkdir(parents=True)
    fixed = findings(yard, "--fix")
    assert fixed["landings"]["status"] == "ok"
    assert yard.states() == {"one": "landed"}
    yard.assert_tidy()


def test_a_landing_that_waits_for_a_checkout_is_reported(yard: Yard) -> None:
    yard.branch("one", README_md="new\n")
    (yard.folder / "README.md").write_text("mine\n")
    yard.merge("--branch", "one")
    finding = findings(yard)["checkouts"]
    assert finding["status"] == "warning"
    assert "README.md" in finding["message"]
