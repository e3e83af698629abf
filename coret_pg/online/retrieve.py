"""The one path from a question to the joinable set of tables that answers it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg.types.json import Jsonb

from coret_pg.database.sqlfiles import query
from coret_pg.errors import InputError, ModelError
from coret_pg.models import ChatModel, Embedder
from coret_pg.online.adjustment import adjust, chosen_table
from coret_pg.online.candidates import find_candidates, pairs_among, require_model
from coret_pg.online.join_graph import spanning_joins
from coret_pg.online.result import Candidate, ChosenTable, Join, Pair, Path, Retrieval
from coret_pg.online.schema_slice import read_slice
from coret_pg.online.selection import select_with_llm
from coret_pg.online.selection_without_llm import select_without_llm

LONGEST_QUESTION = 8_000
MOST_CANDIDATES = 1_000


def retrieve(
    connection: psycopg.Connection,
    embedder: Embedder,
    chat: ChatModel | None,
    question: str,
    *,
    k: int = 10,
    tau: float = 0.5,
) -> Retrieval:
    """Return the joinable set of tables that answers a question, with the way it was found.

    `connection` is in autocommit mode: no transaction is open while a model is asked. Raises
    InputError, PoolError, ModelError (of the embedding model); a chat model that fails is no
    error but the path "fallback".
    """
    question = check_question(question)
    if not 1 <= k <= MOST_CANDIDATES:
        raise InputError(f"K is {k}", remedy=f"Ask for 1 to {MOST_CANDIDATES} candidates")
    if not 0 <= tau <= 1:
        raise InputError(f"tau is {tau}", remedy="Give a score from 0 to 1")
    clock = _Clock()
    with clock.stage("embedding"):
        model_id = require_model(connection, embedder)
        vector = embedder.embed_question(question)
    with clock.stage("candidates"):
        candidates, warnings = find_candidates(connection, vector, k)
        pairs = pairs_among(connection, candidates)
    with clock.stage("selection"):
        selected, path, reason, call_id, remarks = _select(
            connection, chat, question, candidates, pairs
        )
    with clock.stage("adjustment"):
        tables = adjust(connection, candidates, selected, tau)
    with clock.stage("slice"):
        by_name = {candidate.name: candidate.table_id for candidate in candidates}
        chosen_ids = [by_name[table.name] for table in tables]
        spanning, is_connected = spanning_joins(chosen_ids, pairs)
        joins = [_named(join, candidates) for join in spanning]
        slice_text, slice_warnings = read_slice(connection, chosen_ids, joins)
    warnings += [*remarks, *slice_warnings]
    retrieval_id = _record(
        connection, question, k, tau, path, reason, model_id, chat, warnings, clock.seconds,
        candidates, tables, call_id,
    )  # fmt: skip
    return Retrieval(
        retrieval_id=retrieval_id,
        question=question,
        tables=tables,
        joins=joins,
        candidates=candidates,
        schema_slice=slice_text,
        path=path,
        path_reason=reason,
        is_connected=is_connected,
        warnings=warnings,
        seconds=clock.seconds,
    )


def check_question(question: str) -> str:
    """Return the question without blanks around it; raise InputError where it can't be one."""
    text = question.replace("\x00", " ").strip()
    if not text:
        raise InputError("The question is empty", remedy="Ask one in plain words")
    if len(text) > LONGEST_QUESTION:
        raise InputError(
            f"The question is {len(text):,} characters long",
            remedy=f"Shorten it to at most {LONGEST_QUESTION:,}",
        )
    return text


def _select(
    connection: psycopg.Connection,
    chat: ChatModel | None,
    question: str,
    candidates: Sequence[Candidate],
    pairs: Sequence[Pair],
) -> tuple[list[int], Path, str | None, int | None, list[str]]:
    """Return the selected ids, the path taken, its reason, the ledger's call and remarks."""
    if chat is None:
        return select_without_llm(candidates, pairs), "no-llm", None, None, []
    try:
        selection = select_with_llm(connection, chat, question, candidates, pairs)
    except ModelError as error:
        return select_without_llm(candidates, pairs), "fallback", str(error), None, []
    remarks = []
    if selection.unknown_names:
        remarks.append(
            f"the chat model named {len(selection.unknown_names)} tables that are no candidates: "
            "left out"
        )
    return selection.table_ids, "llm", None, selection.call_id, remarks


def _named(pair: Pair, candidates: Sequence[Candidate]) -> Join:
    names = {candidate.table_id: candidate.name for candidate in candidates}
    return Join(
        left_table=names[pair.table_a],
        left_column=pair.column_a,
        right_table=names[pair.table_b],
        right_column=pair.column_b,
        score=pair.score,
        cardinality=pair.cardinality,
    )


def _record(
    connection: psycopg.Connection,
    question: str,
    k: int,
    tau: float,
    path: Path,
    reason: str | None,
    model_id: int,
    chat: ChatModel | None,
    warnings: Sequence[str],
    seconds: dict[str, float],
    candidates: Sequence[Candidate],
    tables: Sequence[ChosenTable],
    call_id: int | None,
) -> int:
    """Write the retrieval and its candidates into the log; return its id."""
    chosen = {table.name: table for table in tables}
    with connection.transaction():
        row = connection.execute(
            query("record_retrieval"),
            {
                "question": question, "k": k, "tau": tau, "path": path, "path_reason": reason,
                "model_id": model_id, "chat_model": chat.model if chat else None,
                "warnings": list(warnings), "seconds": Jsonb(seconds),
            },
        ).fetchone()  # fmt: skip
        retrieval_id = int(row[0]) if row else 0
        if call_id is not None:
            connection.execute(
                "UPDATE coret.llm_call SET retrieval_id = %s WHERE call_id = %s",
                [retrieval_id, call_id],
            )
        with connection.cursor() as cursor:
            cursor.executemany(
                query("record_retrieval_table"),
                [
                    (retrieval_id, c.rank, c.table_id, c.schema_name, c.table_name, c.relevance,
                     table.role, table.partner)
                    for c in candidates
                    for table in [chosen.get(c.name) or chosen_table(c, "not chosen")]
                ],
            )  # fmt: skip
    return retrieval_id


class _Clock:
    """Seconds spent in each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - started
