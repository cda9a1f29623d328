"""Stops the work of a cancelled command."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from kubevnfm_events import Envelope, Message
from kubevnfm_kit.errors import VnfmError

from kubevnfm_worker.failure import StepCancelled
from kubevnfm_worker.outcome import AbortHandler, StepContext

log = structlog.get_logger()


async def aborted(
    abort: AbortHandler[Any] | None, command: Envelope[Message], context: StepContext, *, within_s: float
) -> StepCancelled:
    """Return the end of a command after its abort handler has stopped the outside system's work, if it has one."""
    if abort is None:
        return StepCancelled(None)
    stopping = asyncio.ensure_future(abort(command.data, context))
    try:
        done, _ = await asyncio.wait({stopping}, timeout=within_s)
        if not done:
            log.warning("abort_given_up", type=command.type, message_id=command.id)
            return StepCancelled(None)
        return StepCancelled(stopping.result())
    except VnfmError as error:
        log.warning("abort_failed", type=command.type, reason=str(error))
        return StepCancelled(None)
    finally:
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
