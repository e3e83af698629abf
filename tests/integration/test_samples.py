"""What of the values is kept, shown to models, and written down: policies, the deny-list, the ledger."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from coret_pg.api import Coret
from coret_pg.models.endpoint import open_endpoint
from tests.fake_endpoint import FakeEndpoint

TABLES = """
CREATE SCHEMA crm;
CREATE TABLE crm.people (id int PRIMARY KEY, "full|name" text, email text, "customerPhone" text, city text, born date, contact text);
COMMENT ON TABLE crm.people IS 'Who buys.';
INSERT INTO crm.people
SELECT i, 'Ada' || E'\\nL' || i, 'ada' || i || '@mail.example', '+49 30 12345' || i, (ARRAY['Köln', 'Paris'])[1 + i % 2],
       date '1990-01-01' + i, CASE WHEN i = 3 THEN 'write to bob@mail.example' ELSE 'by post' END
FROM generate_series(1, 5) AS i;
"""


@pytest.fixture
def crm(dsn: str) -> Iterator[Coret]:
    with psycopg.connect(dsn) as connection:
        connection.execute(TABLES.encode())
    with Coret(dsn, sample_rows=5) as coret:
        coret.init()
        coret.refresh()
        yield coret


def one(coret: Coret, query: str, *parameters: object) -> object:
    with coret.connection() as connection:
        row = connection.execute(query.encode(), parameters).fetchone()
    assert row
    return row[0]


def everything_kept(coret: Coret) -> str:
    """All text that the schema keeps of values, and of what was made of them."""
    return str(
        one(
            coret,
            "SELECT concat((SELECT string_agg(x::text, ' ') FROM coret.column_sample x), (SELECT string_agg(concat_ws(' ', min_value, max_value,"
            " frequent_values::text), ' ') FROM coret.column_profile), (SELECT string_agg(x::text, ' ') FROM coret.column_phrases x),"
            " (SELECT string_agg(purpose, ' ') FROM coret.purpose))",
        )
    )


def payload(coret: Coret, *, remote: bool, use: str = "selection") -> str:
    return str(
        one(
            coret,
            "SELECT payload FROM coret.preview_payload('crm.people', %s) WHERE use = %s",
            remote,
            use,
        )
    )


def test_a_snapshot_is_one_markdown_table(crm: Coret) -> None:
    shown = payload(crm, remote=False, use="purpose").splitlines()
    assert shown[:4] == [
        "Who buys.",
        "Table: people",
        "| id | full\\|name | email | customerPhone | city | born | contact |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    # On one line, escaped; the denied columns stay blank.
    assert any(line.startswith("| 2 | Ada L2 |  |  | ") for line in shown)
    assert len(shown) == 4 + 5


def test_denied_columns_and_secret_values_are_never_kept(crm: Coret) -> None:
    kept = everything_kept(crm)
    assert "Köln" in kept
    assert "mail.example" not in kept
    assert "12345" not in kept
    # A secret among other values is masked, and these are not looked up by their words.
    assert "xxxxx xx xxx@xxxx.xxxxxxx" in kept
    assert "post" in kept
    assert not one(
        crm, "SELECT EXISTS (SELECT FROM coret.column_phrases WHERE phrases @> '{by post}')"
    )


def test_joins_of_denied_columns_are_found_all_the_same(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "CREATE SCHEMA a; CREATE TABLE a.users AS SELECT 'u' || i || '@x.example' AS email, i AS age FROM generate_series(1, 30) i;"
            "CREATE TABLE a.logins AS SELECT 'u' || (1 + i % 30) || '@x.example' AS email, i AS login_no FROM generate_series(1, 90) i;"
        )
    with Coret(dsn) as coret:
        coret.init()
        coret.refresh()
        joins = coret.joins("a.logins")
    assert [(j.other_table, list(j.own_columns)) for j in joins] == [("a.users", ["email"])]


def test_values_leave_this_host_masked_unless_a_rule_says_more(crm: Coret) -> None:
    assert "Köln" in payload(crm, remote=False)
    away = payload(crm, remote=True)
    assert "Köln" not in away
    assert "Xxxx" in away  # Köln and Paris lose their letters, and keep their form
    assert "9999-99-99" in away
    one(crm, "SELECT coret.set_sample_policy('samples', schema_name => 'crm')")
    crm.refresh()
    assert "Köln" in payload(crm, remote=True)


@pytest.mark.parametrize(
    ("level", "kept", "gone"),
    [
        ("names", [], ["Köln", "1990-01-02", "Ada"]),
        ("statistics", ["1990-01-02"], ["Köln", "Ada"]),
        ("masked", ["Köln"], []),
        ("samples", ["Köln", "Ada"], []),
    ],
)
def test_a_level_decides_at_once_what_is_kept(
    crm: Coret, level: str, kept: list[str], gone: list[str]
) -> None:
    one(crm, "SELECT coret.set_sample_policy(%s, 'crm', 'people')", level)
    for _ in range(2):  # at once, and after the next refresh
        text = everything_kept(crm)
        assert [word for word in kept if word not in text] == []
        assert [word for word in gone if word in text] == []
        crm.refresh()
    if level == "masked":
        assert "Köln" not in payload(crm, remote=False)
        assert "Köln" not in crm.retrieve("people by city").schema_slice


def test_the_narrowest_rule_wins_and_a_columns_own_over_the_deny_list(crm: Coret) -> None:
    one(crm, "SELECT coret.set_sample_policy('names')")
    one(crm, "SELECT coret.set_sample_policy('samples', 'crm', 'people', 'email')")
    one(crm, "SELECT coret.set_sample_policy('statistics', 'crm')")
    with crm.connection() as connection:
        levels = dict(
            connection.execute(
                "SELECT column_name, sample_level FROM coret.catalog_column"
            ).fetchall()
        )
    assert levels["email"] == "samples"
    assert levels["customerPhone"] == "names"
    assert levels["city"] == "statistics"
    # Taken away again, all is as before.
    for target in ("", ", 'crm', 'people', 'email'", ", 'crm'"):
        one(crm, f"SELECT coret.set_sample_policy('default'{target})")
    crm.refresh()
    assert "Köln" in everything_kept(crm)


def test_a_pattern_of_ones_own_hides_and_lets_go_again(crm: Coret) -> None:
    assert one(crm, "SELECT coret.deny('^city$')") == 1
    assert "Köln" not in everything_kept(crm)
    assert one(crm, "SELECT coret.undeny('^city$')") == 1
    crm.refresh()
    assert "Köln" in everything_kept(crm)
    one(crm, "SELECT coret.deny('k.ln', 'value')")
    assert "Köln" not in everything_kept(crm)
    assert "Paris" in everything_kept(crm)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("coret.set_sample_policy('everything')", "no level"),
        ("coret.set_sample_policy('names', table_name => 't')", "needs the schema"),
        ("coret.set_sample_policy('names', 's', column_name => 'c')", "needs the table"),
        ("coret.deny('(')", "no regular expression"),
        ("coret.deny('x', 'row')", "can't be denied"),
        ("coret.undeny('never there')", "not on the deny-list"),
        ("coret.preview_payload('no.table')", "no table"),
    ],
)
def test_what_cant_be_is_told(crm: Coret, call: str, says: str) -> None:
    with psycopg.connect(crm.settings.dsn.get_secret_value()) as connection:  # type: ignore[union-attr]
        with pytest.raises(psycopg.Error, match=says) as caught:
            connection.execute(f"SELECT {call}".encode())
        assert str(caught.value.diag.message_primary).startswith("coret: ")
        assert caught.value.diag.message_hint


def test_the_preview_is_what_is_sent_and_the_ledger_keeps_every_word(crm: Coret) -> None:
    dsn = crm.settings.dsn
    assert dsn is not None
    with FakeEndpoint() as endpoint:
        more = {"llm_model": "m", "llm_base_url": endpoint.base_url, "llm_max_retries": 0}
        endpoint.answer("People who buy.")
        with Coret(dsn.get_secret_value(), **more) as coret:
            coret.refresh()
            purpose_seen = endpoint.requests[-1].body["messages"]
            endpoint.answer('{"tables": ["people"]}')
            preview = payload(coret, remote=False)
            coret.retrieve("people by city")
            selection_seen = endpoint.requests[-1].body["messages"]
            with coret.connection() as connection:
                ledger = connection.execute(
                    "SELECT prompt FROM coret.llm_call ORDER BY call_id"
                ).fetchall()
        with Coret(dsn.get_secret_value(), ledger_prompts="hash", **more) as coret:
            coret.retrieve("people by name")
            last = one(coret, "SELECT prompt IS NULL FROM coret.llm_call ORDER BY call_id DESC")
    assert purpose_seen[1]["content"] == payload(crm, remote=False, use="purpose")
    assert preview in selection_seen[1]["content"]
    sent = [
        f"{seen[0]['content']}\n\n{seen[1]['content']}" for seen in (purpose_seen, selection_seen)
    ]
    assert [row[0] for row in ledger] == sent
    assert last is True


def test_a_purpose_written_from_values_stays_on_this_host(crm: Coret) -> None:
    one(
        crm,
        "UPDATE coret.purpose SET purpose = 'They live in Köln.', made_by = 'llm', model_name = 'm', saw_samples = true RETURNING 1",
    )
    assert "They live" in payload(crm, remote=False)
    assert "They live" not in payload(crm, remote=True)


@pytest.mark.parametrize(
    ("url", "is_remote"),
    [
        ("http://127.0.0.1:8080/v1", False),
        ("http://127.5.0.1/v1", False),
        ("http://localhost:1/v1", False),
        ("http://[::1]:8000/v1", False),
        ("http://10.0.0.7/v1", True),
        ("https://api.example.com/v1", True),
        ("http://localhost.example.com/v1", True),
    ],
)
def test_an_endpoint_is_on_this_host_or_not(url: str, is_remote: bool) -> None:
    endpoint = open_endpoint(
        kind="chat", model="m", base_url=url, key=None, timeout_s=1, max_retries=0
    )
    assert endpoint.is_remote == is_remote
    endpoint.client.close()
