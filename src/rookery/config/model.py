"""Every setting, its type, its default and what it is for. The reference and the written configuration derive from it.

pydantic checks what files, variables and flags hold, by the types here; the string under a field is its documentation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, get_args

from rookery.config.values import Check, Duration, Limits, Text, Texts, Variables


class Settings:
    """What every section shares: pydantic refuses a key that the section does not have."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class ProjectConfig(Settings):
    """The repository that is worked on."""

    base: Text = ""
    """The branch that work starts from and lands on; empty means the repository's default branch."""


@dataclass(frozen=True, slots=True)
class VcsConfig(Settings):
    """Version control."""

    backend: Literal["auto", "git", "jj"] = "auto"
    """Which program to use; auto takes jj where there is a `.jj` folder, else git."""
    timeout: Duration = 120.0
    """How long one git or jj command may take, hooks included."""


@dataclass(frozen=True, slots=True)
class TasksConfig(Settings):
    """The task graph."""

    lease: Duration = 1800.0
    """How long a claimed task stays with its agent without activity."""


@dataclass(frozen=True, slots=True)
class AgentsConfig(Settings):
    """How many agents there may be, and what they run on."""

    runtime: Text = "scripted"
    """The program that agents run on, unless `rook sling` says otherwise."""
    mode: Literal["headless", "tmux"] = "headless"
    """How agents run: turn by turn without a terminal, or interactively in tmux."""
    model: Text = "default"
    """The model that agents use, unless their role or `rook sling` says otherwise."""
    max_concurrent: Annotated[int, Limits(1)] = 10
    """How many agents may be alive at once."""
    max_per_lead: Annotated[int, Limits(1)] = 5
    """How many living agents one agent may have slung."""
    max_per_run: Annotated[int, Limits(1)] = 100
    """How many agents one run may sling in all."""
    max_depth: Annotated[int, Limits(0)] = 2
    """How deep agents may sling agents: 0 for those that a person slings, 1 for what these sling, and so on."""
    turn_timeout: Duration = 3600.0
    """How long one turn may take before it is ended."""
    boot_timeout: Duration = 60.0
    """How long an interactive agent may take until it is ready for its task."""
    stop_grace: Duration = 5.0
    """How long an agent that is asked to stop has until it is killed."""


@dataclass(frozen=True, slots=True)
class DaemonConfig(Settings):
    """The process that serves a project's calls."""

    idle: Duration = 1800.0
    """How long it stays after the last call, when no agent is alive."""


@dataclass(frozen=True, slots=True)
class ClaudeConfig(Settings):
    """Claude Code, the program behind the runtime `claude`."""

    program: Text = "claude"
    """The program: a name to look for in PATH, or a path."""
    args: Texts = ()
    """Arguments to add to every start, such as `--fallback-model=sonnet`."""
    env: Variables = field(default_factory=dict)
    """Variables for the program, such as CLAUDE_CODE_USE_BEDROCK or CLAUDE_CODE_MAX_RETRIES."""
    share_login: bool = True
    """Where no key or token is set, let agents use the login that is valid now in `~/.claude/.credentials.json`."""


@dataclass(frozen=True, slots=True)
class CostsConfig(Settings):
    """What tokens cost."""

    prices: Texts = ()
    """Prices that add to or overrule the built-in table: `model=INPUT/OUTPUT`, dollars for a million tokens."""


@dataclass(frozen=True, slots=True)
class WorktreesConfig(Settings):
    """The worktrees of agents."""

    dir: Text = ""
    """Where new ones are made: a folder, relative to the project's root or absolute; empty means `.rookery/worktrees`.
    `{project}` in it stands for the name of the project's folder."""
    rescue_limit: Annotated[int, Limits(0)] = 100
    """How many megabytes of ignored files `rook worktree clean --ignored` saves without being forced."""
    snapshot_ignored: Texts = ()
    """Ignored files that the snapshot of a turn includes: paths, folders or globs."""


