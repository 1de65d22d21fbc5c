"""FalkorDB that is wrong, down, slow, killed or frozen: one clear sentence each, and no harm afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.errors import BackendError, BackendTimeout, BackendUnavailable, ConfigError
from recollect.types import Edge
from tests.falkordb_server import FalkorServer, free_port, needed
from tests.indexes.falkordb_samples import FalkorIndex, around, everything, held, there

driver = needed("redis.exceptions")
SECRET = "pass:w/ord@%"
ESCAPED = "pass%3Aw%2Ford%40%25"


def made(url: str, timeout: float = 30.0) -> FalkorIndex:
    return FalkorIndex(url, visible=everything, timeout=timeout)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "must begin with falkordb:// or falkordbs://"),
        ("redis://localhost", "must begin with"),
        ("falkordb:localhost", "names no host"),
        ("falkordb://:secret@/prefix", "names no host"),
        ("falkordb://:secret@localhost:port", "host or port cannot be read"),
        ("falkordb://:secret@localhost:99999", "host or port cannot be read"),
        ("falkordb://:secret@localhost:0", "0 is not a port"),
        ("falkordb://[::1", "host or port cannot be read"),
        ("falkordb://:secret@localhost/a/b", "prefix must be letters"),
        ("falkordb://:secret@localhost/a*", "prefix must be letters"),
        ("falkordb://:secret@localhost?db=1", "takes no options"),
    ],
)
def test_a_wrong_url_is_refused_before_anything_is_asked(url: str, reason: str) -> None:
    """One sentence says what is wrong with it, without the password."""
    with pytest.raises(ConfigError, match=reason) as raised:
        made(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["falkordb", "falkordbs"])
async def test_a_short_url_has_defaults(scheme: str) -> None:
    """Port and prefix may be left out, and the scheme says whether it is TLS."""
    index = made(f"{scheme}://[::1]")
    assert (index._address.port, index._address.prefix, index._address.tls) == (6379, "recollect", scheme[-1] == "s")
    assert str(index._address) == "FalkorDB on [::1]:6379"
    await index.close()


async def test_nobody_at_the_port(tmp_path: Path) -> None:
    """Opening is no error, for the server may come; using it is, with its place."""
    port = free_port()
    index = made(f"falkordb://127.0.0.1:{port}")
    await index.open()
    for call in (index.check(), index.apply("here", [there("a")]), around(index, "a"), index.spaces(), index.shadow()):
        with pytest.raises(BackendUnavailable, match=f"127.0.0.1:{port} cannot be reached") as raised:
            await call
        assert raised.value.backend == "falkordb"
    await index.close()


async def test_a_server_that_does_not_speak_tls(falkordb_server: FalkorServer) -> None:
    """A URL that asks for TLS where there is none gets no answer."""
    index = made(falkordb_server.url.replace("falkordb:", "falkordbs:"), timeout=0.2)
    with pytest.raises(BackendTimeout, match="did not answer in time"):
        await index.check()
    await index.close()


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[FalkorServer]:
    """A server with a password."""
    server = FalkorServer(tmp_path, password=SECRET)
    server.start()
    yield server
    server.kill()


async def test_passwords(locked: FalkorServer) -> None:
    """The right one opens; a wrong one or none is an error from the start, which does not show it."""
    place = f"127.0.0.1:{locked.port}"
    index = made(f"falkordb://:{ESCAPED}@{place}")
    await index.open()
    await index.apply("here", [there("a")])
    await index.close()
    for user in ("", ":wr0ng@", f"nobody:{ESCAPED}@"):
        index = made(f"falkordb://{user}{place}")
        with pytest.raises(BackendError, match=f"{place} refuses the user or the password") as raised:
            await index.open()
        assert not isinstance(raised.value, BackendUnavailable)
        assert SECRET not in str(raised.value)
        assert "wr0ng" not in f"{raised.value}{index._address!r}"
        await index.close()


async def test_a_plain_redis(tmp_path: Path) -> None:
    """A server without the module says which it lacks, from the start."""
    server = FalkorServer(tmp_path, module=False)
    server.start()
    index = made(server.url)
    for call in (index.open(), index.check(), index.apply("here", [there("a")])):
        with pytest.raises(BackendError, match="lacks its module, so it is a plain Redis"):
            await call
    await index.close()
    server.kill()


async def test_a_server_that_is_killed_and_comes_back(mortal_falkordb: FalkorServer) -> None:
    """While it is away that is said; afterwards the same index goes on, with all that it was told before."""
    index = made(mortal_falkordb.url)
    await index.apply("here", [there("a", Edge("a", "b"))])
    shadow = await index.shadow()
    await shadow.apply("here", [there("a", Edge("a", "c"))])
    await index.publish(shadow)
    for _ in range(2):
        mortal_falkordb.kill()
        for _ in range(2):
            with pytest.raises(BackendUnavailable):
                await around(index, "a")
        mortal_falkordb.start()
        assert (await around(index, "a"), await held(index), await index.spaces()) == (["c"], ["a"], ["here"])
    await index.apply("here", [there("b")])
    assert await held(index) == ["a", "b"]
    await index.close()


async def test_a_frozen_server(mortal_falkordb: FalkorServer) -> None:
    """A call that it does not answer ends after its time, and one that is cancelled ends at once; when it goes on, so
    does the index, and answers belong to their questions.
    """
    index, patient = made(mortal_falkordb.url, timeout=0.2), made(mortal_falkordb.url, timeout=3600)
    for one in (index, patient):
        await one.apply("here", [there("a", Edge("a", "b"))])
    mortal_falkordb.freeze()
    for call in (around(index, "a"), index.apply("here", [there("a", Edge("a", "c"))]), index.check()):
        with pytest.raises(BackendTimeout, match="did not answer in time"):
            await call
    waiting = [asyncio.create_task(around(patient, "a")) for _ in range(40)]
    await asyncio.sleep(0.1)
    for task in waiting:
        task.cancel()
    assert all(
        isinstance(ended, asyncio.CancelledError) for ended in await asyncio.gather(*waiting, return_exceptions=True)
    )
    mortal_falkordb.thaw()
    for one in (index, patient):
        assert (await around(one, "a"), await held(one)) == (["b"], ["a"])
    await patient.apply("here", [there("a", Edge("a", "d"))])
    assert await around(patient, "a") == ["d"]
    await index.close()
    await patient.close()


async def test_a_server_without_memory_left(mortal_falkordb: FalkorServer) -> None:
    """A full server takes no change, says why, and takes it when there is room again."""
    index = made(mortal_falkordb.url)
    await index._server.command("CONFIG", "SET", "maxmemory", 1)
    with pytest.raises(BackendUnavailable, match="no memory left"):
        await index.apply("here", [there("a")])
    await index._server.command("CONFIG", "SET", "maxmemory", 0)
    await index.apply("here", [there("a")])
    assert await held(index) == ["a"]
    await index.close()


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (driver.ConnectionError("Connection reset by peer"), BackendUnavailable, "reset by peer"),
        (driver.TimeoutError("Timeout reading"), BackendTimeout, "did not answer in time"),
        (driver.ResponseError("Query timed out"), BackendTimeout, "did not answer in time"),
        (driver.BusyLoadingError("LOADING"), BackendUnavailable, "still loading"),
        (driver.ReadOnlyError("READONLY"), BackendUnavailable, "is a replica"),
        (driver.NoPermissionError("no rights to GRAPH.QUERY"), BackendError, "may not do this"),
        (driver.MovedError("3999 127.0.0.1:6381"), BackendError, "part of a cluster"),
        (driver.ResponseError("Max pending queries exceeded"), BackendUnavailable, "too many queries"),
        (driver.ResponseError("MISCONF Errors writing to the AOF file"), BackendUnavailable, "accepts no writes now"),
        (driver.ResponseError(f"what is this, {SECRET}? " + "x" * 999), BackendError, "failed: what is this, …? xx"),
    ],
)
def test_every_error_of_the_driver_has_a_meaning(error: Exception, kind: type[BackendError], words: str) -> None:
    """Errors that are hard to bring about are translated as well, without the password and not endlessly."""
    from recollect.indexes.falkordb import address, failures

    translated = failures.translate(error, address.Address("here", password=SECRET))
    assert type(translated) is kind
    assert translated.backend == "falkordb"
    assert len(str(translated)) < 300
    assert words in str(translated)
    assert SECRET not in str(translated)
