"""Live spans: how long a request, a message, a write or a call outside took, measured where it happens (ADR 18).

Each has the derived span of its step as its parent, or the request that it belongs to; work without either has none. Nothing is
recorded unless `recording` or `sending` is entered, and then a site costs about a microsecond. No library of OpenTelemetry is
imported before (`opentelemetry_spans`): that takes a tenth of the start.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, Token
from functools import partial
from typing import Final, Literal, Protocol, Self, TypeVar

import structlog
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.otlp_settings import OtlpSettings
from kubevnfm_kit.traces import TraceContext, is_in_ratio, operation_trace_id, read_traceparent

log = structlog.get_logger()

T = TypeVar("T")
Kind = Literal["server", "client", "producer", "consumer"]
Value = str | int
"""Ids, kinds and states; never a body, a URL with its query, or a text of a machine."""
_CANCELLED: Final = "cancelled"


class Measured(Protocol):
    """A span that has begun."""

    @property
    def context(self) -> TraceContext:
        """Its ids."""
        ...

    def note(self, name: str, value: Value) -> None:
        """Add an attribute."""
        ...

    def end(self, error_type: str) -> None:
        """End it; empty: without an error."""
        ...


class Recorder(Protocol):
    """Begins spans."""

    @property
    def ratio(self) -> float:
        """The part of the traces that is recorded, where no caller decides."""
        ...

    def begin(
        self,
        name: str,
        kind: Kind,
        attributes: Mapping[str, Value],
        *,
        parent: TraceContext | None,
        link: TraceContext | None,
    ) -> Measured:
        """Begin a span."""
        ...


class _Switch:
    """Holds the recorder of this process."""

    recorder: Recorder | None = None


_SWITCH: Final = _Switch()


class _Place:
    """The parent of the spans of a piece of work. Work that outlives it has none: it would never arrive."""

    __slots__ = ("context", "has_ended")

    def __init__(self, context: TraceContext) -> None:
        self.context, self.has_ended = context, False


_PLACE: ContextVar[_Place | None] = ContextVar("live_span", default=None)


class LiveSpan:
    """A span as its site sees it: a context manager. This one records nothing."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        pass

    @property
    def context(self) -> TraceContext | None:
        """Its ids; None if it is not recorded."""
        return None

    def note(self, name: str, value: Value) -> None:
        """Add an attribute."""

    def failed(self, error_type: str) -> None:
        """Note the kind of a failure that is no exception."""


class _Recorded(LiveSpan):
    __slots__ = ("_error_type", "_measured")

    def __init__(self, measured: Measured) -> None:
        self._measured, self._error_type = measured, ""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        # The kind alone: texts of errors quote machines and requests.
        self._measured.end(self._error_type if error is None else error_type_of(error))

    @property
    def context(self) -> TraceContext | None:
        return self._measured.context

    def note(self, name: str, value: Value) -> None:
        self._measured.note(name, value)

    def failed(self, error_type: str) -> None:
        self._error_type = error_type


class _Under:
    """Binds a place while its block lasts."""

    __slots__ = ("_place", "_token")

    def __init__(self, context: TraceContext | None) -> None:
        self._place = None if context is None else _Place(context)

    def __enter__(self) -> None:
        self._token: Token[_Place | None] = _PLACE.set(self._place)

    def __exit__(self, *failure: object) -> None:
        _PLACE.reset(self._token)
        if self._place is not None:
            self._place.has_ended = True


class _Unbound:
    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *failure: object) -> None:
        pass


NOT_RECORDED: Final = LiveSpan()
"""The span of a site while nothing is recorded."""
_UNBOUND: Final = _Unbound()


def is_on() -> bool:
    """Return whether spans are recorded."""
    return _SWITCH.recorder is not None


def present() -> TraceContext | None:
    """Return what a span that begins now has as its parent."""
    place = _PLACE.get()
    return None if place is None or place.has_ended else place.context


def under(context: TraceContext | None) -> _Under | _Unbound:
    """Let spans that begin in the block, and in tasks that are begun in it, have this parent while the block lasts.

    None, or one that is not sampled: they are not recorded.
    """
    if _SWITCH.recorder is None:
        return _UNBOUND
    return _Under(context if context is not None and context.is_sampled else None)


def span(
    name: str,
    kind: Kind,
    attributes: Mapping[str, Value],
    *,
    parent: TraceContext | None = None,
    link: TraceContext | None = None,
) -> LiveSpan:
    """Return a span, which begins now: below ``parent``, else below the present one. Without either it is not recorded.

    Below one that is not sampled it costs as little as without a recorder: that is the usual case.
    """
    recorder = _SWITCH.recorder
    if recorder is None or (parent := parent or present()) is None or not parent.is_sampled:
        return NOT_RECORDED
    return _Recorded(recorder.begin(name, kind, attributes, parent=parent, link=link))


def root_span(name: str, kind: Kind, attributes: Mapping[str, Value], caller: TraceContext | None) -> LiveSpan:
    """Return a span, which begins now: in the trace of the caller, else in a new one."""
    recorder = _SWITCH.recorder
    if recorder is None or not (caller.is_sampled if caller is not None else _is_chosen(recorder.ratio)):
        return NOT_RECORDED
    return _Recorded(recorder.begin(name, kind, attributes, parent=caller, link=None))


def _is_chosen(ratio: float) -> bool:
    return random.random() < ratio  # noqa: S311 - no secret


def derived_parent(traceparent: str, operation_id: str) -> TraceContext | None:
    """Return the derived span that a message names; the ratio decides on the traces that belong to an operation alone."""
    recorder, found = _SWITCH.recorder, read_traceparent(traceparent)
    if recorder is None or found is None or not found.is_sampled or found.trace_id != operation_trace_id(operation_id):
        return found
    return TraceContext(found.trace_id, found.span_id, is_in_ratio(found.trace_id, recorder.ratio))


def carried(work: Callable[[], T]) -> Callable[[], T]:
    """Return the work with the present parent, for a pool of threads."""
    return work if _SWITCH.recorder is None else partial(contextvars.copy_context().run, work)


def error_type_of(error: BaseException) -> str:
    """Return the attribute ``error.type``."""
    if isinstance(error, asyncio.CancelledError):
        return _CANCELLED
    return error.code if isinstance(error, VnfmError) else type(error).__name__


async def send_parent(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Name the present parent in a call of another service: a middleware of aiohttp's clients."""
    if _SWITCH.recorder is not None and (parent := present()) is not None:
        request.headers["traceparent"] = str(parent)
    return await handler(request)


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Record the spans that begin in the block, in the whole process."""
    before, _SWITCH.recorder = _SWITCH.recorder, recorder
    try:
        yield
    finally:
        _SWITCH.recorder = before


@asynccontextmanager
async def sending(settings: OtlpSettings, service: str) -> AsyncIterator[None]:
    """Record the spans that begin in the block, and send them to the collector; nothing without one.

    Leaving sends what is left, for a short time.
    """
    if settings.traces_url is None:
        yield
        return
    try:
        from kubevnfm_kit.opentelemetry_spans import sent_by_sdk
    except ModuleNotFoundError as error:
        log.warning("live_spans_not_sent", reason=f"{error}: the extra `traces` of {service} is not installed")
        yield
        return
    async with sent_by_sdk(settings, service) as recorder:
        with recording(recorder):
            yield
