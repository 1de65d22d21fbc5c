"""The synchronous client: the same calls, from any thread, opened and closed in any order."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from recollect import ConfigError, Draft, InvalidRequest, Recollect
from recollect.embedders.hashing import HashingEmbedder
from recollect.stores.sqlite.store import SqliteStore


def test_calls_from_several_threads(url: str) -> None:
    """One client, many threads: every memory is stored once and found."""
    with Recollect(url, embedder="hashing") as r, ThreadPoolExecutor(8) as threads:
        work = r.space("work")
        list(threads.map(lambda n: work.remember(f"note number {n}"), range(40)))
        found = list(threads.map(lambda n: work.recall(f"number {n}")[0].memory.text, range(40)))
        assert found == [f"note number {n}" for n in range(40)]


def test_drafts_may_be_read_from_the_same_client(url: str) -> None:
    """A generator of drafts that asks the client for what it copies does not wait for itself."""
    with Recollect(url, embedder="hashing") as r:
        one, other = r.space("one"), r.space("other")
        one.remember_many(Draft(f"note {n}") for n in range(5))
        ids = [memory.id for memory in one.list().memories]
        assert other.remember_many(Draft(one.get(id).text) for id in ids).created == 5


def test_a_callback_that_calls_back_is_told(url: str) -> None:
    """Instead of waiting for itself for ever."""
    with Recollect(url, embedder="hashing") as r:
        work = r.space("work")

        def call_back(_done: int) -> None:
            work.stats()

        with pytest.raises(InvalidRequest, match="callback"):
            work.remember_many([Draft("note")], on_progress=call_back)


def test_ctrl_c_ends_a_call_and_leaves_the_client_usable(url: str) -> None:
    """The call is cancelled down to the embedder that it waits for; what it would have stored is not there."""
    embedder = FrozenEmbedder()

    def press_ctrl_c() -> None:
        embedder.asked.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with Recollect(url, embedder=embedder) as r:
        work, thread = r.space("work"), threading.Thread(target=press_ctrl_c)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            work.remember("a kite")
        thread.join()
        assert embedder.cancelled
        assert work.list().memories == ()
        embedder.frozen = False
        assert work.remember("a kite").created
        assert work.recall("kite")[0].memory.text == "a kite"


class FrozenEmbedder(HashingEmbedder):
    """Does not answer, as long as it is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen, self.cancelled, self.asked = True, False, threading.Event()

    async def embed(self, texts: Sequence[str], **how: Any) -> Any:
        self.asked.set()
        try:
            if self.frozen:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return await super().embed(texts, **how)


def test_a_store_can_be_given(tmp_path: Path) -> None:
    """One that somebody made is opened and closed with the client; it says where it lives."""
    store = SqliteStore(tmp_path / "given.db")
    with Recollect(store=store, embedder="hashing") as r:
        r.space("work").remember("a kite")
        assert r.url == store.location
    with Recollect(f"sqlite:///{tmp_path / 'given.db'}", embedder="hashing") as r:
        assert r.space("work").stats().memories == 1
    with pytest.raises(ConfigError, match="a URL and a store were given"):
        Recollect("sqlite:///:memory:", store=store)


def test_arguments_of_another_type_are_refused_in_a_sentence(url: str) -> None:
    """Not by a traceback from somewhere inside."""
    opened: dict[str, str] = {
        "embedder": "5 cannot be used as an embedder, nor as the name of one: it has no 'name'",
        "store": "5 cannot be used as a store: it has no 'open'",
        "url": "the URL of the store must be a text, not 5",
    }
    for name, says in opened.items():
        with pytest.raises(ConfigError, match=says):
            Recollect(**{name: 5})  # type: ignore[arg-type]
    with Recollect(url, embedder="hashing") as r:
        work = r.space("work")
        calls: dict[Callable[[], object], str] = {
            lambda: work.import_lines(5): "lines must be a list, a file or a generator, not int",  # type: ignore[arg-type]
            lambda: work.import_lines("{}"): "lines must be a list, a file or a generator, not str",
            lambda: work.remember_many(None): "drafts must be a list, a file or a generator, not NoneType",  # type: ignore[arg-type]
            lambda: r.backup(5): "the file of a backup must be a path, not int",  # type: ignore[arg-type]
            lambda: Recollect.restore(5): "the file of a backup must be a path, not int",  # type: ignore[arg-type]
            lambda: r.tokens.check(None): "a token must be a text, not NoneType",  # type: ignore[arg-type]
            lambda: r.tokens.revoke(5): "the id of a token must be a text, not int",  # type: ignore[arg-type]
            lambda: r.space(5): "space must be a text, not int",  # type: ignore[arg-type]
        }
        for call, says in calls.items():
            with pytest.raises(InvalidRequest, match=says):
                call()


def test_closing_twice_and_using_after(url: str) -> None:
    """The second close does nothing; a call after it is refused with a sentence."""
    r = Recollect(url, embedder="hashing")
    work = r.space("work")
    r.close()
    r.close()
    with pytest.raises(InvalidRequest, match="closed"):
        work.remember("late")


@pytest.mark.parametrize("bad", ["memory.db", "mysql://x/y", "sqlite://", "sqlite:///", ""])
def test_a_url_that_is_none_is_refused_before_anything_is_opened(bad: str, tmp_path: object) -> None:
    """The sentence says what a URL looks like."""
    if bad:
        with pytest.raises(ConfigError, match="sqlite:///"):
            Recollect(bad, embedder="hashing")
    with pytest.raises(ConfigError, match="use one of"):
        Recollect("sqlite:///:memory:", embedder="magic")


def test_what_a_list_call_does_not_know_is_refused(url: str) -> None:
    """A misspelt filter must not answer with everything."""
    with Recollect(url, embedder="hashing") as r:
        work = r.space("work")
        for bad in ({"tag": ["x"]}, {"after": "\ud800"}, {"after": 5}, {"limit": 0}):
            with pytest.raises(InvalidRequest):
                work.list(**bad)
        with pytest.raises(InvalidRequest):
            work.unlink("a", "b", "\ud800")
        with pytest.raises(InvalidRequest, match="colour"):
            work.remember("x", colour="red")  # type: ignore[call-arg]
