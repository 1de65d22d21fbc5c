"""Reading a question together with each of the best memories: the packaged cross-encoder, any `/rerank` endpoint, or
a reranker of somebody else's.

Importing this package is light; each reranker's own libraries come with the first one that is made.
"""

from __future__ import annotations

from collections.abc import Callable

from recollect.errors import ConfigError
from recollect.parts import Parts
from recollect.ports import Reranker
from recollect.settings import RerankSettings

CHOICES = ("local", "http:URL")
RERANKERS: Parts[Callable[[RerankSettings], Reranker]] = Parts("recollect.rerankers", {})
"""Those of other packages: each a function of the settings that makes a Reranker."""


def make_reranker(spec: str, settings: RerankSettings = RerankSettings()) -> Reranker:  # noqa: B008 (frozen)
    """The reranker of that name: one of `CHOICES`, or one that an installed distribution offers."""
    if spec == "local":
        from recollect.rerankers.local import LocalReranker

        return LocalReranker()
    if spec.startswith(("http:", "https:")):
        from recollect.rerankers.http import HTTPReranker

        url = spec if spec.startswith(("http://", "https://")) else spec.partition(":")[2]
        return HTTPReranker(url, model=settings.model, key=settings.key)
    factory = RERANKERS.load(spec)
    if factory is None:
        raise ConfigError(f"there is no reranker {spec!r}; choose one of: {', '.join((*CHOICES, *RERANKERS.names()))}")
    return factory(settings)
