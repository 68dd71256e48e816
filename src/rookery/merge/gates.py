"""Gates: commands that must pass before work lands, run on just what would land.

A gate runs in a scratch folder and in a process group of its own. Its time, its output and what it writes are bounded,
and all that it started ends with it. What passed once on a tree is not run again on it; what failed is run again by
the next command, or at once where a retry is to tell flaky from broken.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from fnmatch import fnmatchcase

from rookery.agents.environment.masking import Mask, secret_values
from rookery.base.draft import unique
from rookery.base.errors import RookError
from rookery.base.process import start
from rookery.base.proctree import end_tree
from rookery.base.record import Record
from rookery.config.project import root_of, to_stored
from rookery.events.store import publish
from rookery.merge import scratch, store
from rookery.merge.model import FAILED_GATE, FLAKY, OVERRAN, PASSED, TIMEOUT, GateRun
from rookery.vcs.folders import tree_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rookery.base.child import Child
    from rookery.config.model import GateConfig
    from rookery.merge.desk import Desk
    from rookery.merge.scratch import Scratch

_MEGABYTE = 1_000_000
_TICK = 0.2
_TAIL = 16_000
_LAST_LINES = 40
# Both streams in one, no core files, and no single file beyond the bound (counted in blocks of 512 bytes).
_WRAP = 'exec 2>&1; ulimit -c 0; ulimit -f "$1"; exec /bin/sh -c "$2"'


class Verdict(Record):
    """What the gates say of a commit."""

    runs: tuple[GateRun, ...]
    """In order; the first that did not pass is the last."""

    @property
    def is_ok(self) -> bool:
        """True if the commit may land."""
        return all(run.is_ok for run in self.runs)

    @property
    def failed(self) -> GateRun | None:
        """The gate that speaks against it."""
        return next((run for run in self.runs if not run.is_ok), None)


def run_gates(
    desk: Desk,
    commit: str,
    *,
    base: str,
    at: str,
    retries: int = 0,
    fresh: bool = False,
    only: Sequence[str] = (),
    beat: Callable[[], None] = lambda: None,
) -> Verdict:
    """Run every gate that the changes since `at` call for. `beat` is called all the while, as a sign of life."""
    if not desk.config.gates:
        return Verdict(())
    tree = desk.merging.tree(commit)
    wanted = [gate for gate in _choose(desk, at, commit) if not only or gate.name in only]
    runs: list[GateRun] = []
    todo = []
    for gate in wanted:
        known = None if fresh else _known(desk, tree, gate)
        if known is None or (not known.is_ok and retries):
            todo.append(gate)
        else:
            runs.append(known)
            if not known.is_ok:
                return Verdict(tuple(runs))
    if todo:
        name, tip = f"gate-{tree[:12]}-{unique()}", desk.merging.tip(base) or commit
        with scratch.open_scratch(desk, name, commit, base=base, at=tip) as place:
            for gate in todo:
                runs.append(_run_with_retries(desk, gate, tree, place, retries, beat))
                if not runs[-1].is_ok:
                    break
    return Verdict(tuple(runs))


def _run_with_retries(
    desk: Desk, gate: GateConfig, tree: str, place: Scratch, retries: int, beat: Callable[[], None]
) -> GateRun:
    """A gate that failed before, on this very tree, has its first run behind it."""
    before = desk.red.get((tree, command_of(desk, gate)))
    found = before if before is not None and retries else _run(desk, gate, tree, place, beat)
    for _ in range(retries):
        if found.verdict != FAILED_GATE:
            break
        desk.say(f"{gate.name} failed; once more, to see whether it is flaky\n")
        again = _run(desk, gate, tree, place, beat)
        found = again.replace(verdict=FLAKY) if again.verdict == PASSED else again
    _remember(desk, gate, found)
    return found


def _choose(desk: Desk, old: str, new: str) -> list[GateConfig]:
    """The gates whose paths have changed, and those without paths."""
    gates = desk.config.gates
    if not any(gate.paths for gate in gates):
        return list(gates)
    changed = desk.merging.changed_paths([(old, new)])[0]
    return [gate for gate in gates if not gate.paths or any(matches(path, gate.paths) for path in changed)]


def matches(path: str, patterns: Sequence[str]) -> bool:
    """True if one of the patterns is the path, a folder above it, or a glob that fits it."""
    return any(
        path == each.rstrip("/") or path.startswith(each.rstrip("/") + "/") or fnmatchcase(path, each)
        for each in patterns
    )


def command_of(desk: Desk, gate: GateConfig) -> str:
    """A short name for the command with all that it runs in: another setting is another command."""
    given = desk.config.provision
    parts = (gate.run, given.setup, sorted(given.env.items()), given.copy, given.link)
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _known(desk: Desk, tree: str, gate: GateConfig) -> GateRun | None:
    command = command_of(desk, gate)
    failed = desk.red.get((tree, command))
    if failed is not None:
        return failed.replace(is_cached=True)
    found = store.last_gate_run(desk.db, tree, command)
    return found.replace(is_cached=True, name=gate.name) if found is not None and found.is_ok else None


def _remember(desk: Desk, gate: GateConfig, found: GateRun) -> None:
    key = (found.tree, command_of(desk, gate))
    if found.is_ok:
        desk.red.pop(key, None)
    else:
        desk.red[key] = found
    with desk.db.write() as db:
        store.add_gate_run(db, found, key[1])
        log = to_stored(root_of(db.path), found.log)
        data = {"tree": found.tree, "verdict": found.verdict, "seconds": found.seconds, "log": log}
        publish(db, f"gate.{found.verdict}", found.name, data, actor=desk.actor, at=desk.now())


def _run(desk: Desk, gate: GateConfig, tree: str, place: Scratch, beat: Callable[[], None]) -> GateRun:
    """Run a gate once, to its end or to its bounds."""
    desk.gate_runs += 1
    desk.say(f"gate {gate.name}: {gate.run}\n")
    log = os.path.join(desk.path("gates", tree[:12]), f"{_file_name(gate.name)}.log")
    os.makedirs(os.path.dirname(log), exist_ok=True)
    blocks = desk.config.merge.gate_disk * _MEGABYTE // 512
    argv = (*place.cage, "/bin/sh", "-c", _WRAP, "sh", str(blocks), gate.run)
    began = time.monotonic()
    output = _Output(log, desk.config.merge.gate_output * _MEGABYTE, desk.say, Mask(secret_values(place.env)))
    try:
        child = start(argv, cwd=place.folder, env=place.env)
        try:
            verdict, status = _follow(desk, gate, child, output, place, beat)
        finally:
            # Also what the gate left in the background, wherever it went.
            end_tree(child.identity, place.mark, 0)
            child.close()
    except RookError as error:
        verdict, status = FAILED_GATE, None
        output.add(error.message.encode())
    finally:
        output.close()
    seconds = round(time.monotonic() - began, 3)
    return GateRun(gate.name, tree, verdict, status, seconds, log, desk.now(), last_lines=output.last_lines)


def _follow(
    desk: Desk, gate: GateConfig, child: Child, output: _Output, place: Scratch, beat: Callable[[], None]
) -> tuple[str, int | None]:
    deadline = time.monotonic() + gate.timeout
    disk = _DiskWatch(os.path.dirname(place.folder), desk.config.merge.gate_disk * _MEGABYTE)
    looked = time.monotonic()
    for chunk in child.chunks(_TICK):
        output.add(chunk)
        if time.monotonic() - looked < _TICK:
            continue
        looked = time.monotonic()
        beat()
        if looked > deadline:
            output.add(f"\n{gate.name} did not end within {gate.timeout:g} s\n".encode())
            return TIMEOUT, None
        if disk.is_overrun():
            limit = desk.config.merge.gate_disk
            output.add(f"\n{gate.name} wrote more than {limit} MB (merge.gate_disk)\n".encode())
            return OVERRAN, None
    status = child.wait(_TICK)
    return (PASSED if status == 0 else FAILED_GATE), status


class _Output:
    """What a gate prints, without credentials: kept in a file up to a bound, shown as it comes."""

    def __init__(self, path: str, limit: int, say: Callable[[str], None], mask: Mask) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 - closed by `close`
        self._left = limit
        self._tail = b""
        self._say = say
        self._mask = mask

    def add(self, chunk: bytes) -> None:
        """Take in some more."""
        self._keep(self._mask.take(chunk))

    def _keep(self, chunk: bytes) -> None:
        if not chunk:
            return
        self._tail = (self._tail + chunk)[-_TAIL:]
        if self._left > 0:
            self._file.write(chunk[: self._left])
            self._left -= len(chunk)
            if self._left <= 0:
                self._file.write(b"\n[the rest was not kept: merge.gate_output]\n")
            self._file.flush()
            self._say(chunk.decode("utf-8", "replace"))

    @property
    def last_lines(self) -> str:
        """The end, for a message."""
        return "\n".join(self._tail.decode("utf-8", "replace").replace("\0", "").splitlines()[-_LAST_LINES:]).strip()

    def close(self) -> None:
        """The gate has ended."""
        self._keep(self._mask.end())
        self._file.close()


class _DiskWatch:
    """Whether a folder grows beyond a bound: the free space tells it cheaply, and then the folder is asked."""

    def __init__(self, folder: str, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._free = self._free_now()

    def is_overrun(self) -> bool:
        if self._free - self._free_now() < self._limit:
            return False
        # Others write too. From now on only what the folder has grown by counts.
        return tree_size(self._folder) > self._limit

    def _free_now(self) -> int:
        found = os.statvfs(self._folder)
        return found.f_bavail * found.f_frsize


def _file_name(name: str) -> str:
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in name)
    return plain.lstrip(".")[:80] or "gate"
