"""What prompts to agent programs use while something lands, counted once whatever happens to them or to us.

It counts even if the result is not used. The journal of the job says on whose behalf the program runs; so the process
that settles the job of a merger or a runner that was killed counts what the transcripts in its folder say.
"""

from __future__ import annotations

import os
from typing import Any

from rookery.base.ids import TURN, new_id
from rookery.config import steps
from rookery.costs.prices import price
from rookery.costs.store import OneShot, add_one_shot
from rookery.merge.gates.jobs import Taken
from rookery.merge.merger import Merger
from rookery.merge.model import Entry
from rookery.runtimes.model import Launch
from rookery.runtimes.registry import open_runtime


def describe(merger: Merger, entry: Entry, tier: str, runtime: str, launch: Launch) -> dict[str, Any]:
    """What the journal has to say of a program that is about to be started."""
    cause = f"{tier} of {entry.id}"
    shot = OneShot(new_id(TURN), launch.agent, launch.role, cause, entry.task_id, entry.run_id, merger.ctx.now())
    return {"shot": shot.as_dict(), "model": launch.model, "runtime": runtime}


def count(merger: Merger, taken: Taken) -> None:
    """Keep what the program of a job has used; nothing if that was done before, or if no agent ran there."""
    about, end = taken.about, taken.end
    if "shot" not in about:
        return
    if end is not None:
        used = end["usage"]
    else:  # its runner was killed, so that the transcripts alone say it
        private = os.path.join(merger.scratch(about["place"]), "private")
        used = open_runtime(about["runtime"]).usage_since(private, "")
    priced = [price(usage, about["model"], merger.ctx.config) for usage in used]
    with merger.ctx.db.write() as db:
        add_one_shot(db, OneShot(**about["shot"]), priced)
    steps.reached("spent")
