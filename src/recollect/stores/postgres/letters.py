"""Which characters are letters to the text-search parser, and so where a word of the seeds' recipes begins and ends.

Up to version 18 the parser asks the system's library under the database's LC_CTYPE, whatever provider sorts and
lowercases. Under `C` every character beyond ASCII is a letter: `“Threadline”` is one word, and `Threadline` is not
found. A private server is told better, also one that was made under `C`; for a user's own server there is a remark.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from recollect.stores.named_sql import load

if TYPE_CHECKING:
    from psycopg import AsyncConnection

LOCALES: Final = ("C.UTF-8", "en_US.UTF-8", "C")
"""What a private server's LC_CTYPE may be, the best first; the last one is known to every system."""
REMARK: Final = (
    "the LC_CTYPE of this database does not tell letters from signs: recipes that use Postgres' text search do not "
    "find words in curly quotes or beside a dash; copy the store by `recollect copy SOURCE TARGET` into a database "
    "with LC_CTYPE C.UTF-8"
)
Q = load(__name__, "letters.sql")
_log = logging.getLogger(__name__)


async def remarks(db: AsyncConnection[Any]) -> list[str]:
    """What to know about a database whose parser cannot tell letters from signs."""
    row = await (await db.execute(Q["are_known"])).fetchone()
    return [] if row and row[0] else [REMARK]


def tell_apart(dsn: str) -> None:
    """Let a private server that nobody uses yet tell letters from signs. LC_CTYPE decides about nothing but words, so
    it is changed in place, together with a note that the words of each store are to be read again (see `read_again`).
    Connections that are made afterwards follow it.
    """
    with psycopg.connect(dsn, autocommit=True) as db:
        row = db.execute(Q["are_known"]).fetchone()
        if row and row[0]:
            return
        locale = next((name for name in LOCALES[:-1] if _is_known(db, name)), None)
        if locale is None:
            _log.warning("this system has no locale that tells letters from signs: %s", REMARK)
            return
        with db.transaction():
            for (schema,) in db.execute(Q["stores"]).fetchall():
                db.execute(SQL(Q["note"]).format(schema=Identifier(schema)))
            db.execute(Q["change"], {"locale": locale})


async def read_again(db: AsyncConnection[Any]) -> None:
    """Make the words of all memories anew, in the transaction that takes the note away."""
    await db.execute(Q["read_again"])
    await db.execute(Q["forget_note"])


def _is_known(db: psycopg.Connection[Any], locale: str) -> bool:
    """Whether the system has a locale: a database with one that it lacks could not be opened any more."""
    try:
        with db.transaction(force_rollback=True):
            db.execute(SQL(Q["try"]).format(locale=Literal(locale)))
    except psycopg.Error:
        return False
    return True
