"""Gates: commands that must pass before work lands, run on just what would land.

A gate runs in a scratch folder, as a job with a runner of its own (`gate_runner.py`). Its time, its output and what it
writes are bounded, and all that it started ends with it. A gate that passed on a tree is not run again on it; one that
failed is run again by the next command, or at once where a retry shows whether it is flaky.

The gates of one commit run one after the other in one folder, so that a later one finds what an earlier one made. Those
of several commits run at once, as far as there are slots (`slots.py`).
"""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

from rookery.base.draft import unique
from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.base.text import end_of_output
from rookery.config import layout, steps
from rookery.config.model import GateConfig
from rookery.config.project import from_stored, make_state_folders, to_stored
from rookery.merge import store
from rookery.merge.gates import jobs, scratch
from rookery.merge.gates.gate_runner import Order
from rookery.merge.gates.jobs import Taken
from rookery.merge.gates.scratch import Scratch
from rookery.merge.gates.slots import Slot
from rookery.merge.gates.together import Flow, Pause, together
from rookery.merge.merger import Merger
from rookery.merge.model import FAILED_GATE, FLAKY, PASSED, GateRun
from rookery.merge.tiers import spending
from rookery.sessions import journal

_LONGEST_LINE = 4000
_LAST_BYTES = 16_000
_LAST_LINES = 40


@dataclass(frozen=True, slots=True)
class GateReport(Record):
    """What the gates say of a commit."""

    commit: str
    runs: tuple[GateRun, ...]
    """In order; where only passing all of them counts, the first that did not pass is the last."""

    @property
    def failed(self) -> GateRun | None:
        """The gate that did not pass; None if the commit may land."""
        return next((run for run in self.runs if not run.is_ok), None)

    @property
    def exit_status(self) -> int:
        """1 if one did not pass."""
        return 0 if self.failed is None else 1


@dataclass(frozen=True, slots=True)
class Gated(Record):
    """A commit to run the gates on."""

    commit: str
    base: str
    at: str
    """Gates with paths run if these have changed since this commit or tree."""
    label: str = ""
    """Stands before every line of output, where gates of several commits run at once."""


def run_gates(
    merger: Merger,
    commit: str,
    *,
    base: str,
    at: str,
    retries: int = 0,
    fresh: bool = False,
    only: Sequence[str] = (),
    goes_on: bool = False,
) -> GateReport:
    """Run every gate whose paths have changed since `at`, up to the first that does not pass unless `goes_on`."""
    return together(merger, [_run_on(merger, Gated(commit, base, at), retries, fresh, only, goes_on)])[0]


def run_gates_on_base(
    merger: Merger, base: str, *, only: Sequence[str] = (), last: str = "", fresh: bool = False, goes_on: bool = False
) -> GateReport:
    """The same on a base as it is, for the gates whose paths it has. What failed there is not run twice.

    Where only the result of the `last` counts, nothing is run if that is known, and else all of them, in one folder.
    """
    tip = merger.merging.tip(base)
    if tip is None:
        return GateReport(base, ())
    tree = merger.merging.tree(tip)
    chosen = [gate for gate in merger.ctx.config.gates if not only or gate.name in only]
    known = [run for gate in chosen if gate.name == last and (run := _known(merger, tree, gate)) is not None]
    if known:
        return GateReport(tip, (known[0],))
    is_known = any((tree, command_of(merger, gate)) in merger.red for gate in chosen)
    retries = 0 if is_known and not last else merger.ctx.config.merge.retries
    at = merger.merging.store.empty_tree()
    fresh = fresh or bool(last and len(chosen) > 1)
    goes_on = goes_on or bool(last)
    return run_gates(merger, tip, base=base, at=at, retries=retries, only=only, fresh=fresh, goes_on=goes_on)


def run_gates_on_all(merger: Merger, gated: Sequence[Gated]) -> list[GateReport]:
    """The same on several commits at once, without retries."""
    is_one = len(gated) == 1
    flows = [_run_on(merger, one.replace(label="") if is_one else one, 0, False, ()) for one in gated]
    return together(merger, flows)


def _run_on(
    merger: Merger, gated: Gated, retries: int, fresh: bool, only: Sequence[str], goes_on: bool = False
) -> Flow[GateReport]:
    commit, base, at = gated.commit, gated.base, gated.at
    if not merger.ctx.config.gates:
        return GateReport(commit, ())
    tree = merger.merging.tree(commit)
    runs: list[GateRun] = []
    todo = []
    for gate in _choose(merger, at, commit, only):
        known = None if fresh else _known(merger, tree, gate)
        if known is None or (not known.is_ok and retries):
            todo.append(gate)
            continue
        runs.append(known)
        if not known.is_ok and not goes_on:
            return GateReport(commit, tuple(runs))
    with ExitStack() as stack:

        @cache
        def place() -> Scratch:
            name, tip = f"gate-{tree[:12]}-{unique()}", merger.merging.tip(base) or commit
            return stack.enter_context(scratch.open_scratch(merger, name, commit, base=base, at=tip))

        for gate in todo:
            one = _GateOnTree(merger, gate, tree, unique() if fresh else "", place, gated.label)
            runs.append((yield from one.run(retries)))
            if not runs[-1].is_ok and not goes_on:
                break
    return GateReport(commit, tuple(runs))


