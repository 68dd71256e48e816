"""The person and the two mergers: threads that use nothing but `rook` commands, and do again what was cut off."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dev.soak.plan import JOBS_PER_EPIC, Job, make_jobs
from dev.soak.scripts import describe_job
from dev.soak.site import Site

_PAUSE = 0.4
_SPARE_JOBS = 6
_TOO_MANY = 3
_MOST_RETRIES = 2
_SILENCE = 8.0
"""How long an agent waits, with no mail for it, until the person writes to it."""
_SLINGERS = 3


class Person:
    """Plans jobs, slings agents, answers their mail, and tries again what failed."""

    def __init__(self, site: Site, seed: int, agents: int) -> None:
        self._site, self._agents = site, agents
        self._source = make_jobs(seed)
        self._jobs: list[Job] = []
        self._tasks: dict[str, str] = {}
        """A task's id, by its job's key."""
        self._epics: dict[str, str] = {}
        self._slung: Counter[str] = Counter()
        self._retried: Counter[str] = Counter()
        self._silent: dict[str, float] = {}
        self._is_quiet = threading.Event()
        self._end = threading.Event()
        self.most_alive = 0
        """The most living agents that `rook status` ever showed."""
        self.failure = ""
        """What broke this thread itself."""
        self.thread = threading.Thread(target=self._run, name="person", daemon=True)

    def be_quiet(self) -> None:
        """Plan nothing new from now on; only finish what was begun."""
        self._is_quiet.set()

    def stop(self) -> None:
        """End it."""
        self._end.set()
        self.thread.join()

    @property
    def keys(self) -> dict[str, str]:
        """The key of the job, by its task's id."""
        return {task: key for key, task in self._tasks.items()}

    def _run(self) -> None:
        try:
            with ThreadPoolExecutor(_SLINGERS) as slingers:
                while not self._end.wait(_PAUSE):
                    self._look(slingers)
        except Exception as error:
            import traceback

            self.failure = f"{error!r}\n{traceback.format_exc()}"

    def _look(self, slingers: ThreadPoolExecutor) -> None:
        """One round: do everything that is due."""
        shown = self._site.rook("status").data
        tasks = self._site.rook("task", "list", "--limit=0").data
        if shown is None or tasks is None:
            return
        alive = shown["agents"]
        self.most_alive = max(self.most_alive, len(alive))
        self._plan(tasks)
        self._read_mail()
        self._sling(slingers, tasks, len(alive))
        self._retry(tasks)
        self._nudge(alive)

    def is_finished(self) -> bool:
        """True if every task that an agent ever began has landed, and no agent is alive."""
        shown = self._site.rook("status").data
        tasks = self._site.rook("task", "list", "--limit=0").data
        return shown is not None and shown["agents"] == [] and tasks is not None and not self.unfinished(tasks)

    def unfinished(self, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The tasks that an agent began and that have not landed."""
        keys = self.keys
        return [task for task in tasks if task["id"] in keys and task["attempt"] and task["state"] != "COMPLETED"]

    def _plan(self, tasks: list[dict[str, Any]]) -> None:
        """Keep some work ready, an epic with all its tasks at a time. What was cut off is found by its title."""
        titles = {task["title"]: task["id"] for task in tasks}
        self._epics |= {title: task for title, task in titles.items() if title.startswith("Epic ")}
        self._tasks |= {job.key: titles[job.key] for job in self._jobs if job.key in titles}
        for job in self._jobs:
            if job.key not in self._tasks:
                self._create(job)
        if self._is_quiet.is_set():
            return
        open_tasks = [task for task in tasks if task["title"] in self._tasks and task["state"] == "PENDING"]
        missing = self._agents + _SPARE_JOBS - len(open_tasks)
        if missing > 0 and all(job.key in self._tasks for job in self._jobs):
            fresh = [next(self._source) for _ in range(JOBS_PER_EPIC * -(-missing // JOBS_PER_EPIC))]
            self._jobs += fresh
            for job in fresh:
                self._create(job)

    def _create(self, job: Job) -> None:
        if job.epic not in self._epics:
            epic = self._site.rook("epic", "create", job.epic).data
            if epic is None:
                return
            self._epics[job.epic] = epic["id"]
        if not all(need in self._tasks for need in job.needs):
            return
        blockers = [f"--blocked-by={self._tasks[need]}" for need in job.needs]
        words = [f"--parent={self._epics[job.epic]}", f"--priority={job.priority}", *blockers]
        script = describe_job(job, self._site.ledger)
        created = self._site.rook("task", "create", job.key, f"--description={script}", *words).data
        if created is not None:
            self._tasks[job.key] = created["id"]

    def _sling(self, slingers: ThreadPoolExecutor, tasks: list[dict[str, Any]], alive: int) -> None:
        """Give every ready task an agent: some more at once than may live, to see that they are refused."""
        ready = self._site.rook("task", "list", "--ready", "--limit=0").data or []
        began = {task["id"] for task in tasks if task["attempt"]}
        keys = self.keys
        wanted = [task["id"] for task in ready if task["id"] in keys]
        if self._is_quiet.is_set():
            wanted = [task for task in wanted if task in began]
        room = self._agents - alive + (0 if self._is_quiet.is_set() else _TOO_MANY)
        list(slingers.map(self._sling_one, [(keys[task], task) for task in wanted[: max(0, room)]]))

    def _sling_one(self, job: tuple[str, str]) -> None:
        key, task = job
        self._slung[key] += 1
        self._site.rook("sling", task, f"--name={key}-{self._slung[key]}")

    def _read_mail(self) -> None:
        """Answer what asks for an answer, then mark it as read; the rest is only read."""
        messages = self._site.rook("mail", "list", "--to=human", "--unread", "--limit=40").data or []
        for message in messages:
            word = message["subject"].partition(" ")[0]
            if word in ("ask", "wake", "try") and not self._serve(word, message):
                continue
            self._site.rook("mail", "read", message["id"])

    def _serve(self, word: str, message: dict[str, Any]) -> bool:
        """True if the message is dealt with."""
        if word == "try":
            landed = self._site.rook("merge", f"--branch={message['from']}")
            if landed.is_killed:
                return False
        return self._site.rook("mail", "reply", message["id"], f"--body=answer to {message['id']}").is_ok

    def _retry(self, tasks: list[dict[str, Any]]) -> None:
        """Queue a landing again that failed; after some tries let another agent do the task again."""
        in_review = {task["id"]: task for task in tasks if task["state"] == "PENDING_REVIEW"}
        failed = [task["id"] for task in tasks if task["state"] == "FAILED" and task["id"] in self.keys]
        for task in failed:
            self._site.rook("task", "reopen", task)
        if not in_review:
            return
        newest: dict[str, dict[str, Any]] = {}
        for entry in self._site.rook("merge", "list", "--all", "--limit=500").data or []:
            newest.setdefault(entry["task_id"], entry)  # they come newest first
        for task, row in in_review.items():
            entry = newest.get(task)
            if entry is None or entry["state"] != "failed" or entry["branch"] != row["branch"]:
                continue
            self._retried[entry["id"]] += 1
            if self._retried[entry["id"]] <= _MOST_RETRIES:
                self._site.rook("merge", "retry", entry["id"])
            else:
                self._site.rook("task", "fail", task, "--reason=it does not land")

    def _nudge(self, alive: list[dict[str, Any]]) -> None:
        """Write to agents that wait although nothing comes: a killed step may have sent no request."""
        now = time.monotonic()
        waiting = {agent["session_id"]: agent for agent in alive if agent["state"] == "waiting" and not agent["unread"]}
        self._silent = {session: self._silent.get(session, now) for session in waiting}
        for session, since in self._silent.items():
            if now - since > _SILENCE:
                self._site.rook("mail", "send", waiting[session]["agent"], "--subject=go on", f"--body=after {now}")
                self._silent[session] = now


class Merger:
    """Lands whatever is ready, over and over."""

    def __init__(self, site: Site, number: int) -> None:
        self._site, self._number = site, number
        self._end = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"merger-{number}", daemon=True)

    def stop(self) -> None:
        """End it after the command that it runs."""
        self._end.set()
        self.thread.join()

    def _run(self) -> None:
        turn = self._number
        while not self._end.wait(0.5):
            self._site.rook("merge", "--all") if turn % 2 else self._site.rook("merge", "run")
            turn += 1
