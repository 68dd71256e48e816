"""How much of a branch is on its base: from git's history, and from our records of squashed and rebased landings."""

from __future__ import annotations

from rookery.agents import store as agents
from rookery.base.record import Record
from rookery.merge import store
from rookery.vcs import git_landed
from rookery.vcs.git_landed import Landing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rookery.merge.desk import Desk


class Start(Record):
    """Where the work of a branch begins that its base lacks. Usually git sees that by itself."""

    before: str | None = None
    """What the base was before the work landed that was reverted later: all of it is to land again."""
    hidden: tuple[str, ...] = ()
    """What the base has squashed or rebased, so that the history does not show it."""

    def known(self, onto: str) -> tuple[str, ...]:
        """The commits whose history counts as present when the branch is merged onto a commit."""
        return (self.before or onto, *self.hidden)


def is_landed(desk: Desk, branch: str, tip: str, base: str) -> bool:
    """True if a base has all the work of a branch, and no undo or revert removed it again."""
    onto = desk.merging.tip(base)
    if onto is None:
        return False
    return git_landed.has_landed(
        desk.merging.store, tip, onto, since=_since(desk, branch), records=_records(desk, base)
    )


def landed_branches(desk: Desk, tips: Mapping[str, str], base: str) -> set[str]:
    """Of several branches, those with all of their work on a base."""
    maybe = desk.merging.landed_branches(base)
    recorded = store.landed_tips(desk.db, base)
    return {
        branch
        for branch, tip in tips.items()
        if (branch in maybe or (branch, tip) in recorded) and is_landed(desk, branch, tip, base)
    }


def start_of(desk: Desk, branch: str, tip: str, base: str) -> Start:
    """Where the work of a branch begins that its base lacks."""
    git, onto = desk.merging.store, desk.merging.tip(base)
    if onto is None:
        return Start()
    found = git_landed.landings(git, tip, onto, since=_since(desk, branch), records=_records(desk, base))
    undone = git_landed.undone(git, found)
    before = undone[0].before if undone else None
    standing = [each for each in found if each.reverted_by is None and git.contains(each.commit, before or onto)]
    hidden = [each.brings for each in standing if not git.contains(each.brings, before or onto)]
    return Start(before, tuple(hidden))


def _since(desk: Desk, branch: str) -> str | None:
    """Where an agent's branch began."""
    first = agents.sessions(desk.db, branch=branch)[:1]
    return first[0].base_commit if first else None


def _records(desk: Desk, base: str) -> list[Landing]:
    """What landed on a base squashed or rebased, so that git does not see it."""
    return [Landing(*row) for row in store.hidden_landings(desk.db, base)]
