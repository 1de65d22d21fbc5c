"""Which characters the text-search parser takes for letters, which decides where a word begins and ends.

Up to version 18 the parser asks the system's library under the database's LC_CTYPE, whatever the locale provider. Under
`C` every character beyond ASCII is a letter: `“Threadline”` is one word, and `Threadline` is not found. We change the
LC_CTYPE of a private server; for other servers `remarks` says what to do.
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
"""The LC_CTYPE of a private server, best first; every system has the last one."""
REMARK: Final = (
    "the LC_CTYPE of this database does not tell letters from signs, so recipes that use Postgres' text search miss "
    "words in curly quotes or beside a dash: copy the store with `recollect copy SOURCE TARGET` into a database with "
    "LC_CTYPE C.UTF-8"
)
Q = load(__name__, "letters.sql")
_log = logging.getLogger(__name__)


async def remarks(db: AsyncConnection[Any]) -> list[str]:
    """A remark if the database's parser cannot tell letters from signs."""
    row = await (await db.execute(Q["are_known"])).fetchone()
    return [] if row and row[0] else [REMARK]


def set_locale(dsn: str) -> None:
    """Change the LC_CTYPE of a private server that just started, if it cannot tell letters from signs. It affects only
    words, so it is changed in place, and each store gets a note that its words must be rebuilt (see `read_again`).
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
    """Rebuild the words of all memories and remove the note, in the caller's transaction."""
    await db.execute(Q["read_again"])
    await db.execute(Q["forget_note"])


def _is_known(db: psycopg.Connection[Any], locale: str) -> bool:
    """Whether the system has a locale. A database with a missing one could not be opened."""
    try:
        with db.transaction(force_rollback=True):
            db.execute(SQL(Q["try"]).format(locale=Literal(locale)))
    except psycopg.Error:
        return False
    return True
