"""Importing does nothing: it prints, changes and starts nothing, and reads no environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from support import SOURCE

LIBRARIES = str(Path(apsw.__file__).parents[1])


def run_bare(script: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A child with this Rookery and the installed libraries on its path, and nothing else."""
    return subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", script, SOURCE, LIBRARIES, *words],
        cwd=cwd,
        env={"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# Imports every module while the environment bites, and reports what is opened for writing, made or started.
_IMPORT_ALL = """
import os, sys
sys.path[:0] = sys.argv[1:3]
sys.dont_write_bytecode = True
from importlib import import_module
import importlib.util, pkgutil

# Libraries may read the environment when they are loaded, and do: they come first.
for name in ("apsw", "yaml", "pydantic.dataclasses", "rich.console", "rich.progress", "rich.table", "rich.tree",
             "platform", "tempfile", "subprocess", "difflib", "graphlib", "dataclasses", "traceback",
             "importlib.metadata"):
    import_module(name)
import rookery
names = [each.name for each in pkgutil.walk_packages(rookery.__path__, "rookery.", onerror=lambda name: None)]

class Poison(dict):
    def _bite(self, *_words, **_named):
        raise AssertionError("the environment was read")
    __getitem__ = get = __contains__ = __iter__ = keys = items = values = copy = _bite

CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.putenv",
           "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "shutil.rmtree"}
seen = []

def watch(event, args):
    if event in CHANGES:
        seen.append(f"{event} {args}")
    elif event == "open" and (args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or "w" in str(args[1])):
        seen.append(f"{event} {args}")

sys.addaudithook(watch)
os.environ = Poison()
os.getenv = os.environ.get
for name in names:
    if not name.endswith("__main__"):
        import_module(name)
        if seen:
            sys.exit(f"{name}: {seen}")
os.write(1, f"{len(names)} modules".encode())
"""


@pytest.mark.slow
def test_importing_prints_nothing_changes_nothing_and_reads_no_environment(tmp_path: Path) -> None:
    done = run_bare(_IMPORT_ALL, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" modules")
    assert int(done.stdout.split()[0]) > 40
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("import os\nHOME = os.environ['HOME']\n", "the environment was read"),
        ("import os\nHOME = os.getenv('HOME')\n", "the environment was read"),
        ("import os\nos.makedirs('somewhere')\n", "os.mkdir"),
        ("open('somewhere', 'w')\n", "open"),
        ("print('hello')\n", ""),
    ],
)
def test_an_import_that_does_something_is_seen(body: str, complaint: str, tmp_path: Path) -> None:
    package = tmp_path / "source" / "rookery"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "bad.py").write_text(body)
    script = _IMPORT_ALL.replace("sys.argv[1:3]", f"[{str(tmp_path / 'source')!r}, sys.argv[2]]", 1)
    done = run_bare(script, cwd=tmp_path)
    assert complaint in done.stderr
    assert done.returncode != 0 or done.stdout != "1 modules"
