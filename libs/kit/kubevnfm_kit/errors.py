"""The base of every error that a caller can act on."""

from __future__ import annotations

from typing import ClassVar

from kubevnfm_kit.error_text import bounded


class VnfmError(Exception):
    """Something went wrong that the caller can name and act on.

    Subclasses set ``code`` (stable slug, in events and as ProblemDetails ``type``), ``title`` (the layer that failed)
    and ``retryable`` (would the same request work later?), and keep their facts as attributes. The message is one
    sentence for a person; it never holds a secret. Its text is `bounded`, because it is stored, published and logged.
    """

    code: ClassVar[str] = "vnfm-error"
    title: ClassVar[str] = "VNFM error"
    retryable: ClassVar[bool] = False
    status: ClassVar[int] = 422
    """``error.status`` of an operation that ends in this error (HTTP semantics, api.md 4.6); 500 for a fault of our own."""
    made_nothing: bool = False
    """Whether the work failed before it changed anything outside; False if that is not known."""

    def __str__(self) -> str:
        return bounded(super().__str__())


class PlacedError(VnfmError):
    """An error at a ``place`` (a server, a policy, a task) for a ``reason``. ``template`` makes the text of both."""

    template: ClassVar[str] = "{place}: {reason}"

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(self.template.format(place=place, reason=reason))
        self.place, self.reason = place, reason


class NotFound(VnfmError):
    """The requested object does not exist."""

    code = "not-found"
    title = "Not found"
    status = 404


class Conflict(VnfmError):
    """The request does not fit the present state."""

    code = "conflict"
    title = "Conflict"
    status = 409


class InvalidInput(VnfmError):
    """The caller's input is malformed: ``field`` (a JSON path) says where, ``reason`` what was expected; ``more``: so elsewhere too."""

    code = "invalid-input"
    title = "Invalid input"
    status = 400

    def __init__(self, field: str, reason: str, *more: tuple[str, str]) -> None:
        self.field, self.reason, self.places = field, reason, ((field, reason), *more)
        super().__init__("; ".join(f"{name}: {why}" if name else why for name, why in self.places))


class Unprocessable(InvalidInput):
    """The input is well-formed but cannot work here: it contradicts the package, the VIM or another value."""

    code = "unprocessable"
    title = "Unprocessable request"
    status = 422


class OutsideUnavailable(VnfmError):
    """Something outside (VIM, machine, broker, database) does not answer now; later it may."""

    code = "outside-unavailable"
    title = "Outside system unavailable"
    retryable = True
    status = 503


class TimedOut(VnfmError):
    """A deadline passed before the work was done."""

    code = "timed-out"
    title = "Deadline passed"
    status = 504
