"""Pushing a base to its upstream: when a person asks for it, or after a landing where `remote.push` is `always`.

What is about to be pushed is kept under `refs/rookery/push/<base>@<upstream>` until that is recorded. So after a kill
the next look at the upstream says whether the push went through. A failed push fails no landing: the next landing or
`rook sync` tries again.
"""

from __future__ import annotations

from rookery.base.call import confirm
from rookery.base.errors import InvalidState, RookError
from rookery.base.text import plural, visible
from rookery.config import steps
from rookery.config.environ import HUMAN
from rookery.config.loader import DEFAULT, ENVIRONMENT, FLAG, USER, load_config
from rookery.events import store as events
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, LEFT, NOT_PUSHED, PUSHED, Outcome, Pushed
from rookery.ops.context import Context
from rookery.vcs.git.moves import keep_refs
from rookery.vcs.git.remote import AHEAD, DIVERGED, GONE, UNPUBLISHED, Comparison, Remote
from rookery.vcs.model import JJ
from rookery.vcs.ref_names import PUSHINGS, SAVED

NEVER, ASK, ALWAYS = "never", "ask", "always"
_STRICT = (NEVER, ASK, ALWAYS)
"""The strictest first."""
_OWN = (DEFAULT, USER, ENVIRONMENT, FLAG)
"""The layers that no repository can write."""


def policy(ctx: Context) -> str:
    """When the base is pushed. A file in the project's folder can make that stricter, and never looser."""
    entries = load_config(ctx.root, ctx.environ, ctx.flags).entries["remote.push"]
    own = next(entry for entry in reversed(entries) if entry.origin.layer in _OWN)
    in_force: tuple[str, ...] = (own.value,) if entries[-1] is own else (own.value, entries[-1].value)
    return min(in_force, key=_STRICT.index)


def open_remote(merger: Merger, base: str) -> Remote:
    """The upstream of a base; raises NoUpstream, and InvalidState for jj, which keeps its own record of remotes."""
    if merger.vcs.kind == JJ:
        raise InvalidState(
            "`rook sync` works with git alone, and this is a jj repository",
            hint=f"`jj git fetch`, `jj bookmark set {base} -r {base}@origin`, `jj git push -b {base}`",
        )
    return Remote(merger.merging, base, merger.ctx.config.remote.timeout, _Bars(merger.ctx))


def look(merger: Merger, remote: Remote) -> Comparison:
    """Fetch the upstream and compare the base with it; a push that was cut off is recorded if it went through."""
    known = remote.known()
    if known is not None:
        remote.learn(known)  # what git knows of the upstream moves with the fetch
    theirs = remote.fetch()
    steps.reached("upstream fetched")
    comparison = remote.compare(theirs, known)
    _settle(merger, remote, comparison)
    return comparison


def why_not(comparison: Comparison) -> str:
    """Why a base must not be pushed; empty if there is something to push and nothing against it."""
    name, by_hand = comparison.upstream.name, f"`{comparison.upstream.push_by_hand(comparison.base)}` by hand"
    if comparison.state == GONE:
        return f"{name} was there and is gone; {by_hand} makes it again"
    if comparison.state == DIVERGED:
        return f"{comparison.base} and {name} have diverged; `rook sync` says how"
    if comparison.has_dropped:
        return f"{name} was rewritten without commits that {comparison.base} has; {by_hand} brings them back"
    if comparison.state not in (AHEAD, UNPUBLISHED):
        return f"{name} has all of {comparison.base}"
    return ""


def push(merger: Merger, remote: Remote, comparison: Comparison) -> Pushed:
    """Push the base as it was compared, and record it. A push that fails is told in the result."""
    result = Pushed(PUSHED, comparison.upstream.name, comparison.tip, comparison.ahead)
    reason = why_not(comparison)
    if reason:
        return result.replace(state=LEFT, reason=reason)
    keep_refs(merger.merging.store, {remote.ref_name(PUSHINGS): comparison.tip})  # from now on an undo only reverts it
    steps.reached("push noted")
    tip = merger.merging.tip(comparison.base)
    if tip is None or not merger.merging.store.contains(comparison.tip, tip):
        return result.replace(state=LEFT, reason=f"{comparison.base} has moved meanwhile; `rook sync` again")
    try:
        remote.push(comparison.tip)
    except RookError as error:
        return result.replace(state=NOT_PUSHED, reason=_why(error))
    steps.reached("pushed")
    _record(merger, remote, comparison.tip, {"before": comparison.theirs, "commits": comparison.ahead})
    return result


