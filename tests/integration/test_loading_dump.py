"""Dumps of pg_dump in the pool: what is run, what is left out, and where errors point."""

import gzip

import psycopg
import pytest

from coret_pg.errors import LoadError
from coret_pg.loading import load_path

HEAD = """--
-- PostgreSQL database dump
--

\\restrict abc

SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);

"""
TAIL = "\n--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict abc\n"

SHOP = """
CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;
CREATE TYPE public.mood AS ENUM ('sad', 'it''s ok');
ALTER TYPE public.mood OWNER TO nobody;
CREATE TYPE public.span AS RANGE (subtype = integer, multirange_type_name = public.spans);
CREATE DOMAIN public.positive AS integer
    CONSTRAINT ok CHECK (public.ok(VALUE))
    CONSTRAINT small CHECK (VALUE < 100);
CREATE FUNCTION public.ok(integer) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT CASE WHEN $1 > 0 THEN true ELSE false END;
END;
CREATE SEQUENCE public.customer_id_seq START WITH 1;
CREATE TABLE public.customer (
    id integer DEFAULT nextval('public.customer_id_seq'::regclass) NOT NULL,
    "Full; Name" public.citext,
    mood public.mood DEFAULT 'sad'::public.mood,
    age public.positive,
    days public.span,
    twice integer GENERATED ALWAYS AS ((id * 2)) STORED,
    CONSTRAINT customer_id CHECK ((id > 0))
);
ALTER TABLE public.customer OWNER TO nobody;
COMMENT ON TABLE public.customer IS 'Customers; it''s public.customer';
CREATE TABLE public."date" (
    id integer NOT NULL,
    customer_id integer,
    d date
);
ALTER TABLE public."date" ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.date_id_seq
    START WITH 1
);
CREATE VIEW public.adults AS
 SELECT customer.id, 'public.customer'::regclass AS source FROM public.customer
  WHERE (customer.age > 17);
CREATE VIEW public.broken AS SELECT public.ok(1) AS ok;
CREATE VIEW public.secret AS SELECT pg_catalog.pg_read_file('/etc/hostname'::text) AS x;
CREATE MATERIALIZED VIEW public.counted AS SELECT count(*) AS n FROM public.customer
  WITH NO DATA;
COPY public.customer (id, "Full; Name", mood, age, days) FROM stdin;
1\tAnna; B\tit's ok\t20\t[1,3)
2\tä\\tb\\\\\t\\N\t\\N\t\\N
\\.
COPY public."date" (id, customer_id, d) FROM stdin;
1\t1\t2024-02-29
\\.
COPY public.spatial_ref_sys (id) FROM stdin;
1
\\.
SELECT pg_catalog.setval('public.customer_id_seq', 2, true);
ALTER TABLE ONLY public.customer
    ADD CONSTRAINT customer_pkey PRIMARY KEY (id);
CREATE INDEX by_name ON public.customer USING btree ("Full; Name");
CREATE UNIQUE INDEX by_d ON public."date" USING btree (d);
CREATE TRIGGER t BEFORE UPDATE ON public.customer FOR EACH ROW EXECUTE FUNCTION public.f();
CREATE POLICY p ON public.customer USING (true);
ALTER TABLE ONLY public."date"
    ADD CONSTRAINT date_fkey FOREIGN KEY (customer_id) REFERENCES public.customer(id);
GRANT ALL ON TABLE public.customer TO nobody;
REFRESH MATERIALIZED VIEW public.counted;
"""


@pytest.fixture
def connection(dsn):
    with psycopg.connect(dsn) as opened:
        yield opened


def dump(path, body, *, head=HEAD, tail=TAIL):
    text = (head + body + tail).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def keys(connection, schema):
    rows = connection.execute(
        "SELECT conname FROM pg_constraint WHERE connamespace = %s::regnamespace "
        "AND contype <> 'n' ORDER BY 1",
        (schema,),
    )
    return [row[0] for row in rows]


