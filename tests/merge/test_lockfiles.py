"""Lock files made again: by the real npm, and by programs that misbehave."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from rookery.base import lockfiles as known
from rookery.base.lockfiles import Lockfile
from rookery.merge import lease as leases
from rookery.merge.model import Entry
from rookery.merge.tiers import lockfiles

from .test_tiers import land, outcomes  # noqa: F401 - `land` is a fixture
from .yard import Yard

Land = Callable[..., Entry]


class Packages:
    """A project of npm whose packages are all in the repository, so that no network is needed."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        (yard.folder / ".npmrc").write_text("offline=true\n")
        (yard.folder / ".gitignore").write_text("node_modules/\n")
        for name in ("ant", "bee", "cow"):
            folder = yard.folder / "packages" / name
            folder.mkdir(parents=True)
            marks = {"postinstall": f"touch {yard.folder}/SCRIPT-RAN"}
            (folder / "package.json").write_text(json.dumps({"name": name, "version": "1.0.0", "scripts": marks}))

    def lock(self, needs: list[str], dev: list[str]) -> None:
        """Write the manifest, and let npm write its lock."""
        manifest = {
            "name": "demo",
            "version": "1.0.0",
            "dependencies": {name: f"file:./packages/{name}" for name in needs},
            "scripts": {"preinstall": f"touch {self.yard.folder}/SCRIPT-RAN", "test": "true", "build": "true"},
            "devDependencies": {name: f"file:./packages/{name}" for name in dev},
        }
        (self.yard.folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
        words = ("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund")
        subprocess.run(words, cwd=self.yard.folder, check=True, capture_output=True, timeout=120)

    def locked(self) -> set[str]:
        """The packages in the lock file of the base."""
        lock: dict[str, Any] = json.loads(self.yard.show("package-lock.json"))
        return {name.removeprefix("node_modules/") for name in lock["packages"] if name.startswith("node_modules/")}


@pytest.mark.slow
def test_the_real_npm_writes_what_both_sides_need(yard: Yard) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: `apt-get install npm` gets it")
    yard.settings("merge:\n  tiers: [mechanical]\n", "npm ls --package-lock-only")
    packages = Packages(yard)
    packages.lock(["bee"], [])
    yard.commit()
    git(yard.folder, "switch", "-qc", "work")
    packages.lock(["bee"], ["cow"])
    yard.commit()
    git(yard.folder, "switch", "-q", "main")
    packages.lock(["ant", "bee"], [])
    yard.commit()
    assert yard.merge("predict", "work").data[0]["predicted_tier"] == "mechanical"
    (entry,) = yard.merge("--branch", "work").data["entries"]
    assert (entry["state"], entry["tier"], entry["files"]) == ("landed", "mechanical", [])
    assert packages.locked() == {"ant", "bee", "cow"}
    assert "npm install --package-lock-only" in yard.rook("merge", "explain", "work").out.decode()
    # No script of any package was run, and nothing but the lock file came of it.
    assert not (yard.folder / "SCRIPT-RAN").exists()
    assert git(yard.folder, "status", "--porcelain") == ""
    assert git(yard.folder, "diff", "--name-only", "work", "main").split() == ["package-lock.json", "package.json"]
    yard.assert_tidy()


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let a script be what makes x.lock again from x.toml."""

    def set_up(script: str) -> None:
        lock = Lockfile("x.lock", ("x.toml",), ("sh", "-c", script))
        monkeypatch.setattr(known, "_BY_NAME", {"x.lock": lock})

    return set_up


def clash(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n")
    yard.commit(x_lock="a\n", x_toml="a\n-\n-\n-\n", other_txt="other\n")
    yard.branch("work", x_lock="a\nc\n", x_toml="a\n-\n-\n-\nc\n")
    yard.commit(x_lock="a\nb\n", x_toml="b\na\n-\n-\n-\n")


_BAD: dict[str, tuple[str, str]] = {
    "it fails": ("echo no registry >&2; exit 7", "exited with 7: no registry"),
    "it fails and says so in its output": ("echo no registry; exit 7", "exited with 7: no registry"),
    "it changes the manifest": ("sort x.toml > x.lock; echo more >> x.toml", "would change x.toml, too"),
    "it deletes a file": ("sort x.toml > x.lock; rm other.txt", "would change other.txt, too"),
    "it deletes the lock file": ("rm x.lock", "did not write it"),
    "it makes a link of it": ("ln -sf /etc/hostname x.lock", "did not write it"),
    "it leaves markers": ("printf '<<<<<<< a\\nb\\n=======\\nc\\n>>>>>>> d\\n' > x.lock", "conflict markers"),
    "it hangs": ("sleep 1000", "did not end within"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _BAD)
def test_a_program_that_does_not_do_it_leaves_it_to_people(
    yard: Yard,
    land: Land,  # noqa: F811
    tool: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    script, reason = _BAD[name]
    tool(script)
    monkeypatch.setattr(lockfiles, "_TIMEOUT", 1.0 if name == "it hangs" else 60.0)
    clash(yard)
    before = yard.main()
    entry = land("work")
    assert (entry.state, entry.kind) == ("failed", "conflict")
    assert yard.main() == before
    assert reason in yard.rook("merge", "explain", entry.id).out.decode().replace("\n", " ")
    yard.assert_tidy()


def test_a_program_that_is_not_here_is_named(yard: Yard, land: Land, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    lock = Lockfile("x.lock", ("x.toml",), ("no-such-program", "lock"))
    monkeypatch.setattr(known, "_BY_NAME", {"x.lock": lock})
    assert not lockfiles.can_regenerate(yard.merger(), "x.lock")
    clash(yard)
    entry = land("work")
    assert entry.state == "failed"
    assert "no-such-program is not installed" in yard.rook("merge", "explain", entry.id).out.decode()


def test_it_is_told_of_no_ci_and_of_no_environment(
    yard: Yard,
    land: Land,  # noqa: F811
    tool: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("VIRTUAL_ENV", "/somewhere")
    tool('echo "${CI:-none} ${VIRTUAL_ENV:-none} $npm_config_ignore_scripts" > x.lock')
    clash(yard)
    assert land("work").state == "landed"
    assert yard.show("x.lock") == "none none true"


def test_a_setup_command_that_needs_a_lock_file_that_fits_does_not_prevent_it(
    yard: Yard,
    land: Land,  # noqa: F811
    tool: Callable[[str], None],
) -> None:
    """As `npm ci` does."""
    tool("sort x.toml > x.lock")
    clash(yard)
    config = yard.folder / ".rookery" / "config.local.yaml"
    setup = "provision:\n  setup: sort x.toml | cmp - x.lock\n"
    config.write_text(config.read_text().replace("provision:\n", setup) + "gates:\n- {name: g, run: 'true'}\n")
    assert land("work").state == "landed"
    assert yard.show("x.lock").split() == ["-", "-", "-", "a", "b", "c"]
    yard.assert_tidy()


def test_it_writes_nothing_into_the_project_where_there_is_a_sandbox(
    yard: Yard,
    land: Land,  # noqa: F811
    tool: Callable[[str], None],
) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed: `apt-get install bubblewrap` gets it")
    tool(f"touch {yard.folder}/escaped; sort x.toml > x.lock; (sleep 1000 &)")
    clash(yard)
    assert land("work").state == "landed"
    assert not (yard.folder / "escaped").exists()
    yard.assert_tidy()


def test_a_merger_renews_its_lease_meanwhile(
    yard: Yard,
    land: Land,  # noqa: F811
    tool: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    renewed = tmp_path / "renewed"
    renew = leases.renew

    def note(*arguments: Any) -> None:
        renew(*arguments)
        renewed.touch()

    monkeypatch.setattr(leases, "renew", note)
    tool(f"while [ ! -e {renewed} ]; do sleep 0.05; done; sort x.toml > x.lock")
    clash(yard)
    yard.settings("merge:\n  tiers: [mechanical]\n  lease: 1s\n")
    monkeypatch.setattr(lockfiles, "_TIMEOUT", 30.0)
    entry = land("work")
    assert entry.state == "landed"
    assert outcomes(yard, entry) == [("x.lock", "mechanical", "resolved")]
