"""What requests say, as models: they name the library's own keywords, and check types. What a value may be, the library
says, in its own words.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from recollect.limits import DIMENSIONS, LISTED, TIME_FORMS
from recollect.servers.problems import OURS
from recollect.types import Access, Scope

MANY = 1000
"""Memories in one request at most; an import takes any number."""
ID = "0198c5a1-7a61-7c3e-9c1d-0a1b2c3d4e5f"
OTHER_ID = "0198c5a2-11f0-7d52-8b7e-6f5e4d3c2b1a"

Time = Annotated[
    str, Field(description=f"A time: {TIME_FORMS}. Without a zone it is UTC.", examples=["2026-05-03T10:00Z"])
]


def at_most(most: int) -> BeforeValidator:
    """Refuses a longer list or object as a whole. Looking at it item by item would make an error of each."""

    def check(value: object) -> object:
        if isinstance(value, list | dict) and len(value) > most:
            raise PydanticCustomError(
                OURS, "has {given} items, more than the {most} allowed", {"given": len(value), "most": most}
            )
        return value

    return BeforeValidator(check)


Texts: TypeAlias = Annotated[list[str], Field(max_length=LISTED, fail_fast=True), at_most(LISTED)]
Vector = Annotated[
    list[float],
    Field(
        description="A vector of the store's model, where you have it already.", max_length=DIMENSIONS, fail_fast=True
    ),
    at_most(DIMENSIONS),
]


class Body(BaseModel):
    """A JSON object with these names and no others, and values of these types."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, data: object) -> object:
        """One error for a crowd of unknown names, instead of one for each."""
        if isinstance(data, dict) and len(data) > len(cls.model_fields) + LISTED:
            raise PydanticCustomError(
                OURS,
                "has {given} names, and there are {most}",
                {"given": len(data), "most": len(cls.model_fields)},
            )
        return data

    def given(self) -> dict[str, Any]:
        """Only what was said: the library's defaults hold for the rest."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}


class Described(Body):
    namespace: str = Field("default", description="Its division of the space.")
    kind: str = Field("fact", description="What it is: fact, message, knowledge, ...")
    title: str = ""
    tags: Texts = []
    source: str = Field("", description="Where it is from: a file, a URL.")
    thread: str | None = Field(None, description="Its conversation or document.")
    place: int | None = Field(None, description="Its place in the thread; left out, it goes to the end.")
    metadata: dict[str, Any] | None = Field(None, description="A JSON object of your own.")
    occurred_at: Time | None = None
    expires_at: Time | None = None


class NewMemory(Described):
    """A text to remember, and what is known about it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Invoice 12345 was paid on 3 May", "tags": ["billing"]}]}
    )

    text: str
    vector: Vector | None = None
    id: str | None = Field(None, description="An id of your own; left out, one is made.")


NewMemories = Annotated[list[NewMemory], Field(min_length=1, max_length=MANY, fail_fast=True), at_most(MANY)]
OneOrMany = Annotated[
    Annotated[NewMemory, Tag("one")] | Annotated[NewMemories, Tag("many")],
    Discriminator(lambda body: "many" if isinstance(body, list) else "one"),
]


class Changes(Described):
    """What is to be different. What is not named stays; null empties a field."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Invoice 12345", "expires_at": None}]})

    text: str = ""
    quality: float | None = Field(None, description="How good it is: 0 to 1.")


class Supersession(Described):
    """What replaces a memory: a new text, like the old one where nothing else is said, or another memory by its id."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"old": ID, "text": "Invoice 12345 was refunded"}]})

    old: str = Field(description="The id of the memory that no longer holds.")
    text: str | None = None
    by: str | None = Field(None, description="The id of a memory that is stored already.")
    vector: Vector | None = None
    id: str | None = Field(None, description="An id of your own for the new one.")