def test_a_dump_is_loaded_without_what_is_not_data(connection, tmp_path):
    file = dump(tmp_path / "shop.sql.gz", SHOP)
    (report,) = load_path(connection, file)
    assert report.schema == "shop"
    assert report.schemas == ["shop"]
    assert report.tables == [("customer", 2, 0), ("date", 1, 0)]
    rows = connection.execute("SELECT * FROM shop.customer ORDER BY id").fetchall()
    assert [row[:4] for row in rows] == [
        (1, "Anna; B", "it's ok", 20),
        (2, "ä\tb\\", None, None),
    ]
    assert [row[5] for row in rows] == [2, 4]
    assert keys(connection, "shop") == ["customer_id", "customer_pkey", "date_fkey", "small"]
    assert connection.execute("SELECT id, source::text FROM shop.adults").fetchall() == [
        (1, "shop.customer")
    ]
    assert connection.execute("SELECT n FROM shop.counted").fetchone() == (2,)
    comment = connection.execute("SELECT obj_description('shop.customer'::regclass)").fetchone()
    assert comment == ("Customers; it's public.customer",)
    assert connection.execute(
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    ).fetchone() == (0,)
    for kind in ("CREATE EXTENSION", "CREATE FUNCTION", "CREATE TRIGGER", "CREATE POLICY"):
        assert report.skipped[kind] == 1
    for kind in ("GRANT", "CREATE INDEX", "ALTER TABLE OWNER TO", "ALTER TYPE", "\\restrict"):
        assert report.skipped[kind] == 1
    assert report.skipped["SELECT"] == 2
    text = "\n".join(report.remarks)
    assert "customer.Full; Name: its type public.citext is not part of the dump" in text
    assert "positive: a check left out: it needs public.ok" in text
    line = (HEAD + SHOP).partition("CREATE VIEW public.broken")[0].count("\n") + 1
    assert f"line {line}: CREATE VIEW broken left out" in text
    assert "CREATE VIEW secret left out: it uses pg_read_file" in text
    assert "1 rows of spatial_ref_sys left out" in text
    assert len(report.remarks) == 5


def test_without_keys_checks_stay(connection, tmp_path):
    load_path(connection, dump(tmp_path / "shop.sql", SHOP), keys=False)
    assert keys(connection, "shop") == ["customer_id", "small"]


SEVERAL = """
CREATE SCHEMA sales;
CREATE SCHEMA "Odd x";
CREATE TABLE public.a (id integer);
CREATE TABLE sales.a (id integer);
CREATE TABLE "Odd x"."T" (id integer);
INSERT INTO public.a VALUES (1), (2);
INSERT INTO sales.a (id) VALUES (3);
INSERT INTO "Odd x"."T" OVERRIDING SYSTEM VALUE VALUES (-4);
CREATE VIEW sales.v AS SELECT x.id FROM public.a x UNION ALL SELECT id FROM "Odd x"."T";
ALTER TABLE ONLY public.a ADD CONSTRAINT a_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sales.a ADD CONSTRAINT a_fkey FOREIGN KEY (id) REFERENCES public.a(id) NOT VALID;
"""


def test_several_schemas_become_several(connection, tmp_path):
    file = dump(tmp_path / "m.sql", SEVERAL)
    for _ in range(2):
        (report,) = load_path(connection, file, replace=True)
        assert report.schemas == ["m", "m_sales", "m_Odd x"]
        assert report.tables == [("m.a", 2, 0), ("m_sales.a", 1, 0), ("m_Odd x.T", 1, 0)]
        rows = connection.execute("SELECT id FROM m_sales.v ORDER BY 1").fetchall()
        assert rows == [(-4,), (1,), (2,)]
        assert keys(connection, "m_sales") == ["a_fkey"]
        assert report.remarks == []


def test_a_single_schema_is_the_target_whatever_its_name(connection, tmp_path):
    body = "CREATE SCHEMA hr;\nCREATE TABLE hr.t (a int);\nCREATE FUNCTION public.f() RETURNS int"
    file = dump(tmp_path / "one.sql", body + " LANGUAGE sql AS $$SELECT 1;$$;\n")
    (report,) = load_path(connection, file, schema="Staff")
    assert report.schemas == ["Staff"]
    assert connection.execute('SELECT count(*) FROM "Staff".t').fetchone() == (0,)


