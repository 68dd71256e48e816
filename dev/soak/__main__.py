"""`./rook-dev soak [--minutes N] [--seed S] [--agents N] [--mode on|off] [--keep]`: work under failures, then judge.

Exit status: 0 if everything that must hold holds, 1 if something does not; the folder is kept then.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import sys
import time
from collections.abc import Iterator

from dev.soak import processes, report
from dev.soak.chaos import Chaos, Sampler
from dev.soak.checks import checkout, commits, events, leftovers, mail, tasks
from dev.soak.checks.known import sort_out
from dev.soak.checks.model import Ledger, Violation, open_copy, open_snapshot, read_ledger
from dev.soak.person import Merger, Person
from dev.soak.plan import make_deeds
from dev.soak.repository import BASE, UsersFile, add_users_files, make_repository, write_settings
from dev.soak.site import Site

_AGENTS = 15
_MERGERS = 2
_GONE_SECONDS = 10.0


def main() -> int:
    """Run one soak."""
    options = _parse()
    site = Site.make(mode=options.mode, minutes=options.minutes)
    is_bad = True
    try:
        is_bad = Soak(site, options).run()
    finally:
        site.is_closed = True
        processes.end_all(site.home)
        if is_bad or options.keep:
            print(f"kept in {site.keep()}")
        else:
            site.remove()
    return 1 if is_bad else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rook-dev soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long things go wrong (1)")
    parser.add_argument("--seed", type=int, default=None, help="the same seed gives the same plan; a random one")
    parser.add_argument("--agents", type=int, default=_AGENTS, help=f"how many agents may live at once ({_AGENTS})")
    parser.add_argument("--mode", choices=("on", "off"), default="on", help="with a daemon, or ROOKERY_DAEMON=off")
    parser.add_argument("--calm", action="store_true", help="nothing goes wrong: only the work, and the checks")
    parser.add_argument("--keep", action="store_true", help="keep the folder also if all is well")
    options = parser.parse_args()
    options.seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    return options


class Soak:
    """One soak: prepare, work under failures, let the work end, look."""

    def __init__(self, site: Site, options: argparse.Namespace) -> None:
        self._site, self._options = site, options
        self._files: list[UsersFile] = []
        self._person = Person(site, options.seed, options.agents)
        self._mergers = [Merger(site, number) for number in range(_MERGERS)]
        self._sampler = Sampler(site)
        seconds = options.minutes * 60
        deeds = [] if options.calm else make_deeds(options.seed, seconds, can_fill=not site.no_disk)
        self._chaos = Chaos(site, deeds, options.seed)
        self._seconds = {"chaos": 0.0, "quiet": 0.0, "checks": 0.0}

    def run(self) -> bool:
        """True if something is wrong."""
        options, site = self._options, self._site
        print(f"soak: seed {options.seed}, {options.minutes:g} min, {options.agents} agents, daemon {options.mode}")
        print(f"in {site.folder}", flush=True)
        if site.no_disk:
            print(f"the disk is never full: {site.no_disk}")
        begun = time.monotonic()
        self._prepare()
        self._work()
        self._seconds["chaos"] = time.monotonic() - begun
        begun = time.monotonic()
        self._finish()
        self._seconds["quiet"] = time.monotonic() - begun
        begun = time.monotonic()
        violations, db = self._check()
        self._seconds["checks"] = time.monotonic() - begun
        return self._report(violations, db)

    def _prepare(self) -> None:
        make_repository(self._site)
        write_settings(self._site, agents=self._options.agents)
        self._site.ask("init", "--yes")
        self._files = add_users_files(self._site)

    def _work(self) -> None:
        mergers = [merger.thread for merger in self._mergers]
        for thread in (self._person.thread, *mergers, self._sampler.thread, self._chaos.thread):
            thread.start()
        deadline = time.monotonic() + self._options.minutes * 60
        while time.monotonic() < deadline and self._person.thread.is_alive():
            time.sleep(0.2)
        self._chaos.stop()

    def _finish(self) -> None:
        """Let everything that was begun come to its end, for a bounded time; then stop what is left."""
        print("quiet: nothing goes wrong any more", flush=True)
        self._person.be_quiet()
        deadline = time.monotonic() + 120 + 6 * self._options.agents
        while time.monotonic() < deadline and self._person.thread.is_alive() and not self._person.is_finished():
            time.sleep(1)
        self._person.stop()
        for merger in self._mergers:
            merger.stop()
        self._sampler.stop()

    def _check(self) -> tuple[list[Violation], sqlite3.Connection]:
        """All that must not be, first while the project can still be asked, then when nothing of it runs any more."""
        violations = [*self._check_alive()]
        db = open_copy(self._site.repo / ".rookery" / "rookery.db", self._site.folder / "evidence")
        ledger = read_ledger(self._site.ledger)
        violations += [*self._check_work(db, ledger), *self._check_state(db, ledger), *self._check_places()]
        return violations, db

    def _check_alive(self) -> Iterator[Violation]:
        site = self._site
        if self._person.failure:
            yield Violation("soak", f"the person's thread broke: {self._person.failure}")
        yield from events.check_doctor(site.ask("doctor"))
        yield from leftovers.check_worktrees(site.repo, site.ask("worktree", "list"))
        db = open_snapshot(site.repo / ".rookery" / "rookery.db")
        yield from tasks.check_finished(db, self._person.keys)
        yield from mail.check_unread(db)
        db.close()
        for agent in site.ask("status")["agents"]:
            site.rook("stop", agent["agent"])
        site.rook("daemon", "stop")
        yield from leftovers.check_processes(self._wait_for_ends())

    def _check_work(self, db: sqlite3.Connection, ledger: Ledger) -> Iterator[Violation]:
        repo, sampler = self._site.repo, self._sampler
        yield from commits.check_commits(repo, ledger.commits)
        yield from commits.check_base(repo, self._site.folder / "clone", BASE)
        yield from tasks.check_tasks(repo, db, self._person.keys, BASE)
        limit, shown = self._options.agents, self._person.most_alive
        yield from tasks.check_caps(db, limit, sampler.most_agents, shown, sampler.doubles)

    def _check_state(self, db: sqlite3.Connection, ledger: Ledger) -> Iterator[Violation]:
        yield from mail.check_sent(db, ledger)
        yield from mail.check_delivery(db, ledger)
        yield from mail.check_mail_events(db)
        yield from mail.check_record(db, ledger)
        yield from events.check_events(db)
        yield from events.check_once(db)
        yield from events.check_states(db)
        yield from events.check_calls(self._site.calls, ledger)

    def _check_places(self) -> Iterator[Violation]:
        repo = self._site.repo
        yield from leftovers.check_locks(repo)
        yield from leftovers.check_folders(repo, self._site.temporary)
        yield from checkout.check_users_files(repo, self._files)
        yield from checkout.check_status(repo, self._files, BASE)
        yield from checkout.check_repository(repo)

    def _wait_for_ends(self) -> list[processes.Process]:
        """What is still alive when everything has had time to end."""
        deadline = time.monotonic() + _GONE_SECONDS
        while True:
            alive = [process for process in processes.of_site(self._site.home) if not process.is_zombie]
            if not alive or time.monotonic() > deadline:
                return alive
            time.sleep(0.2)

    def _report(self, violations: list[Violation], db: sqlite3.Connection) -> bool:
        fresh, known = sort_out(violations)
        numbers = report.count(db)
        options = self._options
        kills = {name.removeprefix("kill "): many for name, many in self._chaos.counts.items() if name[:5] == "kill "}
        others = {name: many for name, many in self._chaos.counts.items() if name[:5] != "kill "}
        phases = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self._seconds.items())
        report.print_violations(fresh, known)
        report.print_table(
            [
                ("seed", f"{options.seed} ({options.minutes:g} min, {options.agents} agents, daemon {options.mode})"),
                ("time", phases),
                ("kills", report.show_counts(kills)),
                ("other", report.show_counts(others)),
                ("sessions", report.show_counts(numbers.sessions)),
                ("turns", report.show_counts(numbers.turns)),
                ("landings", str(numbers.landings)),
                ("mails", f"{numbers.mails} ({numbers.events} events)"),
                ("at once", f"{self._sampler.most_agents} agents' programs in {self._sampler.samples} looks"),
                *report.show_latency(self._site.calls),
                ("violations", f"{len(fresh)} ({len(known)} of known faults)"),
            ]
        )
        db.close()
        return bool(fresh)


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.exit(main())
