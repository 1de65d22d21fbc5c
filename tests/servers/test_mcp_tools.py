"""What each tool takes, answers and refuses, by the protocol's own client over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client

from recollect import AsyncRecollect, AsyncSpace
from recollect.recipes import recipe
from recollect.servers.documents import json_ready
from recollect.servers.mcp.tools import TOOLS
from recollect.types import Draft
from tests.conftest import FlakyEmbedder
from tests.servers.mcp_clients import call, over_http, refused, served, text_of

READ = {
    "memory_recall",
    "memory_search",
    "knowledge_search",
    "memory_get",
    "memory_neighbors",
    "memory_list",
    "memory_stats",
}
WRITE = {"memory_remember", "memory_supersede", "memory_update", "memory_used", "memory_link", "memory_forget"}


@pytest.fixture
async def agent(client: AsyncRecollect) -> AsyncIterator[str]:
    """Where the space `work` is served."""
    async with served(client) as address:
        yield f"{address}?space=work"


async def test_every_tool_says_what_it_is_for(agent: str) -> None:
    """Each tool and each argument has a description, and hints that fit what it does."""
    async with over_http(agent) as mcp:
        tools = {tool.name: tool for tool in (await mcp.list_tools()).tools}
    assert set(tools) == READ | WRITE == set(TOOLS)
    for tool in tools.values():
        assert tool.title
        assert len(tool.description or "") > 100
        assert all(schema["description"] for schema in tool.input_schema["properties"].values())
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (tool.name in READ)
        assert not tool.annotations.open_world_hint
    destructive = {name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint}
    assert destructive == {"memory_update", "memory_forget"}
    repeatable = {name for name, tool in tools.items() if tool.annotations and tool.annotations.idempotent_hint}
    assert repeatable == READ | WRITE - {"memory_supersede", "memory_used"}


def test_every_tool_is_documented() -> None:
    """docs/mcp.md has a row for each tool, and for nothing else."""
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `((?:memory|knowledge)_\w+)` \|", page, re.MULTILINE) == list(TOOLS)


async def test_remembering_says_whether_it_is_new(agent: str, work: AsyncSpace) -> None:
    """A short answer by default, the whole record on request; a copy is not stored twice."""
    async with over_http(agent) as mcp:
        first = await call(mcp, "memory_remember", text="The office moved to Brno", tags=["office"], title="Move")
        again = await mcp.call_tool("memory_remember", {"text": "The office moved to Brno", "full": True})
    assert first == {"id": first["id"], "created": True, "embedding": "ready"}
    stored = await work.get(first["id"])
    assert (stored.tags, stored.title) == (("office",), "Move")
    assert again.structured_content == {"memory": json_ready(stored), "created": False}
    assert json.loads(text_of(again)) == again.structured_content


async def test_recalling_says_what_and_why_in_few_words(agent: str, work: AsyncSpace) -> None:
    """A hit is id, snippet, score and a phrase of reasons; `full` gives what the library gives."""
    memory = (await work.remember("Invoice 12345 was paid\non 3 May", title="Invoice", tags=["billing"])).memory
    async with over_http(agent) as mcp:
        short = await mcp.call_tool("memory_recall", {"query": "invoice 12345"})
        full = await call(mcp, "memory_recall", query="invoice 12345", full=True)
    assert short.structured_content["degraded"] is False
    (hit,) = short.structured_content["hits"]
    assert hit == {
        "id": memory.id,
        "title": "Invoice",
        "snippet": "Invoice 12345 was paid on 3 May",
        "kind": "fact",
        "namespace": "default",
        "tags": ["billing"],
        "when": memory.created_at.isoformat(timespec="seconds"),
        "score": round(full["hits"][0]["score"], 4),
        "confidence": round(full["hits"][0]["confidence"], 2),
        "why": hit["why"],
    }
    assert set(hit["why"].split(", ")) == {"meaning #1", "words #1", "read together 1.00"}
    assert f"id {memory.id}; confidence {hit['confidence']}, score {hit['score']} ({hit['why']})" in text_of(short)
    answer = json_ready(await work.recall("invoice 12345", recipe="careful"))
    assert full["hits"][0]["why"] == answer["hits"][0]["why"]
    assert set(full) == set(answer)


async def test_recalling_says_where_an_expected_memory_was_lost(agent: str, work: AsyncSpace) -> None:
    """Every option of the library is one of the tool's: `expect` names a memory, and the answer says where it went."""
    old = (await work.remember("The office is in Oslo")).memory.id
    await work.supersede(old, "The office is in Bergen")
    async with over_http(agent) as mcp:
        asked = {"query": "where is the office?", "expect": old, "fusion": {"method": "rrf"}, "shared": []}
        answer = await mcp.call_tool("memory_recall", asked)
    assert answer.structured_content is not None
    assert answer.structured_content["expected"]["stage"] == "superseded"
    assert f"Expected {old}: superseded" in text_of(answer)


