"""Every rule: what it settles, and what looks like it and is left alone."""

from __future__ import annotations

from typing import get_args

import pytest

from rookery.config.model import MergeConfig, Rule
from rookery.merge.resolve.files import Settings, lineage_of, resolve
from rookery.merge.resolve.model import ADDED_MISSING, Declined, Loss, Resolved, Sides
from rookery.merge.resolve.rules import ALL, DEFAULT
from rookery.merge.resolve.rules.superseded import Lineage
from rookery.merge.resolve.rules.version import highest

from .conflicts import declined, resolved, sides


class TestWhitespace:
    def test_what_was_added_and_can_be_read_wins_over_tidied_line_ends(self) -> None:
        conflict = sides("a.txt", "one  \ntwo\n", "one\ntwo\n", "one  \nmore\ntwo\n")

        assert resolved(conflict, "whitespace").content == b"one  \nmore\ntwo\n"

    def test_a_line_that_one_side_tidied_and_the_other_changed_is_left(self) -> None:
        declined(sides("a.txt", "one  \ntwo\n", "one\ntwo\n", "ONE  \ntwo\n"))

    def test_indentation_is_no_mere_whitespace(self) -> None:
        declined(sides("a.py", "if a:\n    b()\n", "if a:\n  b()\n", "if a:\n    c()\n"))

    def test_a_deletion_is_not_weighed_against_tidying(self) -> None:
        declined(sides("a.c", "a\nx\nb\n", "a\nx \nb\n", "a\nb\n"))

    def test_a_file_that_one_side_emptied_is_not_tidied(self) -> None:
        declined(sides("a.txt", "one \n", "\n", "ONE \n"))


class TestVersion:
    def test_the_higher_of_two_raised_versions_holds(self) -> None:
        conflict = sides("setup.cfg", "shop = 1.9.0\n", "shop = 1.10.0\n", "shop = 1.9.1\n")
        got = resolved(conflict, "version")

        assert got.content == b"shop = 1.10.0\n"
        assert got.covers == (Loss("theirs", ADDED_MISSING, "shop = 1.9.1"),)

    @pytest.mark.parametrize(
        ("path", "key"), [("setup.cfg", "version = "), ("VERSION", ""), ("a.py", "__version__ = ")]
    )
    def test_the_version_of_the_project_itself_is_for_people_to_say(self, path: str, key: str) -> None:
        declined(sides(path, f"{key}1.9.0\n", f"{key}1.10.0\n", f"{key}1.9.1\n"))

    def test_a_decimal_number_is_no_version(self) -> None:
        declined(sides("a.py", "near(4.99)\n", "near(5.01)\n", "near(5.02)\n"))

    @pytest.mark.parametrize(
        ("base", "ours", "theirs", "result"),
        [
            ("v1.0.0rc1", "v1.0.0rc2", "v1.0.0", "v1.0.0"),
            ("==1.0", "==1.0.1", "==1.1", "==1.1"),
            ("2.0.0-beta.1", "2.0.0-beta.2", "2.0.0-beta.10", "2.0.0-beta.10"),
            ("x>=1.2", "x>=1.3", "x>=1.10", "x>=1.10"),
        ],
    )
    def test_versions_are_compared_as_versions(self, base: str, ours: str, theirs: str, result: str) -> None:
        assert highest(base, ours, theirs) == result
        assert highest(base, theirs, ours) == result

    @pytest.mark.parametrize(
        ("base", "ours", "theirs"),
        [
            ("1.2.0", "1.3.0", "1.1.0"),
            ("a 1.0", "a 1.1", "b 1.2"),
            ("limit 10", "limit 20", "limit 30"),
            ("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:81"),
        ],
        ids=["lowered by one", "more than a version", "a number", "more than a version again"],
    )
    def test_what_is_not_a_version_raised_twice_is_left(self, base: str, ours: str, theirs: str) -> None:
        declined(sides("a.cfg", base + "\n", ours + "\n", theirs + "\n"))

    def test_a_range_that_neither_side_wrote_is_not_made_up(self) -> None:
        declined(sides("a.cfg", "k >= 4.0,<5.0\n", "k >= 4.0,<6.0\n", "k >= 4.1,<5.0\n"))


