"""Calls to a chat model, each with a line in the ledger (coret.llm_call)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

import psycopg

from coret_pg.database.sqlfiles import query
from coret_pg.errors import ModelError
from coret_pg.models.chat import ChatAnswer, ChatModel, Patience
from coret_pg.models.vectors import encodable

Read = TypeVar("Read")


def ask(
    connection: psycopg.Connection,
    chat: ChatModel,
    use: Literal["purpose", "selection"],
    instructions: str,
    text: str,
    read: Callable[[ChatAnswer], Read],
    *,
    json_schema: Mapping[str, Any] | None = None,
    max_tokens: int,
    table_id: int | None = None,
    patience: Patience | None = None,
) -> tuple[Read, int]:
    """Return what `read` makes of the chat model's answer, and the call's id in the ledger.

    `read` raises ModelError for an answer that can't be used; that and an endpoint that fails
    are raised on, after they are written down, with every word that was sent (or, by
    CORET_LEDGER_PROMPTS, its hash alone).
    """
    # As it is sent and kept: no text of Postgres holds a NUL, nor half a character.
    text = encodable(text.replace("\x00", " "))
    messages = [
        {"role": "system", "content": instructions},
        {"role": "user", "content": text},
    ]
    answer: ChatAnswer | None = None
    outcome = "abandoned: nobody waits for it any more"
    try:
        answer = chat.complete(
            messages, json_schema=json_schema, max_tokens=max_tokens, patience=patience
        )
        result = read(answer)
        outcome = "ok"
    except ModelError as error:
        outcome = str(error)
        raise
    finally:
        row = connection.execute(
            query("record_llm_call"),
            {
                "use": use,
                "table_id": table_id,
                "endpoint": chat.endpoint,
                "model_name": chat.model,
                "prompt_hash": hashlib.sha256(text.encode()).hexdigest(),
                "prompt": f"{instructions}\n\n{text}" if chat.keeps_prompts else None,
                "prompt_tokens": answer.prompt_tokens if answer else None,
                "completion_tokens": answer.completion_tokens if answer else None,
                "seconds": answer.seconds if answer else 0,
                "outcome": outcome,
            },
        ).fetchone()
    return result, int(row[0]) if row else 0
