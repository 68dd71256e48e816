"""Random histories on many branches, all landed at once: nothing is lost, and nothing red was ever the base."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conftest import git
from rookery.merge import queue, service

from .yard import Yard

FILE, PROGRAM, LINK, MODULE = "100644", "100755", "120000", "160000"
Tree = dict[str, tuple[str, bytes]]


class History:
    """A made-up history. Every line in it is unlike every other, so that each can be followed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.base = self._begin()
        self.branches: dict[str, Tree] = {}
        self.broken: set[str] = set()

    def line(self, by: str) -> bytes:
        self.count += 1
        return f"{by} line {self.count}".encode()

    def _begin(self) -> Tree:
        tree: Tree = {}
        for number in range(6):
            end = b"\r\n" if number == 1 else b"\n"
            text = b"".join(self.line("base") + end for _ in range(self.random.randint(3, 14)))
            tree[f"{'dir/' if number % 2 else ''}f{number}.txt"] = (FILE, text)
        tree["data.bin"] = (FILE, bytes(self.random.randrange(256) for _ in range(200)) + b"\0")
        tree["link"] = (LINK, b"f0.txt")
        tree["module"] = (MODULE, b"1" * 40)
        tree["own.txt"] = (FILE, b"own\n")
        return tree

    def branch(self, name: str) -> None:
        tree = dict(self.base)
        for _ in range(self.random.randint(1, 4)):
            self._change(tree, name)
        if self.random.random() < 0.2:
            self.broken.add(name)
            tree[f"{name}.broken"] = (FILE, b"BROKEN\n")
        if tree != self.base:
            self.branches[name] = tree

    def _change(self, tree: Tree, by: str) -> None:
        steps = [
            self._edit,
            self._edit,
            self._edit,
            self._add,
            self._rename,
            self._delete,
            self._mode,
            self._link,
            self._module,
            self._binary,
            self._to_folder,
        ]
        self.random.choice(steps)(tree, by)

    def _text(self, tree: Tree) -> str | None:
        paths = sorted(path for path in tree if path.endswith(".txt") and path != "own.txt")
        return self.random.choice(paths) if paths else None

    def _edit(self, tree: Tree, by: str) -> None:
        path = self._text(tree)
        if path is None:
            return
        mode, text = tree[path]
        end = b"\r\n" if b"\r\n" in text else b"\n"
        lines = text.split(end)[:-1]
        at = self.random.randint(0, len(lines))
        kind = self.random.choice(["insert", "insert", "replace", "delete"])
        if kind == "insert" or not lines:
            lines[at:at] = [self.line(by) for _ in range(self.random.randint(1, 3))]
        elif kind == "replace":
            lines[min(at, len(lines) - 1)] = self.line(by)
        else:
            del lines[min(at, len(lines) - 1)]
        tree[path] = (mode, b"".join(line + end for line in lines))

    def _add(self, tree: Tree, by: str) -> None:
        self.count += 1
        folder = self.random.choice(["", "dir/", "new/", f"{by}/"])
        end = self.random.choice([b"\n", b"\r\n"])
        tree[f"{folder}n{self.count}.txt"] = (FILE, b"".join(self.line(by) + end for _ in range(3)))

    def _rename(self, tree: Tree, by: str) -> None:
        path = self._text(tree)
        if path is not None:
            self.count += 1
            tree[f"{self.random.choice(['', 'moved/'])}{by}{self.count}.txt"] = tree.pop(path)

    def _delete(self, tree: Tree, _by: str) -> None:
        path = self._text(tree)
        if path is not None:
            del tree[path]

    def _mode(self, tree: Tree, _by: str) -> None:
        path = self._text(tree)
        if path is not None:
            tree[path] = (PROGRAM if tree[path][0] == FILE else FILE, tree[path][1])

    def _link(self, tree: Tree, by: str) -> None:
        tree[self.random.choice(["link", f"link-{by}"])] = (LINK, self.line(by))

    def _module(self, tree: Tree, _by: str) -> None:
        tree["module"] = (MODULE, str(self.random.randint(2, 9)).encode() * 40)

    def _binary(self, tree: Tree, by: str) -> None:
        tree[self.random.choice(["data.bin", f"{by}.bin"])] = (FILE, b"\0" + self.line(by))

    def _to_folder(self, tree: Tree, by: str) -> None:
        path = self._text(tree)
        if path is not None:
            tree[f"{path}/inner.txt"] = tree.pop(path)
            tree[f"{path}/more.txt"] = (FILE, self.line(by) + b"\n")

    def write(self, repo: Path) -> None:
        """Put it into a repository, by one git."""
        out = [b"reset refs/heads/main\n", _commit("main", self.base, None)]
        for name, tree in self.branches.items():
            out.append(_commit(name, tree, ":1"))
        subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=repo, input=b"".join(out), check=True)


