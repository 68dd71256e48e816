"""One gate on one tree: a job with a runner of its own (`gate_runner.py`), in the folder of the commit.

Its time, its output and what it writes are bounded, and all that it started ends with it.
"""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace

from rookery.base.draft import unique, write_whole
from rookery.base.text import end_of_output
from rookery.config import layout, steps
from rookery.config.model import GateConfig
from rookery.config.project import make_state_folders, to_stored
from rookery.merge import store
from rookery.merge.gates import jobs, scratch
from rookery.merge.gates.gate_runner import Order
from rookery.merge.gates.jobs import Taken
from rookery.merge.gates.scratch import Scratch
from rookery.merge.gates.settlement import drop, ended, remember, run_of
from rookery.merge.gates.slots import Slot
from rookery.merge.gates.together import Flow, Pause
from rookery.merge.merger import Merger
from rookery.merge.model import FAILED_GATE, FLAKY, PASSED, GateRun
from rookery.worktrees.provision import SetupFailed

_LONGEST_LINE = 4000
_LAST_BYTES = 16_000
_LAST_LINES = 40


def command_of(merger: Merger, gate: GateConfig) -> str:
    """A short name for the command with all that it runs in: another setting is another command."""
    provision = merger.ctx.config.provision
    return jobs.digest(gate.run, provision.setup, sorted(provision.env.items()), provision.copy, provision.link)


class Checkout:
    """The folder in which the gates of one commit run, made when the first of them starts; deleted when it is left."""

    def __init__(self, merger: Merger, commit: str, tree: str, base: str) -> None:
        self._merger = merger
        self._commit = commit
        self._tree = tree
        self._base = base
        self._stack = ExitStack()
        self._scratch: Scratch | None = None
        self.ran: set[str] = set()
        """The names of the gates that have run in it."""

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def open(self) -> Scratch:
        """The folder, with what the gates before have made in it."""
        if self._scratch is None:
            name, tip = f"gate-{self._tree[:12]}-{unique()}", self._merger.merging.tip(self._base) or self._commit
            opened = scratch.open_scratch(self._merger, name, self._commit, base=self._base, at=tip)
            self._scratch = self._stack.enter_context(opened)
        return self._scratch

    def clear(self) -> None:
        """Delete the folder: the next gate gets a new one."""
        self._scratch = None
        self.ran.clear()
        self._stack.close()


