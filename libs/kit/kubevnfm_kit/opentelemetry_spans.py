"""Live spans by OpenTelemetry's SDK, sent by OTLP over HTTP; the one module that imports it, if the extra `traces` is installed.

Spans wait in a queue of limited length, and are dropped if it is full or the collector takes none: they are worth less than the work
that they measure.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from kubevnfm_kit.live_spans import Kind, Measured, Value
from kubevnfm_kit.otlp_settings import OtlpSettings
from kubevnfm_kit.outages import Outage
from kubevnfm_kit.proxies import environment_proxies
from kubevnfm_kit.traces import TraceContext

_KINDS: Final[Mapping[Kind, SpanKind]] = {
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}
_QUEUE: Final = 4096
"""Spans that wait; about 8 MiB."""
_BATCH: Final = 512
_EVERY_MS: Final = 2000
_REQUEST_S: Final = 10
"""For all tries of one batch."""
_END_S: Final = 3.0
"""The end of the process waits so long for the last spans."""


class _SdkSpan:
    """A span of the SDK, or of one that it does not record."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    @property
    def context(self) -> TraceContext:
        found = self._span.get_span_context()
        return TraceContext(f"{found.trace_id:032x}", f"{found.span_id:016x}", found.trace_flags.sampled)

    def note(self, name: str, value: Value) -> None:
        self._span.set_attribute(name, value)

    def end(self, error_type: str) -> None:
        if error_type:
            self._span.set_attribute("error.type", error_type)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class SdkRecorder:
    """Begins spans that a processor gets at their end."""

    def __init__(self, processor: SpanProcessor, service: str, ratio: float) -> None:
        self.ratio = ratio
        self.provider = TracerProvider(
            sampler=ALWAYS_ON,  # `live_spans` asks for those alone that are recorded
            resource=Resource({"service.namespace": "kubevnfm", "service.name": service}),
            span_limits=SpanLimits(max_span_attribute_length=256),
            shutdown_on_exit=False,
        )
        self.provider.add_span_processor(processor)
        self._tracer = self.provider.get_tracer("kubevnfm", version("kubevnfm-kit"))

    def begin(
        self,
        name: str,
        kind: Kind,
        attributes: Mapping[str, Value],
        *,
        parent: TraceContext | None,
        link: TraceContext | None,
    ) -> Measured:
        """Begin a span, which is recorded."""
        around = Context() if parent is None else set_span_in_context(NonRecordingSpan(_of(parent)), Context())
        links = () if link is None else (Link(_of(link)),)
        return _SdkSpan(self._tracer.start_span(name, around, _KINDS[kind], attributes, links))


def _of(context: TraceContext) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.is_sampled else TraceFlags.DEFAULT)
    return SpanContext(int(context.trace_id, 16), int(context.span_id, 16), is_remote=True, trace_flags=flags)


class _CollectorSession(requests.Session):
    """Notes how the last request has ended; a redirect would take the headers to another server, and is an error."""

    def __init__(self, url: str) -> None:
        super().__init__()
        # No login of ~/.netrc, and the proxy by our rule: as the spans of operations are sent.
        self.trust_env = False
        self._proxy = environment_proxies().to(url)
        if self._proxy is not None:
            self.proxies = {urlsplit(url).scheme: self._proxy.url_with_login}
        self.reason = ""

    def request(self, *args: Any, **named: Any) -> requests.Response:
        self.reason = "no answer"
        try:
            answer = super().request(*args, **{**named, "allow_redirects": False})
        except requests.RequestException as error:
            self.reason = type(error).__name__
            if isinstance(error, requests.exceptions.ProxyError | requests.ConnectTimeout) and self._proxy is not None:
                self.reason = f"{self._proxy}: {self.reason}"
            raise
        self.reason = f"the collector answered {answer.status_code}"
        if 300 <= answer.status_code < 400:
            raise requests.TooManyRedirects(self.reason)
        return answer


class WatchedExporter(SpanExporter):
    """Says once that spans do not arrive, and once that they do again, not for each batch."""

    def __init__(self, exporter: SpanExporter, reason: Callable[[], str]) -> None:
        self._exporter, self._reason = exporter, reason
        self._outage = Outage("collector of live spans")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; one that is not taken is dropped."""
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - the thread of the SDK must not end, and has no caller
            self._outage.failed(type(error).__name__)
            return SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            self._outage.answered()
        else:
            self._outage.failed(self._reason())
        return result

    def shutdown(self) -> None:
        """End a request that waits for its next try."""
        self._exporter.shutdown()


@asynccontextmanager
async def sent_by_sdk(settings: OtlpSettings, service: str) -> AsyncIterator[SdkRecorder]:
    """Yield what records spans, and send them while the block lasts. Leaving waits a few seconds for the last ones."""
    # It logs each failed try, and each span that finds the queue full.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
    session = _CollectorSession(settings.traces_url or "")
    exporter = OTLPSpanExporter(
        endpoint=settings.traces_url,
        certificate_file=_trusted(settings),
        # Never empty: it would read those of the environment.
        headers={"User-Agent": "kubevnfm", **settings.given_otlp_headers},
        timeout=_REQUEST_S,
        compression=Compression.Gzip,
        session=session,
    )
    processor = BatchSpanProcessor(
        WatchedExporter(exporter, lambda: session.reason),
        max_queue_size=_QUEUE,
        schedule_delay_millis=_EVERY_MS,
        max_export_batch_size=_BATCH,
    )
    recorder = SdkRecorder(processor, service, settings.live_ratio)
    try:
        yield recorder
    finally:
        await _ended(recorder.provider.shutdown, within_s=_END_S)


def _trusted(settings: OtlpSettings) -> str | None:
    if settings.otlp_tls_ca is not None:
        return str(settings.otlp_tls_ca)
    return ssl.get_default_verify_paths().cafile


async def _ended(shutdown: Callable[[], None], *, within_s: float) -> None:
    """Call it in a thread of its own: those of the event loop's pool are awaited at its end, without a limit."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        shutdown()
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="live-spans-end", daemon=True).start()
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await done.wait()
