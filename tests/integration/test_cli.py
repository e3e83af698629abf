"""The command line: what it prints, and what its exit codes mean."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.embedded_servers import free_port, server_folder, settings_for, stops
from tests.fake_endpoint import FakeEndpoint

PHYSICS = "Which teachers teach physics?"


def coret(
    *arguments: str | Path, environment: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CORET_", "PG", "OPENAI_"))}
    return subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            "from coret_pg.cli.main import run; run()",
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        env={**kept, "NO_COLOR": "1", "COLUMNS": "200", **(environment or {})},
        cwd=cwd,
        timeout=120,
        check=False,
    )


def test_from_files_to_an_answer(dsn: str, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "customers.csv").write_text("customer_id,name\n1,Ann\n2,Bob\n3,Cem\n")
    (folder / "orders.csv").write_text(
        "order_no,customer_id,total\n10,1,5.00\n11,1,7.50\n12,2\n13,3,9\n"
    )
    assert coret("init", "--dsn", dsn).stdout.startswith("coret schema at revision 0003")

    loaded = coret("load", folder, "--dsn", dsn)
    assert loaded.returncode == 0, loaded.stderr
    assert "shop -> shop: 2 tables, 6 rows, 1 rows rejected" in loaded.stdout
    assert "orders.csv:4:" in loaded.stderr

    refreshed = coret("refresh", "--dsn", dsn)
    assert refreshed.returncode == 0, refreshed.stderr
    assert "2 tables: 2 new" in refreshed.stdout

    shown = coret("retrieve", "What is the total of the orders of each customer?", "--dsn", dsn)
    assert shown.returncode == 0, shown.stderr
    assert "shop.customers.customer_id = shop.orders.customer_id  (1:N, confidence" in shown.stdout
    assert "CREATE TABLE shop.orders (" in shown.stdout

    answer = json.loads(coret("retrieve", "orders of each customer", "--json", "--dsn", dsn).stdout)
    assert {table["name"] for table in answer["tables"]} == {"shop.customers", "shop.orders"}
    assert answer["path"] == "no-llm"

    status = json.loads(coret("status", "--json", "--dsn", dsn).stdout)
    assert (status["tables"], status["embedding_model"].split(" ")[0]) == (2, "all-MiniLM-L6-v2")
    assert [step["due"] for step in status["steps"]] == [0] * 7
    assert "all-MiniLM-L6-v2 by onnx" in coret("status", "--dsn", dsn).stdout


def test_joins_on_the_command_line(demo_dsn: str, tmp_path: Path) -> None:
    dsn = ("--dsn", demo_dsn)
    shown = coret("joins", "school.enrolments", *dsn)
    assert shown.returncode == 0, shown.stderr
    assert "school.students" in shown.stdout
    assert "the names fit" in shown.stdout
    (first, *_) = json.loads(coret("joins", "school.enrolments", "--json", *dsn).stdout)
    assert first["confidence"] > 0.5

    path = coret("join-path", "school.students", "school.courses", *dsn)
    assert path.stdout.startswith("1. school.students.")
    assert coret("join-path", "school.students", "clinic.patients", *dsn).returncode == 10

    ends = (
        f"school.enrolments.{first['own_columns'][0]}",
        f"{first['other_table']}.{first['other_columns'][0]}",
    )
    assert coret("accept-join", *ends, *dsn).stdout.startswith("accepted: school.enrolments.")
    (first, *_) = json.loads(coret("joins", "school.enrolments", "--json", *dsn).stdout)
    assert (first["confidence"], first["evidence"]) == (1, "confirmed")
    assert coret("reject-join", *ends, *dsn).returncode == 0
    assert ends[1].rpartition(".")[0] not in [
        join["other_table"]
        for join in json.loads(coret("joins", "school.enrolments", "--json", *dsn).stdout)
    ]
    assert coret("forget-join", *ends, *dsn).returncode == 0
    unknown = coret("reject-join", "school.nope.x", ends[1], *dsn)
    assert (unknown.returncode, "no table" in unknown.stderr) == (2, True)

    drawn = coret("join-graph", "school", *dsn)
    assert drawn.stdout.startswith("erDiagram\n")
    assert "}o..||" in drawn.stdout
    file = tmp_path / "school.svg"
    assert coret("join-graph", "school", "--format", "svg", "-o", file, *dsn).returncode == 0
    assert file.read_text(encoding="utf-8").startswith("<svg ")
    answer = coret("join-graph", "--question", PHYSICS, "--format", "dot", *dsn)
    assert answer.stdout.startswith("digraph joins {")
    assert coret("join-graph", *dsn).returncode == 2
    assert coret("join-graph", "no_such_schema", *dsn).returncode == 2
    assert coret("join-graph", "school", "-o", "/no/such/folder/x", *dsn).returncode == 2


def test_exit_codes(demo_dsn: str, dsn: str) -> None:
    def code(*arguments: str | Path) -> int:
        done = coret(*arguments)
        assert "Traceback" not in done.stderr
        return done.returncode

    assert code("retrieve", PHYSICS, "--dsn", demo_dsn) == 0
    assert code("retrieve", "", "--dsn", demo_dsn) == 2
    assert code("retrieve", PHYSICS, "-k", "0", "--dsn", demo_dsn) == 2
    assert code("retrieve", "--no-such-option") == 2
    assert code("retrieve", PHYSICS, "--dsn", f"host=127.0.0.1 port={free_port()}") == 3
    assert code("load", "/no/such/file", "--dsn", dsn) == 4
    assert (
        code("eval", "--pool", "spider-dev", "--dataset", "/no/such/folder", "--dsn", demo_dsn) == 7
    )
    with FakeEndpoint() as endpoint:
        endpoint.answer('{"tables": []}')
        environment = {"CORET_LLM_MODEL": "m", "CORET_LLM_BASE_URL": endpoint.base_url}
        done = coret("retrieve", PHYSICS, "--dsn", demo_dsn, environment=environment)
    assert (done.returncode, "No table of the pool fits" in done.stdout) == (10, True)


def test_errors_name_the_remedy_and_keep_the_password(dsn: str) -> None:
    done = coret("retrieve", PHYSICS, "--dsn", f"postgresql://u:hunter2@127.0.0.1:{free_port()}/d")
    assert done.stderr.startswith("error: No connection to ")
    assert "next: Check that the server runs" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout
    uninitialised = coret("status", "--dsn", dsn)
    assert "Run `coret init`" in uninitialised.stderr


def test_the_demo_measures_itself_and_eval_writes_a_report(dsn: str, tmp_path: Path) -> None:
    shown = coret("demo", "--dsn", dsn)
    assert shown.returncode == 0, shown.stderr
    assert "refreshed 46 tables" in shown.stdout
    assert "of 25 sets are exactly right" in shown.stdout
    measured = coret("eval", "--pool", "demo", "--results", tmp_path, "--dsn", dsn)
    assert measured.returncode == 0, measured.stderr
    folder = next(tmp_path.iterdir())
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["questions"] == 25
    assert 0.5 < summary["all"]["DR@10"]["recall"] <= 1
    assert len((folder / "questions.jsonl").read_text().splitlines()) == 25
    # Twice is as good as once.
    assert coret("demo", "--dsn", dsn).returncode == 0


def test_the_embedded_server_starts_by_itself_and_up_keeps_it() -> None:
    with server_folder() as folder:
        environment = {"CORET_DATA_DIR": str(folder), "HOME": str(folder)}
        checked = coret("doctor", environment=environment, cwd=folder)
        assert (
            "ok   extension vector" in checked.stdout or "warn extension vector" in checked.stdout
        )
        started = coret("up", environment=environment, cwd=folder)
        address = started.stdout.split('psql "')[1].split('"')[0]
        with psycopg.connect(address) as connection:
            # Even where our schema, named as the role, is there already.
            connection.execute("CREATE SCHEMA IF NOT EXISTS coret")
            connection.execute("CREATE TABLE unqualified (id int)")
            where = connection.execute("SELECT to_regclass('public.unqualified') IS NOT NULL")
            assert where.fetchone() == (True,)
        assert "is stopped" in coret("down", environment=environment, cwd=folder).stdout
        assert "was not running" in coret("down", environment=environment, cwd=folder).stdout
        assert stops(settings_for(folder))


@pytest.mark.parametrize(
    "command",
    ["", "init", "load", "refresh", "status", "retrieve", "eval", "demo", "doctor", "up", "down"],
)
def test_every_command_has_help(command: str) -> None:
    done = coret(*command.split(), "--help")
    assert done.returncode == 0
    assert "Usage:" in done.stdout
