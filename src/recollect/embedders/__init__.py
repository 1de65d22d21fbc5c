"""Texts into vectors: a model on this machine, an OpenAI-compatible endpoint, hashed words, or another package's.

Importing this package is light; each embedder's own libraries come with the first one that is made.
"""

from __future__ import annotations

from typing import Protocol

from recollect.embedders.cache import QueryCache
from recollect.errors import ConfigError
from recollect.parts import Parts
from recollect.ports import Embedder
from recollect.settings import Settings

__all__ = ["CHOICES", "EMBEDDERS", "EmbedderFactory", "QueryCache", "configured", "make_embedder"]

CHOICES = ("local", "local:FOLDER", "openai:MODEL", "hashing", "hashing:DIMENSIONS")

PACKAGES = {"local-multilingual": "recollect-multilingual"}
"""Embedders that this project publishes apart from Recollect, because their models are large."""


class EmbedderFactory(Protocol):
    """Makes the embedder of a name. `argument` is what follows the name's colon, "" if nothing does. None: it knows no
    such argument.
    """

    def __call__(self, argument: str, settings: Settings) -> Embedder | None: ...


EMBEDDERS: Parts[EmbedderFactory] = Parts(
    "recollect.embedders",
    {
        "local": "recollect.embedders.local:LocalEmbedder.named",
        "openai": "recollect.embedders.openai:OpenAIEmbedder.named",
        "hashing": "recollect.embedders.hashing:HashingEmbedder.named",
    },
)


def configured(settings: Settings, spec: str | None = None) -> Embedder:
    """The embedder that the settings name, or the one named here, reached as the settings say."""
    spec = spec or settings.embedder
    name, colon, argument = spec.partition(":")
    factory = EMBEDDERS.load(name)
    embedder = factory(argument, settings) if factory and bool(argument) == bool(colon) else None
    if factory is None and name in PACKAGES:
        raise ConfigError(f"{name} is a package of its own: python3 -m pip install {PACKAGES[name]}")
    if embedder is None:
        others = [name for name in EMBEDDERS.names() if name not in EMBEDDERS.ours]
        raise ConfigError(f"there is no embedder {spec!r}; choose one of: {', '.join([*CHOICES, *others])}")
    return embedder


def make_embedder(spec: str) -> Embedder:
    """The embedder of that name, one of `CHOICES` or another package's, with default settings."""
    return configured(Settings(url="", embedder=spec))
