"""The tools, in one table: what each is for, what it takes, which scope it needs, and the client's call behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recollect import options
from recollect.errors import InvalidRequest
from recollect.ranking.confidence import NOISE
from recollect.servers.mcp import answers
from recollect.servers.mcp.answers import Answer, whole
from recollect.servers.mcp.arguments import (
    CHANGES,
    CLEARABLE,
    FULL,
    ID,
    IDS,
    KNOWLEDGE,
    RECALL,
    WEIGHTS,
    Schemas,
    parse,
    schemas,
)
from recollect.space import AsyncSpace
from recollect.types import Scope


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: `about` is for the model that decides whether to call it, `call` takes its arguments by name."""

    name: str
    title: str
    scope: Scope
    about: str
    call: Callable[..., Awaitable[Answer]]
    takes: Schemas
    needs: tuple[str, ...] = ()
    destructive: bool = False
    """Whether it can change or remove what is there already, rather than only add to it."""
    idempotent: bool = False
    """Whether calling it again with the same arguments changes nothing more."""

    def finds_nothing(self, document: Mapping[str, Any]) -> bool:
        """Whether an answer of this tool shows no memory: no hits, an empty page, a count of 0."""
        return self.scope == "read" and not document.get("hits", document.get("memories", True))

    async def answer(self, space: AsyncSpace, arguments: Mapping[str, Any]) -> Answer:
        return await self.call(space, **parse(self.name, self.takes, self.needs, arguments))


async def remember(space: AsyncSpace, text: str, full: bool = False, **fields: Any) -> Answer:
    result = await space.remember(text, **fields)
    return whole(result) if full else answers.remembered(result)


async def recall(space: AsyncSpace, query: str, full: bool = False, **how: Any) -> Answer:
    result = await space.recall(query, **how)
    return whole(result) if full else answers.recalled(result, space.name)


async def recall_carefully(space: AsyncSpace, query: str, full: bool = False, **how: Any) -> Answer:
    """By `careful`, and without noise: a model takes what it is given for an answer."""
    return await recall(space, query, full, **{"recipe": "careful", "min_confidence": NOISE, **how})


async def search(space: AsyncSpace, query: str, full: bool = False, **how: Any) -> Answer:
    return await recall(space, query, full, recipe="novamem", **how)


async def search_knowledge(space: AsyncSpace, query: str, full: bool = False, **how: Any) -> Answer:
    return await recall(space, query, full, recipe="drobek", **how)


async def get(space: AsyncSpace, id: str) -> Answer:
    return whole(await space.get(id))


async def update(space: AsyncSpace, id: str, full: bool = False, clear: tuple[str, ...] = (), **changes: Any) -> Answer:
    if unknown := [name for name in clear if name not in CLEARABLE]:
        raise InvalidRequest(f"clear cannot empty {unknown[0]!r:.80}; it can empty: {', '.join(CLEARABLE)}")
    memory = await space.update(id, **{**dict.fromkeys(clear), **changes})
    return whole(memory) if full else answers.changed(memory)


async def forget(space: AsyncSpace, ids: list[str]) -> Answer:
    return answers.forgotten(await space.forget(*ids), ids)


async def used(space: AsyncSpace, ids: list[str], query: str | None = None) -> Answer:
    return answers.used(await space.used(*ids, query=query), ids)


async def supersede(
    space: AsyncSpace, old: str, text: str | None = None, by: str | None = None, full: bool = False, **fields: Any
) -> Answer:
    memory = await space.supersede(old, text, by=by, **fields)
    return whole(memory) if full else answers.superseded(old, memory)


async def link(space: AsyncSpace, source: str, target: str, relation: str = "related", strength: float = 1.0) -> Answer:
    await space.link(source, target, relation, strength)
    return answers.linked(source, target, relation, strength)


async def neighbors(space: AsyncSpace, id: str, full: bool = False, **how: Any) -> Answer:
    found = await space.neighbors(id, **how)
    return whole(found, "neighbors") if full else answers.near(found)


async def list_(space: AsyncSpace, full: bool = False, **how: Any) -> Answer:
    page = await space.list(**how)
    return whole(page) if full else answers.listed(page)


async def stats(space: AsyncSpace) -> Answer:
    return answers.counted(await space.stats())


HIDDEN = ("include_superseded", "include_expired")

