"""Read a dump once before loading it: its encoding, its schemas, what it creates, its rows."""

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from coret_pg.errors import LoadError
from coret_pg.loading.dump_lexer import DumpEnded, DumpReader, Statement, Token, tokenize
from coret_pg.loading.dump_statements import (
    NAMING,
    kind_of,
    name_at,
    name_position,
    search_path_of,
    significant,
)
from coret_pg.loading.sources import opened, refuse_archive_bytes

_HEAD = 16 * 1024
_HEADER = re.compile(rb"^-- PostgreSQL database dump\s*$", re.M)
_CLUSTER = re.compile(rb"^-- PostgreSQL database cluster dump\s*$", re.M)
_END = "-- PostgreSQL database dump complete"
_ENCODING = re.compile(rb"^SET client_encoding = '([^']+)'", re.M)
# Postgres' names of encodings that Python's codecs call otherwise.
_CODECS = {
    "SQL_ASCII": "utf-8",
    "UNICODE": "utf-8",
    "EUC_CN": "gb2312",
    "UHC": "cp949",
    "JOHAB": "johab",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    **{f"WIN{page}": f"cp{page}" for page in (866, 874, *range(1250, 1259))},
    **{f"LATIN{n}": f"iso8859-{part}" for n, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15), 1)},
    "LATIN10": "iso8859-16",
}


@dataclass(slots=True)
class Plan:
    """What a dump will create."""

    encoding: str
    schemas: list[str] = field(default_factory=list)
    created: set[tuple[str, str]] = field(default_factory=set)
    rows: dict[int, int] = field(default_factory=dict)  # line of a COPY: rows of its data
    complete: bool = False


class DumpFile:
    """A plain dump that can be read more than once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with opened(path) as file:
            head = file.read(_HEAD)
        refuse_archive_bytes(path, head)
        if _CLUSTER.search(head):
            raise LoadError(
                f"{path} is a dump of a whole cluster (pg_dumpall)",
                remedy="Dump one database at a time with pg_dump",
            )
        if not _HEADER.search(head):
            raise LoadError(
                f"{path} is no plain dump of pg_dump: its header is not there",
                remedy="Make it with pg_dump, and keep its first comment",
            )
        named = _ENCODING.search(head)
        self.encoding = named.group(1).decode("ascii", "replace").upper() if named else "UTF8"
        self.complete = False
        try:
            self._codec = codecs.lookup(_CODECS.get(self.encoding, self.encoding)).name
        except LookupError as error:
            raise LoadError(
                f"{path}: the encoding {self.encoding} is not known",
                remedy="Dump again with pg_dump --encoding=UTF8",
            ) from error

    @contextmanager
    def read(self) -> Iterator[DumpReader]:
        """Open the dump; raises LoadError where it ends too early, or isn't in its encoding."""
        with opened(self.path) as file:
            try:
                yield DumpReader(self._decoded(file))
            except DumpEnded as ended:
                raise LoadError(
                    f"{self.path}, line {ended}: the file ends inside of what starts here",
                    remedy="The dump is cut: make it again",
                ) from ended

    def _decoded(self, file: "Iterator[bytes]") -> Iterator[str]:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode(self._codec)
            except UnicodeDecodeError as error:
                raise LoadError(
                    f"{self.path}, line {number}: not {self.encoding}: {error.reason}",
                    remedy="Dump again with pg_dump --encoding=UTF8",
                ) from error
            self.complete = self.complete or text.rstrip() == _END
            yield text


class PathFollower:
    """Follows a dump's search path, for old dumps leave the schema of names out."""

    def __init__(self) -> None:
        self.schema: str | None = None

    def follow(self, tokens: list[Token]) -> bool:
        """Take a statement into account; tell whether it set the path."""
        sets, schema = search_path_of(tokens)
        if sets:
            self.schema = schema
        return sets

    def full(self, schema: str | None, name: str) -> tuple[str, str]:
        """Return the name with its schema."""
        return schema or self.schema or "public", name


def read_plan(dump: DumpFile) -> Plan:
    """Read the whole dump; nothing is run."""
    plan = Plan(dump.encoding)
    path = PathFollower()
    with dump.read() as reader:
        for statement in reader.statements():
            if statement.kind == "copy":
                plan.rows[statement.line] = sum(1 for _ in reader.copy_data())
            elif statement.kind == "sql" and worth_a_look(statement):
                tokens = significant(tokenize(statement.text))
                _refuse_backslashes(dump.path, statement, tokens)
                if path.follow(tokens) or kind_of(tokens) not in NAMING:
                    continue
                schema, name, _ = name_at(tokens, name_position(tokens))
                full = path.full(schema, name)
                plan.created.add(full)
                if full[0] not in plan.schemas:
                    plan.schemas.append(full[0])
    plan.complete = dump.complete
    return plan


def _refuse_backslashes(path: Path, statement: Statement, tokens: list[Token]) -> None:
    words = [token.word for token in tokens[:4]]
    if words[:2] == ["SET", "STANDARD_CONFORMING_STRINGS"] and words[3:] != ["ON"]:
        raise LoadError(
            f"{path}, line {statement.line}: its strings are written with backslashes",
            remedy="Dump again with standard_conforming_strings = on",
        )


def worth_a_look(statement: Statement) -> bool:
    """Tell whether the plan needs the statement: INSERTs may be millions."""
    return statement.text[:6].upper() in {"CREATE", "SELECT"} or statement.text[:3].upper() == "SET"
