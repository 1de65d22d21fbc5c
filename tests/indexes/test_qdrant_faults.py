"""What Qdrant's failures say, and that they pass: wrong addresses and keys, and engines that come and go."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from subprocess import run

import pytest

from recollect.conformance.samples import HERE, MODEL, raises, unit
from recollect.errors import BackendError, BackendTimeout, BackendUnavailable, ConfigError
from recollect.indexes.qdrant.address import Address, parse
from recollect.indexes.qdrant.index import QdrantIndex
from tests.indexes.qdrant_process import QdrantProcess
from tests.indexes.qdrant_samples import KEY, administrator, change, collections, held, nearest, using

pytest_plugins = ["tests.indexes.qdrant_fixtures"]

SHORT = 0.5
"""Seconds that an engine which does not answer is waited for."""


# Addresses


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("qdrant+http://host", Address("http://host:6333")),
        ("qdrant+https://host:443/mine", Address("https://host:443", "mine")),
        ("qdrant+http://[::1]:7000/", Address("http://[::1]:7000")),
        ("qdrant+local:///folder/sub", Address(Path("folder/sub"))),
        ("qdrant+local:////srv/a%20b", Address(Path("/srv/a b"))),
    ],
)
def test_urls_are_read(url: str, address: Address) -> None:
    """A server with a port and a prefix of its own, or a folder."""
    assert parse(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "", "qdrant", "http://host:6333", "qdrant://host", "qdrant+ftp://host", "qdrant+http://", "qdrant+http:///x",
        "qdrant+http://host:port", "qdrant+http://host:99999", "qdrant+http://host/a/b", "qdrant+http://host/ü",
        "qdrant+http://host?key=secret", "qdrant+http://me:secret@host", "qdrant+http://a b", "qdrant+http://[::1",
        "qdrant+local://folder", "qdrant+local:///", "qdrant+local:///a?b", "qdrant+local:///a%00b",
    ],
)  # fmt: skip
def test_wrong_urls_are_refused_before_anything_is_reached(url: str) -> None:
    """In one sentence that says how to write it, and that repeats no password."""
    with pytest.raises(ConfigError, match=r"write|set the API key|must be") as refused:
        QdrantIndex(url)
    assert "secret" not in str(refused.value)


def test_a_key_that_cannot_be_sent_is_refused() -> None:
    """A header takes no line break and no other script; the key itself is not repeated."""
    with pytest.raises(ConfigError, match="API key") as refused:
        QdrantIndex("qdrant+http://localhost", key="clé")
    assert "clé" not in str(refused.value)


def test_the_client_is_not_needed_to_import_recollect() -> None:
    """Only whoever asks for Qdrant pays for its client."""
    code = "import recollect, sys, recollect.servers.cli.main; sys.exit('qdrant_client' in sys.modules)"
    assert run([sys.executable, "-c", code], check=False).returncode == 0


# Failures


async def test_a_wrong_key_is_refused(mortal_qdrant: QdrantProcess) -> None:
    """It is no outage: whoever set the key is told, and the key is not repeated."""
    async with using(mortal_qdrant.url, key=KEY) as index:
        assert await index.count(HERE) == 0
    for key in ("guess", None):
        index = QdrantIndex(mortal_qdrant.url, key=key)
        with pytest.raises(BackendError, match="refuses the API key") as refused:
            await index.open()
        assert not isinstance(refused.value, BackendUnavailable)
        assert "guess" not in str(refused.value)
        await index.close()


async def test_an_engine_that_is_not_there_yet_is_no_error(tmp_path: Path) -> None:
    """Opening waits for nobody; what is asked meanwhile is unavailable, and all is well once the engine is there."""
    server = QdrantProcess(tmp_path / "qdrant")
    server.start()
    server.kill()
    async with using(server.url) as index:
        await index.open()
        with raises(BackendUnavailable, "cannot be reached", "127.0.0.1"):
            await index.check()
        with pytest.raises(BackendUnavailable):
            await index.apply(HERE, [change("a", unit(1))])
        server.start()
        await index.check()
        await index.apply(HERE, [change("a", unit(1))])
        assert await nearest(index, unit(1)) == ["a"]
    server.kill()


async def test_an_engine_that_comes_back_is_used_again(mortal_qdrant: QdrantProcess) -> None:
    """Killed and started again, it answers the same client, with what it held."""
    async with using(mortal_qdrant.url, key=KEY) as index:
        await index.apply(HERE, [change("a", unit(1))])
        mortal_qdrant.kill()
        with pytest.raises(BackendUnavailable):
            await nearest(index, unit(1))
        mortal_qdrant.start()
        assert await nearest(index, unit(1)) == ["a"]


async def test_a_frozen_engine_is_not_waited_for(mortal_qdrant: QdrantProcess) -> None:
    """Each call gives up after its time, and says so; thawed, the engine is used again."""
    async with using(mortal_qdrant.url, key=KEY) as index:
        await index.apply(HERE, [change("a", unit(1))])
        mortal_qdrant.freeze()
        async with using(mortal_qdrant.url, key=KEY, timeout=SHORT) as hasty:
            with raises(BackendTimeout, "did not answer within 0.5 s"):
                await nearest(hasty, unit(1))
            with pytest.raises(BackendTimeout):
                await hasty.check()
        mortal_qdrant.thaw()
        assert await nearest(index, unit(1)) == ["a"]


async def test_whoever_stops_waiting_goes_on_at_once(mortal_qdrant: QdrantProcess) -> None:
    """A call that is cancelled does not hold its caller until the engine answers: this one is still frozen."""
    async with using(mortal_qdrant.url, key=KEY, timeout=600) as index:
        mortal_qdrant.freeze()
        calls = [asyncio.create_task(nearest(index, unit(1))) for _ in range(3)]
        await asyncio.sleep(0.05)
        for call in calls:
            call.cancel()
        assert {type(each) for each in await asyncio.gather(*calls, return_exceptions=True)} == {asyncio.CancelledError}
        mortal_qdrant.thaw()


async def test_a_slow_engine_is_not_waited_for(mortal_qdrant: QdrantProcess) -> None:
    """An answer that takes 10 s is none."""
    mortal_qdrant.behave(delay=10)
    async with using(mortal_qdrant.url, key=KEY, timeout=SHORT) as index:
        with pytest.raises(BackendTimeout):
            await index.count(HERE)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
async def test_a_failing_engine_is_worth_another_try(mortal_qdrant: QdrantProcess, status: int) -> None:
    """Whatever is the engine's own trouble is unavailable, with the engine's reason."""
    async with using(mortal_qdrant.url, key=KEY) as index:
        mortal_qdrant.behave(status=status, text='{"status": {"error": "disk on fire"}, "time": 0}')
        with raises(BackendUnavailable, f"HTTP {status}", "disk on fire"):
            await index.count(HERE)


@pytest.mark.parametrize("text", ["<html>hello</html>", '{"hello": "world"}', "[]"])
async def test_another_service_is_recognised(mortal_qdrant: QdrantProcess, text: str) -> None:
    """Something that is no Qdrant answers at the address: that is no outage, but a wrong URL."""
    async with using(mortal_qdrant.url, key=KEY) as index:
        mortal_qdrant.behave(text=text)
        with pytest.raises(BackendError, match="did not answer like a Qdrant: check the URL") as refused:
            await index.count(HERE)
        assert not isinstance(refused.value, BackendUnavailable)


async def test_a_lost_collection_is_told_and_mended(corner: str, qdrant_server: QdrantProcess) -> None:
    """An index that lost its contents does not begin again empty, as if nothing were missing: it asks for a rebuild."""
    async with using(corner) as index:
        await index.apply(HERE, [change("a", unit(1))])
        async with administrator(qdrant_server) as client:
            for name in await collections(qdrant_server, corner):
                await client.delete_collection(name)
        for call in (index.check(), nearest(index, unit(1)), index.apply(HERE, [change("b", unit(1))])):
            with raises(BackendError, "lost", "recollect rebuild qdrant"):
                await call
        shadow = await index.shadow()
        await shadow.apply(HERE, [change("a", unit(1))])
        await index.publish(shadow)
        assert await held(index) == ["a"]


async def test_a_folder_serves_one_process(tmp_path: Path) -> None:
    """The second is told who has it; when the first lets go, it can be used."""
    url = f"qdrant+local:///{tmp_path / 'qdrant'}"
    async with using(url) as first:
        await first.apply(HERE, [change("a", unit(1))])
        second = QdrantIndex(url)
        await second.use(MODEL)
        with raises(BackendUnavailable, str(tmp_path), "in use by another process", "qdrant+http"):
            await second.check()
    assert await held(second) == ["a"]
    await second.close()


async def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """A file in its place: one sentence, and the file is left alone."""
    (tmp_path / "qdrant").write_text("something else")
    index = QdrantIndex(f"qdrant+local:///{tmp_path / 'qdrant'}")
    with raises(BackendError, "cannot be used"):
        await index.open()
    await index.close()
    assert (tmp_path / "qdrant").read_text() == "something else"


async def test_a_closed_index_says_so(qdrant_url: str) -> None:
    """It is not opened again by a late call."""
    async with using(qdrant_url) as index:
        pass
    with raises(BackendError, "was closed"):
        await index.count(HERE)
