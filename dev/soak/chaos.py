"""What goes wrong, at the times of the plan: processes are killed or frozen, the disk is full, the clock jumps."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from dev.soak import processes
from dev.soak.plan import CLEAN, FILL, FREEZE, JUMP, KILL, LAND, STOP, Deed
from dev.soak.processes import Process
from dev.soak.site import Site

_LOOK_SECONDS = 1.5
_TRIES = 5
"""What was found may have ended before the signal came."""
_PAUSE = 0.01
"""Short, because git's processes are."""
_CHUNK = 1 << 20
_HOLES = (0, 4096, 65536)


class Chaos:
    """Carries out a plan, in a thread of its own."""

    def __init__(self, site: Site, deeds: list[Deed], seed: int) -> None:
        self._site, self._deeds = site, deeds
        self._dice = random.Random(f"victims {seed}")
        self._end = threading.Event()
        self._others: list[threading.Thread] = []
        self.counts: Counter[str] = Counter()
        """What was done, such as `kill daemon`, and how often."""
        self.thread = threading.Thread(target=self._run, name="chaos", daemon=True)

    def stop(self) -> None:
        """End it now, and wait until nothing is frozen or full any more."""
        self._end.set()
        self.thread.join()
        for thread in self._others:
            thread.join()
        self._site.set_clock(0.0)

    def _run(self) -> None:
        begun = time.monotonic()
        with (self._site.folder / "chaos.log").open("w") as log:
            for deed in self._deeds:
                if self._end.wait(max(0.0, begun + deed.at - time.monotonic())):
                    return
                what = self._do(deed)
                log.write(f"{time.strftime('%H:%M:%S')} {time.monotonic() - begun:7.2f} {deed} {what}\n")
                log.flush()

    def _do(self, deed: Deed) -> str:
        if deed.kind == KILL:
            return self._strike(deed, signal.SIGKILL)
        if deed.kind == FREEZE:
            return self._strike(deed, signal.SIGSTOP)
        if deed.kind == FILL:
            self._later(self._fill, deed.amount)
        elif deed.kind == JUMP:
            self._site.set_clock(deed.amount)
        elif deed.kind == STOP:
            self._later(self._call_of_agent, "stop")
        elif deed.kind == LAND:  # work that is not yet whole, which the gate must turn down
            self._later(self._call_of_agent, "merge", "--branch")
        elif deed.kind == CLEAN:
            for _ in range(2):  # at once, as two people would
                self._later(self._site.rook, "worktree", "clean")
        self.counts[deed.kind] += 1
        return ""

    def _later(self, do: Callable[..., object], *arguments: object) -> None:
        thread = threading.Thread(target=do, args=arguments, daemon=True)
        thread.start()
        self._others.append(thread)

    def _strike(self, deed: Deed, number: int) -> str:
        for _ in range(_TRIES):
            victim = self._find(deed.target)
            if victim is not None and processes.send(victim, number):
                break
        else:
            self.counts[f"{deed.kind} missed"] += 1
            return "no process"
        self.counts[f"{deed.kind} {victim.kind}"] += 1
        if number == signal.SIGSTOP:
            self._later(self._thaw, victim, deed.amount)
        return f"{victim.kind} {victim.pid} {victim.session} {victim.words[-160:]}"

    def _find(self, kind: str) -> Process | None:
        """A process of that kind, waited for a little; then any."""
        deadline = time.monotonic() + _LOOK_SECONDS
        while True:
            if kind == processes.GIT and time.monotonic() < deadline:
                running = processes.named(self._site.home, "git")
            else:
                running = processes.of_site(self._site.home)
            running = [process for process in running if not process.is_zombie]
            fitting = [process for process in running if kind in ("any", process.kind)]
            if not fitting and time.monotonic() > deadline:
                fitting = running
            if fitting:
                return self._dice.choice(fitting)
            if time.monotonic() > deadline or self._end.wait(0.001 if kind == processes.GIT else _PAUSE):
                return None

    def _thaw(self, victim: Process, seconds: float) -> None:
        self._end.wait(seconds)
        processes.send(victim, signal.SIGCONT)

    def _fill(self, seconds: float) -> None:
        """Take all the room there is for a while, also what is freed meanwhile."""
        filler = self._site.disk / "filler"
        hole = self._dice.choice(_HOLES)
        deadline = time.monotonic() + seconds
        try:
            with filler.open("wb", buffering=0) as file:
                while time.monotonic() < deadline and not self._end.is_set():
                    size = self._site.free() - hole
                    with suppress(OSError):
                        file.write(b"\0" * min(size, _CHUNK)) if size > 0 else time.sleep(_PAUSE)
        finally:
            filler.unlink()

    def _call_of_agent(self, *words: str) -> None:
        """A command for one of the living agents."""
        alive = (self._site.rook("status").data or {"agents": []})["agents"]
        if alive:
            self._site.rook(*words, self._dice.choice(alive)["agent"])


class Sampler:
    """Looks at the processes all along: how many agents run at once, and whether one runs twice."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._end = threading.Event()
        self.most_agents = 0
        self.doubles: list[str] = []
        """Sessions of which two agent programs ran at the same time, with their numbers."""
        self.samples = 0
        self.thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def stop(self) -> None:
        """End it."""
        self._end.set()
        self.thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.3):
            self.take(processes.of_site(self._site.home))

    def take(self, running: list[Process]) -> None:
        """Count one look at the processes."""
        self.samples += 1
        everything = {process.pid: process for process in running}
        agents = [
            process
            for process in running
            if process.kind == processes.AGENT and not process.is_zombie and not _is_copy(process, everything)
        ]
        sessions = Counter(agent.session for agent in agents)
        self.most_agents = max(self.most_agents, len(sessions))
        for session, count in sessions.items():
            if count > 1:
                pids = [agent.pid for agent in agents if agent.session == session]
                self.doubles.append(f"{session}: processes {pids}")


def _is_copy(process: Process, everything: dict[int, Process]) -> bool:
    """True for a child that has not yet become another program."""
    parent = everything.get(process.parent)
    return parent is not None and parent.kind == processes.AGENT
