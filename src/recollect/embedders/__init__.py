"""Embedders: a model on this machine, an OpenAI-compatible endpoint, hashed words, or another package's.

Importing this package is light. Each embedder imports its libraries when it is made.
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
"""Embedders that this project publishes as separate packages, because their models are large."""


class EmbedderFactory(Protocol):
    """Makes an embedder. `argument` is what follows the colon of its name, or "". Returns None for a bad argument."""

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
    """The embedder of the settings, or the one named by `spec`."""
    spec = spec or settings.embedder
    name, colon, argument = spec.partition(":")
    factory = EMBEDDERS.load(name)
    embedder = factory(argument, settings) if factory and bool(argument) == bool(colon) else None
    if factory is None and name in PACKAGES:
        package = PACKAGES[name]
        raise ConfigError(
            f"{name} is a separate package: python3 -m pip install {package} (in Recollect's repository: "
            f"python3 -m pip install ./distributions/{package})"
        )
    if embedder is None:
        others = [name for name in EMBEDDERS.names() if name not in EMBEDDERS.ours]
        raise ConfigError(f"the embedder {spec!r} does not exist: use one of {', '.join([*CHOICES, *others])}")
    return embedder


def make_embedder(spec: str) -> Embedder:
    """The embedder of a name, one of `CHOICES` or another package's, with default settings."""
    return configured(Settings(url="", embedder=spec))
