"""A holder is one call of one process at one place, and is taken for dead only where it can be seen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from rookery.base.call import serving
from rookery.processes import holder, proctable
from rookery.processes.holder import HolderId, is_elsewhere, is_gone, myself, process_of
from rookery.processes.proctree import Identity, identify
from served import Served, make_call
from support import SOURCE, child_environ, start_python

_HOLD = """
import json, sys
from rookery.processes import holder
me = holder.myself()
print(json.dumps([me.pid, me.text]), flush=True)
for line in sys.stdin:
    print(json.dumps([holder.is_gone(me), holder.is_elsewhere(holder.read(*json.loads(line)))]), flush=True)
"""


def test_a_holder_is_kept_as_a_number_and_a_text() -> None:
    me = myself()
    assert holder.read(me.pid, me.text) == me
    assert (me.pid, me.call, me.host) == (os.getpid(), "", os.uname().nodename)
    assert not is_gone(me)
    assert process_of(me) == identify(os.getpid())


def test_what_an_earlier_rookery_kept_is_a_process_of_this_place() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert not is_gone(holder.read(me.pid, me.start))
    assert is_gone(holder.read(me.pid, me.start + "0"))
    assert is_gone(holder.read(me.pid, None))
    assert process_of(holder.read(me.pid, me.start)) == me


def test_a_process_that_has_ended_is_gone() -> None:
    child = start_python(_HOLD)
    assert child.stdout is not None
    one = holder.read(*json.loads(child.stdout.readline()))
    assert (is_gone(one), is_elsewhere(one)) == (False, False)
    child.communicate()
    assert is_gone(one)


@pytest.mark.parametrize(
    ("host", "boot", "namespace", "is_away"),
    [
        ("another", "0a1b2c3d", "4026531836", True),
        ("", "", "1", True),  # another namespace of this host
        ("renamed", "", "", False),  # this very start of this host, under an earlier name
        ("", "0a1b2c3d", "1", False),  # this host, before it was started again
    ],
)
def test_only_a_process_that_could_be_seen_is_taken_for_dead(
    host: str, boot: str, namespace: str, is_away: bool
) -> None:
    me = myself()
    start = f"{boot or proctable.this_boot()}-1"
    one = HolderId(Identity(me.pid, start), host or me.host, namespace or me.namespace)
    assert is_elsewhere(one) is is_away
    assert is_gone(one) is not is_away
    assert is_gone(one, lease_is_over=True)
    assert (process_of(one) is None) is is_away


def test_a_process_in_another_pid_namespace_is_not_taken_for_dead() -> None:
    unshare = shutil.which("unshare")
    words = [unshare or "unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0:
        words[1:1] = ["--user", "--map-root-user"]
    if unshare is None or subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no pid namespace can be made on this machine (unshare --pid)")
    child = subprocess.Popen(
        [*words, sys.executable, "-c", _HOLD],
        env=child_environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        one = holder.read(*json.loads(child.stdout.readline()))
        assert one.identity.pid < 10  # a number that means another process here
        assert is_elsewhere(one)
        assert not is_gone(one)
        assert process_of(one) is None
        child.stdin.write(json.dumps([os.getpid(), myself().text]) + "\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline()) == [False, True]  # it sees itself, and not us
    finally:
        child.communicate(timeout=20)
    assert not is_gone(one)
    assert is_gone(one, lease_is_over=True)


def test_each_call_is_a_holder_of_its_own() -> None:
    with serving(make_call()) as first:
        one = myself()
        two = Served(make_call(), myself).value()
        assert one.call == first.id != two.call
        assert (is_gone(one), is_gone(two)) == (False, True)  # the second is no longer served
        assert process_of(one) is None  # a signal would end all calls
    assert is_gone(one)


def test_another_process_cannot_see_which_calls_are_served() -> None:
    """So it counts a call as alive as long as the process is."""
    one = Served(make_call(), myself).value()
    code = (
        "import sys; from rookery.processes import holder; "
        "print(holder.is_gone(holder.read(int(sys.argv[1]), sys.argv[2])))"
    )
    words = [sys.executable, "-c", code, str(one.pid), one.text]
    done = subprocess.run(words, env=child_environ({"PYTHONPATH": SOURCE}), capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
