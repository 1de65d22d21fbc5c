"""Who calls, and how often: a request's secret to its token, and what is refused on the way."""

from __future__ import annotations

from http import HTTPStatus
from math import ceil

from recollect.engine.tokens import AsyncTokens
from recollect.errors import NotAllowed
from recollect.servers.gate.audit import Watched
from recollect.servers.gate.call import Call
from recollect.servers.gate.origins import check_host, is_loopback
from recollect.servers.gate.rates import Rates
from recollect.servers.problems import Problem, problem
from recollect.types import Token

GUESSES_PER_MINUTE = 60
"""Wrong tokens that an address may show; ten of them at once."""


class Refused(Exception):
    """A call that is not even looked at."""

    def __init__(self, problem: Problem, who: str = "unknown") -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.who = who


class Callers:
    """Knows callers by their tokens, and asks the store for each call anew: what is revoked is refused at once."""

    def __init__(self, tokens: AsyncTokens, rate: float) -> None:
        self._tokens = tokens
        self._rates = Rates(rate)
        self._guesses = Rates(GUESSES_PER_MINUTE)

    async def identify(self, call: Call) -> Watched:
        """Whose call it is. Raises NotAllowed and Refused. A right token is heard however many wrong ones came from its
        address, which others may share; and a cookie, which a browser sends by itself, is no guess.
        """
        shown = call.credentials
        if shown is None or (shown.by_cookie and not await self._tokens.required()):  # of another server, perhaps
            return await self._neighbour(call)
        try:
            token = await (self._tokens.signed_in if shown.by_cookie else self._tokens.check)(shown.secret)
        except NotAllowed:
            if not shown.by_cookie:
                if refusal := self.spent(call):
                    raise Refused(refusal) from None
                self.guessed(call)
            raise
        if refusal := self.used(token):
            raise Refused(refusal, token.id)
        return Watched(token)

    def used(self, token: Token) -> Problem | None:
        """Count one use of a token; what is said if that was one too many."""
        wait = self._rates.take(token.id)
        return too_often("this token was used too often", wait) if wait else None

    def spent(self, call: Call) -> Problem | None:
        """What is said to one more wrong token from an address that has shown too many; None if it has not."""
        wait = self._guesses.wait(call.address)
        return too_often("too many wrong tokens came from this address", wait) if wait else None

    def guessed(self, call: Call) -> None:
        """A wrong token was shown."""
        self._guesses.take(call.address)

    async def _neighbour(self, call: Call) -> Watched:
        """Somebody on this machine, as long as there are no tokens."""
        if await self._tokens.required() or not is_loopback(call.address):
            raise NotAllowed("this server asks for a token: send it as `Authorization: Bearer rc_…`", known=False)
        check_host(call.headers)
        return Watched()


def too_often(what: str, wait: float) -> Problem:
    seconds = max(ceil(wait), 1)
    return problem(HTTPStatus.TOO_MANY_REQUESTS, f"{what}: try again in {seconds} s", Retry_After=str(seconds))
