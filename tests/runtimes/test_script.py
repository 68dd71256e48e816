"""Scripts: found, read, and refused with the number of the step."""

from __future__ import annotations

import pytest

from rookery.base.errors import InvalidInput
from rookery.runtimes.scripted_agent.script import DEFAULT, find_script, parse_script


def test_the_default_is_a_script() -> None:
    assert [step.kind for step in parse_script(DEFAULT)] == ["say", "edit", "commit", "mail"]


def test_repetitions_are_written_out() -> None:
    steps = parse_script("- repeat: 2\n  steps:\n  - say: a\n  - repeat: 2\n    steps: [{say: b}]\n- say: c")
    assert [(step.label, step.value) for step in steps] == [
        *[("1.1", "a"), ("1.2.1", "b"), ("1.2.1", "b")] * 2,
        ("2", "c"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# Task\n\n```rook-script\n- say: x\n```\nrest\n```rook-script\n- say: y\n```",
        "~~~~ rook-script\n- say: x\n~~~~\n",
        "````text\n  ```rook-script\n- say: x\n  ```\n````",
        "```rook-script\n- say: x",
    ],
)
def test_it_is_found_in_the_instructions(text: str) -> None:
    script = find_script(text)
    assert script is not None
    assert [step.value for step in parse_script(script)] == ["x"]


@pytest.mark.parametrize("text", ["", "rook-script", "```rook-script-2\n- say: x\n```", "```yaml\n- say: x\n```"])
def test_other_text_holds_none(text: str) -> None:
    assert find_script(text) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- say: [", "not YAML"),
        ("say: x", "not a list of steps"),
        ("- say: x\n- hello", "step 2: 'hello' is no step"),
        ("- say: x\n  run: y", "step 1: one key is wanted, not say, run"),
        ("- dance: x", "step 1: there is no step `dance`"),
        ("- say: 7", "step 1 (say): a text is wanted"),
        ("- edit: {text: x}", "step 1 (edit): `path` is missing"),
        ("- edit: {path: x}", "one of `text`, `append`, `replace`"),
        ("- edit: {path: x, text: a, append: b}", "one of `text`, `append`, `replace`"),
        ("- edit: {path: x, replace: [a]}", "the old and the new text"),
        ("- edit: {path: x, txt: a}", "there is no `txt`"),
        ("- mail: {subject: x}", "`to` is missing"),
        ("- mail: {to: x, payload: y}", "`payload` has keys"),
        ("- task: list", "a list of words"),
        ("- wait: tomorrow", "`wait: mail`"),
        ("- until: {}", "`mail_from` or `mail_type`"),
        ("- sleep: -1", "a number of seconds"),
        ("- spend: {input: many}", "`input` must be a number"),
        ("- crash: 256", "from 0 to 255"),
        ("- signal: WAVE", "a signal's name"),
        ("- hang: yes please", "`true`"),
        ("- repeat: 2", "`repeat: 3` with `steps:`"),
        ("- repeat: true\n  steps: []", "`repeat: 3` with `steps:`"),
        ("- repeat: 1\n  steps:\n  - say: x\n  - crash: no", "step 1.2 (crash)"),
        ("- repeat: 100000\n  steps: [{say: x}, {say: y}]", "more than 100,000"),
    ],
)
def test_what_is_wrong_is_reported_with_the_steps_number(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_script(text)
    assert complaint in caught.value.message
