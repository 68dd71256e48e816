"""What both sides added at the same place is kept, if it is whole, and not the same thing twice."""

from __future__ import annotations

from .conflicts import declined, resolved, sides


def test_definitions_of_different_names_are_both_kept() -> None:
    base = "def a():\n    return 1\n"
    conflict = sides(
        "a.py",
        base,
        base + "\n\ndef ours():\n    print('from here')\n",
        base + "\n\nclass Theirs:\n    colour = 'blue'\n",
    )
    got = resolved(conflict, "definitions").content.decode()

    assert "def ours():\n    print('from here')\n" in got
    assert "class Theirs:\n    colour = 'blue'\n" in got


def test_two_definitions_of_one_name_are_not() -> None:
    base = "def a():\n    return 1\n"
    same = (base + "\n\ndef b():\n    print('from here')\n", base + "\n\ndef b(x, y):\n    return {x: y}\n")

    declined(sides("a.py", base, *same))


def test_what_is_less_than_a_whole_definition_is_not() -> None:
    base = "def a():\n    x = 1\n    return x\n"
    ours = "def a():\n    x = 1\n    x += offset(3)\n    return x\n"
    theirs = "def a():\n    x = 1\n    log.debug('so far %s', x)\n    return x\n"

    declined(sides("a.py", base, ours, theirs))


def test_two_functions_may_be_alike() -> None:
    base = "def a():\n    return 1\n"
    ours = "\n\ndef test_it_adds():\n    case = Case()\n    assert case.add(1) == 1\n"
    theirs = "\n\ndef test_it_takes():\n    case = Case()\n    assert case.take(1) == 1\n"

    assert (
        resolved(sides("a.py", base, base + ours, base + theirs), "definitions").content.decode().count("Case()") == 2
    )


def test_two_items_that_are_alike_are_one_thing_said_twice() -> None:
    declined(
        sides(
            "a.py",
            "NAMES = [\n    'zero',\n]\n",
            "NAMES = [\n    'zero',\n    call('the first one', here),\n]\n",
            "NAMES = [\n    'zero',\n    call('the first one', there),\n]\n",
        )
    )


def test_what_the_other_side_has_elsewhere_is_not_new() -> None:
    base = "def a():\n    return 1\n\n\ndef z():\n    return 26\n"
    moved = "def helper():\n    return 'a helper of some kind'\n"
    ours = base.replace("\n\n\ndef z", f"\n\n\n{moved}\n\ndef z")
    theirs = base.replace("\n\n\ndef z", "\n\n\nclass Other:\n    size = 12\n\n\ndef z") + f"\n\n{moved}"

    declined(sides("a.py", base, ours, theirs))


def test_what_the_other_side_once_had_is_not_new() -> None:
    base = "def a():\n    return 1\n"
    added = base + "\n\ndef ours():\n    print('from here')\n"
    theirs = base + "\n\nclass Theirs:\n    colour = 'blue'\n"

    declined(sides("a.py", base, added, theirs, theirs_history=(added + "\n\nbeside = 1\n",)))


def test_items_of_a_list_are_both_kept() -> None:
    conflict = sides(
        "a.py",
        "NAMES = [\n    'zero',\n]\n",
        "NAMES = [\n    'zero',\n    'one is ours',\n]\n",
        "NAMES = [\n    'zero',\n    'two comes from them',\n]\n",
    )
    got = resolved(conflict, "items").content

    assert got == b"NAMES = [\n    'zero',\n    'one is ours',\n    'two comes from them',\n]\n"


def test_two_values_for_one_key_are_not() -> None:
    declined(sides("a.toml", "[t]\na = 1\n", "[t]\na = 1\nlimit = 'low'\n", "[t]\na = 1\nlimit = 'high up'\n"))


def test_arms_of_a_match_are_both_kept() -> None:
    base = "fn a(x: u8) -> u8 {\n    match x {\n        0 => 1,\n        _ => 9,\n    }\n}\n"
    ours = base.replace("        _", "        1 => of_ours(),\n        _")
    theirs = base.replace("        _", "        2 => their::way(),\n        _")

    assert (
        b"1 => of_ours(),\n        2 => their::way(),\n" in resolved(sides("a.rs", base, ours, theirs), "items").content
    )


def test_what_is_ignored_is_a_list() -> None:
    conflict = sides(".gitignore", "a\n", "a\nbuild/out\n", "a\n*.cache\n")

    assert resolved(conflict, "entries").content == b"a\nbuild/out\n*.cache\n"


def test_entries_of_a_list_in_prose_are_both_kept() -> None:
    conflict = sides(
        "CHANGES.md",
        "# New\n\n* Old point.\n",
        "# New\n\n* Fix the parser.\n* Old point.\n",
        "# New\n\n* Sell more things.\n* Old point.\n",
    )

    assert resolved(conflict, "entries").content == b"# New\n\n* Fix the parser.\n* Sell more things.\n* Old point.\n"


def test_a_heading_may_belong_to_what_follows() -> None:
    declined(
        sides(
            "CHANGES.md",
            "* Old point.\n",
            "## 2.0\n\n* Fix the parser.\n* Old point.\n",
            "* Sell more things.\n* Old point.\n",
        )
    )
