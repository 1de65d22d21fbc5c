"""Checks of everything a caller passes in: texts, names, numbers and times. No I/O.

The engine applies them once, before anything else, so the code behind it never sees a bad value.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from recollect.errors import InvalidRequest

if TYPE_CHECKING:
    from recollect.types import Memory

TEXT_BYTES = 1024 * 1024
LINE_BYTES = 8 * 1024 * 1024
"""The longest line of an import: 1 MiB of text with every byte escaped, and metadata."""
QUERY_BYTES = 8 * 1024
METADATA_BYTES = 256 * 1024
METADATA_LEVELS = 64
NAME_CHARACTERS = 200
TITLE_CHARACTERS = 1000
SOURCE_CHARACTERS = 2000
TAGS = 64
NAMESPACES = 16
ANSWER_BYTES = 8 * 1024 * 1024
"""The most text in one answer."""
MAX_LIST_ITEMS = 1000
"""The most items in a list of a request, including repeats. A longer list is refused before its items are read."""
DIMENSIONS = 16_384
"""The most numbers in a vector of a request. Whether they match the store's is checked later."""
WINDOW = 50
MAX_HITS = 100
"""The most hits of a recall, unless its recipe allows fewer."""
MAX_WEIGHT = 1e9
SHOWN = 80
"""Characters of a refused value that are repeated."""
VISIBLE = re.compile(r"[^\s\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")
"""A visible character: neither white space nor a control or formatting character."""
NAME = re.compile(r"[^\x00-\x1f\x7f]+")
CONFIGURATION = re.compile(r"[a-z_][a-z0-9_]{0,39}")
"""A name that needs no quotes in SQL, alone or as part of another name."""
SPAN = re.compile(r"(\d{1,6})([mhdw])")
MINUTES = {"m": 1, "h": 60, "d": 24 * 60, "w": 7 * 24 * 60}
DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
TIME_FORMS = "2026-05-03, 2026-05-03T10:00Z, 30m, 12h, 7d, 2w, now, today, yesterday or tomorrow"
"""Every form of a time, for error messages."""


def shown(value: object) -> str:
    """The beginning of a value, without writing out all of it first."""
    if isinstance(value, str):
        return f"{value[:SHOWN]!r:.{SHOWN}}"
    try:
        return f"{reprlib.repr(value):.{SHOWN}}"
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"


def check_text(what: str, text: object, *, most_bytes: int = TEXT_BYTES) -> str:
    """A text that can be stored and searched: not blank, not too long, no NUL, no lone surrogate."""
    if not isinstance(text, str):
        raise InvalidRequest(f"{what} must be a text, not {type(text).__name__}")
    if not VISIBLE.search(text):
        raise InvalidRequest(f"{what} is empty: give it at least one word")
    return check_characters(what, text, most_bytes)


def check_characters(what: str, text: str, most_bytes: int = TEXT_BYTES) -> str:
    if "\x00" in text:
        raise InvalidRequest(f"{what} holds a NUL character at position {text.index(chr(0))}: remove it")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"{what} holds a lone surrogate at position {error.start}: remove it") from None
    if size > most_bytes:
        raise InvalidRequest(f"{what} has {size:,} bytes, more than the {most_bytes:,} allowed: split it")
    return text


def check_name(what: str, name: object, *, most: int = NAME_CHARACTERS) -> str:
    """A short name: of a space, namespace, kind, tag, thread or relation."""
    if not isinstance(name, str):
        raise InvalidRequest(f"{what} must be a text, not {type(name).__name__}")
    if not name.strip():
        raise InvalidRequest(f"{what} is empty: give it a name")
    if len(name) > most:
        raise InvalidRequest(f"{what} has {len(name):,} characters, more than the {most:,} allowed")
    if name.isascii() and name.isprintable():
        return name  # most names, and nothing below applies to them
    if not NAME.fullmatch(name):
        raise InvalidRequest(f"{what} {name!r} holds a control character: remove it")
    return check_characters(what, name)


