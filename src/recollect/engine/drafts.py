"""From a caller's draft to a complete `Memory`. Raises InvalidRequest; stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, cast

from recollect.engine.ids import new_id
from recollect.errors import InvalidRequest
from recollect.limits import (
    SOURCE_CHARACTERS,
    TITLE_CHARACTERS,
    check_characters,
    check_flag,
    check_metadata,
    check_name,
    check_number,
    check_text,
    check_time,
    shown,
)
from recollect.options import Changes, MemoryFields, declared
from recollect.types import Draft, Memory

FIELDS = declared(Changes)
HITS = 2**53


def complete(space: str, draft: Draft, now: datetime) -> Memory:
    """The memory of a draft, checked and with its defaults filled in."""
    if not isinstance(draft, Draft):
        raise InvalidRequest(f"a draft must be a Draft, not {type(draft).__name__}: use Draft(text)")
    created = check_time("created_at", draft.created_at, now) or now
    thread = None if draft.thread is None else check_name("thread", draft.thread)
    if thread is None and draft.place is not None:
        raise InvalidRequest(f"place is {shown(draft.place)}, but there is no thread: set the thread too")
    return Memory(
        id=new_id() if draft.id is None else check_name("id", draft.id),
        space=space,
        text=check_text("text", draft.text),
        namespace=check_name("namespace", draft.namespace),
        kind=check_name("kind", draft.kind),
        title=_optional("title", draft.title, TITLE_CHARACTERS),
        tags=FIELDS["tags"].names(draft.tags) if draft.tags else (),
        source=_optional("source", draft.source, SOURCE_CHARACTERS),
        thread=thread,
        place=None if draft.place is None else int(FIELDS["place"].number(draft.place)),
        metadata=check_metadata(draft.metadata) if draft.metadata else {},
        created_at=created,
        updated_at=check_time("updated_at", draft.updated_at, now) or created,
        occurred_at=check_time("occurred_at", draft.occurred_at, now),
        expires_at=check_time("expires_at", draft.expires_at, now, ahead=True),
        superseded_by=_successor(draft),
        quality=None if draft.quality is None else FIELDS["quality"].number(draft.quality),
        hits=_counted("hits", draft.hits),
        last_hit_at=check_time("last_hit_at", draft.last_hit_at, now),
        used=_counted("used", draft.used),
        last_used_at=check_time("last_used_at", draft.last_used_at, now),
    )


def draft_of(text: str, fields: MemoryFields) -> Draft:
    """A draft of a text and some fields; `complete` checks their values."""
    if unknown := sorted(set(fields) - set(MemoryFields.__annotations__)):
        known = ", ".join(sorted(MemoryFields.__annotations__))
        raise InvalidRequest(f"a memory has no field {unknown[0]!r:.80}; it has: {known}")
    return Draft(text, **fields)  # type: ignore[arg-type]  # checked and converted later


def replacement(old: Memory, text: str | None, by: str | None, fields: MemoryFields) -> Draft | str:
    """What supersedes a memory: a new text, with the old memory's fields unless given, or another memory by its id."""
    if text is not None and by is None:
        kept: MemoryFields = {"namespace": old.namespace, "kind": old.kind, "tags": old.tags}
        return draft_of(text, {**kept, **fields})
    if text is None and by is not None and not fields:
        return by
    raise InvalidRequest("supersede needs either a new text, or only by=ID, the id of the memory that replaces it")


def check_changes(changes: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The changes of an update, checked as in a draft."""
    unknown = sorted(set(changes) - CHANGEABLE)
    if unknown:
        raise InvalidRequest(f"update cannot change {unknown[0]!r:.80}; it can change: {', '.join(sorted(CHANGEABLE))}")
    if not changes:
        raise InvalidRequest(f"update was given nothing to change; it can change: {', '.join(sorted(CHANGEABLE))}")
    if changes.get("place") is not None and changes.get("thread", "") is None:
        raise InvalidRequest(f"place is {changes['place']!r:.80}, but the thread is None: set the thread too")
    stand_in = Draft(**{"text": "-", "thread": "-" if changes.get("place") is not None else None, **changes})
    checked = complete("-", stand_in, now)
    return {name: getattr(checked, name) for name in changes}


CHANGEABLE = frozenset(Changes.__annotations__)


def to_draft(line: object) -> Draft:
    """A draft from a JSON object with a memory's fields; `space` and `embedding` are ignored."""
    if not isinstance(line, dict):
        raise InvalidRequest(f"a line must be a JSON object, not {type(line).__name__}")
    if unknown := sorted(set(line) - DRAFT_FIELDS - {"space", "embedding"}):
        raise InvalidRequest(f"a memory has no field {unknown[0]!r:.80}; it has: {', '.join(sorted(DRAFT_FIELDS))}")
    if "text" not in line:
        raise InvalidRequest('"text" is missing: add it')
    said = {name: value for name, value in line.items() if name in DRAFT_FIELDS and value is not None}
    check_flag("linked", said.get("linked", False))
    return Draft(**cast("dict[str, Any]", said))


DRAFT_FIELDS = frozenset(f.name for f in fields(Draft)) - {"vector"}


def _successor(draft: Draft) -> str | None:
    if draft.superseded_by is not None and draft.superseded_by == draft.id:
        raise InvalidRequest(f"memory {draft.id!r} cannot be superseded by itself")
    return None if draft.superseded_by is None else check_name("superseded_by", draft.superseded_by)


def _counted(name: str, value: object) -> int:
    return 0 if type(value) is int and value == 0 else int(check_number(name, value, 0, HITS, whole=True))


def _optional(what: str, text: object, most: int) -> str:
    if not isinstance(text, str):
        raise InvalidRequest(f"{what} must be a text, not {type(text).__name__}")
    if len(text) > most:
        raise InvalidRequest(f"{what} has {len(text):,} characters, more than the {most:,} allowed")
    return check_characters(what, text) if text else ""
