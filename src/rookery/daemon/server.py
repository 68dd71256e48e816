"""The daemon: it listens, gives every call a thread or a process, and leaves when it is asked to or not needed.

It owns no fact. Everything is in the database, so it may be killed at any moment, and others may write at any time.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from rookery import __version__
from rookery.base.clock import Clock, stamp
from rookery.client.frames import AGAIN, CALL, HOOK, INPUT, LISTEN, LONGEST_CALL, ONLY_READS, TAKEN, YOURSELF
from rookery.daemon import address, calls, routing, worker
from rookery.daemon.client_connection import Connection, Gone, HungUp
from rookery.daemon.clients import Clients
from rookery.daemon.fingerprint import Fingerprint
from rookery.daemon.forkserver import ForkServer
from rookery.daemon.hello import Guest, OtherVersion, as_guest, read_hello
from rookery.daemon.listener import Listener
from rookery.db.pool import Pool
from rookery.processes import limits, proctable
from rookery.processes.spawning import collect_ended
from rookery.processes.threads import Threads
from rookery.sandbox.model import socket_folder

_MOST_THREADS = 512
_MOST_AT_ONCE = _MOST_OF_GUEST = 64
_LOOK_SECONDS = 30.0
_SILENT_SECONDS = _HELLO_SECONDS = 5.0
"""How long a client may send nothing, and how long its first message may take."""
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
        self._listeners: set[Listener] = set()
        self._links: dict[Connection, Listener] = {}
        """The hosts of sandboxes, each with the socket of its agent."""
        self._address: address.Address | None = None
        """None in the host of a sandbox, which has no lock file, and serves its agent until it ends."""
        self._fingerprint = loaded
        self._threads = Threads(_MOST_THREADS)
        self.connections = Pool()
        # Hooks are kept apart: a tool call must not wait behind sixty-four slow commands.
        self._commands = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._hooks = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._clients = Clients()
        self._silent: dict[Connection, float] = {}
        """Clients that have sent nothing yet, and when to hang up. They get no thread: hundreds would take them all."""
        self._events = selectors.DefaultSelector()
        """Every file that is watched, with what to do when it can be read."""
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watch(self._bell, lambda: os.eventfd_read(self._bell))
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
        self._listeners.add(listener)
        self._watch(listener, partial(self._accept, listener))
        return listener

    def _stop_listening(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        self._unwatch(listener)
        listener.close()

    def serve(self) -> None:
        """Serve until `stop` is called, then let running calls end."""
        while not self._is_leaving:
            self._attend(max(0.0, self._look_at - time.monotonic()))
            if (self._was_poked or time.monotonic() >= self._look_at) and not self._is_leaving:
                collect_ended()
                self._drop_silent()
                if was_poked := self._was_poked:
                    self._was_poked = False
                if self._keeps_address() and not (was_poked and self._leaves_outdated()):
                    most = min(_SILENT_SECONDS if self._silent else _LOOK_SECONDS, self._ask_when_to_look())
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
        self._watch(server, partial(self._lose_forkserver, server))

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
        os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Close everything that is open."""
        self.connections.close()
        os.close(self._bell)
        self._events.close()
        while self._silent:
            self._silent.popitem()[0].close()

    @property
    def is_busy(self) -> bool:
        """True while a call is being served."""
        return bool(self._clients.served)

    def _attend(self, seconds: float | None) -> None:
        """Wait for something that can be read, and act on it."""
        for key, _ in self._events.select(seconds):
            key.data()

    def _lose_forkserver(self, server: ForkServer) -> None:
        self._unwatch(server)
        if not self._is_leaving:
            self.needs_successor = True
            self.stop("its fork server was killed")

    def _accept(self, listener: Listener) -> None:
        for line in listener.accept():
            clients = [*self._silent, *self._clients.served] if listener.guest is not None else []
            if sum(client.guest is listener.guest for client in clients) >= _MOST_OF_GUEST:
                line.close()  # its client asks again
            else:
                self.adopt(line, listener.guest)

    def adopt(self, line: socket.socket, guest: Guest | None = None) -> None:
        """Serve a client that has connected."""
        line.setblocking(True)
        connection = Connection(line, guest)
        if connection.user != os.geteuid():
            self._log(f"a call was dropped: it is user {connection.user}")
            connection.close()
        elif connection.has_data():
            self._begin(connection)
        else:
            self._silent[connection] = time.monotonic() + _SILENT_SECONDS
            self._watch(connection, partial(self._hear, connection))
            self._look_at = min(self._look_at, time.monotonic() + _SILENT_SECONDS)

    def _hear(self, connection: Connection) -> None:
        """A silent client has sent something, or has hung up."""
        self._unwatch(connection)
        if self._silent.pop(connection, None) is not None:  # else the daemon closes everything
            self._begin(connection)

    def _drop_silent(self) -> None:
        """Hang up on those that have been silent for too long."""
        for connection, deadline in list(self._silent.items()):
            if time.monotonic() >= deadline:
                self._unwatch(connection)
                del self._silent[connection]
                connection.close()

    def _begin(self, connection: Connection) -> None:
        try:
            self._threads.run(partial(self._receive, connection))
        except RuntimeError as error:  # no thread can be started: its client asks again, or runs it itself
            self._log(f"a call was dropped: {error}")
            connection.close()

    def _receive(self, connection: Connection) -> None:
        """A thread's work for one connection, from its first byte to its last."""
        self._clients.begin(connection)
        try:
            self._serve(connection)
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

    def _serve(self, connection: Connection) -> None:
        hello = read_hello(connection.receive(CALL, _HELLO_SECONDS, LONGEST_CALL))
        connection.hello = hello if connection.guest is None else as_guest(hello, connection.guest)
        if self._is_leaving or self._leaves_outdated() or self._leaves_to_person(connection):
            self._send_to_next(connection)
        elif not routing.is_of(connection.hello.environ, connection.hello.folder, self.root):
            connection.send(AGAIN if self._leaves_moved_project() else YOURSELF)
        elif hello.kind == LISTEN:
            self._link(connection)
        elif hello.kind == HOOK:
            message = connection.receive(INPUT, _HELLO_SECONDS)
            connection.is_hook = True
            with self._hooks:
                connection.send(TAKEN)
                calls.answer_hook(connection, connection.make_call(self.connections), message)
        else:
            self._run(connection)

    def _run(self, connection: Connection) -> None:
        is_guests = connection.guest is not None
        route, only_reads = routing.route(connection.hello.words, connection.hello.folder, self.root)
        if route == routing.PROCESS and not is_guests and not limits.can_pass_on(connection.pid):
            if self._leaves_to_higher_limits(connection):
                self._send_to_next(connection)
            else:
                connection.send(YOURSELF)
        elif route == routing.CLIENT and not is_guests:
            connection.send(YOURSELF)
        elif route == routing.THREAD:
            with self._commands:
                connection.send(TAKEN, ONLY_READS if only_reads else b"")
                call = connection.make_call(self.connections)
                connection.room = self._commands
                self._watch(connection, partial(self._feed, connection))
                calls.run_command(connection, call)
        else:
            # Marked as the daemon is: if an agent's runner adopts it, it does not end with that agent.
            if not worker.hand_over(connection, {**self.environ, proctable.SERVES: self.root}, self._forkserver):
                self._send_to_next(connection)  # without its fork server the daemon leaves

    def _send_to_next(self, connection: Connection) -> None:
        """Let the client ask the next daemon, as soon as that can start."""
        self._has_made_room.wait(_CUT_SECONDS)
        connection.send(AGAIN)

    def _link(self, connection: Connection) -> None:
        """Listen for an agent in a sandbox, for as long as its host stays connected."""
        hello = connection.hello
        session_id = calls.prove_session(self.root, hello)
        if connection.guest is not None or session_id is None:
            raise Gone("it is not the host of an agent that is alive")
        if [os.path.dirname(path) for path in hello.words] != [socket_folder(session_id)]:
            raise Gone("that is not the folder of its agent's socket")
        environ = {**hello.environ, "ROOKERY_ROOT": self.root}
        self._links[connection] = self.listen(hello.words[0], Guest(session_id, environ, hello.folder))
        try:
            connection.send(AGAIN if self._is_leaving else TAKEN)
            self._watch(connection, partial(self._feed, connection))
        except BaseException as error:
            self._drop_link(connection)
            if self._is_leaving:
                raise HungUp("the daemon leaves, and has dropped it already") from error
            raise
        if self._is_leaving:  # the next daemon has to do it
            self._drop_link(connection)

    def _feed(self, connection: Connection) -> None:
        """Act on what a client has sent while its call runs, or on the end of a link."""
        if not connection.feed():
            self._drop_link(connection)

    def _drop_link(self, connection: Connection) -> None:
        """Stop watching a connection; if it is a link, stop listening for its agent."""
        self._unwatch(connection)
        listener = self._links.pop(connection, None)
        if listener is not None:
            self._stop_listening(listener)
            connection.close()

    def _watch(self, file: int | Connection | Listener | ForkServer, act: Callable[[], object]) -> None:
        self._events.register(file, selectors.EVENT_READ, act)

    def _unwatch(self, file: Connection | Listener | ForkServer) -> None:
        with suppress(KeyError, ValueError, OSError):  # it is not watched, or the daemon closes everything
            while True:
                with suppress(RuntimeError):  # it is closed: all are searched, and another thread has just added one
                    self._events.unregister(file)
                    return

    def _leaves_to_person(self, connection: Connection) -> bool:
        """Leave, and return True, if an agent's call started this daemon and now a person calls.

        What it starts for the person would descend from an agent, and could not call `rook` for the person.
        """
        if not self.was_started_by_agent or connection.is_agents:
            return False
        self.stop("an agent's call had started it, and a person's starts the next one", for_good=True)
        return True

    def _leaves_to_higher_limits(self, connection: Connection) -> bool:
        """Leave, and return True, if a person has higher limits than this daemon can give to what it starts."""
        if self._address is None or connection.is_agents or not limits.are_higher(connection.pid):
            return False
        self.stop("it was started with lower limits than the caller has", for_good=True)
        return True

    def _leaves_outdated(self) -> bool:
        """Leave, and return True, if its code was replaced on the disk by a newer one."""
        if self._address is None or not self._fingerprint.is_outdated():
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
            return self._address is None
        if address.read_address(self.root) != self._address:
            self._log("the lock file was overwritten: written again")
            address.write_address(self._lock_file, self._address)
        for listener in list(self._listeners):
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
        for listener in list(self._listeners):
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
                self._attend(None)