async def test_a_hit_of_another_space_says_whose_it_is(agent: str, client: AsyncRecollect, work: AsyncSpace) -> None:
    """In the document and in the text; a hit of one's own says nothing of that."""
    await client.space("team").remember("The umbrella is in locker 7", namespace="notes")
    await work.remember("My umbrella is red")
    await client.space("team").grant("notes", to="work")
    await work.accept("team", "notes")
    async with over_http(agent) as mcp:
        answer = await mcp.call_tool("memory_recall", {"query": "umbrella"})
    owners = {hit["snippet"]: hit.get("shared_by") for hit in answer.structured_content["hits"]}
    assert owners == {"The umbrella is in locker 7": "team", "My umbrella is red": None}
    assert text_of(answer).count("shared by space team") == 1


async def test_recalling_is_narrowed_as_in_the_library(agent: str, work: AsyncSpace) -> None:
    """Filters, limit, window and recipe reach the library."""
    for place, text in enumerate(("apples are red", "pears are green", "plums are blue")):
        await work.remember(text, thread="fruit", place=place, kind="message", namespace="garden")
    await work.remember("apples are round", occurred_at="2020-01-01T00:00:00Z")
    async with over_http(agent) as mcp:
        old = await call(mcp, "memory_recall", query="apples", until="2021-01-01T00:00:00Z")
        there = await call(mcp, "memory_recall", query="pears", namespaces=["garden"], limit=1, window=1)
        none = await mcp.call_tool("memory_recall", {"query": "apples", "recipe": "drobek"})
    assert [hit["snippet"] for hit in old["hits"]] == ["apples are round"]
    (hit,) = there["hits"]
    assert (hit["before"], hit["snippet"], hit["after"]) == (["apples are red"], "pears are green", ["plums are blue"])
    assert (none.structured_content["hits"], text_of(none)) == ([], "No memory matches.")


async def test_an_answer_says_when_a_part_of_it_is_missing(
    agent: str, work: AsyncSpace, embedder: FlakyEmbedder
) -> None:
    """Words are still found while the embedder is down, and the answer says which lanes did not answer, and why."""
    await work.remember("Invoice 12345 was paid")
    embedder.down = True
    async with over_http(agent) as mcp:
        stored = await mcp.call_tool("memory_remember", {"text": "Invoice 12346 was not"})
        answer = await mcp.call_tool("memory_recall", {"query": "invoice"})
    assert stored.structured_content["embedding"] == "pending"
    assert "only its words are found" in text_of(stored)
    assert answer.structured_content["degraded"] is True
    assert len(answer.structured_content["hits"]) == 2
    assert any("the embedding service is down" in why for why in answer.structured_content["degraded_because"])
    assert text_of(answer).startswith("Degraded: a part of the answer may be missing (vector: ")


async def test_searching_takes_weights(agent: str, work: AsyncSpace) -> None:
    """`memory_search` is the novamem recipe: exact words, pure meaning and roaming are weights of one call."""
    first = (await work.remember("alpha", id="a")).memory
    await work.remember("beta gamma", id="b")
    await work.remember("delta epsilon", id="c")
    await work.link(first.id, "b", strength=0.9)
    async with over_http(agent) as mcp:
        exact = await call(mcp, "memory_search", query="alpha", weights={"keyword": 1, "vector": 0, "graph": 0})
        roaming = await call(mcp, "memory_search", query="alpha", weights={"vector": 0.5, "graph": 0.5, "keyword": 0})
        plain = await call(mcp, "memory_search", query="alpha", full=True)
    assert [(hit["id"], hit["score"], hit["why"]) for hit in exact["hits"]] == [("a", 1.0, "words #1")]
    assert "links" in {hit["id"]: hit["why"] for hit in roaming["hits"]}["b"]
    assert plain["recipe"] == recipe("novamem").name
    same = json_ready(await work.recall("alpha", recipe="novamem"))
    assert [(hit["memory"]["id"], hit["score"]) for hit in plain["hits"]] == [
        (hit["memory"]["id"], hit["score"]) for hit in same["hits"]
    ]


