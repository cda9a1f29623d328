"""The classes behind the export of traces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_kit.run import background, repeat
from kubevnfm_kit.tls import ClientTls, client_context
from kubevnfm_worker.backends import Backends

from kubevnfm_lcm_api.lifecycle.core.progress import Progress
from kubevnfm_lcm_api.tracing.collector import OtlpCollector
from kubevnfm_lcm_api.tracing.export import TraceExport, TraceMetrics
from kubevnfm_lcm_api.tracing.settings import TraceSettings

_EVERY_S: Final = 2.0
_SETTLES: Final = timedelta(seconds=5)
"""The last events about tasks may be stored after the end of their operation."""


@asynccontextmanager
async def trace_export(settings: TraceSettings, backends: Backends) -> AsyncIterator[None]:
    """Send traces while the block lasts; nothing without a collector."""
    counts = TraceMetrics(backends.metrics)
    if (url := settings.traces_url) is None:
        yield
        return
    async with (
        client_context(ClientTls(settings.otlp_tls_ca)) as context,
        client_session(connector=HttpConnector(ssl=context)) as session,
    ):
        export = TraceExport(
            store=backends.store,
            tasks=Progress(backends.store),
            collector=OtlpCollector(session, url, settings.given_otlp_headers),
            clock=backends.clock,
            counts=counts,
            ratio=settings.trace_ratio,
            longest=timedelta(hours=settings.trace_hours),
            settles=_SETTLES,
        )
        async with background(traces=repeat(export.send_due, every_s=_EVERY_S)):
            yield
