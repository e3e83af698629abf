"""Names in the pool: kept exactly, except where Postgres can't hold them."""

from hashlib import sha256

from coret_pg.errors import InputError, LoadError

NAME_BYTES = 63
KEPT_BYTES = 54
RESERVED_SCHEMAS = frozenset({"public", "coret", "information_schema"})
SYSTEM_COLUMNS = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})


def shortened(name: str) -> str:
    """Return the name as Postgres can hold it: at most 63 bytes of UTF-8.

    A longer one is cut at a character border to 54 bytes, and gets "_" and the first
    8 hex digits of the SHA-256 of the full name.
    """
    data = name.encode()
    if len(data) <= NAME_BYTES:
        return name
    return f"{data[:KEPT_BYTES].decode(errors='ignore')}_{sha256(data).hexdigest()[:8]}"


def checked_schema(name: str) -> str:
    """Return the schema's name, shortened where it is too long.

    Raises InputError for a name that is empty, can't be a name, or isn't free for loading.
    """
    if not name or "\0" in name or not _is_text(name):
        raise InputError(
            f"{name!r} can't be the name of a schema", remedy="Choose another one with --schema"
        )
    if name.lower() in RESERVED_SCHEMAS or name.lower().startswith("pg_"):
        raise InputError(
            f"The schema {name!r} is not free for loading: public, coret, information_schema "
            "and pg_* are kept for Postgres and coret",
            remedy="Choose another one with --schema, or rename the file",
        )
    return shortened(name)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # a file name that is not UTF-8
        return False
    return True


class NameBook:
    """The names of one scope: the tables of a schema, or the columns of a table."""

    def __init__(self, what: str, remarks: list[str], *, taken: frozenset[str] = frozenset()):
        self._what = what
        self._remarks = remarks
        self._system = taken
        self._used: dict[str, str] = {}

    def add(self, name: str, *, empty: str, number_doubles: bool = False) -> str:
        """Return the name to use, and remark on it where it isn't the given one.

        `empty` stands in for an empty name; with `number_doubles` a name that was there
        before gets the suffix _2, _3 ... Raises LoadError for a name that can't be told
        from another, or that Postgres can't hold.
        """
        if "\0" in name or not _is_text(name):
            raise LoadError(
                f"{self._what}: the name {name!r} can't be stored",
                remedy="Rename it in the file: a NUL or an undecodable byte can't be in a name",
            )
        wanted = name or empty
        used = shortened(wanted)
        if used in self._system or (number_doubles and used in self._used):
            used = self._numbered(wanted)
        if used in self._used:
            raise LoadError(
                f"{self._what}: {name!r} and {self._used[used]!r} would both be named {used!r}",
                remedy="Rename one of them",
            )
        self._used[used] = name
        if used != name:
            self._remarks.append(f"{self._what}: {name!r} is named {used!r}")
        return used

    def _numbered(self, name: str) -> str:
        number = 2
        while (candidate := shortened(f"{name}_{number}")) in self._used:
            number += 1
        return candidate
