"""The composition root: the only place that names a concrete store or index. What is not used is not imported."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from recollect.errors import ConfigError
from recollect.limits import check_characters
from recollect.ports import ExternalLinks, ExternalVectors, Store
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


def external_vectors(settings: Settings) -> ExternalVectors | None:
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
    return QdrantIndex(url, settings=settings.qdrant)


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
