"""The doctor's check of the remote: what was known at the last fetch, without asking the network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.base.text import plural
from rookery.config.project import database_path, is_project
from rookery.db.database import Database
from rookery.merge.merger import Merger
from rookery.merge.push import open_remote
from rookery.ops.context import Context
from rookery.vcs.git.remote import AHEAD, BEHIND, DIVERGED

_CATEGORY = "remote"


def check_upstream(place: Place) -> Iterator[Finding]:
    """The base and its upstream have not diverged, as far as the last fetch tells."""
    if place.root is None or not is_project(place.root):
        return
    try:
        db = Database.open(database_path(place.root))
    except RookError:
        return  # the check of the database reports it
    with closing(db):
        try:
            merger = Merger(Context.at(place.root, db), "doctor")
            remote = open_remote(merger, merger.base())
            theirs = remote.last_seen()
            comparison = None if theirs is None else remote.compare(theirs, remote.known())
        except RookError:
            return  # there is no upstream, or other checks report what is wrong
    if comparison is None:
        return
    name, base = comparison.upstream.name, comparison.base
    if comparison.state == DIVERGED:
        ahead = plural(comparison.ahead, "commit")
        message = f"{base} and {name} have diverged, by {ahead} here and {comparison.behind} there"
        yield Finding(_CATEGORY, "upstream", WARNING, message, "`rook sync` says how, `rook sync --merge` merges them")
        return
    messages = {
        AHEAD: f"{base} has {plural(comparison.ahead, 'commit')} that {name} does not have",
        BEHIND: f"{name} has {plural(comparison.behind, 'commit')} that {base} does not have",
    }
    yield Finding(_CATEGORY, "upstream", OK, messages.get(comparison.state, f"{base} and {name} are equal"))


CHECKS = (check_upstream,)
