"""Reading a question together with each of the best memories: the packaged cross-encoder, any `/rerank` endpoint, or
a reranker of somebody else's.

Importing this package is light; each reranker's own libraries come with the first one that is made.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from recollect.errors import ConfigError
from recollect.ports import Reranker
from recollect.settings import RerankSettings

CHOICES = ("local", "http:URL")
GROUP = "recollect.rerankers"
"""The entry points under which other distributions offer theirs: a function of the settings that makes a Reranker."""


def make_reranker(spec: str, settings: RerankSettings = RerankSettings()) -> Reranker:  # noqa: B008 (frozen)
    """The reranker of that name: one of `CHOICES`, or one that an installed distribution offers."""
    if spec == "local":
        from recollect.rerankers.local import LocalReranker

        return LocalReranker()
    if spec.startswith(("http:", "https:")):
        from recollect.rerankers.http import HTTPReranker

        url = spec if spec.startswith(("http://", "https://")) else spec.partition(":")[2]
        return HTTPReranker(url, model=settings.model, key=settings.key)
    offered = {point.name: point for point in entry_points(group=GROUP)}
    if spec not in offered:
        raise ConfigError(f"there is no reranker {spec!r}; choose one of: {', '.join((*CHOICES, *sorted(offered)))}")
    made: Reranker = offered[spec].load()(settings)
    return made
