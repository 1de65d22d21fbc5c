"""What is wrong with engines and with what is said of links: one clear sentence each, by the library and at the command
line, and the same by both.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models

from recollect import (
    AsyncRecollect,
    AsyncSpace,
    BackendError,
    BackendUnavailable,
    ConfigError,
    InvalidRequest,
    RecollectError,
)
from recollect.indexes.qdrant.collections import alias_of
from recollect.options import FilterOptions
from recollect.settings import QdrantSettings, Settings
from tests.engine.test_feeding import told
from tests.falkordb_server import FalkorServer, free_port
from tests.indexes.qdrant_process import QdrantProcess
from tests.indexes.qdrant_samples import administrator
from tests.servers.cli_runner import Cli
from tests.servers.test_cli_failures import check_error

pytest_plugins = ["tests.indexes.qdrant_fixtures"]

SECRET = "hunter2"
MEANING = {"keyword": 0.0, "graph": 0.0}
LINKS = {"keyword": 0.0, "vector": 0.0}

WRONG_URLS = [
    ("vectors", "http://host:6333", "is not the URL of a vector index: write qdrant+http://HOST:6333"),
    ("vectors", "falkordb://host", "is not the URL of a vector index"),
    ("vectors", "qdrant+ftp://host", "is not the URL of a vector index: write qdrant+http://HOST:6333"),
    ("vectors", "qdrant+http://", "names no server: write it like qdrant+http://host:6333"),
    ("vectors", "qdrant+http://host:port", "cannot be read"),
    ("vectors", "qdrant+http://host/a/b", "the prefix of its collections must be up to 64 letters"),
    ("vectors", f"qdrant+http://me:{SECRET}@host", "leave it out, and set the API key instead"),
    ("vectors", "qdrant+local://folder", "names no folder: write qdrant+local:///folder"),
    ("graph", f"redis://:{SECRET}@host", "is not the URL of a graph index: write falkordb://HOST:6379"),
    ("graph", "qdrant+http://host", "is not the URL of a graph index"),
    ("graph", "falkordb://", "names no host): write falkordb://"),
    ("graph", f"falkordb://:{SECRET}@host:port", "its host or port cannot be read"),
    ("graph", "falkordb://host?db=1", "takes no options after ?"),
    ("graph", "falkordb://host/a/b", "its prefix must be letters, digits, dots, dashes and underscores"),
]

WRONG_LINKS: list[tuple[dict[str, Any], str]] = [
    ({"target": "a"}, "memory 'a' cannot be linked to itself"),
    ({"target": "nowhere"}, "'nowhere'"),
    ({"strength": 0.0}, "strength is 0.0, and must be above 0 and at most 1"),
    ({"strength": -0.5}, "strength is -0.5, and must be"),
    ({"strength": 1.5}, "strength is 1.5, and must be"),
    ({"strength": math.nan}, "strength is nan, and must be"),
    ({"strength": math.inf}, "strength is inf, and must be"),
    ({"relation": ""}, "relation is empty: give it a name"),
    ({"relation": "a\nb"}, r"relation 'a\nb' holds a control character: remove it"),
]

ODD_NAMES = [
    'it\'s "quoted" and ``ticked``',
    "{braces} [and] (more) $id",
    "x'}) DETACH DELETE m //",
    "MATCH (n) DETACH DELETE n",
    "*/ RETURN 1 /* -- ; DROP TABLE memories",
    r"back\slash \' \u0027",
    " blanks around ",
    "日本語 🜁 %25",
]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.mark.parametrize(("engine", "wrong", "sentence"), WRONG_URLS)
def test_a_wrong_url_is_told_before_anything_is_opened(
    engine: str, wrong: str, sentence: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library raises ConfigError, the command line exits with 2; no store is made, and no password repeated."""
    vectors, graph = (wrong, None) if engine == "vectors" else (None, wrong)
    with pytest.raises(ConfigError) as refused:
        AsyncRecollect(settings=Settings(cli.url, "hashing", vectors=vectors, graph=graph))
    assert sentence in str(refused.value)
    assert SECRET not in str(refused.value)
    monkeypatch.setenv(f"RECOLLECT_{engine.upper()}", wrong)
    result = cli("remember", "x")
    assert result.exit_code == 2
    assert check_error(result.stderr) == f"{refused.value}\n"
    assert not (cli.folder / "memory.db").exists()


@dataclass(frozen=True)
class Refusing:
    """An engine that is there and cannot be used: how it is named, and what is said of it."""

    sentence: str
    vectors: str | None = None
    graph: str | None = None
    key: str | None = None

    def settings(self, url: str) -> Settings:
        return Settings(url, "hashing", vectors=self.vectors, graph=self.graph, qdrant=QdrantSettings(key=self.key))

    def environment(self) -> dict[str, str]:
        named = {"RECOLLECT_VECTORS": self.vectors, "RECOLLECT_GRAPH": self.graph, "QDRANT_API_KEY": self.key}
        return {name: value for name, value in named.items() if value is not None}


