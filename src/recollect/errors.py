"""All errors that Recollect raises on purpose.

    RecollectError
    ├─ ConfigError            before any I/O                          CLI exit 2
    ├─ InvalidRequest         the caller's fault (also ValueError)    HTTP 422, CLI exit 2
    ├─ NotFound               (also LookupError)                      HTTP 404
    ├─ NotAllowed             wrong or missing token, other space     HTTP 401 / 403
    ├─ EmbeddingMismatch      model or dimensions differ from the store's   HTTP 409
    ├─ BackendError           .backend; the driver's error is its cause
    │  ├─ BackendUnavailable  worth retrying                          HTTP 503
    │  │  ├─ BackendTimeout   it took longer than allowed             HTTP 503
    │  │  └─ IndexBuilding    an index that is needed is being built  HTTP 503
    │  └─ SchemaOutdated      says which command to run               HTTP 503
    ├─ EmbeddingError         the provider failed                     HTTP 502
    │  └─ EmbeddingRefused    it takes no texts by the space's key    HTTP 502
    └─ RecallFailed           every lane failed                       HTTP 503

One failed lane is data (`Recall.degraded`), not an exception. A message says what was wrong, with what value,
and what to do about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.types import Generation, LaneReport


class RecollectError(Exception):
    """The root: catch this to catch everything that Recollect raises on purpose."""

    charged_to: str = ""
    """The engine whose gate has counted this failure, so that no other gate counts it too."""


class ConfigError(RecollectError):
    """The configuration is wrong; nothing was opened or changed."""


class InvalidRequest(RecollectError, ValueError):
    """The caller's request cannot be carried out as it stands; nothing was changed."""


class NotFound(RecollectError, LookupError):
    """No such memory in this space."""


class NotAllowed(RecollectError):
    """The caller may not do this, or not in this space. `known`: whether the caller showed a valid token."""

    def __init__(self, message: str, *, known: bool = True) -> None:
        super().__init__(message)
        self.known = known


PACKAGED = {"granite-embedding-30m-english": "local", "multilingual-e5-small": "local-multilingual"}
"""The embedders of the models that this project packages."""


def embedder_of(model: str) -> str | None:
    """What to write after `--embedder` for a model. None if that cannot be told: anybody may serve a model by its name.

    >>> embedder_of("hashing-256")
    'hashing:256'
    """
    return model.replace("-", ":", 1) if model.startswith("hashing-") else PACKAGED.get(model)


class EmbeddingMismatch(RecollectError):
    """The store's vectors were made by another embedding model."""

    @classmethod
    def between(cls, known: Generation, model: str, dimensions: int | None) -> EmbeddingMismatch:
        """The error for a store whose vectors are of generation `known`, opened with another model."""
        here = model if dimensions is None else f"{model} ({dimensions} dimensions)"
        named = embedder_of(known.model)
        return cls(
            f"this store's vectors were made by {known.model} ({known.dimensions} dimensions), not by {here}: open it "
            f"with {f'the embedder {named}' if named else 'that embedder'}, or change the store to yours: "
            f"`recollect reembed --embedder {embedder_of(model) or 'NAME'}`"
        )

    @classmethod
    def after_change(cls, current: Generation, known: Generation) -> EmbeddingMismatch:
        """The model that a store was changed to, and the one that this process still works with."""
        named = embedder_of(current.model) or f"of {current.model}"
        return cls(
            f"this store was changed to {current.model} ({current.dimensions} dimensions), and this process still asks "
            f"the old vectors of {known.model}, which lack what was stored since: restart it with the embedder "
            f"{named} (--embedder, RECOLLECT_EMBEDDER, or `embedder` in recollect.toml)"
        )


class BackendError(RecollectError):
    """A storage engine failed; the driver's own error is the cause."""

    def __init__(self, message: str, *, backend: str) -> None:
        super().__init__(message)
        self.backend = backend


class BackendUnavailable(BackendError):
    """The engine cannot be reached, or is busy: worth trying again."""


class BackendTimeout(BackendUnavailable):
    """The engine took longer than it was allowed, and was stopped."""


class IndexBuilding(BackendUnavailable):
    """An index that a search needs is being built; the message says how far it is."""


class SchemaOutdated(BackendError):
    """The store was written by another version of Recollect."""


class EmbeddingError(RecollectError):
    """The embedding provider failed."""


class EmbeddingRefused(EmbeddingError):
    """The key of a space is missing or wrong. Spaces with another key may still work."""


class RecallFailed(RecollectError):
    """Every lane of a recall failed; `lanes` says how."""

    def __init__(self, message: str, *, lanes: Sequence[LaneReport] = ()) -> None:
        super().__init__(message)
        self.lanes = tuple(lanes)
