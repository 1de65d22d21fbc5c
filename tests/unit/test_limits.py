"""Every bound says one clear sentence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from recollect.engine.drafts import check_changes, complete, to_draft
from recollect.engine.ids import new_id
from recollect.errors import InvalidRequest
from recollect.limits import (
    METADATA_LEVELS,
    TEXT_BYTES,
    check_metadata,
    check_name,
    check_time,
    check_vector,
    check_vectors,
)
from recollect.options import Link, declared
from recollect.types import Draft

NOW = datetime(2026, 5, 3, tzinfo=UTC)
AFTERNOON = datetime(2026, 5, 3, 15, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (Draft(""), "text is empty"),
        (Draft(" \n\t "), "text is empty"),
        (Draft("\u200b\ufeff\u00ad"), "text is empty"),
        ("a text", "must be a Draft, not str"),
        (Draft("x", id="a", superseded_by="a"), "superseded by itself"),
        (Draft("x" * (TEXT_BYTES + 1)), "1,048,577 bytes"),
        (Draft("a\x00b"), "NUL character at position 1"),
        (Draft("a\ud800b"), "lone surrogate"),
        (Draft(7), "must be a text, not int"),  # type: ignore[arg-type]
        (Draft("x", kind=""), "kind is empty"),
        (Draft("x", kind="k" * 201), "201 characters"),
        (Draft("x", namespace="a\nb"), "control character"),
        (Draft("x", tags="billing"), "must be a list"),  # type: ignore[arg-type]
        (Draft("x", tags=("ok", "")), "tag is empty"),
        (Draft("x", tags=tuple(map(str, range(65)))), "65 tags"),
        (Draft("x", title="\x00"), "NUL"),
        (Draft("x", place=3), "there is no thread"),
        (Draft("x", thread="t", place=1.5), "whole number"),  # type: ignore[arg-type]
        (Draft("x", metadata={"a": float("nan")}), "metadata cannot be written as JSON"),
        (Draft("x", metadata={"a": object()}), "metadata cannot be written as JSON"),
        (Draft("x", metadata=[1]), "must be a JSON object"),  # type: ignore[arg-type]
        (Draft("x", metadata={"a": "b" * 300_000}), "more than the 262,144"),
        (Draft("x", occurred_at="soon"), "is not a time: write 2026-05-03"),  # type: ignore[arg-type]
        (Draft("x", quality=1.5), "from 0 to 1"),
        (Draft("x", hits=-1), "hits is -1"),
    ],
)
def test_a_bad_draft_is_refused_with_a_sentence(draft: Draft, said: str) -> None:
    """The sentence names the field and what is wrong with it."""
    with pytest.raises(InvalidRequest, match=said):
        complete("work", draft, NOW)


def test_odd_but_harmless_texts_are_taken_as_they_are() -> None:
    """Query syntax, markup and SQL are text like any other."""
    for text in ('"', "*", "NEAR(a b)", "title:x", "'; drop table memories; --", "[bold]", "🦊", "-", "日本語"):
        assert complete("work", Draft(text), NOW).text == text


def test_a_draft_is_completed() -> None:
    """Id and times are filled in, tags lose their repeats, times come out in UTC."""
    rome = timezone(timedelta(hours=2))
    memory = complete("work", Draft("x", tags=("a", "b", "a"), occurred_at=datetime(2026, 5, 3, 9, tzinfo=rome)), NOW)
    assert memory.tags == ("a", "b")
    assert memory.created_at == memory.updated_at == NOW
    assert memory.occurred_at == datetime(2026, 5, 3, 7, tzinfo=UTC)
    assert memory.embedding == "pending"


def test_ids_are_uuid7_and_increase() -> None:
    """Ids made one after the other sort in that order, and carry version 7 and the variant."""
    ids = [new_id() for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert {id[14] for id in ids} == {"7"}
    assert {id[19] for id in ids} <= set("89ab")


@pytest.mark.parametrize(
    "changes",
    [{}, {"id": "x"}, {"colour": 1}, {"text": " "}, {"tags": "x"}, {"quality": -1}, {"place": 1, "thread": None}],
)
def test_bad_changes_are_refused(changes: dict[str, object]) -> None:
    """update checks what remember checks."""
    with pytest.raises(InvalidRequest):
        check_changes(changes, NOW)


def test_good_changes_are_converted() -> None:
    """What comes back is exactly what was named, in the stored form."""
    assert check_changes({"tags": ["a", "a"], "expires_at": "2027-01-01", "thread": None}, NOW) == {
        "tags": ("a",),
        "expires_at": datetime(2027, 1, 1, tzinfo=UTC),
        "thread": None,
    }


@pytest.mark.parametrize("line", [[], "x", 3, None, {}, {"title": "no text"}, {"text": "x", "colour": "red"}])
def test_a_line_that_is_no_memory_is_refused(line: object) -> None:
    """A JSON value that is not an object with a text, or has fields that no memory has."""
    with pytest.raises(InvalidRequest):
        to_draft(line)


@pytest.mark.parametrize("strength", [0, -1, 1.01, float("nan"), float("inf"), True, "1"])
def test_strengths_are_above_0_and_at_most_1(strength: object) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidRequest, match="strength"):
        declared(Link)["strength"].number(strength)


@pytest.mark.parametrize("vector", [[], [[1.0]], ["a"], [0.0, 0.0], [float("nan"), 1], [float("inf"), 1], [1, 2, 3]])
def test_bad_vectors_are_refused(vector: object) -> None:
    """Wrong shape, wrong dimension, nothing to normalise."""
    with pytest.raises(InvalidRequest, match="vector"):
        check_vector(vector, 2)


def test_a_vector_is_brought_to_length_1() -> None:
    """3, 4 becomes 0.6, 0.8."""
    assert np.allclose(check_vector([3, 4], 2), [0.6, 0.8])


@pytest.mark.parametrize("others", [[[1.0, 0]], [np.array([2.0, 2])], []])
def test_many_vectors_are_checked_as_one_is(others: list[object]) -> None:
    """Together or one by one, the wrong one is what is said; without dimensions to keep to any length will do."""
    made = check_vectors([*others, [3, 4]], 2)
    assert np.allclose(made, [check_vector(one, 2) for one in (*others, [3, 4])])
    assert all(one.dtype == np.float32 for one in made)
    for wrong, what in (([], "one list"), ([1, 2, 3], "3 dimensions"), ([0, 0], "finite"), (["a", 1], "numbers")):
        with pytest.raises(InvalidRequest, match=what):
            check_vectors([*others, wrong], 2)
    assert [one.size for one in check_vectors([[1], [1, 2]], None)] == [1, 2]


@pytest.mark.parametrize("levels", [64, 65, 900, 100_000])
def test_metadata_may_be_nested_sixty_four_deep(levels: int) -> None:
    """One level more is refused, however much deeper it goes: what is stored can be written by every door."""
    metadata: dict[str, object] = {}
    for _ in range(levels - 1):
        metadata = {"a": metadata}
    if levels <= METADATA_LEVELS:
        assert check_metadata(metadata) == metadata
    else:
        with pytest.raises(InvalidRequest, match=r"metadata is nested deeper|metadata cannot be written"):
            check_metadata(metadata)


def test_metadata_is_a_copy() -> None:
    """Changing what was given does not change what was remembered."""
    inner = {"n": 1}
    copy = check_metadata({"a": inner})
    inner["n"] = 2
    assert copy == {"a": {"n": 1}}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2026-05-01", "2026-05-01T00:00:00+00:00"),
        ("2026-05-01T10:30", "2026-05-01T10:30:00+00:00"),
        ("2026-05-01t10:30z", "2026-05-01T10:30:00+00:00"),
        ("2026-05-01T10:30:00+02:00", "2026-05-01T08:30:00+00:00"),
        ("30m", "2026-05-03T14:45:00+00:00"),
        ("12h", "2026-05-03T03:15:00+00:00"),
        ("7d", "2026-04-26T15:15:00+00:00"),
        ("2w", "2026-04-19T15:15:00+00:00"),
        ("now", "2026-05-03T15:15:00+00:00"),
        (" Today ", "2026-05-03T00:00:00+00:00"),
        ("yesterday", "2026-05-02T00:00:00+00:00"),
        ("tomorrow", "2026-05-04T00:00:00+00:00"),
    ],
)
def test_times_as_people_write_them(said: str, meant: str) -> None:
    """Dates, times, spans back from now, and words; UTC where no zone is named."""
    moment = check_time("since", said, AFTERNOON)
    assert moment is not None
    assert moment.isoformat() == meant


def test_an_expiry_counts_on_from_now() -> None:
    """And what happened counts back."""
    memory = complete("work", Draft("x", occurred_at="7d", expires_at="7d"), AFTERNOON)  # type: ignore[arg-type]
    assert memory.occurred_at == AFTERNOON - timedelta(days=7)
    assert memory.expires_at == AFTERNOON + timedelta(days=7)
    assert check_changes({"expires_at": "12h"}, AFTERNOON) == {"expires_at": AFTERNOON + timedelta(hours=12)}


@pytest.mark.parametrize("said", ["soon", "7", "-7d", "7 days", "2026-13-01", "", 7, True])
def test_a_refused_time_names_the_forms(said: object) -> None:
    """All of them: who wrote another one need not look them up."""
    with pytest.raises(InvalidRequest, match=r"^since .*write 2026-05-03, 2026-05-03T10:00Z, 30m, 12h, 7d, 2w, now"):
        check_time("since", said, AFTERNOON)


def test_a_time_beyond_the_calendar_is_refused() -> None:
    """Converting to UTC can leave the years 1 to 9999."""
    with pytest.raises(InvalidRequest, match="within the years"):
        check_time("since", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), NOW)
    with pytest.raises(InvalidRequest, match="within the years"):
        check_time("since", "999999w", NOW)


def test_a_name_is_not_only_blanks() -> None:
    """A space called "  " would be a space nobody finds again."""
    with pytest.raises(InvalidRequest, match="space is empty"):
        check_name("space", "  ")
