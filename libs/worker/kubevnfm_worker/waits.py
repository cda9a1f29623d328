"""The wait of a command after a try."""

from __future__ import annotations

from datetime import datetime

from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import VnfmError

from kubevnfm_worker.inbox import Wait


def after_error(before: Wait | None, error: VnfmError, now: datetime) -> Wait:
    """Return the wait of a command that is tried again: since the first error in the row."""
    is_in_row = before is not None and before.code != ""
    return Wait(before.since if before is not None and is_in_row else now, str(error), error.code)


def of_handler(before: Wait | None, reason: str, now: datetime) -> Wait | None:
    """Return the wait of a handler to which nothing has failed, since it said first the same; None without a reason."""
    if not reason:
        return None
    said = bounded(reason)  # it is stored, and may quote what foreign programs say
    is_same = before is not None and (before.reason, before.code) == (said, "")
    return before if is_same else Wait(now, said)
