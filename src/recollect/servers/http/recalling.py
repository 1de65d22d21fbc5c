"""Routes that search: recall, and recipes, the ways to do it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from recollect.recipes import RECIPES
from recollect.servers.http.access import Calling, EmptyNote, Reading
from recollect.servers.http.answers import answer, ok
from recollect.servers.http.bodies import Question
from recollect.types import Recall

in_space = APIRouter(tags=["recall"])
everywhere = APIRouter(tags=["recall"])


@in_space.post(
    "/recall", summary="Ask", responses=ok(Recall, "The hits, best first, each with its reasons.", note=True)
)
async def recall(space: Reading, body: Question, empty: EmptyNote) -> Response:
    """Memories by meaning, words and links. `degraded` says that a lane did not answer, and `lanes` which and why.

    `confidence` of a hit is the probability that it answers the question; `answerable` says whether it is more likely
    than not that one of the hits does. With `min_confidence`, `nearest_miss` is the surest hit where none is left.
    """
    options = body.given()
    found = await space.recall(options.pop("query"), **options)
    return answer(found, note="" if found.hits else await empty())


@everywhere.get("/recipes", summary="The recipes", responses=ok(list[dict[str, Any]], "Each with all its settings."))
async def recipes(caller: Calling) -> Response:  # noqa: ARG001 - any known caller may ask
    return answer(list(RECIPES.values()))
