"""A `Filter` as Qdrant's conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from qdrant_client import models

from recollect.indexes.qdrant import points
from recollect.limits import utc
from recollect.types import Filter


def conditions(space: str, where: Filter) -> models.Filter:
    """The points of this space that pass the filter."""
    return models.Filter(must=[*_own(space), *_named(where), *_measured(where)])


def within(space: str) -> models.Filter:
    """All points of a space."""
    return models.Filter(must=[*_own(space)])


def outside(spaces: Sequence[str]) -> models.Filter:
    """All points of other spaces."""
    return models.Filter(must_not=[_one_of(points.SPACE, spaces)])


def _own(space: str) -> Iterator[models.Condition]:
    yield _equal(points.SPACE, space)


def _named(where: Filter) -> Iterator[models.Condition]:
    if where.kinds:
        yield _one_of(points.KIND, where.kinds)
    if where.namespaces:
        yield _one_of(points.NAMESPACE, where.namespaces)
    for tag in where.tags:
        yield _equal(points.TAGS, tag)
    if where.source_prefix:
        yield models.FieldCondition(key=points.SOURCE, match=models.MatchPrefix(prefix=where.source_prefix))
    if where.thread is not None:
        yield _equal(points.THREAD, where.thread)


def _measured(where: Filter) -> Iterator[models.Condition]:
    if where.since:
        yield _at(points.TIME, models.DatetimeRange(gte=utc(where.since)))
    if where.until:
        yield _at(points.TIME, models.DatetimeRange(lt=utc(where.until)))
    if where.min_quality is not None:
        yield _absent_or(points.QUALITY, models.Range(gte=where.min_quality))
    if not where.include_superseded:
        yield _equal(points.SUPERSEDED, False)
    if not where.include_expired:
        now = utc(where.now or datetime.now(UTC))
        yield _absent_or(points.EXPIRES_AT, models.DatetimeRange(gt=now))


def _equal(field: str, value: str | bool) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _one_of(field: str, values: Sequence[str]) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchAny(any=[*values]))


def _at(field: str, bounds: models.Range | models.DatetimeRange) -> models.FieldCondition:
    return models.FieldCondition(key=field, range=bounds)


def _absent_or(field: str, bounds: models.Range | models.DatetimeRange) -> models.Filter:
    absent = models.IsEmptyCondition(is_empty=models.PayloadField(key=field))
    return models.Filter(should=[absent, _at(field, bounds)])
