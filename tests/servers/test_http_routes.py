"""Every route over a real connection: what it takes, what it answers, and that this is what the library says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from recollect import Recollect
from recollect.options import Changes, ListOptions, MemoryFields, RecallOptions
from recollect.recipes import RECIPES
from recollect.servers.http import bodies
from tests.servers.http_server import Served, problem, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("routes")) as served:
        yield served


@pytest.fixture
def here(server: Served) -> httpx.Client:
    """A client whose paths begin in a space of the test's own."""
    client = server.client()
    client.base_url = httpx.URL(f"{server.url}/v1/spaces/{uuid4()}")
    return client


def remember(here: httpx.Client, text: str, **fields: Any) -> str:
    response = here.post("/memories", json={"text": text, **fields})
    assert response.status_code == 201, response.text
    return str(response.json()["memory"]["id"])


def test_a_memory_lives(here: httpx.Client) -> None:
    """Remembered, read, changed, read again, forgotten; then it is not there."""
    id = remember(here, "Invoice 12345 was paid on 3 May", tags=["billing"], metadata={"by": {"name": "Ada"}})
    assert here.get(f"/memories/{id}").json()["tags"] == ["billing"]
    changed = here.patch(f"/memories/{id}", json={"title": "Paid", "tags": []}).json()
    assert (changed["title"], changed["tags"], changed["metadata"]) == ("Paid", [], {"by": {"name": "Ada"}})
    assert here.delete(f"/memories/{id}").json() == {"forgotten": 1}
    for response in (here.get(f"/memories/{id}"), here.delete(f"/memories/{id}")):
        assert "holds no memory" in problem(response, 404)["detail"]


def test_an_exact_copy_is_answered_with_the_first(here: httpx.Client) -> None:
    """201 for what is new, 200 for what was there."""
    id = remember(here, "The deploy key is in the vault")
    again = here.post("/memories", json={"text": "The deploy key is in the vault"})
    assert again.status_code == 200
    assert (again.json()["created"], again.json()["memory"]["id"]) == (False, id)


def test_many_memories_in_one_request(here: httpx.Client) -> None:
    """A list is remembered; copies among it are counted."""
    texts = [f"Shelf {n % 70} holds box {n % 70}" for n in range(80)]
    assert here.post("/memories", json=[{"text": text} for text in texts]).json() == {"created": 70, "copies": 10}
    broken = here.post("/memories", json=[{"text": "fine"}, {"text": ""}])
    assert problem(broken, 422)["detail"] == "memory 2 of the batch: text is empty: give it at least one word"


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_list_goes_on_where_the_page_before_ended(here: httpx.Client, newest_first: bool) -> None:
    """Every memory comes once, in id order or the other way round, page by page."""
    ids = [remember(here, f"Note {n}") for n in range(5)]
    found, after = [], None
    while True:
        order = {"newest_first": newest_first, **({"after": after} if after else {})}
        page = here.get("/memories", params={"limit": 2, **order}).json()
        found += [memory["id"] for memory in page["memories"]]
        if (after := page["cursor"]) is None:
            break
    assert found == (ids[::-1] if newest_first else ids)


@pytest.mark.parametrize(
    "where",
    [
        {"kinds": ["message"]},
        {"namespaces": ["a", "b"]},
        {"tags": ["x", "y"]},
        {"source_prefix": "https://one"},
        {"thread": "t1"},
        {"since": "2026-05-02T00:00:00Z", "until": "2026-05-03T00:00:00+00:00"},
        {"min_quality": 0.5},
        {"include_superseded": True, "include_expired": False},
    ],
    ids=lambda where: "+".join(where),
)
def test_a_list_and_a_recall_filter_as_the_library_does(server: Served, where: dict[str, Any]) -> None:
    """Each filter reaches the library, over the query string and in a body."""
    space = f"filters-{'-'.join(where)}"
    with Recollect(server.store, embedder="hashing") as r:
        work = r.space(space)
        work.remember("alpha one", kind="message", namespace="a", tags=["x", "y"], source="https://one/1", thread="t1")
        work.remember("alpha two", namespace="b", tags=["x"], occurred_at="2026-05-02T12:00:00Z")
        poor = work.remember("alpha three", source="file:three").memory.id
        work.update(poor, quality=0.1)
        work.supersede(work.remember("alpha four").memory.id, "alpha five")
        listed = [memory.id for memory in work.list(**where).memories]
        recalled = [hit.memory.id for hit in work.recall("alpha", **where)]
    client = server.client()
    page = client.get(f"/v1/spaces/{space}/memories", params=where).json()
    assert [memory["id"] for memory in page["memories"]] == listed
    asked = client.post(f"/v1/spaces/{space}/recall", json={"query": "alpha", **where}).json()
    assert [hit["memory"]["id"] for hit in asked["hits"]] == recalled
    assert len(listed) not in (0, 4)  # 4 are seen without a filter


