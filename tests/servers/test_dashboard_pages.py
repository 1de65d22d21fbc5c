"""The dashboard's pages as HTML: what they show, what they escape, and how they look when something is wrong."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape

import pytest

from recollect import RECIPES, AsyncRecollect, AsyncSpace
from recollect.servers.dashboard import lanes, memories
from recollect.servers.dashboard.shell import POLICY
from tests.conftest import FlakyEmbedder
from tests.servers.dashboard_reader import Reader, reading

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\" ' & {{ 7*7 }}"
PATHS = ("/", "/?q=door", "/memories", "/memory?id=a", "/health", "/spaces", "/login")


@pytest.fixture
async def reader(client: AsyncRecollect) -> AsyncIterator[Reader]:
    async with reading(client) as reader:
        yield reader


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_inline_and_nothing_from_elsewhere(reader: Reader, work: AsyncSpace, path: str) -> None:
    """Every page has the policy that says so, and keeps to it: no styles, handlers or scripts of its own, no other
    origin; and no cache keeps it.
    """
    await work.remember("The red door", id="a")
    answer = await reader.http.get(path)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert all(f"{name} {source}" in policy for name, source in POLICY.items())
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    for forbidden in (" style=", "<style", "<script>", "javascript:", " onclick", " onload", "http://", "https://"):
        assert forbidden not in answer.text


async def test_html_in_memories_is_text(reader: Reader, work: AsyncSpace) -> None:
    """Wherever a memory shows: as a hit, in the list, opened, as a neighbour, in a title, a tag, a source and an id."""
    fields = {"title": HOSTILE, "tags": [HOSTILE], "source": HOSTILE, "kind": HOSTILE[:60], "namespace": HOSTILE[:60]}
    id = (await work.remember(HOSTILE, metadata={HOSTILE: HOSTILE}, id=HOSTILE, **fields)).memory.id  # type: ignore[arg-type]
    other = (await work.remember("Beside it")).memory.id
    await work.link(id, other, HOSTILE)
    pages = [
        await reader.get("/", q="alert", expect=id),
        await reader.get("/memories"),
        await reader.get("/memory", id=id),
        await reader.get("/memory", id=other),
        await reader.get("/spaces"),
        await reader.get("/", q=HOSTILE, recipe=HOSTILE, status=422),
        await reader.get("/memory", id=HOSTILE + "?", status=404),
    ]
    assert "{{ 7*7 }}" in pages[0]
    for page in pages:
        assert "<script>" not in page
        assert "<img src=x" not in page
        assert "alert" in page


async def test_hits_have_their_reasons(reader: Reader, work: AsyncSpace) -> None:
    """Marked words, a bar with a part for each lane, and rank, raw score, normalised score and contribution as text."""
    await work.remember("The red door")
    html = await reader.get("/", q="door")
    assert "<mark>door</mark>" in html
    assert '<rect class="vector"' in html
    assert '<rect class="keyword"' in html
    words = await reader.read("/", q="door")
    assert "From Rank Raw Normalised Contribution" in words
    assert "1 hit in" in words
    assert re.search(r"confidence 0\.\d\d", words)
    assert "keyword ok" in words


async def test_a_memory_is_said_to_be_of_use(reader: Reader, work: AsyncSpace) -> None:
    """By a button at each hit and on the memory's page, which goes back to where it was pressed."""
    await work.remember("The red door", id="a")
    for path, times in (("/?q=door&space=work", 1), ("/memory?space=work&id=a", 2)):
        html = await reader.get(path)
        assert 'action="/memory/used"' in html
        fields = dict(
            re.findall(r'type="hidden" name="(space|id|query|back)" value="([^"]*)"', html.split("/memory/used")[1])
        )
        sent = await reader.send("/memory/used", {name: unescape(value) for name, value in fields.items()})
        assert sent.headers["location"] == path
        assert (await work.get("a")).used == times
        assert f"of use {times} time" in await reader.read(path)
    assert [use.question for use in await work.uses()] == ["door"]
    await reader.send("/memory/used", {"space": "work", "id": "nothing", "back": "/"}, 404)
    away = await reader.send("/memory/used", {"space": "work", "id": "a", "back": "https://evil.example"})
    assert away.headers["location"] == "/"


async def test_two_recipes_side_by_side(reader: Reader, work: AsyncSpace) -> None:
    """Each with its hits and lanes; a hit says where the other has it."""
    await work.remember("The red door", kind="fact")
    await work.remember("A door of glass", kind="knowledge")
    html = await reader.get("/", q="door", versus="drobek")
    assert html.count('<section class="side"') == 2
    assert re.search("#[12] by balanced", html)
    assert html.count("only here") == 1


async def test_a_recipe_beside_itself_is_shown_once(reader: Reader, work: AsyncSpace) -> None:
    """There is nothing to compare."""
    assert (await reader.get("/", q="door", versus="balanced")).count('<section class="side"') == 1


