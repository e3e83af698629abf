"""The one path through loading: find the sources, load each in a transaction of its own."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from coret_pg.errors import CoretError, DatabaseError, InputError, LoadError
from coret_pg.loading.dump_load import load_dump
from coret_pg.loading.names import checked_schema
from coret_pg.loading.report import LoadFailed, LoadReport, Progress, rejects_error
from coret_pg.loading.sources import Source, find_sources
from coret_pg.loading.sqlite_load import load_sqlite
from coret_pg.loading.table_files import load_table_files
from coret_pg.loading.target import Options, Target, first_line

_LOADERS = {"sqlite": load_sqlite, "dump": load_dump, "tables": load_table_files}


def load_path(
    connection: psycopg.Connection[Any],
    path: Path,
    *,
    schema: str | None = None,
    replace: bool = False,
    keys: bool = True,
    strict: bool = False,
    progress: Progress | None = None,
) -> list[LoadReport]:
    """Load a file, or every source database under a folder; return one report a source.

    A source is loaded wholly or not at all, each in a transaction of its own (a savepoint
    where the caller's transaction is open). Raises InputError for a schema that can't be
    used; LoadError for a file that can't be loaded, with the finished reports in
    `LoadFailed.reports`; DatabaseError where the connection is lost.
    """
    sources = find_sources(path)
    if schema is not None and len(sources) > 1:
        raise InputError(
            f"A schema is given, but {path} holds {len(sources)} source databases",
            remedy="Leave out --schema, or load one file at a time",
        )
    options = Options(replace=replace, keys=keys, strict=strict, progress=progress)
    doubles = Counter(source.name for source in sources)
    reports: list[LoadReport] = []
    failures: list[CoretError] = []
    for source in sources:
        try:
            if doubles[source.name] > 1:
                raise _doubled(source, sources)
            loaded = frozenset(name for report in reports for name in report.schemas)
            reports.append(_load_source(connection, source, schema, options, loaded))
        except (LoadError, InputError, DatabaseError) as error:
            if connection.closed or (len(sources) == 1 and not isinstance(error, LoadError)):
                raise
            failures.append(error)
    if failures:
        raise _failed(path, sources, reports, failures) from failures[0]
    return reports


def _load_source(
    connection: psycopg.Connection[Any],
    source: Source,
    schema: str | None,
    options: Options,
    loaded: frozenset[str],
) -> LoadReport:
    started = time.monotonic()
    name = source.name if schema is None else schema
    report = LoadReport(source.path, checked_schema(name))
    if report.schema != name:
        report.remarks.append(f"schema: {name!r} is named {report.schema!r}")
    target = Target(connection, report, options, loaded)
    try:
        with connection.transaction():
            before = target.prepare()
            _LOADERS[source.kind](source, target)
            if options.strict and report.rejected:
                raise rejects_error(report)
            target.restore(before)
    except psycopg.Error as error:
        if connection.closed:
            raise DatabaseError(
                f"{source.path}: the connection was lost: {first_line(error)}",
                remedy="Check the server and load again: nothing of this file was kept",
            ) from error
        context = (error.diag.context or "").partition("\n")[0]
        where = f" ({context})" if context else ""
        raise LoadError(
            f"{source.path}: the database refused it: {first_line(error)}{where}",
            remedy="Nothing of this file was kept; correct what the message names",
        ) from error
    if report.rejected > len(report.rejects):
        report.remarks.append(
            f"{report.rejected} rows were rejected, the first {len(report.rejects)} are listed"
        )
    report.seconds = time.monotonic() - started
    return report


def _doubled(source: Source, sources: Sequence[Source]) -> LoadError:
    paths = ", ".join(str(other.path) for other in sources if other.name == source.name)
    return LoadError(
        f"{source.path}: several sources would become the schema {source.name!r}: {paths}",
        remedy="Rename all but one, or load them one at a time with --schema",
    )


def _failed(
    path: Path,
    sources: Sequence[Source],
    reports: Sequence[LoadReport],
    failures: Sequence[CoretError],
) -> LoadFailed:
    if len(sources) == 1:
        only = failures[0]
        return LoadFailed(only.what, remedy=only.remedy, failures=failures)
    return LoadFailed(
        f"{path}: {len(reports)} of {len(sources)} sources were loaded "
        f"({', '.join(report.schema for report in reports) or 'none'}); failed: "
        + "; ".join(error.what for error in failures),
        remedy=failures[0].remedy
        if len(failures) == 1
        else "Correct these files and load each again; the loaded ones stay",
        reports=reports,
        failures=failures,
    )
