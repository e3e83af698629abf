"""Split a plain SQL dump into statements and COPY data while it streams by."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

_LETTER = "A-Za-z_\u0080-\U0010ffff"
_DOLLAR = rf"\$(?:[{_LETTER}][{_LETTER}0-9]*)?\$"

# What matters between two statements' ends. A dollar inside of a word opens no quote, and
# of the words only those of a function's body count.
_SPECIAL = re.compile(
    rf"(?<![{_LETTER}0-9$])(?:(?P<word>(?:FUNCTION|PROCEDURE|BEGIN|CASE|END)(?![{_LETTER}0-9$]))"
    rf"|(?P<escapes>E')|(?P<dollar>{_DOLLAR}))"
    r"|(?P<line>--)|(?P<block>/\*)|(?P<quote>')|(?P<name>\")"
    r"|(?P<end>;)|(?P<open>\()|(?P<close>\))|(?P<meta>\\)",
    re.I,
)
_IN_ESCAPES = re.compile(r"\\.|''|'", re.S)
_IN_QUOTE = re.compile(r"''|'")
_IN_NAME = re.compile(r'""|"')
_IN_BLOCK = re.compile(r"/\*|\*/")
_ROUTINE = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:FUNCTION|PROCEDURE)\b", re.I)
_COPY = re.compile(r"\s*COPY\b.*\bFROM\s+stdin\b", re.I | re.S)

_TOKEN = re.compile(
    rf"""
    (?P<space>\s+|--[^\n]*)
    |(?P<comment>/\*)
    |(?P<escapes>[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*')
    |(?P<string>(?:[bBxXnN]|[uU]&)?'[^']*(?:''[^']*)*')
    |(?P<unicode>[uU]&"[^"]*(?:""[^"]*)*")
    |(?P<name>"[^"]*(?:""[^"]*)*")
    |(?P<dollar>\$(?P<tag>(?:[{_LETTER}][{_LETTER}0-9]*)?)\$.*?\$(?P=tag)\$)
    |(?P<word>[{_LETTER}][{_LETTER}0-9$]*)
    |(?P<number>[0-9][{_LETTER}0-9.]*)
    |(?P<sign>::|.)
    """,
    re.X | re.S,
)


class Token(NamedTuple):
    """A piece of a statement; all of them joined are the statement."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """Return an unquoted word in upper case, and a sign; nothing for other kinds."""
        return self.text.upper() if self.kind in {"word", "sign"} else ""

    @property
    def identifier(self) -> str | None:
        """Return the name this token stands for, folded as Postgres does; None if it is none."""
        if self.kind == "word":
            if self.text.isascii():
                return self.text.lower()
            return "".join(c.lower() if c.isascii() else c for c in self.text)
        return self.text[1:-1].replace('""', '"') if self.kind == "name" else None

    @property
    def blank(self) -> bool:
        """Tell whether it is white space or a comment."""
        return self.kind in {"space", "comment"}


def tokenize(statement: str) -> list[Token]:
    """Return the tokens of one statement."""
    tokens = []
    position = 0
    while position < len(statement):
        match = _TOKEN.match(statement, position)
        if match is None:  # the last branch takes any character
            raise AssertionError(statement[position:])
        kind = match.lastgroup or ""
        end = match.end()
        if match["comment"]:
            kind, end = "comment", _end_of_block(statement, end)
        elif match["dollar"]:
            kind = "dollar"
        tokens.append(Token(kind, statement[position:end]))
        position = end
    return tokens


def _end_of_block(text: str, position: int) -> int:
    depth = 1
    for match in _IN_BLOCK.finditer(text, position):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement without its semicolon, or a psql meta-command; `line` is its first one."""

    kind: Literal["sql", "copy", "meta"]
    text: str
    line: int


class DumpEnded(Exception):
    """The file ends inside a statement or inside COPY data; the argument is its first line."""


class DumpReader:
    """Reads a dump once, statement by statement."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.line = 0
        self._lines = iter(lines)
        self._pending = False
        self._reset()

    def _reset(self) -> None:
        self._parts: list[str] = []
        self._first = 0
        self._inside = ""  # the quote or comment that is open: ' E " /* or a dollar tag
        self._depth = 0  # of nested comments
        self._brackets = 0
        self._blocks = 0  # BEGIN ATOMIC ... END of a function's body
        self._routine = False

    def statements(self) -> Iterator[Statement]:
        """Yield the statements; after a "copy" one, `copy_data` holds what follows.

        Raises DumpEnded where the file ends too early.
        """
        for line in self._lines:
            self.line += 1
            position = 0
            while position < len(line):
                if self._inside:
                    position = self._leave(line, position)
                    continue
                found = self._next(line, position)
                if isinstance(found, Statement):
                    position = len(line) if found.kind != "sql" else self._resume
                    self._pending = found.kind == "copy"
                    yield found
                    for _ in self.copy_data():
                        pass  # the caller had no use for the rest of it
                else:
                    position = found
        if self._first:
            raise DumpEnded(self._first)

    def copy_data(self) -> Iterator[str]:
        """Yield the lines of the current COPY's data; nothing where there is none."""
        start = self.line
        while self._pending:
            line = next(self._lines, None)
            if line is None:
                raise DumpEnded(start)
            self.line += 1
            if line.rstrip("\r\n") == "\\.":
                self._pending = False
            else:
                yield line

    def _keep(self, text: str) -> None:
        if self._first:
            self._parts.append(text)
        elif kept := text.lstrip():
            self._first = self.line
            self._parts.append(kept)

    def _leave(self, line: str, position: int) -> int:
        """Take the line up to where the open quote or comment ends."""
        if self._inside == "/*":
            end = self._leave_block(line, position)
        elif self._inside.startswith("$"):
            at = line.find(self._inside, position)
            end = len(line) if at < 0 else at + len(self._inside)
            self._inside = self._inside if at < 0 else ""
        else:
            patterns = {"'": _IN_QUOTE, "E": _IN_ESCAPES, '"': _IN_NAME}
            end = len(line)
            for match in patterns[self._inside].finditer(line, position):
                if len(match.group()) == 1:
                    end = match.end()
                    self._inside = ""
                    break
        if self._first:
            self._parts.append(line[position:end])
        return end

    def _leave_block(self, line: str, position: int) -> int:
        for match in _IN_BLOCK.finditer(line, position):
            self._depth += 1 if match.group() == "/*" else -1
            if self._depth == 0:
                self._inside = ""
                return match.end()
        return len(line)

    def _next(self, line: str, position: int) -> Statement | int:
        """Take the line up to and with the next thing that matters."""
        match = _SPECIAL.search(line, position)
        if match is None:
            self._keep(line[position:])
            return len(line)
        kind, text = match.lastgroup, match.group()
        self._keep(line[position : match.start()])
        if kind == "end" and not self._brackets and not self._blocks:
            self._resume = match.end()
            return self._finish() if self._first else match.end()
        if kind == "line":
            if self._first:
                self._parts.append(line[match.start() :])
            return len(line)
        if kind == "meta" and not self._first:
            return Statement("meta", line[match.start() :].strip(), self.line)
        if kind == "block":
            self._inside, self._depth = "/*", 1
            if self._first:
                self._parts.append(text)
            return match.end()
        self._keep(text)
        if kind in {"quote", "name", "dollar"}:
            self._inside = text
        elif kind == "escapes":
            self._inside = "E"
        elif kind == "open":
            self._brackets += 1
        elif kind == "close":
            self._brackets = max(0, self._brackets - 1)
        elif kind == "word":
            self._see_word(text)
        return match.end()

    def _see_word(self, word: str) -> None:
        upper = word.upper()
        if upper in {"FUNCTION", "PROCEDURE"} and not self._routine:
            self._routine = _ROUTINE.match("".join(self._parts)) is not None
        if self._routine and not self._brackets:
            if upper == "BEGIN" or (upper == "CASE" and self._blocks):
                self._blocks += 1
            elif upper == "END" and self._blocks:
                self._blocks -= 1

    def _finish(self) -> Statement:
        text = "".join(self._parts).rstrip()
        kind: Literal["sql", "copy"] = "sql"
        if text[:4].upper() == "COPY" and _COPY.match(text):
            kind = "copy"
        statement = Statement(kind, text, self._first)
        self._reset()
        return statement