@dataclass(frozen=True, slots=True)
class ProvisionConfig(Settings):
    """What a new worktree is given before its agent begins."""

    copy: Texts = ()
    """Files and folders to copy from the main checkout, such as .env; one that may be missing ends in `?`."""
    link: Texts = ()
    """Files and folders of the main checkout to link to, such as node_modules; one that may be missing ends in `?`."""
    setup: Text = ""
    """A shell command to run in the worktree; if it fails, so does the sling."""
    setup_timeout: Duration = 600.0
    """How long the setup command may take."""
    env: Variables = field(default_factory=dict)
    """Variables for the setup command and the agent."""
    first_port: Annotated[int, Limits(1024, 65535)] = 20000
    """The first port that is leased to agents."""
    last_port: Annotated[int, Limits(1024, 65535)] = 29999
    """The last port that is leased to agents."""
    ports: Annotated[int, Limits(0, 1000)] = 10
    """How many ports each agent gets, as ROOKERY_PORT and ROOKERY_PORTS; 0 for none."""


@dataclass(frozen=True, slots=True)
class SandboxConfig(Settings):
    """What agents can reach on this machine."""

    mode: Literal["auto", "on", "off"] = "auto"
    """Whether agents run in bubblewrap: where it works (auto), or no agent without it (on), or never (off)."""
    network: Literal["open", "off", "allow"] = "open"
    """What a sandboxed agent reaches: everything, nothing, or the hosts in sandbox.allow alone."""
    allow: Texts = ()
    """Hosts for sandbox.network allow: `example.org`, `*.example.org`, `example.org:8443`, `10.0.0.5:5432`."""
    read: Texts = ()
    """Folders and files of your home, /tmp or /run that agents may read; what PATH needs is found by itself."""
    credentials: Texts = ()
    """Variables of your environment that agents get, by name, beside those of their model; all others stay out."""


@dataclass(frozen=True, slots=True)
class GateConfig(Settings):
    """Commands that must pass before work lands, run in a checkout of just what would land."""

    name: Text
    """What it is called."""
    run: Text
    """A shell command; exit status 0 means that it passed."""
    paths: Texts = ()
    """Run it only where one of these paths, folders or globs has changed; always unless given."""
    timeout: Duration = 1800.0
    """How long it may take."""


def _check_gates(gates: tuple[GateConfig, ...]) -> tuple[GateConfig, ...]:
    """Raise ValidationError, at its entry, for a gate that has no name of its own."""
    from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

    names = [gate.name for gate in gates]
    for place, name in enumerate(names):
        if not name.strip() or name in names[:place]:
            problem = f"has two that are called {name}" if name.strip() else "has an entry without a name"
            error = PydanticCustomError("name", "{problem}", {"problem": problem})
            raise ValidationError.from_exception_data("gates", [InitErrorDetails(type=error, loc=(place,), input=name)])
    return gates


Tier = Literal["mechanical", "agent", "reimagine"]
_Rule = Literal[
    "superseded", "whitespace", "contained", "fields", "union", "entries", "definitions", "items", "imports"
]
Rule = Literal[_Rule, "lineage", "version"]