@pytest.fixture(params=["no key", "a wrong key", "other dimensions", "no module", "a wrong password"])
async def refusing(request: pytest.FixtureRequest, cli: Cli, tmp_path: Path) -> AsyncIterator[Refusing]:
    """Each engine that cannot be used as it is, beside a store that has vectors already."""
    async with AsyncRecollect(cli.url, embedder="hashing") as alone:
        await alone.space("default").remember("Ada prefers tea")
        generation = await alone._store.generation()
        assert generation is not None
    if request.param in ("no key", "a wrong key"):
        locked: QdrantProcess = request.getfixturevalue("mortal_qdrant")
        key = None if request.param == "no key" else SECRET
        yield Refusing("refuses the API key", vectors=locked.url, key=key)
    elif request.param == "other dimensions":
        url = request.getfixturevalue("corner")
        await occupy(request.getfixturevalue("qdrant_server"), alias_of(url.rpartition("/")[2], generation))
        yield Refusing(f"holds vectors of 3 dimensions compared by Cosine, and {generation.model} needs", vectors=url)
    else:
        module, password = request.param != "no module", "sesame" if request.param != "no module" else ""
        with served(tmp_path, module=module, password=password) as server:
            guess = f"falkordb://:{SECRET}@127.0.0.1:{server.port}" if password else server.url
            said = "refuses the user or the password" if password else "lacks its module, so it is a plain Redis"
            yield Refusing(said, graph=guess)


async def occupy(server: QdrantProcess, name: str) -> None:
    """Somebody made a collection under a name of ours, for vectors of three numbers."""
    async with administrator(server) as client:
        await client.create_collection(
            name, vectors_config=models.VectorParams(size=3, distance=models.Distance.COSINE)
        )


@contextmanager
def served(folder: Path, *, module: bool, password: str) -> Iterator[FalkorServer]:
    server = FalkorServer(folder, module=module, password=password)
    server.start()
    try:
        yield server
    finally:
        server.kill()