class TestSuperseded:
    BASE = "".join(f"line {number}\n" for number in range(9))
    OLDER = BASE.replace("line 4", "second")
    NEWER = BASE.replace("line 4", "third")

    def test_the_side_that_was_the_other_and_went_on_in_several_files_wins(self) -> None:
        conflict = sides("a.txt", self.BASE, self.NEWER, self.OLDER, ours_history=(self.OLDER,))
        got = resolved(conflict, "lineage", lineage=Lineage("ours", 3))

        assert got.content == self.NEWER.encode()
        assert Loss("theirs", ADDED_MISSING, "second") in got.covers

    def test_it_works_for_theirs_too(self) -> None:
        conflict = sides("a.txt", self.BASE, self.OLDER, self.NEWER, theirs_history=(self.OLDER,))

        assert resolved(conflict, "lineage", lineage=Lineage("theirs", 3)).content == self.NEWER.encode()

    def test_in_one_file_alone_it_may_leave_nothing_out(self) -> None:
        conflict = sides("a.txt", self.BASE, self.NEWER, self.OLDER, ours_history=(self.OLDER,))
        declined(conflict)
        declined(conflict, lineage=Lineage("theirs", 9))

        more = self.OLDER.replace("second", "second\nmore\nand more")
        conflict = sides("a.txt", self.BASE, more, self.OLDER, ours_history=(self.OLDER,))
        assert resolved(conflict, "superseded").content == more.encode()

    def test_who_rewrote_the_file_did_not_go_on_with_it(self) -> None:
        rewritten = "".join(f"word {number}\n" for number in range(12))
        conflict = sides("a.txt", self.BASE, rewritten, self.OLDER, ours_history=(self.OLDER,))

        declined(conflict, lineage=Lineage("ours", 9))

    def test_only_a_side_that_went_on_in_many_files_may_shrink_one(self) -> None:
        conflict = sides("a.txt", self.BASE, self.BASE.replace("line 4\n", ""), self.OLDER, ours_history=(self.OLDER,))

        declined(conflict, lineage=Lineage("ours", 7))
        assert b"second" not in resolved(conflict, "lineage", lineage=Lineage("ours", 8)).content

    def test_several_files_tell_which_side_went_on(self) -> None:
        ours = sides("a.txt", self.BASE, self.NEWER, self.OLDER, ours_history=(self.OLDER,))
        theirs = sides("b.txt", self.BASE, self.OLDER, self.NEWER, theirs_history=(self.OLDER,))
        neither = sides("c.txt", self.BASE, self.NEWER, self.OLDER)
        absent = ours.replace(theirs=None)

        assert _lineage(ours, ours, neither, ours, absent) == Lineage("ours", 3)
        assert _lineage(ours, ours, neither) is None
        assert _lineage(ours, ours, ours, theirs) is None
        assert _lineage(*[theirs] * 4) == Lineage("theirs", 4)
        assert lineage_of([theirs] * 4, settings=Settings()) is None

    def test_a_version_that_had_only_a_part_of_it_proves_nothing(self) -> None:
        history = ("a\nsecond\nc\nd\n",)
        declined(sides("a.txt", "a\nb\nc\nd\n", "a\nthird\nc\nd\n", "a\nsecond\nc\nD\n", ours_history=history))

    def test_a_side_that_also_took_something_back_does_not_win(self) -> None:
        history = ("a\nsecond\nc\nD\n",)
        conflict = sides("a.txt", "a\nb\nc\nd\n", "a\nthird\nc\nd\n", "a\nsecond\nc\nD\n", ours_history=history)
        declined(conflict, lineage=Lineage("ours", 9))

    def test_when_each_was_the_other_neither_wins(self) -> None:
        history = {"ours_history": ("a\ny\nc\n",), "theirs_history": ("a\nx\nc\n",)}

        declined(sides("a.txt", "a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n", **history))

    def test_an_emptied_file_neither_wins_nor_loses(self) -> None:
        declined(sides("a.txt", "a\n", "", "b\n", ours_history=("b\n",)))
        declined(sides("a.txt", "a\n", "b\n", "", ours_history=("",)))

    def test_history_that_is_no_text_is_passed_over(self) -> None:
        conflict = sides("a.txt", "a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n").replace(ours_history=(b"\xff\0", b""))

        assert isinstance(resolve(conflict), Declined)


