"""Load a plain dump of pg_dump: only what is on the list of allowed statements is run."""

import re
from collections.abc import Iterator
from itertools import chain

import psycopg
from psycopg import sql

from coret_pg.errors import LoadError
from coret_pg.loading.dump_lexer import DumpReader, Statement, Token, tokenize
from coret_pg.loading.dump_plan import DumpFile, PathFollower, Plan, read_plan
from coret_pg.loading.dump_statements import (
    OPTIONAL,
    REQUIRED,
    forbidden_call,
    is_literal_insert,
    kind_of,
    name_at,
    name_position,
    rewritten,
    significant,
)
from coret_pg.loading.dump_table import Rewriter
from coret_pg.loading.names import checked_schema
from coret_pg.loading.report import LoadedTable
from coret_pg.loading.sources import Source
from coret_pg.loading.target import Target, first_line

_BLOCK = 64 * 1024
_COPY_LINE = re.compile(r"\bCOPY\b.*?,\s*\D+?\s(\d+)", re.S)
_KEYS = (["PRIMARY"], ["UNIQUE"], ["FOREIGN"])


def load_dump(source: Source, target: Target) -> None:
    """Load a plain dump, its schemas mapped to those of the source.

    Raises LoadError with file and line for a table or data that can't be loaded.
    """
    dump = DumpFile(source.path)
    plan = read_plan(dump)
    if not plan.complete:
        target.report.remarks.append("the dump's closing comment is missing: it may be cut")
    _Load(dump, plan, target).run()


def map_schemas(schemas: list[str], target: str) -> dict[str, str]:
    """Return where each schema of a dump goes: the only one, or public, to the target itself."""
    if len(schemas) == 1:
        return {schemas[0]: target}
    return {
        schema: target if schema == "public" else checked_schema(f"{target}_{schema}")
        for schema in schemas
    }


