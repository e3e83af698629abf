"""The dump lexer: statements, COPY data and lines, whatever is quoted in them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coret_pg.loading.dump_lexer import DumpEnded, DumpReader, tokenize


def read(text):
    found = []
    reader = DumpReader(text.splitlines(keepends=True))
    for statement in reader.statements():
        found.append((statement.kind, statement.text, statement.line))
        if statement.kind == "copy":
            found.extend(("data", line, reader.line) for line in reader.copy_data())
    return found


def texts(text):
    return [found[1] for found in read(text)]


def test_statements_and_their_lines():
    assert read("-- head\n\nSET a = 1; SELECT 2;\n  /* x */ SELECT\n3;\n") == [
        ("sql", "SET a = 1", 3),
        ("sql", "SELECT 2", 3),
        ("sql", "SELECT\n3", 4),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'a;b', 'it''s; -- not'",
        "SELECT E'a\\';b', e'\\\\'",
        'SELECT "a;""b"',
        "SELECT $$;$$, $x$ $$ ; $y$ ; $x$",
        "SELECT a$b, c$d$e",
        "SELECT 1 /* ; /* ; */ ; */ + 1",
        "SELECT 1 -- ; '\n + 1",
        "SELECT 'two\nlines;\n'",
        "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)",
        "CREATE FUNCTION f() RETURNS x BEGIN ATOMIC SELECT 1; SELECT CASE WHEN a THEN 1 END; END",
        "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS $$SELECT 1;$$",
        "SELECT U&'d\\0061t;', U&\"x;\"",
        "SELECT $1, 5$x",
    ],
)
def test_what_does_not_end_a_statement(statement):
    assert texts(f"{statement};\nSELECT 2;\n") == [statement, "SELECT 2"]


def test_copy_data_is_not_sql():
    dump = "COPY public.t (a) FROM stdin;\n1;'\n\\N\n\\\\.\n\\.\n\nSELECT 1;\n"
    assert read(dump) == [
        ("copy", "COPY public.t (a) FROM stdin", 1),
        ("data", "1;'\n", 2),
        ("data", "\\N\n", 3),
        ("data", "\\\\.\n", 4),
        ("sql", "SELECT 1", 7),
    ]


def test_copy_data_nobody_reads_is_skipped():
    reader = DumpReader(["COPY t FROM stdin;\n", "1\n", "\\.\n", "SELECT 1;\n"])
    assert [s.text for s in reader.statements()] == ["COPY t FROM stdin", "SELECT 1"]


def test_meta_commands_stand_alone():
    assert read("\\restrict abc\nSELECT 1;\n\\connect x;y\n") == [
        ("meta", "\\restrict abc", 1),
        ("sql", "SELECT 1", 2),
        ("meta", "\\connect x;y", 3),
    ]


@pytest.mark.parametrize(
    "dump", ["SELECT 1", "SELECT 'a;\n", "SELECT $$;\n", "COPY t FROM stdin;\n1\n"]
)
def test_a_cut_dump_is_noticed(dump):
    with pytest.raises(DumpEnded):
        read(dump)


PIECES = st.one_of(
    st.sampled_from(["SELECT", " ", "\n", "a$b", "1", ",", "(", ")", "::", "$1", "é", "E", "x."]),
    st.text(max_size=8).map(lambda text: "'" + text.replace("'", "''") + "'"),
    st.text(max_size=8).map(lambda text: '"' + text.replace('"', '""') + '"'),
    st.text(max_size=8).map(
        lambda text: " E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "' "
    ),
    st.text(max_size=8).map(lambda text: f" $q$ {text.replace('$', '')} $q$ "),
    st.text(max_size=8).map(lambda text: "/*" + text.replace("*", "").replace("/", "") + "*/"),
    st.text(max_size=8).map(lambda text: "-- " + text.replace("\n", "") + "\n"),
)


@settings(deadline=None)
@given(st.lists(st.lists(PIECES, max_size=8), min_size=1, max_size=5))
def test_joined_statements_come_apart_again(statements):
    wanted = []
    for pieces in statements:
        depth = 0
        kept = []
        for piece in pieces:
            if piece == ")" and not depth:
                continue
            depth += (piece == "(") - (piece == ")")
            kept.append(piece)
        wanted.append("SELECT " + " ".join(kept) + ")" * depth + " x")
    dump = "".join(f"{text};\n" for text in wanted)
    reader = DumpReader(line + "\n" for line in dump.split("\n"))
    assert [statement.text for statement in reader.statements()] == wanted


@settings(deadline=None)
@given(st.lists(PIECES, max_size=12))
def test_tokens_are_the_statement(pieces):
    statement = " ".join(pieces)
    assert "".join(token.text for token in tokenize(statement)) == statement


def test_tokens_of_quotes():
    kinds = [(t.kind, t.text) for t in tokenize("E'\\'' \"a\"\"b\" $x$'$x$ 'c'::regclass /*/**/*/")]
    assert kinds == [
        ("escapes", "E'\\''"),
        ("space", " "),
        ("name", '"a""b"'),
        ("space", " "),
        ("dollar", "$x$'$x$"),
        ("space", " "),
        ("string", "'c'"),
        ("sign", "::"),
        ("word", "regclass"),
        ("space", " "),
        ("comment", "/*/**/*/"),
    ]