def check_names(what: str, names: object, *, most: int) -> tuple[str, ...]:
    """Several short names, without repeats, in the caller's order."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidRequest(f"{what}s must be a list of texts, not {shown(names)}")
    given = list(islice(names, MAX_LIST_ITEMS + 1))
    if len(given) > MAX_LIST_ITEMS:
        raise InvalidRequest(f"more than {MAX_LIST_ITEMS:,} {what}s were given, and at most {most} are allowed")
    checked = tuple(dict.fromkeys(check_name(what, name) for name in given))
    if len(checked) > most:
        raise InvalidRequest(f"{len(checked)} {what}s were given, more than the {most} allowed")
    return checked


def check_iterable(what: str, value: object) -> None:
    """Something to read item by item, but not a text, which would be read letter by letter."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable | AsyncIterable):
        raise InvalidRequest(f"{what} must be a list, a file or a generator, not {type(value).__name__}")


def check_number(
    what: str, value: object, least: float, most: float, *, whole: bool = False, above: float | None = None
) -> float:
    """A number from `least` to `most`; with `above`, above that number, and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise InvalidRequest(f"{what} must be a {'whole ' if whole else ''}number, not {shown(value)}")
    if above is not None and not above < value <= most:
        raise InvalidRequest(f"{what} is {shown(value)}, and must be above {plain(above)} and at most {plain(most)}")
    if not least <= value <= most:  # NaN fails this too
        raise InvalidRequest(f"{what} is {shown(value)}, and must be from {plain(least)} to {plain(most)}")
    return value


def plain(number: float) -> str:
    """A bound as people write it.

    >>> plain(1e6), plain(0.01), plain(3)
    ('1,000,000', '0.01', '3')
    """
    return f"{number:,.10g}"


def check_choice(what: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InvalidRequest(f"the {what} is {shown(value)}, and must be one of: {', '.join(choices)}")


def check_words(what: str, value: object) -> None:
    """`analyzed`, or the name of a text-search configuration."""
    if not isinstance(value, str) or not CONFIGURATION.fullmatch(value):
        raise InvalidRequest(
            f"the {what} is {shown(value)}, and must be analyzed, or a text-search configuration such as english"
        )


def check_weight(what: str, value: object) -> float:
    """A lane's weight: a number from 0 up, small enough for a sum of weights to stay finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_WEIGHT:
        raise InvalidRequest(
            f"the weight of {what!r} is {shown(value)}, and must be a number from 0 up to {MAX_WEIGHT:g}"
        )
    return float(value)


def check_flag(what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"{what} must be True or False, not {shown(value)}")
    return value


def check_supersedable(memory: Memory, by: object) -> None:
    """A memory can be superseded by one other memory only; doing that again is allowed."""
    if memory.superseded_by is not None and memory.superseded_by != by:
        raise InvalidRequest(
            f"memory {memory.id!r} is already superseded by {memory.superseded_by!r}: supersede that one"
        )


def check_line(number: int, size: int) -> None:
    """The size of a line of an import, counted from 1."""
    if size > LINE_BYTES:
        raise InvalidRequest(f"line {number} is longer than {LINE_BYTES:,} bytes: nothing after it was read")


def check_same_text(memory: Memory, stored: Memory) -> None:
    """Raises InvalidRequest if the id is already used for another text."""
    if stored.text != memory.text:
        raise InvalidRequest(f"memory {memory.id!r} already exists with another text: update it, or leave out the id")


def check_time(what: str, value: object, now: datetime, *, ahead: bool = False) -> datetime | None:
    """A moment in UTC, from a datetime or from any of `TIME_FORMS`.

    A time without a zone is UTC, and a day begins at midnight UTC. A span such as 7d counts back from `now`, or
    forward with `ahead`.

    >>> check_time("since", "7d", datetime(2026, 5, 10, 12, tzinfo=UTC)).isoformat()
    '2026-05-03T12:00:00+00:00'
    """
    if value is None:
        return None
    if not isinstance(value, str | datetime):
        raise InvalidRequest(f"{what} must be a time, not {type(value).__name__}: write {TIME_FORMS}")
    try:
        moment = value if isinstance(value, datetime) else _moment(value.strip().lower(), now, ahead=ahead)
        return utc(moment)
    except OverflowError:
        raise InvalidRequest(f"{what} is {shown(value)}, and must be within the years 1 to 9999 in UTC") from None
    except ValueError:
        raise InvalidRequest(f"{what} is {shown(value)}, which is not a time: write {TIME_FORMS}") from None


