"""The synchronous client: the same calls, from any thread, opened and closed in any order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from recollect import ConfigError, Draft, InvalidRequest, Recollect


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
    with pytest.raises(ConfigError, match="choose one of"):
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