def _commit(branch: str, tree: Tree, parent: str | None) -> bytes:
    mark = "" if parent else "mark :1\n"
    out = [f"commit refs/heads/{branch}\n{mark}committer T <t@example.org> 1700000000 +0000\ndata 1\nx\n".encode()]
    out.append(f"from {parent}\n".encode() if parent else b"")
    out.append(b"deleteall\n")
    for path, (mode, content) in tree.items():
        if mode == MODULE:
            out.append(f"M {mode} {content.decode()} {path}\n".encode())
        else:
            out.append(f"M {mode} inline {path}\ndata {len(content)}\n".encode() + content + b"\n")
    return b"".join(out)


def lines_of(tree: Tree) -> set[bytes]:
    """Every line of every text in a tree."""
    return {
        line
        for mode, content in tree.values()
        if mode in (FILE, PROGRAM) and b"\0" not in content
        for line in content.splitlines()
    }


def read_tree(repo: Path, commit: str) -> Tree:
    listed = subprocess.run(["git", "ls-tree", "-r", "-z", commit], cwd=repo, capture_output=True, check=True).stdout
    tree: Tree = {}
    for entry in listed.split(b"\0")[:-1]:
        about, _, path = entry.partition(b"\t")
        mode, kind, oid = about.split(b" ")
        content = oid
        if kind == b"blob":
            content = subprocess.run(["git", "cat-file", "blob", oid], cwd=repo, capture_output=True, check=True).stdout
        tree[path.decode()] = (mode.decode(), content)
    return tree


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> pytest.TempPathFactory:
    return tmp_path_factory


@pytest.mark.slow
# A smaller seed is no simpler history, so nothing is gained by looking for one.
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_whatever_lands_is_there_whole(place: pytest.TempPathFactory, seed: int) -> None:
    folder = place.mktemp("repo")
    git(folder, "init", "-q")
    history = History(seed)
    for number in range(7):
        history.branch(f"b{number}")
    history.write(folder)
    git(folder, "reset", "-q", "--hard", "main")
    yard = Yard(folder)
    tiers = "[mechanical]" if seed % 2 else "[]"
    yard.settings(f"merge:\n  tiers: {tiers}\n", "! grep -rqs BROKEN --include='*.broken' .")
    (folder / "own.txt").write_text("not committed\n")
    (folder / "loose.txt").write_text("loose\n")
    (folder / ".git" / "info" / "exclude").write_text("*.ign\n")
    (folder / "ignored.ign").write_text("ignored\n")
    git(folder, "config", "core.logAllRefUpdates", "true")
    status = git(folder, "status", "--porcelain", "--ignored")

    merger = yard.merger()
    service.enqueue(merger, list(history.branches), "main")
    outcome = queue.work(merger, "main")
    merger.ctx.db.close()

    landed = [entry.branch for entry in outcome.entries if entry.state == "landed"]
    failed = {entry.branch: entry.kind for entry in outcome.entries if entry.state == "failed"}
    assert len(landed) + len(failed) == len(history.branches)
    assert all(kind in ("conflict", "gate") for kind in failed.values())
    assert not history.broken & set(landed)
    for name in landed:
        assert yard.contains(name), name
    final = read_tree(folder, "main")
    check_lines(history, landed, final)
    check_the_base_was_never_red(folder)
    assert (folder / "own.txt").read_text() == "not committed\n"
    assert git(folder, "status", "--porcelain", "--ignored") == status
    yard.assert_tidy()


def check_lines(history: History, landed: list[str], final: Tree) -> None:
    """What a landed branch added is there, what it deleted is gone, and what no branch touched stays."""
    base, there = lines_of(history.base), lines_of(final)
    gone: set[bytes] = set()
    for name in landed:
        own = lines_of(history.branches[name])
        assert own - base <= there, f"{name} lost {own - base - there}"
        gone |= base - own
        # Where another branch moved the file elsewhere, git may see a new file in it, and then no result is right.
        alone = {path for path in history.base if not _is_touched(history, path, set(landed) - {name})}
        deleted = lines_of({path: history.base[path] for path in alone}) - own
        assert not deleted & there, f"{name} deleted {deleted & there}, and it is back"
    assert base - gone <= there, f"lost: {base - gone - there}"
    for name in landed:
        for path, (mode, content) in history.branches[name].items():
            before = history.base.get(path)
            others = [history.branches[branch].get(path) for branch in landed if branch != name]
            if before != (mode, content) and all(other == before for other in others) and b"\0" in content:
                assert final.get(path) == (mode, content), path


def _is_touched(history: History, path: str, names: set[str]) -> bool:
    return any(history.branches[name].get(path) != history.base[path] for name in names)


def check_the_base_was_never_red(folder: Path) -> None:
    for commit in git(folder, "log", "-g", "--format=%H", "main").split():
        assert ".broken" not in git(folder, "ls-tree", "-r", "--name-only", commit)
