"""Gates: commands that must pass before work lands, run on just what would land.

A gate runs in a scratch folder, as a job with a runner of its own (`gate_runner.py`). Its time, its output and what it
writes are bounded, and all that it started ends with it. What passed once on a tree is not run again on it; what failed
is run again by the next command, or at once where a retry is to tell flaky from broken.
"""

from __future__ import annotations

import hashlib
import json
import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import IO

from rookery.base.draft import unique
from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.config import layout, steps
from rookery.config.model import GateConfig
from rookery.config.project import from_stored, root_of, to_stored
from rookery.events.store import publish
from rookery.merge import store
from rookery.merge.gates import jobs, scratch
from rookery.merge.gates.gate_runner import Order
from rookery.merge.gates.jobs import Taken
from rookery.merge.gates.scratch import Scratch
from rookery.merge.merger import Merger
from rookery.merge.model import FAILED_GATE, FLAKY, PASSED, GateRun
from rookery.processes import holder as holders


@dataclass(frozen=True, slots=True)
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
    merger: Merger,
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
    if not merger.ctx.config.gates:
        return Verdict(())
    tree = merger.merging.tree(commit)
    wanted = [gate for gate in _choose(merger, at, commit) if not only or gate.name in only]
    runs: list[GateRun] = []
    todo = []
    for gate in wanted:
        known = None if fresh else _known(merger, tree, gate)
        if known is None or (not known.is_ok and retries):
            todo.append(gate)
        else:
            runs.append(known)
            if not known.is_ok:
                return Verdict(tuple(runs))
    if todo:
        with ExitStack() as stack:

            @cache
            def place() -> Scratch:
                name, tip = f"gate-{tree[:12]}-{unique()}", merger.merging.tip(base) or commit
                return stack.enter_context(scratch.open_scratch(merger, name, commit, base=base, at=tip))

            for gate in todo:
                runs.append(_run_with_retries(merger, gate, tree, place, retries, unique() if fresh else "", beat))
                if not runs[-1].is_ok:
                    break
    return Verdict(tuple(runs))


def _run_with_retries(
    merger: Merger,
    gate: GateConfig,
    tree: str,
    place: Callable[[], Scratch],
    retries: int,
    fresh: str,
    beat: Callable[[], None],
) -> GateRun:
    """A gate that failed before, on this very tree, has its first run behind it."""
    command = command_of(merger, gate)
    before = merger.red.get((tree, command))
    once = _Once(merger, gate, tree, command, fresh)
    try:
        found = before if before is not None and retries else once.run(0, place, beat)
        for attempt in range(1, retries + 1):
            if found.verdict != FAILED_GATE:
                break
            merger.say(f"{gate.name} failed; once more, to see whether it is flaky\n")
            again = once.run(attempt, place, beat)
            found = again.replace(verdict=FLAKY) if again.verdict == PASSED else again
        once.settle(found)
    finally:
        once.leave()
    if found.is_ok:
        merger.red.pop((tree, command), None)
    else:
        merger.red[(tree, command)] = found
    return found


def _choose(merger: Merger, old: str, new: str) -> list[GateConfig]:
    """The gates whose paths have changed, and those without paths."""
    gates = merger.ctx.config.gates
    if not any(gate.paths for gate in gates):
        return list(gates)
    changed = merger.merging.changed_paths([(old, new)])[0]
    return [gate for gate in gates if not gate.paths or any(matches(path, gate.paths) for path in changed)]


def matches(path: str, patterns: Sequence[str]) -> bool:
    """True if one of the patterns is the path, a folder above it, or a glob that fits it."""
    return any(
        path == each.rstrip("/") or path.startswith(each.rstrip("/") + "/") or fnmatchcase(path, each)
        for each in patterns
    )


def command_of(merger: Merger, gate: GateConfig) -> str:
    """A short name for the command with all that it runs in: another setting is another command."""
    given = merger.ctx.config.provision
    parts = (gate.run, given.setup, sorted(given.env.items()), given.copy, given.link)
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _known(merger: Merger, tree: str, gate: GateConfig) -> GateRun | None:
    command = command_of(merger, gate)
    failed = merger.red.get((tree, command))
    if failed is not None:
        return failed.replace(is_cached=True)
    found = store.last_gate_run(merger.ctx.db, tree, command)
    return found.replace(is_cached=True, name=gate.name) if found is not None and found.is_ok else None


def _remember(merger: Merger, command: str, found: GateRun) -> None:
    """Keep what came of it; nothing if that was done before by a process that was killed then."""
    with merger.ctx.db.write() as db:
        if store.has_gate_run(db, found.tree, command, found.at):
            return
        store.add_gate_run(db, found, command)
        log = to_stored(root_of(db.path), found.log)
        data = {"tree": found.tree, "verdict": found.verdict, "seconds": found.seconds, "log": log}
        publish(db, f"gate.{found.verdict}", found.name, data, actor=merger.actor, at=merger.ctx.now())