async def test_searching_sees_every_namespace_unless_told(agent: str, work: AsyncSpace) -> None:
    """As the fifth seed has it: no namespace named means all of them."""
    await work.remember_many([Draft("alpha one", namespace="n1"), Draft("alpha two", namespace="n2")])
    async with over_http(agent) as mcp:
        everywhere = await call(mcp, "memory_search", query="alpha")
        there = await call(mcp, "memory_search", query="alpha", namespaces=["n2"])
    assert {hit["namespace"] for hit in everywhere["hits"]} == {"n1", "n2"}
    assert {hit["namespace"] for hit in there["hits"]} == {"n2"}


async def test_knowledge_is_searched_by_the_drobek_recipe(agent: str, work: AsyncSpace) -> None:
    """Only kind `knowledge`, by tags and a least score, superseded entries on request."""
    await work.remember("deploy on Fridays", kind="fact")
    old = (await work.remember("run make deploy", kind="knowledge", title="Deploy", tags=["ops"])).memory
    await work.supersede(old.id, "run just deploy", title="Deploy")
    await work.remember("deploy the docs", kind="knowledge", tags=["docs"])
    async with over_http(agent) as mcp:
        ops = await call(mcp, "knowledge_search", query="deploy", tags=["ops"])
        history = await call(mcp, "knowledge_search", query="deploy", tags=["ops"], include_superseded=True, limit=999)
        strict = await call(mcp, "knowledge_search", query="deploy", min_score=1.0, ef_search=100)
        whole = await call(mcp, "knowledge_search", query="deploy", full=True)
    assert [hit["snippet"] for hit in ops["hits"]] == ["run just deploy"]
    assert {hit.get("superseded_by") for hit in history["hits"]} == {None, ops["hits"][0]["id"]}
    assert strict["hits"] == []
    assert whole["recipe"] == "drobek"
    assert {hit["memory"]["kind"] for hit in whole["hits"]} == {"knowledge"}


async def test_one_memory_is_read_whole(agent: str, work: AsyncSpace) -> None:
    """`memory_get` and the resource of a memory give every field; text is cut nowhere."""
    memory = (await work.remember("long " * 200, id="a/b c", metadata={"page": 3})).memory
    async with over_http(agent) as mcp:
        got = await call(mcp, "memory_get", id=memory.id)
        (template,) = (await mcp.list_resource_templates()).resource_templates
        (contents,) = (await mcp.read_resource("recollect://memory/a%2Fb%20c")).contents
        assert (await mcp.list_resources()).resources == []
    assert got == json_ready(memory)
    assert template.uri_template == "recollect://memory/{id}"
    assert json.loads(contents.text) == got  # type: ignore[union-attr]


async def test_a_memory_is_updated_in_place(agent: str, work: AsyncSpace) -> None:
    """What is left out, or null, stays; `clear` empties."""
    memory = (await work.remember("teh office", tags=["a"], expires_at="2099-01-01T00:00:00Z")).memory
    async with over_http(agent) as mcp:
        short = await mcp.call_tool("memory_update", {"id": memory.id, "text": "the office", "expires_at": None})
        full = await call(mcp, "memory_update", id=memory.id, clear=["expires_at"], quality=0.5, full=True)
    assert short.structured_content["snippet"] == "the office"
    assert text_of(short) == f"Updated {memory.id}: the office"
    assert (full["tags"], full["expires_at"], full["quality"]) == (["a"], None, 0.5)
    assert (await work.get(memory.id)).text == "the office"


