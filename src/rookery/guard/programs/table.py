"""Programs by what they do, as data."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.guard.command import names

PLAIN = names(
    "cat tac head wc ls dir vdir stat file du df echo printf true false : test [ pwd dirname basename realpath "
    "readlink seq whoami id uname which type grep egrep fgrep zgrep ag ack cut tr comm cmp diff paste join nl fold "
    "fmt rev expand unexpand od hexdump strings md5sum sha1sum sha224sum sha256sum sha384sum sha512sum cksum sum "
    "b2sum base64 base32 jq zcat bzcat xzcat gzcat zstdcat ps pgrep free uptime nproc lscpu lsblk lsof ss tty groups "
    "nm objdump readelf size cloc tokei scc column numfmt expr factor cal getconf locale arch bat batcat exa eza tput "
    "clear man help whatis apropos printenv set shift return exit break continue wait jobs read getopts let ulimit "
    "umask times unset local export declare typeset readonly dirs fg bg disown tsort pr "
)
"""Programs and builtins that only read and print, whatever their options."""


@dataclass(frozen=True, slots=True)
class Careful(Record):
    """A program that only reads, but for some of its options."""

    takes: str = ""
    longs: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    """Options whose value is a file that is written."""
    runs: tuple[str, ...] = ()
    """Options that run something, or change more than a file."""
    most: int = 1000
    """How many operands it reads; the next is a file that it writes."""


CAREFUL = {
    "sort": Careful(
        "okStT", ("--output", "--key", "--field-separator"), ("-o", "--output"), ("--compress-program", "--files0-from")
    ),
    "shuf": Careful("oin", ("--output",), ("-o", "--output")),
    "uniq": Careful("fsw", most=1),
    "xxd": Careful("clgos", most=1),
    "tree": Careful("oLPIH", (), ("-o", "--output")),
    "rg": Careful("egtTABCmjMfdr", (), (), ("--pre", "--hostname-bin")),
    "less": Careful("oOpPtTxyz", (), ("-o", "-O", "--log-file", "--LOG-FILE")),
    "more": Careful("n"),
    "yq": Careful("opI", (), (), ("-i", "--inplace", "-s", "--split-exp", "--in-place")),
    "date": Careful("dfrs", (), (), ("-s", "--set")),
    "hostname": Careful("", (), (), ("-F", "--file", "-b"), most=0),
    "iconv": Careful("fto", ("--output",), ("-o", "--output")),
    "mapfile": Careful("dnOsuCc", (), (), ("-C",)),
    "readarray": Careful("dnOsuCc", (), (), ("-C",)),
    "hash": Careful("pdt", (), (), ("-p",)),
    "tail": Careful("nc"),
}

_TERMINAL = "there is no terminal; change files with the Edit tool"
_SYSTEM = "ask for it by mail; the machine is not yours to change"
_PLAINLY = "call the program by its own name"

_FORBIDDEN = (
    ("sudo doas su pkexec runuser setpriv chroot unshare nsenter", "privilege", "takes other rights", _SYSTEM),
    (
        "shutdown reboot halt poweroff mount umount fdisk parted systemctl service launchctl useradd usermod "
        "userdel passwd iptables nft sysctl insmod modprobe",
        *("system", "changes the machine", _SYSTEM),
    ),
    (
        "apt apt-get aptitude dpkg dnf yum rpm pacman zypper apk snap flatpak brew port",
        *("system", "installs software for the whole machine", "install into your worktree, or ask by mail"),
    ),
    ("ssh scp sftp mosh ftp telnet rlogin rsh", "network", "leaves this machine", "work on what is here"),
    ("crontab at batch atrm systemd-run", "scheduling", "runs later", "end your turn; mail wakes you"),
    (
        "watch entr watchexec inotifywait fswatch",
        *("polling", "waits without end", "end your turn, or wait with `rook mail wait`"),
    ),
    (
        "tmux screen zellij byobu dtach abduco",
        *("terminal", "reaches into other terminals", "run it here, or in the background"),
    ),
    (
        "claude codex gemini opencode aider goose cursor-agent copilot qwen amp crush",
        *("native-agents", "starts an agent that Rookery does not know of", "`rook sling TASK --role ROLE`"),
    ),
    (
        "alias unalias enable bind complete compgen compopt fc",
        *("shell-state", "changes what commands mean", _PLAINLY),
    ),
    ("vi vim nvim view nano pico emacs ed ex joe micro hx kak", "interactive", "is an editor", _TERMINAL),
    ("script expect unbuffer socat", "wrapper", "runs commands that cannot be judged", _PLAINLY),
    (
        "gpg gpg2 ssh-add ssh-agent ssh-keygen security secret-tool op pass keyring",
        *("secret", "handles secrets", "do without; ask for what you need by mail"),
    ),
    (
        "pkill killall killall5 skill xkill",
        *("kill-by-name", "may end what belongs to others", "end what you started by its process id"),
    ),
)
FORBIDDEN = {name: (rule, why, hint) for listed, rule, why, hint in _FORBIDDEN for name in listed.split()}
"""Programs that no agent runs: the rule, why, and what to do instead."""

NETWORK = names("curl wget nc ncat netcat ping http https xh aria2c dig host nslookup gh glab")
"""Programs that reach beyond the machine: the profile decides."""

CONTAINERS = names("docker podman nerdctl kubectl terraform helm vagrant")

PUBLISHING = frozenset(
    {
        ("npm", "publish"), ("npm", "unpublish"), ("pnpm", "publish"), ("yarn", "publish"), ("bun", "publish"),
        ("cargo", "publish"), ("cargo", "yank"), ("twine", "upload"), ("gem", "push"), ("docker", "push"),
        ("podman", "push"), ("uv", "publish"), ("poetry", "publish"), ("hatch", "publish"), ("flit", "publish"),
        ("gh", "release"), ("gh", "api"), ("gh", "auth"), ("gh", "secret"), ("gh", "repo"), ("gh", "workflow"),
        ("gh", "alias"), ("gh", "extension"), ("gh", "ssh-key"), ("helm", "push"), ("terraform", "apply"),
        ("terraform", "destroy"), ("kubectl", "apply"), ("kubectl", "delete"),
    }
)  # fmt: skip
"""What makes work public or changes what is running elsewhere, by program and first word."""
FORGE_READS = names("view list diff checks status")

SHELLS = names("bash sh zsh dash ksh ash mksh rbash fish csh tcsh")
INTERPRETERS = names("python node deno bun ruby perl php lua Rscript R julia tclsh osascript tsx ts-node")

CHECKERS = names(
    "pytest tox nox mypy pyright pyre flake8 pylint bandit vulture jest vitest mocha ava rspec phpunit ctest bats "
    "golangci-lint staticcheck shellcheck hadolint yamllint markdownlint tsc eslint stylelint deptry unittest "
    "import-linter lint-imports coverage"
)
"""Programs that check the project. They run its code."""
FORMATTERS = names("black isort prettier rustfmt gofmt biome")
CHECKING_WORDS = names("test tests t check checks lint typecheck type-check types vet clippy verify validate ci")
"""Subcommands, targets and scripts by which build tools check."""
BUILD_TOOLS = names(
    "npm pnpm yarn bun deno cargo go make gmake just task rake gradle gradlew mvn mvnw dotnet swift mix sbt lein bazel "
    "composer bundle ninja cmake meson zig stack cabal hatch"
)
INFORMING = frozenset(
    {
        ("pip", "list"), ("pip", "show"), ("pip", "freeze"), ("npm", "ls"), ("npm", "list"), ("pnpm", "list"),
        ("pnpm", "ls"), ("yarn", "list"), ("cargo", "tree"), ("cargo", "metadata"), ("go", "list"), ("go", "doc"),
        ("go", "version"), ("poetry", "show"), ("bundle", "list"), ("gem", "list"), ("composer", "show"),
    }
)  # fmt: skip
"""What build tools tell without building, by program and first word."""
FIXES = names("--fix --fix-only --unsafe-fixes --write --apply -w --fix-dry-run -u --update --updateSnapshot")
TOOLCHAIN = INTERPRETERS | BUILD_TOOLS | CHECKERS | {"pip", "uv", "java", "gcc", "rustc", "ruff"}
VERSION_WORDS = names("--version -V -v version --help -h help")

REMOVERS = names("rm rmdir unlink shred")
MAKERS = names("mkdir touch truncate tee mkfifo sponge")
CHANGERS = names("chmod chown chgrp")
COPIERS = names("cp mv ln install rsync")
TARS = names("tar gtar bsdtar")
PACKERS = TARS | names("unzip zip gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd 7z 7za")
OTHER_WRITERS = names("dd patch split csplit mktemp")
SEDS = names("sed gsed")
AWKS = names("awk gawk mawk nawk")
