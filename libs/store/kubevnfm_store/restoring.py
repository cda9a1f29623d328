"""The marks of a restore: a document that says so, and messages whose deadlines are moved by the time that is missing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf

RESTORES: Final = "restores"
"""A collection of lcm-api with at most one document, that of the last restore."""
LAST: Final = "last"
_SESSIONS: Final = "page_sessions"
"""Another collection of lcm-api: people log in once more."""
PENDING: Final = "PENDING"
DONE: Final = "DONE"
_MOST_LATER_S: Final = 10 * 365 * 86_400.0


async def mark_restored(store: DocumentStore, *, cut_at: str, restored_at: str, is_queue_lost: bool) -> None:
    """Store that the documents were restored; ``is_queue_lost``: messages that were published are not in any outbox."""
    body = {"cutAt": cut_at, "restoredAt": restored_at, "isQueueLost": is_queue_lost, "state": PENDING}
    # Those that were ended since the backup would be open again.
    await store.delete_many(_SESSIONS, AllOf())
    await store.delete(RESTORES, LAST)
    await store.insert(RESTORES, LAST, body)


def shifted(message: JsonMapping, later_s: float) -> JsonObject:
    """Return a stored message with its deadline so much later; one that has none as it is.

    Nothing was done between the backup and the restore, so this time counts in no deadline.
    """
    return {**message, "deadline": moved(message["deadline"], later_s)} if "deadline" in message else dict(message)


def moved(deadline: object, later_s: float) -> object:
    """Return a deadline so much later; what is none as it is."""
    if not isinstance(deadline, str) or later_s <= 0:
        return deadline
    try:
        later = datetime.fromisoformat(deadline) + timedelta(seconds=min(later_s, _MOST_LATER_S))
    except (ValueError, OverflowError):
        return deadline
    return later.isoformat(timespec="microseconds").replace("+00:00", "Z")