async def test_a_memory_is_superseded(agent: str, work: AsyncSpace) -> None:
    """By a new text, which takes over what is not said, or by a memory that is there."""
    old = (await work.remember("the office is in Prague", tags=["office"])).memory
    other = (await work.remember("the office is in Ostrava")).memory
    async with over_http(agent) as mcp:
        new = await call(mcp, "memory_supersede", old=old.id, text="the office is in Brno")
        last = await call(mcp, "memory_supersede", old=new["id"], by=other.id, full=True)
        answer = await call(mcp, "memory_recall", query="office")
    assert new["superseded"] == old.id
    assert (await work.get(new["id"])).tags == ("office",)
    assert last == json_ready(await work.get(other.id)) | {"hits": last["hits"], "last_hit_at": last["last_hit_at"]}
    assert [hit["id"] for hit in answer["hits"]] == [other.id]


async def test_links_are_made_and_followed(agent: str, work: AsyncSpace) -> None:
    """Neighbours come with relation, strength and steps."""
    for id in ("a", "b", "c"):
        await work.remember(f"memory {id}", id=id)
    async with over_http(agent) as mcp:
        made = await call(mcp, "memory_link", source="a", target="b", relation="causes", strength=0.5)
        near = await call(mcp, "memory_neighbors", id="a", depth=1, limit=1)
        full = await call(mcp, "memory_neighbors", id="a", full=True)
    assert made == {"source": "a", "target": "b", "relation": "causes", "strength": 0.5}
    assert len(near["neighbors"]) == 1
    assert full == {"neighbors": json_ready(await work.neighbors("a"))}


async def test_memories_are_listed_page_by_page(agent: str, work: AsyncSpace) -> None:
    """A short page says how to get the next; the last one has no cursor."""
    for id in ("a", "b", "c"):
        await work.remember(f"memory {id} " + "x" * 300, id=id, tags=["t"] if id != "b" else ())
    async with over_http(agent) as mcp:
        first = await mcp.call_tool("memory_list", {"limit": 2})
        rest = await call(mcp, "memory_list", limit=2, after=first.structured_content["cursor"], full=True)
        tagged = await call(mcp, "memory_list", tags=["t"])
        newest = await call(mcp, "memory_list", newest_first=True, limit=2)
    assert [memory["id"] for memory in first.structured_content["memories"]] == ["a", "b"]
    assert first.structured_content["memories"][0]["snippet"].endswith("x…")
    assert "call memory_list again with after=b" in text_of(first)
    assert f"id a; fact, {first.structured_content['memories'][0]['when']}" in text_of(first)
    assert [memory["id"] for memory in newest["memories"]] == ["c", "b"]
    assert rest == {"memories": [json_ready(await work.get("c"))], "cursor": None, "truncated": ""}
    assert [memory["id"] for memory in tagged["memories"]] == ["a", "c"]


async def test_forgetting_says_how_many_there_were(agent: str, work: AsyncSpace) -> None:
    """Ids without a memory are counted out, not an error."""
    await work.remember("memory a", id="a")
    async with over_http(agent) as mcp:
        gone = await mcp.call_tool("memory_forget", {"ids": ["a", "nothing"]})
        stats = await mcp.call_tool("memory_stats")
    assert gone.structured_content == {"forgotten": 1}
    assert text_of(gone) == "Forgot 1 for good. 1 of the ids given had no memory here."
    assert stats.structured_content == json_ready(await work.stats())
    assert text_of(stats).startswith("Space work holds 0: no memory")


async def test_what_was_of_use_is_told(agent: str, work: AsyncSpace) -> None:
    """Each id counts once; ids without a memory are counted out, not an error."""
    await work.remember("memory a", id="a")
    async with over_http(agent) as mcp:
        told = await mcp.call_tool("memory_used", {"ids": ["a", "a", "nothing"], "query": "which one?"})
    assert [(use.question, use.id) for use in await work.uses()] == [("which one?", "a")]
    assert told.structured_content == {"used": 1}
    assert text_of(told) == "Noted that 1 was of use. 1 of the ids given had no memory here."
    assert (await work.get("a")).used == 1


async def test_what_is_wrong_is_said_in_one_sentence(agent: str, work: AsyncSpace) -> None:
    """A tool's error is the library's own sentence with its type, for the model to read."""
    await work.remember("something")
    async with over_http(agent) as mcp:
        for tool, arguments, kind, sentence in WRONG:
            assert await refused(mcp, tool, **arguments) == (kind, sentence)


