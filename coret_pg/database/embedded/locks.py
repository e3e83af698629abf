"""Advisory file locks (flock): the kernel gives them back however their holder dies.

Standard library only: the guardian imports this.
"""

import fcntl
import os
from os import PathLike


def open_lock(path: str | PathLike[str]) -> int:
    """Open, or create, a lock file; the descriptor isn't inherited by programs we run.

    Raises OSError where the folder is missing or not writable.
    """
    # O_NOFOLLOW: as root the folder may belong to the server's user, who is trusted with less.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def touch(path: str | PathLike[str]) -> None:
    """Make an empty private file where there is none.

    Raises OSError where the folder is missing or not writable.
    """
    os.close(open_lock(path))


def lock(fd: int) -> None:
    """Wait until the lock is exclusively ours."""
    fcntl.flock(fd, fcntl.LOCK_EX)


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Take the lock if it's free, without waiting; tell whether it was."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(fd: int) -> None:
    """Give the lock back and keep the file open."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def held_exclusively(path: str | PathLike[str]) -> bool:
    """Tell whether some process holds the lock exclusively; a missing file is held by nobody."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        return not try_lock(fd, shared=True)
    finally:
        os.close(fd)
