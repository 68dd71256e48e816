"""Having the radar looked at when a turn has ended: by a process of its own, so that nobody waits for it.

The one who drove the turn calls it, and every command does in case that one was killed. Where no turn has ended, that
costs a query. The process's lock is taken here and handed over, so that there is never more than one, not even one on
its way. One that dies is started again by whoever comes next: a few times for the same turns, not for ever.
"""

from __future__ import annotations

import os

from rookery.base.errors import RookError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.db.database import Database

MOST_TRIES = 3

# By name: it stands above us, and is another program to us.
_OBSERVER = "rookery.merge.observer"

# Turns end in another order than they begin, so no turn's own number says how far the radar has come. But none is ever
# deleted, and only the last one of a life can be running: that tells how many have ended.
_UNSEEN = (
    "SELECT ended FROM (SELECT (SELECT coalesce(max(seq), 0) FROM turns) - (SELECT count(*) FROM sessions s "
    "WHERE s.state <> 'ended' AND 'running' = "
    "(SELECT t.state FROM turns t WHERE t.session_id = s.id ORDER BY t.number DESC LIMIT 1)) AS ended) AS ends "
    "WHERE ended <> coalesce((SELECT seq FROM radar_seen WHERE one = 1), 0) "
    "AND EXISTS (SELECT 1 FROM sessions WHERE state <> 'ended') AND (SELECT max(seq) FROM sessions) > 1"
)


def notice_ends(root: str, db: Database) -> None:
    """See to it that the radar is looked at, if a turn has ended since it was."""
    if unseen_ends(db) is None:
        return
    import fcntl

    try:
        lock = _open(root)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _start(root, db, lock)
        finally:
            os.close(lock)
    except (OSError, RookError):
        return  # one is at work; or it cannot be done now, and as nobody has asked for it, the next command tries again


def unseen_ends(db: Database) -> int | None:
    """How many turns have ended, if the radar knows of fewer and somebody lives whose work could meet another's."""
    found = db.value(_UNSEEN)
    return None if found is None else int(found)


def _open(root: str) -> int:
    folder = os.path.join(root, ".rookery", "run")
    if not os.path.isdir(folder):
        os.mkdir(folder)  # no more than that: a project that has gone is not made again
    return os.open(os.path.join(folder, "radar.lock"), os.O_RDWR | os.O_CREAT, 0o600)


def _start(root: str, db: Database, lock: int) -> None:
    """Start the process, unless another has just finished or too many have failed."""
    ended = unseen_ends(db)
    if ended is None:
        return
    tries = _tries(lock, ended) + 1
    if tries > MOST_TRIES:
        return
    _write(lock, f"{ended} {tries}\n")
    from rookery.base.detach import start_detached
    from rookery.base.proctable import RUNNER
    from rookery.base.python import module_command
    from rookery.config.environ import unmarked_environ

    start_detached(
        [*module_command(_OBSERVER), root, str(lock), str(tries)],
        cwd=root,
        env=unmarked_environ() | {RUNNER: "observer"},
        output=os.path.join(root, ".rookery", "run", "radar.log"),
        keep=[lock],
    )


def _tries(lock: int, ended: int) -> int:
    """How often it was started for this very number of ended turns."""
    words = os.pread(lock, 64, 0).split()
    return int(words[1]) if len(words) == 2 and words[0] == b"%d" % ended and words[1].isdigit() else 0


def _write(lock: int, text: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, text.encode(), 0)
