"""A Prometheus over its HTTP API (``/api/v1/query_range``), as `domain.ports.Measurer`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import aiohttp
from kubevnfm_clients.bounded import AnswerTooLarge, json_in, read_body
from kubevnfm_clients.outbound import trouble
from kubevnfm_kit.printable import printable

from kubevnfm_lcm_api.performance.domain.ports import MeasurementRefused, MeasurerUnavailable, Series

_TIMEOUT_S: Final = 20.0
_LONGEST_ANSWER: Final = 16 * 1024 * 1024
_MOST_SERIES: Final = 2000
_LONGEST_REASON: Final = 300
_LARGEST: Final = 1e300
"""Sums of values up to this are finite."""


@dataclass(frozen=True)
class PrometheusApi:
    """One Prometheus."""

    session: aiohttp.ClientSession
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def query_range(self, query: str, *, start: datetime, end: datetime, step_s: int) -> Sequence[Series]:
        form = {"query": query, "start": _seconds(start), "end": _seconds(end), "step": str(step_s)}
        try:
            async with self.session.post(
                f"{self.url.rstrip('/')}/api/v1/query_range",
                data=form,
                headers={"Accept": "application/json", "Accept-Encoding": "identity", **self.headers},
                # A redirect would take the credentials, and the query, to an address that no setting names.
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S),
            ) as response:
                status, raw = response.status, await read_body(response, limit_bytes=_LONGEST_ANSWER)
        except AnswerTooLarge as error:
            raise MeasurementRefused(f"Prometheus: {error}") from error
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise MeasurerUnavailable(f"Prometheus: {trouble(error)}") from error
        answer = json_in(raw)
        if status in {400, 422}:
            raise MeasurementRefused(f"Prometheus refuses the query: {_reason(answer)}")
        if status != 200 or not isinstance(answer, dict) or answer.get("status") != "success":
            raise MeasurerUnavailable(f"Prometheus: it answered {status}, or not as a Prometheus does")
        return list(_series(answer))


def _seconds(moment: datetime) -> str:
    return f"{moment.timestamp():.3f}"


def _reason(answer: Any) -> str:
    text = answer.get("error") if isinstance(answer, dict) else None
    return printable(text[:_LONGEST_REASON]) if isinstance(text, str) else "without a reason"


def _series(answer: Mapping[str, Any]) -> Iterator[Series]:
    data = answer.get("data")
    found = data.get("result") if isinstance(data, dict) and data.get("resultType") == "matrix" else None
    if not isinstance(found, list):
        raise MeasurerUnavailable("Prometheus: it did not answer as a Prometheus does")
    if len(found) > _MOST_SERIES:
        raise MeasurementRefused(f"Prometheus has more than {_MOST_SERIES} series for one query")
    for each in found:
        labels, values = (each.get("metric"), each.get("values")) if isinstance(each, dict) else (None, None)
        if isinstance(labels, dict) and isinstance(values, list):
            texts = {name: value for name, value in labels.items() if isinstance(value, str)}
            yield Series(texts, [one for one in map(_value, values) if one is not None])


def _value(pair: Any) -> tuple[float, float] | None:
    """Return time and value; None for one that is no number, as 0/0 is none, or none that can be added."""
    try:
        at, value = float(pair[0]), float(pair[1])
    except (TypeError, ValueError, LookupError):
        return None
    return (at, value) if math.isfinite(at) and abs(value) <= _LARGEST else None