async def test_why_not(reader: Reader, work: AsyncSpace) -> None:
    """An expected memory: where it was lost, or that it is there."""
    old = (await work.remember("The door is red")).memory.id
    new = (await work.supersede(old, "The door is blue")).id
    assert "stored yes passes the filters lost here" in (lost := await reader.read("/", q="door", expect=old))
    assert f"Superseded : it was replaced by {new}." in lost
    assert "It is there" in await reader.read("/", q="door", expect=new)
    assert "Not stored : space" in await reader.read("/", q="door", expect="nobody")


async def test_a_degraded_answer_says_so(reader: Reader, work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """Above the hits: which lanes did not answer and why."""
    await work.remember("The red door")
    embedder.down = True
    words = await reader.read("/", q="door")
    assert "A degraded answer" in words
    assert "vector failed: the embedding service is down" in words
    assert "1 hit in" in words


async def test_an_answer_that_failed_keeps_the_question(work: AsyncSpace, client: AsyncRecollect) -> None:
    """Where every lane failed, the page says so with 503, lists the lanes, and the form is as it was."""
    await work.remember("The red door")
    await client._store.close()
    async with reading(client, gate=False) as reader:
        html = await reader.get("/", 503, q="door", space="work", recipe="novamem")
    assert "Every lane failed" in html
    assert 'value="door"' in html
    assert html.count('<span class="state warn">') == 3


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"limit": "many"}, "the number of hits is 'many', and must be a whole number"),
        ({"limit": "9" * 5000}, "and must be a whole number of at most 9 digits"),
        ({"limit": "0"}, "limit is 0, and must be from 1 to 100"),
        ({"recipe": "goulash"}, "the recipe 'goulash' does not exist"),
        ({"q": "\N{ZERO WIDTH SPACE}"}, "the query is empty"),
        ({"q": "x" * 9000}, "more than the 8,192 allowed"),
    ],
)
async def test_what_cannot_be_asked(reader: Reader, asked: dict[str, str], said: str) -> None:
    """One sentence in the place of the answer, 422, and the form is as it was sent."""
    html = await reader.get("/", 422, **{"q": "door", **asked})
    assert said in html.replace("&#39;", "'")
    assert 'name="q"' in html


async def test_nothing_found(reader: Reader, work: AsyncSpace) -> None:
    """What to do about it."""
    words = await reader.read("/", q="door")
    assert "Nothing found" in words
    assert "look at what is there" in words


async def test_memories_are_paged_and_filtered(reader: Reader, work: AsyncSpace) -> None:
    """A page links to the next with the filter kept; superseded ones show on request."""
    for at in range(memories.PAGE + 2):
        await work.remember(f"Door number {at}", tags=["door"], source=f"walk/{at}", kind="fact")
    await work.remember("A window", kind="knowledge", namespace="house")
    first = await reader.get("/memories", tag="door")
    assert first.count("Door number") == memories.PAGE
    next_page = first[first.index('rel="next" href="') + 17 :].split('"')[0].replace("&amp;", "&")
    rest = await reader.read(next_page)
    assert rest.count("Door number") == 2
    assert "That is all." in rest
    assert "A window" in await reader.read("/memories", kind="knowledge", namespace="house")
    assert "Door number 3 " in await reader.read("/memories", source="walk/3")
    assert "No memory fits" in await reader.read("/memories", since="2999-01-01")
    assert "since is &#39;soon&#39;" in await reader.get("/memories", 422, since="soon")


async def test_superseded_memories_show_on_request(reader: Reader, work: AsyncSpace) -> None:
    """And are named as such."""
    old = (await work.remember("The door is red")).memory.id
    await work.supersede(old, "The door is blue")
    assert "The door is red" not in await reader.read("/memories")
    assert "The door is red fact" in (shown := await reader.read("/memories", superseded="yes"))
    assert shown.count("superseded") == 3  # in the heading, in the filter, and there


async def test_an_empty_space(reader: Reader) -> None:
    """Every view says what to do about it."""
    assert "Nothing is remembered here yet" in await reader.read("/memories")
    assert "No recalls yet" in await reader.read("/health")
    assert "No spaces yet" in await reader.read("/spaces")


async def test_a_memory_with_its_history(reader: Reader, work: AsyncSpace) -> None:
    """What it replaced and what replaced it, both ways, whichever of them is opened."""
    ids = [(await work.remember("The door is red")).memory.id]
    for colour in ("green", "blue"):
        ids.append((await work.supersede(ids[-1], f"The door is {colour}")).id)
    for at, id in enumerate(ids):
        words = await reader.read("/memory", id=id)
        part = words[words.index("History") : words.index("Fields")]
        order = [
            "This memory" if one == at else f"The door is {colour}"
            for one, colour in enumerate(("red", "green", "blue"))
        ]
        assert sorted(order, key=part.index) == order
        assert ("holds now" in part) == (at < 2)


