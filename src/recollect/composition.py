"""The composition root: the only place that names a concrete store or index. What is not used is not imported."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol, TypeVar, cast

from recollect.engine.copying import OnProgress, copy_open, opened
from recollect.errors import BackendError, ConfigError
from recollect.limits import check_characters
from recollect.parts import Parts
from recollect.ports import ExternalIndex, ExternalLinks, ExternalVectors, Freezable, Store
from recollect.settings import Settings, without_password

T = TypeVar("T")


class StoreFactory(Protocol):
    """Makes the store of a URL, not yet opened. Raises ConfigError for a URL that names none, and, unless it may
    `create` one, where there is none.
    """

    def __call__(self, url: str, settings: Settings, *, create: bool) -> Store: ...


class IndexFactory(Protocol):
    """Makes the index of a URL, not yet opened, beside a store. It answers the vector leg if it has `search_vectors`,
    the graph leg if it has `walk`.
    """

    def __call__(self, url: str, settings: Settings, store: Store) -> ExternalIndex: ...


STORES: Parts[StoreFactory] = Parts(
    "recollect.stores",
    {
        "sqlite": "recollect.stores.sqlite.store:SqliteStore.from_url",
        "postgresql": "recollect.stores.postgres.store:PostgresStore.from_url [postgres]",
        "postgres": "recollect.stores.postgres.store:PostgresStore.from_url [postgres]",
        "embedded-postgres": "recollect.stores.postgres.store:PostgresStore.from_url [embedded-postgres]",
    },
)
INDEXES: Parts[IndexFactory] = Parts(
    "recollect.indexes",
    {
        "qdrant+http": "recollect.indexes.qdrant.index:QdrantIndex.from_url [qdrant]",
        "qdrant+https": "recollect.indexes.qdrant.index:QdrantIndex.from_url [qdrant]",
        "qdrant+local": "recollect.indexes.qdrant.index:QdrantIndex.from_url [qdrant]",
        "falkordb": "recollect.indexes.falkordb.index:FalkorIndex.from_url [falkordb]",
        "falkordbs": "recollect.indexes.falkordb.index:FalkorIndex.from_url [falkordb]",
    },
)


def store(settings: Settings, *, create: bool = True) -> Store:
    """The store that the settings' URL names, not yet opened."""
    url = check_characters("the URL of a store", settings.url)
    forms = "sqlite:///FILE, postgresql://HOST/DATABASE or embedded-postgres:///FOLDER"
    if factory := _of_scheme(STORES, url):
        return factory(url, settings, create=create)
    raise _unknown(url, "a store", forms, STORES)


def external_vectors(settings: Settings, store: Store) -> ExternalVectors | None:
    """The index that answers the vector leg in the store's place, if one is named."""
    return cast("ExternalVectors | None", _index("vector", "search_vectors", settings.vectors, settings, store))


def external_links(settings: Settings, store: Store) -> ExternalLinks | None:
    """The index that answers the graph leg in the store's place, if one is named."""
    return cast("ExternalLinks | None", _index("graph", "walk", settings.graph, settings, store))


INDEX_FORMS = {"vector": "qdrant+http://HOST:6333 or qdrant+local:///FOLDER", "graph": "falkordb://HOST:6379"}


def _index(leg: str, method: str, url: str | None, settings: Settings, store: Store) -> ExternalIndex | None:
    if url is None:
        return None
    factory = _of_scheme(INDEXES, check_characters(f"the URL of a {leg} index", url))
    index = factory(url, settings, store) if factory else None
    if not hasattr(index, method):
        raise _unknown(url, f"a {leg} index", INDEX_FORMS[leg], INDEXES)
    return index


def _of_scheme(parts: Parts[T], url: str) -> T | None:
    scheme, colon, _ = url.partition("://")
    return parts.load(scheme) if colon else None


def _unknown(url: str, what: str, forms: str, parts: Parts[T]) -> ConfigError:
    others = [name for name in parts.names() if name not in parts.ours]
    more = f"; other packages open: {', '.join(f'{name}://' for name in others)}" if others else ""
    return ConfigError(f"{without_password(url)!r} is not the URL of {what}: write {forms}{more}")


def backup_file(path: Path) -> Store:
    """The store that a backup is."""
    from recollect.stores.sqlite.store import SqliteStore

    return SqliteStore(path)


async def write_backup(store: Store, file: Path, on_progress: OnProgress) -> Mapping[str, int]:
    """Write all that an open store holds at this moment to a new file, checked and sealed; memories by space. A file is
    copied page by page. Of another store everything that `copy` takes is copied, out of one snapshot if it has them.
    """
    from recollect.stores.sqlite.store import SqliteStore

    backup = SqliteStore(file)
    if isinstance(store, SqliteStore):
        held = await store.save(file)
    else:
        async with store.still() if isinstance(store, Freezable) else nullcontext(store) as still, opened(backup):
            copied = await copy_open(still, backup, list(await still.spaces()), on_progress)
        if not copied.verified:
            raise BackendError(
                f"the backup of {store.location} differs from it: something was written meanwhile; try again.",
                backend=store.name,
            )
        held = {space.space: space.source.memories for space in copied.spaces if space.source.memories}
    sealed = await backup.seal()
    if sealed.spaces != held:
        raise BackendError(f"the backup of {store.location} lacks memories: try again.", backend=store.name)
    return sealed.spaces
