"""The profile step: facts about each column's values, and its sorted distinct keys."""

import json
from collections.abc import Iterable
from functools import partial

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper
from psycopg.types.json import Json

from coret_pg.database.sqlfiles import query
from coret_pg.offline.catalog import read_columns
from coret_pg.offline.source import PoolTable, SortedKeys, Source, Unreadable
from coret_pg.words import text_words

_INT8_ARRAY = 1016
_as_json = partial(Json, dumps=partial(json.dumps, ensure_ascii=False))


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
    problems, profiles, keyed, unread = [], [], [], []
    for column in read_columns(connection, table.table_id):
        try:
            facts = source.profile_column(table, column)
        except Unreadable as reason:
            problems.append(f"{column.column_name}: {reason}")
            unread.append(column.column_id)
            continue
        facts["column_id"] = column.column_id
        # Words hold no bar; and of many texts one is made into SQL much sooner than an array.
        facts["phrases"] = "|".join(phrases_of(facts.pop("kept_values") or ())) or None
        keys = facts.pop("keys")
        facts["has_keys"] = keys is not None
        if keys is not None:
            keyed.append({"column_id": column.column_id, "keys": keys})
        profiles.append(facts)
    # Stored at the end, at once: no transaction is open while a table is read.
    with connection.transaction(), connection.cursor() as cursor:
        if profiles:
            cursor.execute(query("store_profile"), {"profiles": _as_json(profiles)})
        if keyed:
            cursor.executemany(query("store_keys"), keyed)
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
    for words in map(text_words, values):
        if len(words) == 1:
            if not words[0].isdigit():
                phrases.add(words[0])
        elif words and not "".join(words).isdigit():
            for count in range(2, len(words) + 1):
                phrases.add(" ".join(words[:count]))
    return sorted(phrases)
