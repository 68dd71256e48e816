"""What prompts to agent programs use while something lands, counted once whatever happens to them or to us.

Spent is spent, whatever came of it. A note beside the program's log says on whose behalf it runs; so whoever finds the
folder of a merger that was killed counts what the transcripts in there tell.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from rookery.base.ids import TURN, new_id
from rookery.config import layout, steps
from rookery.costs.prices import price
from rookery.costs.store import OneShot, add_one_shot
from rookery.merge.merger import Merger
from rookery.merge.model import Entry
from rookery.runtimes.claude_transcripts import usage_since
from rookery.runtimes.model import Launch


def begin(merger: Merger, entry: Entry, tier: str, name: str, launch: Launch) -> None:
    """Note that a program is about to be started in the scratch folder of that name."""
    cause = f"{tier} of {entry.id}"
    shot = OneShot(new_id(TURN), launch.agent, launch.role, cause, entry.task_id, entry.run_id, merger.ctx.now())
    path = _note(merger, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"shot": shot.as_dict(), "model": launch.model}, file)


def end(merger: Merger, name: str, used: Iterable[dict[str, Any]]) -> None:
    """Keep what the program has used; nothing if that was done before, or none was at work there."""
    try:
        with open(_note(merger, name), encoding="utf-8") as file:
            noted = json.load(file)
        shot, model = OneShot(**noted["shot"]), noted["model"]
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):
        _forget(merger, name)  # it was cut off before anything was started
        return
    priced = [price(each, model, merger.ctx.config) for each in used]
    with merger.ctx.db.write() as db:
        add_one_shot(db, shot, priced)
    steps.reached("spent")
    _forget(merger, name)


def count_left(merger: Merger, name: str, top: str) -> None:
    """Keep what a program had used that could not say so itself."""
    end(merger, name, usage_since(os.path.join(top, "private"), ""))


def _forget(merger: Merger, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_note(merger, name))


def _note(merger: Merger, name: str) -> str:
    return merger.ctx.path(layout.MERGES, f"{name}.json")
