"""The plans of statements, also of those within functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.errors import UndefinedFile


def load_auto_explain(connection: psycopg.Connection) -> None:
    """Load the module that tells plans, or skip the test where the server comes without it."""
    try:
        connection.execute("LOAD 'auto_explain'")
    except UndefinedFile:
        pytest.skip("this server has no auto_explain")


@contextmanager
def plans_told(connection: psycopg.Connection) -> Iterator[list[str]]:
    """Gather the plans of what a superuser's connection runs meanwhile, in a transaction of its own.

    A role may be set within. Whatever is done is rolled back.
    """
    told: list[str] = []

    def tell(notice: psycopg.errors.Diagnostic) -> None:
        told.append(notice.message_primary or "")

    connection.add_notice_handler(tell)
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(
                "SET LOCAL auto_explain.log_min_duration = 0; SET LOCAL auto_explain.log_nested_statements = on; SET LOCAL client_min_messages = log"
            )
            yield told
    finally:
        connection.remove_notice_handler(tell)
