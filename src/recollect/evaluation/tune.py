"""What judged questions say about a recipe: which settings answer them better, and from which confidence on a hit can
be relied on. A user judges them in a folder, or by what was used after it was recalled (from_use.py). Nothing changes
that is not proven.

candidates   the recipe with one setting changed at a time: what a leg weighs, how far the reranker is trusted
chosen       by cross-validation: the best on four fifths of the questions, judged on the fifth that it has not seen
gain         with its bootstrap interval over the unseen questions; an interval that holds 0 is no gain
threshold    split conformal: of the questions that have an answer, all but the wanted share stay above it
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, Protocol

from recollect.engine.query import with_own
from recollect.errors import ConfigError, InvalidRequest
from recollect.evaluation.calibration import Judged
from recollect.evaluation.compare import Interval, paired_bootstrap
from recollect.evaluation.from_use import ask_again
from recollect.evaluation.run import OnProgress, evaluate
from recollect.recipes import RECIPES, Recipe, recipe
from recollect.settings import Settings

FOLDS = 5
LEAST_QUESTIONS = 30
"""Below so many, chance decides which setting looks best."""
LEAST_FOR_THRESHOLD = 50
FACTORS = (0.5, 0.75, 1.5, 2.0)
"""What a weight is multiplied by."""
TRUSTS = (0.0, 0.5, 2.0)
"""What the trust in a reranker is multiplied by."""
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A key that TOML takes without quotes."""


class Candidate(NamedTuple):
    """A recipe with one setting changed, and that change as `recollect.toml` writes it."""

    recipe: Recipe
    changes: Mapping[str, Any]


