"""Rewrite a CREATE TABLE or CREATE DOMAIN so that it stands without the dump's functions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coret_pg.loading.dump_lexer import Token
from coret_pg.loading.dump_statements import references, rewritten, significant

_CLAUSES = frozenset(
    {
        *("CONSTRAINT", "NOT", "NULL", "DEFAULT", "CHECK", "UNIQUE", "PRIMARY", "REFERENCES"),
        *("GENERATED", "COLLATE", "DEFERRABLE", "INITIALLY"),
    }
)
_TABLE_CONSTRAINTS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE"})
_KEYS = frozenset({"PRIMARY", "UNIQUE", "REFERENCES", "FOREIGN"})


@dataclass(slots=True)
class Rewriter:
    """Rewrites definitions for one dump.

    `schemas` maps its schemas to the pool's; `known` holds the types and tables it creates,
    as (schema, name).
    """

    schemas: dict[str, str]
    known: set[tuple[str, str]]
    keys: bool
    remarks: list[str] = field(default_factory=list)

    def table(self, tokens: Sequence[Token], name: str) -> str:
        """Return the CREATE TABLE for the pool."""
        body = _body(tokens)
        if body is None:
            return rewritten(tokens, self.schemas)
        start, end = body
        elements = [
            kept
            for element in _split(tokens[start + 1 : end])
            if (kept := self._element(element, name))
        ]
        head = rewritten(tokens[:start], self.schemas)
        tail = rewritten(tokens[end + 1 :], self.schemas)
        return f"{head}({', '.join(elements)}){tail}"

    def stands(self, tokens: Sequence[Token], *, domain: bool) -> bool:
        """Tell whether a CREATE TYPE or DOMAIN needs nothing that the dump doesn't create."""
        return not self._unknown(significant(_clauses(tokens)[0] if domain else tokens))

    def domain(self, tokens: Sequence[Token], name: str) -> str:
        """Return the CREATE DOMAIN for the pool."""
        clauses = _clauses(tokens)
        kept = [clauses[0], *(c for c in clauses[1:] if self._keep(c, name))]
        return "".join(rewritten(clause, self.schemas) for clause in kept)

    def _element(self, element: Sequence[Token], table: str) -> str:
        plain = significant(element)
        if not plain:
            return ""
        first = plain[0].word
        if first in _TABLE_CONSTRAINTS:
            kind = plain[2].word if first == "CONSTRAINT" and len(plain) > 2 else first
            if (kind in _KEYS and not self.keys) or not self._standing(plain, f"{table}: a check"):
                return ""
            return rewritten(element, self.schemas).strip()
        if first == "LIKE":
            return rewritten(element, self.schemas).strip()
        clauses = _clauses(element)
        column = f"{table}.{plain[0].identifier or plain[0].text}"
        out = [self._typed(clauses[0], column)]
        dropped_key = False
        for clause in clauses[1:]:
            word = significant(clause)[0].word
            if dropped_key and (word in {"DEFERRABLE", "INITIALLY"} or _is_not_deferrable(clause)):
                continue
            kept = self._keep(clause, column)
            dropped_key = not kept and _kind(clause) in _KEYS
            if kept:
                out.append(rewritten(clause, self.schemas))
        return " ".join(part.strip() for part in out)

    def _typed(self, clause: Sequence[Token], column: str) -> str:
        """Return the column's name and type; text stands in for a type the dump doesn't create."""
        unknown = self._unknown(significant(clause)[1:])
        if not unknown:
            return rewritten(clause, self.schemas)
        self.remarks.append(f"{column}: its type {unknown} is not part of the dump: loaded as text")
        return f"{significant(clause)[0].text} text"

    def _keep(self, clause: Sequence[Token], owner: str) -> bool:
        kind = _kind(clause)
        plain = significant(clause)
        if kind in _KEYS:
            return self.keys
        if kind == "DEFAULT":
            # A default that calls something is of no use to a reader of the data.
            return not _calls(plain) and not self._unknown(plain)
        if kind == "GENERATED":
            if any(token.word == "IDENTITY" for token in plain):
                return False
            return self._standing(plain, f"{owner}: its generation")
        if kind in {"CHECK", "COLLATE"}:
            return self._standing(plain, f"{owner}: a {kind.lower()}")
        return True

    def _standing(self, tokens: Sequence[Token], what: str) -> bool:
        unknown = self._unknown(tokens)
        if unknown:
            self.remarks.append(f"{what} left out: it needs {unknown}")
        return not unknown

    def _unknown(self, tokens: Sequence[Token]) -> str:
        names = references(tokens)
        return next((f"{s}.{n}" for s, n in names if (s, n) not in self.known), "")


def _kind(clause: Sequence[Token]) -> str:
    plain = significant(clause)
    named = plain[0].word == "CONSTRAINT" and len(plain) > 2
    return plain[2 if named else 0].word


def _is_not_deferrable(clause: Sequence[Token]) -> bool:
    return [token.word for token in significant(clause)[:2]] == ["NOT", "DEFERRABLE"]


def _calls(tokens: Sequence[Token]) -> bool:
    return any(
        token.identifier is not None
        and tokens[i + 1].text == "("
        # The first one is DEFAULT itself, and numeric(10,2) of a cast is no call.
        and i
        and tokens[i - 1].text != "::"
        for i, token in enumerate(tokens[:-1])
    )


def _depths(tokens: Sequence[Token]) -> list[int]:
    depth = 0
    found = []
    for token in tokens:
        depth -= token.text in {")", "]"}
        found.append(depth)
        depth += token.text in {"(", "["}
    return found


def _body(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Return where the list of columns opens and closes; None where there is none."""
    brackets = [i for i, (t, d) in enumerate(zip(tokens, _depths(tokens), strict=True)) if d == 0]
    start = next((i for i in brackets if tokens[i].text == "("), None)
    if start is None or _has_of(tokens[:start]):
        return None
    return start, next(i for i in brackets if i > start and tokens[i].text == ")")


def _has_of(head: Sequence[Token]) -> bool:
    return any(token.word == "OF" for token in head)


def _split(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    return _cut(tokens, lambda i, depths: depths[i] == 0 and tokens[i].text == ",", drop=True)


def _clauses(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Split a column's definition: its name and type, then one clause each."""
    places = [i for i, token in enumerate(tokens) if not token.blank]
    order = {place: n for n, place in enumerate(places)}

    def starts(i: int, depths: Sequence[int]) -> bool:
        word = tokens[i].word
        n = order.get(i, 0)
        if n == 0 or depths[i] or word not in _CLAUSES:
            return False
        before = tokens[places[n - 1]].word
        if n >= 2 and tokens[places[n - 2]].word == "CONSTRAINT":
            return False
        # Such as ON DELETE SET NULL, GENERATED BY DEFAULT, NULLS NOT DISTINCT, DEFAULT NULL.
        return before not in {"SET", "BY", "NULLS", ".", "DEFAULT", "NOT", "CONSTRAINT"}

    return _cut(tokens, starts, drop=False)


def _cut(
    tokens: Sequence[Token], starts: Callable[[int, Sequence[int]], bool], *, drop: bool
) -> list[Sequence[Token]]:
    depths = _depths(tokens)
    borders = [i for i in range(len(tokens)) if starts(i, depths)]
    parts = []
    begin = 0
    for border in borders:
        parts.append(tokens[begin:border])
        begin = border + 1 if drop else border
    parts.append(tokens[begin:])
    return parts