def utc(moment: datetime) -> datetime:
    """The same moment in UTC. A time without a zone is UTC."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _moment(words: str, now: datetime, *, ahead: bool) -> datetime:
    if words == "now":
        return now
    if words in DAYS:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight + timedelta(days=DAYS[words])
    if span := SPAN.fullmatch(words):
        length = timedelta(minutes=int(span[1]) * MINUTES[span[2]])
        return now + length if ahead else now - length
    return datetime.fromisoformat(words.upper())


def check_metadata(value: object) -> Mapping[str, Any]:
    """A copy of a JSON object, if it is not too large."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"metadata must be a JSON object, not {type(value).__name__}")
    try:
        text = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
        copy: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"metadata cannot be written as JSON: {error}") from None
    check_characters("metadata", text, METADATA_BYTES)
    if _is_deeper(copy, METADATA_LEVELS):
        raise InvalidRequest(f"metadata is nested deeper than the {METADATA_LEVELS} levels allowed: flatten it")
    if any("\x00" in part for part in _texts(copy)):
        raise InvalidRequest("metadata holds a NUL character: remove it")
    return copy


def _is_deeper(value: object, most: int) -> bool:
    """Whether objects and lists are nested deeper than `most`. Level by level, so no depth overflows the stack."""
    level: list[Any] = [value]
    for _ in range(most):
        items = chain.from_iterable(one.values() if isinstance(one, dict) else one for one in level)
        level = [item for item in items if isinstance(item, dict | list)]
    return bool(level)


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value, including names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def size_of(memory: Memory) -> int:
    """The bytes of a memory's text, title, source, tags and metadata. Names are too short to count."""
    said = "".join((memory.text, memory.title, memory.source, *memory.tags))
    size = len(said) if said.isascii() else len(said.encode())
    return size + len(json.dumps(memory.metadata)) if memory.metadata else size


def fitting(memories: Iterable[Memory], room: int, at_least: int = 1) -> tuple[int, int]:
    """How many of these memories fit, counted from the first, and the room left."""
    count = 0
    for memory in memories:
        size = size_of(memory)
        if size > room and count >= at_least:
            return count, 0
        count, room = count + 1, max(room - size, 0)
    return count, room


def check_vector(value: Sequence[float] | Any, dimensions: int | None) -> Any:
    """A given vector as float32 of length 1; its dimensions must be the store's."""
    import numpy as np  # late: `recollect --help` must not pay for it

    with np.errstate(over="ignore", invalid="ignore"):
        try:
            vector = np.asarray(value, dtype=np.float32)
        except (TypeError, ValueError):
            raise InvalidRequest("a vector must be a list of numbers") from None
        if vector.ndim != 1 or not vector.size:
            raise InvalidRequest(f"a vector must be one list of numbers, not of shape {vector.shape}")
        if dimensions is not None and vector.size != dimensions:
            raise InvalidRequest(f"the vector has {vector.size} dimensions, and must have {dimensions} for this store")
        length = float(np.linalg.norm(vector))
    if not math.isfinite(length) or length == 0:
        raise InvalidRequest("a vector must hold finite numbers, not all of them 0")
    return vector / np.float32(length)


def check_vectors(values: Sequence[Any], dimensions: int | None) -> list[Any]:
    """`check_vector` for several: together if all are right, which is much faster."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        try:
            together = np.asarray(values, dtype=np.float32)
        except (TypeError, ValueError):
            together = np.empty(0, np.float32)
        lengths = np.linalg.norm(together, axis=-1, keepdims=True)
        usable = np.isfinite(lengths).all() and lengths.all()
    if together.ndim != 2 or not usable or together.shape[1] != (dimensions or together.shape[1]):
        return [check_vector(value, dimensions) for value in values]  # raises for the wrong one
    return [*(together / lengths)]
