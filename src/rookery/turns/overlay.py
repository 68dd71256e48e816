"""An agent's instructions: how its role works, what its task is, and how it reports. Pure: text in, text out."""

from __future__ import annotations

from rookery.roles.model import Role
from rookery.sessions.model import Session
from rookery.tasks.model import TaskView
from rookery.turns.protocol import describe

MARK = "<!-- written by rook; not part of the repository -->"


def compose(session: Session, role: Role, *, root: str, view: TaskView | None, spec: str | None) -> str:
    """The whole text, for the file that the runtime reads."""
    parts = [
        MARK,
        role.prompt.strip(),
        _assignment(session, root),
        _task(view),
        _spec(spec),
        _scope(session),
        _context(view),
        _learnings(view),
        _company(session),
        _overrides(session),
        describe(role, agent=session.agent, parent=session.parent, task_id=session.task_id).strip(),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def first_prompt(session: Session) -> str:
    """What an agent is told when its life begins."""
    what = f"task {session.task_id}" if session.task_id else "what you are asked by mail"
    return (
        f"You are {session.agent}, a {session.role}. Your instructions tell how you work and report. Begin with {what}."
    )


def _assignment(session: Session, root: str) -> str:
    lines = [
        "# Your assignment",
        "",
        f"- agent: `{session.agent}` ({session.role}, depth {session.depth})",
        f"- task: `{session.task_id or 'none'}`",
        f"- worktree: `{session.worktree}`",
        f"- branch: `{session.branch}`, from commit `{session.base_commit[:12]}`",
        f"- project: `{root}` (its state is there; your files are in the worktree)",
    ]
    if session.settings.ports:
        first, count = session.settings.ports
        lines.append(f"- ports: {first} to {first + count - 1} are yours")
    return "\n".join(lines)


def _task(view: TaskView | None) -> str:
    if view is None:
        return ""
    task = view.task
    lines = [f"## Task: {' '.join(task.title.split())}", "", task.description.strip()]
    if view.depth == 0 and task.design:
        lines += ["", "### Design", "", task.design.strip()]
    return "\n".join(lines).strip()


def _spec(spec: str | None) -> str:
    return "" if not spec else "## Specification\n\n" + spec.strip()


def _scope(session: Session) -> str:
    if not session.settings.files:
        return ""
    return "\n".join(
        [
            "## Your files",
            "",
            "Only these are yours to change:",
            "",
            *(f"- `{each}`" for each in session.settings.files),
        ]
    )


def _context(view: TaskView | None) -> str:
    if view is None:
        return ""
    levels = [
        ("the task", view.task.context),
        *zip(("its parent", "the epic"), (a.context for a in view.ancestors), strict=False),
    ]
    told = [f"### Of {name}\n\n{text.strip()}" for name, text in levels if text.strip()]
    return "\n\n".join(["## Context", *told]) if told else ""


def _learnings(view: TaskView | None) -> str:
    if view is None:
        return ""
    told = [each.content for level in view.learnings for each in level]
    return (
        "\n".join(["## What others have learned", "", *(f"- {' '.join(each.split())}" for each in told)])
        if told
        else ""
    )


def _company(session: Session) -> str:
    if not session.settings.siblings:
        return ""
    lines = [
        "## Beside you",
        "",
        "These work at the same time, on the same base. Expect the base to move; keep to your files.",
        "",
        *(f"- `{each}`" for each in session.settings.siblings),
        "",
        "Before you hand your work over, commit it, run `rook worktree rebase "
        + session.agent
        + "` and your checks again.",
    ]
    return "\n".join(lines)


def _overrides(session: Session) -> str:
    settings = session.settings
    told = []
    if settings.skip_review:
        told.append("- Sling no reviewer: read the diffs and run the checks yourself.")
    if settings.max_agents is not None:
        told.append(f"- Sling at most {settings.max_agents} agents in all.")
    if settings.tools:
        told.append(f"- Of your tools, use only {', '.join(settings.tools)}; `rook` itself always works.")
    if settings.instructions:
        told.append(settings.instructions.strip())
    return "\n".join(["## For this time", "", *told]) if told else ""
