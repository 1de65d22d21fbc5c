"""What tests share: a store of their own in a temporary folder, and embedders that fail on demand."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recollect import AsyncRecollect, AsyncSpace, EmbeddingError
from recollect.embedders.hashing import HashingEmbedder
from recollect.ports import Role
from tests.falkordb_server import falkordb_server, falkordb_url, mortal_falkordb
from tests.postgres import pg_database, pg_dsn, pg_folder, pg_role, pg_schema, pg_store

if TYPE_CHECKING:
    from recollect.types import Vectors

__all__ = [  # fixtures of other modules
    "falkordb_server", "falkordb_url", "mortal_falkordb",
    "pg_database", "pg_dsn", "pg_folder", "pg_role", "pg_schema", "pg_store",
]  # fmt: skip

SHARED = Path(__file__).parents[1].parent / "shared"


def pytest_configure() -> None:
    """A run that was started in the background ignores Ctrl-C, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Tests on Postgres run on the server of a DSN, else on one that they start; the soak can take its time."""
    parser.addoption("--pg-dsn", help="a database on a Postgres server of yours, where tests may create databases")
    parser.addoption("--soak-seconds", type=float, default=60.0, help="how long engines come and go in the soak")
    parser.addoption("--soak-strict", action="store_true", help="times and reports decide, too: for a quiet machine")
    parser.addoption("--soak-seed", type=int, default=4, help="which faults the soak draws")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a store that does not exist yet."""
    return f"sqlite:///{tmp_path / 'memory.db'}"


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """A server that a test runs inside this process leaves no handlers behind."""
    loggers = [logging.getLogger(name) for name in ("root", "recollect", "recollect.audit", "uvicorn.error", "mcp")]
    kept = [(logger, logger.handlers[:], logger.propagate, logger.level) for logger in loggers]
    yield
    for logger, handlers, propagate, level in kept:
        for one in logger.handlers[:]:
            if type(one) is logging.StreamHandler and one not in handlers:
                logger.removeHandler(one)
        logger.propagate = propagate
        logger.setLevel(level)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's own settings, data or cache."""
    home = tmp_path_factory.mktemp("home")
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(home / variable.lower()))
    for variable in (
        "RECOLLECT_URL",
        "RECOLLECT_EMBEDDER",
        "RECOLLECT_VECTORS",
        "RECOLLECT_GRAPH",
        "QDRANT_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
    ):
        monkeypatch.delenv(variable, raising=False)


class FlakyEmbedder(HashingEmbedder):
    """The hashing embedder, which fails while `down` is set, and on texts that hold its poison."""

    down = False
    poison = "\N{SKULL}"
    asked = 0

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        self.asked += len(texts)
        if self.down:
            raise EmbeddingError("the embedding service is down")
        if any(self.poison in text for text in texts):
            raise EmbeddingError("the embedding service cannot take this text")
        return await super().embed(texts, space=space, role=role)


@pytest.fixture
def embedder() -> FlakyEmbedder:
    return FlakyEmbedder()


@pytest.fixture
async def client(url: str, embedder: FlakyEmbedder) -> AsyncIterator[AsyncRecollect]:
    async with AsyncRecollect(url, embedder=embedder) as opened:
        yield opened


@pytest.fixture
def work(client: AsyncRecollect) -> AsyncSpace:
    return client.space("work")
