"""Read tables, views and functions with their comments from the files of sql/.

With the lexer of dump files, so that no server is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from coret_pg.loading.dump_lexer import DumpReader, Token, tokenize

# A column's definition: what follows its type starts with one of these.
COLUMN_CLAUSES = frozenset(
    {
        *("NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "REFERENCES", "CHECK", "GENERATED"),
        *("COLLATE", "CONSTRAINT"),
    }
)
TABLE_CONSTRAINTS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE"})


@dataclass
class Column:
    """A column of one of our tables."""

    name: str
    type: str
    rules: str


@dataclass
class Relation:
    """A table or a view."""

    name: str
    columns: list[Column] = field(default_factory=list)


@dataclass
class Function:
    """A function or procedure, and what a caller has to know of it."""

    kind: str
    name: str
    arguments: str
    types: int
    returns: str
    volatility: str
    strict: bool


@dataclass
class SqlObjects:
    """What some SQL files create, with the comments on it."""

    tables: list[Relation] = field(default_factory=list)
    views: list[Relation] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def drop_table(self, name: str) -> None:
        """Forget a table and the comments on it."""
        self.tables = [table for table in self.tables if table.name != name]
        gone = (f"table {name}", f"column {name}.")
        self.comments = {k: v for k, v in self.comments.items() if not k.startswith(gone)}

    def comment(self, key: str) -> str:
        """Return the comment on an object; empty where there is none."""
        self.used.add(key)
        return self.comments.get(key, "")

    def required_comment(self, key: str) -> str:
        """Return the comment on an object that has to have one."""
        text = self.comment(key)
        if not text:
            raise SystemExit(f"docs/generate.py: there is no COMMENT ON {key}")
        return text


def read_sql(text: str, objects: SqlObjects) -> list[Relation]:
    """Add what SQL text makes of the schema coret to `objects`; return the tables it creates."""
    created = []
    for statement in DumpReader(text.splitlines(keepends=True)).statements():
        tokens = [token for token in tokenize(statement.text) if token.kind != "comment"]
        tokens = [token for token in tokens if not token.text.startswith("--")]
        plain = [token for token in tokens if not token.blank]
        words = [token.word for token in plain[:4] if token.word not in {"OR", "REPLACE"}]
        if words[:2] == ["CREATE", "TABLE"]:
            created.append(_read_table(tokens))
            objects.tables.append(created[-1])
        elif words[:2] == ["ALTER", "TABLE"]:
            _alter_table(objects, tokens)
        elif words[:2] == ["DROP", "TABLE"]:
            objects.drop_table(_name(plain))
        elif words[:2] == ["CREATE", "VIEW"]:
            objects.views.append(Relation(_name(plain)))
        elif words[:2] in (["CREATE", "FUNCTION"], ["CREATE", "PROCEDURE"]):
            objects.functions.append(_read_function(tokens))
        elif words[:2] == ["COMMENT", "ON"]:
            key, comment = _read_comment(plain)
            objects.comments[key] = comment
        elif words[:1] == ["DO"]:
            # The schema is created in a DO block, where it is missing.
            for found in re.finditer(r"COMMENT ON SCHEMA (\w+) IS\s+'([^']*)'", statement.text):
                objects.comments[f"schema {found[1]}"] = found[2]
    return created


def _name(plain: Sequence[Token]) -> str:
    """Return the name after the first `coret.`."""
    for i in range(len(plain) - 2):
        if plain[i].identifier == "coret" and plain[i + 1].text == ".":
            return plain[i + 2].identifier or ""
    raise SystemExit("docs/generate.py: something is created outside of the schema coret")


def _brackets(tokens: Sequence[Token]) -> tuple[int, int]:
    """Return where the first bracket opens and where that one closes."""
    start = next(i for i, token in enumerate(tokens) if token.text == "(")
    depth = 0
    for i in range(start, len(tokens)):
        depth += (tokens[i].text == "(") - (tokens[i].text == ")")
        if depth == 0:
            return start, i
    raise SystemExit("docs/generate.py: a bracket is not closed")


def _split(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the parts between commas that are in no bracket."""
    depth = 0
    part: list[Token] = []
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]") if len(token.text) == 1 else 0
        if token.text == "," and not depth:
            yield part
            part = []
        else:
            part.append(token)
    if any(not token.blank for token in part):
        yield part