WRONG: list[tuple[str, dict[str, object], str, str]] = [
    ("memory_recall", {"query": " "}, "InvalidRequest", "the query is empty: give it at least one word"),
    ("memory_recall", {}, "InvalidRequest", "memory_recall needs 'query', which was not given"),
    ("memory_recall", {"query": 5}, "InvalidRequest", "the query must be a text, not int"),
    ("memory_recall", {"query": "x", "limit": 0}, "InvalidRequest", "limit is 0, and must be from 1 to 100"),
    ("memory_recall", {"query": "x", "full": 1}, "InvalidRequest", "full must be true or false, not 1"),
    (
        "memory_recall",
        {"query": "x", "kinds": "fact"},
        "InvalidRequest",
        "kinds must be a list of texts, not 'fact'",
    ),
    ("memory_search", {"query": "x", "weights": []}, "InvalidRequest", "weights must be a JSON object, not list"),
    (
        "memory_search",
        {"query": "x", "weights": {"words": 1}},
        "InvalidRequest",
        "recipe 'novamem' has no lane 'words'; it has: graph, keyword, vector",
    ),
    ("memory_get", {"id": "nothing"}, "NotFound", "space 'work' holds no memory 'nothing'"),
    ("memory_get", {"id": "a", "space": "b"}, "InvalidRequest", "memory_get has no argument 'space'; it has: id"),
    ("memory_stats", {"x": 1}, "InvalidRequest", "memory_stats has no argument 'x'; it has: none"),
    (
        "memory_update",
        {"id": "x", "clear": ["text"]},
        "InvalidRequest",
        "clear cannot empty 'text'; it can empty: thread, occurred_at, expires_at, quality",
    ),
    ("memory_neighbors", {"id": "nothing"}, "NotFound", "space 'work' holds no memory 'nothing'"),
    (
        "memory_remember",
        {"text": "x", "metadata": [1]},
        "InvalidRequest",
        "metadata must be a JSON object, not list",
    ),
    ("memory_forget", {"ids": "abc"}, "InvalidRequest", "ids must be a list of texts, not 'abc'"),
    (
        "memory_link",
        {"source": "a", "target": "b", "strength": 2},
        "InvalidRequest",
        "strength is 2, and must be above 0 and at most 1",
    ),
    (
        "memory_supersede",
        {"old": "nothing", "text": "x"},
        "NotFound",
        "space 'work' holds no memory 'nothing'",
    ),
]


async def test_what_is_no_tool_or_resource_is_an_error_of_the_protocol(agent: str) -> None:
    """An unknown tool or resource names what there is."""
    async with over_http(agent) as mcp:
        assert "there is no tool 'nothing'; there are: memory_recall" in await _protocol_error(mcp, "nothing")
        with pytest.raises(Exception, match="space 'work' holds no memory 'nothing'"):
            await mcp.read_resource("recollect://memory/nothing")
        with pytest.raises(Exception, match="memories are at recollect://memory/ID"):
            await mcp.read_resource("file:///etc/passwd")


async def _protocol_error(mcp: Client, tool: str) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the message is what is looked at
        await mcp.call_tool(tool)
    return str(caught.value)


async def test_a_bug_is_one_sentence_too(
    agent: str, client: AsyncRecollect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What nobody foresaw is logged with where it happened, and answered without."""

    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret of the house")

    monkeypatch.setattr(AsyncSpace, "stats", broken)
    async with over_http(agent) as mcp:
        error = await refused(mcp, "memory_stats")
    assert error == ("ZeroDivisionError", "memory_stats failed unexpectedly; the server's log says where")
    assert "secret of the house" in caplog.text


async def test_noise_is_not_an_answer(agent: str, work: AsyncSpace) -> None:
    """Where nothing is relevant the tool says so and names the nearest miss; `min_confidence` 0 shows everything."""
    await work.remember("Invoice 12345 was paid on 3 May")
    question = {"query": "how do plate tectonics cause earthquakes?"}
    async with over_http(agent) as mcp:
        noise = await mcp.call_tool("memory_recall", question)
        everything = await mcp.call_tool("memory_recall", {**question, "min_confidence": 0})
    assert (noise.structured_content["hits"], noise.structured_content["answerable"]) == ([], False)
    assert noise.structured_content["nearest_miss"]["confidence"] < 0.1
    assert "Nothing relevant is remembered. The nearest miss" in text_of(noise)
    assert len(everything.structured_content["hits"]) == 1
    assert text_of(everything).startswith("Probably nothing relevant is remembered")
