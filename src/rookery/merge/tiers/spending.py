"""What prompts to agent programs use while something lands, counted once whatever happens to them or to us.

It counts even if the result is not used. A note beside the program's log says on whose behalf it runs; so the process
that removes the folder of a merger that was killed counts what the transcripts in there say.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.ids import TURN, new_id
from rookery.config import layout, steps
from rookery.costs.prices import price
from rookery.costs.store import OneShot, add_one_shot
from rookery.merge.merger import Merger
from rookery.merge.model import Entry
from rookery.runtimes.model import Launch
from rookery.runtimes.registry import open_runtime

_FIRST_RUNTIME = "claude"
"""Whose transcripts are read for a note of an earlier Rookery, which did not name the runtime."""


def begin(merger: Merger, entry: Entry, tier: str, name: str, runtime: str, launch: Launch) -> None:
    """Note that a program is about to be started in the scratch folder of that name."""
    cause = f"{tier} of {entry.id}"
    shot = OneShot(new_id(TURN), launch.agent, launch.role, cause, entry.task_id, entry.run_id, merger.ctx.now())
    path = _note(merger, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_whole(path, json.dumps({"shot": shot.as_dict(), "model": launch.model, "runtime": runtime}))


def end(merger: Merger, name: str, used: Iterable[dict[str, Any]] | None = None) -> None:
    """Keep what the program has used; nothing if that was done before, or if no program ran there.

    Without `used` the program did not say so itself, and its transcripts are read.
    """
    try:
        with open(_note(merger, name), encoding="utf-8") as file:
            noted = json.load(file)
        shot, model = OneShot(**noted["shot"]), noted["model"]
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):
        _forget(merger, name)  # it was cut off before anything was started
        return
    if used is None:
        runtime = open_runtime(noted.get("runtime", _FIRST_RUNTIME))
        used = runtime.usage_since(os.path.join(merger.scratch(name), "private"), "")
    priced = [price(usage, model, merger.ctx.config) for usage in used]
    with merger.ctx.db.write() as db:
        add_one_shot(db, shot, priced)
    steps.reached("spent")
    _forget(merger, name)


def _forget(merger: Merger, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_note(merger, name))


def _note(merger: Merger, name: str) -> str:
    return merger.ctx.path(layout.MERGES, f"{name}.json")
