"""What the tools take: schemas that derive from the declared options, and how arguments are read.

A wrong value is refused by the library, in the library's words; here only what it would not see is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args, get_origin

from recollect import options
from recollect.errors import InvalidRequest
from recollect.limits import MAX_LIST_ITEMS, shown
from recollect.options import Declared, declared
from recollect.ranking.confidence import NOISE
from recollect.recipes import RECIPES

Schema: TypeAlias = dict[str, Any]
Schemas: TypeAlias = dict[str, Schema]

PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schemas(group: type, *names: str) -> Schemas:
    """The arguments that are declared in a group: all that tools offer, or some."""
    offered = {name: one for name, one in declared(group).items() if "mcp" not in one.option.not_on}
    return {name: _schema(offered[name]) for name in names or offered}


def _schema(one: Declared) -> Schema:
    kinds = [_typed(kind) for kind in one.types]
    shown: Schema = {**(kinds[0] if len(kinds) == 1 else {"anyOf": kinds}), **one.bounds}
    shown["description"] = one.described(one.option.for_model or one.option.help)
    if one.option.default not in (None, (), ""):
        shown["default"] = one.option.default
    return shown


def _typed(kind: Any) -> Schema:
    """A type in JSON Schema."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is list:
        return {"type": "array", "items": _typed(args[0]), "maxItems": MAX_LIST_ITEMS}
    if origin is tuple:
        return {"type": "array", "items": _typed(args[0]), "minItems": len(args), "maxItems": len(args)}
    if origin is dict:
        return {"type": "object"} if args[1] is Any else {"type": "object", "additionalProperties": _typed(args[1])}
    return {"type": "string", "enum": list(args)} if origin is Literal else {"type": PLAIN[kind]}


ID = {"id": {"type": "string", "description": "The memory's id, as another tool returned it."}}
IDS = {"ids": {**schemas(options.Uses)["ids"], "minItems": 1}}
FULL = {
    "full": {
        "type": "boolean",
        "default": False,
        "description": "Return whole records with every field, instead of the short form.",
    }
}

RECALL = schemas(options.Question)
RECALL["recipe"]["enum"] = list(RECIPES)
RECALL["recipe"]["default"] = "careful"
RECALL["min_confidence"]["default"] = NOISE

CLEARABLE = ("thread", "occurred_at", "expires_at", "quality")
CHANGES = {
    **schemas(options.Changes),
    "clear": {
        "type": "array",
        "items": {"type": "string", "enum": list(CLEARABLE)},
        "description": "Fields to empty.",
    },
}


WEIGHTS: Schemas = {
    "weights": {
        "type": "object",
        "properties": {
            "keyword": {"type": "number", "minimum": 0, "default": 0.3, "description": "The weight of exact words."},
            "vector": {"type": "number", "minimum": 0, "default": 0.6, "description": "The weight of meaning."},
            "graph": {"type": "number", "minimum": 0, "default": 0.1, "description": "The weight of links."},
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
        "description": declared(options.Question)["ef_search"].option.for_model,
    },
}


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
        _check_container(name, takes[name], value)
    return said


def _check_container(name: str, schema: Schema, value: object) -> None:
    kind = schema.get("type")
    if kind == "array" and not isinstance(value, list):
        what = "texts" if schema["items"]["type"] == "string" else "pairs"
        raise InvalidRequest(f"{name} must be a list of {what}, not {shown(value)}")
    if isinstance(value, list) and len(value) > MAX_LIST_ITEMS:
        raise InvalidRequest(f"{name} has {len(value):,} items, more than the {MAX_LIST_ITEMS:,} allowed")
    if kind == "object" and not isinstance(value, dict):
        raise InvalidRequest(f"{name} must be a JSON object, not {type(value).__name__}")
    if kind == "boolean" and not isinstance(value, bool):
        raise InvalidRequest(f"{name} must be true or false, not {shown(value)}")
