"""What Linux tells about processes of this machine: CPU seconds, memory, parents."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int, with_ended_children: bool = False) -> float:
    """Return the CPU seconds of a process, with its collected children's if asked; 0 once ended."""
    fields = _stat(pid)
    ticks = fields[11:15] if with_ended_children else fields[11:13]
    return sum(int(field) for field in ticks) / _TICKS_A_SECOND


def parent(pid: int) -> int | None:
    """Return the id of a process's parent; None once it ended or where it can't be seen."""
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def status_mb(pid: int | str, name: str) -> float:
    """Return a figure of /proc/PID/status in MB: VmHWM, RssAnon ...; `self` is this process.

    0 for what has no memory of its own any more. Raises OSError once it ended.
    """
    return _megabytes(Path(f"/proc/{pid}/status"), name)


def available_memory_mb() -> float:
    """Return how much memory this machine can give without swapping."""
    return _megabytes(Path("/proc/meminfo"), "MemAvailable")


def proportional_mb(pid: int) -> float:
    """Return the memory of a process, of shared pages its share.

    Raises PermissionError where it is hidden, OSError once the process ended.
    """
    return _megabytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss")


def _megabytes(file: Path, name: str) -> float:
    lines = file.read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0) / 1024


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on: the state, the parent ..."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # ended
        return []
    return text.rpartition(")")[2].split()
