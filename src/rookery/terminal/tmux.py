"""Tmux on a socket of the project's own. Nothing else in Rookery runs tmux.

The server has no configuration, and nothing of the environment of the process that starts it: an agent's pane gets the
variables that it is started with and no others. An agent is the first pane of the first window of a session of its
name; people may open more beside it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rookery.base.draft import unique
from rookery.base.errors import InvalidInput, InvalidState, NotFound, ProgramFailed
from rookery.base.record import Record
from rookery.config import layout
from rookery.processes.process import Finished, run
from rookery.processes.proctable import RUNNER
from rookery.processes.proctree import Identity, identify, send
from rookery.processes.spawning import find_program

# macOS allows 103 bytes, Linux 107.
_LONGEST_SOCKET = 103
_TIMEOUT = 20
_SHORT = 200
_WIDTH, _HEIGHT = 160, 48
_NOTHING_THERE = ("no server running", "server exited", "lost server", "can't find", "no current target")
_NO_SOCKET = ("(No such file or directory)", "(Connection refused)")
_STATUS = "=#{?pane_dead_signal,-#{pane_dead_signal},#{pane_dead_status}}"
_FIELDS = f"#{{session_name}} #{{pane_pid}} #{{pane_dead}} #{{pid}} {_STATUS}"

OPTIONS = (
    ("remain-on-exit", "on"),  # keeps the last output of a program that dies, and its status
    ("remain-on-exit-format", ""),
    ("update-environment", ""),
    ("history-limit", "20000"),
    ("status", "off"),
    ("base-index", "0"),
    ("pane-base-index", "0"),
    ("allow-rename", "off"),
    ("default-terminal", "tmux-256color"),
)


@dataclass(frozen=True, slots=True)
class PaneInfo(Record):
    """An agent's pane."""

    pid: int
    dead: bool
    exit_status: int | None
    """How the program ended: its status, or minus the number of the signal; None while that is not known."""


def socket_path(root: str) -> str:
    """The socket of the project's server; a short path elsewhere if the root's is too long for a socket."""
    path = layout.path(root, layout.TMUX_SOCKET)
    if len(os.fsencode(path)) <= _LONGEST_SOCKET:
        return path
    digest = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:20]
    # Not TMPDIR: an agent's may differ from ours, and both have to find the same server.
    return f"/tmp/rookery-{os.getuid()}/{digest}.sock"  # noqa: S108


def check_session_name(name: str) -> str:
    """Refuse a name that tmux could take for a pattern or an option."""
    bare = name.replace("-", "").replace("_", "")
    if not (bare.isascii() and bare.isalnum() and name[0] not in "-" and len(name) <= 100):
        raise InvalidInput(f"{name!r} is not a valid name for a tmux session", hint="letters, digits, - and _")
    return name


def target(name: str) -> str:
    """The agent's own pane, whatever else is open beside it."""
    return f"={check_session_name(name)}:0.0"