class _Once:
    """One gate on one tree: its job is started, or found under way, and settled."""

    def __init__(self, merger: Merger, gate: GateConfig, tree: str, command: str, fresh: str) -> None:
        self._merger = merger
        self._gate = gate
        self._tree = tree
        self._command = command
        self._fresh = fresh
        self._taken: list[Taken] = []

    def run(self, attempt: int, place: Callable[[], Scratch], beat: Callable[[], None]) -> GateRun:
        """The job's result, of whoever started it."""
        merger, root = self._merger, self._merger.ctx.root
        name = jobs.name_of("gate", self._tree, self._command, attempt, self._fresh)
        merger.gate_runs += 1
        merger.say(f"gate {self._gate.name}: {self._gate.run}\n")
        is_own, began = False, merger.ctx.now()
        while True:
            if not jobs.is_there(root, name):
                is_own = self._start(name, place())
                steps.reached("gate started")
            try:
                self._wait(name, beat)
            except BaseException:
                if is_own or _is_left(merger, name):
                    jobs.end(root, name)
                    with suppress(RookError):  # a full disk: the loop does it later
                        settle_left(merger, name)
                raise
            taken = jobs.take(root, name)
            if taken is None:
                known = store.last_gate_run(merger.ctx.db, self._tree, self._command)
                if known is not None and known.at >= began:
                    return known  # another process that waited for it has settled it
                continue
            if taken.end is not None:
                self._taken.append(taken)
                return _run_of(taken)
            _drop(merger, taken)  # its runner was killed
            if is_own:
                return self._killed()

    def _wait(self, name: str, beat: Callable[[], None]) -> None:
        """Wait for its end, and show what it prints."""
        tail = _Tail(self._log, self._merger.say)

        def tick() -> None:
            tail.show()
            beat()

        try:
            every = self._merger.ctx.config.merge.lease / 8
            jobs.wait(self._merger.ctx.root, name, tick, every=every, log=os.path.dirname(self._log))
            tail.show()
        finally:
            tail.close()

    def settle(self, found: GateRun) -> None:
        """Keep what came of it, and let go of the jobs."""
        _remember(self._merger, self._command, found)
        steps.reached("gate remembered")
        for each in self._taken:
            _drop(self._merger, each)
        self._taken.clear()

    def leave(self) -> None:
        """Let somebody else settle what is left."""
        for each in self._taken:
            each.leave()

    @property
    def _log(self) -> str:
        return os.path.join(self._merger.ctx.path(layout.GATES, self._tree[:12]), f"{_file_name(self._gate.name)}.log")

    def _start(self, name: str, place: Scratch) -> bool:
        merger, gate, me = self._merger, self._gate, holders.myself()
        os.makedirs(os.path.dirname(self._log), exist_ok=True)
        with suppress(FileNotFoundError):
            os.unlink(self._log)  # of an earlier run: nobody shall take it for this one's
        order = Order(
            root=merger.ctx.root,
            name=gate.name,
            run=gate.run,
            cage=list(place.cage),
            folder=place.folder,
            env=place.env,
            mark=list(place.mark),
            timeout=gate.timeout,
            disk=merger.ctx.config.merge.gate_disk,
            output=merger.ctx.config.merge.gate_output,
            log=self._log,
            owner=(me.pid, me.text),
        )
        log = to_stored(merger.ctx.root, self._log)
        about = {"gate": gate.name, "tree": self._tree, "command": self._command, "log": log, "place": place.name}
        return jobs.start(merger.ctx.root, name, "rookery.merge.gates.gate_runner", order.as_dict(), about)

    def _killed(self) -> GateRun:
        words = "its process was killed"
        return GateRun(
            self._gate.name, self._tree, FAILED_GATE, None, 0.0, self._log, self._merger.ctx.now(), last_lines=words
        )


def settle_left(merger: Merger, name: str) -> None:
    """Keep the result of a gate whose merger was killed; the next merger does not have to run it again."""
    taken = jobs.take(merger.ctx.root, name)
    if taken is None:
        return
    if taken.end is not None:
        _remember(merger, taken.about["command"], _run_of(taken))
        steps.reached("gate remembered")
    _drop(merger, taken)


def _is_left(merger: Merger, name: str) -> bool:
    """True if nobody but us waits for a job: the merger that started it is gone."""
    about = jobs.about(merger.ctx.root, name)
    return not about or scratch.is_left(merger.ctx, about["place"])


def _drop(merger: Merger, taken: Taken) -> None:
    """Let go of a job, with its scratch folder if whoever made that is gone. Killed in between, the loop does it."""
    if taken.about:
        scratch.drop_left(merger, taken.about["place"])
    taken.drop()


def _run_of(taken: Taken) -> GateRun:
    about, end = taken.about, taken.end
    assert end is not None  # noqa: S101
    return GateRun(
        about["gate"],
        about["tree"],
        end["verdict"],
        end["status"],
        end["seconds"],
        from_stored(taken.root, about["log"]),
        end["at"],
        last_lines=end["last_lines"],
    )


class _Tail:
    """Shows what is added to a file that may not be there yet."""

    def __init__(self, path: str, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self._file: IO[bytes] | None = None
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def show(self) -> None:
        """Say what is new."""
        if self._file is None:
            with suppress(FileNotFoundError):
                self._file = open(self._path, "rb")  # noqa: SIM115 - closed by `close`
        if self._file is not None and (text := self._decoder.decode(self._file.read())):
            self._say(text)

    def close(self) -> None:
        """Nothing more will come."""
        if self._file is not None:
            self._file.close()


def _file_name(name: str) -> str:
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in name)
    return plain.lstrip(".")[:80] or "gate"
