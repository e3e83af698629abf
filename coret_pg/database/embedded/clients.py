"""Who uses a server: each process holds one shared lock for all of its attachments."""

import os
import threading
from pathlib import Path
from types import TracebackType

from coret_pg.database.embedded import locks
from coret_pg.database.embedded.layout import Place

# Serialises the threads of this process; start.lock does so for processes.
guard = threading.RLock()


class Hold:
    """This process's share of the clients' lock of one server."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.count = 0


_holds: dict[Path, Hold] = {}


class Attachment:
    """One use of the embedded server; it counts till it's closed or the process ends."""

    def __init__(self, place: Place, hold: Hold, dsn: str, socket_dir: Path, port: int) -> None:
        self.dsn = dsn
        self.socket_dir = socket_dir
        self.port = port
        self.log_file = place.log
        self._folder = place.folder
        self._hold: Hold | None = hold

    def close(self) -> None:
        """Leave the server; the last one to leave stops it, unless it is kept."""
        with guard:
            hold, self._hold = self._hold, None
            if hold is not None:
                leave(self._folder, hold)

    def __enter__(self) -> "Attachment":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Attachment({self.dsn!r})"


def enter(place: Place) -> Hold:
    """Count one more use by this process; call it with the start lock held.

    Raises OSError where the lock file can't be opened.
    """
    hold = _holds.get(place.folder)
    if hold is None:
        fd = locks.open_lock(place.clients_lock)
        _share(fd)
        hold = _holds[place.folder] = Hold(fd)
    hold.count += 1
    return hold


def leave(folder: Path, hold: Hold) -> None:
    """Count one use less; the last one gives the lock back."""
    hold.count -= 1
    if hold.count == 0 and _holds.get(folder) is hold:
        forget(folder)


def forget(folder: Path) -> None:
    """Give this process's lock back, whatever still uses it."""
    hold = _holds.pop(folder, None)
    if hold is not None:
        os.close(hold.fd)


def has_others(place: Place) -> bool:
    """Tell whether other processes are attached; call it with the start lock held.

    Raises OSError where the lock file can't be opened.
    """
    hold = _holds.get(place.folder)
    fd = hold.fd if hold else locks.open_lock(place.clients_lock)
    alone = locks.try_lock(fd)
    if hold:
        # A refused change from shared to exclusive loses the shared lock. Nobody can use the
        # gap: a guardian that gets the lock then waits for the start lock, and asks again.
        _share(fd)
    else:
        os.close(fd)
    return not alone


def _share(fd: int) -> None:
    # Exclusive only for an instant, by a guardian that is about to wait for the start lock.
    while not locks.try_lock(fd, shared=True):
        os.sched_yield()


def _after_fork() -> None:
    """Close the parent's locks in a forked child: it's no client until it attaches itself.

    Closing leaves the parent's lock alone; unlocking would not.
    """
    global guard  # another thread of the parent may have held it
    guard = threading.RLock()
    for folder in list(_holds):
        forget(folder)


os.register_at_fork(after_in_child=_after_fork)
