"""What a scripted agent runs in its turns: it works, talks, and writes into a ledger outside the repository.

`python -I -S hand.py LEDGER KEY VERB [WORDS…]`, in the agent's worktree, with the standard library alone. Every verb
may be killed and done again: it looks what is there already. The first one of a turn writes down which messages the
turn's prompt held, which it reads from the standard input of the agent program, a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

_PATIENCE = 40.0
_CALL_SECONDS = 60
_MESSAGE = re.compile(r"^message (\S+?)( \u00d7\d+)? from (\S+)", re.M)
_LOCK = re.compile(r"'([^']+\.lock)': File exists")


class CallFailed(Exception):
    """A call of `rook` was refused or cut off."""


class Hand:
    """The agent's hand in one step of its script."""

    def __init__(self, ledger: str, key: str) -> None:
        self.ledger, self.key = ledger, key
        self.agent = os.environ.get("ROOKERY_AGENT", "")
        self.turn = os.environ.get("ROOKERY_TURN", "")
        self.session = os.environ.get("ROOKERY_SESSION", "")
        self.prompt = ""

    # The ledger.

    def write(self, what: str, **data: Any) -> None:
        """Add one line, by one write: many processes do so at once."""
        known = {"what": what, "agent": self.agent, "turn": self.turn, "session": self.session, "key": self.key}
        line = json.dumps(known | data) + "\n"
        file = os.open(os.path.join(self.ledger, "ledger.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def note_turn(self) -> None:
        """Write down, once, which messages the prompt of this turn holds."""
        self.prompt = _read_prompt()
        mark = os.path.join(self.ledger, f"turn-{self.turn}")
        if not self.prompt or os.path.exists(mark):
            return
        messages = _MESSAGE.findall(self.prompt)
        self.write("turn", ids=[message[0] for message in messages], folded=any(message[1] for message in messages))
        open(mark, "w").close()

    # Version control.

    def git(self, *words: str) -> str:
        """What git prints in the worktree; tries again while the disk is full or a lock blocks it."""
        return self._patiently(words)

    def _patiently(self, words: tuple[str, ...], is_done: Callable[[], bool] = lambda: False) -> str:
        """Run git until it goes well, or is not needed any more."""
        deadline = time.monotonic() + _PATIENCE
        while not is_done():
            done = subprocess.run(["git", *words], capture_output=True, text=True)
            if done.returncode == 0:
                return done.stdout
            if time.monotonic() > deadline:
                self.write("gave_up", words=list(words), err=(done.stderr + done.stdout)[-500:])
                raise SystemExit(f"git {' '.join(words)}: {done.stderr}")
            self._unlock(done.stderr)
            time.sleep(0.5)
        return ""

    def _unlock(self, complaint: str) -> None:
        """Remove a lock of this worktree's own that a killed git left: here nothing else runs git."""
        lock = _LOCK.search(complaint)
        own = lock is not None and (f"/worktrees/{self.agent}/" in lock[1] or f"/rook/{self.agent}/" in lock[1])
        if lock is not None and own:
            time.sleep(1.5)
            if os.path.exists(lock[1]) and time.time() - os.stat(lock[1]).st_mtime > 1:
                os.unlink(lock[1])

    def commit(self, message: str) -> None:
        """Commit what is there, if anything is, and write down every commit of this branch."""
        if os.path.exists(self._draft()):
            os.unlink(self._draft())
        self.git("add", "-A")
        # A commit that was killed may have been made: so ask again each time whether there is anything to commit.
        self._patiently(("commit", "-q", "-m", f"{self.key}: {message}"), lambda: not self.git("status", "--porcelain"))
        self.record()

    def record(self) -> None:
        """Write down the commits that this agent has made."""
        self.write("commit", commits=self.own_commits())

    def own_commits(self) -> list[str]:
        """The commits of this branch that the base lacks."""
        return self.git("rev-list", "main..HEAD").split()

    def begin(self, needs: str) -> None:
        """Register the part, without what makes it whole."""
        self._put(f"parts/{self.key}.py", self._source(needs))
        line = f"- {self.key}\n"
        with open("registry.md", encoding="utf-8") as file:
            text = file.read()
        if line not in text.splitlines(keepends=True):
            self._put("registry.md", text + line)
        self.commit("begin")

    def finish(self, needs: str) -> None:
        """Make the part whole, with all that a killed step before may have left out."""
        self.begin(needs)
        digest = hashlib.sha256(self._source(needs).encode()).hexdigest()
        self._put(f"parts/{self.key}.sum", f"{digest}\n")
        self.commit("finish")
        if not self.own_commits():
            # An earlier attempt landed by name before it was done. Without a commit of its own this one could not.
            self._put(f"notes/{self.agent or self.key}.txt", f"{self.key} was there already.\n")
            self.commit("found it done")

    def _source(self, needs: str) -> str:
        names = [name for name in needs.split(",") if name]
        return f"NAME = {self.key!r}\nNEEDS = {names!r}\n"

    def _draft(self) -> str:
        return f".{self.key}.new"

    def _put(self, path: str, text: str) -> None:
        """Write a file whole; a full disk is waited for."""
        deadline = time.monotonic() + _PATIENCE
        draft = self._draft()
        while True:
            try:
                os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
                with open(draft, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(draft, path)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return

    # Mail.

    def rook(self, *words: str) -> Any:
        """What a call of `rook` gives; raises CallFailed."""
        try:
            done = subprocess.run(["rook", *words, "--json"], capture_output=True, text=True, timeout=_CALL_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.write("call", words=list(words), status=None, err="it did not end")
            raise CallFailed("it did not end") from error
        if done.returncode not in (0, 1) or "Traceback" in done.stderr:
            self.write("call", words=list(words), status=done.returncode, err=done.stderr[-1500:] + done.stdout[-500:])
        if done.returncode != 0 and not done.stdout.startswith('{"v":1,"ok":true'):  # `mail wait` ended without mail
            raise CallFailed(done.stderr)
        return json.loads(done.stdout)["data"]

    def send(self, to: str, subject: str, *more: str, patience: float = _PATIENCE) -> bool:
        """Send a message until `rook` reports it as sent. Every try is a message with a number of its own."""
        deadline = time.monotonic() + patience
        while True:
            nonce = f"{self.key}.{os.getpid()}.{time.time_ns()}"
            self.write("send", nonce=nonce, to=to)
            try:
                sent = self.rook("mail", "send", f"--to={to}", f"--subject={subject}", f"--body=nonce {nonce}", *more)
            except CallFailed:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.5)
            else:
                self.write("sent", nonce=nonce, ids=[message["id"] for message in sent["messages"]])
                return True

    def look(self, *words: str) -> list[str]:
        """Read mail within the turn. The line before says that what follows may be missing."""
        self.write("look", number=os.getpid())
        try:
            answer = self.rook("mail", *words)
        except CallFailed:
            return []
        shown = [] if answer is None else answer.get("messages", [answer])
        ids = [message["id"] for message in shown]
        self.write("looked", number=os.getpid(), ids=ids)
        return ids

    def answer(self) -> None:
        """Make sure that a person's answer was seen, in the prompt or by waiting for it a little."""
        if not re.search(r"^message \S+ from human", self.prompt, re.M):
            self.look("wait", "--from=human", "--timeout=5s")

    def ask_to_land(self) -> None:
        """Ask the person to land what is not yet whole, and wait a while for the gate to turn it down."""
        if self.send("human", f"try {self.key}"):
            self.look("wait", "--type=merge_failed", "--timeout=20s")

    def gossip(self) -> None:
        """Write to one other living agent."""
        try:
            alive = self.rook("status")["agents"]
        except CallFailed:
            return
        others = [agent["agent"] for agent in alive if agent["agent"] != self.agent]
        if others:
            to = others[int(hashlib.sha256(self.turn.encode()).hexdigest(), 16) % len(others)]
            self.send(to, f"news from {self.key}", patience=5)

    def crash(self) -> None:
        """Kill the agent program, the first time that this job comes here."""
        mark = os.path.join(self.ledger, f"crashed-{self.key}")
        if not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(_find_program() or os.getppid(), signal.SIGKILL)
            time.sleep(60)

    def done(self, needs: str, parent: str) -> None:
        """Say that the work is over, once it is really there."""
        self.finish(needs)
        self.send(parent, f"{self.key} is done", "--type=worker_done")


def _find_program() -> int | None:
    """The agent program above us: the one whose words name the scripted agent."""
    pid = os.getppid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"scripted_agent" in file.read():
                    return pid
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return None
    return None


def _read_prompt() -> str:
    """The prompt of this turn; empty where it is no file."""
    pid = _find_program()
    path = f"/proc/{pid}/fd/0"
    try:
        if pid is None or not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def main(argv: list[str]) -> None:
    """Do one verb."""
    ledger, key, verb, *words = argv
    hand = Hand(ledger, key)
    hand.note_turn()
    verbs: dict[str, Callable[[], object]] = {
        "begin": lambda: hand.begin(*words),
        "record": hand.record,
        "finish": lambda: hand.finish(*words),
        "ask": lambda: hand.send("human", f"ask {key}", "--type=question"),
        "wake": lambda: hand.send("human", f"wake {key} {words[0]}"),
        "try": hand.ask_to_land,
        "answer": hand.answer,
        "check": lambda: hand.look("check"),
        "gossip": hand.gossip,
        "crash": hand.crash,
        "done": lambda: hand.done(*words),
    }
    try:
        verbs[verb]()
    except Exception:
        hand.write("broken", words=[verb, *words], err=traceback.format_exc())
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
