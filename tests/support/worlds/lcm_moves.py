"""Moves of an operation: a command, the reply of a twin, the next move."""

from __future__ import annotations

from typing import Any, Final

from kubevnfm_events import Envelope, Message
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.saga import Move, Saga

from worlds.lcm_builders import NOW, RING, an_operation, later

SAGA: Final = Saga(RING)


def commands_of(move: Move) -> list[Envelope[Message]]:
    return [message for message in move.messages if message.is_command]


def reread(record: OccurrenceRecord) -> OccurrenceRecord:
    """Return the record as it is read after a restart."""
    return OccurrenceRecord.from_document(record.document(RING))


def granted(draft: Any) -> Move:
    return SAGA.grant(an_operation(draft), "grant-1", NOW)


def answered(move: Move, reply: Envelope[Message], seconds: float = 1.0) -> Move:
    moved = SAGA.handle_reply(reread(move.record), reply, later(seconds))
    assert moved is not None
    return moved