def _text(tokens: Sequence[Token]) -> str:
    return " ".join("".join(token.text for token in tokens).split())


def _read_table(tokens: Sequence[Token]) -> Relation:
    start, end = _brackets(tokens)
    relation = Relation(_name([token for token in tokens if not token.blank]))
    key: set[str | None] = set()
    for part in _split(tokens[start + 1 : end]):
        plain = [token for token in part if not token.blank]
        if plain[0].word in TABLE_CONSTRAINTS:
            if plain[0].word == "PRIMARY":
                key = {token.identifier for token in plain[2:]}
            continue
        relation.columns.append(_read_column(part))
    for column in relation.columns:
        if column.name in key:
            column.rules = column.rules.replace("not null", "primary key", 1)
    return relation


def _read_column(part: Sequence[Token]) -> Column:
    first = next(i for i, token in enumerate(part) if not token.blank)
    after = next(
        (i for i, token in enumerate(part) if i and token.word in COLUMN_CLAUSES), len(part)
    )
    return Column(
        part[first].identifier or "", _text(part[first + 1 : after]), _rules(_text(part[after:]))
    )


def _alter_table(objects: SqlObjects, tokens: Sequence[Token]) -> None:
    """Add and drop the columns that an ALTER TABLE adds and drops."""
    name = _name([token for token in tokens if not token.blank])
    table = next(table for table in objects.tables if table.name == name)
    for part in _split(tokens):
        words = [token.word for token in part]
        for verb in ("ADD", "DROP"):
            if verb not in words or "COLUMN" not in words:
                continue
            column = _read_column(part[words.index("COLUMN") + 1 :])
            if verb == "ADD":
                table.columns.append(column)
            else:
                table.columns = [c for c in table.columns if c.name != column.name]
                objects.comments.pop(f"column {name}.{column.name}", None)


def _rules(clauses: str) -> str:
    """Return a column's clauses in short: not null, key, generated, default, references."""
    found = []
    if "PRIMARY KEY" in clauses:
        found.append("primary key")
    elif "NOT NULL" in clauses:
        found.append("not null")
    if "UNIQUE" in clauses:
        found.append("unique")
    if "AS IDENTITY" in clauses:
        found.append("identity")
    elif "GENERATED" in clauses:
        found.append("generated")
    if match := re.search(r"DEFAULT (\S+(?:\(\))?)", clauses):
        found.append(f"default `{match[1]}`")
    if match := re.search(r"REFERENCES (\S+)", clauses):
        found.append(f"references `{match[1]}`")
    if match := re.search(r"CHECK \(\w+ (IN \([^)]*\)|BETWEEN \S+ AND \d+)\)", clauses):
        found.append(f"`{match[1]}`")
    return ", ".join(found)


def _read_function(tokens: Sequence[Token]) -> Function:
    start, end = _brackets(tokens)
    words = [token.word for token in tokens]
    language = words.index("LANGUAGE", end)
    # A procedure returns its INOUT arguments.
    returns = words.index("RETURNS", end) if "RETURNS" in words[end:language] else language
    # The rest of the head; a body may hold any word.
    head = []
    for word in words[language:]:
        if word in {"AS", "BEGIN", "RETURN"}:
            break
        head.append(word)
    volatility = next((w for w in head if w in {"IMMUTABLE", "STABLE", "VOLATILE"}), "VOLATILE")
    arguments = list(_split(tokens[start + 1 : end]))
    return Function(
        kind="procedure" if "PROCEDURE" in words[:start] else "function",
        name=_name([token for token in tokens if not token.blank]),
        arguments=", ".join(_text(argument) for argument in arguments),
        types=len(arguments),
        returns=_text(tokens[returns + 1 : language]),
        volatility=volatility,
        strict="STRICT" in head,
    )


def _read_comment(plain: Sequence[Token]) -> tuple[str, str]:
    """Return the key and the text of COMMENT ON."""
    kind = plain[2].text.lower()
    place = max(i for i, token in enumerate(plain) if token.word == "IS")
    name = _name(plain[:place])
    if kind in {"function", "procedure"}:
        start, end = _brackets(plain[:place])
        name += f"/{len(list(_split(plain[start + 1 : end])))}"
    elif kind == "column":
        name += f".{plain[place - 1].identifier}"
    return f"{kind} {name}", plain[place + 1].text[1:-1].replace("''", "'")
