"""Check docker/ where no Docker is: its steps in chroots, its services as processes.

The Dockerfile's own steps are run, each stage in a chroot of its own, and what compose.yaml says of
the services is done with them. Of Docker's images only Debian's is made from nothing (debootstrap);
the one of Postgres is stood in for by Debian's package of the same version, set up as that image's
entry point does it. Then the integration tests run on that Postgres.

Needs root, debootstrap and a mirror of Debian. DEBIAN_MIRROR names one, DOCKER_CHECK_FOLDER a
folder to work in; the bare system in it is kept for the next time.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from chroots import Process, Root, build, copy_root, read_dockerfile

DOCKER = Path(__file__).resolve().parent
CHECKOUT = DOCKER.parent
POSTGRES = "/usr/lib/postgresql/17/bin"
INSTALL = "apt-get update && apt-get install --yes --no-install-recommends"
QUESTION = "Which teachers teach physics?"
MAKE_WAREHOUSE = (
    "from pathlib import Path; from coret_pg.demo import build_warehouse; "
    'list(build_warehouse(Path("/tmp/warehouse")))'
)
TABLES = ("school.teachers", "school.courses", "school.subjects")
# It expects no warning; coret doctor warns about Debian's pgvector, which is 0.8.0.
NOT_HERE = "tests/integration/test_doctor_databases.py::test_refreshed_pool_is_all_well"
READY_LIMIT_S = 60
_NEW_NETWORK = 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "*_cache", "__pycache__", "dist", "build", "results"
)


def main() -> int:
    """Run all of it; end with an error at the first thing that isn't as it should be."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        print(
            "docker-check needs root and debootstrap (apt-get install debootstrap)", file=sys.stderr
        )
        return 2
    # So that what runs in the chroots is ended then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    work = Path(os.environ.get("DOCKER_CHECK_FOLDER", CHECKOUT / "build" / "docker-check"))
    work.mkdir(parents=True, exist_ok=True)
    for left in work.iterdir():
        if left.name != "base":
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    roots = build_images(work)
    tests = step("tests", lambda: test_image(work, roots))
    leave_network()
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    services = compose["services"]
    give_secrets(services, roots)
    with database(services["database"], roots["database"], work) as address:
        step("worker", lambda: check_worker(services["worker"], roots, work))
        step("plain SQL", lambda: check_plain_sql(roots, address))
    step("integration tests on Postgres 17", lambda: run_tests(tests))
    print("docker/ is as it should be")
    return 0


def step(name: str, do: Any) -> Any:
    """Do one part, and say how long it took."""
    print(f"-- {name}", flush=True)
    since = time.monotonic()
    result = do()
    print(f"   {name}: {time.monotonic() - since:.0f} s", flush=True)
    return result


# --- images


def build_images(work: Path) -> dict[str, Root]:
    """Carry out the Dockerfile, each stage in a root of its own."""
    stages = read_dockerfile((DOCKER / "Dockerfile").read_text())
    step("base system", lambda: base_system(work / "base"))
    roots: dict[str, Root] = {}
    for name, stage in stages.items():
        copy_root(work / "base", work / name)
        root = Root(work / name, certificates(work / name))
        match stage.base:
            case "debian:trixie-slim":
                pass
            case "postgres:17-trixie":
                step("Postgres", lambda root=root: stand_in_for_postgres(root))
            case _:
                raise SystemExit(f"check.py has nothing that stands for {stage.base}")
        roots[name] = step(name, lambda s=stage, r=root: build(s, r, CHECKOUT, roots))
    return roots


def base_system(folder: Path) -> None:
    """Make Debian 13 with its essential packages, as the image debian:trixie-slim has them."""
    if not (folder / "etc/debian_version").exists() or (folder / "debootstrap").exists():
        shutil.rmtree(folder, ignore_errors=True)
        mirror = os.environ.get("DEBIAN_MIRROR")
        command = ["debootstrap", "--variant=minbase", "trixie", str(folder)]
        subprocess.run(
            command + ([mirror] if mirror else []), stdout=subprocess.DEVNULL, check=True
        )
    # As in that image: installing a server doesn't start it.
    policy = folder / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
    # The containers have one network here, so the service's name is this machine's.
    (folder / "etc/hosts").write_text("127.0.0.1 localhost database\n")


