"""Why a hit is there, in words and colours: the one place that every door asks.

A part is known by its kind, never by the name of its lane: a recipe may call a lane anything, also "exact".
"""

from __future__ import annotations

from typing import NamedTuple

from recollect.ranking.confidence import NOISE
from recollect.types import Contribution, Expectation, PartKind, Recall, Why

DOUBT = "probably nothing relevant is remembered; the nearest:"
"""What a door says before hits that are all as unlikely as noise."""


def is_noise(answer: Recall) -> bool:
    """Whether there are hits, and none is surer than the best one for an off-topic question."""
    return bool(answer.hits) and max(hit.confidence for hit in answer.hits) < NOISE


class Look(NamedTuple):
    """What a kind of part is called, and its colour on a terminal. The dashboard's colours are in its style sheet."""

    word: str
    colour: str


def look(kind: PartKind) -> Look:
    """How a kind of part is shown."""
    match kind:
        case "vector":
            return Look("meaning", "cyan")
        case "keyword":
            return Look("words", "green")
        case "graph":
            return Look("links", "magenta")
        case "exact":
            return Look("exact match", "bold green")
        case "quality":
            return Look("quality", "dim")
        case "rerank":
            return Look("read together", "yellow")
        case _:  # a leg of another package
            return Look(kind, "yellow")


def origin(part: Contribution) -> str:
    """`meaning`; `meaning in episodic-vector` where the lane has a name of its own.

    >>> origin(Contribution("vector", 1, 0.9, 1.0, 0.5, "vector"))
    'meaning'
    >>> origin(Contribution("messages", 3, 7.5, 1.0, 0.5, "keyword"))
    'words in messages'
    """
    return _in_lane(look(part.kind).word, part)


def label(part: Contribution) -> str:
    """A part in a few words: a lane with the rank that it gave, an adjustment with what it went by.

    >>> label(Contribution("messages", 3, 7.5, 1.0, 0.5, "keyword"))
    'words #3 in messages'
    >>> label(Contribution("quality", 3, 0.75, 0.875, -0.1, "quality"))
    'quality 0.75'
    """
    word = look(part.kind).word
    match part.kind:
        case "exact":
            return word
        case "quality" | "rerank":
            return f"{word} {part.raw:.2f}"
        case _:
            return _in_lane(f"{word} #{part.rank}", part)


def by_share(why: Why) -> list[Contribution]:
    """The parts, the one that gave most first."""
    return sorted(why, key=lambda part: -part.contribution)


def phrase(why: Why) -> str:
    """`meaning #1, words #3, exact match`: the part that gave most first."""
    return ", ".join(label(part) for part in by_share(why))


def fate(expected: Expectation) -> str:
    """Where an expected memory was lost, or that it was found, and why.

    >>> fate(Expectation("42", "expired", "it expired on 3 May"))
    'expired, it expired on 3 May'
    """
    return f"{expected.stage}, {expected.reason}" if expected.reason else expected.stage


def _in_lane(said: str, part: Contribution) -> str:
    return said if part.lane == part.kind else f"{said} in {part.lane}"
