"""Every option of the public calls, declared once: its name, type, bounds, default and help.

Both clients take them as keywords. What checks them, the HTTP bodies, the MCP schemas, the options of the command line
and docs/reference.md derive from here: a new option is one field of a group below, and the code that uses it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from math import inf, isfinite
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Never,
    Required,
    TypeAlias,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from recollect.limits import MAX_HITS, NAMESPACES, TAGS, TIME_FORMS, WINDOW, check_names, check_number
from recollect.types import Access, Scope

if TYPE_CHECKING:
    from recollect.recipes import Diversity, Fanout, Fusion, Recipe
    from recollect.types import Vector
else:  # objects that only Python callers can pass: no door knows them
    Diversity = Fanout = Fusion = Recipe = Vector = Never

Door: TypeAlias = Literal["http", "mcp", "cli"]
Time: TypeAlias = datetime | str

PLACES = 2**53
LISTED_MOST = 1000
"""Memories of one page, and neighbours of one memory."""


@dataclass(frozen=True, slots=True)
class Option:
    """What is known about an option beside its name and type.

    A number lies from `least` to `most`, and above `above`; of a list, `most` bounds its items. `default` is the value
    that holds when the option is left out; `otherwise` says it in words where it is not one value. `for_model` replaces
    `help` where a model needs other words. `flag` and `metavar` are how the command line spells it, where that does not
    follow from the name; `not_on` names the doors that do not offer it, and why.
    """

    help: str
    least: float = -inf
    most: float = inf
    above: float | None = None
    default: Any = None
    otherwise: str = ""
    for_model: str = ""
    item: str = ""
    flag: str = ""
    metavar: str = ""
    not_on: Mapping[Door, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Declared:
    """One option of a group. `types` are the types that a door can pass: those that JSON has."""

    name: str
    types: tuple[Any, ...]
    option: Option
    required: bool
    nullable: bool
    is_time: bool

    @property
    def description(self) -> str:
        """Help, the forms of a time, and what holds where it is left out."""
        return self.described(self.option.help)

    def described(self, help: str) -> str:
        forms = f": {TIME_FORMS}" if self.is_time else ""
        otherwise = f"; left out, {self.option.otherwise}" if self.option.otherwise else ""
        return f"{help.removesuffix('.')}{forms}{otherwise}."

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds of a number, in the words of JSON Schema."""
        if not {int, float} & {*self.types}:
            return {}
        least = {"minimum": self.option.least} if self.option.above is None else {"exclusiveMinimum": self.option.above}
        return {name: bound for name, bound in {**least, "maximum": self.option.most}.items() if isfinite(bound)}

    def number(self, value: object, what: str = "") -> float:
        """A number within the declared bounds. Raises InvalidRequest."""
        one = self.option
        return check_number(
            what or self.name, value, one.least, one.most, whole=float not in self.types, above=one.above
        )

    def names(self, values: Iterable[str]) -> tuple[str, ...]:
        """Names, no more than declared, without repeats. Raises InvalidRequest."""
        return check_names(self.option.item, values, most=int(self.option.most))


@cache
def declared(group: type) -> Mapping[str, Declared]:
    """The options of a group by name: those that a call needs first, then in the order in which they are declared."""
    made = {name: _declared(group, name, hint) for name, hint in get_type_hints(group, include_extras=True).items()}
    return dict(sorted(made.items(), key=lambda one: not one[1].required))


def _declared(group: Any, name: str, hint: Any) -> Declared:
    kind, option = get_args(get_args(hint)[0] if get_origin(hint) is Required else hint)
    if group in (Changes, Replacement):  # what is left out there stays as the stored memory has it
        option = replace(option, default=None, otherwise="")
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    types = tuple(_plain(one) for one in members if one not in (NoneType, Never, datetime))
    required = name in group.__required_keys__
    return Declared(name, types, option, required, NoneType in members, datetime in members)