def certificates(folder: Path) -> dict[str, str]:
    """Let pip trust what this machine's environment says it should."""
    own = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if not own:
        return {}
    inside = "usr/local/share/this-machine.pem"
    shutil.copy(own, folder / inside)
    return {"PIP_CERT": f"/{inside}"}


def stand_in_for_postgres(root: Root) -> None:
    """Install the Postgres of the image postgres:17-trixie, and set it up alike."""
    settings = root.path("/etc/postgresql-common")
    settings.mkdir()
    (settings / "createcluster.conf").write_text("create_main_cluster = false\n")
    root.run(f"{INSTALL} postgresql-17")
    root.environment |= {
        "PATH": f"{POSTGRES}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PGDATA": "/var/lib/postgresql/data",
        "LANG": "C.UTF-8",
    }


def test_image(work: Path, roots: dict[str, Root]) -> Root:
    """Make a root with that Postgres, coret_pg, the checkout and what its tests need."""
    copy_root(work / "database", work / "tests")
    root = Root(work / "tests", dict(roots["database"].environment), workdir="/src")
    shutil.copytree(CHECKOUT, work / "tests/src", ignore=_NOT_COPIED)
    shutil.copytree(work / "build/opt/coret", work / "tests/opt/coret", symlinks=True)
    root.run(f"{INSTALL} python3 python3-venv")
    pip = "/opt/coret/bin/pip install --require-hashes"
    root.run(f"{pip} -r requirements/dev.txt -r requirements/build.txt")
    return root


# --- services


