"""The reasons for which a command ends without success, each with its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
STOPPED: Final = 3
NOT_ALLOWED: Final = 4
WITHOUT_SUCCESS: Final = 5
CONFLICT: Final = 6
UNREACHABLE: Final = 7

MEANINGS: Final[Mapping[int, str]] = {
    DONE: "done",
    FAILED: "failed",
    USAGE: "wrong usage, or an ambiguous name",
    STOPPED: "the time of a wait ran out, or Ctrl-C; the operation goes on",
    NOT_ALLOWED: "not authenticated, or not allowed",
    WITHOUT_SUCCESS: "the awaited operation ended without success",
    CONFLICT: "conflict: another operation runs, or the state does not allow it",
    UNREACHABLE: "the gateway cannot be reached",
}
_CODES: Final = {401: NOT_ALLOWED, 403: NOT_ALLOWED, 409: CONFLICT, 412: CONFLICT, 502: UNREACHABLE, 504: UNREACHABLE}


class Fault(Exception):
    """A command ends with one line and an exit code."""

    code = FAILED


class UsageFault(Fault):
    """The command is not understood as it was given."""

    code = USAGE


class Stopped(Fault):
    """The time of a wait ran out."""

    code = STOPPED


class Unreachable(Fault):
    """The gateway does not answer, or the connection was lost."""

    code = UNREACHABLE


class Refused(Fault):
    """The gateway answered with an error."""

    def __init__(self, status: int, text: str, body: object = None) -> None:
        super().__init__(text)
        self.status = status
        self.body = body
        """The answer's JSON, or None."""
        self.is_older = False
        """Whether the gateway does not know what was asked, as it is older than this command line."""
        self.code = _CODES.get(status, FAILED)
