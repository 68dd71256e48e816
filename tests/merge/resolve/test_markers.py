"""Conflict markers, and whether a file can be read by its own language."""

from __future__ import annotations

import pytest

from rookery.base.lockfiles import lockfile_of
from rookery.merge.resolve.markers import has_markers, parses


@pytest.mark.parametrize(
    "content",
    [
        b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\n",
        b"<<<<<<<\n",
        b"x\r\n>>>>>>> topic\r\n",
        b"||||||| base\n=======\n",
        b"<<<<<<<<< Temporary merge branch 1\n",
    ],
)
def test_markers_are_seen(content: bytes) -> None:
    assert has_markers(content)


@pytest.mark.parametrize(
    "content", [b"", b"Title\n=======\ntext\n", b"a <<<<<<< b\n", b"<<<<<<\n", b"<<<<<<<x\n", b"||||||| table\n"]
)
def test_what_only_looks_like_markers_is_none(content: bytes) -> None:
    assert not has_markers(content)


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("a.py", b"x = 1\n", b"x = (\n"),
        ("src/a.ts", b"const x: number = 1;\n", b"const x: = ;\n"),
        ("a.tsx", b"const a = <p>hi</p>;\n", b"const a = <p>hi;\n"),
        ("a.jsx", b"const a = <p>hi</p>;\n", b"const a = {;\n"),
        ("a.go", b"package a\n\nfunc f() {}\n", b"package a\n\nfunc f( {}\n"),
        ("a.rs", b"fn f() {}\n", b"fn f( {}\n"),
        ("a.json", b'{"a": 1}\n', b'{"a": 1\n'),
        ("a.yaml", b"a: 1\n", b"a: [1\n"),
        ("a.toml", b"a = 1\n", b"a = [1\n"),
        ("a.sh", b"echo hi\n", b"if true; then\n"),
    ],
)
def test_a_file_is_read_by_its_own_language(path: str, good: bytes, bad: bytes) -> None:
    assert parses(path, good) is True
    assert parses(path, bad) is False


@pytest.mark.parametrize("path", ["a", "a.txt", "py", "folder.py/a", "Makefile"])
def test_where_there_is_no_parser_nothing_is_said(path: str) -> None:
    assert parses(path, b"whatever (") is None


def test_a_lock_file_is_known_by_its_name_alone() -> None:
    lockfile = lockfile_of("web/package-lock.json")

    assert lockfile is not None
    assert lockfile.program == "npm"
    assert lockfile.command[0] == lockfile.program
    assert "package.json" in lockfile.manifests
    assert lockfile_of("web/package-lock.json.txt") is None
    assert lockfile_of("my-yarn.lock") is None
