"""Warning agents whose work meets: once for each file that two of them have in common, however often one looks."""

from __future__ import annotations

from rookery.config import steps
from rookery.events.store import publish
from rookery.merge.landing import news
from rookery.merge.merger import Merger
from rookery.merge.radar import service as radar
from rookery.merge.radar import store
from rookery.merge.radar.service import Meeting


def look(merger: Merger) -> list[Meeting]:
    """Scan, and warn the living agents of what is new. Gives what was new."""
    found = radar.scan(merger, merger.base())
    steps.reached("radar scanned")
    alive = {each.agent for each in found.branches if each.is_alive}
    new = []
    with merger.ctx.db.write() as db:
        for meeting in found.meetings:
            fresh = [path for path in meeting.files if not store.is_warned(db, meeting.one, meeting.other, path)]
            if not fresh or not alive & set(meeting.agents):
                continue
            new.append(meeting)
            store.keep_warnings(db, meeting.one, meeting.other, fresh, merger.ctx.now())
            publish(
                db, f"radar.{meeting.kind}", meeting.one, meeting.as_dict(), actor=merger.actor, at=merger.ctx.now()
            )
            _warn(merger, meeting, alive)
    steps.reached("agents warned")
    return new


def _warn(merger: Merger, meeting: Meeting, alive: set[str]) -> None:
    is_conflict = meeting.kind == radar.CONFLICT
    files = meeting.conflicts if is_conflict else meeting.files
    both = ((meeting.agents[0], meeting.one, meeting.agents[1]), (meeting.agents[1], meeting.other, meeting.agents[0]))
    for agent, branch, other in both:
        if agent in alive and other != agent:
            news.warn_of_overlap(merger, agent, branch, other or "a queued branch", files, is_conflict)