_READ = (
    Tool(
        "memory_recall",
        "Recall memories",
        "read",
        "Find what is remembered about something: by meaning, exact words and links at once. Use it before you answer "
        "anything that may depend on earlier conversations, decisions, preferences or facts, and before you remember "
        "something, to see what is known already. Returns hits, best first, each with id, snippet, confidence (the "
        "probability that it answers), score and why it was found; `degraded` is true when a part of the answer may "
        "be missing. Read a whole memory with memory_get; if nothing fits, ask again in other words.",
        recall_carefully,
        {**RECALL, **FULL},
        ("query",),
    ),
    Tool(
        "memory_search",
        "Search with weights",
        "read",
        "Search like memory_recall, but say yourself how much exact words (keyword), meaning (vector) and links "
        "(graph) count. Use it for an exact id or error code, for pure meaning, or to roam from one idea to related "
        "ones; otherwise use memory_recall. Returns hits with scores from 0 to 1. Read a whole memory with memory_get.",
        search,
        {**schemas(options.Question, "query", "limit", "min_score", "namespaces", "kinds", "tags"), **WEIGHTS, **FULL},
        ("query",),
    ),
    Tool(
        "knowledge_search",
        "Search knowledge",
        "read",
        "Search only what was stored with kind `knowledge`: articles, how-tos, lessons learned. Words in a title count "
        "more. Use it for how something is done or works here; use memory_recall for what happened or was said. "
        "Returns hits, best first; two ways of searching that agree on the first place give 0.0328, so a min_score "
        "lies well below that. Read a whole article with memory_get.",
        search_knowledge,
        {**schemas(options.Question, "query", "min_score", "tags", "namespaces", *HIDDEN), **KNOWLEDGE, **FULL},
        ("query",),
    ),
    Tool(
        "memory_get",
        "Read a memory",
        "read",
        "Read one memory whole, with all of its fields, by the id that another tool returned. If superseded_by is set, "
        "it no longer holds: read that one instead.",
        get,
        ID,
        ("id",),
    ),
    Tool(
        "memory_neighbors",
        "Follow links",
        "read",
        "Find what is linked to a memory, strongest first: links that were made with memory_link, and links to similar "
        "memories, which come by themselves. Use it after memory_recall to see what surrounds a hit. Returns memories "
        "with the relation, the strength from 0 to 1, and how many steps away each is.",
        neighbors,
        {**schemas(options.Walk), **ID, **FULL},
        ("id",),
    ),
    Tool(
        "memory_list",
        "Browse memories",
        "read",
        "List memories in the order they were stored, oldest or newest first, a page at a time. Use it to browse or to "
        "check everything with a tag, kind or time; to find something, use memory_recall. Returns short memories and a "
        "cursor: call again with after=cursor until it is null.",
        list_,
        {**schemas(options.PageOptions), **FULL},
    ),
    Tool(
        "memory_stats",
        "Count memories",
        "read",
        "Say what the memory holds: how many memories of which kinds, in which namespaces, how many were superseded "
        "and how many links there are. Use it to learn which kinds and namespaces there are to filter by.",
        stats,
        {},
    ),
)

_WRITE = (
    Tool(
        "memory_remember",
        "Remember something",
        "write",
        "Store something worth knowing later: a decision and its reason, a preference, a fact about a person or "
        "project, a lesson learned, or what the user asks you to remember. Not for secrets, and not for what is plain "
        "from the files at hand. First see with memory_recall whether it is known: if it has changed, use "
        "memory_supersede. An exact copy is not stored twice. Returns the id, and whether it is new.",
        remember,
        {**schemas(options.NewMemory), **FULL},
        ("text",),
        idempotent=True,
    ),
    Tool(
        "memory_supersede",
        "Replace a memory",
        "write",
        "Say that a memory no longer holds, and what holds instead: a new text, or `by` another memory that is stored "
        "already. The old one is kept as history and no longer recalled. Use it when a fact has changed; use "
        "memory_update to correct a slip. A new text takes over namespace, kind and tags. Returns the new memory's id.",
        supersede,
        {**schemas(options.Replacement), **FULL},
        ("old",),
    ),
    Tool(
        "memory_update",
        "Correct a memory",
        "write",
        "Change fields of one memory in place: correct its text, title, tags, kind, times. What is left out stays as "
        "it is; tags and metadata are replaced as a whole. If the fact itself has changed, use memory_supersede, which "
        "keeps the history. Returns the memory as it is now.",
        update,
        {**ID, **CHANGES, **FULL},
        ("id",),
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "memory_used",
        "Say what was of use",
        "write",
        "Say which recalled memories helped: those that your answer rests on. Use it after you have answered. What is "
        "of use is kept in good standing; what is only ever returned fades. Returns how many of them there are.",
        used,
        {**schemas(options.Uses), **IDS},
        ("ids",),
    ),
    Tool(
        "memory_link",
        "Link two memories",
        "write",
        "Say that two memories belong together, so that finding one leads to the other: a cause and its effect, a "
        "question and its answer. Linking them again by the same relation changes the strength. See links with "
        "memory_neighbors.",
        link,
        schemas(options.Link),
        ("source", "target"),
        idempotent=True,
    ),
    Tool(
        "memory_forget",
        "Forget memories",
        "write",
        "Delete memories for good, with their links: this cannot be undone. Use it when the user asks for it, or for "
        "what should never have been stored; for what has changed use memory_supersede. Returns how many there were.",
        forget,
        IDS,
        ("ids",),
        destructive=True,
        idempotent=True,
    ),
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (*_READ, *_WRITE)}
"""Every tool by its name, in the order in which they are offered."""
