"""What requests say, as models that derive from the declared options. They check names and types; what a value may be,
the library says, in its own words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, create_model, model_validator
from pydantic_core import PydanticCustomError

from recollect import options
from recollect.limits import DIMENSIONS, MAX_LIST_ITEMS
from recollect.options import Declared, declared
from recollect.servers.problems import OURS

MANY = 1000
"""Memories in one request at most; an import takes any number."""
ID = "0198c5a1-7a61-7c3e-9c1d-0a1b2c3d4e5f"
OTHER_ID = "0198c5a2-11f0-7d52-8b7e-6f5e4d3c2b1a"
TIME = "2026-05-03T10:00Z"

B = TypeVar("B", bound="Body")


class Body(BaseModel):
    """A JSON object with these names and no others, and values of these types."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, data: object) -> object:
        """One error for a crowd of unknown names, instead of one for each."""
        if isinstance(data, dict) and len(data) > len(cls.model_fields) + MAX_LIST_ITEMS:
            raise PydanticCustomError(
                OURS,
                "has {given} names, and there are {most}",
                {"given": len(data), "most": len(cls.model_fields)},
            )
        return data

    def given(self) -> dict[str, Any]:
        """Only what was said: the library's defaults hold for the rest."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}


def takes(group: type, *examples: dict[str, Any]) -> Callable[[type[B]], type[B]]:
    """Give a body the options of a group as its fields."""

    def derive(body: type[B]) -> type[B]:
        fields: dict[str, Any] = {
            name: _field(one) for name, one in declared(group).items() if "http" not in one.option.not_on
        }
        body.model_config["json_schema_extra"] = {"examples": list(examples)} if examples else {}
        return create_model(
            body.__name__, __base__=body, __module__=body.__module__, __doc__=body.__doc__ or group.__doc__, **fields
        )

    return derive


def _field(one: Declared) -> tuple[Any, Any]:
    kinds = [_bounded(kind, one) for kind in one.types]
    about: dict[str, Any] = {
        "description": one.description,
        "json_schema_extra": one.bounds,
    }
    if one.is_time:
        about["examples"] = [TIME]
    if not one.required:
        default = one.option.default
        given = list(default) if isinstance(default, tuple) else default
        about |= {"default_factory": NoneType} if given is None and not one.nullable else {"default": given}
    return reduce(or_, [*kinds, None] if one.nullable else kinds), Field(**about)


def _bounded(kind: Any, one: Declared) -> Any:
    """The type with a bound on how much of it is looked at."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is dict and args[1] is not Any:
        return Annotated[kind, _at_most(MAX_LIST_ITEMS)]
    if origin is not list:
        return kind
    most = DIMENSIONS if args[0] is float else MAX_LIST_ITEMS
    least = 1 if one.option.least == 1 else None
    item: Any = Pair if get_origin(args[0]) is tuple else args[0]
    return Annotated[list[item], Field(min_length=least, max_length=most, fail_fast=True), _at_most(most)]


def _at_most(most: int) -> BeforeValidator:
    """Refuses a longer list or object as a whole. Looking at it item by item would make an error of each."""

    def check(value: object) -> object:
        if isinstance(value, list | dict) and len(value) > most:
            raise PydanticCustomError(
                OURS, "has {given} items, more than the {most} allowed", {"given": len(value), "most": most}
            )
        return value

    return BeforeValidator(check)


Pair: TypeAlias = Annotated[list[str], Field(min_length=2, max_length=2), _at_most(2)]


@takes(options.NewMemory, {"text": "Invoice 12345 was paid on 3 May", "tags": ["billing"]})
class NewMemory(Body):
    """A text to remember, and what is known about it."""


NewMemories = Annotated[list[NewMemory], Field(min_length=1, max_length=MANY, fail_fast=True), _at_most(MANY)]
OneOrMany = Annotated[
    Annotated[NewMemory, Tag("one")] | Annotated[NewMemories, Tag("many")],
    Discriminator(lambda body: "many" if isinstance(body, list) else "one"),
]


@takes(options.Changes, {"title": "Invoice 12345", "expires_at": None})
class Changes(Body):
    """What is to be different. What is not named stays; null empties a field."""


@takes(options.Replacement, {"old": ID, "text": "Invoice 12345 was refunded"})
class Supersession(Body):
    """What replaces a memory: a new text, like the old one where nothing else is said, or another memory by its id."""


@takes(options.Uses, {"ids": [ID], "query": "when was that bill settled?"})
class Uses(Body):
    """Memories that were of use."""


@takes(
    options.Question,
    {"query": "when was that bill settled?", "limit": 5},
    {"query": "invoice 12345", "recipe": "novamem", "weights": {"keyword": 1}, "tags": ["billing"]},
)
class Question(Body):
    """A question in plain words, and how to search. Everything a recipe says can be said differently here."""


@takes(options.PageOptions)
class Listing(Body):
    """The query string of a list."""

    model_config = ConfigDict(strict=False)


@takes(options.Link, {"source": ID, "target": OTHER_ID, "relation": "causes", "strength": 0.8})
class Link(Body):
    """A link between two memories."""


@takes(options.Walk)
class Walk(Body):
    """The query string that asks for neighbours."""

    model_config = ConfigDict(strict=False)


@takes(options.NewGrant, {"namespace": "handbook", "to": "sales"})
class NewGrant(Body):
    """A namespace that another space is offered to see, or also to change."""


@takes(options.Acceptance, {"owner": "team", "namespace": "handbook"})
class Acceptance(Body):
    """What another space offers, and this one wants to see."""


@takes(options.NewToken, {"spaces": ["work"], "scope": "write", "name": "agent 7", "expires": "90d"})
class NewToken(Body):
    """Who may call: in which spaces (none named: in all), and to do what."""
