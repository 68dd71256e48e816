"""What goes in through the command line comes out of it as it was, in one line of JSON."""

from __future__ import annotations

import pytest

from conftest import Rook

_TITLES = [
    "two\nlines\r\n\ttab",
    "👩‍👩‍👧 🏳️‍🌈",
    "'; DROP TABLE tasks; -- \" \\ %s {x} ?1 :now",
    "$(rm -rf /) `id` && | > < * ~ !",
    "שלום \u202e txt \u200f עולם",
    "e\u0301 a\u0308 Z\u0351\u036b",
    "\x1b[31mred\x1b[0m \x07\x08\x7f\x85\u2028",
    '{"v":1,"ok":false}',
    "  spaces around  ",
]


@pytest.mark.parametrize("title", _TITLES)
def test_titles(rook: Rook, title: str) -> None:
    task = rook.json("task", "create", title, "--description", title, "--context", title).data
    assert (task["title"], task["description"], task["context"]) == (title, title, title)
    assert rook.json("task", "get", task["id"]).data == task
    assert [entry["title"] for entry in rook.json("task", "list").data] == [title]


def test_a_title_that_looks_like_an_option(rook: Rook) -> None:
    assert rook.json("task", "create", "--description=-x", "--", "--json").status == 2
    created = rook("--json", "task", "create", "--", "--json")
    assert created.data["title"] == "--json"


def test_a_megabyte_through_standard_input(rook: Rook) -> None:
    body = "é💥\r\n'\"\\\x1b" * 90_000
    assert len(body.encode()) > 1_000_000
    task = rook.json("task", "create", "big", "--description", "-", stdin=body.encode()).data
    assert task["description"] == body
    rook.json("learning", "add", task["id"], "-", stdin=body.encode())
    [learning] = rook.json("learning", "list", task["id"]).data
    assert learning["content"] == body


def test_only_one_text_comes_from_standard_input(rook: Rook) -> None:
    error = rook.json("task", "create", "x", "--description", "-", "--context", "-", stdin=b"x")
    assert (error.status, error.error["code"]) == (2, "usage")


def test_json_before_and_after(rook: Rook) -> None:
    assert rook("--json", "task", "create", "x").data["title"] == "x"
    assert rook("task", "--json", "create", "x").status == 2
    assert len(rook("task", "list", "--json", "--open").data) == 1


def test_the_shape_of_a_task(rook: Rook) -> None:
    epic = rook.json("epic", "create", "e", "--context", "E", "--design", "D").data
    task = rook.json("task", "create", "t", "--parent", epic["id"], "--context", "T").data
    subtask = rook.json("task", "create", "s", "--parent", task["id"], "--context", "S", "--priority", "1").data
    assert subtask["context_chain"] == {"own": "S", "parent": "T", "epic": "E"}
    assert (epic["kind"], task["kind"], subtask["kind"], subtask["depth"]) == ("epic", "task", "subtask", 2)
    assert (epic["design"], "design" in task) == ("D", False)
    assert rook.json("task", "next-ready").data["id"] == subtask["id"]
    [tree] = rook.json("task", "tree").data
    assert tree["children"][0]["children"][0]["task"]["id"] == subtask["id"]


def test_a_task_from_creation_to_its_end(rook: Rook) -> None:
    task = rook.json("task", "create", "t").data["id"]
    claimed = rook.json("task", "claim", "--lease", "1h", "--agent", "ada").data
    assert (claimed["id"], claimed["state"], claimed["assignee"]) == (task, "IN_PROGRESS", "ada")
    assert rook.json("task", "claim", "--lease", "1h", "--agent", "bob").data is None
    ada = ("--agent", "ada")
    assert rook.json("task", "renew", task, "--lease", "2h", *ada).data["lease_until"] > claimed["lease_until"]
    assert rook.json("task", "release", task, *ada).data["state"] == "PENDING"
    for step, state in (("fail", "FAILED"), ("reopen", "PENDING"), ("cancel", "CANCELLED"), ("archive", "CANCELLED")):
        assert rook.json("task", step, task).data["state"] == state
    assert rook.json("task", "list").data == []
    assert rook.json("task", "unarchive", task).data["archived_at"] is None
    assert rook.json("task", "delete", task).data == {"deleted": [task]}


def test_export_and_import(rook: Rook) -> None:
    task = rook.json("task", "create", "t").data["id"]
    assert rook.json("data", "export", "all.jsonl").data["tasks"] == 1
    assert rook.json("data", "import", "all.jsonl").error["code"] == "import_invalid"
    done = rook.json("data", "import", "all.jsonl", "--clear").data
    assert (done["tasks"], done["deleted"]) == (1, 1)
    assert ".rookery/backups/" in done["backup"]
    assert rook.json("task", "get", task).data["title"] == "t"