def _settle(merger: Merger, remote: Remote, comparison: Comparison) -> None:
    """A push that was not recorded has gone through if the upstream has its commit."""
    store = merger.merging.store
    name = remote.ref_name(PUSHINGS)
    commit = store.ref(SAVED + name)
    if commit is None:
        return
    if comparison.theirs is not None and store.find_commit(commit) and store.contains(commit, comparison.theirs):
        _record(merger, remote, commit, {})
    else:
        store.delete_ref_at(SAVED + name, commit)


def _record(merger: Merger, remote: Remote, commit: str, more: dict[str, object]) -> None:
    """The upstream has a commit that we pushed: publish that once."""
    base, name = remote.base, remote.upstream.name
    with merger.ctx.db.write() as db:
        last = events.read(db, kinds=("remote.pushed",), subject=base, limit=1, newest=True)
        if not last or last[0].data["commit"] != commit:
            data = {"upstream": name, "commit": commit, **more}
            events.publish(db, "remote.pushed", base, data, actor=merger.actor, at=merger.ctx.now())
    steps.reached("push recorded")
    remote.learn_pushed(commit)
    merger.merging.store.delete_ref_at(SAVED + remote.ref_name(PUSHINGS), commit)


def after_landing(merger: Merger, outcome: Outcome) -> Outcome:
    """Push the project's base after a landing on it: always, or if a person at a terminal says so.

    Whatever fails is only told.
    """
    ctx = merger.ctx
    has_landed = any(entry.state == LANDED for entry in outcome.entries)
    may_push = ctx.config.remote.push == ALWAYS or (ctx.config.remote.push == ASK and ctx.is_interactive)
    if not has_landed or not may_push or outcome.base != merger.base():
        return outcome
    in_force = policy(ctx)
    if in_force == NEVER or (in_force == ASK and not _agrees(merger, outcome)):
        return outcome
    if merger.actor != HUMAN:
        reason = "agents push nothing; the next `rook sync` of a person does"
        return outcome.replace(push=Pushed(LEFT, "", reason=reason))
    try:
        remote = open_remote(merger, outcome.base)
        return outcome.replace(push=push(merger, remote, look(merger, remote)))
    except RookError as error:
        return outcome.replace(push=Pushed(NOT_PUSHED, "", reason=_why(error)))


def _why(error: RookError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _agrees(merger: Merger, outcome: Outcome) -> bool:
    """Ask the person who lands whether to push; not if there is no upstream, or it was never seen. Fetches nothing."""
    if not merger.ctx.is_interactive or merger.actor != HUMAN:
        return False
    try:
        remote = open_remote(merger, outcome.base)
        theirs = remote.last_seen()
        comparison = None if theirs is None else remote.compare(theirs, remote.known())
    except RookError:
        return False
    if comparison is None or why_not(comparison):
        return False
    landed = [entry.branch for entry in outcome.entries if entry.state == LANDED]
    named = visible(landed[0]) if len(landed) == 1 else f"{len(landed)} branches"
    upstream = comparison.upstream.name
    return confirm(f"{named} landed on {outcome.base}. Push {commits(comparison.ahead)} of it to {upstream}?")


def commits(count: int) -> str:
    """So many commits, in words."""
    return plural(count, "commit")


class _Bars:
    """Shows git's progress on the caller's terminal, a bar for each thing that it does."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._what = ""
        self._move = ctx.progress("", 0)

    def __call__(self, what: str, percent: int) -> None:
        if what != self._what:
            self._move(100)
            self._what, self._move = what, self._ctx.progress(what, 100 if what else 0)
        self._move(percent)
