"""Run a method in a process of its own, watch it and the server, and collect what it measured."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from bench.join_discovery.measure import MEGABYTE, Measured, Meter, ServerProcesses

_PAUSE_S = 0.1


@dataclass(frozen=True)
class Pool:
    """A built pool, as a method is handed it."""

    tables: int
    dsn: str
    postmaster: int
    csv_folder: Path
    seed: int
    sample: int


Method = Callable[[Pool, Meter, Measured], None]


def run_apart(name: str, method: Method, pool: Pool, most_memory_mb: float) -> Measured:
    """Run a method on a pool; a failure is in the result's `problem`."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, name, method, pool, most_memory_mb))
    server = ServerProcesses(pool.postmaster)
    process.start()
    theirs.close()
    memory: list[tuple[float, float]] = []
    try:
        while not ours.poll(_PAUSE_S):
            used = server.memory_mb()
            if used is not None:
                memory.append((time.monotonic(), used))
        measured: Measured = ours.recv()
    except EOFError:
        process.join()
        return Measured(name, pool.tables, problem=f"ended with {process.exitcode}")
    finally:
        process.join()
    _add_server_peaks(measured, memory)
    return measured


def _add_server_peaks(measured: Measured, memory: list[tuple[float, float]]) -> None:
    for stage in measured.stages:
        stage.server_peak_mb = max(
            (used for at, used in memory if stage.began <= at <= stage.ended), default=None
        )
    peaks = [stage.server_peak_mb for stage in measured.stages if stage.server_peak_mb is not None]
    measured.server_peak_mb = max(peaks, default=None)


def _work(
    connection: Connection, name: str, method: Method, pool: Pool, most_memory_mb: float
) -> None:
    # A method that takes too much fails by itself, instead of some other process.
    limit = int(most_memory_mb * MEGABYTE)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    measured = Measured(name, pool.tables)
    meter = Meter(ServerProcesses(pool.postmaster))
    try:
        method(pool, meter, measured)
    except Exception as error:  # noqa: BLE001
        traceback.print_exc()
        measured.problem = f"{type(error).__name__}: {error}".splitlines()[0]
    measured.stages = meter.stages
    measured.client_peak_mb = meter.client_peak_mb
    connection.send(measured)
    connection.close()
    # Taking apart what it holds can take longer than the method.
    os._exit(0)