def _choose(merger: Merger, old: str, new: str, only: Sequence[str]) -> list[GateConfig]:
    """The gates whose paths have changed, and those without paths; with `only`, those of them that are named."""
    gates = [gate for gate in merger.ctx.config.gates if not only or gate.name in only]
    if not any(gate.paths for gate in gates):
        return gates
    changed = merger.merging.changed_paths([(old, new)])[0]
    return [gate for gate in gates if not gate.paths or any(matches(path, gate.paths) for path in changed)]


def matches(path: str, patterns: Sequence[str]) -> bool:
    """True if one of the patterns is the path, a folder above it, or a glob that fits it."""
    return any(
        path == pattern.rstrip("/") or path.startswith(pattern.rstrip("/") + "/") or fnmatchcase(path, pattern)
        for pattern in patterns
    )


def command_of(merger: Merger, gate: GateConfig) -> str:
    """A short name for the command with all that it runs in: another setting is another command."""
    provision = merger.ctx.config.provision
    return jobs.digest(gate.run, provision.setup, sorted(provision.env.items()), provision.copy, provision.link)


def _known(merger: Merger, tree: str, gate: GateConfig) -> GateRun | None:
    command = command_of(merger, gate)
    failed = merger.red.get((tree, command))
    if failed is not None:
        return failed.replace(is_cached=True)
    run = store.last_gate_run(merger.ctx.db, tree, command)
    return run.replace(is_cached=True, name=gate.name) if run is not None and run.is_ok else None


def _remember(merger: Merger, command: str, run: GateRun) -> None:
    with merger.ctx.db.write() as db:
        store.add_gate_run(db, run, command, actor=merger.actor, at=merger.ctx.now())
    steps.reached("gate remembered")


@dataclass(frozen=True, slots=True)
class _GateOnTree:
    """One gate on one tree: its jobs are started, or are under way already, and then settled."""

    merger: Merger
    gate: GateConfig
    tree: str
    fresh: str
    place: Callable[[], Scratch]
    label: str = ""
    taken: list[Taken] = field(default_factory=list)

    @property
    def command(self) -> str:
        return command_of(self.merger, self.gate)

    @property
    def log(self) -> str:
        return self.merger.ctx.path(layout.GATES, self.tree[:12], f"{_file_name(self.gate.name)}.log")

    def run(self, retries: int) -> Flow[GateRun]:
        """The result, after so many retries at most. A gate that failed before on this tree needs no first run."""
        merger, key = self.merger, (self.tree, self.command)
        before = merger.red.get(key) if retries else None
        try:
            run = before or (yield from self._run_once(0))
            for attempt in range(1, retries + 1):
                if run.verdict != FAILED_GATE:
                    break
                self._say(f"{self.gate.name} failed; once more, to see whether it is flaky\n")
                run = yield from self._run_once(attempt)
                run = run.replace(verdict=FLAKY) if run.verdict == PASSED else run
            _remember(merger, self.command, run)
            while self.taken:
                drop(merger, self.taken[0])
                del self.taken[0]
        finally:
            for taken in self.taken:
                taken.leave()
        merger.red.pop(key, None)
        if not run.is_ok:
            merger.red[key] = run
        return run

    def _say(self, text: str) -> None:
        self.merger.say(f"[{self.label} {self.gate.name}] {text}" if self.label else text)

    def _run_once(self, attempt: int) -> Flow[GateRun]:
        """The result of one job, which we or another process started."""
        merger, root = self.merger, self.merger.ctx.root
        name = f"gate-{jobs.digest(self.tree, self.command, attempt, self.fresh)}"
        merger.gate_runs += 1
        self._say(f"gate {self.gate.name}: {self.gate.run}\n")
        is_own, last = False, store.last_gate_seq(merger.ctx.db)
        while True:
            if not jobs.is_there(root, name):
                with closing(Slot(merger.ctx)) as slot:
                    yield Pause(slot.take)
                    is_own = self._start(name, self.place(), slot)
                steps.reached("gate started")
            taken = yield from self._wait(name, is_own=is_own)
            if taken is None:
                known = store.last_gate_run(merger.ctx.db, self.tree, self.command, after=last)
                if known is not None:
                    # Another process that waited for it has settled it.
                    return known.replace(last_lines=read_last_lines(known.log))
                continue
            if taken.end is not None:
                self.taken.append(taken)
                return _run_of(taken)
            drop(merger, taken)  # its runner was killed
            if is_own:
                now, reason = merger.ctx.now(), "its process was killed"
                return GateRun(self.gate.name, self.tree, FAILED_GATE, None, 0.0, self.log, now, last_lines=reason)

    def _wait(self, name: str, *, is_own: bool) -> Flow[Taken | None]:
        """Wait for its end, and show what it prints. Its log may not be there yet."""
        decoder = getincrementaldecoder("utf-8")("replace")
        shown = 0
        line = ""  # the beginning of a line, where whole ones are shown

        def show(*, is_last: bool = False) -> None:
            nonlocal shown, line
            output = b""
            with suppress(FileNotFoundError), open(self.log, "rb") as file:
                file.seek(shown)
                output = file.read()
                shown += len(output)
            text = decoder.decode(output)
            if not self.label:
                self.merger.say(text)
                return
            *lines, line = (line + text).split("\n")
            if len(line) > _LONGEST_LINE or (is_last and line):
                lines, line = [*lines, line], ""
            for whole in lines:
                self._say(f"{whole}\n")

        taken = yield from ended(self.merger, name, show, is_own=is_own, log=os.path.dirname(self.log))
        show(is_last=True)
        return taken

    def _start(self, name: str, place: Scratch, slot: Slot) -> bool:
        merger, gate = self.merger, self.gate
        make_state_folders(os.path.dirname(self.log))
        with suppress(FileNotFoundError):
            os.unlink(self.log)  # of an earlier run: it must not be taken for this one's
        order = Order(
            name=gate.name,
            run=gate.run,
            cage=list(place.cage),
            folder=place.folder,
            env=place.env,
            timeout=gate.timeout,
            disk=merger.ctx.config.merge.gate_disk,
            output=merger.ctx.config.merge.gate_output,
            memory=merger.ctx.config.merge.memory,
            cpus=merger.ctx.config.merge.cpus,
            slot=slot.number,
            log=self.log,
        )
        log = to_stored(merger.ctx.root, self.log)
        about = {"gate": gate.name, "tree": self.tree, "command": self.command, "log": log, "place": place.name}
        module = "rookery.merge.gates.gate_runner"
        return jobs.start(merger.ctx.root, name, module, order.as_dict(), about, keep=[slot.file])


