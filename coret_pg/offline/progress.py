"""How a long run tells whoever watches how far it is."""

from typing import Protocol


class Progress(Protocol):
    """A watcher of a run's steps."""

    def start(self, step: str, total: int) -> None:
        """Begin a step of so many tables."""

    def advance(self, step: str, count: int = 1) -> None:
        """Count tables as done."""

    def finish(self, step: str) -> None:
        """End a step."""


class Unwatched:
    """Nobody watches."""

    def start(self, step: str, total: int) -> None:
        """Ignore."""

    def advance(self, step: str, count: int = 1) -> None:
        """Ignore."""

    def finish(self, step: str) -> None:
        """Ignore."""
