"""Translates the errors of the Redis client, which FalkorDB uses, into ours. A message never holds the password."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from redis import exceptions as driver

from recollect.errors import BackendError, BackendTimeout, BackendUnavailable
from recollect.indexes.falkordb.address import Address

BACKEND: Final = "falkordb"
WORDS: Final = 200
"""Characters of an error that are shown: some errors quote the whole query."""

Meaning = tuple[type[BackendError], str]

_LATE: Meaning = (BackendTimeout, "{place} did not answer in time: check whether it hangs, or allow it more time")
_OTHER: Meaning = (BackendError, "{place} failed: {error}")
_SAID: Final[Mapping[re.Pattern[str], Meaning]] = {
    re.compile("timed out"): _LATE,
    re.compile("unknown command .?GRAPH", re.IGNORECASE): (
        BackendError,
        "{place} lacks its module, so it is a plain Redis: start it with `--loadmodule falkordb.so`, or name another",
    ),
    re.compile("Max pending queries"): (BackendUnavailable, "{place} has too many queries waiting: try again"),
    re.compile("MISCONF|mem consumption"): (BackendUnavailable, "{place} accepts no writes now ({error}): try again"),
}
"""Errors that the server reports only by their text."""
_KINDS: Final[Sequence[tuple[tuple[type[Exception], ...], Meaning]]] = (
    ((TimeoutError, driver.TimeoutError), _LATE),
    ((driver.BusyLoadingError,), (BackendUnavailable, "{place} is still loading its graphs: try again in a moment")),
    (
        (driver.AuthenticationError, driver.AuthenticationWrongNumberOfArgsError),
        (BackendError, "{place} refuses the user or the password: check the URL of the graph index"),
    ),
    (
        (driver.NoPermissionError, driver.AuthorizationError),
        (BackendError, "the user of this connection may not do this on {place} ({error}): grant it the right"),
    ),
    ((driver.OutOfMemoryError,), (BackendUnavailable, "{place} has no memory left: raise its maxmemory")),
    (
        (driver.ReadOnlyError,),
        (BackendUnavailable, "{place} is a replica and cannot be written: connect to the primary"),
    ),
    (
        (driver.AskError, driver.ClusterError),
        (BackendError, "{place} is part of a cluster, which is not supported: use a single server"),
    ),
    (
        (driver.ConnectionError, OSError),
        (BackendUnavailable, "{place} cannot be reached ({error}): start it, or check the URL of the graph index"),
    ),
)


def translate(error: Exception, place: Address) -> BackendError:
    """The driver's error as ours, in one sentence."""
    kind, message = _meaning(error)
    return kind(message.format(place=place, error=_reason(error, place)), backend=BACKEND)


def _meaning(error: Exception) -> Meaning:
    for kinds, meaning in _KINDS:
        if isinstance(error, kinds):
            return meaning
    return next((meaning for words, meaning in _SAID.items() if words.search(str(error))), _OTHER)


def _reason(error: Exception, place: Address) -> str:
    """The first line of the driver's message, without the password."""
    line = (str(error) or type(error).__name__).strip().partition("\n")[0]
    shown = line.replace(place.password, "…") if place.password else line
    return shown[:WORDS].rstrip(".")
