"""Translates psycopg's errors into ours. A message names the database and the server, never the password."""

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
    """The server accepted a statement and did not answer within the time limit."""


class Place:
    """Where a store is, as messages name it."""

    def __init__(self, dsn: str) -> None:
        """Raises ConfigError if libpq cannot parse the DSN."""
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
            "the URL of the store is not a Postgres URL: write postgresql://user:password@host:5432/database"
        ) from None  # the driver's error quotes the URL, and with it the password
    return given


def translate(error: psycopg.Error, place: Place) -> BackendError:
    """The driver's error as ours, in one sentence."""
    kind, message = _meaning(error)
    return kind(message.format(place=place, error=_reason(error, place)), backend=BACKEND)


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone. libpq reports that (refused, reset, closed) without a SQLSTATE, the server with
    08 or 57P.
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
    """The first line of the message, without the address and the password."""
    said = error.diag.message_primary or str(error).strip() or type(error).__name__
    line = said.partition("\n")[0].rpartition(" failed: ")[-1].rstrip(".")
    return line.replace(place.secret, "…") if place.secret else line


_REFUSALS: Final = ("authentication failed", "does not exist", "no pg_hba.conf entry", "not permitted", "no password")
"""Messages of a server that rejects this role for good; libpq passes on only the text."""
_REFUSED: Final[Meaning] = (BackendError, "{place} refuses the connection ({error}): check the URL of the store")
_LOST: Final[Meaning] = (
    BackendUnavailable,
    "{place} cannot be reached ({error}): check that the server is running, and try again",
)
_BUSY: Final[Meaning] = (
    BackendUnavailable,
    "others keep changing the same rows of {place} ({error}): try again in a moment",
)
_FULL: Final[Meaning] = (
    BackendUnavailable,
    "{place} has no space left ({error}): nothing was stored; free some space and try again",
)
_OTHER: Final[Meaning] = (BackendError, "Postgres failed on {place}: {error}")
_MEANINGS: Final[Mapping[type[psycopg.Error], Meaning]] = {
    Unanswered: (BackendTimeout, "{place} does not answer ({error}): check whether the server hangs"),
    errors.QueryCanceled: (BackendTimeout, "{place} took too long ({error})"),
    errors.LockNotAvailable: (BackendTimeout, "{place} took too long ({error})"),
    errors.DeadlockDetected: _BUSY,
    errors.SerializationFailure: _BUSY,
    errors.DiskFull: _FULL,
    errors.OutOfMemory: (BackendUnavailable, "{place} ran out of memory: try again with a smaller batch"),
    errors.TooManyConnections: (
        BackendUnavailable,
        "{place} has no connection left ({error}): use fewer connections at once",
    ),
    errors.ReadOnlySqlTransaction: (
        BackendError,
        "{place} cannot be written ({error}): it is a standby, or read-only by its settings",
    ),
    errors.InsufficientPrivilege: (
        BackendError,
        "{place} does not permit this ({error}): ask an administrator to grant the role the right",
    ),
    errors.UndefinedTable: (SchemaOutdated, "{place} lacks part of the store ({error}): run `recollect migrate`"),
}
