"""Qdrants for tests: a folder for the local mode, and processes that stand in for servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest

from recollect.indexes.qdrant.index import QdrantIndex
from tests.indexes.qdrant_process import QdrantProcess
from tests.indexes.qdrant_samples import KEY, using

NUMBERS = count(1)


@pytest.fixture(scope="session")
def qdrant_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantProcess]:
    """A server that nobody kills."""
    server = QdrantProcess(tmp_path_factory.mktemp("qdrant"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def fallible_qdrant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantProcess]:
    server = QdrantProcess(tmp_path_factory.mktemp("qdrant"), key=KEY)
    yield server
    server.kill()


@pytest.fixture
def mortal_qdrant(fallible_qdrant: QdrantProcess) -> Iterator[QdrantProcess]:
    """A server to be killed, frozen and slowed down, well at the beginning of each test. It asks for a key."""
    fallible_qdrant.start()
    yield fallible_qdrant
    fallible_qdrant.start()
    fallible_qdrant.thaw()
    fallible_qdrant.behave()


@pytest.fixture
def corner(qdrant_server: QdrantProcess) -> str:
    """The URL of a part of the server that nobody has used."""
    return f"{qdrant_server.url}/test{next(NUMBERS)}"


@pytest.fixture(params=["local", "server"])
def qdrant_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty Qdrant of each sort."""
    if request.param == "local":
        return f"qdrant+local:///{tmp_path / 'qdrant'}"
    return str(request.getfixturevalue("corner"))


@pytest.fixture
async def index(qdrant_url: str) -> AsyncIterator[QdrantIndex]:
    """An empty index."""
    async with using(qdrant_url) as opened:
        yield opened
