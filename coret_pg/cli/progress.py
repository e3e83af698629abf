"""Progress bars on standard error."""

from __future__ import annotations

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from coret_pg.cli.context import remarks


def bars() -> Progress:
    """Return progress bars with counts, time spent and time left; hidden off a terminal."""
    return Progress(
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=remarks,
        disable=not remarks.is_terminal,
    )


class StepBars:
    """A bar for each step of a refresh."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def start(self, step: str, total: int) -> None:
        """Add the step's bar."""
        self._tasks[step] = self._progress.add_task(step, total=total)

    def advance(self, step: str, count: int = 1) -> None:
        """Move the step's bar."""
        self._progress.advance(self._tasks[step], count)

    def finish(self, step: str) -> None:
        """Leave the finished bar on the screen."""
        self._progress.refresh()


class TableBars:
    """A bar for each table that is loaded."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, table: str, done: int, total: int | None) -> None:
        """Show how many rows of a table are loaded."""
        if table not in self._tasks:
            self._tasks[table] = self._progress.add_task(table, total=total)
        self._progress.update(self._tasks[table], completed=done, total=total)
