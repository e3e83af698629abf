"""The profile step: facts about each column's values, and its sorted distinct keys."""

from collections.abc import Iterable

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper

from coret_pg.database.sqlfiles import query
from coret_pg.offline.catalog import read_columns
from coret_pg.offline.source import PoolTable, SortedKeys, Source, Unreadable
from coret_pg.words import text_words

_INT8_ARRAY = 1016


class _KeysDumper(Dumper):
    format = pq.Format.BINARY
    oid = _INT8_ARRAY

    def dump(self, obj: SortedKeys) -> bytes:
        return obj.data


def profile_table(connection: psycopg.Connection, source: Source, table: PoolTable) -> None:
    """Profile every column of a table and store the facts.

    Columns that can be read are stored even where another can't; then raises Unreadable.
    """
    connection.adapters.register_dumper(SortedKeys, _KeysDumper)
    problems, profiles, unread = [], [], []
    for column in read_columns(connection, table.table_id):
        try:
            facts = source.profile_column(table, column)
        except Unreadable as reason:
            problems.append(f"{column.column_name}: {reason}")
            unread.append(column.column_id)
            continue
        kept = facts.pop("kept_values")
        phrases = phrases_of(kept) if kept else None
        profiles.append({"column_id": column.column_id, "phrases": phrases or None, **facts})
    # Stored at the end, at once: no transaction is open while a table is read.
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(query("store_profile"), profiles)
        if unread:
            # Facts of another day would pass for today's.
            cursor.execute(
                "DELETE FROM coret.column_profile WHERE column_id = ANY (%s::bigint[])", [unread]
            )
    if problems:
        raise Unreadable("; ".join(problems))


def phrases_of(values: Iterable[str]) -> list[str]:
    """Return values as the words of a question are looked up in them, and their beginnings.

    A beginning has two words or more; numbers tell nothing.
    """
    phrases = set()
    for words in (text_words(value) for value in values):
        if words and not "".join(words).isdigit():
            phrases |= {" ".join(words[:n]) for n in range(min(2, len(words)), len(words) + 1)}
    return sorted(phrases)
