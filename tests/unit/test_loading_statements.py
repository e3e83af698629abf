"""What a dump's statement is, what of it is rewritten, and what is never run."""

import pytest

from coret_pg.loading.dump_lexer import tokenize
from coret_pg.loading.dump_load import map_schemas
from coret_pg.loading.dump_statements import (
    forbidden_call,
    is_literal_insert,
    kind_of,
    name_at,
    name_position,
    rewritten,
    search_path_of,
    significant,
)
from coret_pg.loading.dump_table import Rewriter


def plain(text):
    return significant(tokenize(text))


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("CREATE TABLE public.t (a int)", "CREATE TABLE", ("public", "t")),
        ("create unlogged table if not exists T ()", "CREATE TABLE", (None, "t")),
        ('CREATE TABLE "A.b"."C d" ()', "CREATE TABLE", ("A.b", "C d")),
        ("CREATE TEMP TABLE t ()", "CREATE TEMP", (None, "t")),
        ("CREATE FOREIGN TABLE t ()", "CREATE FOREIGN TABLE", (None, "t")),
        ("CREATE OR REPLACE VIEW s.v AS SELECT 1", "CREATE VIEW", ("s", "v")),
        ("CREATE MATERIALIZED VIEW s.v AS SELECT 1", "CREATE MATERIALIZED VIEW", ("s", "v")),
        ("CREATE UNIQUE INDEX i ON s.t (a)", "CREATE UNIQUE INDEX", (None, "i")),
        ("CREATE INDEX i ON s.t (a)", "CREATE INDEX", (None, "i")),
        ("ALTER TABLE ONLY s.t ADD CONSTRAINT c CHECK (a)", "ALTER TABLE ADD CONSTRAINT", None),
        ("ALTER TABLE s.t OWNER TO x", "ALTER TABLE OWNER TO", ("s", "t")),
        ("ALTER TABLE ONLY s.t ATTACH PARTITION s.p DEFAULT", "ALTER TABLE ATTACH PARTITION", None),
        ("ALTER INDEX s.i ATTACH PARTITION s.j", "ALTER INDEX ATTACH PARTITION", ("s", "i")),
        ("COPY s.t (a, b) FROM stdin", "COPY", ("s", "t")),
        ("INSERT INTO s.t VALUES (1)", "INSERT", ("s", "t")),
        ("REFRESH MATERIALIZED VIEW s.v", "REFRESH MATERIALIZED VIEW", ("s", "v")),
        ("COMMENT ON TABLE s.t IS 'x'", "COMMENT ON TABLE", ("s", "t")),
        ("COMMENT ON MATERIALIZED VIEW s.t IS 'x'", "COMMENT ON MATERIALIZED VIEW", ("s", "t")),
        ("CREATE FUNCTION s.f() RETURNS int", "CREATE FUNCTION", None),
        ("CREATE EVENT TRIGGER x ON ddl", "CREATE EVENT TRIGGER", None),
        ("GRANT ALL ON TABLE x TO y", "GRANT", None),
        ("SET a = 1", "SET", None),
    ],
)
def test_kind_and_name(text, kind, name):
    tokens = plain(text)
    assert kind_of(tokens) == kind
    if name:
        assert name_at(tokens, name_position(tokens))[:2] == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT public.t.a FROM public.t", 'SELECT "P".t.a FROM "P".t'),
        ('SELECT "public" . "t"', 'SELECT "P" . "t"'),
        ("SELECT x.public.y, 'public.t', public", "SELECT x.public.y, 'public.t', public"),
        ("nextval('public.s'::regclass)", "nextval('\"P\".s'::regclass)"),
        ("'public.\"it''s\"'::pg_catalog.regclass", "'\"P\".\"it''s\"'::pg_catalog.regclass"),
        ("SELECT 1 -- public.t\n", "SELECT 1 -- public.t\n"),
        ("SELECT other.t, publicx.t", "SELECT other.t, publicx.t"),
    ],
)
def test_schemas_are_replaced_as_tokens(text, expected):
    assert rewritten(tokenize(text), {"public": "P"}) == expected


def test_where_schemas_go():
    assert map_schemas(["sales"], "shop") == {"sales": "shop"}
    assert map_schemas(["public", "hr"], "shop") == {"public": "shop", "hr": "shop_hr"}
    assert map_schemas(["a", "b"], "shop") == {"a": "shop_a", "b": "shop_b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SET search_path = sales, pg_catalog", (True, "sales")),
        ("SET search_path = pg_catalog", (True, None)),
        ("SELECT pg_catalog.set_config('search_path', '', false)", (True, None)),
        ("SET row_security = off", (False, None)),
    ],
)
def test_the_search_path_is_followed(text, expected):
    assert search_path_of(plain(text)) == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT pg_catalog.pg_read_file('/etc/passwd')", "pg_read_file"),
        ('SELECT "lo_import"($$x$$)', "lo_import"),
        ("SELECT query_to_xml('DROP', true, true, '')", "query_to_xml"),
        ('SELECT U&"pg\\005fread_file"(1)', 'U&"pg\\005fread_file"'),
        ("CREATE TABLE public.pg_like (a int REFERENCES public.lo_items(id))", None),
        ("SELECT upper(pg_x) FROM t", None),
    ],
)
def test_functions_that_are_never_run(text, found):
    assert forbidden_call(plain(text)) == found


