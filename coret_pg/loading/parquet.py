"""Load a Parquet file by record batches; pyarrow is optional."""

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from coret_pg.errors import LoadError
from coret_pg.loading.names import SYSTEM_COLUMNS, NameBook
from coret_pg.loading.report import RowRefused
from coret_pg.loading.sources import unreadable
from coret_pg.loading.target import Column, Target
from coret_pg.loading.values import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    JSONB,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    SqlType,
)

_BATCH_ROWS = 8_192
_TIMESTAMPTZ = SqlType("timestamptz")
# Arrow's name of a type that needs no further look, and ours.
_PLAIN: dict[str, SqlType] = {
    "null": TEXT,
    "bool": BOOLEAN,
    "int8": SqlType("smallint"),
    "int16": SqlType("smallint"),
    "int32": SqlType("integer"),
    "int64": BIGINT,
    "uint8": SqlType("smallint"),
    "uint16": SqlType("integer"),
    "uint32": BIGINT,
    "uint64": SqlType("numeric", (20,)),
    "halffloat": SqlType("real"),
    "float": SqlType("real"),
    "double": DOUBLE,
    "string": TEXT,
    "large_string": TEXT,
    "string_view": TEXT,
    "date32[day]": DATE,
    "date64[ms]": DATE,
}


def load_parquet(file: Path, name: str, target: Target) -> None:
    """Load a Parquet file as one table.

    Raises LoadError where it is damaged, or where pyarrow isn't installed.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise LoadError(
            f"{file} can't be read: reading Parquet needs pyarrow",
            remedy="pip install 'coret-pg[parquet]'",
        ) from error
    with _readable(file), pyarrow.parquet.ParquetFile(file) as parquet:
        schema = parquet.schema_arrow
        remarks = target.report.remarks
        names = NameBook(f"{file.name}: column", remarks, taken=SYSTEM_COLUMNS)
        columns = []
        readers = []
        for number, field in enumerate(schema):
            title = names.add(field.name, empty=f"column_{number + 1}", number_doubles=True)
            kind, read, remark = _choose(field.type, partial(_arrays, parquet, number))
            if remark:
                remarks.append(f"{name}.{field.name}: {remark}")
            columns.append(Column(title, kind))
            readers.append(read)
        target.create_table(name, columns)
        rows = _rows(file, name, parquet, readers, target)
        target.copy_rows(name, columns, rows, parquet.metadata.num_rows)


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise unreadable(file, error) from error


def _arrays(parquet: Any, number: int) -> Iterator[Any]:
    """Yield the arrays of one column; by number, for names may be doubled."""
    for batch in parquet.iter_batches(_BATCH_ROWS):
        yield _stored(batch.column(number))


def _stored(array: Any) -> Any:
    """Return the values themselves of a dictionary or an extension type."""
    import pyarrow as pa

    while True:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_run_end_encoded(array.type):
            array = pa.compute.run_end_decode(array)
        else:
            return array


def _choose(
    kind: Any, arrays: Callable[[], Iterator[Any]]
) -> tuple[SqlType, Callable[[Any], list[Any]], str | None]:
    """Return our type, what makes COPY values of an array, and a remark on a surprise."""
    import pyarrow as pa

    types = pa.types
    uuid = isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.uuid"
    while True:
        if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            break
    if uuid:
        return SqlType("uuid"), _uuids, None
    if str(kind) in _PLAIN:
        plain = _PLAIN[str(kind)]
        return plain, _dates if plain == DATE else _texts if plain == TEXT else _values, None
    if types.is_decimal(kind):
        fits = 0 <= kind.scale <= kind.precision
        return SqlType("numeric", (kind.precision, kind.scale)) if fits else NUMERIC, _values, None
    if types.is_timestamp(kind) or types.is_time(kind):
        if kind.unit == "ns" and any(_has_nanoseconds(array) for array in arrays()):
            return TEXT, _printed, f"{kind} holds parts of a microsecond: loaded as text"
        if types.is_time(kind):
            return TIME, _times, None
        return (_TIMESTAMPTZ, _instants, None) if kind.tz else (TIMESTAMP, _timestamps, None)
    if types.is_nested(kind):
        return JSONB, _json, None
    if types.is_duration(kind):
        return BIGINT, _counts, f"{kind} is loaded as its number of {kind.unit}"
    if "binary" in str(kind):
        return BYTEA, _values, None
    return TEXT, _printed, f"{kind} is loaded as text"


def _has_nanoseconds(array: Any) -> bool:
    import pyarrow as pa

    return any(value is not None and value % 1_000 for value in array.cast(pa.int64()).to_pylist())


def _values(array: Any) -> list[Any]:
    return list(array.to_pylist())


def _texts(array: Any) -> list[Any]:
    return [_Refused if value is not None and "\0" in value else value for value in _values(array)]


class _Refused:
    """Stands for a value that Postgres can't store."""


def _printed(array: Any) -> list[Any]:
    return [None if value is None else str(value) for value in array.cast("string").to_pylist()]


def _dates(array: Any) -> list[Any]:
    # As text: Python's dates end in the year 9999.
    # Arrow prints the years it can't write as "<value out of range ...>".
    return [_Refused if v is not None and v[0] in "-<" else v for v in _printed(array)]


def _times(array: Any) -> list[Any]:
    import pyarrow as pa

    return _printed(array.cast(pa.time64("us")))


def _timestamps(array: Any) -> list[Any]:
    import pyarrow as pa

    return _dates(array.cast(pa.timestamp("us")))


def _instants(array: Any) -> list[Any]:
    # Arrow stores UTC whatever the zone; without the zone the text is UTC too.
    return [f"{value}+00" if isinstance(value, str) else value for value in _timestamps(array)]


def _counts(array: Any) -> list[Any]:
    import pyarrow as pa

    return list(array.cast(pa.int64()).to_pylist())


def _uuids(array: Any) -> list[Any]:
    return [None if value is None else value.hex() for value in array.to_pylist()]


def _json(array: Any) -> list[Any]:
    found: list[Any] = []
    for value in array.to_pylist():
        if value is None:
            found.append(None)
            continue
        try:
            found.append(json.dumps(_jsonable(value), ensure_ascii=False, allow_nan=False))
        except RowRefused:
            found.append(_Refused)
    return found


def _jsonable(value: Any) -> Any:
    if isinstance(value, str):
        if "\0" in value:
            raise RowRefused
        return value
    if isinstance(value, dict):
        return {_jsonable(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        pairs = [item for item in value if isinstance(item, tuple)]
        if pairs and len(pairs) == len(value):  # a map
            keys = [key for key, _ in pairs]
            if all(isinstance(key, str) for key in keys) and len(set(keys)) == len(keys):
                return {_jsonable(key): _jsonable(item) for key, item in pairs}
        return [_jsonable(item) for item in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)


def _rows(
    file: Path,
    name: str,
    parquet: Any,
    readers: Sequence[Callable[[Any], list[Any]]],
    target: Target,
) -> Iterator[Sequence[Any]]:
    number = 0
    for batch in parquet.iter_batches(_BATCH_ROWS):
        lists = [read(_stored(array)) for read, array in zip(readers, batch.columns, strict=True)]
        for row in zip(*lists, strict=True):
            number += 1
            if _Refused in row:
                reason = f"{name}: a value can't be stored: a NUL, or a date out of range"
                shown = ", ".join("?" if value is _Refused else str(value) for value in row)
                target.report.reject(file, number, reason, shown)
            else:
                yield row