def test_an_old_dump_names_its_schema_by_the_search_path(connection, tmp_path):
    body = (
        "SET search_path = public, pg_catalog;\nCREATE TABLE t (a integer);\n"
        "COPY t (a) FROM stdin;\n1\n\\.\nSET search_path = s, pg_catalog;\n"
        "CREATE TABLE t (b text);\nCOPY t (b) FROM stdin;\nx\ny\n\\.\n"
    )
    (report,) = load_path(connection, dump(tmp_path / "old.sql", body))
    assert report.tables == [("old.t", 1, 0), ("old_s.t", 2, 0)]
    assert connection.execute("SELECT b FROM old_s.t").fetchall() == [("x",), ("y",)]


def test_partitions(connection, tmp_path):
    body = (
        "CREATE TABLE public.p (k integer NOT NULL) PARTITION BY RANGE (k);\n"
        "CREATE TABLE public.p1 (k integer NOT NULL);\n"
        "ALTER TABLE ONLY public.p ATTACH PARTITION public.p1 FOR VALUES FROM (0) TO (9);\n"
        "COPY public.p1 (k) FROM stdin;\n5\n\\.\n"
        "ALTER TABLE ONLY public.p ADD CONSTRAINT p_pkey PRIMARY KEY (k);\n"
        "ALTER TABLE ONLY public.p1 ADD CONSTRAINT p1_pkey PRIMARY KEY (k);\n"
        "CREATE INDEX p1_k ON public.p1 (k);\n"
        "ALTER INDEX public.p_pkey ATTACH PARTITION public.p1_pkey;\n"
        "ALTER INDEX public.p_k ATTACH PARTITION public.p1_k;\n"
    )
    (report,) = load_path(connection, dump(tmp_path / "part.sql", body))
    assert report.remarks == []
    assert connection.execute("SELECT k FROM part.p").fetchall() == [(5,)]
    assert report.skipped["ALTER INDEX ATTACH PARTITION"] == 1
    assert connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'part.p_pkey'::regclass"
    ).fetchone() == (True,)


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("CREATE TABLE public.t (a nonsense);\n", 11, "type"),
        (
            "CREATE TABLE public.t (a integer);\nCOPY public.t (a) FROM stdin;\n1\nx\n\\.\n",
            14,
            "invalid input syntax",
        ),
        ("CREATE TABLE public.t (a int);\nINSERT INTO public.t VALUES ('x');\n", 12, "invalid"),
        (
            "CREATE TABLE public.t (a text);\n"
            "INSERT INTO public.t VALUES (pg_read_file('/etc/passwd'));\n",
            12,
            "never runs",
        ),
        ("CREATE TABLE public.t (a text);\nCOPY public.t FROM '/etc/passwd';\n", 12, "never runs"),
        ("CREATE TABLE public.t (a text);\nCOPY public.t FROM PROGRAM 'id';\n", 12, "never runs"),
        ("CREATE TABLE public.t AS SELECT pg_read_file('x');\n", 11, "never runs"),
        ("CREATE TABLE public.t (a) AS SELECT 1;\n", 11, "never runs"),
        ("CREATE TABLE public.t (a text CHECK (pg_sleep(9) IS NULL));\n", 11, "never runs"),
        ("\nCREATE TABLE public.t (a\n", 12, "ends inside"),
        ("CREATE TABLE public.t (a int);\nCOPY public.t FROM stdin;\n1\n", 12, "ends inside"),
        ("SET standard_conforming_strings = off;\n", 11, "backslashes"),
    ],
)
def test_errors_name_the_line_and_leave_nothing(connection, tmp_path, body, line, message):
    file = dump(tmp_path / "bad.sql", body)
    with pytest.raises(LoadError, match=message) as caught:
        load_path(connection, file)
    assert f"bad.sql, line {line}:" in str(caught.value)
    assert not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'bad'").fetchall()


def test_a_dump_in_another_encoding(connection, tmp_path):
    file = tmp_path / "latin.sql"
    body = "CREATE TABLE public.t (a text);\nCOPY public.t (a) FROM stdin;\ncafé\n\\.\n"
    head = HEAD.replace("UTF8", "LATIN1")
    file.write_bytes((head + body + TAIL).encode("latin-1"))
    load_path(connection, file)
    assert connection.execute("SELECT a FROM latin.t").fetchone() == ("café",)
    file.write_bytes((HEAD + body + TAIL).encode("latin-1"))
    with pytest.raises(LoadError, match=r"latin\.sql, line 13: not UTF8"):
        load_path(connection, file, replace=True)
    assert connection.execute("SELECT a FROM latin.t").fetchone() == ("café",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PGDMP\x01\x0e", "pg_restore -f -"),
        (b"SELECT 1;", "no plain dump of pg_dump"),
        (b"", "no plain dump of pg_dump"),
        (b"--\n-- PostgreSQL database cluster dump\n--\n", "one database at a time"),
    ],
)
def test_files_that_are_no_plain_dump(connection, tmp_path, data, message):
    file = tmp_path / "x.sql"
    file.write_bytes(data)
    with pytest.raises(LoadError, match=message) as caught:
        load_path(connection, file)
    assert str(file) in str(caught.value)