def leave_network() -> None:
    """Go on in a network of our own: nothing from here on may reach anything outside."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK):
        raise SystemExit(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def give_secrets(services: dict[str, Any], roots: dict[str, Root]) -> None:
    """Put new passwords where compose.yaml has the services find them."""
    values: dict[str, str] = {}
    for name, service in services.items():
        folder = roots[name].path("/run/secrets")
        folder.mkdir(parents=True, exist_ok=True)
        for secret in service["secrets"]:
            # With every sign that needs care in SQL, in a shell and in libpq's file.
            value = values.setdefault(secret, secrets.token_hex(8) + " '\":\\$;")
            (folder / secret).write_text(value + "\n")


@contextmanager
def database(service: dict[str, Any], root: Root, work: Path) -> Iterator[str]:
    """Start the database as its image's entry point does; yield the superuser's DSN."""
    environment = dict(service["environment"])
    name, password = environment.pop("POSTGRES_DB"), environment.pop("POSTGRES_PASSWORD_FILE")
    root.run("install -d -o postgres -g postgres /var/lib/postgresql/data /run/postgresql")
    root.run(
        f"initdb --username=postgres --pwfile={password}"
        " --auth-local=trust --auth-host=scram-sha-256"
        " && echo 'host all all all scram-sha-256' >> $PGDATA/pg_hba.conf",
        user="postgres",
    )
    command = ["postgres", "-c", "listen_addresses=*"]
    server = root.start(command, work / "database.log", user="postgres")
    try:
        until_healthy(root, ["CMD", "pg_isready"], server, user="postgres")
        root.run(f"createdb {name}", user="postgres")
        for file in sorted(root.path("/docker-entrypoint-initdb.d").glob("*.sql")):
            inside = f"/docker-entrypoint-initdb.d/{file.name}"
            root.run(
                f"psql --no-psqlrc --set=ON_ERROR_STOP=1 --dbname={name} --file={inside}",
                user="postgres",
            )
        until_healthy(root, service["healthcheck"]["test"], server, user="postgres")
        extensions = root.run(f"psql --dbname={name} --command='\\dx'", user="postgres")
        print(extensions.rstrip())
        expect(extensions, "coret", "vector")
        yield "host=database user=postgres"
        code = server.stop(signal.SIGINT)
        if code:
            raise SystemExit(f"the database ended with {code}:\n{server.log.read_text()}")
    finally:
        server.kill()


def until_healthy(root: Root, test: list[str], server: Process, **more: str) -> None:
    """Wait until a health check passes."""
    ends = time.monotonic() + READY_LIMIT_S
    kind, *command = test
    if kind != "CMD":
        raise SystemExit(f"check.py knows no health check {kind}")
    while server.outer.poll() is None and time.monotonic() < ends:
        log = root.folder.with_name("health.log")
        if root.start(command, log, **more).outer.wait() == 0:
            return
        time.sleep(0.5)
    raise SystemExit(f"{command} doesn't pass:\n{server.log.read_text()}")


def check_worker(service: dict[str, Any], roots: dict[str, Root], work: Path) -> None:
    """Start the worker, load and refresh a warehouse, and ask from both sides."""
    root, server = roots["worker"], roots["database"]
    environment = service["environment"]
    process = root.start(
        [*root.entrypoint, *service["command"]], work / "worker.log", **environment
    )
    try:
        until_healthy(root, service["healthcheck"]["test"], process, **environment)
        load = (
            f"mkdir /tmp/warehouse && python3 -c '{MAKE_WAREHOUSE}' && coret load /tmp/warehouse"
            " --dsn 'host=database dbname=warehouse user=postgres'"
        )
        print(root.run(load, PGPASSWORD=read_secret(server, "postgres_password")).rstrip())
        print(root.run("coret refresh", **environment).rstrip())
        answer = root.run(f"coret retrieve '{QUESTION}'", **environment)
        expect(answer, *TABLES)
        server.run(
            "psql --set=ON_ERROR_STOP=1 warehouse --command='CREATE ROLE analyst LOGIN'"
            " --command='GRANT coret_reader TO analyst'"
            " --command='GRANT USAGE ON SCHEMA school TO analyst'"
            " --command='GRANT SELECT ON ALL TABLES IN SCHEMA school TO analyst'",
            user="postgres",
        )
        ask = f"SELECT * FROM coret.retrieve('{QUESTION}')"  # noqa: S608
        found = server.run(f'psql --username=analyst warehouse --command="{ask}"', user="postgres")
        print(found.rstrip())
        expect(found, *(table.partition(".")[2] for table in TABLES))
        code = process.stop(signal.SIGTERM)
        if code:
            raise SystemExit(f"the worker ended with {code}:\n{process.log.read_text()}")
    finally:
        process.kill()


def check_plain_sql(roots: dict[str, Root], address: str) -> None:
    """Set up a database without the extension, and run the demo in it."""
    roots["database"].run("createdb plain", user="postgres")
    dsn = f"'{address} dbname=plain'"
    password = read_secret(roots["database"], "postgres_password")
    for _ in range(2):
        print(roots["worker"].run(f"coret init --dsn {dsn}", PGPASSWORD=password).rstrip())
    score = roots["worker"].run(f"coret demo --dsn {dsn}", PGPASSWORD=password)
    print(score.rstrip().splitlines()[-1])
    expect(score, "of 25 sets are exactly right")


def read_secret(root: Root, name: str) -> str:
    """Return a password."""
    return root.path(f"/run/secrets/{name}").read_text().removesuffix("\n")


def expect(text: str, *wanted: str) -> None:
    """End with an error unless all of this is in a text."""
    for part in wanted:
        if part not in text:
            raise SystemExit(f"{part} is missing in:\n{text}")


def run_tests(root: Root) -> None:
    """Run the integration tests on a server of this Postgres."""
    python = "/opt/coret/bin/python -m"
    tests = f"{python} pytest -q tests/integration --deselect {NOT_HERE}"
    root.run(f"{python} tests.other_server {POSTGRES} {tests}", shown=True)


if __name__ == "__main__":
    sys.exit(main())