def test_uses_are_told(here: httpx.Client) -> None:
    """How many of the ids there are; the memory says how often, and when last."""
    id = remember(here, "Invoice 12345 was paid on 3 May")
    assert here.post("/used", json={"ids": [id, "nothing"], "query": "who paid?"}).json() == {"used": 1}
    memory = here.get(f"/memories/{id}").json()
    assert (memory["used"], memory["last_used_at"] is None) == (1, False)
    problem(here.post("/used", json={"ids": []}), 422)


def test_a_recall_says_why(here: httpx.Client) -> None:
    """The answer is the library's, with reasons, lanes, snippet, and where an expected memory went."""
    id = remember(here, "Invoice 12345 was paid on 3 May", thread="bills")
    remember(here, "It had been open for weeks", thread="bills")
    recall = here.post("/recall", json={"query": "invoice 12345", "limit": 1, "window": 1, "expect": id}).json()
    (hit,) = recall["hits"]
    assert hit["memory"]["id"] == id
    assert {part["lane"] for part in hit["why"]} >= {"vector", "keyword"}
    assert [memory["text"] for memory in hit["after"]] == ["It had been open for weeks"]
    assert hit["snippet"]["marks"][0] == [0, 7]
    assert recall["expected"]["stage"] == "found"
    assert {report["lane"]: report["status"] for report in recall["lanes"]} == dict.fromkeys(
        ("vector", "keyword", "graph"), "ok"
    )
    assert recall["degraded"] is False


def test_a_recipe_can_be_changed_for_one_recall(here: httpx.Client) -> None:
    """Recipe, weights, lanes, fusion, diversity, fanout and vector are the library's."""
    remember(here, "Invoice 12345 was paid on 3 May")
    asked = {
        "query": "invoice",
        "recipe": "novamem",
        "weights": {"vector": 0, "graph": 0},
        "lanes": {"keyword": {"deadline": 5.0}},
        "fusion": {"method": "rrf", "k": 10},
        "diversity": {"method": "mmr", "balance": 0.5},
        "fanout": {"times": 2, "at_least": 5},
        "renormalise": True,
        "min_score": 0.0,
        "quality_weight": 0.0,
        "ef_search": 100,
        "vector": [1.0] * 256,
        "shared": [],
    }
    recall = here.post("/recall", json=asked).json()
    assert recall["recipe"] == "novamem"
    (hit,) = recall["hits"]
    assert [part["lane"] for part in hit["why"]] == ["keyword"]
    assert hit["score"] == pytest.approx(0.3 / 11)


def test_what_was_superseded_is_no_longer_recalled(here: httpx.Client) -> None:
    """By a new text, and by another memory."""
    old = remember(here, "The office is in Oslo", tags=["office"])
    new = here.post("/supersede", json={"old": old, "text": "The office is in Bergen"}).json()
    assert (new["tags"], here.get(f"/memories/{old}").json()["superseded_by"]) == (["office"], new["id"])
    hits = here.post("/recall", json={"query": "where is the office?"}).json()["hits"]
    assert [hit["memory"]["id"] for hit in hits] == [new["id"]]
    other = remember(here, "The office has moved to Tromsø")
    assert here.post("/supersede", json={"old": new["id"], "by": other}).json()["id"] == other
    problem(here.post("/supersede", json={"old": other}), 422)


def test_the_versions_of_a_memory(here: httpx.Client) -> None:
    """Whichever is asked for: oldest first, each as `get` has it; a name with a slash is one name."""
    ids = [remember(here, "The office is in Oslo", id="office/1")]
    ids.append(here.post("/supersede", json={"old": ids[0], "text": "The office is in Bergen"}).json()["id"])
    for id in ids:
        versions = here.get(f"/memories/{quoted(id)}/history").json()
        assert versions == [here.get(f"/memories/{quoted(one)}").json() for one in ids]
    assert "holds no memory 'nobody'" in problem(here.get("/memories/nobody/history"), 404)["detail"]


def test_links_and_neighbours(here: httpx.Client) -> None:
    """Linked, walked, unlinked."""
    one, two = remember(here, "Rain"), remember(here, "Umbrella stand")
    made = {"source": one, "target": two, "relation": "calls for", "strength": 0.5}
    assert here.post("/links", json=made).json() == made
    near = here.get("/neighbors", params={"id": one, "depth": 1}).json()
    assert (near[0]["memory"]["id"], near[0]["relation"], near[0]["steps"]) == (two, "calls for", 1)
    gone = here.delete("/links", params={"source": one, "target": two, "relation": "calls for"})
    assert gone.json() == {"removed": 1}