@dataclass(frozen=True, slots=True)
class GateJob:
    """One gate on one tree: its jobs are started, or are under way already, and then settled."""

    merger: Merger
    gate: GateConfig
    tree: str
    checkout: Checkout
    before: tuple[GateJob, ...]
    """The gates before it: it runs only where they have run."""
    fresh: str = ""
    """Something unique if no result of another process counts."""
    label: str = ""
    goes_on: bool = False
    """It runs also if one before it fails."""
    taken: list[Taken] = field(default_factory=list)

    @property
    def command(self) -> str:
        return command_of(self.merger, self.gate)

    @property
    def log(self) -> str:
        return self.merger.ctx.path(layout.GATES, self.tree[:12], f"{_file_name(self.gate.name)}.log")

    def run(self, retries: int) -> Flow[GateRun]:
        """The result, after so many retries at most; or that of a gate before it, if that fails now.

        A gate that failed before on this tree needs no first run.
        """
        merger, key = self.merger, (self.tree, self.command)
        run = merger.red.get(key) if retries else None
        earlier: GateRun | None = None
        try:
            for attempt in range(0 if run is None else 1, retries + 1):
                if attempt:
                    self._say(f"{self.gate.name} failed; once more, to see whether it is flaky\n")
                latest = yield from self._run_once(attempt, retries)
                if latest.name != self.gate.name:
                    earlier = latest
                    break
                run = latest.replace(verdict=FLAKY) if attempt and latest.verdict == PASSED else latest
                if run.verdict != FAILED_GATE:
                    break
            if run is not None:
                self._settle(run)
        finally:
            for taken in self.taken:
                taken.leave()
        result = earlier or run
        assert result is not None  # noqa: S101 - without a run, one before it has failed
        return result

    def _settle(self, run: GateRun) -> None:
        merger, key = self.merger, (self.tree, self.command)
        remember(merger, self.command, run)
        while self.taken:
            drop(merger, self.taken[0])
            del self.taken[0]
        merger.red.pop(key, None)
        if not run.is_ok:
            merger.red[key] = run

    def _say(self, text: str) -> None:
        self.merger.say(f"[{self.label} {self.gate.name}] {text}" if self.label else text)

    def _run_once(self, attempt: int, retries: int) -> Flow[GateRun]:
        """The result of one job, which we or another process started; or of a gate before it that fails now."""
        merger, root = self.merger, self.merger.ctx.root
        name = f"gate-{jobs.digest(self.tree, self.command, attempt, self.fresh)}"
        is_own, is_counted, last = False, False, store.last_gate_seq(merger.ctx.db)
        while True:
            if not jobs.is_there(root, name):
                failed = yield from self._run_those_before(retries)
                if failed is not None:
                    return failed
            if not is_counted:
                is_counted = True
                merger.gate_runs += 1
                self._say(f"gate {self.gate.name}: {self.gate.run}\n")
            if not jobs.is_there(root, name):
                with closing(Slot(merger.ctx)) as slot:
                    yield Pause(slot.take)
                    try:
                        place = self.checkout.open()
                    except SetupFailed as error:
                        return self._not_set_up(error)
                    is_own = self._start(name, place, slot)
                steps.reached("gate started")
            taken = yield from self._wait(name, is_own=is_own)
            if taken is None:
                known = store.last_gate_run(merger.ctx.db, self.tree, self.command, after=last)
                if known is not None:
                    # Another process that waited for it has settled it.
                    return known.replace(name=self.gate.name, last_lines=read_last_lines(known.log))
                continue
            if taken.end is not None:
                self.taken.append(taken)
                return run_of(taken)
            drop(merger, taken)  # its runner was killed
            if is_own:
                now, reason = merger.ctx.now(), "its process was killed"
                return GateRun(self.gate.name, self.tree, FAILED_GATE, None, 0.0, self.log, now, last_lines=reason)

    def _not_set_up(self, error: SetupFailed) -> GateRun:
        """The files do not pass the gate if what it needs cannot be made of them: a branch can break that, too."""
        make_state_folders(os.path.dirname(self.log))
        write_whole(self.log, f"{error.message}\n")
        self._say(f"{error.message}\n")
        lines = end_of_output(error.message, _LAST_LINES)
        return GateRun(
            self.gate.name, self.tree, FAILED_GATE, None, 0.0, self.log, self.merger.ctx.now(), last_lines=lines
        )

    def _run_those_before(self, retries: int) -> Flow[GateRun | None]:
        """Run the gates before it in the folder, if they have not run there; returns the one that failed.

        What an earlier run of the gate itself left in the folder must not help it: then it gets a new one.
        """
        if self.gate.name in self.checkout.ran:
            self.checkout.clear()
        for job in self.before:
            if job.gate.name not in self.checkout.ran:
                run = yield from replace(job, fresh=unique(), taken=[]).run(retries)
                if not run.is_ok and not self.goes_on:
                    return run
        return None

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
        is_own = jobs.start(merger.ctx.root, name, module, order.as_dict(), about, keep=[slot.file])
        if is_own:
            self.checkout.ran.add(gate.name)
        return is_own


def read_last_lines(log: str) -> str:
    """The end of what a gate printed; nothing if its log is gone."""
    with suppress(OSError), open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_BYTES))
        return end_of_output(file.read().decode("utf-8", "replace"), _LAST_LINES)
    return ""


def _file_name(name: str) -> str:
    """A plain name for a file; two gates never share one."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in name)
    plain = plain.lstrip(".")[:80]
    return plain if plain == name else f"{plain or 'gate'}-{jobs.digest(name)[:6]}"