class _Load:
    """The run through one dump."""

    def __init__(self, dump: DumpFile, plan: Plan, target: Target) -> None:
        self._dump = dump
        self._plan = plan
        self._target = target
        self._report = target.report
        self._schemas = map_schemas(plan.schemas, target.schema)
        self._path = PathFollower()
        self._known: set[tuple[str, str]] = set()
        self._rewriter = Rewriter(self._schemas, self._known, target.options.keys)
        self._rewriter.remarks = self._report.remarks
        self._rows: dict[tuple[str, str], int] = {}
        self._indexes: set[tuple[str, str]] = set()

    def run(self) -> None:
        """Load everything, then report the tables."""
        self._target.create_schemas(list(self._schemas.values()) or [self._target.schema])
        if not self._schemas:
            self._report.remarks.append("the dump holds no table")
        self._set_path(None)
        with self._dump.read() as reader:
            for statement in reader.statements():
                if statement.kind == "meta":
                    self._report.skipped[statement.text.split()[0]] += 1
                else:
                    self._statement(statement, reader)
        several = len(self._schemas) > 1
        for (schema, name), rows in self._rows.items():
            shown = f"{self._schemas[schema]}.{name}" if several else name
            self._report.tables.append(LoadedTable(shown, rows, 0))

    def _set_path(self, schema: str | None) -> None:
        # Names of old dumps have no schema; those of newer ones do, and then Postgres' own
        # types come first: a table may be named "date".
        own = [self._schemas.get(name, name) for name in self._schemas] or [self._target.schema]
        path = ["pg_catalog", *own] if schema is None else [self._schemas.get(schema, own[0])]
        names = [*path, "pg_catalog"] if schema is not None else path
        self._target.connection.execute(
            sql.SQL("SET LOCAL search_path = {}").format(
                sql.SQL(", ").join(sql.Identifier(name) for name in names)
            )
        )

    def _statement(self, statement: Statement, reader: DumpReader) -> None:
        tokens = tokenize(statement.text)
        plain = significant(tokens)
        if self._path.follow(plain):
            self._set_path(self._path.schema)
            self._report.skipped[kind_of(plain)] += 1
            return
        kind = kind_of(plain)
        if kind == "CREATE SCHEMA":
            return
        if kind not in REQUIRED | OPTIONAL or not self._wanted(kind, plain):
            self._report.skipped[kind] += 1
            return
        schema, name, end = name_at(plain, name_position(plain))
        full = self._path.full(schema, name)
        if kind == "COPY":
            self._copy(statement, tokens, full, reader)
        elif kind == "INSERT":
            self._insert(statement, tokens, full)
        elif kind in REQUIRED:
            self._define(kind, statement, tokens, full, plain[end:])
        elif called := forbidden_call(plain):
            self._refuse(kind, statement, name, called)
        else:
            self._try(kind, statement, tokens, full, plain)

    def _wanted(self, kind: str, plain: list[Token]) -> bool:
        words = [token.word for token in plain]
        if kind == "ALTER TABLE ADD CONSTRAINT":
            at = words.index("CONSTRAINT") + 2
            return self._target.options.keys or words[at : at + 1] not in _KEYS
        if kind == "CREATE UNIQUE INDEX":
            return self._target.options.keys
        if kind == "ALTER INDEX ATTACH PARTITION":
            names = (name_position(plain), words.index("PARTITION") + 1)
            pairs = [self._path.full(*name_at(plain, at)[:2]) for at in names]
            return all(pair in self._indexes for pair in pairs)
        return True

    def _where(self, statement: Statement) -> str:
        return f"{self._dump.path}, line {statement.line}"

    def _refuse(self, kind: str, statement: Statement, name: str, called: str) -> None:
        if kind in REQUIRED:
            raise LoadError(
                f"{self._where(statement)}: {kind} {name} uses {called}, which a load never runs",
                remedy="Take it out of the dump",
            )
        self._report.skipped[kind] += 1
        self._report.remarks.append(
            f"{self._where(statement)}: {kind} {name} left out: it uses {called}"
        )

    def _run(self, statement: Statement, text: str) -> int:
        """Run a statement that the load can't do without; return its row count."""
        try:
            # The binary protocol takes one statement only, whatever the text holds.
            return self._target.connection.execute(text.encode(), binary=True).rowcount
        except psycopg.Error as error:
            if self._target.connection.closed:
                raise
            raise LoadError(
                f"{self._where(statement)}: {first_line(error)}",
                remedy="Nothing of this file was kept; correct that line and load again",
            ) from error

    def _define(
        self,
        kind: str,
        statement: Statement,
        tokens: list[Token],
        full: tuple[str, str],
        after: list[Token],
    ) -> None:
        name = full[1]
        new = full not in self._known
        if kind in {"CREATE TYPE", "CREATE DOMAIN"}:
            self._known.add(full)
            self._know_multirange(after)
            if not (after and after[0].word == "AS") or not self._rewriter.stands(
                tokens, domain=kind == "CREATE DOMAIN"
            ):
                self._known.discard(full)
                self._report.skipped[kind] += 1
                return
        if kind == "CREATE TABLE":
            if after and after[0].word not in {"(", "OF", "PARTITION"}:
                self._refuse(kind, statement, name, after[0].text)
            if any(token.word == "AS" for token in _outside(after)):
                self._refuse(kind, statement, name, "AS")
            self._known.add(full)
            if new:
                self._rows[full] = 0
            text = self._rewriter.table(tokens, name)
        elif kind == "CREATE DOMAIN":
            text = self._rewriter.domain(tokens, name)
        else:
            text = rewritten(tokens, self._schemas)
        # Looked at last: a default that calls something is gone by now.
        if called := forbidden_call(significant(tokenize(text))):
            self._refuse(kind, statement, name, called)
        self._run(statement, text)

    def _know_multirange(self, tokens: list[Token]) -> None:
        # A range type names the type of its sets, which comes into being with it.
        words = [token.word for token in tokens]
        if "MULTIRANGE_TYPE_NAME" in words:
            schema, name, _ = name_at(tokens, words.index("MULTIRANGE_TYPE_NAME") + 2)
            self._known.add(self._path.full(schema, name))

    def _try(
        self,
        kind: str,
        statement: Statement,
        tokens: list[Token],
        full: tuple[str, str],
        plain: list[Token],
    ) -> None:
        relations = self._plan.created if kind.endswith("VIEW") else ()
        what = full[1] if kind not in {"ALTER TABLE ADD CONSTRAINT"} else f"{full[1]}: constraint"
        done = self._target.attempt(
            rewritten(tokens, self._schemas, relations).encode(),
            f"{self._where(statement)}: {kind} {what} left out",
        )
        if not done:
            return
        if kind in NAMES_RELATION:
            self._known.add(full)
        elif kind == "CREATE UNIQUE INDEX":
            self._indexes.add(self._path.full(None, full[1]))
            self._indexes.update((schema, full[1]) for schema in self._schemas)
        elif kind == "ALTER TABLE ADD CONSTRAINT":
            at = [token.word for token in plain].index("CONSTRAINT") + 1
            self._indexes.add((full[0], plain[at].identifier or ""))

    def _copy(
        self,
        statement: Statement,
        tokens: list[Token],
        full: tuple[str, str],
        reader: DumpReader,
    ) -> None:
        rows = self._plan.rows.get(statement.line, 0)
        if full not in self._rows:
            self._report.skipped["COPY"] += 1
            if rows:
                self._report.remarks.append(
                    f"{self._where(statement)}: {rows} rows of {full[1]} left out: the dump "
                    "doesn't create this table"
                )
            return
        if not _is_plain_copy(significant(tokens)):
            self._refuse("COPY", statement, full[1], "something else than FROM stdin")
        query = rewritten(tokens, self._schemas).encode()
        start = reader.line
        try:
            with self._target.connection.cursor() as cursor:
                with cursor.copy(query) as copy:
                    lines = self._target.counted(full[1], reader.copy_data(), rows)
                    for block in _blocks(lines):
                        copy.write(block)
                self._rows[full] += max(cursor.rowcount, 0)
        except psycopg.Error as error:
            if self._target.connection.closed:
                raise
            found = _COPY_LINE.search(error.diag.context or "")
            line = start + int(found.group(1)) if found else statement.line
            raise LoadError(
                f"{self._dump.path}, line {line}: {full[1]}: {first_line(error)}",
                remedy="Nothing of this file was kept; correct that line and load again",
            ) from error

    def _insert(self, statement: Statement, tokens: list[Token], full: tuple[str, str]) -> None:
        if full not in self._rows:
            self._report.skipped["INSERT"] += 1
            return
        if not is_literal_insert(significant(tokens)):
            self._refuse("INSERT", statement, full[1], "more than literal values")
        done = self._run(statement, rewritten(tokens, self._schemas))
        self._rows[full] += done
        progress = self._target.options.progress
        if progress is not None and self._rows[full] % 1_000 < done:
            progress(full[1], self._rows[full], None)


NAMES_RELATION = frozenset({"CREATE VIEW", "CREATE MATERIALIZED VIEW", "CREATE SEQUENCE"})


def _outside(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens outside of brackets."""
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if not depth:
            yield token


def _is_plain_copy(plain: list[Token]) -> bool:
    """Tell whether it is COPY name [(columns)] FROM stdin, and nothing else."""
    _, _, end = name_at(plain, name_position(plain))
    rest = [token.word for token in plain[end:]]
    if rest[:1] == ["("] and ")" in rest:
        inside = plain[end + 1 : end + rest.index(")")]
        if any(token.identifier is None and token.text != "," for token in inside):
            return False
        rest = rest[rest.index(")") + 1 :]
    return rest == ["FROM", "STDIN"]


def _blocks(lines: Iterator[str]) -> Iterator[bytes]:
    held: list[str] = []
    size = 0
    for line in chain(lines, [None]):
        if line is not None:
            held.append(line)
            size += len(line)
        if held and (line is None or size >= _BLOCK):
            yield "".join(held).encode()
            held, size = [], 0