class Answered(Protocol):
    """How a recipe answered some questions: nDCG@10 of each, and whether its best hit was right."""

    @property
    def ndcg(self) -> Sequence[float]: ...

    @property
    def best(self) -> Sequence[Judged]: ...


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was found. No `changes`: nothing is proven to be better. No `threshold`: there are too few questions."""

    base: str
    questions: int
    changes: Mapping[str, Any]
    gain: Interval | None
    threshold: float | None
    error: float
    said: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "base": self.base,
            "questions": self.questions,
            "changes": dict(self.changes),
            "gain": None if self.gain is None else self.gain._asdict(),
            "min_confidence": self.threshold,
            "error": self.error,
            "said": list(self.said),
        }


async def tune(
    folder: Path | str,
    *,
    base: str | Recipe = "balanced",
    error: float = 0.1,
    embedder: str | None = None,
    store_url: str | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Tuned:
    """Fit what may be fitted to the judged questions in a folder. `error` is the share of right answers that may stay
    below the threshold.
    """

    def ask(recipes: Sequence[Recipe]) -> Awaitable[Sequence[Answered]]:
        return evaluate(
            folder, recipes=recipes, embedder=embedder or "local", store_url=store_url, on_progress=on_progress
        )

    return await _fitted(base, error, ask)


async def tune_from_use(
    space: str,
    *,
    base: str | Recipe = "balanced",
    error: float = 0.1,
    embedder: str | None = None,
    store_url: str | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Tuned:
    """Fit what may be fitted to the questions of a space that led to a use, each answered by what was of use."""

    def ask(recipes: Sequence[Recipe]) -> Awaitable[Sequence[Answered]]:
        return ask_again(space, recipes, store_url=store_url, embedder=embedder, on_progress=on_progress)

    return await _fitted(base, error, ask)


async def _fitted(
    base: str | Recipe, error: float, ask: Callable[[Sequence[Recipe]], Awaitable[Sequence[Answered]]]
) -> Tuned:
    """What the answers by each candidate say."""
    if not 0 < error < 1:
        raise InvalidRequest(f"error must be between 0 and 1, not {error!r}: 0.1 is one question in ten")
    start = recipe(base, with_own(Settings.load().recipe))
    tried = [Candidate(start, {}), *candidates(start)]
    results = await ask([one.recipe for one in tried])
    scores = [result.ndcg for result in results]
    gain, chosen, said = choose(scores)
    right = [judged.confidence for judged in results[chosen].best if judged.right]
    threshold, why = conformal(right, error)
    return Tuned(start.name, len(scores[0]), tried[chosen].changes, gain, threshold, error, (said, why))


def candidates(start: Recipe) -> list[Candidate]:
    """The recipe with one setting changed at a time."""
    found = []
    for lane in start.lanes:
        for factor in FACTORS:
            weights = {lane.name: round(lane.weight * factor, 4)}
            found.append(Candidate(start.with_(weights=weights), {"weights": weights}))
    if how := start.rerank:
        for factor in TRUSTS:
            trust = {"turns": round(how.turns * factor, 4), "rest": round(how.rest * factor, 4)}
            found.append(Candidate(start.with_(rerank=trust), {"rerank": trust}))
    return found


def choose(scores: Sequence[Sequence[float]]) -> tuple[Interval | None, int, str]:
    """The gain on questions that were not chosen by, which candidate has it, and that in words. `scores` has a row for
    each candidate and a column for each question; the first row is the recipe as it is.
    """
    count = len(scores[0])
    if count < LEAST_QUESTIONS:
        more = LEAST_QUESTIONS - count
        return None, 0, f"{count} questions are too few to choose settings by: {more} more are needed"
    unseen = list(scores[0])
    for fold in range(FOLDS):
        best = _best(scores, [at for at in range(count) if at % FOLDS != fold])
        for at in range(fold, count, FOLDS):
            unseen[at] = scores[best][at]
    gain = paired_bootstrap(scores[0], unseen)
    if gain.low <= 0:
        span = f"95 % within {gain.low:+.3f} and {gain.high:+.3f}"
        return (
            gain,
            0,
            f"no setting is proven to be better: {gain.difference:+.3f} nDCG@10 on unseen questions ({span})",
        )
    chosen = _best(scores, range(count))
    return gain, chosen, f"{gain.difference:+.3f} nDCG@10 on unseen questions, at least {gain.low:+.3f} with 95 %"


def _best(scores: Sequence[Sequence[float]], questions: Sequence[int]) -> int:
    """The candidate with the best mean on these questions; the first of equals, so that nothing changes for nothing."""
    means = [fmean(row[at] for at in questions) for row in scores]
    return means.index(max(means))


def conformal(right: Sequence[float], error: float) -> tuple[float | None, str]:
    """The confidence that right answers reach in all but `error` of the cases, and that in words.

    The k-th smallest of n confidences of right answers, k = floor(error (n + 1)): the next right answer is below it
    with a probability of at most `error`, if it comes from where these came from, whatever the confidences mean (Vovk
    et al., 2005; Angelopoulos and Bates, 2021).

    >>> conformal([place / 100 for place in range(1, 100)], 0.1)[0]
    0.1
    """
    count = len(right)
    if count < LEAST_FOR_THRESHOLD:
        more = LEAST_FOR_THRESHOLD - count
        return None, f"{count} right answers are too few for a threshold: {more} more are needed"
    place = floor(error * (count + 1))
    if place < 1:
        return None, f"an error of {error:g} takes {ceil(1 / error) - 1} right answers; there are {count}"
    tighter = max(error / 2, 0.01)
    needed = max(ceil(LEAST_FOR_THRESHOLD * error / tighter) - count, 0)
    advice = f"; for an error of {tighter:g}, {needed} more right answers would do" if needed else ""
    said = f"a right answer stays above min_confidence in {1 - error:.0%} of the cases, by {count} of them{advice}"
    return sorted(right)[place - 1], said


def as_toml(name: str, tuned: Tuned) -> str:
    """The table that `recollect.toml` takes.

    >>> print(as_toml("mine", Tuned("balanced", 80, {"weights": {"keyword": 0.5}}, None, 0.21, 0.1, ())))
    [recipe.mine]
    base = "balanced"
    weights = { keyword = 0.5 }
    min_confidence = 0.21
    """
    lines = [f"[recipe.{name}]", f'base = "{tuned.base}"']
    for setting, values in tuned.changes.items():
        lines.append(f"{setting} = {{ {', '.join(f'{key} = {value}' for key, value in values.items())} }}")
    if tuned.threshold is not None:
        lines.append(f"min_confidence = {round(tuned.threshold, 4)}")
    return "\n".join(lines)


def check_new_name(name: str, base: str) -> None:
    """Raises InvalidRequest for a name that the recipe tuned from `base` cannot have."""
    if not NAME.fullmatch(name):
        raise InvalidRequest(
            f"the name of a recipe is {name!r:.80}, and must be 1 to 64 letters (a-z), digits, hyphens or underscores"
        )
    if name in RECIPES:
        raise InvalidRequest(f"{name!r} is a built-in recipe: give the new recipe another name")
    if name == base:
        raise InvalidRequest(f"{name!r} is the recipe to start from: give the new recipe another name")


def write_recipe(file: Path, name: str, table: str) -> None:
    """Put the table of a recipe into a `recollect.toml`, in the place of one of the same name. Raises ConfigError, and
    leaves the file as it was, where it cannot be changed without changing anything else.
    """
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    after = with_table(before, name, table)
    try:
        old, new = tomllib.loads(before), tomllib.loads(after)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} cannot take [recipe.{name}]: {error}; write it there yourself") from None
    with_own(new["recipe"])
    for tables in (old.setdefault("recipe", {}), new["recipe"]):
        tables.pop(name, None)
    if old != new:
        raise ConfigError(f"{file} holds [recipe.{name}] among other settings: replace it there yourself")
    file.write_text(after, encoding="utf-8")


def with_table(text: str, name: str, table: str) -> str:
    r"""The text of a `recollect.toml` with this table of a recipe, instead of the one that it had.

    >>> with_table("[recipe.a]\nbase = 'sci'\n\n# ours\n[postgres]\n", "a", "[recipe.a]")
    '[recipe.a]\n\n# ours\n[postgres]\n'
    """
    header = rf"^[ \t]*\[[ \t]*recipe[ \t]*\.[ \t]*{name}[ \t]*[].].*\n?"
    lines = r"(?:(?:[ \t]*(?:#.*)?\n)*(?![ \t]*[\[#\n]).+\n?)*"  # a comment above the next table belongs to that one
    own = re.compile(header + lines, re.MULTILINE)
    found = own.search(text)
    if found is None:
        return f"{text.rstrip()}\n\n{table}\n".lstrip()
    return f"{text[: found.start()]}{table}\n{own.sub('', text[found.end() :])}"
