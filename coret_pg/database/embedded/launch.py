"""Starting the guardian, and with it the postmaster; and knowing when the server is ready."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

import coret_pg
from coret_pg.database.embedded import failures, processes
from coret_pg.database.embedded.account import Account
from coret_pg.database.embedded.cluster import USER, environment
from coret_pg.database.embedded.layout import Place
from coret_pg.errors import ServerError

START_LIMIT_S = 60.0
REPORT_LIMIT_S = 20.0
CONNECT_LIMIT_S = 5
RETRY_S = 0.03
DOING = "Starting the embedded server"


class Guardian:
    """Our end of the line to a guardian we started; it speaks until we close it."""

    def __init__(self, place: Place, job: dict[str, Any]) -> None:
        self.place = place
        self.log_offset = failures.log_size(place.log)
        self.exit_status: str | None = None
        self.was_killed = False
        self._buffer = b""
        self._read, write = os.pipe()
        job = {"folder": str(place.folder), "log": str(place.log), "rmdir": None, **job}
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            log = os.open(place.log, flags, 0o600)
            try:
                # It forks itself and this first process ends at once: no zombie is left to us.
                result = subprocess.run(
                    # -S: none of the environment's start-up hooks; it needs only our own package.
                    [sys.executable, "-S", "-P", "-m", f"{__package__}.guardian", json.dumps(job)],
                    cwd="/",
                    env=environment() | {"PYTHONPATH": str(Path(coret_pg.__file__).parents[1])},
                    stdin=subprocess.DEVNULL,
                    stdout=write,
                    stderr=log,
                    start_new_session=True,
                    check=False,
                )
            finally:
                os.close(log)
        except BaseException:
            os.close(self._read)
            raise
        finally:
            os.close(write)
        if result.returncode:
            self.close()
            raise self.failed()

    def __enter__(self) -> "Guardian":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening."""
        if self._read >= 0:
            os.close(self._read)
            self._read = -1

    def postmaster(self) -> int:
        """Return the postmaster's pid. Raises ServerError where the guardian can't start it."""
        line = self._line(REPORT_LIMIT_S)
        if line is None or not line.startswith("pid "):
            raise self.failed(line or "the guardian gave no answer")
        return int(line.split()[1])

    def ended(self, wait_s: float) -> bool:
        """Wait that long, and tell whether the postmaster has ended."""
        if self.exit_status is None:
            line = self._line(wait_s)
            if line is not None:
                self.exit_status = line.removeprefix("exit ")
        return self.exit_status is not None

    def failed(self, hint: str = "") -> ServerError:
        """Return the error for a server that didn't start, by what the log says."""
        number = None
        if self.exit_status and self.exit_status.startswith("-"):
            number = -int(self.exit_status)
        text = failures.log_since(self.place.log, self.log_offset)
        return failures.explain(
            text or hint, doing=DOING, where=self.place.log, signal_number=number
        )

    def _line(self, wait_s: float) -> str | None:
        """Return the next line; None where none came in time. A broken line counts as an exit."""
        deadline = time.monotonic() + wait_s
        while b"\n" not in self._buffer:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._read], [], [], left)[0]:
                return None
            part = os.read(self._read, 4096)
            if not part:
                self.was_killed = True
                return "exit unknown"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")


def start_postmaster(
    place: Place,
    command: list[str],
    account: Account | None,
    private_socket_dir: Path | None,
) -> Guardian:
    """Start a guardian that starts the postmaster. Raises ServerError or OSError."""
    return Guardian(
        place,
        {
            "command": command,
            "uid": account.uid if account else None,
            "gid": account.gid if account else None,
            "rmdir": str(private_socket_dir) if private_socket_dir else None,
        },
    )


def adopt_postmaster(place: Place, pid: int, private_socket_dir: Path | None) -> None:
    """Start a guardian for a running server whose own was killed. Raises ServerError or OSError."""
    job = {"adopt": pid, "rmdir": str(private_socket_dir) if private_socket_dir else None}
    with Guardian(place, job) as guardian:
        guardian.postmaster()


def wait_ready(
    place: Place, dsn: str, pid: int, guardian: Guardian | None
) -> psycopg.Connection | None:
    """Return a connection to the server as soon as it accepts one.

    None where a server that another process started has ended meanwhile, or ours lost its
    guardian: look again. Raises ServerError where ours ends, or isn't ready in time.
    """
    offset = guardian.log_offset if guardian else failures.log_size(place.log)
    deadline = time.monotonic() + START_LIMIT_S
    pgdata = str(place.pgdata)
    while True:
        try:
            return psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_LIMIT_S)
        except psycopg.OperationalError as error:
            refusal = " ".join(str(error).split())
        if guardian is not None:
            if guardian.ended(RETRY_S):
                if guardian.was_killed and processes.is_postmaster(pid, pgdata):
                    return None
                raise guardian.failed()
        elif not processes.is_postmaster(pid, pgdata):
            return None
        else:
            time.sleep(RETRY_S)
        if time.monotonic() > deadline:
            text = failures.log_since(place.log, offset)
            raise ServerError(
                f"The embedded server in {place.folder} isn't ready after {START_LIMIT_S:.0f} "
                f"seconds ({refusal}); the last lines of its log:\n{failures.last_lines(text)}",
                remedy=f"See {place.log}, and try again when the machine is less busy",
            )


def conninfo(socket_dir: Path, port: int, dbname: str) -> str:
    """Return the DSN of a database on that socket."""
    return make_conninfo(host=str(socket_dir), port=port, user=USER, dbname=dbname)
