"""Know what a dump's statement is, and rewrite the schemas it names."""

import re
from collections.abc import Collection, Mapping, Sequence

from coret_pg.loading.dump_lexer import Token, tokenize

# Only these are run; everything else of a dump is counted and left out.
REQUIRED = frozenset(
    {
        *("CREATE TABLE", "CREATE TYPE", "CREATE DOMAIN", "ALTER TABLE ATTACH PARTITION"),
        *("COPY", "INSERT"),
    }
)
OPTIONAL = frozenset(
    {
        *("CREATE SEQUENCE", "CREATE VIEW", "CREATE MATERIALIZED VIEW", "CREATE UNIQUE INDEX"),
        *("REFRESH MATERIALIZED VIEW", "ALTER TABLE ADD CONSTRAINT"),
        "ALTER INDEX ATTACH PARTITION",
        *("COMMENT ON TABLE", "COMMENT ON COLUMN", "COMMENT ON VIEW", "COMMENT ON TYPE"),
        *("COMMENT ON MATERIALIZED VIEW", "COMMENT ON DOMAIN"),
    }
)
# Those that create something a name can refer to: its schema counts as one of the dump's.
NAMING = frozenset(
    {
        *("CREATE TABLE", "CREATE TYPE", "CREATE DOMAIN", "CREATE VIEW", "CREATE SEQUENCE"),
        "CREATE MATERIALIZED VIEW",
    }
)
_MODIFIERS = frozenset({"OR", "REPLACE", "UNLOGGED", "RECURSIVE", "CONSTRAINT", "TRUSTED"})
_TWO_WORDS = frozenset(
    {"UNIQUE", "MATERIALIZED", "FOREIGN", "EVENT", "USER", "TEXT", "ACCESS", "DEFAULT", "LARGE"}
)
# Functions that read the server's files, change its state, or run any SQL text.
_FORBIDDEN = re.compile(
    r"(pg|lo|dblink|txid|currval|nextval|setval|lastval|set_config|current_setting)(_.*)?"
    r"|.*_to_xml.*|loread|lowrite"
)


