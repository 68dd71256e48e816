"""Every setting, its type, its default and what it is for. The reference and the written configuration derive from it.

A field's default fixes its type; the string beneath it is its documentation.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """The repository that is worked on."""

    base: str = ""
    """The branch that work starts from and lands on; empty means the repository's default branch."""


@dataclass(frozen=True, slots=True)
class VcsConfig:
    """Version control."""

    backend: str = field(default="auto", metadata={"choices": ("auto", "git", "jj")})
    """Which program to use; auto takes jj where there is a `.jj` folder, else git."""
    timeout: float = field(default=120.0, metadata={"duration": True})
    """How long one git or jj command may take, hooks included."""


@dataclass(frozen=True, slots=True)
class TasksConfig:
    """The task graph."""

    lease: float = field(default=1800.0, metadata={"duration": True})
    """How long a claimed task stays its agent's own without a sign of life."""


@dataclass(frozen=True, slots=True)
class AgentsConfig:
    """How many agents there may be, and what they run on."""

    runtime: str = "scripted"
    """The program that agents run on, unless `rook sling` says otherwise."""
    mode: str = field(default="headless", metadata={"choices": ("headless", "tmux")})
    """How agents live: turn by turn without a terminal, or interactively in tmux."""
    model: str = "default"
    """The model that agents use, unless their role or `rook sling` says otherwise."""
    max_concurrent: int = field(default=10, metadata={"minimum": 1})
    """How many agents may be alive at once."""
    max_per_lead: int = field(default=5, metadata={"minimum": 1})
    """How many living agents one agent may have slung."""
    max_per_run: int = field(default=100, metadata={"minimum": 1})
    """How many agents one run may sling in all."""
    max_depth: int = field(default=2, metadata={"minimum": 0})
    """How deep agents may sling agents: 0 for those that a person slings, 1 for what these sling, and so on."""
    turn_timeout: float = field(default=3600.0, metadata={"duration": True})
    """How long one turn may take before it is ended."""
    boot_timeout: float = field(default=60.0, metadata={"duration": True})
    """How long an interactive agent may take until it is ready for its task."""
    stop_grace: float = field(default=5.0, metadata={"duration": True})
    """How long an agent that is asked to stop has until it is killed."""


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """The process that serves a project's calls."""

    idle: float = field(default=1800.0, metadata={"duration": True})
    """How long it stays after the last call, when no agent is alive."""


@dataclass(frozen=True, slots=True)
class ClaudeConfig:
    """Claude Code, the program behind the runtime `claude`."""

    program: str = "claude"
    """The program: a name to look for in PATH, or a path."""
    args: tuple[str, ...] = ()
    """Arguments to add to every start, such as `--fallback-model=sonnet`."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables for the program, such as CLAUDE_CODE_USE_BEDROCK or CLAUDE_CODE_MAX_RETRIES."""
    share_login: bool = True
    """Where no key or token is set, let agents use the login that is valid now in `~/.claude/.credentials.json`."""


@dataclass(frozen=True, slots=True)
class CostsConfig:
    """What tokens cost."""

    prices: tuple[str, ...] = ()
    """Prices that add to or overrule the built-in table: `model=INPUT/OUTPUT`, dollars for a million tokens."""


@dataclass(frozen=True, slots=True)
class WorktreesConfig:
    """The worktrees of agents."""

    rescue_limit: int = field(default=100, metadata={"minimum": 0})
    """How many megabytes of ignored files `rook worktree clean --ignored` saves without being forced."""
    snapshot_ignored: tuple[str, ...] = ()
    """Ignored files that the snapshot of a turn takes along: paths, folders or globs."""


