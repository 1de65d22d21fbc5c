"""Translates qdrant-client's errors into ours. No message holds the key."""

from __future__ import annotations

import json
import sqlite3
from typing import Final

import httpx
from pydantic import ValidationError
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from recollect.errors import BackendError, BackendTimeout, BackendUnavailable
from recollect.indexes.qdrant.address import Address

BACKEND: Final = "qdrant"

FAILURES: Final = (
    ApiException, QdrantException, OSError, ValueError, RuntimeError, AssertionError, sqlite3.Error,
)  # fmt: skip
"""What the client raises. It asserts that an answer has a result, and its local mode raises ValueError and
RuntimeError.
"""

_BUSY: Final = (408, 429)
_KEY: Final = (401, 403)
_SAID: Final = 200


class CollectionMissing(BackendError):
    """The engine answers, but lacks the collection."""


def translate(error: Exception, address: Address, timeout: float) -> BackendError:
    """The client's error as ours, in one sentence."""
    cause = error.source if isinstance(error, ResponseHandlingException) else error
    if isinstance(cause, TimeoutError | httpx.TimeoutException):
        return BackendTimeout(
            f"{address} did not answer within {timeout:g} s: check whether it hangs or is too busy", backend=BACKEND
        )
    if isinstance(cause, httpx.TransportError):
        reason = str(cause).strip() or type(cause).__name__
        return BackendUnavailable(
            f"{address} cannot be reached ({reason}): check that it is running and that the URL is right",
            backend=BACKEND,
        )
    if isinstance(cause, ResourceExhaustedResponse):
        return BackendUnavailable(f"{address} is too busy ({cause}): try again in a moment", backend=BACKEND)
    if isinstance(cause, UnexpectedResponse):
        return _of_status(cause, address)
    if isinstance(cause, ValueError) and str(cause).endswith(" not found"):
        return _missing(address, str(cause))
    return _other(cause, address)


def in_use(address: Address) -> BackendUnavailable:
    return BackendUnavailable(
        f"{address} is in use by another process or client, and Qdrant's local mode serves one at a time: close the "
        "other, or run a Qdrant server and write qdrant+http://host:6333",
        backend=BACKEND,
    )


def _of_status(answer: UnexpectedResponse, address: Address) -> BackendError:
    status, said = answer.status_code or 0, _reason(answer)
    if status in _KEY:
        return BackendError(f"{address} refuses the API key ({said}): check the key that is set", backend=BACKEND)
    if status == httpx.codes.NOT_FOUND and "ollection" in said:
        return _missing(address, said)
    if status in _BUSY or status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return BackendUnavailable(
            f"{address} answered with HTTP {status} ({said}): try again in a moment", backend=BACKEND
        )
    return BackendError(f"{address} refused with HTTP {status}: {said}", backend=BACKEND)


def _missing(address: Address, said: str) -> BackendError:
    return CollectionMissing(
        f"{address} has lost what it held ({said}): run `recollect rebuild {BACKEND}`", backend=BACKEND
    )


def _other(error: Exception, address: Address) -> BackendError:
    if isinstance(error, json.JSONDecodeError | ValidationError | AssertionError):
        return BackendError(f"{address} did not answer like a Qdrant: check the URL", backend=BACKEND)
    if isinstance(error, OSError | sqlite3.Error):
        return BackendError(f"{address} cannot be used: {error}", backend=BACKEND)
    return BackendError(f"{address} failed: {_line(str(error) or type(error).__name__)}", backend=BACKEND)


def _reason(answer: UnexpectedResponse) -> str:
    """The error in the JSON answer, or else the first line of the answer."""
    text = answer.content.decode("utf-8", "replace")
    try:
        said = json.loads(text)["status"]["error"]
    except (ValueError, TypeError, LookupError):
        said = text
    return _line(str(said) or answer.reason_phrase)


def _line(text: str) -> str:
    return text.strip().partition("\n")[0][:_SAID].rstrip(".")
