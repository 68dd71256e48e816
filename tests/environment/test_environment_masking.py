"""Credentials do not come through, in whatever pieces a program prints them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from rookery.environment.masking import Mask, mask, secret_values

_SECRET = "s3cret-v\nalue"


def test_what_of_an_environment_is_secret() -> None:
    env = {"A_KEY": "long-enough", "B_KEY": "short", "C": "plain-value", "URL": "http://a:hunter2@b/"}
    assert secret_values(env) == ("long-enough", "http://a:hunter2@b/")


def test_the_key_of_a_setting_for_git_is_no_secret() -> None:
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": "Bearer abcdefgh"}
    assert secret_values(env) == ("Bearer abcdefgh",)


def test_the_longer_value_goes_first() -> None:
    assert mask("abcdefgh abcdef", ["abcdef", "abcdefgh"]) == "[redacted] [redacted]"


@given(st.lists(st.sampled_from(["x", "s3cret", "-v\n", _SECRET, json.dumps(_SECRET)[1:-1], "\udcff"])), st.data())
def test_in_any_pieces(words: list[str], data: st.DataObject) -> None:
    whole = "".join(words).encode("utf-8", "surrogateescape")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    hiding = Mask([_SECRET])
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    masked = b"".join([*(hiding.take(piece) for piece in pieces), hiding.end()])
    for form in (_SECRET, json.dumps(_SECRET)[1:-1]):
        assert form.encode() not in masked
    unhidden = whole.replace(json.dumps(_SECRET)[1:-1].encode(), b"[redacted]").replace(_SECRET.encode(), b"[redacted]")
    assert masked == unhidden


def test_what_cannot_be_a_secret_comes_at_once() -> None:
    hiding = Mask([_SECRET])
    assert hiding.take(b"50 % done\r") == b"50 % done\r"
    assert hiding.take(b"is s3cr") == b"is "
    assert hiding.take(b"oss ") == b"s3cross "
    assert hiding.end() == b""
