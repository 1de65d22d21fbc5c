"""The composition root: the only module that names a concrete store or index. Each is imported when first used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

from recollect.engine.copying import OnProgress, copy_open, opened
from recollect.errors import BackendError, ConfigError
from recollect.limits import check_characters
from recollect.parts import Parts
from recollect.ports import ExternalIndex, ExternalLinks, ExternalVectors, SnapshotStore, Store
from recollect.settings import Settings, without_password

T = TypeVar("T")
OWNERS: Final = "owners"
"""Where those who work in a folder say that they live."""


class StoreFactory(Protocol):
    """Makes the store of a URL, not yet opened. Raises ConfigError if the URL is wrong, or if no store is there and it
    may not `create` one.
    """

    def __call__(self, url: str, settings: Settings, *, create: bool) -> Store: ...


class IndexFactory(Protocol):
    """Makes the index of a URL, not yet opened. It can answer the vector leg if it has `search_vectors`, and the graph
    leg if it has `walk`.
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
    """The store at the settings' URL, not yet opened."""
    url = check_characters("the URL of a store", settings.url)
    forms = "sqlite:///FILE, postgresql://HOST/DATABASE or embedded-postgres:///FOLDER"
    if factory := _of_scheme(STORES, url):
        return factory(url, settings, create=create)
    raise _unknown(url, "a store", forms, STORES)


def external_vectors(settings: Settings, store: Store) -> ExternalVectors | None:
    """The index that answers the vector leg instead of the store, if one is configured."""
    return cast("ExternalVectors | None", _index("vector", "search_vectors", settings.vectors, settings, store))


def external_links(settings: Settings, store: Store) -> ExternalLinks | None:
    """The index that answers the graph leg instead of the store, if one is configured."""
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
    """A backup, as a store."""
    from recollect.stores.sqlite.store import SqliteStore

    return SqliteStore(path)


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Say that this process works in a folder, for as long as it lives at most."""
    from recollect.stores.sqlite.owners import Owner

    owner = Owner(folder / OWNERS)
    owner.name()
    try:
        yield
    finally:
        owner.close()


def is_abandoned(folder: Path) -> bool:
    """Whether the process that said it worked in a folder is gone."""
    from recollect.stores.sqlite.owners import Owner

    owners = folder / OWNERS
    names = [file.name for file in owners.iterdir()] if owners.is_dir() and not folder.is_symlink() else []
    return bool(names) and all(Owner(owners).is_dead(name) for name in names)


async def write_backup(store: Store, file: Path, on_progress: OnProgress) -> Mapping[str, int]:
    """Write everything an open store holds to a new file, verified and sealed. Returns the number of memories by space.

    A SQLite file is copied page by page; any other store goes through `copy_open`, from a snapshot if it offers one.
    """
    from recollect.stores.sqlite.store import SqliteStore

    backup = SqliteStore(file)
    if isinstance(store, SqliteStore):
        held = await store.save(file)
    else:
        reading = store.snapshot() if isinstance(store, SnapshotStore) else nullcontext(store)
        async with reading as source, opened(backup):
            copied = await copy_open(source, backup, list(await source.spaces()), on_progress)
        if not copied.verified:
            raise BackendError(
                f"the backup of {store.location} differs from the store, which was written to during the backup: "
                "try again",
                backend=store.name,
            )
        held = {space.space: space.source.memories for space in copied.spaces if space.source.memories}
    sealed = await backup.seal()
    if sealed.spaces != held:
        raise BackendError(f"the backup of {store.location} lacks memories: try again", backend=store.name)
    return sealed.spaces