def significant(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens that are neither white space nor comments."""
    return [token for token in tokens if not token.blank]


def name_at(tokens: Sequence[Token], position: int) -> tuple[str | None, str, int]:
    """Return the schema (if any) and name at a position of the significant tokens, and its end."""
    parts: list[str] = []
    while position < len(tokens) and (part := tokens[position].identifier) is not None:
        parts.append(part)
        position += 1
        if position >= len(tokens) or tokens[position].text != ".":
            break
        position += 1
    schema = parts[-2] if len(parts) > 1 else None
    return schema, parts[-1] if parts else "", position


def name_position(tokens: Sequence[Token]) -> int:
    """Return where the name of the thing created, altered or filled starts."""
    skipped = {"IF", "NOT", "EXISTS", "ONLY", "INTO", "CONCURRENTLY"}
    start = {"COPY": 1, "INSERT": 1, "REFRESH": 3}.get(tokens[0].word, 0)
    if not start:
        words = [token.word for token in tokens[:8]]
        objects = {"TABLE", "TYPE", "DOMAIN", "VIEW", "SEQUENCE", "INDEX", "SCHEMA"}
        start = next((i for i, word in enumerate(words) if word in objects), 0) + 1
    while start < len(tokens) and tokens[start].word in skipped:
        start += 1
    return start


def kind_of(tokens: Sequence[Token]) -> str:
    """Return what kind of statement the significant tokens are, such as CREATE TABLE."""
    words = [token.word or '"' for token in tokens[:10]]
    if words[0] == "CREATE":
        rest = [word for word in words[1:] if word not in _MODIFIERS] or [""]
        return " ".join(["CREATE", *rest[: 2 if rest[0] in _TWO_WORDS else 1]])
    if words[0] == "ALTER" and words[1:2] in (["TABLE"], ["INDEX"]):
        _, _, end = name_at(tokens, name_position(tokens))
        return " ".join([*words[:2], *(token.word for token in tokens[end : end + 2])]).strip()
    if words[:2] == ["COMMENT", "ON"]:
        return " ".join(words[: 4 if words[2] in _TWO_WORDS else 3])
    if words[0] == "REFRESH":
        return " ".join(words[:3])
    length = 2 if words[0] in {"ALTER", "DROP"} else 1
    return " ".join(words[:length])


def search_path_of(tokens: Sequence[Token]) -> tuple[bool, str | None]:
    """Tell whether the statement sets the search path, and to which schema first, if any."""
    words = [token.word for token in tokens[:4]]
    if words[:2] == ["SET", "SEARCH_PATH"] and len(tokens) > 3:
        name = tokens[3].identifier or tokens[3].text.strip("'")
        return True, name if name and name != "pg_catalog" else None
    if words[0] == "SELECT" and any(token.text == "'search_path'" for token in tokens):
        return True, None
    return False, None


def quoted(name: str) -> str:
    """Return the name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def rewritten(
    tokens: Sequence[Token],
    schemas: Mapping[str, str],
    relations: Collection[tuple[str, str]] = (),
) -> str:
    """Return the statement with the dump's schemas replaced by those of the pool.

    With `relations`, the dump's (schema, name) pairs, a schema that a table is named like
    too is only taken for one before a name of that schema, or before a function: for
    `sales.id` may be a column of the table sales.
    """
    unsure = {name for _, name in relations if name in schemas}
    places = [i for i, token in enumerate(tokens) if not token.blank]
    out = [token.text for token in tokens]
    for n, place in enumerate(places):
        token = tokens[place]
        if token.kind not in {"word", "name", "string"}:
            continue
        after = [tokens[p] for p in places[n + 1 : n + 5]]
        before = tokens[places[n - 1]].text if n else ""
        if token.identifier in schemas and before != "." and after and after[0].text == ".":
            if token.identifier in unsure and not _is_schema(token, after[1:], relations):
                continue
            out[place] = quoted(schemas[token.identifier or ""])
        elif token.kind == "string" and after and after[0].text == "::" and _is_regclass(after[1:]):
            inner = rewritten(tokenize(token.text[1:-1].replace("''", "'")), schemas)
            out[place] = "'" + inner.replace("'", "''") + "'"
    return "".join(out)


def _is_schema(
    token: Token, after: Sequence[Token], relations: Collection[tuple[str, str]]
) -> bool:
    pair = (token.identifier or "", (after[0].identifier or "") if after else "")
    return pair in relations or (len(after) > 1 and after[1].text == "(")


def _is_regclass(tokens: Sequence[Token]) -> bool:
    words = [token.identifier or token.text for token in tokens]
    return words[:1] == ["regclass"] or words[:3] == ["pg_catalog", ".", "regclass"]


def references(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Return the (schema, name) pairs that significant tokens name outside of Postgres' own.

    An operator of such a schema comes with its sign as the name.
    """
    found = []
    for i in range(len(tokens) - 2):
        name = tokens[i].identifier
        first = name is not None and (not i or tokens[i - 1].text != ".")
        if first and tokens[i + 1].text == "." and name not in {"pg_catalog", "information_schema"}:
            found.append((name or "", tokens[i + 2].identifier or tokens[i + 2].text))
    return found


def forbidden_call(tokens: Sequence[Token]) -> str | None:
    """Return the first function that a loaded statement must not call; None if there is none."""
    for i, token in enumerate(tokens):
        if token.kind == "unicode":
            return token.text
        name = token.identifier
        if (
            name is not None
            and tokens[i + 1 : i + 2]
            and tokens[i + 1].text == "("
            and _FORBIDDEN.fullmatch(name)
            and not _is_relation(tokens, i)
        ):
            return name
    return None


def _is_relation(tokens: Sequence[Token], position: int) -> bool:
    while position > 1 and tokens[position - 1].text == ".":
        position -= 2
    before = tokens[position - 1].word if position else ""
    return before in {"TABLE", "REFERENCES", "EXISTS", "ONLY"}


def is_literal_insert(tokens: Sequence[Token]) -> bool:
    """Tell whether an INSERT holds nothing but literal values, as pg_dump writes it."""
    words = [token.word for token in tokens]
    if "VALUES" not in words:
        return False
    start = words.index("VALUES")
    if {"SELECT", "WITH", "RETURNING"} & set(words) or words[start - 1] == "DEFAULT":
        return False
    for i in range(start + 1, len(tokens) - 1):
        if tokens[i].kind in {"unicode", "dollar"}:
            return False
        called = tokens[i].identifier is not None and tokens[i + 1].text == "("
        if called and not _is_cast(tokens, i) and words[i] not in {"VALUES", "CONFLICT"}:
            return False
    return True


def _is_cast(tokens: Sequence[Token], position: int) -> bool:
    while position > 1 and tokens[position - 1].text == ".":
        position -= 2
    # Types of several words: character varying(10), timestamp(3) with time zone.
    while position > 0 and tokens[position - 1].identifier is not None:
        position -= 1
    return position > 0 and tokens[position - 1].text == "::"
