"""ProblemDetails (RFC 7807; SOL013 6.3)."""

from __future__ import annotations

from typing import Self

from kubevnfm_kit.error_text import ErrorText
from kubevnfm_kit.errors import VnfmError
from pydantic import Field

from kubevnfm_sol.base import SolType


class InvalidParam(SolType):
    """One invalid attribute of a request body; an extension of ProblemDetails."""

    name: str
    """JSON path."""
    reason: ErrorText


class ProblemDetails(SolType):
    """An error as HTTP answers it; ``status`` and ``detail`` are mandatory in SOL013 and have no default here."""

    type: str = "about:blank"
    title: str | None = None
    status: int
    detail: ErrorText
    instance: str | None = None
    # Left out when empty: `exclude_none` alone would write an empty list.
    invalid_params: tuple[InvalidParam, ...] = Field(default=(), exclude_if=lambda value: not value)
    request_id: str | None = None

    @classmethod
    def from_error(cls, error: VnfmError, *, instance: str | None = None) -> Self:
        """Return the problem of an error, without the places of an `InvalidInput`."""
        return cls(type=error.code, title=error.title, status=error.status, detail=str(error), instance=instance)