class Tmux:
    """The project's tmux server, which runs as long as there are sessions."""

    def __init__(self, socket: str) -> None:
        self.socket = socket

    def new_session(self, name: str, cwd: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a program in a terminal of its own, with `env` and nothing else."""
        check_session_name(name)
        if not os.path.isdir(cwd):  # tmux would start it somewhere else and say nothing
            raise ProgramFailed(f"the folder {cwd} is gone")
        find_program(argv[0], cwd, env)
        folder = cwd.replace("#", "##")  # tmux reads it as a format
        words = ["new-session", "-d", "-s", name, "-x", str(_WIDTH), "-y", str(_HEIGHT), "-c", folder]
        for key, value in env.items():
            words += ["-e", f"{key}={value}"]
        # One word would go through a shell; several do not.
        program = list(argv) if len(argv) > 1 else ["/bin/sh", "-c", 'exec "$0"', *argv]
        # From standard input: other users see no command line with a token in it, and it may be of any length.
        line = _quoted([*words, "--", *program]) + "\n"
        for _ in range(2):
            # Tmux replaces PATH, and nothing else, by that of the client that asks.
            done = self._run(
                *_setup(self.socket), ";", "source-file", "-", stdin=line, path=env.get("PATH", os.defpath)
            )
            # The server ends with its last session, and may still have taken our call: the next one starts another.
            if done.ok or "server exited" not in done.last_output:
                break
        if not done.ok:
            raise ProgramFailed(f"tmux could not start {name}: {done.last_output}")

    def has(self, name: str) -> bool:
        """True if there is a session of that name; its program may have ended."""
        return name in self.list()

    def list(self) -> dict[str, PaneInfo]:
        """Every agent's pane, by session."""
        panes, server = self._list()
        if any(pane.dead and pane.exit_status is None for pane in panes.values()) and server is not None:
            # Under load tmux 3.3a misses the signal that a child has ended. After another one it looks.
            send(server, signal.SIGCHLD)
            panes, _server = self._list()
        return panes

    def _list(self) -> tuple[dict[str, PaneInfo], Identity | None]:
        done = self._run("list-panes", "-a", "-f", "#{==:#{window_index}.#{pane_index},0.0}", "-F", _FIELDS)
        panes, server = {}, 0
        for line in done.stdout.splitlines():
            name, pid, dead, server_pid, status = line.split()
            server = int(server_pid)
            panes[name] = PaneInfo(int(pid), dead == "1", int(status[1:]) if dead == "1" and status[1:] else None)
        return panes, identify(server)

    def capture(self, name: str, lines: int = 0) -> str:
        """What the terminal shows, without empty lines at its end; the last `lines` with history if that is not 0."""
        done = self._run("capture-pane", "-p", "-J", "-t", target(name), *(("-S", f"-{lines}") if lines else ()))
        self._require(name, done)
        return _screen(done.stdout, lines)

    def capture_all(self, names: Iterable[str]) -> dict[str, str]:
        """What each of these terminals shows, asked by one client; those that are gone are left out."""
        panes = self.list()
        captured = [name for name in names if name in panes]
        mark = unique()  # no screen can show it
        words: list[str] = []
        for name in captured:
            words += ["capture-pane", "-p", "-J", "-t", target(name), ";", "display-message", "-p", mark, ";"]
        screens = self._run(*words[:-1]).stdout.split(f"{mark}\n")[:-1] if words else []
        # A terminal that is closed meanwhile ends the answer.
        return {name: _screen(screen) for name, screen in zip(captured, screens, strict=False)}

    def send_text(self, name: str, text: str) -> None:
        """Type or paste a text, exactly, without submitting it. What a terminal would obey is left out."""
        plain = plain_text(text)
        if not plain:
            return
        if len(plain) <= _SHORT and "\n" not in plain and "\t" not in plain:
            self._deliver(name, "send-keys", "-t", target(name), "-l", "--", _word(plain))
            return
        buffer = f"rook-{name}-{unique()}"
        paste = ("paste-buffer", "-p", "-d", "-b", buffer, "-t", target(name))
        self._deliver(name, "load-buffer", "-b", buffer, "-", ";", *paste, stdin=plain)

    def send_key(self, name: str, key: str) -> None:
        """Press one key, by tmux's name for it: `Enter`, `Escape`, `C-c`."""
        self._deliver(name, "send-keys", "-t", target(name), "--", _word(key))

    def enter(self, name: str) -> None:
        """Submit what was typed."""
        self.send_key(name, "Enter")

    def kill(self, name: str) -> None:
        """Close the session; nothing if there is none. `proctree.end_tree` ends what its program started."""
        check_session_name(name)
        # A person may have linked the window into a session of their own, where it would stay.
        self._run("kill-window", "-t", f"={name}:0")
        self._run("kill-session", "-t", f"={name}")

    def kill_server(self) -> None:
        """Close every session."""
        self._run("kill-server")

    def attach_command(self, name: str) -> tuple[str, ...]:
        """What a person runs to look at the session, also from within another tmux."""
        return ("env", "-u", "TMUX", *self.command(), "attach-session", "-t", f"={check_session_name(name)}")

    def command(self) -> tuple[str, ...]:
        """How tmux is called for this server."""
        program = shutil.which("tmux")
        if program is None:
            raise ProgramFailed(
                "tmux is not installed", hint="install tmux, or use headless agents", code="program_missing"
            )
        return (program, "-u", "-S", self.socket, "-f", os.devnull)

    def _run(self, *words: str, stdin: str | None = None, path: str = os.defpath) -> Finished:
        """Run a command; the caller judges that there is no server, session or pane.

        Tmux gets a small environment, since the server passes it to every pane: it would keep an agent's mark. An
        agent's call may start the server, and the end of that agent must not end the terminals of all.
        """
        env = {"PATH": path, "LANG": "C.UTF-8", RUNNER: "terminals"}
        done = run([*self.command(), *words], env=env, stdin=stdin, cwd="/", timeout=_TIMEOUT, check=False)
        if not done.ok and not _is_absence(done.stderr):
            raise ProgramFailed(f"tmux says: {done.last_output}")
        return done

    def _deliver(self, name: str, *words: str, stdin: str | None = None) -> None:
        done = self._run(*words, ";", "display-message", "-p", "-t", target(name), "#{pane_dead}", stdin=stdin)
        self._require(name, done)
        if done.stdout.strip() == "1":
            raise InvalidState(f"no program reads in {name}: it has ended")

    def _require(self, name: str, done: Finished) -> None:
        if not done.ok:
            raise NotFound(f"no tmux session {name}", hint="`rook status` shows which agents run")


def plain_text(text: str) -> str:
    """The text without what would end a paste, press a key or move the cursor; line ends and tabs stay."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char for char in unified if char in "\n\t" or not (char < " " or "\x7f" <= char <= "\x9f"))


def _screen(captured: str, last: int = 0) -> str:
    """A captured screen as text: no empty lines at its end, and at most the `last` ones if that is not 0."""
    lines = [line.replace("\xa0", " ").rstrip() for line in captured.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines[-last:])


def private_folder(path: str) -> None:
    """Make a folder that no other user can read; refuse one that is another's."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    state = os.lstat(path)
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid():
        raise ProgramFailed(f"{path} is not a folder of yours", hint="remove it; sockets have to be private")
    if state.st_mode & 0o077:
        os.chmod(path, 0o700)


def _setup(socket: str) -> list[str]:
    """The server's settings, for a command that may start it."""
    private_folder(os.path.dirname(socket))
    words = ["start-server", ";", "set-environment", "-gu", RUNNER]
    for key, value in OPTIONS:
        words += [";", "set-option", "-g", key, value]
    return words


def _quoted(words: Sequence[str]) -> str:
    """A line of tmux's own language in which every word is literal."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def _word(text: str) -> str:
    """The text as an argument: one that ends in a semicolon would end the command, but for a backslash before it."""
    return text[:-1] + "\\;" if text.endswith(";") else text


def _is_absence(error: str) -> bool:
    return error.startswith(_NOTHING_THERE) or error.rstrip().endswith(_NO_SOCKET)