def take_ended(merger: Merger, name: str) -> Taken | None:
    """Wait for the end of our own job, and take it; None if another process has settled it."""
    return together(merger, [ended(merger, name, lambda: None, is_own=True)])[0]


def ended(merger: Merger, name: str, show: Callable[[], object], *, is_own: bool, log: str = "") -> Flow[Taken | None]:
    """Wait for the end of a job, and take it; None if another process has settled it.

    An interrupt ends the job if it is our own, or if the merger that started it is gone: no other process waits for it.
    """
    root = merger.ctx.root

    def is_over() -> bool:
        is_running = journal.is_running(root, name)
        show()
        return not is_running

    try:
        yield Pause(is_over, log)
    except BaseException:
        about = jobs.about(root, name)
        if is_own or not about or scratch.is_left(merger.ctx, about["place"]):
            jobs.end(root, name)
            with suppress(RookError):  # a full disk: the loop does it later
                settle_left(merger, name)
        raise
    return jobs.take(root, name)


def settle_left(merger: Merger, name: str) -> None:
    """Drop a job that no merger waits for. The result of a gate is kept, so that the next need not run it again."""
    taken = jobs.take(merger.ctx.root, name)
    if taken is None:
        return
    if taken.end is not None and "gate" in taken.about:
        _remember(merger, taken.about["command"], _run_of(taken))
    drop(merger, taken)


def read_last_lines(log: str) -> str:
    """The end of what a gate printed; nothing if its log is gone."""
    with suppress(OSError), open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_BYTES))
        return end_of_output(file.read().decode("utf-8", "replace"), _LAST_LINES)
    return ""


def drop(merger: Merger, taken: Taken) -> None:
    """Delete a job once what an agent used is counted, with its scratch folder if the process that made it is gone.

    After a kill, the loop does it.
    """
    if taken.about:
        spending.count(merger, taken)
        scratch.drop_left(merger, taken.about["place"])
    taken.drop()


def _run_of(taken: Taken) -> GateRun:
    about, end = taken.about, taken.end
    assert end is not None  # noqa: S101
    log = from_stored(taken.root, about["log"])
    result = {name: end[name] for name in ("verdict", "status", "seconds", "at", "last_lines")}
    return GateRun(name=about["gate"], tree=about["tree"], log=log, **result)


def _file_name(name: str) -> str:
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in name)
    return plain.lstrip(".")[:80] or "gate"
