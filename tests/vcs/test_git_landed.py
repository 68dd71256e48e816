"""Work has landed if the base contains it and has not reverted it. Histories as people make them, read by git alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import git
from rookery.vcs.git.checkout import Git
from rookery.vcs.git.landed import compare, compare_many
from rookery.vcs.git.repository import open_store


class History:
    """A repository on main, with one commit."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.vcs = Git(str(repo), 60)
        self.start = git(repo, "rev-parse", "HEAD")

    def commit(self, name: str, text: str | None = None) -> str:
        path = self.repo / name
        path.unlink() if text is None else path.write_text(text)
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-qm", f"Change {name}")
        return git(self.repo, "rev-parse", "HEAD")

    def branch(self, name: str, at: str = "main") -> str:
        """A branch with two commits; the checkout goes back to main."""
        git(self.repo, "switch", "-qc", name, at)
        self.commit(f"{name}.1", "1\n")
        tip = self.commit(f"{name}.2", "2\n")
        git(self.repo, "switch", "-q", "main")
        return tip

    def merge(self, name: str) -> str:
        git(self.repo, "merge", "-q", "--no-ff", "-m", f"Merge {name}", name)
        return git(self.repo, "rev-parse", "HEAD")

    def revert(self, *words: str) -> str:
        git(self.repo, "revert", "--no-edit", *words)
        return git(self.repo, "rev-parse", "HEAD")

    def has(self, tip: str, since: str | None = None) -> bool:
        return self.vcs.has_landed(tip, "main", since=since)


@pytest.fixture
def history(repo: Path) -> History:
    return History(repo)


def test_a_merge_lands_and_its_revert_unlands_it(history: History) -> None:
    tip = history.branch("one")
    assert not history.has(tip)
    merged = history.merge("one")
    assert history.has(tip)
    reverted = history.revert("-m", "1", merged)
    assert not history.has(tip)
    history.commit("later", "x\n")
    assert not history.has(tip)
    again = history.revert(reverted)
    assert history.has(tip)
    history.revert(again)
    assert not history.has(tip)


def test_commits_reverted_one_by_one(history: History) -> None:
    tip = history.branch("one")
    history.merge("one")
    history.revert(tip)
    assert history.has(tip)  # half of it is there
    history.revert(f"{tip}~")
    assert not history.has(tip)


def test_a_fast_forward_counts_from_where_the_work_began(history: History) -> None:
    tip = history.branch("one")
    git(history.repo, "merge", "-q", "--ff-only", "one")
    history.revert(tip, f"{tip}~")
    assert not history.has(tip, since=history.start)
    assert not history.has(tip)


def test_an_inverse_without_a_word_is_a_revert(history: History) -> None:
    tip = history.branch("one")
    history.merge("one")
    for name in ("one.1", "one.2"):
        (history.repo / name).unlink()
    history.commit("beside", "the same commit may change more\n")
    assert not history.has(tip)


def test_edits_and_deletions_of_a_part_revert_nothing(history: History) -> None:
    tip = history.branch("one")
    history.merge("one")
    history.commit("one.1", "edited\n")
    assert history.has(tip)
    history.commit("one.2")
    assert history.has(tip)


def test_work_that_came_with_another_branch_goes_with_its_revert(history: History) -> None:
    tip = history.branch("one")
    history.branch("two", "one")
    merged = history.merge("two")
    assert history.has(tip)
    history.revert("-m", "1", merged)
    assert not history.has(tip)


def test_a_later_branch_that_contains_the_work_does_not_bring_it_back(history: History) -> None:
    tip = history.branch("one")
    merged = history.merge("one")
    history.branch("two")
    history.revert("-m", "1", merged)
    assert not history.has(tip)
    history.merge("two")
    assert not (history.repo / "one.1").exists()
    assert not history.has(tip)


def test_what_git_merges_again_stays_reverted(history: History) -> None:
    """Git takes reverted work for merged, so a branch on top of it brings only its own commits."""
    tip = history.branch("one")
    merged = history.merge("one")
    history.revert("-m", "1", merged)
    history.branch("two", "one")
    history.merge("two")
    assert not (history.repo / "one.1").exists()
    assert not history.has(tip)


def test_words_that_only_look_like_a_revert(history: History) -> None:
    tip = history.branch("one")
    history.merge("one")
    history.commit("one.1", "so that it is looked at\n")
    message = f"This reverts commit {'0' * 40}\n\nThis reverts commit abc"
    git(history.repo, "commit", "-q", "--allow-empty", "-m", message)
    assert history.has(tip)


def test_a_long_row_of_reverts_of_reverts(history: History) -> None:
    tip = history.branch("one")
    at = history.merge("one")
    history.commit("one.1", "so that it is looked at\n")
    tree = git(history.repo, "rev-parse", "HEAD^{tree}")
    head = git(history.repo, "rev-parse", "HEAD")
    for _ in range(31):
        head = git(history.repo, "commit-tree", tree, "-p", head, "-m", f"This reverts commit {at}.")
        at = head
    git(history.repo, "reset", "-q", "--hard", head)
    assert not history.has(tip)


def test_an_unrelated_history_has_landed_nothing(history: History) -> None:
    git(history.repo, "switch", "-q", "--orphan", "apart")
    tip = history.commit("apart", "a\n")
    git(history.repo, "switch", "-q", "main")
    assert not history.has(tip)
    git(history.repo, "merge", "-q", "--allow-unrelated-histories", "-m", "Join", "apart")
    assert history.has(tip)


def test_many_commits_are_compared_as_each_alone(history: History) -> None:
    """Branches from several places of the base, one on top of another, landed ones, and one without a common past."""
    early = [history.branch(f"early{number}") for number in range(3)]
    merged = history.merge("early0")
    history.revert("-m", "1", merged)
    stacked = history.branch("stacked", at="early1")
    late = history.branch("late")
    history.merge("early2")
    git(history.repo, "switch", "-q", "--orphan", "apart")
    apart = history.commit("apart", "1\n")
    git(history.repo, "switch", "-q", "main")
    base = git(history.repo, "rev-parse", "main")
    tips = [*early, stacked, late, base, apart]
    for together in (tips[:-1], tips):
        store, alone = open_store(str(history.repo), 60), open_store(str(history.repo), 60)
        compare_many(store, together, base)
        for tip in together:
            known, asked = store.known["apart", tip, base], compare(alone, tip, base)
            assert (known.beyond, known.is_contained) == (asked.beyond, asked.is_contained)
            assert set(known.reverts) == set(asked.reverts)
            assert store.known["contains", base, tip] == (tip == base)
