"""A collector of OpenTelemetry: OTLP over HTTP, in the JSON form."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from typing import Final

import aiohttp
from kubevnfm_clients.bounded import json_in, read_body
from kubevnfm_clients.outbound import trouble
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.tracing.export import CollectorAway, TraceRefused

_ANSWER_BYTES: Final = 64 * 1024
_LONGEST_WAIT_S: Final = 300.0
_REFUSED: Final = frozenset({400, 413, 422})
"""The collector does not take these spans, however often they are sent; after any other failure they are sent again."""


class OtlpCollector:
    """Sends spans."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], *, timeout_s: float = 10.0
    ) -> None:
        self._session, self._url = session, url
        self._headers = {**headers, "Content-Type": "application/json", "Content-Encoding": "gzip"}
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)

    async def send(self, request: JsonObject) -> None:
        """Send an ExportTraceServiceRequest. Raises CollectorAway, TraceRefused."""
        body = await asyncio.to_thread(lambda: gzip.compress(json.dumps(request).encode(), 6))
        try:
            async with self._session.post(
                self._url, data=body, headers=self._headers, allow_redirects=False, timeout=self._timeout
            ) as response:
                answer = await read_body(response, limit_bytes=_ANSWER_BYTES)
                status, retry_after = response.status, response.headers.get("Retry-After", "")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise CollectorAway(trouble(error)) from error
        if status in _REFUSED:
            raise TraceRefused(f"the collector answered {status}")
        # OTLP has 200; proxies in front of a collector answer with others of the class.
        if not 200 <= status < 300:
            is_number = retry_after.isascii() and retry_after.isdigit()
            pause_s = min(float(retry_after[:6]), _LONGEST_WAIT_S) if is_number else 0.0
            raise CollectorAway(f"the collector answered {status}", pause_s)
        found = json_in(answer)
        partial = found.get("partialSuccess") if isinstance(found, dict) else None
        rejected = str(partial.get("rejectedSpans") or 0) if isinstance(partial, dict) else "0"
        if rejected != "0":
            raise TraceRefused(f"the collector rejected {rejected[:20]} spans")
