"""The base of every error that a caller can act on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kubevnfm_kit.error_text import bounded


class VnfmError(Exception):
    """Something went wrong that the caller can name and act on.

    A subclass sets what differs from its base as keywords: ``class QuotaExceeded(VnfmError, code="quota-exceeded")``. It keeps
    its facts as attributes. The message is one sentence for a person; it never holds a secret. Its text is `bounded`, because
    it is stored, published and logged.
    """

    code: ClassVar[str] = "vnfm-error"
    """A stable slug: in events, and as ProblemDetails ``type``."""
    title: ClassVar[str] = "VNFM error"
    """The layer that failed."""
    retryable: ClassVar[bool] = False
    """Whether the same request may work later."""
    status: ClassVar[int] = 422
    """``error.status`` of an operation that ends in this error (HTTP semantics, api.md 4.6); 500 for a fault of our own."""
    template: ClassVar[str] = ""
    """The text of a `PlacedError`."""
    is_said: ClassVar[bool] = False
    """Whether the outage that it comes from is in the log already (`outages`), so that no other line needs to say it."""
    made_nothing: bool = False
    """Whether the work failed before it changed anything outside; False if that is not known."""

    def __init_subclass__(
        cls,
        *,
        code: str | None = None,
        title: str | None = None,
        status: int | None = None,
        retryable: bool | None = None,
        template: str | None = None,
        is_said: bool | None = None,
    ) -> None:
        super().__init_subclass__()
        given = {"code": code, "title": title, "status": status, "retryable": retryable, "template": template}
        given["is_said"] = is_said
        for name, value in given.items():
            if value is not None:
                setattr(cls, name, value)

    def __str__(self) -> str:
        return bounded(super().__str__())


class PlacedError(VnfmError, template="{place}: {reason}"):
    """An error at a ``place`` (a server, a policy, a task) for a ``reason``. ``template`` makes the text of both."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(self.template.format(place=place, reason=reason))
        self.place, self.reason = place, reason


class NotFound(VnfmError, code="not-found", title="Not found", status=404):
    """The requested object does not exist."""


class Conflict(VnfmError, code="conflict", title="Conflict", status=409):
    """The request does not fit the present state."""


class PreconditionFailed(VnfmError, code="precondition-failed", title="Precondition failed", status=412):
    """The resource has changed since the caller read it."""


class BeingRemoved(Conflict, code="being-removed", title="Being removed", retryable=True):
    """The object is being removed; once it is gone, another one of its name can be created."""


class IdempotencyKeyReused(Conflict, code="idempotency-key-reused", title="Idempotency-Key reused"):
    """The Idempotency-Key was used before with another body."""


class InUse(Conflict, code="in-use", title="In use"):
    """Other objects depend on what is to be removed; ``holders``: at most 100 of its ``holder_count`` users."""

    def __init__(self, detail: str, holders: Sequence[str] = (), holder_count: int | None = None) -> None:
        super().__init__(detail)
        self.holders = tuple(holders[:100])
        self.holder_count = len(holders) if holder_count is None else holder_count


class InvalidInput(VnfmError, code="invalid-input", title="Invalid input", status=400):
    """The caller's input is malformed: ``field`` (a JSON path) says where, ``reason`` what was expected; ``more``: so elsewhere too."""

    def __init__(self, field: str, reason: str, *more: tuple[str, str]) -> None:
        self.field, self.reason, self.places = field, reason, ((field, reason), *more)
        super().__init__("; ".join(f"{name}: {why}" if name else why for name, why in self.places))


class Unprocessable(InvalidInput, code="unprocessable", title="Unprocessable request", status=422):
    """The input is well-formed but cannot work here: it contradicts the package, the VIM or another value."""


class ConflictingInput(InvalidInput, code="conflict", title="Conflict", status=409):
    """The input contradicts what exists: ``field`` says where."""


class OutsideUnavailable(
    VnfmError, code="outside-unavailable", title="Outside system unavailable", status=503, retryable=True
):
    """Something outside (VIM, machine, broker, database) does not answer now; later it may."""


class TimedOut(VnfmError, code="timed-out", title="Deadline passed", status=504):
    """A deadline passed before the work was done."""
