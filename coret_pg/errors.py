"""The errors users see: each says what happened, to what, and what to do next."""


class CoretError(Exception):
    """Base of every error coret_pg raises on purpose.

    `what` says what happened and to what; `remedy` says what to do next. Neither may
    hold a password or a key. `exit_code` is what the command line ends with.
    """

    exit_code = 1

    def __init__(self, what: str, *, remedy: str) -> None:
        self.what = what.rstrip(".")
        self.remedy = remedy.rstrip(".")
        super().__init__(f"{self.what}. {self.remedy}.")


class ConfigurationError(CoretError):
    """A setting is missing, contradicts another, or can't be read."""

    exit_code = 2


class InputError(CoretError):
    """What the caller passed can't be used: a question, a name, a number, a path."""

    exit_code = 2


class DatabaseError(CoretError):
    """The database can't be reached, or refused what coret needs of it."""

    exit_code = 3


class ExtensionMissing(DatabaseError):
    """An extension that coret needs is absent or too old."""


class SchemaError(DatabaseError):
    """Our own schema is absent, older or newer than this package."""


class ServerError(DatabaseError):
    """The embedded server can't be set up, started or stopped."""


class LoadError(CoretError):
    """A file can't be loaded into the pool."""

    exit_code = 4


class ModelError(CoretError):
    """An embedding model or a chat endpoint is absent, unknown or failing."""

    exit_code = 5


class PoolError(CoretError):
    """The pool holds nothing that can answer: it is empty, or was never refreshed."""

    exit_code = 6


class EvaluationError(CoretError):
    """A dataset can't be read, or doesn't fit the pool it is measured on."""

    exit_code = 7
