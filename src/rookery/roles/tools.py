"""The tools of agent programs by what they do. A tool that is not listed here is denied.

Names as Claude Code 2.1 offers them; older names that other versions still use are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

ALL = "all"
"""Instead of names: every tool that agents may use."""

SHELL = frozenset({"Bash"})
READERS = {
    "Read": ("file_path",),
    "NotebookRead": ("notebook_path", "file_path"),
    "LS": ("path",),
    "Glob": ("path",),
    "Grep": ("path",),
    "LSP": ("file_path", "filePath", "path"),
}
"""Tools that read, and the parameters that may hold their path."""

WRITERS = {
    "Write": ("file_path",),
    "Edit": ("file_path",),
    "MultiEdit": ("file_path",),
    "NotebookEdit": ("notebook_path", "file_path"),
}
"""Tools that write a file, and the parameters that may hold its path."""

HARMLESS = frozenset(
    {
        "BashOutput",
        "KillBash",
        "KillShell",
        "ReportFindings",
        "StructuredOutput",
        "TaskOutput",
        "TaskStop",
        "TodoRead",
        "TodoWrite",
        "ToolSearch",
        "WaitForMcpServers",
    }
)
"""Tools that touch nothing but the agent's own session and the shells that it started."""

OUTSIDE = frozenset(
    {
        "ListMcpResourcesTool",
        "ReadMcpResourceDirTool",
        "ReadMcpResourceTool",
        "Skill",
        "SlashCommand",
        "WebFetch",
        "WebSearch",
    }
)
"""Tools that reach beyond the project: the profile decides."""

OWN_SERVERS = ("mcp__rookery__", "mcp__rook__")
"""Rookery's own tools over MCP; the registry judges each by the role's permissions."""
SERVER = "mcp__"

_SLING = "to start an agent: `rook sling TASK --role ROLE`; to talk to one: `rook mail send`"
_ASK = "ask by mail and end your turn: `rook mail send NAME --type question --subject … --body …`"
_PLAN = "say what you will do in a message, and do it"
_WAIT = "end your turn, or wait with `rook mail wait`; mail wakes you"
_TASKS = "`rook task list` and `rook task create` keep the work; TodoWrite keeps your own notes"
_WORKTREE = "you have a worktree of your own, and work in no other"
_TELL = "report by mail: `rook mail send`"

_FORBIDDEN = (
    ("Task Agent TeamCreate TeamDelete SendMessage Workflow RemoteTrigger", "native-agents", _SLING),
    ("ListAgents", "native-agents", "`rook status` shows who does what"),
    ("TaskCreate TaskGet TaskList TaskUpdate", "native-tasks", _TASKS),
    ("AskUserQuestion ShowOnboardingRolePicker", "blocking", _ASK),
    ("EnterPlanMode ExitPlanMode", "blocking", _PLAN),
    ("CronCreate CronDelete CronList ScheduleWakeup Sleep Monitor", "scheduling", _WAIT),
    ("EnterWorktree ExitWorktree WorktreeCreate", "native-worktree", _WORKTREE),
    ("SendUserMessage SendUserFile Brief PushNotification Artifact Projects", "native-message", _TELL),
    ("Config", "settings", "settings are changed by people"),
    ("PowerShell REPL", "shell", "use Bash"),
    ("WebBrowser", "browser", "use WebFetch"),
)
FORBIDDEN = {name: (rule, hint) for listed, rule, hint in _FORBIDDEN for name in listed.split()}
"""Tools that no agent may use: the rule, and the right way."""

USABLE = SHELL | READERS.keys() | WRITERS.keys() | OUTSIDE | HARMLESS
"""Tools that can be given to an agent by name."""


def has_tool(names: Iterable[str], tool: str) -> bool:
    """True if the names cover a tool. What belongs to the agent's own session, and Rookery's own, it always has."""
    return (
        tool in HARMLESS
        or tool.startswith(OWN_SERVERS)
        or any(name in (ALL, tool) or (_is_of_server(name) and tool.startswith(f"{name}__")) for name in names)
    )


def why_no_tool(name: str) -> str:
    """Why a tool cannot be given to an agent; empty if it can."""
    if name in USABLE or _is_of_server(name):
        return ""
    if name in FORBIDDEN:
        return f"no agent may use {name}: {FORBIDDEN[name][1]}"
    return f"there is no tool {name}; one of {', '.join(sorted(USABLE))}, or mcp__SERVER for those of an MCP server"


def _is_of_server(name: str) -> bool:
    return name.startswith(SERVER) and len(name) > len(SERVER)