async def test_a_history_that_was_forgotten(reader: Reader, work: AsyncSpace) -> None:
    """What replaced a memory may be gone."""
    old = (await work.remember("The door is red")).memory.id
    await work.forget((await work.supersede(old, "The door is blue")).id)
    assert "What replaced it was forgotten." in await reader.read("/memory", id=old)


async def test_neighbours_can_be_walked(reader: Reader, work: AsyncSpace) -> None:
    """Each circle of the drawing, and each line of the list beside it, leads to a memory."""
    for id in ("cause", "outage", "repair"):
        await work.remember(f"The {id} of May", id=id, vector=None)
    await work.link("cause", "outage", "caused", 0.9)
    await work.link("cause", "repair", "fixed by")
    html = await reader.get("/memory", id="outage")
    assert html.count('href="/memory?space=work&amp;id=cause"') == 2
    assert "caused 0.90" in html


async def test_what_is_not_there(reader: Reader, work: AsyncSpace) -> None:
    """A page that says so, with the way back."""
    assert "holds no memory 'nobody'" in await reader.read("/memory", 404, id="nobody")
    assert "no memory was named" in await reader.read("/memory", 422)
    assert "space holds a control character" in (await reader.read("/memories", 422, space="a\x01")).replace(
        "'a\\x01' ", ""
    )


async def test_path_tricks_in_names_stay_names(reader: Reader, client: AsyncRecollect) -> None:
    """A space and an id can be called anything: links to them are quoted, and lead there."""
    name = "../..//?x=1&y=#é%2f"
    await client.space(name).remember("The red door", id="../../etc/passwd")
    listed = await reader.get("/memories", space=name)
    assert "/memory?space=..%2F..%2F%2F%3Fx%3D1%26y%3D%23%C3%A9%252f&amp;id=..%2F..%2Fetc%2Fpasswd" in listed
    assert "The red door" in await reader.read("/memory", space=name, id="../../etc/passwd")


async def test_a_store_that_is_gone(work: AsyncSpace, client: AsyncRecollect) -> None:
    """Health still shows, and says which engine is down; other pages are one sentence."""
    await work.remember("The red door")
    async with reading(client) as reader:
        assert "store ok" in await reader.read("/health")
    await client.close()
    async with reading(client, gate=False) as reader:
        words = await reader.read("/health", space="work")
        assert "store down" in words
        assert "Usage cannot be read" in words
        assert "open the store first" in await reader.read("/memories", 500, space="work")


async def test_health_has_the_latency_of_each_lane(reader: Reader, work: AsyncSpace, embedder: FlakyEmbedder) -> None:
    """By the names that a recipe gives to them, also where one leg has several; failed ones are counted, those without
    a weight are not there.
    """
    await work.remember("The red door", kind="episodic")
    await work.recall("door", recipe="sci")
    embedder.down = True
    await work.recall("wall", weights={"graph": 0})
    part = lanes_part(await reader.read("/health"))
    assert re.findall(r"(\w+) balanced [\d.]+ 1 0 (\d) 0", part) == [("vector", "1"), ("keyword", "0")]
    assert re.findall(r"(\S+) sci [\d.]+ 1 0 0 0", part) == [lane.name for lane in RECIPES["sci"].lanes]


async def test_lanes_are_shown_for_their_own_space(
    reader: Reader, client: AsyncRecollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of another one's; of very many spaces those that were asked last are known."""
    monkeypatch.setattr(lanes, "SPACES", 2)
    for name in ("one", "two", "three"):
        await client.space(name).remember("The red door")
    for name, recipe in (("one", "drobek"), ("two", "polyant"), ("one", "drobek"), ("three", "pgmemory")):
        await client.space(name).recall("door", recipe=recipe)
    shown = {name: lanes_part(await reader.read("/health", space=name)) for name in ("one", "two", "three")}
    assert "drobek" in shown["one"]
    assert "pgmemory" not in shown["one"]
    assert "There was none yet." in shown["two"]
    assert "pgmemory" in shown["three"]


def lanes_part(words: str) -> str:
    """What Health says about lanes."""
    return words[words.index("Latency per lane") : words.index("The same as numbers")]


async def test_static_files_are_ours_alone(reader: Reader) -> None:
    """Nothing outside of the folder can be reached, and nothing in it reaches out."""
    for name in ("dashboard.css", "dashboard.js", "mark.svg"):
        text = (await reader.http.get(f"/static/{name}")).raise_for_status().text.replace("http://www.w3.org/", "")
        assert "http" not in text
    for path in ("/static/../pages.py", "/static/%2e%2e/pages.py", "/static/", "/static/nothing.css"):
        assert (await reader.http.get(path)).status_code == 404
