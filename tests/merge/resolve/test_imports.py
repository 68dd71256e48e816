"""Import statements of both sides become one set of names, where the file agrees."""

from __future__ import annotations

from .conflicts import declined, resolved, sides


def test_statements_of_both_sides_are_kept_in_order() -> None:
    conflict = sides(
        "a.py",
        "from shop import cart\n\ncart()\n",
        "from shop import cart\nfrom shop.price import price\n\ncart()\nprice()\n",
        "from shop import cart\nfrom shop.stock import stock\n\nstock()\ncart()\n",
    )
    got = resolved(conflict, "imports")

    assert got.content.startswith(
        b"from shop import cart\nfrom shop.price import price\nfrom shop.stock import stock\n"
    )
    assert got.covers == ()


def test_a_line_that_would_have_to_be_rewritten_is_left() -> None:
    declined(
        sides(
            "a.py",
            "from shop import cart\n\ncart()\n",
            "from shop import cart, price\n\ncart()\nprice()\n",
            "from shop import cart, stock\n\nstock()\ncart()\n",
        )
    )


def test_a_name_that_one_side_took_out_is_for_others_to_decide() -> None:
    declined(
        sides(
            "a.py",
            "import old\nfrom shop import cart\n\nold()\nx = 1\ncart()\n",
            "from shop import cart\n\nx = 1\ncart()\n",
            "import old\nimport new\nfrom shop import cart\n\nold()\nx = 1\ncart(new)\n",
        )
    )


def test_a_name_that_is_still_used_is_not_taken_out() -> None:
    conflict = sides(
        "a.py",
        "from shop import cart, old\n\nx = 1\ncart()\n",
        "from shop import cart\n\nx = 1\ncart()\n",
        "from shop import cart, new, old\n\nx = 1\ncart(new, old)\n",
    )

    declined(conflict)


def test_a_name_that_is_never_used_is_a_sign_of_something_else() -> None:
    declined(
        sides(
            "a.py",
            "import a\n\na()\n",
            "import a\nimport b\n\na()\n",
            "import a\nimport c\n\na(c)\n",
        )
    )


def test_one_name_from_two_places_is_refused() -> None:
    declined(
        sides(
            "a.py",
            "import a\n\na()\n",
            "import a\nfrom b import x\n\na(x)\n",
            "import a\nfrom c import x\n\na(x)\n",
        )
    )


def test_a_module_that_moved_is_left_to_others() -> None:
    declined(
        sides(
            "a.py",
            "from old import x\n\nx()\n",
            "from new import x\n\nx()\n",
            "from old import x\nfrom old.more import y\n\nx(y)\n",
        )
    )


def test_a_change_within_brackets_is_read_with_its_statement() -> None:
    head = "from shop import (\n    cart,\n"
    conflict = sides(
        "a.py",
        f"{head}    zoo,\n)\n\ncart(zoo)\n",
        f"{head}    price,\n    zoo,\n)\n\ncart(zoo)\nprice()\n",
        f"{head}    stock,\n    zoo,\n)\n\nstock()\ncart(zoo)\n",
    )

    assert b"    cart,\n    price,\n    stock,\n    zoo,\n)" in resolved(conflict, "imports").content


def test_typescript() -> None:
    conflict = sides(
        "a.ts",
        "import {\n  a,\n} from './m';\n\na();\n",
        "import {\n  a,\n  b,\n} from './m';\n\na();\nb();\n",
        "import {\n  a,\n  type C,\n} from './m';\nimport d from 'd';\n\nd<C>();\na();\n",
    )
    got = resolved(conflict, "imports").content.decode()

    assert got.startswith("import {\n  a,\n  b,\n  type C,\n} from './m';\nimport d from 'd';\n\n")


def test_statements_in_a_shape_of_their_own_are_kept_whole() -> None:
    ours = "import 'zone.js'; // for the clock of the page\n"
    theirs = "import '@scope/polyfills'; // needed in old browsers\n"
    conflict = sides("a.ts", "const z = 1;\n", f"{ours}const z = 1;\n", f"{theirs}const z = 1;\n")

    assert resolved(conflict, "imports").content.decode() == f"{ours}{theirs}const z = 1;\n"


def test_go() -> None:
    conflict = sides(
        "a.go",
        'package a\n\nimport (\n\t"fmt"\n\t"time"\n)\n\nvar x = fmt.A + time.B\n',
        'package a\n\nimport (\n\t"fmt"\n\t"os"\n\t"time"\n)\n\nvar x = fmt.A + time.B\n\nvar o = os.C\n',
        'package a\n\nimport (\n\t"fmt"\n\t"sync"\n\t"time"\n)\n\nvar s = sync.D\n\nvar x = fmt.A + time.B\n',
    )

    assert b'\t"fmt"\n\t"os"\n\t"sync"\n\t"time"\n' in resolved(conflict, "imports").content


def test_rust() -> None:
    conflict = sides(
        "a.rs",
        "use std::io;\n\nfn a() { io() }\n",
        "use std::fs;\nuse std::io;\n\nfn a() { io() }\n\nfn b() { fs() }\n",
        "use std::env;\nuse std::io;\n\nfn c() { env() }\n\nfn a() { io() }\n",
    )

    assert b"use std::env;\nuse std::fs;\nuse std::io;\n" in resolved(conflict, "imports").content


def test_code_between_imports_is_no_import() -> None:
    declined(sides("a.py", "import a\n\na()\n", "import a\nimport b\nb()\n\na()\n", "import a\nimport c\n\na(c)\n"))
