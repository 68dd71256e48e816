"""Lists come in pages: the envelope names the cursor of the next one, and every item comes exactly once."""

from __future__ import annotations

from itertools import chain

import pytest

from conftest import Rook, git
from rookery.base.ids import handle


def read_pages(rook: Rook, *words: str) -> list[list[str]]:
    """The ids of every page, in order."""
    pages: list[list[str]] = []
    cursor: list[str] = []
    while True:
        envelope = rook.json(*words, *cursor).envelope
        pages.append([item["id"] for item in envelope["data"]])
        if envelope["next"] is None:
            return pages
        cursor = ["--cursor", envelope["next"]]


@pytest.mark.parametrize(("limit", "sizes"), [(2, [2, 2, 1]), (5, [5]), (1, [1, 1, 1, 1, 1]), (0, [5]), (9, [5])])
def test_tasks_come_in_pages(rook: Rook, limit: int, sizes: list[int]) -> None:
    for number in range(5):
        rook.json("task", "create", f"Task {number}", "--priority", str(1 + number % 3))
    whole = [task["id"] for task in rook.json("task", "list").data]
    for command in ("task", "epic"):
        pages = read_pages(rook, command, "list", "--limit", str(limit))
        assert [len(page) for page in pages] == sizes
        assert list(chain(*pages)) == whole


def test_mail_comes_in_pages(rook: Rook) -> None:
    for number in range(5):
        rook.json("mail", "send", "human", "--subject", f"Message {number}")
    whole = [message["id"] for message in rook.json("mail", "list").data]
    pages = read_pages(rook, "mail", "list", "--limit", "2")
    assert [len(page) for page in pages] == [2, 2, 1]
    assert list(chain(*pages)) == whole


def test_the_merge_queue_comes_in_pages(rook: Rook) -> None:
    """The queue in its order, then what is settled, the newest first."""
    names = [f"b{number}" for number in range(7)]
    for name in names:
        git(rook.folder, "branch", name)
    ids = {name: rook.json("merge", "enqueue", name, "--priority", "3").data[0]["id"] for name in names[:-1]}
    ids["b6"] = rook.json("merge", "enqueue", "b6", "--priority", "1").data[0]["id"]
    for name in ("b1", "b3"):
        assert rook("merge", "cancel", name).status == 0
    opened, settled = [ids[name] for name in ("b6", "b0", "b2", "b4", "b5")], [ids["b3"], ids["b1"]]
    assert read_pages(rook, "merge", "list", "--limit", "2") == [opened[:2], opened[2:4], opened[4:]]
    for limit, sizes in ((3, [3, 3, 1]), (7, [7]), (0, [7])):
        pages = read_pages(rook, "merge", "list", "--all", "--limit", str(limit))
        assert [len(page) for page in pages] == sizes
        assert list(chain(*pages)) == opened + settled
    assert rook("merge", "list", "--limit", "-1").status == 1
    assert f"1 shown; go on with --cursor {handle(opened[0])}" in rook("merge", "list", "--limit", "1").out.decode()


def test_people_are_shown_how_to_go_on_only_if_there_is_more(rook: Rook) -> None:
    first, second = (rook.json("task", "create", title).data["id"] for title in "ab")
    assert f"1 shown; go on with --cursor {handle(first)}" in rook("task", "list", "--limit", "1").out.decode()
    assert "go on" not in rook("task", "list", "--limit", "2").out.decode()
    assert handle(second) in rook("task", "list", "--limit", "1", "--cursor", handle(first)).out.decode()
