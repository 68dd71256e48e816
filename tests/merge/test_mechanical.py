"""The whole way with the real rules: a conflict that they settle lands by itself, and says why that is safe."""

from __future__ import annotations

import pytest

from .yard import Yard

pytestmark = pytest.mark.slow

_BEGIN = "first\nsecond\nthird\n"


def test_what_one_side_has_in_whole_lands_by_itself(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n", "grep -q both notes.txt")
    yard.commit(notes_txt=_BEGIN)
    yard.branch("one", notes_txt=_BEGIN + "both\n")
    yard.branch("two", notes_txt=_BEGIN + "both\nand more\n")
    yard.rook("merge", "enqueue", "one", "two")
    assert yard.merge("--branch", "one").status == 0
    assert yard.merge("predict", "two").data[0]["predicted_tier"] == "mechanical"
    assert yard.merge("run").status == 0
    assert yard.entry("two")["tier"] == "mechanical"
    assert yard.show("notes.txt") == _BEGIN + "both\nand more"
    (outcome,) = yard.merge("explain", "two").data["outcomes"]
    assert (outcome["path"], outcome["outcome"]) == ("notes.txt", "resolved")
    assert outcome["hunks"][0]["rule"]
    assert outcome["hunks"][0]["why"]


def test_what_no_rule_proves_is_left_to_people(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n")
    yard.commit(notes_txt=_BEGIN)
    yard.branch("one", notes_txt=_BEGIN.replace("second", "ours"))
    yard.branch("two", notes_txt=_BEGIN.replace("second", "theirs"))
    yard.rook("merge", "enqueue", "one", "two")
    assert yard.merge("run").status == 1
    assert yard.states() == {"one": "landed", "two": "failed"}
    assert yard.merge("predict", "two").data[0]["predicted_tier"] == "human"


def test_a_rule_that_is_turned_off_leaves_the_file_to_people(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n  rules: [version]\n")
    yard.commit(notes_txt=_BEGIN)
    yard.branch("one", notes_txt=_BEGIN + "both\n")
    yard.branch("two", notes_txt=_BEGIN + "both\nand more\n")
    assert yard.merge("--branch", "one").status == 0
    assert yard.merge("predict", "two").data[0]["predicted_tier"] == "human"
    yard.settings("merge:\n  tiers: [mechanical]\n  rules: [version, contained]\n")
    assert yard.merge("predict", "two").data[0]["predicted_tier"] == "mechanical"


def test_a_file_that_is_declared_to_be_a_heap_of_lines_is_joined(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n  rules: [union]\n")
    yard.commit(notes_txt=_BEGIN)
    yard.branch("one", notes_txt=_BEGIN + "a line of one\n")
    yard.branch("two", notes_txt=_BEGIN + "a line of two\n")
    assert yard.merge("--branch", "one").status == 0
    assert yard.merge("predict", "two").data[0]["predicted_tier"] == "human"
    yard.settings("merge:\n  tiers: [mechanical]\n  unions: [notes.*]\n")
    assert yard.merge("--branch", "two").status == 0
    assert yard.show("notes.txt") == _BEGIN + "a line of one\na line of two"


def test_a_side_that_went_on_in_several_files_wins_in_all_of_them(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n  rules: [superseded, lineage]\n")
    before = "".join(f"line {number}\n" for number in range(9))
    older, newer = before.replace("line 4", "picked"), before.replace("line 4", "picked, and gone on")
    names = ("a_txt", "b_txt", "c_txt")
    yard.commit(**dict.fromkeys(names, before))
    yard.branch("work", **dict.fromkeys(names, older))
    yard.commit(beside="so that it is another commit\n", **dict.fromkeys(names, older))
    yard.commit(**dict.fromkeys(names[:2], newer))
    # In two files alone it may be a coincidence.
    assert yard.merge("predict", "work").data[0]["predicted_tier"] == "human"
    yard.commit(c_txt=newer)
    assert yard.merge("predict", "work").data[0]["predicted_tier"] == "mechanical"

    assert yard.merge("--branch", "work").status == 0

    assert [yard.show(name) + "\n" for name in ("a.txt", "b.txt", "c.txt")] == [newer] * 3
    outcomes = yard.merge("explain", "work").data["outcomes"]
    assert {outcome["hunks"][0]["rule"] for outcome in outcomes} == {"lineage"}
    assert "picked" in {cover["line"] for outcome in outcomes for cover in outcome["hunks"][0]["covers"]}