def _plain(kind: Any) -> Any:
    """The type of a JSON value that can be passed for this type: lists for iterables, dicts for mappings."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Iterable, Sequence):
        return list[args]  # type: ignore[valid-type]
    if origin is Mapping:
        return dict[args[0], _plain(args[1])]  # type: ignore[valid-type, misc]
    return kind


NO_VECTORS: Mapping[Door, str] = {
    "cli": "a vector is too long to type",
    "mcp": "a model does not compute vectors",
}


class FilterOptions(TypedDict, total=False):
    """Which memories a call may see; what is left out does not narrow."""

    kinds: Annotated[Iterable[str], Option("Only memories of these kinds.", most=TAGS, default=(), item="kind")]
    namespaces: Annotated[
        Iterable[str], Option("Only memories in these namespaces.", most=NAMESPACES, default=(), item="namespace")
    ]
    tags: Annotated[Iterable[str], Option("Only memories with all of these tags.", most=TAGS, default=(), item="tag")]
    source_prefix: Annotated[
        str, Option("Only memories whose source starts with this.", default="", flag="source", metavar="PREFIX")
    ]
    thread: Annotated[str | None, Option("Only memories of this thread: a conversation or a document.")]
    since: Annotated[Time | None, Option("Only what happened at this time or later (7d is a week ago).")]
    until: Annotated[Time | None, Option("Only what happened before this time.")]
    min_quality: Annotated[
        float | None, Option("Only memories of this quality or better, and those without a score.", 0, 1)
    ]
    include_superseded: Annotated[
        bool | None, Option("Also memories that were replaced by newer ones.", flag="superseded")
    ]
    include_expired: Annotated[bool | None, Option("Also memories that have expired.", flag="expired")]


class ListOptions(FilterOptions, total=False):
    """Which memories to list, and in which order."""

    newest_first: Annotated[bool, Option("Newest first, instead of oldest first.", default=False, flag="newest")]


class PageOptions(ListOptions, total=False):
    """One page of a list."""

    limit: Annotated[int, Option("How many memories at most.", 1, LISTED_MOST, default=50)]
    after: Annotated[str | None, Option("Continue after this id: the cursor of the page before.", metavar="ID")]


class RecallOptions(FilterOptions, total=False):
    """How to recall. Everything a recipe says can be said differently for one call."""

    recipe: Annotated[
        str | Recipe,
        Option(
            "How to search: the name of a recipe.",
            default="balanced",
            metavar="NAME",
            for_model="How to search; leave it out unless you were told which.",
        ),
    ]
    limit: Annotated[int | None, Option("How many hits at most.", 1, MAX_HITS, otherwise="the recipe's")]
    fanout: Annotated[
        int | Mapping[str, int] | Fanout | None,
        Option("How many hits each lane is asked for.", 1, 10_000, otherwise="the recipe's"),
    ]
    weights: Annotated[
        Mapping[str, float] | None,
        Option("Other weights for lanes or legs, such as 0.5 for keyword.", flag="weight", metavar="LANE=W"),
    ]
    lanes: Annotated[
        Mapping[str, Mapping[str, Any]] | None,
        Option('Other settings, by lane or leg, such as {"graph": {"depth": 1}}.'),
    ]
    fusion: Annotated[
        Fusion | Mapping[str, Any] | None,
        Option("How rankings become one, as a JSON object: method, k, renormalise.", otherwise="the recipe's"),
    ]
    renormalise: Annotated[
        bool | None,
        Option("Give the weight of lanes that did not answer to the others.", otherwise="the recipe's choice"),
    ]
    diversity: Annotated[
        Diversity | Mapping[str, Any] | None,
        Option("How to hold back near-copies, as a JSON object: method, balance, relevance.", otherwise="the recipe's"),
    ]
    min_score: Annotated[float | None, Option("Only hits that score this much or more.", 0, 1e9)]
    min_confidence: Annotated[
        float | None, Option("Only hits that answer the question with this probability or a higher one.", 0, 1)
    ]
    quality_weight: Annotated[
        float | None,
        Option(
            "How much a memory's quality counts, from 0 to 1.",
            0,
            1,
            otherwise="the recipe's",
            for_model="How much it counts that a memory proved useful before, from 0 to 1.",
        ),
    ]
    ef_search: Annotated[
        int | None,
        Option(
            "How many candidates an approximate vector index keeps while it searches, from 1 to 200.",
            1,
            200,
            otherwise="the index's own number",
            for_model="How thoroughly meaning is searched, from 1 to 200; leave it out unless hits are missing.",
        ),
    ]
    expect: Annotated[
        str | None,
        Option("The id of a memory that should be found: the answer says where it was lost.", metavar="ID"),
    ]
    window: Annotated[int, Option("How many thread neighbours to return on each side of a hit.", 0, WINDOW, default=0)]
    vector: Annotated[
        Sequence[float] | Vector | None,
        Option("The question's vector, if you have it already.", not_on=NO_VECTORS),
    ]
    shared: Annotated[
        Iterable[tuple[str, str]] | None,
        Option(
            "Only these namespaces that other spaces share, each as a pair of space and namespace.",
            otherwise="all that they share; an empty list, none",
            metavar="SPACE/NAMESPACE",
        ),
    ]


class Question(RecallOptions, total=False):
    """A recall, with its query."""

    query: Required[
        Annotated[
            str,
            Option(
                "The question, in plain words.",
                for_model="What to look for: a question in plain words, or exact words, names and identifiers such as "
                "ERR_42 or invoice-12345.",
            ),
        ]
    ]


class _Described(TypedDict, total=False):
    namespace: Annotated[
        str,
        Option(
            "A division of the space, such as a project's name.",
            default="default",
        ),
    ]
    kind: Annotated[
        str,
        Option(
            "What it is: fact, message, knowledge, or a short name of your own.",
            default="fact",
            for_model="What it is: fact, episodic (something that happened), semantic (general knowledge), identity "
            "(who somebody is), message, knowledge (an article for knowledge_search), chunk (part of a document); or a "
            "short name of your own.",
        ),
    ]
    title: Annotated[str, Option("A short title.", default="")]
    tags: Annotated[Iterable[str], Option("Short labels to filter by later.", most=TAGS, default=(), item="tag")]
    source: Annotated[str, Option("Where it is from: a file, a URL, a person.", default="")]
    thread: Annotated[str | None, Option("The conversation or document that it is part of.")]
    place: Annotated[int | None, Option("Its position in the thread.", -PLACES, PLACES, otherwise="the end")]
    metadata: Annotated[
        Mapping[str, Any] | None, Option("A JSON object of your own, returned as it is and not searched.")
    ]
    occurred_at: Annotated[Time | None, Option("When it happened (7d is a week ago).")]
    expires_at: Annotated[Time | None, Option("When to stop recalling it (7d is in a week).")]


class MemoryFields(_Described, total=False):
    """What can be said of a memory beside its text."""

    vector: Annotated[Sequence[float] | Vector | None, Option("Its vector, if you have it already.", not_on=NO_VECTORS)]
    id: Annotated[
        str | None,
        Option("An id of your own.", otherwise="one is made", not_on={"mcp": "there `id` names a stored memory"}),
    ]


class NewMemory(MemoryFields, total=False):
    """A text to remember, and what is known about it."""

    text: Required[
        Annotated[
            str,
            Option(
                "What to remember.",
                for_model="What to remember, in words that make sense on their own later: one fact, decision, "
                "preference or event, with names and dates instead of 'he' and 'yesterday'.",
            ),
        ]
    ]


class Changes(_Described, total=False):
    """What `update` can change."""

    text: Annotated[str, Option("A new text, instead of the old one.")]
    quality: Annotated[float | None, Option("How good the memory is, from 0 to 1.", 0, 1)]


class Replacement(MemoryFields, total=False):
    """What supersedes a memory: a new text, or another memory by its id."""

    old: Required[Annotated[str, Option("The id of the memory that no longer holds.")]]
    text: Annotated[
        str | None, Option("What holds now, unless `by` is given.", not_on={"cli": "there it is an argument"})
    ]
    by: Annotated[str | None, Option("The id of a stored memory that holds now, instead of a text.", metavar="NEW_ID")]


class Uses(TypedDict, total=False):
    """Memories that were of use."""

    ids: Required[Annotated[Iterable[str], Option("The ids of the memories.", 1, item="id")]]
    query: Annotated[str | None, Option("The question that led to them, for `recollect tune --from-use`.")]


class Link(TypedDict, total=False):
    """A link from one memory to another."""

    source: Required[Annotated[str, Option("The id of the memory where the link starts.")]]
    target: Required[Annotated[str, Option("The id of the memory where it ends.")]]
    relation: Annotated[str, Option("What the link means, such as causes or answers.", default="related")]
    strength: Annotated[float, Option("How strong the link is: above 0, and at most 1.", above=0, most=1, default=1.0)]


class Walk(TypedDict, total=False):
    """How far to follow links from a memory."""

    id: Required[Annotated[str, Option("The memory's id.")]]
    depth: Annotated[int, Option("How many steps to walk.", 1, 3, default=1)]
    limit: Annotated[int, Option("How many memories at most.", 1, LISTED_MOST, default=20)]


class NewGrant(TypedDict, total=False):
    """A namespace that another space may see, or also change."""

    namespace: Required[Annotated[str, Option("The namespace to share.")]]
    to: Required[Annotated[str, Option("The space to share it with.")]]
    access: Annotated[Access, Option("Whether it may only read, or also write.", default="read")]


class Acceptance(TypedDict):
    """A namespace that another space offers to this one."""

    owner: Annotated[str, Option("The space that offers it.")]
    namespace: Annotated[str, Option("The namespace it offers.")]


class NewToken(TypedDict, total=False):
    """Who may call a server: in which spaces, and to do what."""

    spaces: Annotated[
        Iterable[str], Option("The spaces it is for.", default=(), otherwise="all spaces", item="space", most=64)
    ]
    scope: Annotated[Scope, Option("What it allows; each scope includes those before it.", default="read")]
    name: Annotated[str, Option("A name to know it by.", default="")]
    expires: Annotated[Time | None, Option("When it expires (90d is in 90 days).", otherwise="never")]