@dataclass(frozen=True, slots=True)
class ProvisionConfig:
    """What a new worktree is given before its agent begins."""

    copy: tuple[str, ...] = ()
    """Files and folders to copy from the main checkout, such as .env; one that may be missing ends in `?`."""
    link: tuple[str, ...] = ()
    """Files and folders of the main checkout to link to, such as node_modules; one that may be missing ends in `?`."""
    setup: str = ""
    """A shell command to run in the worktree; if it fails, so does the sling."""
    setup_timeout: float = field(default=600.0, metadata={"duration": True})
    """How long the setup command may take."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables for the setup command and the agent."""
    first_port: int = field(default=20000, metadata={"minimum": 1024, "maximum": 65535})
    """The first port that is leased to agents."""
    last_port: int = field(default=29999, metadata={"minimum": 1024, "maximum": 65535})
    """The last port that is leased to agents."""
    ports: int = field(default=10, metadata={"minimum": 0, "maximum": 1000})
    """How many ports each agent gets, as ROOKERY_PORT and ROOKERY_PORTS; 0 for none."""


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """What agents can reach on this machine."""

    mode: str = field(default="auto", metadata={"choices": ("auto", "on", "off")})
    """Whether agents run in bubblewrap: where it works (auto), or no agent without it (on), or never (off)."""
    network: str = field(default="open", metadata={"choices": ("open", "off", "allow")})
    """What a sandboxed agent reaches: everything, nothing, or the hosts in sandbox.allow alone."""
    allow: tuple[str, ...] = ()
    """Hosts for sandbox.network allow: `example.org`, `*.example.org`, `example.org:8443`, `10.0.0.5:5432`."""
    read: tuple[str, ...] = ()
    """Folders and files of your home, /tmp or /run that agents may read; what PATH needs is found by itself."""
    credentials: tuple[str, ...] = ()
    """Variables of your environment that agents get, by name, beside those of their model; all others stay out."""


@dataclass(frozen=True, slots=True)
class GateConfig:
    """Commands that must pass before work lands, run in a checkout of just what would land."""

    name: str
    """What it is called."""
    run: str
    """A shell command; exit status 0 means that it passed."""
    paths: tuple[str, ...] = ()
    """Run it only where one of these paths, folders or globs has changed; always unless given."""
    timeout: float = field(default=1800.0, metadata={"duration": True})
    """How long it may take."""


_RULES = ("superseded", "whitespace", "contained", "fields", "union", "entries", "definitions", "items", "imports")
_RULES_THAT_REPLACE = ("lineage", "version")


@dataclass(frozen=True, slots=True)
class MergeConfig:
    """How work lands."""

    strategy: str = field(default="merge", metadata={"choices": ("merge", "squash", "rebase")})
    """What the base gets: a merge commit, one commit for a branch, or its commits one by one on top of the base."""
    tiers: tuple[str, ...] = field(
        default=("mechanical", "agent"), metadata={"choices": ("mechanical", "agent", "reimagine")}
    )
    """What is tried where a branch conflicts, in the order of these three; whatever is left is for a person."""
    rules: tuple[str, ...] = field(default=_RULES, metadata={"choices": (*_RULES, *_RULES_THAT_REPLACE)})
    """The rules that may settle conflicts; `lineage` and `version` put one line in place of another."""
    unions: tuple[str, ...] = ()
    """Files whose lines stand for themselves, such as .gitignore: what both sides add to them is all kept."""
    runtime: str = ""
    """The program that resolves conflicts; empty means that of agents."""
    model: str = ""
    """The model that resolves conflicts; empty means that of agents."""
    agent_timeout: float = field(default=1200.0, metadata={"duration": True})
    """How long an agent may take to resolve one branch's conflicts."""
    batch: int = field(default=8, metadata={"minimum": 1, "maximum": 64})
    """How many branches are gated together at most; 1 lands them one by one."""
    retries: int = field(default=1, metadata={"minimum": 0, "maximum": 5})
    """How often a gate that fails on a single branch is run again, to tell flaky from broken."""
    lease: float = field(default=120.0, metadata={"duration": True})
    """How long a merger that gives no sign of life keeps its place."""
    wait: float = field(default=600.0, metadata={"duration": True})
    """How long `rook merge` waits for another merger before it gives up."""
    rebase: str = field(default="overlapping", metadata={"choices": ("overlapping", "all", "none")})
    """Which living agents are asked to rebase when something has landed."""
    clean: bool = True
    """Whether the worktree of an agent that has ended is removed once its work has landed."""
    gate_output: int = field(default=16, metadata={"minimum": 1, "maximum": 1024})
    """How many megabytes of a gate's output are kept."""
    gate_disk: int = field(default=4096, metadata={"minimum": 1})
    """How many megabytes a gate may write before it is ended."""


@dataclass(frozen=True, slots=True)
class Config:
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
    gates: tuple[GateConfig, ...] = ()
    """A list; each entry has a name, a command and, if wanted, paths and a timeout."""
    merge: MergeConfig = field(default_factory=MergeConfig)
