"""What the tools answer: short documents that cost a model few tokens, or whole records, each also as readable text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recollect.servers.documents import json_ready
from recollect.servers.why import DOUBT, fate, is_noise, phrase
from recollect.types import Hit, Memory, Neighbor, Page, Recall, Remembered, SpaceStats

SNIPPET = 240
"""Characters of a text that a short answer shows, as many as a hit's snippet has."""
DIGITS = 4


class Answer(NamedTuple):
    """One answer, for programs and for readers."""

    document: dict[str, Any]
    text: str


def whole(value: object, name: str | None = None) -> Answer:
    """Every field of a record, the same document as by every other door; a list is named, as a document must be."""
    document = json_ready(value) if name is None else {name: json_ready(value)}
    return Answer(document, json.dumps(document, ensure_ascii=False, indent=1))


def recalled(recall: Recall, space: str) -> Answer:
    """The hits of a recall in a space, best first, and whether something was missing."""
    missing = [f"{report.lane}: {report.reason}" for report in recall.lanes if report.incomplete]
    hits = [_hit(hit, space) for hit in recall]
    document: dict[str, Any] = {"hits": hits, "answerable": recall.answerable, "degraded": recall.degraded}
    lines = [_hit_lines(place, hit) for place, hit in enumerate(hits, start=1)] or [_nothing(recall)]
    if recall.nearest_miss:
        document["nearest_miss"] = _hit(recall.nearest_miss, space)
    if is_noise(recall):
        lines.insert(0, DOUBT.capitalize())
    if recall.degraded:
        document["degraded_because"] = missing
        lines.insert(0, f"Degraded: a part of the answer may be missing ({'; '.join(missing)}).")
    if recall.truncated:
        document["truncated"] = recall.truncated
        lines.append(f"Truncated: {recall.truncated}.")
    if expected := recall.expected:
        document["expected"] = {"id": expected.id, "stage": expected.stage, "reason": expected.reason}
        lines.append(f"Expected {expected.id}: {fate(expected)}.")
    return Answer(document, "\n".join(lines))


def _nothing(recall: Recall) -> str:
    """That nothing was found, or nothing sure enough; then what came nearest."""
    miss = recall.nearest_miss
    if miss is None:
        return "No memory matches."
    return (
        f"Nothing relevant is remembered. The nearest miss, with a confidence of {miss.confidence:.2f}: "
        f"{_line(miss.memory)} (id {miss.memory.id})"
    )


def remembered(result: Remembered) -> Answer:
    memory, created = result
    document = {"id": memory.id, "created": created, "embedding": memory.embedding}
    text = f"Remembered as {memory.id}." if created else f"This was remembered before, as {memory.id}: nothing new."
    if memory.embedding != "ready":
        text += f" Its vector is {memory.embedding}: until it is ready, only its words are found."
    return Answer(document, text)


def changed(memory: Memory) -> Answer:
    return Answer(_short(memory), f"Updated {memory.id}: {_line(memory)}")


def superseded(old: str, new: Memory) -> Answer:
    document = {"id": new.id, "superseded": old}
    return Answer(document, f"{old} is superseded by {new.id}, which is recalled from now on: {_line(new)}")


def forgotten(count: int, ids: Sequence[str]) -> Answer:
    return Answer({"forgotten": count}, f"Forgot {count} for good.{_missing(count, ids)}")


def used(count: int, ids: Sequence[str]) -> Answer:
    noted = f"Noted that {count} {'was' if count == 1 else 'were'} of use."
    return Answer({"used": count}, f"{noted}{_missing(count, ids)}")


def _missing(count: int, ids: Sequence[str]) -> str:
    missing = len(set(ids)) - count
    return f" {missing} of the ids given had no memory here." if missing else ""


def linked(source: str, target: str, relation: str, strength: float) -> Answer:
    document = {"source": source, "target": target, "relation": relation, "strength": strength}
    return Answer(document, f"Linked {source} -> {target} ({relation}, {strength:g}).")


