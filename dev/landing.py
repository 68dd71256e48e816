"""The third act of the demo: four agents change the same program at once, and all of their work lands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dev.swarm import script, wait

if TYPE_CHECKING:
    from dev.demo import Stage

_DONE = {"mail": {"to": "{parent}", "type": "worker_done", "subject": "{agent} is done"}}
_WARNED = {"until": {"mail_from": "rook"}}

_FILES = {
    "CHANGES.md": "# What is new\n\n",
    "cart.py": "def total(prices):\n    return sum(prices)\n",
    "check.py": (
        "import cart, glob\n"
        "assert cart.total([1, 2]) == 3, 'the total is wrong'\n"
        "for name in glob.glob('s*ping.py'):\n"
        "    import shipping\n"
        "    assert shipping.cost(2) == 10, f'two parcels cost 10, not {shipping.cost(2)}'\n"
        "print('all is well')\n"
    ),
}
_BOTH = "def total(prices, discount=0):\n    return round(sum(prices) - discount, 2)\n"
_NAMED = """\
{"summary": "one keeps the discount, the other the rounding: both", "lost": [
  {"path": "cart.py", "line": "return round(sum(prices), 2)", "why": "it also takes the discount off now"},
  {"path": "cart.py", "line": "return sum(prices) - discount", "why": "it is also rounded now"},
  {"path": "cart.py", "line": "def total(prices):", "why": "it has a discount now"}]}
"""


def play(stage: Stage) -> None:
    """Let four agents change the same files, and land their work."""
    _prepare(stage)
    stage.say("Four agents at once; ann and cat change the same lines, and the radar sees it while they work")
    for name, steps in _scripts().items():
        task = stage.ask("task", "create", f"Work of {name}", "--description", script(steps))["id"]
        stage.ask("sling", task, "--name", name)
    wait(stage, lambda: _states(stage).items() >= {"dan": "waiting", "bob": "completed"}.items())
    wait(stage, lambda: all(_states(stage)[name] in ("waiting", "completed") for name in ("ann", "cat")))
    stage.rook("radar")

    stage.say("It warned them by mail; they finish what they are at")
    wait(stage, lambda: all(_states(stage)[name] == "completed" for name in ("ann", "cat")))
    stage.rook("mail", "list", "--to", "ann")

    stage.say("What would become of it? Nothing is changed by asking")
    stage.rook("merge", "--all", "--dry-run")

    stage.say("Land it: gates on just what would land, then the base moves")
    stage.rook("merge", "--all")
    _check(stage, bob="mechanical", cat="agent")

    stage.say("One conflict was settled by a rule, one by an agent; each says why that is safe")
    stage.rook("merge", "explain", "bob")
    stage.rook("merge", "explain", "cat")

    stage.say("The work of dan breaks the tests: it is sent back to him with what the gate said")
    stage.rook("merge", "--branch", "dan", may_fail=True)
    wait(stage, lambda: _states(stage)["dan"] == "completed")
    stage.rook("mail", "list", "--to", "dan")

    stage.say("He has repaired it, and it lands")
    stage.rook("merge", "--all")
    stage.rook("merge", "list", "--all")

    stage.say("And one landing is undone: the base moves, the task is open again")
    _check(stage, dan="clean")
    stage.rook("merge", "undo", "dan")
    stage.rook("doctor", "--category", "merge")


def _prepare(stage: Stage) -> None:
    """A small program on main with a gate, and what the agent that resolves conflicts will do."""
    stage.git("switch", "main")
    for name, text in _FILES.items():
        (stage.repo / name).write_text(text)
    stage.git("add", *_FILES)
    stage.git("commit", "-m", "A cart")
    settings = "gates:\n  - {name: check, run: python3 check.py}\n"
    (stage.repo / ".rookery" / "config.local.yaml").write_text(settings)
    roles = stage.repo / ".rookery" / "roles"
    roles.mkdir(exist_ok=True)
    answer = [
        {"edit": {"path": "cart.py", "text": _BOTH}},
        {"edit": {"path": "rook-resolution.json", "text": _NAMED}},
        {"say": "Both changes are kept."},
    ]
    (roles / "resolver.md").write_text(f"You resolve conflicts.\n\n{script(answer)}\n")


def _scripts() -> dict[str, list[Any]]:
    def note(text: str) -> dict[str, Any]:
        return {"edit": {"path": "CHANGES.md", "text": f"{_FILES['CHANGES.md']}- {text}\n"}}

    discount = "def total(prices, discount=0):\n    return sum(prices) - discount\n"
    rounded = "def total(prices):\n    return round(sum(prices), 2)\n"
    return {
        "ann": [
            note("A total takes a discount off."),
            {"edit": {"path": "cart.py", "text": discount}},
            {"commit": "Take a discount"},
            _WARNED,
            _DONE,
        ],
        "bob": [note("Parcels will be shipped soon."), {"commit": "Announce shipping"}, _DONE],
        "cat": [{"edit": {"path": "cart.py", "text": rounded}}, {"commit": "Round the total"}, _WARNED, _DONE],
        "dan": [
            {"edit": {"path": "shipping.py", "text": "def cost(parcels):\n    return parcels * 4\n"}},
            {"commit": "Ship things"},
            {"until": {"mail_type": "merge_failed"}},
            {"edit": {"path": "shipping.py", "text": "def cost(parcels):\n    return parcels * 5\n"}},
            {"commit": "Ship things at the right price"},
            _DONE,
        ],
    }


def _check(stage: Stage, **tiers: str) -> None:
    """End the demo if something did not land at the expected tier."""
    landed = {
        landing["agent"]: landing["tier"]
        for landing in stage.ask("merge", "list", "--all")
        if landing["state"] == "landed"
    }
    if not landed.items() >= tiers.items():
        raise SystemExit(f"the demo went wrong: expected {tiers} to land, and {landed} did")


def _states(stage: Stage) -> dict[str, str]:
    return {agent["agent"]: agent["outcome"] or agent["state"] for agent in stage.agents()}
