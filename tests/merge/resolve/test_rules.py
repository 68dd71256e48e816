"""Every rule: what it settles, and what looks like it and is left alone."""

from __future__ import annotations

import pytest

from rookery.merge.resolve.mechanical import Settings, resolve
from rookery.merge.resolve.model import ADDED_MISSING, Cover, Declined
from rookery.merge.resolve.rules import DEFAULT
from rookery.merge.resolve.rules.version import highest

from .conflicts import declined, resolved, sides


class TestWhitespace:
    def test_the_change_that_can_be_read_wins_over_tidied_line_ends(self) -> None:
        given = sides("a.txt", "one  \ntwo\n", "one\ntwo\n", "ONE  \ntwo\n")

        assert resolved(given, "whitespace").content == b"ONE  \ntwo\n"

    def test_indentation_is_no_mere_whitespace(self) -> None:
        declined(sides("a.py", "if a:\n    b()\n", "if a:\n  b()\n", "if a:\n    c()\n"))

    def test_a_file_that_one_side_emptied_is_not_tidied(self) -> None:
        declined(sides("a.txt", "one \n", "\n", "ONE \n"))


class TestVersion:
    def test_the_higher_of_two_raised_versions_holds(self) -> None:
        given = sides("setup.cfg", "version = 1.9.0\n", "version = 1.10.0\n", "version = 1.9.1\n")
        got = resolved(given, "version")

        assert got.content == b"version = 1.10.0\n"
        assert got.covers == (Cover("theirs", ADDED_MISSING, "version = 1.9.1"),)

    @pytest.mark.parametrize(
        ("base", "ours", "theirs", "result"),
        [
            ("v1.0.0rc1", "v1.0.0rc2", "v1.0.0", "v1.0.0"),
            ("1.0", "1.0.1", "1.1", "1.1"),
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

    def test_a_range_that_nobody_wrote_is_not_made_up(self) -> None:
        declined(sides("a.cfg", "k >= 4.0,<5.0\n", "k >= 4.0,<6.0\n", "k >= 4.1,<5.0\n"))


class TestSuperseded:
    def test_the_side_that_was_the_other_and_went_on_wins(self) -> None:
        given = sides("a.txt", "a\nb\nc\n", "a\nthird\nc\n", "a\nsecond\nc\n", ours_history=("a\nsecond\nc\n",))

        assert resolved(given, "superseded").content == b"a\nthird\nc\n"

    def test_it_works_for_theirs_too(self) -> None:
        given = sides("a.txt", "a\nb\nc\n", "a\nsecond\nc\n", "a\nthird\nc\n", theirs_history=("a\nsecond\nc\n",))

        assert resolved(given, "superseded").content == b"a\nthird\nc\n"

    def test_a_deletion_that_came_after_holds(self) -> None:
        given = sides("a.txt", "a\nb\nc\n", "a\nc\n", "a\nx\nc\n", ours_history=("a\nx\nc\n", "a\ny\nc\n"))

        assert resolved(given, "superseded").content == b"a\nc\n"

    def test_a_version_that_had_only_a_part_of_it_proves_nothing(self) -> None:
        history = ("a\nsecond\nc\nd\n",)
        declined(sides("a.txt", "a\nb\nc\nd\n", "a\nthird\nc\nd\n", "a\nsecond\nc\nD\n", ours_history=history))

    def test_a_side_that_also_took_something_back_does_not_win(self) -> None:
        history = ("a\nsecond\nc\nD\n",)
        declined(sides("a.txt", "a\nb\nc\nd\n", "a\nthird\nc\nd\n", "a\nsecond\nc\nD\n", ours_history=history))

    def test_when_each_was_the_other_nobody_wins(self) -> None:
        history = {"ours_history": ("a\ny\nc\n",), "theirs_history": ("a\nx\nc\n",)}

        declined(sides("a.txt", "a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n", **history))

    def test_an_emptied_file_neither_wins_nor_loses(self) -> None:
        declined(sides("a.txt", "a\n", "", "b\n", ours_history=("b\n",)))
        declined(sides("a.txt", "a\n", "b\n", "", ours_history=("",)))

    def test_history_that_is_no_text_is_passed_over(self) -> None:
        given = sides("a.txt", "a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n").replace(ours_history=(b"\xff\0", b""))

        assert isinstance(resolve(given), Declined)


class TestContained:
    def test_the_side_that_did_the_same_and_more_wins(self) -> None:
        given = sides("a.txt", "a\nz\n", "a\none\nz\n", "a\none\ntwo\nz\n")

        assert resolved(given, "contained").content == b"a\none\ntwo\nz\n"

    def test_a_line_that_only_one_side_deleted_is_not_brought_back(self) -> None:
        declined(sides("a.txt", "a\nold\nz\n", "a\nnew\nz\n", "a\nold\nnew\nmore\nz\n"))

    def test_a_deletion_is_not_contained_in_an_edit(self) -> None:
        declined(sides("a.txt", "a\nold\nz\n", "a\nz\n", "a\nnew\nz\n"))

    def test_the_same_lines_in_another_order_are_not_contained(self) -> None:
        declined(sides("a.txt", "a\nz\n", "a\none one\ntwo two\nz\n", "a\ntwo two\none one\nthree\nz\n"))

    def test_a_change_of_what_was_there_is_not_an_addition(self) -> None:
        declined(sides("a.txt", "a\nold\nz\n", "a\nnew\nz\n", "a\nnew\nmore\nz\n"))


class TestFields:
    def test_keys_that_different_sides_changed_are_merged_one_by_one(self) -> None:
        given = sides(
            "package.json",
            '{\n  "a": "1.0.0",\n  "b": "2.0.0",\n  "c": "3.0.0"\n}\n',
            '{\n  "a": "1.0.1",\n  "b": "2.0.0",\n  "c": "3.0.0"\n}\n',
            '{\n  "a": "1.0.0",\n  "b": "2.1.0",\n  "c": "3.0.0"\n}\n',
        )
        got = resolved(given, "fields").content

        assert got == b'{\n  "a": "1.0.1",\n  "b": "2.1.0",\n  "c": "3.0.0"\n}\n'

    def test_commas_follow_what_was_added_at_the_end(self) -> None:
        given = sides(
            "a.json",
            '{\n  "a": 1\n}\n',
            '{\n  "a": 1,\n  "ours": 2\n}\n',
            '{\n  "a": 1,\n  "theirs": 3\n}\n',
        )

        assert resolved(given, "fields").content == b'{\n  "a": 1,\n  "ours": 2,\n  "theirs": 3\n}\n'

    def test_a_version_that_both_raised_is_the_higher_one(self) -> None:
        given = sides(
            "a.toml",
            '[t]\na = "1.0"\nb = "1"\n',
            '[t]\na = "1.1"\nb = "1"\nc = "new"\n',
            '[t]\na = "1.2"\nb = "one"\n',
        )

        assert resolved(given, "fields").content == b'[t]\na = "1.2"\nb = "one"\nc = "new"\n'

    def test_a_key_that_one_side_took_out_is_gone(self) -> None:
        given = sides("a.yaml", "a: 1\nb: 2\nc: 3\n", "a: 1\nc: 3\n", "a: 1\nb: 2\nc: 4\n")

        assert resolved(given, "fields").content == b"a: 1\nc: 4\n"

    @pytest.mark.parametrize(
        ("path", "base", "ours", "theirs"),
        [
            ("a.yaml", "a: 1\nb: 2\n", "a: 5\nb: 2\n", "a: 6\nb: 3\n"),
            ("a.yaml", "a: 1\nb: 2\n", "b: 2\n", "a: 6\nb: 3\n"),
            ("a.yaml", "a: 1\nb: 2\n", "a: 5\nb: 2\na: 7\n", "a: 1\nb: 3\n"),
            ("a.yaml", "t: |\n  a: 1\n  b: 2\n", "t: |\n  a: 5\n  b: 2\n", "t: |\n  a: 1\n  b: 3\n"),
            ("a.yaml", "- 1\n- 2\n", "- 5\n- 2\n", "- 1\n- 3\n"),
            ("a.json", '{\n  "a": [\n    1]\n}\n', '{\n  "a": [\n    2]\n}\n', '{\n  "a": [\n    3]\n}\n'),
            ("a.txt", "a: 1\nb: 2\n", "a: 5\nb: 2\n", "a: 1\nb: 3\n"),
        ],
        ids=[
            "one key twice",
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


class TestImports:
    def test_names_of_both_sides_are_imported(self) -> None:
        given = sides(
            "a.py",
            "from shop import cart\n\ncart()\n",
            "from shop import cart, price\n\ncart()\nprice()\n",
            "from shop import cart, stock\n\nstock()\ncart()\n",
        )

        assert (
            resolved(given, "imports").content == b"from shop import cart, price, stock\n\nstock()\ncart()\nprice()\n"
        )

    def test_a_name_that_one_side_took_out_is_gone(self) -> None:
        given = sides(
            "a.py",
            "import old\nfrom shop import cart\n\nold()\nx = 1\ncart()\n",
            "from shop import cart\n\nx = 1\ncart()\n",
            "import old\nfrom shop import cart, new\n\nold()\nx = 1\ncart(new)\n",
        )

        assert resolved(given, "imports").content == b"from shop import cart, new\n\nx = 1\ncart(new)\n"

    def test_a_name_that_is_still_used_is_not_taken_out(self) -> None:
        given = sides(
            "a.py",
            "from shop import cart, old\n\nx = 1\ncart()\n",
            "from shop import cart\n\nx = 1\ncart()\n",
            "from shop import cart, new, old\n\nx = 1\ncart(new, old)\n",
        )

        declined(given)

    def test_a_name_that_nobody_uses_is_a_sign_of_something_else(self) -> None:
        declined(
            sides(
                "a.py",
                "import a\n\na()\n",
                "import a\nimport b\n\na()\n",
                "import a\nimport c\n\na(c)\n",
            )
        )

    def test_one_name_from_two_places_is_refused(self) -> None:
        declined(
            sides(
                "a.py",
                "import a\n\na()\n",
                "import a\nfrom b import x\n\na(x)\n",
                "import a\nfrom c import x\n\na(x)\n",
            )
        )

    def test_a_module_that_moved_is_left_to_others(self) -> None:
        declined(
            sides(
                "a.py",
                "from old import x\n\nx()\n",
                "from new import x\n\nx()\n",
                "from old import x\nfrom old.more import y\n\nx(y)\n",
            )
        )

    def test_a_change_within_brackets_is_read_with_its_statement(self) -> None:
        head = "from shop import (\n    cart,\n"
        given = sides(
            "a.py",
            f"{head}    zoo,\n)\n\ncart(zoo)\n",
            f"{head}    price,\n    zoo,\n)\n\ncart(zoo)\nprice()\n",
            f"{head}    stock,\n    zoo,\n)\n\nstock()\ncart(zoo)\n",
        )

        assert b"    cart,\n    price,\n    stock,\n    zoo,\n)" in resolved(given, "imports").content

    def test_typescript(self) -> None:
        given = sides(
            "a.ts",
            "import { a } from './m';\n\na();\n",
            "import { a, b } from './m';\n\na();\nb();\n",
            "import { a, type C } from './m';\nimport d from 'd';\n\nd<C>();\na();\n",
        )
        got = resolved(given, "imports").content.decode()

        assert got.startswith("import { a, b, type C } from './m';\nimport d from 'd';\n\n")

    def test_go(self) -> None:
        given = sides(
            "a.go",
            'package a\n\nimport (\n\t"fmt"\n\t"time"\n)\n\nvar x = fmt.A + time.B\n',
            'package a\n\nimport (\n\t"fmt"\n\t"os"\n\t"time"\n)\n\nvar x = fmt.A + time.B\n\nvar o = os.C\n',
            'package a\n\nimport (\n\t"fmt"\n\t"sync"\n\t"time"\n)\n\nvar s = sync.D\n\nvar x = fmt.A + time.B\n',
        )

        assert b'\t"fmt"\n\t"os"\n\t"sync"\n\t"time"\n' in resolved(given, "imports").content

    def test_rust(self) -> None:
        given = sides(
            "a.rs",
            "use std::io;\n\nfn a() { io() }\n",
            "use std::fs;\nuse std::io;\n\nfn a() { io() }\n\nfn b() { fs() }\n",
            "use std::env;\nuse std::io;\n\nfn c() { env() }\n\nfn a() { io() }\n",
        )

        assert b"use std::env;\nuse std::fs;\nuse std::io;\n" in resolved(given, "imports").content

    def test_code_between_imports_is_no_import(self) -> None:
        declined(sides("a.py", "import a\n\na()\n", "import a\nimport b\nb()\n\na()\n", "import a\nimport c\n\na(c)\n"))


class TestAdditions:
    def test_definitions_of_different_names_are_both_kept(self) -> None:
        base = "def a():\n    return 1\n"
        given = sides(
            "a.py",
            base,
            base + "\n\ndef ours():\n    print('from here')\n",
            base + "\n\nclass Theirs:\n    colour = 'blue'\n",
        )
        got = resolved(given, "definitions").content.decode()

        assert "def ours():\n    print('from here')\n" in got
        assert "class Theirs:\n    colour = 'blue'\n" in got

    def test_two_definitions_of_one_name_are_not(self) -> None:
        base = "def a():\n    return 1\n"
        same = (base + "\n\ndef b():\n    print('from here')\n", base + "\n\ndef b(x, y):\n    return {x: y}\n")

        declined(sides("a.py", base, *same))

    def test_what_is_less_than_a_whole_definition_is_not(self) -> None:
        base = "def a():\n    x = 1\n    return x\n"
        ours = "def a():\n    x = 1\n    x += offset(3)\n    return x\n"
        theirs = "def a():\n    x = 1\n    log.debug('so far %s', x)\n    return x\n"

        declined(sides("a.py", base, ours, theirs))

    def test_two_versions_of_the_same_thing_are_not(self) -> None:
        base = "def a():\n    return 1\n"
        ours = (
            base + "\n\ndef read_lines(path):\n    with open(path) as file:\n        return file.read().splitlines()\n"
        )
        theirs = base + "\n\ndef lines_of(path):\n    with open(path) as file:\n        return list(file)\n"

        declined(sides("a.py", base, ours, theirs))

    def test_what_the_other_side_has_elsewhere_is_not_new(self) -> None:
        base = "def a():\n    return 1\n\n\ndef z():\n    return 26\n"
        moved = "def helper():\n    return 'a helper of some kind'\n"
        ours = base.replace("\n\n\ndef z", f"\n\n\n{moved}\n\ndef z")
        theirs = base.replace("\n\n\ndef z", "\n\n\nclass Other:\n    size = 12\n\n\ndef z") + f"\n\n{moved}"

        declined(sides("a.py", base, ours, theirs))

    def test_what_the_other_side_once_had_is_not_new(self) -> None:
        base = "def a():\n    return 1\n"
        added = base + "\n\ndef ours():\n    print('from here')\n"
        theirs = base + "\n\nclass Theirs:\n    colour = 'blue'\n"

        declined(sides("a.py", base, added, theirs, theirs_history=(added + "\n\nbeside = 1\n",)))

    def test_items_of_a_list_are_both_kept(self) -> None:
        given = sides(
            "a.py",
            "NAMES = [\n    'zero',\n]\n",
            "NAMES = [\n    'zero',\n    'one is ours',\n]\n",
            "NAMES = [\n    'zero',\n    'two comes from them',\n]\n",
        )
        got = resolved(given, "items").content

        assert got == b"NAMES = [\n    'zero',\n    'one is ours',\n    'two comes from them',\n]\n"

    def test_two_values_for_one_key_are_not(self) -> None:
        declined(sides("a.toml", "[t]\na = 1\n", "[t]\na = 1\nlimit = 'low'\n", "[t]\na = 1\nlimit = 'high up'\n"))

    def test_entries_of_a_list_in_prose_are_both_kept(self) -> None:
        given = sides(
            "CHANGES.md",
            "# New\n\n* Old point.\n",
            "# New\n\n* Fix the parser.\n* Old point.\n",
            "# New\n\n* Sell more things.\n* Old point.\n",
        )

        assert resolved(given, "entries").content == b"# New\n\n* Fix the parser.\n* Sell more things.\n* Old point.\n"

    def test_a_heading_may_belong_to_what_follows(self) -> None:
        declined(
            sides(
                "CHANGES.md",
                "* Old point.\n",
                "## 2.0\n\n* Fix the parser.\n* Old point.\n",
                "* Sell more things.\n* Old point.\n",
            )
        )


@pytest.mark.parametrize("rule", DEFAULT)
def test_a_rule_that_is_turned_off_is_silent(rule: str) -> None:
    given = {
        "whitespace": sides("a.txt", "one  \ntwo\n", "one\ntwo\n", "ONE  \ntwo\n"),
        "version": sides("a", "v 1.0.0\n", "v 1.0.1\n", "v 1.0.2\n"),
        "superseded": sides("a", "a\nb\nc\n", "a\nd\nc\n", "a\ne\nc\n", ours_history=("a\ne\nc\n",)),
        "contained": sides("a.c", "a\nz\n", "a\none\nz\n", "a\none\ntwo\nz\n"),
        "fields": sides("a.yaml", "a: 1\nb: 2\n", "a: 5\nb: 2\n", "a: 1\nb: 3\n"),
        "entries": sides("a.md", "a\n", "a\n* one thing\n", "a\n* another matter\n"),
        "definitions": sides("a.py", "a\n", "a\ndef b(): return 1\n", "a\nclass D: pass\n"),
        "items": sides("a.py", "a = [\n    1,\n]\n", "a = [\n    1,\n    2,\n]\n", "a = [\n    1,\n    3,\n]\n"),
        "imports": sides("a.py", "q = 1\nr = 2\n", "import a\nq = 1\nr = 2\na()\n", "import b\nq = 1\nb()\nr = 2\n"),
    }[rule]

    resolved(given, rule)
    declined(given, Settings(rules=tuple(name for name in DEFAULT if name != rule)))