@pytest.mark.parametrize(
    ("values", "literal"),
    [
        ("VALUES (1, -2.5, 'a;b', NULL, true, E'\\n', '\\x00'::bytea)", True),
        ("VALUES (1), (2)", True),
        ("(a, b) OVERRIDING SYSTEM VALUE VALUES (DEFAULT, '1'::numeric(10,2))", True),
        ("VALUES ('x'::character varying(5)) ON CONFLICT (a) DO NOTHING", True),
        ("VALUES (pg_read_file('x'))", False),
        ("VALUES (public.f(1))", False),
        ("SELECT 1", False),
        ("VALUES ((SELECT 1))", False),
        ("DEFAULT VALUES", False),
        ("VALUES (1) RETURNING a", False),
    ],
)
def test_only_literal_inserts(values, literal):
    assert is_literal_insert(plain(f"INSERT INTO public.t {values}")) is literal


def table(text, *, keys=True, known=()):
    rewriter = Rewriter({"public": "P"}, {("public", name) for name in known}, keys)
    return " ".join(rewriter.table(tokenize(text), "t").split()), rewriter.remarks


def test_a_default_that_calls_something_is_dropped():
    text, _ = table(
        "CREATE TABLE public.t (a integer DEFAULT nextval('public.s'::regclass) NOT NULL,"
        " b text DEFAULT 'x'::text, c timestamp DEFAULT now(), d int DEFAULT NULL,"
        " e numeric(4,2) DEFAULT (1 + 2) CONSTRAINT e_pos CHECK ((e > (0)::numeric)))"
    )
    assert text == (
        "CREATE TABLE \"P\".t (a integer NOT NULL, b text DEFAULT 'x'::text, c timestamp,"
        " d int DEFAULT NULL, e numeric(4,2) DEFAULT (1 + 2)"
        " CONSTRAINT e_pos CHECK ((e > (0)::numeric)))"
    )


def test_types_of_extensions_become_text():
    text, remarks = table(
        "CREATE TABLE public.t (a public.geometry(Point,4326) NOT NULL, b ext.citext[],"
        " c public.mood DEFAULT 'x'::public.mood, d pg_catalog.int4)",
        known=["mood"],
    )
    assert text == (
        'CREATE TABLE "P".t (a text NOT NULL, b text, c "P".mood DEFAULT \'x\'::"P".mood,'
        " d pg_catalog.int4)"
    )
    assert remarks[0] == "t.a: its type public.geometry is not part of the dump: loaded as text"
    assert len(remarks) == 2


def test_checks_and_generated_columns_that_need_functions_are_dropped():
    text, remarks = table(
        "CREATE TABLE public.t (a int CHECK (public.ok(a)), b int GENERATED ALWAYS AS (a * 2)"
        " STORED, c int GENERATED ALWAYS AS (public.f(a)) STORED,"
        " d int GENERATED BY DEFAULT AS IDENTITY NOT NULL, CONSTRAINT x CHECK (public.ok(b)),"
        " CHECK (a > 0))"
    )
    assert text == (
        'CREATE TABLE "P".t (a int, b int GENERATED ALWAYS AS (a * 2) STORED, c int,'
        " d int NOT NULL, CHECK (a > 0))"
    )
    assert len(remarks) == 3


def test_without_keys_checks_stay():
    text, _ = table(
        "CREATE TABLE public.t (a int CONSTRAINT p PRIMARY KEY, b int UNIQUE NULLS NOT DISTINCT"
        " NOT NULL, c int REFERENCES public.o(id) ON DELETE SET NULL NOT DEFERRABLE CHECK (c > 0),"
        " CONSTRAINT u UNIQUE (a, b), PRIMARY KEY (a), FOREIGN KEY (b) REFERENCES public.o(id),"
        " CONSTRAINT k CHECK (a > 0)) PARTITION BY LIST (a)",
        keys=False,
    )
    assert text == (
        'CREATE TABLE "P".t (a int, b int NOT NULL, c int CHECK (c > 0),'
        " CONSTRAINT k CHECK (a > 0)) PARTITION BY LIST (a)"
    )


def test_partitions_and_typed_tables_are_only_renamed():
    text, _ = table("CREATE TABLE public.p PARTITION OF public.t FOR VALUES IN (1, 2)")
    assert text == 'CREATE TABLE "P".p PARTITION OF "P".t FOR VALUES IN (1, 2)'