class TestContained:
    def test_the_side_that_did_the_same_and_more_wins(self) -> None:
        conflict = sides("a.txt", "a\nz\n", "a\none\nz\n", "a\none\ntwo\nz\n")

        assert resolved(conflict, "contained").content == b"a\none\ntwo\nz\n"

    def test_a_line_that_only_one_side_deleted_is_not_brought_back(self) -> None:
        declined(sides("a.txt", "a\nold\nz\n", "a\nnew\nz\n", "a\nold\nnew\nmore\nz\n"))

    def test_a_deletion_is_not_contained_in_an_edit(self) -> None:
        declined(sides("a.txt", "a\nold\nz\n", "a\nz\n", "a\nnew\nz\n"))

    def test_the_same_lines_in_another_order_are_not_contained(self) -> None:
        declined(sides("a.txt", "a\nz\n", "a\none one\ntwo two\nz\n", "a\ntwo two\none one\nthree\nz\n"))

    def test_the_same_change_and_more_after_it_wins(self) -> None:
        conflict = sides("a.txt", "a\nold\nz\n", "a\nnew\nz\n", "a\nnew\nmore\nz\n")

        assert resolved(conflict, "contained").content == b"a\nnew\nmore\nz\n"

    def test_more_in_between_is_not_the_same_and_more(self) -> None:
        declined(sides("a.txt", "a\nz\n", "a\none one\ntwo two\nz\n", "a\none one\nand\ntwo two\nz\n"))


class TestFields:
    def test_keys_of_both_sides_are_kept(self) -> None:
        conflict = sides(
            "package.json",
            '{\n  "a": "1.0.0",\n  "c": "3.0.0"\n}\n',
            '{\n  "a": "1.0.0",\n  "aa": "1.1.1",\n  "c": "3.0.0"\n}\n',
            '{\n  "a": "1.0.0",\n  "b": "2.1.0",\n  "c": "3.0.0"\n}\n',
        )
        got = resolved(conflict, "fields").content

        assert got == b'{\n  "a": "1.0.0",\n  "aa": "1.1.1",\n  "b": "2.1.0",\n  "c": "3.0.0"\n}\n'

    def test_commas_follow_what_was_added_at_the_end(self) -> None:
        conflict = sides(
            "a.json",
            '{\n  "a": 1\n}\n',
            '{\n  "a": 1,\n  "ours": 2\n}\n',
            '{\n  "a": 1,\n  "theirs": 3\n}\n',
        )

        assert resolved(conflict, "fields").content == b'{\n  "a": 1,\n  "ours": 2,\n  "theirs": 3\n}\n'

    @pytest.mark.parametrize(
        ("path", "base", "ours", "theirs"),
        [
            ("a.yaml", "a: 1\nb: 2\n", "a: 5\nb: 2\n", "a: 6\nb: 3\n"),
            ("a.yaml", "a: 1\nb: 2\n", "a: 5\nb: 2\n", "a: 1\nb: 3\n"),
            ("a.yaml", "a: 1\nb: 2\nc: 3\n", "a: 1\nc: 3\n", "a: 1\nb: 2\nc: 4\n"),
            ("a.yaml", "a: 1\nb: 2\n", "b: 2\n", "a: 6\nb: 3\n"),
            ("a.yaml", "a: 1\nb: 2\n", "a: 5\nb: 2\na: 7\n", "a: 1\nb: 3\n"),
            ("a.yaml", "t: |\n  a: 1\n  b: 2\n", "t: |\n  a: 5\n  b: 2\n", "t: |\n  a: 1\n  b: 3\n"),
            ("a.yaml", "- 1\n- 2\n", "- 5\n- 2\n", "- 1\n- 3\n"),
            ("a.json", '{\n  "a": [\n    1]\n}\n', '{\n  "a": [\n    2]\n}\n', '{\n  "a": [\n    3]\n}\n'),
            ("a.txt", "a: 1\nb: 2\n", "a: 5\nb: 2\n", "a: 1\nb: 3\n"),
        ],
        ids=[
            "one key twice",
            "changed, and not added",
            "taken out",
            "edit against deletion",
            "a key twice",
            "text in a string",
            "a list",
            "nested",
            "no table",
        ],
    )
    def test_what_is_no_table_of_different_keys_is_left(self, path: str, base: str, ours: str, theirs: str) -> None:
        declined(sides(path, base, ours, theirs))


