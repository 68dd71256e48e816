"""No branch changes Rookery's own folder, by whatever name a file system would find it."""

from __future__ import annotations

import pytest

from conftest import git
from rookery.merge.landing.eligibility import protected_paths

from .yard import Yard

LOOSE = "sandbox:\n  mode: 'off'\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", [".rookery/config.yaml", ".Rookery/config.yaml", ".rook\u200cery/roles/builder.md"])
def test_a_branch_with_rookerys_own_settings_does_not_land(yard: Yard, name: str) -> None:
    before = yard.main()
    commit_at(yard, "bad", name, LOOSE)
    yard.branch("good", a_txt="a\n")
    assert yard.merge("--branch", "bad", "--dry-run").data["predicted"][0]["predicted_tier"] == "protected"
    yard.rook("merge", "enqueue", "bad", "good")
    assert yard.merge("run").status == 1
    assert yard.states() == {"bad": "failed", "good": "landed"}
    assert yard.entry("bad")["kind"] == "protected"
    listed = git(yard.folder, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert sorted(listed) == ["README.md", "a.txt"]
    assert git(yard.folder, "rev-parse", "main^1") == before
    # Nor by force, nor as the result of a conflict.
    assert yard.merge("--branch", "bad", "--force").status == 1
    assert yard.states()["bad"] == "failed"


def test_a_conflict_is_no_way_in(yard: Yard) -> None:
    yard.commit(list_txt="a\n")
    commit_at(yard, "bad", ".rookery/config.yaml", LOOSE, list_txt="a\nb\n")
    yard.branch("good", list_txt="a\nc\n")
    assert yard.merge("--branch", "good").status == 0
    before = yard.main()
    assert yard.merge("--branch", "bad").status == 1
    assert yard.main() == before
    assert yard.entry("bad")["state"] == "failed"


def test_protected_files_of_the_base_itself_stop_no_landing(yard: Yard) -> None:
    """A team may commit its settings; a branch that leaves them alone lands."""
    (yard.folder / ".rookery/config.yaml").write_text("merge:\n  batch: 3\n")
    git(yard.folder, "add", "-f", ".rookery/config.yaml")
    git(yard.folder, "commit", "-qm", "Settings of the team")
    yard.branch("good", a_txt="a\n")
    assert yard.merge("--branch", "good").status == 0
    git(yard.folder, "switch", "-qc", "gone")
    git(yard.folder, "rm", "-q", "--cached", ".rookery/config.yaml")
    git(yard.folder, "commit", "-qm", "Delete them")
    git(yard.folder, "checkout", "-qf", "main")
    assert yard.merge("--branch", "gone").status == 1
    assert yard.show(".rookery/config.yaml") == "merge:\n  batch: 3"


def commit_at(yard: Yard, branch: str, path: str, text: str, **files: str) -> None:
    """A branch with a file that the checkout has of its own, put in without touching that."""
    git(yard.folder, "switch", "-qc", branch, "main")
    if files:
        yard.commit(**files)
    (yard.folder / "blob").write_text(text)
    blob = git(yard.folder, "hash-object", "-w", "blob")
    (yard.folder / "blob").unlink()
    git(yard.folder, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    git(yard.folder, "commit", "-qm", "Loosen it")
    git(yard.folder, "rm", "-q", "--cached", path)
    git(yard.folder, "checkout", "-qf", "main")


@pytest.mark.parametrize("path", [".rookery", ".ROOKERY/x", ".rookery/a/b", "\uff0erookery/x"])
def test_protected(path: str) -> None:
    assert protected_paths([path, "src/a.py"]) == (path,)


@pytest.mark.parametrize("path", ["rookery/x", "docs/.rookery/x", ".rookery2/x", ".rookery.md"])
def test_not_protected(path: str) -> None:
    assert protected_paths([path]) == ()
