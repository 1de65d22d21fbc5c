"""Buckets of usage as rows of tables and back, for every store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from recollect.types import Bucket, LegUsage, Usage


def recall_rows(buckets: Sequence[Bucket]) -> list[tuple[datetime, int, int, int]]:
    """Hour, recalls, degraded, failed; in one order, so that two who count do not wait for each other in a circle."""
    return sorted((hour, counted.recalls, counted.degraded, counted.failed) for hour, counted in buckets)


def leg_rows(buckets: Sequence[Bucket]) -> list[tuple[Any, ...]]:
    """Hour, leg, and the numbers of `LegUsage` in its order; in one order, too."""
    return sorted((hour, leg, *astuple(did)) for hour, counted in buckets for leg, did in counted.legs.items())


def buckets_of(rows: Iterable[tuple[Any, ...]]) -> list[Bucket]:
    """From rows of hour, recalls, degraded, failed, and one leg's name and numbers (or nothing), in order of the
    hours.
    """
    return [_bucket(list(of_hour)) for _, of_hour in groupby(rows, key=itemgetter(0))]


def _bucket(rows: Sequence[tuple[Any, ...]]) -> Bucket:
    hour, recalls, degraded, failed, *_ = rows[0]
    legs = {leg: LegUsage(*numbers) for _, _, _, _, leg, *numbers in rows if leg is not None}
    return Bucket(hour, Usage(recalls, degraded, failed, legs))
