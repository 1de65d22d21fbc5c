"""What the tools take: every argument described once, for a model that has never seen it, and how they are read.

A wrong value is refused by the library, in the library's words; here only what it would not see is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from recollect.errors import InvalidRequest
from recollect.limits import LISTED, TIME_FORMS
from recollect.recipes import RECIPES

Schema: TypeAlias = dict[str, Any]
Schemas: TypeAlias = dict[str, Schema]


def _text(about: str, **more: Any) -> Schema:
    return {"type": "string", "description": about, **more}


def _texts(about: str, **items: Any) -> Schema:
    return {"type": "array", "items": {"type": "string", **items}, "maxItems": LISTED, "description": about}


def _yes(about: str) -> Schema:
    return {"type": "boolean", "default": False, "description": about}


def _whole(about: str, least: int, most: int | None = None, **more: Any) -> Schema:
    bounds = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return {"type": "integer", **bounds, "description": about, **more}


def _share(about: str, **more: Any) -> Schema:
    return {"type": "number", "minimum": 0, "description": about, **more}


ID: Schemas = {"id": _text("The memory's id, as another tool returned it.")}

TEXT: Schemas = {
    "text": _text(
        "What to remember, in words that make sense on their own later: one fact, decision, preference or event, with "
        "names and dates instead of 'he' and 'yesterday'."
    )
}

DESCRIPTION: Schemas = {
    "title": _text("A short title."),
    "kind": _text(
        "What it is: fact, episodic (something that happened), semantic (general knowledge), identity (who somebody "
        "is), message, knowledge (an article for knowledge_search), chunk (part of a document); or a short name of "
        "your own.",
        default="fact",
    ),
    "namespace": _text("A division of the memory, such as a project's name.", default="default"),
    "tags": _texts("Short labels to filter by later."),
    "source": _text("Where it is from: a file, a URL, a person."),
    "thread": _text("The conversation or document that it is part of."),
    "place": _whole("Its position in the thread; left out, it goes to the end.", 0),
    "metadata": {"type": "object", "description": "A JSON object of your own, kept with it and not searched."},
    "occurred_at": _text(f"When it happened, if not now: {TIME_FORMS}; 7d is a week ago."),
    "expires_at": _text(f"When to stop recalling it: {TIME_FORMS}; 7d is in a week."),
}

FIELDS: Schemas = {
    name: {key: value for key, value in schema.items() if key != "default"} for name, schema in DESCRIPTION.items()
}
"""The same where a field that is left out is taken from a memory that is there."""

CLEARABLE = ("thread", "occurred_at", "expires_at", "quality")

CHANGES: Schemas = {
    "text": _text("A new text, instead of the old one."),
    **FIELDS,
    "quality": _share("How good the memory is.", maximum=1),
    "clear": _texts("Fields to empty.", enum=list(CLEARABLE)),
}

REPLACEMENT: Schemas = {
    "id": _text("The id of the memory that no longer holds."),
    "text": _text("What holds now; leave it out if you give `by`."),
    "by": _text("The id of a stored memory that holds now, instead of a text."),
    **{name: schema for name, schema in FIELDS.items() if name not in ("thread", "place")},
}

IDS: Schemas = {"ids": {**_texts("The ids of the memories."), "minItems": 1}}

LINK: Schemas = {
    "source": _text("The id of the memory where the link starts."),
    "target": _text("The id of the memory where it ends."),
    "relation": _text("What the link means, such as causes or answers.", default="related"),
    "strength": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
        "default": 1.0,
        "description": "How strong it is: above 0, up to 1.",
    },
}

WALK: Schemas = {
    "depth": _whole("How many steps to walk.", 1, 3, default=1),
    "limit": _whole("How many memories at most.", 1, 1000, default=20),
}

FILTERS: Schemas = {
    "kinds": _texts("Only memories of these kinds."),
    "namespaces": _texts("Only memories in these namespaces; left out, all of them are searched."),
    "tags": _texts("Only memories that have all of these tags."),
    "source_prefix": _text("Only memories from sources that start so."),
    "thread": _text("Only memories of this conversation or document."),
    "since": _text(f"Only what happened then or later: {TIME_FORMS}; 7d is a week ago."),
    "until": _text(f"Only what happened before then: {TIME_FORMS}."),
    "include_superseded": _yes("Also memories that were replaced by newer ones."),
    "include_expired": _yes("Also memories whose time is over."),
}

PAGE: Schemas = {
    "limit": _whole("How many memories at most.", 1, 1000, default=50),
    "after": _text("The cursor of the page before; left out, the first page."),
    "newest_first": _yes("Begin with what was stored last."),
}

QUERY: Schemas = {
    "query": _text(
        "What to look for: a question in plain words, or exact words, names and identifiers such as ERR_42 or "
        "invoice-12345."
    )
}

RECALL: Schemas = {
    "limit": _whole("How many memories at most.", 1, 100, default=10),
    "recipe": _text("How to search; leave it out unless you were told which.", enum=list(RECIPES), default="balanced"),
    "min_score": _share("Only memories that score this or more."),
    "quality_weight": _share("How much it counts that a memory proved useful before.", maximum=1, default=0),
    "ef_search": _whole("How thoroughly meaning is searched; leave it out unless hits are missing.", 1, 200),
    "window": _whole("Also this many neighbours on each side, for memories that are part of a thread.", 0, 50),
}

WEIGHTS: Schemas = {
    "weights": {
        "type": "object",
        "properties": {
            "keyword": _share("The weight of exact words.", default=0.3),
            "vector": _share("The weight of meaning.", default=0.6),
            "graph": _share("The weight of links between memories.", default=0.1),
        },
        "additionalProperties": False,
        "description": (
            "How much each way of searching counts; one that is left out keeps its default. Exact id or name: "
            '{"keyword": 1, "vector": 0, "graph": 0}. Pure meaning: {"vector": 1, "keyword": 0, "graph": 0}. Roaming '
            'from idea to idea: {"vector": 0.5, "graph": 0.5, "keyword": 0}.'
        ),
    }
}

KNOWLEDGE: Schemas = {
    "limit": {
        "type": "integer",
        "default": 10,
        "description": "How many at most; a number outside 1 to 50 counts as the nearest of these.",
    },
    "ef_search": {
        "type": "integer",
        "default": 64,
        "description": "How thoroughly meaning is searched, 1 to 200; leave it out unless hits are missing.",
    },
}

FULL: Schemas = {"full": _yes("Return whole records with every field, instead of the short form.")}


def only(schemas: Schemas, *names: str) -> Schemas:
    """Some of these arguments."""
    return {name: schemas[name] for name in names}


def schema_of(takes: Schemas, needs: Sequence[str]) -> Schema:
    """The JSON Schema of a tool's input."""
    return {"type": "object", "properties": takes, "required": list(needs), "additionalProperties": False}


def parse(tool: str, takes: Schemas, needs: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a caller says, its names and containers checked. Null is what many callers send for "not given"."""
    if unknown := [name for name in given if name not in takes]:
        raise InvalidRequest(f"{tool} has no argument {unknown[0]!r:.80}; it has: {', '.join(takes) or 'none'}")
    said = {name: value for name, value in given.items() if value is not None}
    if missing := [name for name in needs if name not in said]:
        raise InvalidRequest(f"{tool} needs {missing[0]!r}, which was not given")
    for name, value in said.items():
        _check_container(name, takes[name]["type"], value)
    return said


def _check_container(name: str, kind: str, value: object) -> None:
    if kind == "array" and not isinstance(value, list):
        raise InvalidRequest(f"{name} must be a list of texts, not {value!r:.80}")
    if isinstance(value, list) and len(value) > LISTED:
        raise InvalidRequest(f"{name} has {len(value):,} items, more than the {LISTED:,} allowed")
    if kind == "object" and not isinstance(value, dict):
        raise InvalidRequest(f"{name} must be a JSON object, not {type(value).__name__}")
    if kind == "boolean" and not isinstance(value, bool):
        raise InvalidRequest(f"{name} must be true or false, not {value!r:.80}")
