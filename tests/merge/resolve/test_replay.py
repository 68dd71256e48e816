"""The replay of merges, on small histories of real git."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


class Repository:
    """A repository in which merges are made by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit("Begin", {"list.md": "* zero\n", "other.txt": "a\nb\nc\nd\ne\n"})

    def git(self, *words: str, fine: tuple[int, ...] = (0,)) -> str:
        """Run git; a merge in conflict ends with 1."""
        done = subprocess.run(["git", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode in fine, done.stderr
        return done.stdout.strip()

    def commit(self, message: str, files: dict[str, str]) -> None:
        """Write files and commit them."""
        for name, content in files.items():
            (self.folder / name).write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def merge(self, ours: dict[str, str], theirs: dict[str, str], human: dict[str, str]) -> None:
        """Two sides of the current commit, and what a person made of them."""
        self.git("checkout", "-q", "-b", "topic")
        self.commit("Theirs", theirs)
        self.git("checkout", "-q", "main")
        self.commit("Ours", ours)
        self.git("merge", "-q", "--no-commit", "topic", fine=(0, 1))
        self.commit("Merge", human)
        self.git("branch", "-q", "-D", "topic")


@pytest.fixture
def outcomes(tmp_path: Path) -> Repository:
    """Merges of every outcome, one each."""
    repo = Repository(tmp_path / "made")
    repo.merge({"list.md": "* zero\n* ours is one\n"}, {"other.txt": "A\nb\nc\nd\ne\n"}, {})
    state = "* zero\n* ours is one\n"
    repo.merge(
        {"list.md": f"{state}* an apple\n"},
        {"list.md": f"{state}* some bread\n"},
        {"list.md": f"{state}* an apple\n* some bread\n"},
    )
    state += "* an apple\n* some bread\n"
    repo.merge(
        {"list.md": f"{state}* a red hat\n"},
        {"list.md": f"{state}* the blue sky\n"},
        {"list.md": f"{state}* the blue sky\n* a red hat\n"},
    )
    state += "* the blue sky\n* a red hat\n"
    repo.merge(
        {"list.md": f"{state}* many small cats\n"},
        {"list.md": f"{state}* one big dog\n"},
        {"list.md": f"{state}* pets\n"},
    )
    repo.merge({"v": "v 1.0.1\n"}, {"v": "v 1.0.2\n"}, {"v": "v 1.0.1\n", "n": "by hand\n"})
    repo.merge({"v": "v 1.1.0\n"}, {"v": "v 1.2.0\n"}, {"v": "v 1.1.0\n", "n": "by hand, too\n"})
    repo.merge(
        {"other.txt": "A\nours\nc\nd\ne\n"}, {"other.txt": "A\ntheirs\nc\nd\ne\n"}, {"other.txt": "A\nx\nc\nd\ne\n"}
    )
    return repo


@pytest.fixture
def replay() -> Callable[..., str]:
    """Run the command as `./rook-dev replay` does."""

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "dev.replay", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        )
        return done.stdout

    return run


def test_every_outcome_is_counted(outcomes: Repository, replay: Callable[..., str]) -> None:
    report: dict[str, Any] = json.loads(replay(str(outcomes.folder), "--json", "--rules", "all"))

    assert report["merges"] == 7
    assert report["clean"] == {"same": 1, "different": 0}
    assert report["conflicted"] == 6
    assert report["files"] == 6
    total = report["resolved"]
    assert (total["same"], total["other_order"], total["different"]) == (1, 1, 2)
    assert total["lost"] == 1
    assert total["share"] == round(4 / 6, 4)
    assert report["rules"]["entries"]["resolved"] == 3
    assert report["rules"]["version"]["lost"] == 1
    assert sum(report["declined"].values()) == 2
    assert {example["path"] for example in report["examples"]} == {"list.md", "v"}


def test_it_is_the_same_every_time_and_changes_nothing(outcomes: Repository, replay: Callable[..., str]) -> None:
    def state() -> list[Path]:
        return sorted(path for path in outcomes.folder.rglob("*"))

    before = state()
    one, other = (json.loads(replay(str(outcomes.folder), "--json")) for _ in range(2))

    assert state() == before
    for report in (one, other):
        del report["milliseconds"]
    assert one == other


def test_a_bare_repository_will_do_and_the_newest_merges_come_first(
    outcomes: Repository, tmp_path: Path, replay: Callable[..., str]
) -> None:
    outcomes.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))

    assert json.loads(replay(str(tmp_path / "bare"), "--json", "--limit", "1"))["declined"]


