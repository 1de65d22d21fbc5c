"""Reading a question together with each of the best memories: the packaged cross-encoder, any `/rerank` endpoint, or
another package's reranker.

Importing this package is light; each reranker's own libraries come with the first one that is made.
"""

from __future__ import annotations

from typing import Protocol

from recollect.errors import ConfigError
from recollect.parts import Parts
from recollect.ports import Reranker
from recollect.settings import Settings

CHOICES = ("local", "http:URL")


class RerankerFactory(Protocol):
    """Makes the reranker of a name. `argument` is what follows the name's colon, "" if nothing does. None: it knows no
    such argument.
    """

    def __call__(self, argument: str, settings: Settings) -> Reranker | None: ...


RERANKERS: Parts[RerankerFactory] = Parts(
    "recollect.rerankers",
    {
        "local": "recollect.rerankers.local:LocalReranker.named",
        "http": "recollect.rerankers.http:HTTPReranker.named",
        "https": "recollect.rerankers.http:HTTPReranker.secured",
    },
)


def configured_reranker(settings: Settings, spec: str | None = None) -> Reranker:
    """The reranker that the settings name, or the one named here, reached as the settings say."""
    spec = spec or settings.reranker
    name, _, argument = spec.partition(":")
    factory = RERANKERS.load(name)
    reranker = factory(argument, settings) if factory else None
    if reranker is None:
        raise _unknown(spec)
    return reranker


def check_reranker(spec: str) -> None:
    """Raises ConfigError for a name that no reranker has. None is imported."""
    name = spec.partition(":")[0]
    if name not in RERANKERS.ours and name not in RERANKERS.names():
        raise _unknown(spec)


def _unknown(spec: str) -> ConfigError:
    others = [name for name in RERANKERS.names() if name not in RERANKERS.ours]
    return ConfigError(f"the reranker {spec!r} does not exist: use one of {', '.join([*CHOICES, *others])}")
