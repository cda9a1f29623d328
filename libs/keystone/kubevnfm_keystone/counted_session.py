"""A session of keystoneauth that counts its calls, by the API and the status of the answer, and measures them as live spans."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import requests
from keystoneauth1.exceptions.http import HttpError
from keystoneauth1.session import Session
from kubevnfm_kit import live_spans
from kubevnfm_kit.metrics import Metrics, code_of

_APIS: Final = frozenset({"identity", "orchestration", "compute", "network", "image", "block-storage"})
_OTHER: Final = "other"


class OpenstackMetrics:
    """The calls of OpenStack APIs of this process."""

    def __init__(self, metrics: Metrics) -> None:
        self._requests = metrics.counter(
            "kubevnfm_openstack_requests", "Requests to OpenStack; code none: no answer.", ["api", "code"]
        )
        self._seconds = metrics.histogram(
            "kubevnfm_openstack_request_seconds", "Time from a request to the end of its answer.", ["api"]
        )

    def count(self, api: str, status: int | None, took_s: float) -> None:
        """Count a request by the status of its answer; None: there was none."""
        self._requests.series(api, code_of(status)).inc()
        self._seconds.series(api).observe(took_s)


class CountedSession(Session):
    """Each request counts once, with its repeats after a lost connection or an expired token."""

    def __init__(self, counts: OpenstackMetrics, **named: Any) -> None:
        super().__init__(**named)
        self._counts = counts

    def request(self, url: str, method: str, *args: Any, **named: Any) -> requests.Response:
        status, begun, api = None, time.monotonic(), _api_of(named.get("endpoint_filter") or {})
        facts: dict[str, live_spans.Value] = {"http.request.method": method, "kubevnfm.openstack.api": api}
        with live_spans.span(f"{method} {api}", "client", facts) as span:
            try:
                answer = super().request(url, method, *args, **named)
                status = answer.status_code
            except HttpError as error:
                status = error.http_status or None
                raise
            else:
                return answer
            finally:
                if status is not None:
                    span.note("http.response.status_code", status)
                self._counts.count(api, status, time.monotonic() - begun)


def _api_of(endpoint: Mapping[str, Any]) -> str:
    # The log-in names no service.
    api = str(endpoint.get("service_type") or "identity")
    return api if api in _APIS else _OTHER
