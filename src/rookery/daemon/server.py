"""The daemon: it listens, gives every call a thread or a process, and leaves when it is asked to or not needed.

It owns no fact. Everything is in the database, so it may be killed at any moment, and others may write at any time.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from rookery import __version__
from rookery.base.clock import Clock, stamp
from rookery.client.frames import AGAIN, CALL, HOOK, INPUT, LISTEN, LONGEST_CALL, ONLY_READS, TAKEN, YOURSELF
from rookery.config.environ import read_environ
from rookery.daemon import address, calls, routing, worker
from rookery.daemon.client_connection import Connection, Gone, HungUp
from rookery.daemon.clients import SILENT_SECONDS, Clients
from rookery.daemon.fingerprint import Fingerprint
from rookery.daemon.forkserver import ForkServer
from rookery.daemon.hello import Guest, Hello, OtherVersion, as_guest, read_hello
from rookery.daemon.listener import Listener
from rookery.db.pool import Pool
from rookery.processes import limits, proctable
from rookery.processes.spawning import collect_ended
from rookery.sandbox.model import socket_folder

_MOST_THREADS = 512
_MOST_AT_ONCE = _MOST_OF_GUEST = 64
_LOOK_SECONDS = 30.0
_HELLO_SECONDS = 5.0
_CUT_SECONDS = 1.0


class Daemon:
    """One project's daemon. `open`, then `serve` until `stop`; it also runs within a test's own process."""

    def __init__(
        self, root: str, environ: Mapping[str, str], clock: Clock, log: Callable[[str], None], loaded: Fingerprint
    ) -> None:
        self.root = root
        self.environ = environ
        self._clock = clock
        self._log = log
        self._lock_file = -1
        self._listeners: dict[int, Listener] = {}
        self._links: dict[Connection, Listener] = {}
        """The hosts of sandboxes, each with the socket of its agent."""
        self._address: address.Address | None = None
        self._fingerprint = loaded
        self.can_be_replaced = True
        """False in the host of a sandbox, which serves its agent until it ends."""
        self._threads = ThreadPoolExecutor(_MOST_THREADS, "call")
        self.connections = Pool()
        # Hooks are kept apart: a tool call must not wait behind sixty-four slow commands.
        self._commands = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._hooks = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._watched: dict[int, Connection] = {}
        self._events = select.epoll()
        self._clients = Clients(self._events)
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._events.register(self._wake_read, select.EPOLLIN)
        self._is_leaving = False
        self._has_made_room = threading.Event()
        self._look_at, self._was_poked = 0.0, False
        self.was_started_by_agent = any(proctable.session_of(pid) for pid in proctable.lineage(os.getpid()))
        self.last_call = clock()
        self.on_look: Callable[[], float] = lambda: _LOOK_SECONDS
        """Called now and then; says in how many seconds it wants to be called again."""
        self.on_leave: Callable[[], None] = lambda: None
        self._forkserver: ForkServer | None = None
        self.needs_successor = False
        """It leaves because its fork server was killed, which would have started the next daemon."""

    def open(self) -> bool:
        """Become the project's daemon and listen; False if another process is."""
        lock = address.take_lock(self.root)
        if lock is None:
            return False
        self._lock_file = lock
        self._address = address.describe_self(self.root, self.environ, __version__, stamp(self._clock()))
        self.listen(self._address.socket)
        address.write_address(lock, self._address)
        return True

    def listen(self, path: str, guest: Guest | None = None) -> Listener:
        """Take calls at a path: of the whole project, or those of an agent in a sandbox."""
        listener = Listener(path, guest)
        self._listeners[listener.fileno()] = listener
        self._events.register(listener.fileno(), select.EPOLLIN)
        return listener

    def _stop_listening(self, listener: Listener) -> None:
        if self._listeners.pop(listener.fileno(), None) is not None:
            self._events.unregister(listener.fileno())
        listener.close()

    def serve(self) -> None:
        """Serve until `stop` is called, then let running calls end."""
        while not self._is_leaving:
            for number, _ in self._events.poll(max(0.0, self._look_at - time.monotonic())):
                self._attend(number)
            if time.monotonic() >= self._look_at and not self._is_leaving:
                collect_ended()
                self._clients.drop_late()
                was_poked, self._was_poked = self._was_poked, False
                if self._keeps_address() and not (was_poked and self._leaves_outdated()):
                    most = min(SILENT_SECONDS if self._clients.silent else _LOOK_SECONDS, self._ask_when_to_look())
                    if not self._was_poked:  # else it happened while we looked
                        self._look_at = time.monotonic() + most
        self._drain()

    def _ask_when_to_look(self) -> float:
        try:
            return self.on_look()
        except Exception as error:  # settings that cannot be read, a full disk: that ends no call
            self._log(f"cannot look: {type(error).__name__}: {error}")
            return _LOOK_SECONDS

    def use_forkserver(self, server: ForkServer) -> None:
        """Copy workers from it. If it is killed, the daemon leaves too: another one has both."""
        self._forkserver = server
        self._events.register(server.fileno(), select.EPOLLIN)

    def stop(self, reason: str, *, for_good: bool = False) -> None:
        """Take no more calls. May be called from anywhere, also from a signal's handler.

        Unless it is `for_good`, another daemon follows if anything is alive or due.
        """
        if not self._is_leaving:
            self._is_leaving = True
            self._log(f"leaving: {reason}")
            if for_good and self._forkserver is not None:
                self._forkserver.say_farewell()
        self.look()

    def look(self) -> None:
        """Look soon whether the socket is still there, and our code. May be called from a signal's handler."""
        self._look_at = 0.0
        self._was_poked = True
        with suppress(BlockingIOError):
            os.write(self._wake_write, b"x")

    def close(self) -> None:
        """Close everything that is open."""
        self.connections.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        self._events.close()
        self._clients.close()

    @property
    def is_busy(self) -> bool:
        """True while a call is being served."""
        return bool(self._clients.served)

    def _attend(self, number: int) -> None:
        if number == self._wake_read:
            os.read(number, 64)
        elif self._forkserver is not None and number == self._forkserver.fileno():
            self._events.unregister(number)
            self._forkserver = None
            if not self._is_leaving:
                self.needs_successor = True
                self.stop("its fork server was killed")
        elif number in self._listeners:
            listener = self._listeners[number]
            for line in listener.accept():
                if listener.guest is not None and self._clients.count(listener.guest) >= _MOST_OF_GUEST:
                    line.close()  # its client asks again
                else:
                    self.adopt(line, listener.guest)
        elif number in self._clients.silent:
            self._begin(*self._clients.take_silent(number))
        else:
            connection = self._watched.get(number)
            if connection is not None and not connection.feed():
                self._drop_link(connection)

    def adopt(self, line: socket.socket, guest: Guest | None = None) -> None:
        """Serve a client that has connected."""
        line.setblocking(True)
        connection = Connection(line)
        if (user := connection.peer()[1]) != os.geteuid():
            self._log(f"a call was dropped: it is user {user}")
            connection.close()
            return
        if connection.has_data():
            self._begin(connection, guest)
            return
        self._clients.add_silent(connection, guest)
        self._look_at = min(self._look_at, time.monotonic() + SILENT_SECONDS)

    def _begin(self, connection: Connection, guest: Guest | None) -> None:
        try:
            self._threads.submit(self._receive, connection, guest)
        except RuntimeError as error:  # no thread can be started: one that serves another call takes it next
            if not self.is_busy:  # there is none: its client asks again, or runs it itself
                self._log(f"a call was dropped: {error}")
                connection.close()

    def _receive(self, connection: Connection, guest: Guest | None) -> None:
        """A thread's work for one connection, from its first byte to its last."""
        self._clients.begin(connection, guest)
        try:
            self._serve(connection, guest)
        except HungUp:
            return  # it only looked whether a daemon listens, or gave up
        except OtherVersion as error:
            if not self._leaves_outdated():  # else its client asks the next one
                self._log(f"a call was dropped: {error}")
        except (Gone, BrokenPipeError) as error:
            self._log(f"a call was dropped: {error}")
        except Exception as error:
            self._log(f"a call failed: {type(error).__name__}: {error}")
        finally:
            if connection not in self._links:
                self._unwatch(connection)
                connection.close()
            self._clients.end(connection)
            self.last_call = self._clock()

    def _serve(self, connection: Connection, guest: Guest | None) -> None:
        pid, _ = connection.peer()
        hello = read_hello(connection.receive(CALL, _HELLO_SECONDS, LONGEST_CALL))
        if self._is_leaving or self._leaves_outdated() or self._leaves_to_person(hello, guest):
            self._send_to_next(connection)
            return
        session_id = None
        if guest is not None:
            hello, session_id = as_guest(hello, guest), guest.session_id
        if not routing.is_of(hello.environ, hello.folder, self.root):
            connection.send(AGAIN if self._leaves_moved_project() else YOURSELF)
        elif hello.kind == LISTEN:
            self._link(connection, hello, guest)
        elif hello.kind == HOOK:
            message = connection.receive(INPUT, _HELLO_SECONDS)
            connection.is_hook = True
            with self._hooks:
                connection.send(TAKEN)
                call = connection.make_call(hello, pid, session_id, self.connections)
                calls.answer_hook(connection, call, "".join(hello.words), message)
        else:
            self._run(connection, hello, pid, session_id)

    def _run(self, connection: Connection, hello: Hello, pid: int, session_id: str | None) -> None:
        route = routing.route(hello.words, hello.folder, self.root)
        if route == routing.PROCESS and session_id is None and not limits.can_pass_on(pid):
            if self._leaves_to_higher_limits(hello, pid):
                self._send_to_next(connection)
            else:
                connection.send(YOURSELF)
        elif route == routing.CLIENT and session_id is None:
            connection.send(YOURSELF)
        elif route == routing.THREAD:
            with self._commands:
                connection.send(TAKEN, ONLY_READS if routing.only_reads(hello.words) else b"")
                call = connection.make_call(hello, pid, session_id, self.connections)
                connection.room = self._commands
                self._watch(connection)
                calls.run_command(connection, call, hello.words)
        else:
            code = self._fingerprint.loaded if self.can_be_replaced else sys.maxsize
            # Marked as the daemon is: if an agent's runner adopts it, it does not end with that agent.
            env = {**self.environ, proctable.SERVES: self.root}
            worker.hand_over(connection, hello, pid, session_id, code, env, self._forkserver)

    def _send_to_next(self, connection: Connection) -> None:
        """Let the client ask the next daemon, as soon as that can start."""
        self._has_made_room.wait(_CUT_SECONDS)
        connection.send(AGAIN)

    def _link(self, connection: Connection, hello: Hello, guest: Guest | None) -> None:
        """Listen for an agent in a sandbox, for as long as its host stays connected."""
        session_id = calls.prove_session(self.root, hello)
        if guest is not None or session_id is None:
            raise Gone("it is not the host of an agent that is alive")
        if [os.path.dirname(path) for path in hello.words] != [socket_folder(session_id)]:
            raise Gone("that is not the folder of its agent's socket")
        environ = {**hello.environ, "ROOKERY_ROOT": self.root}
        self._links[connection] = self.listen(hello.words[0], Guest(session_id, environ, hello.folder))
        try:
            connection.send(AGAIN if self._is_leaving else TAKEN)
            self._watch(connection)
        except BaseException as error:
            self._drop_link(connection)
            if self._is_leaving:
                raise HungUp("the daemon leaves, and has dropped it already") from error
            raise
        if self._is_leaving:  # the next daemon has to do it
            self._drop_link(connection)

    def _drop_link(self, connection: Connection) -> None:
        """Stop watching a connection; if it is a link, stop listening for its agent."""
        self._unwatch(connection)
        listener = self._links.pop(connection, None)
        if listener is not None:
            self._stop_listening(listener)
            connection.close()

    def _watch(self, connection: Connection) -> None:
        self._watched[connection.fileno()] = connection
        self._events.register(connection.fileno(), select.EPOLLIN)

    def _unwatch(self, connection: Connection) -> None:
        number = connection.fileno()
        if self._watched.get(number) is connection:
            del self._watched[number]
            with suppress(OSError, ValueError):
                self._events.unregister(number)

    def _leaves_to_person(self, hello: Hello, guest: Guest | None) -> bool:
        """Leave, and return True, if an agent's call started this daemon and now a person calls.

        What it starts for the person would descend from an agent, and could not call `rook` for the person.
        """
        if not self.was_started_by_agent or guest is not None or read_environ(hello.environ).is_agents_process:
            return False
        self.stop("an agent's call had started it, and a person's starts the next one", for_good=True)
        return True

    def _leaves_to_higher_limits(self, hello: Hello, pid: int) -> bool:
        """Leave, and return True, if a person has higher limits than this daemon can give to what it starts."""
        if not self.can_be_replaced or read_environ(hello.environ).is_agents_process or not limits.are_higher(pid):
            return False
        self.stop("it was started with lower limits than the caller has", for_good=True)
        return True

    def _leaves_outdated(self) -> bool:
        """Leave, and return True, if its code was replaced on the disk by a newer one."""
        if not self.can_be_replaced or not self._fingerprint.is_outdated():
            return False
        self.stop("its code was replaced by a newer one")
        return True

    def _leaves_moved_project(self) -> bool:
        """Leave, and return True, if the project is gone from its path, or was moved."""
        if self._address is None or address.is_at(self._lock_file, self.root):
            return False
        self.stop("the project is gone", for_good=True)
        return True

    def _keeps_address(self) -> bool:
        """Restore the socket and the lock file if need be; False if the project is gone, and the daemon leaves."""
        if self._address is None or self._leaves_moved_project():
            return self._address is None  # the host of a sandbox has no lock file
        if address.read_address(self.root) != self._address:
            self._log("the lock file was overwritten: written again")
            address.write_address(self._lock_file, self._address)
        for listener in list(self._listeners.values()):
            if not listener.is_there():
                self._log(f"{listener.path} was removed: listening again")
                self._listen_again(listener)
        return True

    def _listen_again(self, listener: Listener) -> None:
        links = [connection for connection, known in self._links.items() if known is listener]
        self._stop_listening(listener)
        try:
            again = self.listen(listener.path, listener.guest)
        except OSError as error:
            if listener.guest is None:  # its folder is gone, and the next daemon takes another
                self.stop(f"cannot listen at {listener.path} again: {error.strerror}")
            for connection in links:  # the host of the sandbox asks again
                self._drop_link(connection)
            return
        self._links.update(dict.fromkeys(links, again))

    def _drain(self) -> None:
        """Make room for the next daemon at once, then let calls end; interrupt those that take too long."""
        for connection in list(self._links):
            self._drop_link(connection)
        for listener in list(self._listeners.values()):
            self._stop_listening(listener)
        if self._lock_file >= 0:
            os.close(self._lock_file)
        self._lock_file = -1
        self._has_made_room.set()
        self.on_leave()
        threading.Thread(target=self._attend_while_draining, daemon=True).start()
        self._clients.drain()

    def _attend_while_draining(self) -> None:
        with suppress(OSError, ValueError, KeyError):  # closed: the last call has ended
            while True:
                for number, _ in self._events.poll():
                    self._attend(number)
