"""*Health*: whether the engines answer, and how a space was used."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from starlette.responses import Response

from recollect.client import AsyncRecollect
from recollect.engine.doctor import Check
from recollect.errors import BackendError
from recollect.ports import Lag
from recollect.servers.caller import outlined
from recollect.servers.dashboard import charts
from recollect.servers.dashboard.lanes import LaneMeter
from recollect.servers.dashboard.shell import Visit
from recollect.servers.slots import slotted
from recollect.space import AsyncSpace

REFRESH_SECONDS = 5
SPANS = {"24h": "day", "7d": "week", "4w": "four weeks", "52w": "year"}
STORE = "store"


class EngineState(NamedTuple):
    """An engine, whether it answers, and how far it lags behind."""

    name: str
    ok: bool
    detail: str
    lag: Lag | None = None


class Health:
    """The view, and what it has heard of a client's recalls."""

    def __init__(self, client: AsyncRecollect) -> None:
        self._lanes = LaneMeter(client)

    async def show(self, visit: Visit) -> Response:
        """The page, which a script asks for again and again while it is open."""
        where = await visit.where()
        since = visit.asked("since", "7d")
        seen = await engines(visit.client, told=visit.caller.may("admin"))
        down = [engine.name for engine in seen if not engine.ok]
        return visit.page(
            "health.html",
            where=where,
            since=since,
            spans=SPANS,
            refresh=REFRESH_SECONDS,
            now=datetime.now(UTC),
            engines=seen,
            down=down,
            lanes=self._lanes.rows(where.space),
            lanes_since=self._lanes.since,
            **({"used": None} if STORE in down else await usage(visit.client.space(where.space), since)),
        )


async def usage(space: AsyncSpace, since: str) -> dict[str, Any]:
    """How a space was used, as charts."""
    used = await space.usage(since)
    _, slots = slotted(used, datetime.now(UTC), charts.SLOTS)
    rows, answers = charts.leg_rows(used.total, slots), charts.answers(slots)
    return {"used": used, "slots": slots, "rows": rows, "answers": answers}


async def engines(client: AsyncRecollect, *, told: bool) -> list[EngineState]:
    """Each engine's state. Only callers that administer all spaces see what it reports, and how far it lags."""
    checks = (await client.ready()).checks
    lags: dict[str, Lag] = {}
    if told and all(check.ok for check in checks if check.name == STORE):
        try:
            lags = await client.lag()
        except BackendError as error:
            checks = (*checks, Check("outbox", False, str(error)))
    shown = checks if told else outlined(checks)
    return [EngineState(check.name, check.ok, check.detail, lags.get(check.name)) for check in shown]