def test_what_git_found_is_kept_where_asked(outcomes: Repository, tmp_path: Path, replay: Callable[..., str]) -> None:
    words = (str(outcomes.folder), "--json", "--cache", str(tmp_path / "cache"))
    fresh = json.loads(replay(*words))
    (outcomes.folder / ".git" / "HEAD").unlink()
    kept = json.loads(replay(*words))

    assert kept["resolved"] == fresh["resolved"]


def test_rules_can_be_measured_alone(outcomes: Repository, replay: Callable[..., str]) -> None:
    report = json.loads(replay(str(outcomes.folder), "--json", "--rules", "version"))

    assert set(report["rules"]) == {"version"}


def test_people_get_a_table(outcomes: Repository, replay: Callable[..., str]) -> None:
    shown = replay(str(outcomes.folder))

    assert "text files measured      6" in shown
    assert "entries" in shown


def test_merges_that_were_committed_with_markers_are_no_measure(tmp_path: Path, replay: Callable[..., str]) -> None:
    repo = Repository(tmp_path / "marked")
    repo.merge(
        {"list.md": "* zero\n* an apple\n"},
        {"list.md": "* zero\n* some bread\n"},
        {"list.md": "* zero\n<<<<<<< main\n* an apple\n=======\n* some bread\n>>>>>>> topic\n"},
    )
    report = json.loads(replay(str(repo.folder), "--json"))

    assert report["files"] == 0
    assert report["left_out"] == {"committed with conflict markers": 1}


def test_earlier_versions_are_read_from_both_sides(tmp_path: Path, replay: Callable[..., str]) -> None:
    repo = Repository(tmp_path / "versions")
    repo.git("checkout", "-q", "-b", "topic")
    repo.commit("Begin it", {"other.txt": "a\nb\nfirst\nd\ne\n"})
    repo.git("checkout", "-q", "main")
    repo.commit("Pick it", {"other.txt": "a\nb\nfirst\nd\ne\n"})
    repo.commit("Go on", {"other.txt": "a\nb\nand\nfirst\nagain\nd\ne\n"})
    repo.git("merge", "-q", "--no-commit", "topic", fine=(0, 1))
    repo.commit("Merge", {"other.txt": "a\nb\nand\nfirst\nagain\nd\ne\n", "n": "by hand\n"})
    report = json.loads(replay(str(repo.folder), "--json"))

    assert report["rules"]["superseded"]["same"] == 1


def test_a_side_that_went_on_is_known_by_all_files_of_its_merge(tmp_path: Path, replay: Callable[..., str]) -> None:
    repo = Repository(tmp_path / "lineage")
    before = "".join(f"line {number}\n" for number in range(9))
    names = ["a.txt", "b.txt", "c.txt"]
    repo.commit("Write", dict.fromkeys(names, before))
    repo.git("checkout", "-q", "-b", "topic")
    repo.commit("Begin it", dict.fromkeys(names, before.replace("line 4", "first")))
    repo.git("checkout", "-q", "main")
    repo.commit("Pick it", dict.fromkeys(names, before.replace("line 4", "first")))
    repo.commit("Go on", dict.fromkeys(names, before.replace("line 4", "second")))
    repo.git("merge", "-q", "--no-commit", "topic", fine=(0, 1))
    repo.commit("Merge", dict.fromkeys(names, before.replace("line 4", "second")) | {"n": "by hand\n"})
    report = json.loads(replay(str(repo.folder), "--json", "--rules", "all"))

    # The contents are the same in all three, and the same conflict counts once for each path.
    assert report["rules"]["lineage"] | {"same": 3, "lost": 0} == report["rules"]["lineage"]


def test_merges_that_took_one_side_whole_are_no_measure(tmp_path: Path, replay: Callable[..., str]) -> None:
    repo = Repository(tmp_path / "whole")
    repo.merge({"v": "v 1.0.1\n"}, {"v": "v 1.0.2\n"}, {"v": "v 1.0.1\n"})
    report = json.loads(replay(str(repo.folder), "--json"))

    assert report["files"] == 0
    assert report["left_out"] == {"merge that took one side whole": 1}


@pytest.mark.parametrize(("made_as", "complaint"), [(None, "there is no folder"), ("folder", "not a git repository")])
def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path, made_as: str | None, complaint: str) -> None:
    place = tmp_path / "place"
    if made_as:
        place.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "dev.replay", str(place)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
    )

    assert done.returncode == 1
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