def test_a_missing_end_is_remarked_on(connection, tmp_path):
    file = dump(tmp_path / "cut.sql", "CREATE TABLE public.t (a int);\n", tail="")
    (report,) = load_path(connection, file)
    assert report.remarks == ["the dump's closing comment is missing: it may be cut"]


def test_types_and_tables_of_other_types(connection, tmp_path):
    body = (
        "CREATE TYPE public.pair AS (a integer, b text);\n"
        "CREATE TYPE public.odd AS (a public.citext);\n"
        "CREATE TYPE public.base (INPUT = public.f, OUTPUT = public.g);\n"
        "CREATE DOMAIN public.ci AS public.citext;\n"
        "CREATE TABLE public.typed OF public.pair;\n"
        "CREATE TABLE public.t (p public.pair, o public.odd, b public.base, c public.ci[]);\n"
        "CREATE TABLE public.child () INHERITS (public.t);\n"
        "INSERT INTO public.t VALUES ('(1,x)', '(y)', 'z', '{w}');\n"
        "COMMENT ON TYPE public.pair IS 'two';\n"
        "COMMENT ON COLUMN public.nowhere.x IS 'fails';\n"
        "CREATE FOREIGN TABLE public.far (a integer) SERVER s;\n"
        "INSERT INTO public.far VALUES (1);\n"
    )
    (report,) = load_path(connection, dump(tmp_path / "ty.sql", body))
    assert report.tables == [("typed", 0, 0), ("t", 1, 0), ("child", 0, 0)]
    row = connection.execute("SELECT (p).b, o, b, c FROM ty.t").fetchone()
    assert row == ("x", "(y)", "z", "{w}")
    assert report.skipped["CREATE TYPE"] == 2
    assert report.skipped["CREATE DOMAIN"] == 1
    assert report.skipped["CREATE FOREIGN TABLE"] == report.skipped["INSERT"] == 1
    assert sum("COMMENT ON COLUMN" in remark for remark in report.remarks) == 1
    assert len(report.remarks) == 4


def test_data_is_never_taken_for_sql(connection, tmp_path):
    body = (
        "CREATE TABLE public.t (a text);\nCOPY public.t (a) FROM stdin;\n"
        "'; DROP SCHEMA public CASCADE; --\n$$\n/*\n\\\\.\n\\.\n"
        "INSERT INTO public.t VALUES ('''; DROP TABLE public.t; --');\n"
    )
    load_path(connection, dump(tmp_path / "data.sql", body))
    assert [row[0] for row in connection.execute("SELECT a FROM data.t").fetchall()] == [
        *("'; DROP SCHEMA public CASCADE; --", "$$", "/*", "\\."),
        "'; DROP TABLE public.t; --",
    ]


def test_a_dump_without_tables_leaves_an_empty_schema(connection, tmp_path):
    (report,) = load_path(connection, dump(tmp_path / "none.sql", "SELECT 1;\n"))
    assert (report.schemas, report.tables) == (["none"], [])
    assert report.remarks == ["the dump holds no table"]


def test_a_table_named_like_its_schema(connection, tmp_path):
    body = (
        "CREATE SCHEMA sales;\nCREATE TABLE sales.sales (id integer);\n"
        "CREATE VIEW sales.v AS SELECT sales.id FROM sales.sales WHERE (sales.id > 1);\n"
        "INSERT INTO sales.sales VALUES (1), (2);\n"
        "CREATE VIEW sales.sum AS SELECT sum(sales.id) AS n FROM sales.v sales;\n"
    )
    (report,) = load_path(connection, dump(tmp_path / "named.sql", body))
    assert report.remarks == []
    assert connection.execute("SELECT n FROM named.sum").fetchone() == (2,)
