"""Whatever stops git while it writes the files of a checkout: they are as they were, and the landing waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import git
from disks import fill, small_disk
from support import child_environ

from .yard import Yard

__all__ = ["small_disk"]

pytestmark = pytest.mark.slow

KB = 1024
SIZE = 200 * KB

# Killed in the middle of putting files back: at the so-and-so-many-th change of a file there.
_KILLED_WHILE_RESTORING = """
import os, sys
from rookery.vcs import backup
number, *words = sys.argv[1:]
left = int(number)
def counted(real):
    def call(*args, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
        return real(*args, **named)
    return call
restore = backup.restore
def killed(*args):
    for name in ("unlink", "link", "mkdir", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    return restore(*args)
backup.restore = killed
from rookery.cli.main import main
sys.exit(main(words))
"""


def blob(seed: str, size: int = SIZE) -> bytes:
    """Content that cannot be compressed away, with line ends of all kinds."""
    line = (seed * 7 + "\r\n\0").encode()
    return (line * (size // len(line) + 1))[:size]


def files_of(folder: Path) -> dict[str, bytes | str]:
    """Every file and link of a checkout, and every folder."""
    contents: dict[str, bytes | str] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".git", ".rookery")]
        for name in [*names, *folders]:
            path = Path(place) / name
            if path.name.startswith("filler") or path.name == ".git":
                continue
            value = os.readlink(path) if path.is_symlink() else "folder" if path.is_dir() else path.read_bytes()
            contents[str(path.relative_to(folder))] = value
    return contents


def prepare(yard: Yard) -> None:
    """A branch that changes, adds, deletes and moves files, and a checkout with work of the user's own in it."""
    (yard.folder / ".gitattributes").write_text("* -text\n")
    for number in range(6):
        yard.write(**{f"f{number}_bin": blob(f"old{number}")})
    yard.write(gone_txt="gone\n", deep__down__gone_txt="gone\n", kind="a file\n", mine_txt="m\n", deleted_txt="d\n")
    yard.commit(staged_txt="s\n")
    git(yard.folder, "switch", "-qc", "one")
    for number in range(6):
        yard.write(**{f"f{number}_bin": blob(f"new{number}", SIZE + number * 10 * KB)})
    yard.write(gone_txt=None, deep__down__gone_txt=None, kind=None)
    yard.write(kind__now__folder_txt=blob("folder", 50 * KB), added__x_txt=blob("x"), deleted_txt="D\n")
    (yard.folder / "link").symlink_to("mine.txt")
    yard.commit(added__y_txt="y\n")
    git(yard.folder, "switch", "-q", "main")
    assert yard.rook("merge", "enqueue", "one").status == 0


def dirty(folder: Path) -> None:
    """Changes of the user's own that block no landing."""
    (folder / "mine.txt").write_text("changed\n")
    (folder / "loose.txt").write_text("loose\n")
    (folder / "staged.txt").write_text("staged\n")
    git(folder, "add", "staged.txt")
    (folder / "staged.txt").write_text("staged, and more\n")
    (folder / "deleted.txt").unlink()
    (folder / "added").mkdir()


class Seen:
    """A checkout as it was, to be compared with what it is."""

    def __init__(self, yard: Yard, checkout: Path | None = None) -> None:
        self.yard = yard
        self.checkout = checkout or yard.folder
        self.main = yard.main()
        self.files = files_of(self.checkout)
        self.status = git(self.checkout, "status", "--porcelain")
        self.index = git(self.checkout, "ls-files", "--stage")

    def assert_same(self) -> None:
        """No byte has changed."""
        now = files_of(self.checkout)
        assert {name for name in now.keys() | self.files.keys() if now.get(name) != self.files.get(name)} == set()
        assert git(self.checkout, "ls-files", "--stage") == self.index
        assert git(self.checkout, "status", "--porcelain") == self.status
        assert self.yard.main() == self.main
        self.yard.assert_tidy()


def check_landed(yard: Yard, checkout: Path | None = None) -> None:
    folder = checkout or yard.folder
    assert yard.states() == {"one": "landed"}
    for number in range(6):
        assert (folder / f"f{number}.bin").read_bytes() == blob(f"new{number}", SIZE + number * 10 * KB)
    assert (folder / "kind/now/folder.txt").read_bytes() == blob("folder", 50 * KB)
    assert not (folder / "gone.txt").exists()
    assert not (folder / "deep").exists()
    assert (folder / "loose.txt").read_text() == "loose\n"
    status = git(folder, "status", "--porcelain", "--", "mine.txt", "staged.txt", "loose.txt")
    assert status.splitlines() == ["M mine.txt", "MM staged.txt", "?? loose.txt"]
    yard.assert_tidy()


def reason(yard: Yard) -> str:
    """Why the branch waits."""
    entry = yard.entry("one")
    assert entry["state"] == "waiting"
    return str(entry["reason"])


@pytest.fixture
def disk_yard(small_disk: Path) -> Yard:
    """A project on the small disk."""
    folder = small_disk / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "README.md").write_text("hello\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    return Yard(folder)


@pytest.mark.parametrize("hole", [150 * KB, 350 * KB, 700 * KB, 1100 * KB])
def test_a_landing_on_a_full_disk_changes_nothing_and_lands_later(disk_yard: Yard, small_disk: Path, hole: int) -> None:
    prepare(disk_yard)
    dirty(disk_yard.folder)
    before = Seen(disk_yard)
    filler = fill(small_disk, hole)
    ran = disk_yard.merge("run")
    assert ran.status == 1
    assert "No space left on device" in reason(disk_yard)
    assert "changes of its own" not in reason(disk_yard)
    before.assert_same()
    filler.unlink()
    assert disk_yard.merge("run").status == 0
    check_landed(disk_yard)


@pytest.mark.parametrize("hole", [250 * KB, 600 * KB])
def test_an_undo_on_a_full_disk_changes_nothing_and_works_later(disk_yard: Yard, small_disk: Path, hole: int) -> None:
    prepare(disk_yard)
    begun = files_of(disk_yard.folder)
    assert disk_yard.merge("run").status == 0
    (disk_yard.folder / "mine.txt").write_text("changed\n")
    before = Seen(disk_yard)
    filler = fill(small_disk, hole)
    error = disk_yard.merge("undo", "one").error
    assert error["code"] == "checkout_not_written"
    assert "No space left on device" in error["message"]
    before.assert_same()
    filler.unlink()
    assert disk_yard.rook("loop", "run").status == 0
    assert disk_yard.states() == {"one": "landed"}
    assert disk_yard.merge("undo", "one").status == 0
    assert files_of(disk_yard.folder) == begun | {"mine.txt": b"changed\n"}
    assert git(disk_yard.folder, "status", "--porcelain") == "M mine.txt"


@pytest.mark.parametrize("hole", [20 * KB, 150 * KB, 300 * KB])
def test_a_checkout_on_another_disk_than_its_repository(yard: Yard, small_disk: Path, hole: int) -> None:
    """There the old files are kept as copies."""
    checkout = elsewhere(yard, small_disk)
    before = Seen(yard, checkout)
    filler = fill(small_disk, hole)
    assert yard.merge("run").status == 1
    assert "No space left on device" in reason(yard)
    before.assert_same()
    filler.unlink()
    assert yard.merge("run").status == 0
    check_landed(yard, checkout)


def elsewhere(yard: Yard, disk: Path) -> Path:
    """The base checked out on the small disk, with work of the user's own."""
    yard.settings("project:\n  base: main\n")
    prepare(yard)
    git(yard.folder, "switch", "-qc", "other")
    git(yard.folder, "worktree", "add", "-q", str(disk / "main"), "main")
    dirty(disk / "main")
    return disk / "main"


def test_what_cannot_be_put_back_yet_is_reported_and_put_back_by_the_next_command(yard: Yard, small_disk: Path) -> None:
    """Another program takes the room that git has freed, so that the old files do not fit any more."""
    yard.settings("project:\n  base: main\n")
    for number in range(4):
        yard.write(**{f"f{number}_bin": blob(f"old{number}", 4 * SIZE)})
    yard.commit(other_txt="o\n")
    small: dict[str, bytes | str | None] = {f"f{number}_bin": blob(f"new{number}", 1000) for number in range(4)}
    yard.branch("one", "main", **small)
    git(yard.folder, "switch", "-qc", "other")
    checkout = small_disk / "main"
    git(yard.folder, "worktree", "add", "-q", str(checkout), "main")
    yard.rook("merge", "enqueue", "one")
    before = Seen(yard, checkout)
    filler = small_disk / "filler"
    break_git(yard, 3, f"dd if=/dev/zero of={filler} bs=64k; exit 1")
    error = yard.merge("run").error
    assert error["code"] == "checkout_half_written"
    assert "No space left on device" in error["message"]
    assert "rook merge run" in error["hint"]
    lock = yard.folder / ".git/worktrees/main/index.lock"
    assert str(lock) in error["hint"]
    assert lock.exists()
    with pytest.raises(subprocess.CalledProcessError):
        git(checkout, "commit", "-qm", "not now", "--allow-empty")
    assert yard.main() == before.main
    # Not yet: there is still no room.
    assert yard.merge("run").error["code"] == "checkout_half_written"
    repair_git(yard)
    filler.unlink()
    assert yard.rook("loop", "run").status == 0
    before.assert_same()
    assert yard.states() == {"one": "queued"}
    assert yard.merge("run").status == 0
    assert (checkout / "f3.bin").read_bytes() == blob("new3", 1000)
    assert git(checkout, "status", "--porcelain") == ""


def test_a_database_on_a_full_disk_is_told_later_that_the_base_moved(disk_yard: Yard, small_disk: Path) -> None:
    prepare(disk_yard)
    dirty(disk_yard.folder)
    filler = small_disk / "filler"
    fill_on_move(disk_yard, filler)
    error = disk_yard.merge("run").error
    assert error["code"] == "storage_full"
    assert "main is now at" in error["message"]
    assert "nothing was changed" not in error["message"] + error["hint"]
    assert git(disk_yard.folder, "rev-parse", "main") == git(disk_yard.folder, "rev-parse", "HEAD")
    filler.unlink()
    (disk_yard.folder / ".git/hooks/reference-transaction").unlink()
    assert disk_yard.rook("loop", "run").status == 0
    check_landed(disk_yard)
    # The same for an undo.
    fill_on_move(disk_yard, filler)
    error = disk_yard.merge("undo", "one").error
    assert (error["code"], "main is now at" in error["message"]) == ("storage_full", True)
    filler.unlink()
    (disk_yard.folder / ".git/hooks/reference-transaction").unlink()
    assert disk_yard.rook("loop", "run").status == 0
    assert disk_yard.states() == {"one": "undone"}
    assert (disk_yard.folder / "f0.bin").read_bytes() == blob("old0")
    disk_yard.assert_tidy()


def fill_on_move(yard: Yard, filler: Path) -> None:
    """The disk is full from the moment in which git has moved the base."""
    hook = yard.folder / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        '#!/bin/sh\n[ "$1" = committed ] || exit 0\n'
        f"grep -q refs/heads/main && dd if=/dev/zero of={filler} bs=1k 2>/dev/null\nexit 0\n"
    )
    hook.chmod(0o755)


def break_git(yard: Yard, number: int, command: str) -> None:
    """From the file of this number on, git's filter runs a command instead of printing the content."""
    script, count = yard.folder / ".git" / "break", yard.folder / ".git" / "count"
    script.write_text(f"#!/bin/sh\necho x >> {count}\n[ $(wc -l < {count}) -le {number} ] && exec cat\n{command}\n")
    script.chmod(0o755)
    count.unlink(missing_ok=True)
    (yard.folder / ".git/info/attributes").write_text("*.bin filter=break\n*.txt filter=break\n")
    git(yard.folder, "config", "filter.break.clean", "cat")
    git(yard.folder, "config", "filter.break.smudge", str(script))
    git(yard.folder, "config", "filter.break.required", "true")


def repair_git(yard: Yard) -> None:
    git(yard.folder, "config", "filter.break.smudge", "cat")


@pytest.mark.parametrize("number", [0, 1, 4, 7])
@pytest.mark.parametrize("command", ["echo no network >&2; exit 1", "kill -9 $PPID"], ids=["fails", "killed"])
def test_a_git_that_fails_or_is_killed_while_it_writes(yard: Yard, number: int, command: str) -> None:
    prepare(yard)
    dirty(yard.folder)
    before = Seen(yard)
    break_git(yard, number, command)
    assert yard.merge("run").status == 1
    assert ("SIGKILL" if "kill" in command else "smudge filter") in reason(yard)
    assert "they are as they were" in reason(yard)
    repair_git(yard)
    before.assert_same()
    assert yard.merge("run").status == 0
    check_landed(yard)


@pytest.mark.parametrize("number", [1, 5])
def test_an_undo_whose_git_fails(yard: Yard, number: int) -> None:
    prepare(yard)
    assert yard.merge("run").status == 0
    before = Seen(yard)
    break_git(yard, number, "exit 1")
    assert yard.merge("undo", "one").error["code"] == "checkout_not_written"
    repair_git(yard)
    before.assert_same()
    assert yard.merge("undo", "one").status == 0
    assert (yard.folder / "f5.bin").read_bytes() == blob("old5")


def test_an_interrupt_while_git_writes(yard: Yard) -> None:
    prepare(yard)
    dirty(yard.folder)
    before = Seen(yard)
    break_git(yard, 3, "kill -INT $(ps -o ppid= -p $PPID); sleep 100")
    assert yard.merge("run").status == 130
    repair_git(yard)
    before.assert_same()
    assert yard.states() == {"one": "queued"}
    assert yard.merge("run").status == 0
    check_landed(yard)


@pytest.mark.parametrize("limit", [100, 410, 450])
def test_files_that_are_too_large_for_a_limit(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Git goes on after a file that it cannot write, as on a full disk: several are cut off."""
    prepare(yard)
    dirty(yard.folder)
    before = Seen(yard)
    programs = tmp_path / "programs"
    programs.mkdir()
    real = subprocess.run(["which", "git"], check=True, capture_output=True, text=True).stdout.strip()
    (programs / "git").write_text(
        f'#!/bin/sh\ncase " $* " in *" read-tree -m -u "*) trap "" XFSZ; ulimit -f {limit};; esac\nexec {real} "$@"\n'
    )
    (programs / "git").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        assert yard.merge("run").status == 1
    assert "unable to write file" in reason(yard)
    before.assert_same()
    assert yard.merge("run").status == 0
    check_landed(yard)


@pytest.mark.parametrize("step", [0, 1, 4, 6, 9, 12])
def test_a_restore_that_is_killed_is_finished_by_the_next_command(yard: Yard, step: int) -> None:
    prepare(yard)
    dirty(yard.folder)
    before = Seen(yard)
    break_git(yard, 6, "exit 1")
    done = subprocess.run(
        [sys.executable, "-c", _KILLED_WHILE_RESTORING, str(step), "merge", "run"],
        cwd=yard.folder,
        env=child_environ(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    assert (yard.folder / ".git/index.lock").exists()
    assert yard.rook("loop", "run").status == 0
    repair_git(yard)
    before.assert_same()
    assert yard.states() == {"one": "queued"}
    assert yard.merge("run").status == 0
    check_landed(yard)


def test_a_file_that_is_saved_meanwhile_stays_as_the_user_has_it(yard: Yard) -> None:
    prepare(yard)
    before = Seen(yard)
    saved = yard.folder / "f0.bin"
    break_git(yard, 5, f"echo mine > {saved}.tmp; mv {saved}.tmp {saved}; exit 1")
    assert yard.merge("run").status == 1
    assert "f0.bin, which another process changed meanwhile" in reason(yard)
    repair_git(yard)
    assert saved.read_text() == "mine\n"
    assert files_of(yard.folder) == before.files | {"f0.bin": b"mine\n"}
    assert git(yard.folder, "status", "--porcelain") == "M f0.bin"
    yard.assert_tidy()