def test_stats_usage_and_score(here: httpx.Client) -> None:
    """What the space holds, how it was asked, and what that makes its memories worth."""
    remember(here, "Invoice 12345")
    here.post("/recall", json={"query": "invoice"})
    assert here.get("/stats").json()["memories"] == 1
    usage = here.get("/usage", params={"since": "2h"}).json()
    assert (usage["total"]["recalls"], usage["total"]["legs"]["keyword"]["hits"]) == (1, 1)
    assert here.post("/score").json() == {"memories": 1, "changed": 1}


def test_grants(server: Served) -> None:
    """A namespace is offered, accepted, seen, and shared no longer."""
    client = server.client()
    client.post("/v1/spaces/owner/memories", json={"text": "The handbook says hello", "namespace": "handbook"})
    made = client.post("/v1/spaces/owner/grants", json={"namespace": "handbook", "to": "reader"}).json()
    assert made == {"space": "owner", "namespace": "handbook", "to": "reader", "access": "read", "accepted": False}
    assert client.get("/v1/spaces/reader/grants").json() == [made]
    received = {"owner": "owner", "namespace": "handbook"}
    assert client.post("/v1/spaces/reader/recall", json={"query": "handbook"}).json()["hits"] == []
    assert client.post("/v1/spaces/owner/grants/received", json=received).json() == {"accepted": False}
    assert client.post("/v1/spaces/reader/grants/received", json=received).json() == {"accepted": True}
    assert client.get("/v1/spaces/reader/grants").json() == [{**made, "accepted": True}]
    asked = {"query": "handbook", "shared": [["owner", "handbook"]]}
    assert len(client.post("/v1/spaces/reader/recall", json=asked).json()["hits"]) == 1
    assert client.delete("/v1/spaces/reader/grants/received", params=received).json() == {"revoked": True}
    assert client.get("/v1/spaces/reader/grants").json() == []
    client.post("/v1/spaces/owner/grants", json={"namespace": "handbook", "to": "reader"})
    taken = client.delete("/v1/spaces/owner/grants", params={"namespace": "handbook", "to": "reader"})
    assert taken.json() == {"revoked": True}
    assert client.get("/v1/spaces/reader/grants").json() == []


def test_recipes_spaces_and_sync(server: Served) -> None:
    """What concerns no space in particular."""
    client = server.client()
    client.post("/v1/spaces/seen/memories", json={"text": "here"})
    assert [recipe["name"] for recipe in client.get("/v1/recipes").json()] == list(RECIPES)
    assert "seen" in client.get("/v1/spaces").json()
    assert client.post("/v1/sync").json() == {}


@pytest.mark.parametrize(
    "name", ["a/b", "..", "../../etc/passwd", "what?", "100%", "a b", "ü", "#", "%2F", "\u202e", ";"]
)
def test_names_may_hold_any_character(server: Served, name: str) -> None:
    """A space or an id with a slash, dots or signs of a URL is that name, and leads nowhere else."""
    client = server.client()
    path = "/v1/spaces/" + quoted(name) + "/memories"
    made = client.post(path, json={"text": "here", "id": name}).json()["memory"]
    assert (made["space"], made["id"]) == (name, name)
    assert client.get(f"{path}/{quoted(name)}").json()["id"] == name
    assert name in client.get("/v1/spaces").json()


def quoted(name: str) -> str:
    """Every byte escaped, dots too, so that no client makes `..` into another path."""
    return "".join(f"%{byte:02X}" for byte in name.encode())


def test_bodies_name_every_keyword_of_the_library() -> None:
    """A new keyword of the library cannot be forgotten here."""
    memory, recall = set(MemoryFields.__annotations__), set(RecallOptions.__annotations__)
    assert set(bodies.NewMemory.model_fields) == memory | {"text"}
    assert set(bodies.Supersession.model_fields) == memory | {"text", "old", "by"}
    assert set(bodies.Changes.model_fields) == set(Changes.__annotations__)
    assert set(bodies.Question.model_fields) == recall | {"query"}
    assert set(bodies.Listing.model_fields) == set(ListOptions.__annotations__) | {"limit", "after"}


def test_the_library_finds_what_http_stored(server: Served, tmp_path: Path) -> None:
    """One store behind all doors."""
    server.client().post("/v1/spaces/both/memories", json={"text": "Written over HTTP"})
    with Recollect(server.store, embedder="hashing") as r:
        assert [hit.memory.text for hit in r.space("both").recall("written")] == ["Written over HTTP"]
