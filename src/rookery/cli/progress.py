"""A bar for long work, on a terminal."""

from __future__ import annotations

from collections.abc import Callable

from rookery.base.call import stderr
from rookery.cli.fancy import open_console


def show_progress(label: str, total: int) -> Callable[[int], None]:
    """Start a bar on standard error; the function that is returned moves it, and ends it at `total`."""
    if total == 0:  # nothing would ever end the bar
        return lambda _done: None
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=open_console(stderr()),
        transient=True,
    )
    task = bar.add_task(label, total=total)
    bar.start()

    def move(done: int) -> None:
        bar.update(task, completed=done)
        if done >= total:
            bar.stop()

    return move
