"""CPU, memory and time of one method: its own process, and every process of the server.

The server's processes are those below the postmaster, found through /proc: so it has to run on
this Linux machine. What ended counts too: the postmaster collects it.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psycopg

from bench import processes

MEGABYTE = 2**20


@dataclass
class Stage:
    """What one stage of a method took; `began` and `ended` are on the machine's clock."""

    name: str
    began: float
    ended: float
    client_cpu: float
    server_cpu: float
    server_peak_mb: float | None = None

    @property
    def seconds(self) -> float:
        """Return the wall seconds."""
        return self.ended - self.began

    @property
    def cpu(self) -> float:
        """Return the CPU seconds of all processes."""
        return self.client_cpu + self.server_cpu


@dataclass
class Measured:
    """What a method took and found on one pool."""

    method: str
    tables: int
    stages: list[Stage] = field(default_factory=list)
    client_peak_mb: float | None = None
    server_peak_mb: float | None = None
    # What the stages are multiplied by: more than 1 where a sample stands for the whole.
    scale: float = 1.0
    pairs: int | None = None
    fingerprint: int | None = None
    facts: dict[str, float] = field(default_factory=dict)
    # Column pairs of a sample, by number, and whether each passes.
    verdicts: list[tuple[int, int, bool]] = field(default_factory=list)
    problem: str | None = None

    @property
    def cpu(self) -> float:
        """Return the CPU seconds of all stages, extrapolated."""
        return self.scale * sum(stage.cpu for stage in self.stages)

    @property
    def seconds(self) -> float:
        """Return the wall seconds of all stages, extrapolated."""
        return self.scale * sum(stage.seconds for stage in self.stages)

    def stage_cpu(self, *names: str) -> float:
        """Return the CPU seconds of some stages."""
        return self.scale * sum(stage.cpu for stage in self.stages if stage.name in names)

    def as_json(self) -> dict[str, object]:
        """Return what is kept of it in a file."""
        known = asdict(self)
        del known["verdicts"]
        return known | {
            "cpu": self.cpu,
            "seconds": self.seconds,
            "stages": [
                asdict(stage) | {"cpu": stage.cpu, "seconds": stage.seconds}
                for stage in self.stages
            ],
        }


class ServerProcesses:
    """The postmaster of a server on this machine, and the processes below it."""

    def __init__(self, postmaster: int) -> None:
        self.postmaster = postmaster

    @classmethod
    def of(cls, connection: psycopg.Connection) -> ServerProcesses:
        """Return the processes of the server at the other end of a connection.

        Raises ProcessLookupError where it isn't on this machine.
        """
        parent = processes.parent(connection.info.backend_pid) or 0
        name = Path(f"/proc/{parent}/comm")
        if not name.exists() or not name.read_text().startswith("postgres"):
            raise ProcessLookupError("the server's processes aren't visible from here")
        return cls(parent)

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all its processes, ended ones included, since it started."""
        running = sum(processes.cpu_seconds(pid) for pid in self._children())
        return running + processes.cpu_seconds(self.postmaster, with_ended_children=True)

    def memory_mb(self) -> float | None:
        """Return the sum of the processes' proportional set sizes; None where it is hidden."""
        total = 0.0
        for pid in [self.postmaster, *self._children()]:
            try:
                total += processes.proportional_mb(pid)
            except PermissionError:
                return None
            except OSError:  # ended meanwhile
                continue
        return total

    def _children(self) -> list[int]:
        listed = Path(f"/proc/{self.postmaster}/task/{self.postmaster}/children")
        with suppress(OSError):
            return [int(pid) for pid in listed.read_text().split()]
        running = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [pid for pid in running if processes.parent(pid) == self.postmaster]


class Meter:
    """Measures the stages of a method, from inside its process."""

    def __init__(self, server: ServerProcesses) -> None:
        self._server = server
        self.stages: list[Stage] = []
        self.client_peak_mb = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure what is done in the block."""
        began, client, server = time.monotonic(), _own_cpu(), self._server.cpu_seconds()
        yield
        self.stages.append(
            Stage(
                name, began, time.monotonic(),
                _own_cpu() - client, self._server.cpu_seconds() - server,
            )
        )  # fmt: skip
        self.client_peak_mb = processes.status_mb("self", "VmHWM")


def _own_cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
