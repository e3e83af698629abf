"""Whom Postgres runs as: ourselves, or, as it refuses root, a system user root drops to."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coret_pg.errors import ServerError

SYSTEM_DIR = Path("/var/lib/coret_pg")
CREATED_USER = "coret"
CHOOSE_USER = "Set CORET_SERVER_USER to an existing user other than root, or run as another user"


@dataclass(frozen=True)
class Account:
    """A system user the server is run as."""

    name: str
    uid: int
    gid: int

    def drop(self) -> dict[str, Any]:
        """Return the arguments with which subprocess runs a program as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Give a file or folder of our own to this user."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def may(self, flag: str, path: Path) -> bool:
        """Ask, as this user, what `test` says of the path: -x, -w, -r.

        Only the kernel knows: access lists and mounts count beside the modes.
        Raises ServerError where root may not become that user.
        """
        try:
            result = subprocess.run(
                ["/bin/sh", "-c", 'test "$1" "$2"', "sh", flag, str(path)],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                **self.drop(),
            )
        except OSError as error:
            raise cannot_drop(self, error) from error
        return result.returncode == 0


def cannot_drop(account: Account, error: OSError) -> ServerError:
    """Return the error for a root that isn't allowed to become another user."""
    return ServerError(
        f"Postgres refuses to run as root, and becoming the user {account.name} "
        f"was refused too: {error.strerror}",
        remedy="Run as a user other than root, or pass --dsn with a server of your own",
    )


def choose_account(server_user: str | None, pgdata: Path) -> Account | None:
    """Return the user to drop to; None where we aren't root and nothing is dropped.

    Existing data stays its owner's. Raises ServerError where no user fits or none can be made.
    """
    if os.geteuid() != 0:
        return None
    owner = _owner(pgdata)
    if server_user is not None:
        account = _named(server_user)
        if account is None or account.uid == 0:
            problem = "doesn't exist" if account is None else "is root, which Postgres refuses"
            raise ServerError(f"The user {server_user} {problem}", remedy=CHOOSE_USER)
        if owner is not None and owner.uid != account.uid:
            raise ServerError(
                f"The data in {pgdata} belongs to {owner.name}, not to {server_user}",
                remedy=f"Set CORET_SERVER_USER to {owner.name}, or unset it",
            )
        return account
    return owner or _named("postgres") or _named(CREATED_USER) or _create()


def system_dir() -> Path:
    """Return the folder for what a user's own folders can't hold; make it when it's missing.

    Raises ServerError where someone else than root could write to it; OSError if it can't be made.
    """
    if not SYSTEM_DIR.exists():
        SYSTEM_DIR.mkdir(parents=True, exist_ok=True)
        SYSTEM_DIR.chmod(0o755)
    status = SYSTEM_DIR.stat()
    if status.st_uid != 0 or status.st_mode & 0o022:
        raise ServerError(
            f"{SYSTEM_DIR} can be written to by others than root",
            remedy=f"Make it root's again: chown root {SYSTEM_DIR} && chmod 755 {SYSTEM_DIR}",
        )
    return SYSTEM_DIR


def _owner(pgdata: Path) -> Account | None:
    try:
        status = pgdata.stat()
    except FileNotFoundError:
        return None
    if status.st_uid == 0:
        return None
    try:
        name = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:  # a volume of another machine
        name = f"uid {status.st_uid}"
    return Account(name, status.st_uid, status.st_gid)


def _named(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid)


def _create() -> Account:
    shell = shutil.which("nologin", path="/usr/sbin:/sbin:/usr/bin:/bin") or "/bin/false"
    command = ["useradd", "--system", "--no-create-home", "--user-group", "--shell", shell]
    try:
        result = subprocess.run(
            [*command, CREATED_USER],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        problem = result.stderr.strip()
    except OSError as error:
        problem = f"useradd can't be run: {error.strerror}"
    # Another process may have created it at the same moment: what counts is that it exists.
    account = _named(CREATED_USER)
    if account is None:
        raise ServerError(
            "Postgres refuses to run as root, and the system user "
            f"{CREATED_USER} can't be created: {problem}",
            remedy=CHOOSE_USER,
        )
    return account