async def test_an_engine_that_cannot_be_used_as_it_is(
    refusing: Refusing, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no outage, which would pass: whoever opens the memory is told, without the key or the password."""
    with pytest.raises(BackendError) as refused:
        async with AsyncRecollect(settings=refusing.settings(cli.url)):
            pytest.fail("it was opened")
    assert not isinstance(refused.value, BackendUnavailable)
    assert refusing.sentence in str(refused.value)
    assert SECRET not in str(refused.value)
    for name, value in refusing.environment().items():
        monkeypatch.setenv(name, value)
    result = cli("recall", "tea")
    assert (result.exit_code, result.stdout) == (1, "")
    assert check_error(result.stderr) == f"{refused.value}\n"


async def test_a_collection_of_other_dimensions_that_shows_later(
    corner: str, qdrant_server: QdrantProcess, url: str
) -> None:
    """A store without vectors opens; with its first memory sync, the vector lane of a recall and doctor say it."""
    async with AsyncRecollect(settings=Settings(url, "hashing", vectors=corner)) as recollect:
        work = recollect.space("work")
        await occupy(qdrant_server, alias_of(corner.rpartition("/")[2], await generation_of(url)))
        await work.remember("Ada prefers tea")
        with pytest.raises(BackendError, match="holds vectors of 3 dimensions"):
            await recollect.sync()
        answer = await work.recall("tea")
        assert [hit.memory.text for hit in answer] == ["Ada prefers tea"]
        assert answer.degraded
        (lane,) = [lane for lane in answer.lanes if lane.lane == "vector"]
        checked = {check.name: check for check in (await recollect.doctor()).checks}["qdrant"]
        assert lane.status == "failed"
        assert not checked.ok
        for words in (lane.reason, checked.detail):
            assert "holds vectors of 3 dimensions" in words


async def generation_of(url: str) -> Any:
    """What the first memory of a store with this embedder makes of it."""
    async with AsyncRecollect(f"{url}.other", embedder="hashing") as other:
        await other.space("work").remember("x")
        return await other._store.generation()


@pytest.mark.parametrize(("engine", "scheme"), [("vectors", "qdrant+http"), ("graph", "falkordb")])
def test_nobody_at_the_place_is_no_error(engine: str, scheme: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine may come: memories are stored and found without it, a recall names it, and doctor exits with 1."""
    place = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv(f"RECOLLECT_{engine.upper()}", f"{scheme}://{place}")
    cli.remember("Ada prefers tea")
    answer = cli.json("recall", "tea")
    assert [hit["memory"]["text"] for hit in answer["hits"]] == ["Ada prefers tea"]
    assert answer["degraded"]
    (reason,) = [lane["reason"] for lane in answer["lanes"] if lane["status"] == "failed"]
    assert place in reason
    assert "cannot be reached" in reason
    diagnosis = cli("doctor")
    assert diagnosis.exit_code == 1
    assert place in "".join(diagnosis.stdout.split())


@pytest.fixture
async def tiers(cli: Cli, corner: str, falkordb_url: str) -> AsyncIterator[AsyncRecollect]:
    """A memory over three tiers that holds the memories a and b."""
    async with AsyncRecollect(settings=Settings(cli.url, "hashing", vectors=corner, graph=falkordb_url)) as recollect:
        for id in "ab":
            await recollect.space("default").remember(f"the umbrella {id}", id=id)
        await recollect.space("default").settle()
        await told(recollect)
        yield recollect


@pytest.fixture
def work(tiers: AsyncRecollect) -> AsyncSpace:
    return tiers.space("default")


@pytest.mark.parametrize(("change", "sentence"), WRONG_LINKS)
async def test_a_wrong_link_is_refused(
    change: dict[str, Any], sentence: str, tiers: AsyncRecollect, work: AsyncSpace, cli: Cli
) -> None:
    """Neither the store nor an index hears of it."""
    link = {"source": "a", "target": "b", "relation": "beside", "strength": 1.0, **change}
    with pytest.raises(RecollectError) as refused:
        await work.link(**link)
    assert sentence in str(refused.value)
    assert all(lag.waiting == 0 for lag in (await tiers.lag()).values())
    options = ("--relation", link["relation"], "--strength", str(link["strength"]))
    result = cli("link", link["source"], link["target"], *options)
    assert (result.exit_code, result.stdout) == (2 if isinstance(refused.value, InvalidRequest) else 1, "")
    assert check_error(result.stderr) == f"{refused.value}\n"


@pytest.mark.parametrize("depth", [0, 9, -1, 4])
async def test_a_walk_of_a_wrong_depth_is_refused(depth: int, work: AsyncSpace, cli: Cli) -> None:
    """In one sentence that says what is allowed, for neighbors and for a lane."""
    with pytest.raises(RecollectError) as refused:
        await work.neighbors("a", depth=depth)
    assert str(refused.value) == f"depth is {depth}, and must be from 1 to 3"
    with pytest.raises(RecollectError, match=f"the depth of lane 'graph' is {depth}, and must be from 1 to 3"):
        await work.recall("umbrella", lanes={"graph": {"depth": depth}})
    result = cli("neighbors", "a", "--depth", str(depth))
    assert (result.exit_code, result.stdout) == (2, "")
    assert check_error(result.stderr) == f"{refused.value}\n"


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names_are_names(name: str, tiers: AsyncRecollect) -> None:
    """Quotes, braces and Cypher in ids and names say nothing to an engine: what bears them is found by every leg, and
    all else is left alone.
    """
    there = tiers.space(name)
    odd = await there.remember("an odd one", id=name, namespace=name, kind=name, tags=[name], thread=name, source=name)
    other = await there.remember("another", namespace=name, kind=name, tags=[name], thread=name, source=name)
    await there.link(name, other.memory.id, relation=name, strength=0.5)
    await there.settle()
    await told(tiers)
    only: FilterOptions = {"namespaces": [name], "kinds": [name], "tags": [name], "thread": name, "source_prefix": name}
    for weights in (MEANING, LINKS):
        answer = await there.recall("an odd one", recipe="novamem", weights=weights, **only)
        assert not answer.degraded
        assert name in {hit.memory.id for hit in answer}
    assert (name, name) in [(n.memory.space, n.relation) for n in await there.neighbors(other.memory.id)]
    assert (await there.get(name)).thread == odd.memory.thread == name
    await there.forget(name)
    await told(tiers)
    assert {memory.id for memory in (await tiers.space("default").list()).memories} == {"a", "b"}
    diagnosis = await tiers.doctor()
    assert diagnosis.ok, diagnosis


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_at_the_command_line(name: str, cli: Cli) -> None:
    """They go through the shell's words and come back in JSON as they were."""
    told = ("--namespace", name, "--kind", name, "--tag", name, "--space", name)
    one, other = cli.remember("the umbrella is red", *told), cli.remember("the umbrella is blue", *told)
    cli.json("link", one, other, "--relation", name, "--space", name)
    near = cli.json("neighbors", one, "--space", name)
    assert name in {found["relation"] for found in near}
    (hit, _) = cli.json("recall", "umbrella", *told)["hits"]
    memory = hit["memory"]
    assert [memory["space"], memory["namespace"], memory["kind"], memory["tags"]] == [name, name, name, [name]]
