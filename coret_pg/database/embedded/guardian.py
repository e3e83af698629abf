"""The process that watches over one embedded server, and stops it after its last client.

It's the postmaster's parent, so it can reap it. Every client holds a shared lock on
clients.lock; when an exclusive one is granted there are no clients left, however they ended.
Standard library only, so that it stays small.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from coret_pg.database.embedded import locks, processes

KEPT_PAUSE_S = 2.0


class Guardian:
    """Watch one postmaster: our own child, or one whose guardian was killed."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.folder: str = job["folder"]
        self.job = job
        self.gone = threading.Event()
        self.send: Callable[[int], None]

    def run(self) -> None:
        """Watch until the server has ended, for whatever reason."""
        guard = locks.open_lock(f"{self.folder}/guardian.lock")
        locks.lock(guard)
        os.ftruncate(guard, 0)
        os.write(guard, f"{os.getpid()}\n".encode())
        if self.job.get("adopt"):
            self._watch(self._adopt(int(self.job["adopt"])))
        else:
            self._watch(self._start())

    def _start(self) -> Callable[[], str]:
        drop: dict[str, Any] = {}
        if self.job["uid"] is not None:
            drop = {"user": self.job["uid"], "group": self.job["gid"], "extra_groups": []}
        try:
            with open(self.job["log"], "ab", opener=_open_log) as log:
                postmaster = subprocess.Popen(
                    self.job["command"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    umask=0o077,
                    start_new_session=True,  # a signal to our process group isn't one to it
                    **drop,
                )
        except OSError as error:
            _say(f"error {error}")
            os._exit(1)
        self.send = postmaster.send_signal
        _say(f"pid {postmaster.pid}")
        return lambda: f"exit {postmaster.wait()}"

    def _adopt(self, pid: int) -> Callable[[], str]:
        self.send = lambda number: os.kill(pid, number)
        pidfd = -1
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # a kernel without it, or the server just ended
                pidfd = os.pidfd_open(pid)
                self.send = lambda number: signal.pidfd_send_signal(pidfd, number)
        _say(f"pid {pid}")

        def wait() -> str:
            if pidfd >= 0:
                poll = select.poll()
                poll.register(pidfd, select.POLLIN)
                poll.poll()
            else:
                while processes.alive(pid):
                    time.sleep(0.5)
            return "exit unknown"  # only a parent learns how its child ended

        return wait

    def _watch(self, wait: Callable[[], str]) -> None:
        signal.signal(signal.SIGTERM, self._on_terminate)
        threading.Thread(target=self._stop_when_unused, daemon=True).start()
        how = wait()
        self.gone.set()
        if self.job.get("rmdir"):
            with contextlib.suppress(OSError):  # a folder for the socket alone: gone, or in use
                Path(self.job["rmdir"]).rmdir()
        _say(how)
        os._exit(0)  # the other thread may sit in flock for ever

    def _stop(self) -> None:
        processes.stop_server(self.send, self.gone.wait)

    def _stop_when_unused(self) -> None:
        try:
            keep = Path(self.folder, "keep")
            clients = locks.open_lock(f"{self.folder}/clients.lock")
            while True:
                locks.lock(clients)
                locks.unlock(clients)
                if keep.exists():
                    time.sleep(KEPT_PAUSE_S)
                    continue
                # Who attaches holds start.lock meanwhile, so ask again once it's ours.
                start = locks.open_lock(f"{self.folder}/start.lock")
                locks.lock(start)
                if locks.try_lock(clients) and not keep.exists():
                    break  # both locks stay ours till this process ends
                os.close(start)
                locks.unlock(clients)
        except OSError as error:  # the folder was deleted: nobody can attach to this server
            sys.stderr.write(f"guardian: {error}: stopping the server\n")
        self._stop()

    def _on_terminate(self, _number: int, _frame: FrameType | None) -> None:
        threading.Thread(target=self._stop, daemon=True).start()


def _open_log(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _say(text: str) -> None:
    """Tell the process that started us; it listens only until the server is ready."""
    with contextlib.suppress(OSError):
        os.write(1, f"{text}\n".encode())


def main() -> None:
    """Detach from the process that called, then watch."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    for number in (signal.SIGINT, signal.SIGHUP):
        # A handler, not SIG_IGN: what is ignored stays ignored in the programs we run.
        signal.signal(number, lambda _number, _frame: None)
    Guardian(json.loads(sys.argv[1])).run()


if __name__ == "__main__":
    main()
