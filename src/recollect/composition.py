"""The composition root: the only place that names a concrete store or index. What is not used is not imported."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import unquote

from recollect.engine.copying import OnProgress, copy_open, opened
from recollect.errors import BackendError, ConfigError
from recollect.limits import check_characters
from recollect.ports import ExternalLinks, ExternalVectors, Freezable, Store
from recollect.settings import Settings, with_store, without_password

MEMORY = ":memory:"
STORES = "sqlite:///FILE, postgresql://…, embedded-postgres:///FOLDER"


def store(settings: Settings, *, create: bool = True) -> Store:
    """The store that the settings' URL names, not yet opened."""
    url = settings.url
    scheme, colon, rest = check_characters("the URL of a store", url).partition("://")
    if not colon or scheme not in ("sqlite", "postgresql", "postgres", "embedded-postgres"):
        raise ConfigError(f"{without_password(url)!r} is no store that Recollect knows; it knows {STORES}")
    if scheme in ("postgresql", "postgres"):
        return _postgres_store(url, settings, create=create)
    path = unquote(rest.removeprefix("/"))
    if not path or not rest.startswith("/") or set("?#\x00") & {*rest, *path}:
        raise ConfigError(
            f"{without_password(url)!r} names no file: write {scheme}:///memory, or {scheme}:////absolute/memory"
        )
    place = Path(path).expanduser()
    if not create and path != MEMORY and not place.exists():
        missing = f"there is no store at {place} yet: `recollect migrate` makes one, or name another"
        raise ConfigError(with_store(missing, url))
    if scheme == "embedded-postgres":
        return _postgres_store(place, settings, create=create)
    from recollect.stores.sqlite.store import SqliteStore  # late: the driver is not needed to read `--help`

    return SqliteStore.temporary() if path == MEMORY else SqliteStore(place)


def _postgres_store(where: str | Path, settings: Settings, *, create: bool) -> Store:
    """A store on the server of a URL, or on a private one in a folder."""
    try:
        from recollect.stores.postgres.store import PostgresStore
    except ImportError as error:
        raise _not_installed("Postgres", "postgres", error) from error
    if isinstance(where, Path):
        return PostgresStore.embedded(where, settings.postgres, create=create)
    return PostgresStore(where, settings.postgres, create=create)


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


def external_vectors(settings: Settings, store: Store) -> ExternalVectors | None:
    """The index that answers the vector leg in the store's place, if one is named."""
    if settings.vectors is None:
        return None
    url = check_characters("the URL of the vectors", settings.vectors)
    if not url.startswith("qdrant+"):
        raise ConfigError(
            f"{without_password(url)!r} is no vector index that Recollect knows; it knows qdrant+http://HOST:6333 and "
            "qdrant+local:///FOLDER"
        )
    try:
        from recollect.indexes.qdrant.index import QdrantIndex
    except ImportError as error:
        raise _not_installed("Qdrant", "qdrant", error) from error
    return QdrantIndex(url, settings=settings.qdrant, background=store.vector_background)


def external_links(settings: Settings, store: Store) -> ExternalLinks | None:
    """The index that answers the graph leg in the store's place, if one is named."""
    if settings.graph is None:
        return None
    url = check_characters("the URL of the graph", settings.graph)
    if not url.startswith(("falkordb://", "falkordbs://")):
        raise ConfigError(
            f"{without_password(url)!r} is no graph index that Recollect knows; it knows falkordb://HOST:6379"
        )
    try:
        from recollect.indexes.falkordb.index import FalkorIndex
    except ImportError as error:
        raise _not_installed("FalkorDB", "falkordb", error) from error
    return FalkorIndex(url, visible=store.visible)


def _not_installed(engine: str, extra: str, error: ImportError) -> ConfigError:
    return ConfigError(
        f"{engine} needs {error.name}, which is not installed: python3 -m pip install 'recollect[{extra}]'"
    )