def near(neighbors: Sequence[Neighbor]) -> Answer:
    """What is linked to a memory, strongest first."""
    found = [
        {**_short(n.memory), "strength": round(n.strength, DIGITS), "steps": n.steps, "relation": n.relation}
        for n in neighbors
    ]
    lines = [
        f"{place}. {_line(n.memory)}\n   id {n.memory.id}; {n.relation}, strength {n.strength:.{DIGITS}g}, "
        f"{n.steps} {'step' if n.steps == 1 else 'steps'} away"
        for place, n in enumerate(neighbors, start=1)
    ]
    return Answer({"neighbors": found}, "\n".join(lines) or "Nothing is linked to it.")


def listed(page: Page) -> Answer:
    """Some memories in the order they were stored, and where to go on."""
    lines = [
        f"{place}. {_line(memory)}\n   id {memory.id}; {memory.kind}, {_when(memory)}"
        for place, memory in enumerate(page.memories, start=1)
    ]
    if page.cursor is not None:
        lines.append(f"There are more: call memory_list again with after={page.cursor}.")
    document: dict[str, Any] = {"memories": [_short(memory) for memory in page.memories], "cursor": page.cursor}
    if page.truncated:
        document["truncated"] = page.truncated
    return Answer(document, "\n".join(lines) or "No memory matches.")


def counted(stats: SpaceStats) -> Answer:
    kinds = ", ".join(f"{count} {kind}" for kind, count in stats.kinds.items())
    namespaces = ", ".join(f"{name} ({count})" for name, count in stats.namespaces.items())
    text = (
        f"Space {stats.space} holds {stats.memories}: {kinds or 'no memory'}; namespaces: {namespaces or 'none'}; "
        f"{stats.superseded} superseded, {stats.pending} without a vector yet, {stats.edges} links."
    )
    return Answer(json_ready(stats), text)


def _short(memory: Memory) -> dict[str, Any]:
    """A memory as a few fields; those that say nothing are left out."""
    optional = {"title": memory.title, "tags": list(memory.tags), "superseded_by": memory.superseded_by}
    return {
        "id": memory.id,
        "snippet": _cut(memory.text),
        "kind": memory.kind,
        "namespace": memory.namespace,
        "when": _when(memory),
        **{name: value for name, value in optional.items() if value},
    }


def _hit(hit: Hit, space: str) -> dict[str, Any]:
    sides = {"before": hit.before, "after": hit.after}
    return {
        **_short(hit.memory),
        **({} if hit.memory.space == space else {"shared_by": hit.memory.space}),
        "snippet": _one_line(hit.snippet.text),
        "score": round(hit.score, DIGITS),
        "confidence": round(hit.confidence, 2),
        "why": phrase(hit.why),
        **{side: [_cut(memory.text) for memory in memories] for side, memories in sides.items() if memories},
    }


def _hit_lines(place: int, hit: Mapping[str, Any]) -> str:
    title = f"{_one_line(hit['title'])}: " if "title" in hit else ""
    tags = f", tags {', '.join(hit['tags'])}" if "tags" in hit else ""
    stale = f", superseded by {hit['superseded_by']}" if "superseded_by" in hit else ""
    shared = f", shared by space {hit['shared_by']}" if "shared_by" in hit else ""
    lines = [
        f"{place}. {title}{hit['snippet']}",
        f"   id {hit['id']}; confidence {hit['confidence']}, score {hit['score']} ({hit['why']}); "
        f"{hit['kind']}, {hit['when']}{tags}{stale}{shared}",
    ]
    lines += [f"   before: {text}" for text in hit.get("before", ())]
    lines += [f"   after: {text}" for text in hit.get("after", ())]
    return "\n".join(lines)


def _when(memory: Memory) -> str:
    return (memory.occurred_at or memory.created_at).isoformat(timespec="seconds")


def _line(memory: Memory) -> str:
    title = f"{_one_line(memory.title)}: " if memory.title else ""
    return f"{title}{_cut(memory.text)}"


def _cut(text: str) -> str:
    return _one_line(text) if len(text) <= SNIPPET else _one_line(text[:SNIPPET]) + "…"


def _one_line(text: str) -> str:
    return " ".join(text.split())
