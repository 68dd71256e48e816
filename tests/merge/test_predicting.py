"""What `rook merge predict` says of many branches is what becomes of them, and takes few gits."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from rookery.merge import predict, queue, service

from .test_usage import counted
from .yard import Yard

LINES = 40


def _text(changed: Mapping[int, str]) -> str:
    return "".join(f"{changed.get(number, number)}\n" for number in range(LINES))


@pytest.mark.slow
def test_branches_become_what_was_predicted(yard: Yard) -> None:
    """Each changes a line or two of few files, so that some conflict with each other, and one with the base."""
    yard.settings("merge:\n  tiers: []\n")
    draw = random.Random(12)
    start = yard.commit(**{f"f{number}_txt": _text({}) for number in range(4)})
    names = [f"b{number:02}" for number in range(24)]
    for name in names:
        files = {f"f{draw.randrange(4)}_txt": _text({draw.randrange(1, LINES // 3) * 3: name}) for _ in range(2)}
        yard.branch(name, **files)
    yard.branch("moves", new_txt=_text({}), f3_txt=None)
    yard.branch("old", start, f0_txt=_text({0: "old"}))
    yard.commit(f0_txt=_text({0: "base"}))
    merger = yard.merger()
    every = [*names[:12], "moves", "old", *names[12:]]
    predicted = predict.predict_all(merger, [service.draft(merger, name, "main") for name in every])
    clean = [answer.branch for answer in predicted if answer.tier == "clean"]
    assert 8 < len(clean) < len(every)
    assert "old" not in clean
    service.enqueue(merger, every, "main")
    queue.work(merger, "main")
    merger.ctx.db.close()
    landed = [name for name in every if yard.contains(name)]
    assert landed == clean


@pytest.mark.slow
def test_a_hundred_branches_are_predicted_by_few_gits(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"b{number:03}" for number in range(100)]
    for name in names:
        yard.branch(name, **{f"{name}_txt": name})
    merger = yard.merger()
    entries = [service.draft(merger, name, "main") for name in names]
    with counted(tmp_path / "traces", monkeypatch) as used:
        predicted = predict.predict_all(merger, entries)
    merger.ctx.db.close()
    assert [(answer.branch, answer.tier, answer.files) for answer in predicted] == [
        (name, "clean", (f"{name}.txt",)) for name in names
    ]
    assert len(used.gits) < 25, used.gits
