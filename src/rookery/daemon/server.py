"""The daemon itself: listens, gives every call a thread or a process, and leaves when it is asked to or not needed.

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
from contextlib import suppress

from rookery import __version__
from rookery.base.clock import Clock, stamp
from rookery.client.frames import AGAIN, HOOK, LISTEN, ONLY_READS, TAKEN, YOURSELF
from rookery.config.environ import read_environ
from rookery.daemon import address, calls, routing, silent, worker
from rookery.daemon.client_connection import Connection, Gone, HungUp
from rookery.daemon.fingerprint import Fingerprint
from rookery.daemon.forkserver import ForkServer
from rookery.daemon.hello import Guest, Hello, OtherVersion, as_guest
from rookery.daemon.listener import Listener
from rookery.daemon.serving import Serving
from rookery.daemon.threads import Threads
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
        self._place: address.Place | None = None
        self._fingerprint = loaded
        self.can_be_replaced = True
        """False where nothing could take its place: the host of a sandbox serves its agent until it ends."""
        self._threads = Threads(_MOST_THREADS)
        self.connections = Pool()
        # Hooks are kept apart: a tool call must not wait behind sixty-four slow commands.
        self._commands = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._hooks = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._serving = Serving()
        self._watched: dict[int, Connection] = {}
        self._events = select.epoll()
        self._silent = silent.Silent(self._events)
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._events.register(self._wake_read, select.EPOLLIN)
        self._is_leaving = False
        self._has_made_room = threading.Event()
        self._look_at, self._was_poked = 0.0, False
        self.was_started_by_agent = any(proctable.session_of(each) for each in proctable.lineage(os.getpid()))
        self.last_call = clock()
        self.on_look: Callable[[], float] = lambda: _LOOK_SECONDS
        """Called now and then; says in how many seconds it wants to be called again."""
        self.on_leave: Callable[[], None] = lambda: None
        self._forkserver: ForkServer | None = None
        self.needs_successor = False
        """It leaves because its fork server was killed, which would else be followed by another daemon."""

    def open(self) -> bool:
        """Become the project's daemon and listen; False if another process is."""
        lock = address.take_lock(self.root)
        if lock is None:
            return False
        self._lock_file = lock
        self._place = address.describe_self(self.root, self.environ, __version__, stamp(self._clock()))
        self.listen(self._place.socket)
        address.write_place(lock, self._place)
        return True

    def listen(self, path: str, guest: Guest | None = None) -> Listener:
        """Take calls at a path: everybody's, or those of an agent in a sandbox."""
        listener = Listener(path, guest)
        self._listeners[listener.fileno()] = listener
        self._events.register(listener.fileno(), select.EPOLLIN)
        return listener

    def _stop_listening(self, listener: Listener) -> None:
        if self._listeners.pop(listener.fileno(), None) is not None:
            self._events.unregister(listener.fileno())
        listener.close()

    def serve(self) -> None:
        """Serve until `stop` is called, then let what is under way end."""
        while not self._is_leaving:
            for number, _ in self._events.poll(max(0.0, self._look_at - time.monotonic())):
                self._attend(number)
            if time.monotonic() >= self._look_at and not self._is_leaving:
                collect_ended()
                self._silent.drop_late()
                was_poked, self._was_poked = self._was_poked, False
                if self._has_place() and not (was_poked and self._is_outdated()):
                    most = min(silent.SECONDS if self._silent else _LOOK_SECONDS, self._ask_when_to_look())
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
        """Let go of everything that is open."""
        self.connections.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        self._events.close()
        self._silent.close()

    @property
    def is_busy(self) -> bool:
        """True while a call is being served."""
        return bool(self._serving)

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
                if listener.guest is not None and self._count_calls(listener.guest) >= _MOST_OF_GUEST:
                    line.close()  # its client asks again
                else:
                    self.adopt(line, listener.guest)
        elif number in self._silent:
            self._begin(*self._silent.take(number))
        else:
            connection = self._watched.get(number)
            if connection is not None and not connection.feed():
                self._unwatch(connection)
                self._drop_link(connection)

    def _count_calls(self, guest: Guest) -> int:
        return self._silent.count(guest) + self._serving.count(guest)

    def adopt(self, line: socket.socket, guest: Guest | None = None) -> None:
        """Serve a client that is connected already."""
        line.setblocking(True)
        connection = Connection(line)
        if (user := connection.peer()[1]) != os.geteuid():
            self._log(f"a call was dropped: it is user {user}")
            connection.close()
            return
        if connection.has_data():
            self._begin(connection, guest)
            return
        self._silent.add(connection, guest)
        self._look_at = min(self._look_at, time.monotonic() + silent.SECONDS)

    def _begin(self, connection: Connection, guest: Guest | None) -> None:
        try:
            self._threads.run(lambda: self._receive(connection, guest))
        except RuntimeError as error:  # no thread can be started: its client asks again, or acts by itself
            self._log(f"a call was dropped: {error}")
            connection.close()

    def _receive(self, connection: Connection, guest: Guest | None) -> None:
        """A thread's work for one connection, from its first byte to its last."""
        self._serving.begin(connection, guest)
        try:
            self._serve(connection, guest)
        except HungUp:
            return  # it only looked whether a daemon listens, or gave up
        except OtherVersion as error:
            if not self._is_outdated():  # else its client finds the next one
                self._log(f"a call was dropped: {error}")
        except (Gone, BrokenPipeError) as error:
            self._log(f"a call was dropped: {error}")
        except Exception as error:
            self._log(f"a call failed: {type(error).__name__}: {error}")
        finally:
            if connection not in self._links:
                self._unwatch(connection)
                connection.close()
            self._serving.end(connection)
            self.last_call = self._clock()

    def _serve(self, connection: Connection, guest: Guest | None) -> None:
        pid, _ = connection.peer()
        hello = connection.receive_hello(_HELLO_SECONDS)
        if self._is_leaving or self._is_outdated() or self._is_an_agents(hello, guest):
            self._has_made_room.wait(_CUT_SECONDS)
            connection.send(AGAIN)
            return
        session_id = None
        if guest is not None:
            hello, session_id = as_guest(hello, guest), guest.session_id
        if not routing.is_of(hello.environ, hello.folder, self.root):
            connection.send(AGAIN if self._is_left_behind() else YOURSELF)
        elif hello.kind == LISTEN:
            self._link(connection, hello, guest)
        elif hello.kind == HOOK:
            message = connection.receive_message(_HELLO_SECONDS)
            connection.is_hook = True
            with self._hooks:
                connection.send(TAKEN)
                call = connection.make_call(hello, pid, session_id)
                call.connections = self.connections
                calls.answer_hook(connection, call, "".join(hello.words), message)
        else:
            self._run(connection, hello, pid, session_id)

    def _run(self, connection: Connection, hello: Hello, pid: int, session_id: str | None) -> None:
        way = routing.route(hello.words, hello.folder, self.root)
        if way == routing.PROCESS and session_id is None and not limits.can_pass_on(pid):
            if self._is_too_small(hello, pid):
                self._has_made_room.wait(_CUT_SECONDS)
                connection.send(AGAIN)
            else:
                connection.send(YOURSELF)
        elif way == routing.CLIENT and session_id is None:
            connection.send(YOURSELF)
        elif way == routing.THREAD:
            with self._commands:
                connection.send(TAKEN, ONLY_READS if routing.only_reads(hello.words) else b"")
                call = connection.make_call(hello, pid, session_id)
                call.connections = self.connections
                connection.room = self._commands
                self._watch(connection)
                calls.run_command(connection, call, hello.words)
        else:
            code = self._fingerprint.loaded if self.can_be_replaced else sys.maxsize
            # Marked as the daemon is: if it comes to lie under an agent's runner, it does not end with that agent.
            env = {**self.environ, proctable.SERVES: self.root}
            worker.hand_over(connection, hello, pid, session_id, code, env, self._forkserver)

    def _link(self, connection: Connection, hello: Hello, guest: Guest | None) -> None:
        """Listen for an agent in a sandbox, for as long as its host holds the connection."""
        session_id = calls.prove_session(self.root, hello)
        if guest is not None or session_id is None:
            raise Gone("it is not the host of a living agent")
        if [os.path.dirname(path) for path in hello.words] != [socket_folder(session_id)]:
            raise Gone("that is not the place of its agent's socket")
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

    def _is_an_agents(self, hello: Hello, guest: Guest | None) -> bool:
        """True, and the daemon leaves, if an agent's call started it and now a person calls.

        Whatever it starts for the person would have an agent above it, and could not call `rook` for the person.
        """
        if not self.was_started_by_agent or guest is not None or read_environ(hello.environ).is_agents_process:
            return False
        self.stop("an agent's call had started it, and a person's starts the next one", for_good=True)
        return True

    def _is_too_small(self, hello: Hello, pid: int) -> bool:
        """True, and the daemon leaves, if a person has higher limits than it can give to what it starts."""
        if not self.can_be_replaced or read_environ(hello.environ).is_agents_process or not limits.are_higher(pid):
            return False
        self.stop("it was started with lower limits than the caller has", for_good=True)
        return True

    def _is_outdated(self) -> bool:
        """True, and the daemon leaves, if its code was replaced on the disk by a newer one."""
        if not self.can_be_replaced or not self._fingerprint.is_outdated():
            return False
        self.stop("its code was replaced by a newer one")
        return True

    def _is_left_behind(self) -> bool:
        """True, and the daemon leaves, when the project is gone from its path, or was moved."""
        if self._place is None or address.is_at(self._lock_file, self.root):
            return False
        self.stop("the project is gone", for_good=True)
        return True

    def _has_place(self) -> bool:
        """False, and the daemon leaves, when the project is gone. A socket that was removed is made again."""
        if self._place is None or self._is_left_behind():
            return self._place is None  # nothing of it is in the file system
        if address.read_place(self.root) != self._place:
            self._log("something else was written into the lock file: written again")
            address.write_place(self._lock_file, self._place)
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
            if listener.guest is None:  # its folder is gone, and the next daemon finds another
                self.stop(f"cannot listen at {listener.path} again: {error.strerror}")
            for connection in links:  # the host of the sandbox asks again
                self._unwatch(connection)
                self._drop_link(connection)
            return
        self._links.update(dict.fromkeys(links, again))

    def _drain(self) -> None:
        """Make room for the next daemon at once, then let calls end; what takes too long is interrupted."""
        for connection in list(self._links):
            self._unwatch(connection)
            self._drop_link(connection)
        for listener in list(self._listeners.values()):
            self._stop_listening(listener)
        if self._lock_file >= 0:
            os.close(self._lock_file)
        self._lock_file = -1
        self._has_made_room.set()
        self.on_leave()
        threading.Thread(target=self._attend_while_draining, daemon=True).start()
        self._serving.drain()

    def _attend_while_draining(self) -> None:
        with suppress(OSError, ValueError, KeyError):  # closed: the last call has ended
            while True:
                for number, _ in self._events.poll():
                    self._attend(number)