class TestUnion:
    GIVEN = sides(".gitignore", "a\n", "a\nours\nboth\n", "a\nboth\ntheirs\n")

    @pytest.mark.parametrize("pattern", [".gitignore", "*ignore"])
    def test_where_it_is_declared_all_lines_are_kept_once(self, pattern: str) -> None:
        got = resolve(self.GIVEN, settings=Settings(unions=("*.txt", pattern)))

        assert isinstance(got, Resolved)
        assert got.content == b"a\nours\nboth\ntheirs\n"

    def test_where_it_is_not_declared_nothing_is_joined(self) -> None:
        declined(self.GIVEN)
        declined(self.GIVEN, Settings(unions=("sub/.gitignore", "gitignore")))

    def test_a_pattern_with_a_slash_means_the_whole_path(self) -> None:
        conflict = self.GIVEN.replace(path="sub/.gitignore")

        assert isinstance(resolve(conflict, settings=Settings(unions=("sub/*",))), Resolved)
        assert isinstance(resolve(conflict, settings=Settings(unions=(".gitignore",))), Resolved)

    def test_a_changed_line_is_not_joined(self) -> None:
        declined(sides(".gitignore", "a\nb\n", "a\nc\n", "a\nd\n"), Settings(unions=(".gitignore",)))

    def test_turned_off_it_is_silent(self) -> None:
        declined(self.GIVEN, Settings(rules=("version",), unions=(".gitignore",)))


def _lineage(*files: Sides) -> Lineage | None:
    return lineage_of(files, settings=Settings(rules=ALL))


def test_the_configuration_knows_every_rule() -> None:
    assert MergeConfig().rules == DEFAULT
    assert get_args(Rule) == ALL


def test_by_themselves_the_rules_leave_every_line_in_place() -> None:
    raised = sides("a", "shop==1.0.0\n", "shop==1.0.1\n", "shop==1.0.2\n")

    resolved(raised, "version")
    declined(raised, Settings())


@pytest.mark.parametrize("rule", [name for name in ALL if name not in ("union", "lineage")])
def test_a_rule_that_is_turned_off_is_silent(rule: str) -> None:
    conflict = {
        "whitespace": sides("a.txt", "one  \ntwo\n", "one\ntwo\n", "one  \nmore\ntwo\n"),
        "version": sides("a", "v 1.0.0\n", "v 1.0.1\n", "v 1.0.2\n"),
        "superseded": sides("a", "a\nc\n", "a\nd\ne\nf\nc\n", "a\ne\nc\n", ours_history=("a\ne\nc\n",)),
        "contained": sides("a.c", "a\nz\n", "a\none\nz\n", "a\none\ntwo\nz\n"),
        "fields": sides("a.json", '{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "b": 2\n}\n', '{\n  "a": 1,\n  "c": 3\n}\n'),
        "entries": sides("a.md", "a\n", "a\n* one thing\n", "a\n* another matter\n"),
        "definitions": sides("a.py", "a\n", "a\ndef b(): return 1\n", "a\nclass D: pass\n"),
        "items": sides("a.py", "a = [\n    1,\n]\n", "a = [\n    1,\n    2,\n]\n", "a = [\n    1,\n    3,\n]\n"),
        "imports": sides("a.py", "q = 1\nr = 2\n", "import a\nq = 1\nr = 2\na()\n", "import b\nq = 1\nb()\nr = 2\n"),
    }[rule]

    resolved(conflict, rule)
    declined(conflict, Settings(rules=tuple(name for name in ALL if name != rule)))
