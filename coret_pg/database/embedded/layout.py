"""Where the files of an embedded server are, and the folder of its socket."""

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from coret_pg.database.embedded.account import Account, choose_account, system_dir
from coret_pg.errors import ServerError
from coret_pg.settings import Settings

SOCKET_PATH_LIMIT = 107
DEFAULT_PORT = 5432
TEMPORARY_PREFIX = "coret_pg-"


@dataclass(frozen=True)
class Place:
    """The folder of one server, without symlinks, and what lies in it."""

    folder: Path

    @property
    def pgdata(self) -> Path:
        """The data folder of Postgres."""
        return self.folder / "pgdata"

    @property
    def run(self) -> Path:
        """The usual folder of the socket."""
        return self.folder / "run"

    @property
    def start_lock(self) -> Path:
        """Held while the server is started, stopped or attached to."""
        return self.folder / "start.lock"

    @property
    def clients_lock(self) -> Path:
        """Shared by all clients."""
        return self.folder / "clients.lock"

    @property
    def guardian_lock(self) -> Path:
        """Held by the guardian for its lifetime; it holds the guardian's pid."""
        return self.folder / "guardian.lock"

    @property
    def log(self) -> Path:
        """What the server and the guardian write."""
        return self.folder / "server.log"

    @property
    def keep(self) -> Path:
        """Exists while the server is to outlive its clients."""
        return self.folder / "keep"

    @property
    def password(self) -> Path:
        """The password for connections over TCP."""
        return self.folder / "password"

    @property
    def key(self) -> str:
        """A short name for this place."""
        return _key(self.folder)


def locate(settings: Settings) -> Place | None:
    """Return the place of the server, or None where none was ever set up; change nothing."""
    folder = _nominal(settings)
    return Place(folder.resolve()) if folder.is_dir() else None


def prepare(settings: Settings) -> Place:
    """Return the place of the server; make its folder when it's missing.

    As root, where the server's user can't get to the data folder, the real one is made under
    /var/lib/coret_pg and a symlink leads to it: no folder of the user's is opened up.
    Raises ServerError where no user fits; OSError where a folder can't be made.
    """
    folder = _nominal(settings)
    if folder.is_dir():
        return Place(folder.resolve())
    parent = folder.parent
    parent.mkdir(parents=True, exist_ok=True)
    account = choose_account(settings.server_user, folder / "pgdata")
    if account is None:
        folder.mkdir(mode=0o700, exist_ok=True)
    elif account.may("-x", parent):
        _make_passable(folder)
    else:
        real = system_dir() / _key(folder)
        _make_passable(real)
        if not folder.is_dir():
            folder.unlink(missing_ok=True)  # a symlink to a place that is gone
            try:
                folder.symlink_to(real)
            except FileExistsError:
                if folder.resolve() != real:
                    raise
    return Place(folder.resolve())


def socket_file(folder: Path, port: int) -> Path:
    """Return the path of the socket in that folder."""
    return folder / f".s.PGSQL.{port}"


def socket_folder(settings: Settings, place: Place, account: Account | None, port: int) -> Path:
    """Return the folder for the socket, made and ours; what exists keeps its mode.

    Raises ServerError where the path is too long, or the folder isn't the server's user's.
    """
    if settings.server_socket_dir is not None:
        return _chosen(_absolute(settings.server_socket_dir), account, port)
    if not _problem(place.run, port):
        _make(place.run)
        _own(place.run, account)
        return place.run
    return _temporary(place, account, port)


def is_temporary(folder: Path, place: Place) -> bool:
    """Tell whether a socket's folder is the one made for this place outside of it."""
    return folder.name.startswith(TEMPORARY_PREFIX) and folder.name.endswith(place.key)


def _chosen(folder: Path, account: Account | None, port: int) -> Path:
    problem = _problem(folder, port)
    if problem:
        raise ServerError(
            f"The socket folder {folder} can't be used: {problem}",
            remedy="Set CORET_SERVER_SOCKET_DIR to a shorter path without commas, or unset it",
        )
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if account is not None:
            account.own(folder)
    if account is not None:
        usable = account.may("-x", folder) and account.may("-w", folder)
    else:
        usable = os.access(folder, os.W_OK | os.X_OK)
    if not usable:
        who = f"the server's user {account.name}" if account else "this user"
        raise ServerError(
            f"The socket folder {folder} can't be written to by {who}",
            remedy="Set CORET_SERVER_SOCKET_DIR to a folder of that user, or unset it",
        )
    return folder


def _temporary(place: Place, account: Account | None, port: int) -> Path:
    """Return a private folder among the temporary files, for a data folder with a long path."""
    uid = account.uid if account else os.geteuid()
    bases = [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108 - owner and mode are checked
    for base in bases:
        folder = base / f"{TEMPORARY_PREFIX}{uid}-{place.key}"
        if _problem(folder, port) or not base.is_dir():
            continue
        if account is not None and not account.may("-x", base):
            continue
        _make(folder)
        status = folder.lstat()
        if account is not None and status.st_uid == 0 and stat.S_ISDIR(status.st_mode):
            account.own(folder)  # made by root, so by us: never a stranger's
            status = folder.lstat()
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != uid
            or stat.S_IMODE(status.st_mode) != 0o700
        ):
            raise ServerError(
                f"The socket folder {folder} isn't a private folder of uid {uid}",
                remedy="Remove it, or set CORET_SERVER_SOCKET_DIR to a folder of that user",
            )
        return folder
    raise ServerError(
        f"No folder for the socket has a short enough path: {place.run} and {bases[0]} don't",
        remedy="Set CORET_SERVER_SOCKET_DIR to a folder with a shorter path",
    )


def _problem(folder: Path, port: int) -> str | None:
    """Return why a socket can't be put there: the system and libpq limit its path."""
    length = len(os.fsencode(socket_file(folder, port)))
    if length > SOCKET_PATH_LIMIT:
        return (
            f"with the socket's name its path has {length} bytes, the limit is {SOCKET_PATH_LIMIT}"
        )
    if "," in str(folder):
        return "libpq takes the comma in its path for the start of another host"
    return None


def _make(folder: Path) -> bool:
    """Make a private folder; tell whether it was missing."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def _make_passable(folder: Path) -> None:
    """Make root's folder: the server's user gets to its own folders in it, and lists nothing."""
    if _make(folder):
        folder.chmod(0o711)


def _own(folder: Path, account: Account | None) -> None:
    """Make a folder of ours the server's user's, and private; never what a symlink leads to."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if account is not None:
            os.fchown(fd, account.uid, account.gid)
        os.fchmod(fd, 0o700)
    finally:
        os.close(fd)


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - without resolving symlinks


def _nominal(settings: Settings) -> Path:
    return _absolute(settings.data_dir) / "server"


def _key(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
