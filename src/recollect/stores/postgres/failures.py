"""What becomes of the driver's errors: the one place where psycopg's become ours.

A message names the database and the server, never the password.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from recollect.errors import BackendError, BackendTimeout, BackendUnavailable, ConfigError, SchemaOutdated

BACKEND: Final = "postgres"
Meaning: TypeAlias = tuple[type[BackendError], str]


class Unanswered(psycopg.OperationalError):
    """The server took a statement and gave no answer, not even when its time was over."""


class Place:
    """Where a store is, as messages name it."""

    def __init__(self, dsn: str) -> None:
        """Raises ConfigError for a DSN that libpq cannot read."""
        given = _read(dsn)
        host = given.get("host") or given.get("hostaddr") or "localhost"
        database = given.get("dbname") or given.get("user") or "postgres"
        self._name = f"database {database} on {host}:{given.get('port', 5432)}"
        self.secret = given.get("password", "")

    def __str__(self) -> str:
        return self._name


def _read(dsn: str) -> dict[str, str]:
    try:
        given = {key: str(value) for key, value in conninfo_to_dict(dsn).items()}
        [int(port) for port in given.get("port", "0").split(",") if port]
    except (psycopg.Error, ValueError):
        raise ConfigError(
            "the URL of the store is no Postgres URL: write postgresql://user:password@host:5432/database"
        ) from None  # the driver's error quotes the URL, and with it the password
    return given


def translate(error: psycopg.Error, place: Place) -> BackendError:
    """The driver's error as ours, in one sentence."""
    kind, message = _meaning(error)
    return kind(message.format(place=place, error=_reason(error, place)), backend=BACKEND)


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone. An OperationalError without a state is libpq's: refused, reset, closed; the
    states 08 and 57P are the server's words for it.
    """
    if isinstance(error, Unanswered) or not isinstance(error, psycopg.OperationalError):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def _meaning(error: psycopg.Error) -> Meaning:
    for kind, meaning in _MEANINGS.items():
        if isinstance(error, kind):
            return meaning
    if not is_lost(error):
        return _OTHER
    return _REFUSED if any(words in str(error) for words in _REFUSALS) else _LOST


def _reason(error: psycopg.Error, place: Place) -> str:
    """The first line of what was said, without where the driver wanted to connect to, and without the password."""
    said = error.diag.message_primary or str(error).strip() or type(error).__name__
    line = said.partition("\n")[0].rpartition(" failed: ")[-1].rstrip(".")
    return line.replace(place.secret, "…") if place.secret else line


_REFUSALS: Final = ("authentication failed", "does not exist", "no pg_hba.conf entry", "not permitted", "no password")
"""How a server says that it will never let this role in; libpq passes on its words alone."""
_REFUSED: Final[Meaning] = (BackendError, "{place} refuses the connection ({error}): check the URL of the store")
_LOST: Final[Meaning] = (
    BackendUnavailable,
    "{place} cannot be reached ({error}): see that the server runs, and try again",
)
_BUSY: Final[Meaning] = (
    BackendUnavailable,
    "others keep changing the same rows of {place} ({error}); try again in a moment",
)
_FULL: Final[Meaning] = (
    BackendUnavailable,
    "{place} has no room left ({error}); nothing of this change was kept, free some space and try again",
)
_OTHER: Final[Meaning] = (BackendError, "Postgres failed on {place}: {error}")
_MEANINGS: Final[Mapping[type[psycopg.Error], Meaning]] = {
    Unanswered: (BackendTimeout, "{place} does not answer ({error}): see whether the server hangs"),
    errors.QueryCanceled: (BackendTimeout, "{place} took too long ({error})"),
    errors.LockNotAvailable: (BackendTimeout, "{place} took too long ({error})"),
    errors.DeadlockDetected: _BUSY,
    errors.SerializationFailure: _BUSY,
    errors.DiskFull: _FULL,
    errors.OutOfMemory: (BackendUnavailable, "{place} ran out of memory; try again with a smaller batch"),
    errors.TooManyConnections: (BackendUnavailable, "{place} has no connection left ({error}): use fewer at once"),
    errors.ReadOnlySqlTransaction: (
        BackendError,
        "{place} cannot be written ({error}): it is a standby, or read-only by its settings",
    ),
    errors.InsufficientPrivilege: (
        BackendError,
        "{place} does not allow this role to do it ({error}): let an administrator grant it the right",
    ),
    errors.UndefinedTable: (SchemaOutdated, "{place} lacks a part of the store ({error}): run `recollect migrate`"),
}
