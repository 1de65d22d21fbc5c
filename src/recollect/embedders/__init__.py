"""Texts into vectors: the packaged model, any OpenAI-compatible endpoint, or hashed words for tests.

Importing this package is light; each embedder's own libraries come with the first one that is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from recollect.embedders.cache import QueryCache
from recollect.errors import ConfigError
from recollect.ports import Embedder
from recollect.settings import Settings

__all__ = ["CHOICES", "QueryCache", "configured", "make_embedder"]

CHOICES = ("local", "openai:MODEL", "hashing", "hashing:DIMENSIONS")


def configured(settings: Settings, spec: str | None = None) -> Embedder:
    """The embedder that the settings name, or the one named here, reached as the settings say."""
    return make_embedder(spec or settings.embedder, **asdict(settings.openai))


def make_embedder(
    spec: str,
    *,
    key: str | None = None,
    keys: Mapping[str, str] | None = None,
    base_url: str | None = None,
    dimensions: int | None = None,
) -> Embedder:
    """The embedder of that name, one of `CHOICES`. The keyword arguments concern `openai:MODEL` alone."""
    name, _, argument = spec.partition(":")
    if spec == "local":
        from recollect.embedders.local import LocalEmbedder

        return LocalEmbedder()
    if name == "openai" and argument:
        from recollect.embedders.openai import OPENAI, OpenAIEmbedder

        return OpenAIEmbedder(argument, base_url=base_url or OPENAI, key=key, keys=keys, dimensions=dimensions)
    if spec == "hashing" or (name == "hashing" and argument.isdecimal()):
        from recollect.embedders.hashing import HashingEmbedder

        return HashingEmbedder(int(argument)) if argument else HashingEmbedder()
    raise ConfigError(f"There is no embedder {spec!r}; choose one of: {', '.join(CHOICES)}")