class Uses(Body):
    """Memories that were of use."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [ID]}]})

    ids: Annotated[list[str], Field(min_length=1, max_length=MANY, fail_fast=True), at_most(MANY)]


Pair: TypeAlias = Annotated[list[str], Field(min_length=2, max_length=2), at_most(2)]


class Filters(Body):
    """Which memories are looked at; what is left out does not narrow."""

    kinds: Texts = Field([], description="Only of these kinds.")
    namespaces: Texts = Field([], description="Only in these namespaces.")
    tags: Texts = Field([], description="Only with all of these tags.")
    source_prefix: str = Field("", description="Only from sources that start so.")
    thread: str | None = Field(None, description="Only of this thread.")
    since: Time | None = Field(None, description="Only what happened then or later.")
    until: Time | None = Field(None, description="Only what happened before then.")
    min_quality: float | None = Field(None, description="Only this good or better; unscored ones stay.")
    include_superseded: bool | None = Field(None, description="With replaced memories.")
    include_expired: bool | None = Field(None, description="With expired memories.")


class Question(Filters):
    """A question in plain words, and how to search. Everything a recipe says can be said differently here."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "when was that bill settled?", "limit": 5},
                {"query": "invoice 12345", "recipe": "novamem", "weights": {"keyword": 1}, "tags": ["billing"]},
            ]
        }
    )

    query: str
    recipe: str = Field("balanced", description="See /v1/recipes.")
    limit: int | None = Field(None, description="How many hits at most; left out, the recipe's.")
    fanout: int | Annotated[dict[str, int], at_most(LISTED)] | None = Field(
        None, description="How many hits a lane is asked for."
    )
    weights: Annotated[dict[str, float], at_most(LISTED)] | None = Field(
        None, description="Other weights, by lane or leg."
    )
    lanes: Annotated[dict[str, dict[str, Any]], at_most(LISTED)] | None = Field(
        None, description="Other settings, by lane or leg."
    )
    fusion: dict[str, Any] | None = Field(None, description="How rankings become one: method, k, renormalise.")
    renormalise: bool | None = Field(None, description="Whether others get the weight of lanes that did not answer.")
    diversity: dict[str, Any] | None = Field(None, description="Of near-copies: method, balance, relevance.")
    min_score: float | None = None
    quality_weight: float | None = Field(None, description="How much quality counts: 0 to 1.")
    ef_search: int | None = Field(None, description="Candidates that a vector index keeps while it searches: 1 to 200.")
    expect: str | None = Field(None, description="An id: the answer says where that memory was lost.")
    window: int = Field(0, description="Thread neighbours that come along on each side of a hit.")
    vector: Vector | None = None
    shared: Annotated[list[Pair], Field(max_length=LISTED, fail_fast=True), at_most(LISTED)] | None = Field(
        None, description="Namespaces of others that they let this space see, each as [space, namespace]."
    )


class Listing(Filters):
    """The query string of a list."""

    model_config = ConfigDict(strict=False)

    limit: int = Field(50, description="How many at most.")
    after: str | None = Field(None, description="Go on after this id: the cursor of the page before.")
    newest_first: bool = Field(False, description="The newest first, instead of the oldest.")


class Link(Body):
    """A link between two memories."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"source": ID, "target": OTHER_ID, "relation": "causes", "strength": 0.8}]}
    )

    source: str
    target: str
    relation: str = "related"
    strength: float = Field(1.0, description="Above 0, up to 1.")


class NewGrant(Body):
    """A namespace that another space is offered to see, or also to change."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"namespace": "handbook", "to": "sales"}]})

    namespace: str
    to: str
    access: Access = "read"


class Acceptance(Body):
    """What another space offers, and this one wants to see."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"owner": "team", "namespace": "handbook"}]})

    owner: str
    namespace: str


class NewToken(Body):
    """Who may call: in which spaces (none named: in all), and to do what."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"spaces": ["work"], "scope": "write", "name": "agent 7", "expires": "90d"}]}
    )

    spaces: Texts = []
    scope: Scope = "read"
    name: str = ""
    expires: str | None = Field(None, description="A time to come, or a span such as 90d or 12h; left out: never.")


Status = Literal["ready", "degraded", "down"]