@dataclass(frozen=True, slots=True)
class MergeConfig(Settings):
    """How work lands."""

    strategy: Literal["merge", "squash", "rebase"] = "merge"
    """What the base gets: a merge commit, one commit for a branch, or its commits one by one on top of the base."""
    tiers: tuple[Tier, ...] = ("mechanical", "agent")
    """What is tried where a branch conflicts, in the order of these three; whatever is left is for a person."""
    rules: tuple[Rule, ...] = get_args(_Rule)
    """The rules that may settle conflicts; `lineage` and `version` put one line in place of another."""
    unions: Texts = ()
    """Files whose lines do not depend on each other, such as .gitignore: all lines that both sides add are kept."""
    runtime: Text = ""
    """The program that resolves conflicts; empty means that of agents."""
    model: Text = ""
    """The model that resolves conflicts; empty means that of agents."""
    agent_timeout: Duration = 1200.0
    """How long an agent may take to resolve one branch's conflicts."""
    batch: Annotated[int, Limits(1, 64)] = 8
    """How many branches are gated together at most; 1 lands them one by one."""
    retries: Annotated[int, Limits(0, 5)] = 1
    """How often a gate that fails on a single branch is run again, to tell flaky from broken."""
    lease: Duration = 120.0
    """How long a merger that no longer renews its lease keeps its place."""
    wait: Duration = 600.0
    """How long `rook merge` waits for another merger before it gives up."""
    rebase: Literal["overlapping", "all", "none"] = "overlapping"
    """Which living agents are asked to rebase when something has landed."""
    clean: bool = True
    """Whether the worktree of an agent that has ended is removed once its work has landed."""
    gate_output: Annotated[int, Limits(1, 1024)] = 16
    """How many megabytes of a gate's output are kept."""
    gate_disk: Annotated[int, Limits(1)] = 4096
    """How many megabytes a gate may write before it is ended."""
    slots: Annotated[int, Limits(0, 64)] = 0
    """How many gates run at once; 0 means half of the machine's processors, from 1 to 4. All mergers share them."""
    memory: Annotated[int, Limits(0)] = 0
    """How many megabytes of memory a gate may use, all of its processes together, before it is ended (on Linux).

    0 sets no bound. Rookery looks five times a second, so a short peak may pass unseen."""
    cpus: Annotated[int, Limits(0)] = 0
    """On how many processors a gate may run (on Linux); 0 sets no bound."""


@dataclass(frozen=True, slots=True)
class RemoteConfig(Settings):
    """The remote repository that the base follows, and is pushed to."""

    push: Literal["ask", "never", "always"] = "ask"
    """When the base is pushed; always (after landings too) counts only from your own file, a variable or a flag."""
    timeout: Duration = 600.0
    """How long one fetch or push may take, hooks included."""


@dataclass(frozen=True, slots=True)
class BackupConfig(Settings):
    """Copies of the database that Rookery makes by itself."""

    keep: Annotated[int, Limits(0, 1000)] = 7
    """How many backups of each kind are kept, the newest; 0 makes none."""
    every: Duration = 86400.0
    """How often a backup is made, and what is old is pruned."""


@dataclass(frozen=True, slots=True)
class PruneConfig(Settings):
    """What Rookery removes by itself when it is old. Work that has not landed is never removed."""

    telemetry: Annotated[int, Limits(0)] = 30
    """After how many days the records of what agents did are removed; 0 keeps them."""
    logs: Annotated[int, Limits(0)] = 30
    """After how many days the logs of gates and of agents that have ended are removed; 0 keeps them."""
    snapshots: Annotated[int, Limits(0)] = 30
    """After how many days the snapshots of agents that have ended are removed, if their work landed; 0 keeps them."""
    events: Annotated[int, Limits(0)] = 0
    """After how many days events of agents, turns and mail go to a file in `.rookery/archive`; 0 keeps them."""
    size: Annotated[int, Limits(0)] = 2048
    """How many megabytes these logs may take before the oldest are removed, whatever their age; 0 sets no bound."""


@dataclass(frozen=True, slots=True)
class Config(Settings):
    """All settings."""

    project: ProjectConfig = field(default_factory=ProjectConfig)
    vcs: VcsConfig = field(default_factory=VcsConfig)
    tasks: TasksConfig = field(default_factory=TasksConfig)
    agents: AgentsConfig = field(default_factory=AgentsConfig)
    daemon: DaemonConfig = field(default_factory=DaemonConfig)
    claude: ClaudeConfig = field(default_factory=ClaudeConfig)
    costs: CostsConfig = field(default_factory=CostsConfig)
    worktrees: WorktreesConfig = field(default_factory=WorktreesConfig)
    provision: ProvisionConfig = field(default_factory=ProvisionConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    gates: Annotated[tuple[GateConfig, ...], Check(_check_gates, after=True)] = ()
    """A list; each entry has a name, a command and, if wanted, paths and a timeout."""
    merge: MergeConfig = field(default_factory=MergeConfig)
    remote: RemoteConfig = field(default_factory=RemoteConfig)
    backup: BackupConfig = field(default_factory=BackupConfig)
    prune: PruneConfig = field(default_factory=PruneConfig)
