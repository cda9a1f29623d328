"""A real Prometheus and a real Alertmanager, which environment variables name; docs/real-monitoring.md says what they need."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
from patience import until_true

_PENDING: Final = "8s"
"""For 5 s after a reload Prometheus knows no Alertmanager. An alert that fires meanwhile is sent a minute later."""
_PREFIX: Final = "KUBEVNFM_MONITORING_"
NAMES: Final = ("PROMETHEUS_URL", "ALERTMANAGER_URL", "RULES", "SERIES_URL", "RECEIVER", "LOGIN")
"""The variables, without their prefix."""


@dataclass(frozen=True)
class Named:
    """The services and files that the variables name."""

    prometheus_url: str
    alertmanager_url: str
    rules: Path
    """The folder of Prometheus' rule files."""
    series_url: str
    """Takes the series that Prometheus scrapes: PUT of a text in its format."""
    receiver: str
    """The gateway that Alertmanager calls: kubevnfm listens there."""
    login: str
    """``user:password`` that Alertmanager sends."""


def named() -> Named | None:
    """Return what the variables name; None if one of them is missing."""
    given = [os.environ.get(f"{_PREFIX}{name}", "") for name in NAMES]
    if not all(given):
        return None
    prometheus, alertmanager, rules, series, receiver, login = given
    return Named(prometheus.rstrip("/"), alertmanager.rstrip("/"), Path(rules), series, receiver.rstrip("/"), login)


def rule(expression: str, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a rule as users of Tacker have it."""
    tacker = {"receiver_type": "tacker", **labels}
    said = dict(annotations or {})
    return {"alert": "FromTest", "expr": expression, "for": _PENDING, "labels": tacker, "annotations": said}


class Monitoring:
    """Prometheus and Alertmanager. An async context manager, which removes the rules and series that it has written."""

    def __init__(self, given: Named) -> None:
        self._given, self._files, self._series = given, list[Path](), dict[str, float]()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files:
            file.unlink(missing_ok=True)
        await self._reload()
        self._series.clear()
        await self._write_series()
        await self._session.close()

    @property
    def prometheus_url(self) -> str:
        """Where its API is."""
        return self._given.prometheus_url

    async def add_rules(self, name: str, rules: Sequence[Mapping[str, Any]]) -> None:
        """Write a rule file, in JSON as Tacker does, and have it read."""
        file = self._given.rules / f"{name}.json"
        self._files.append(file)
        file.write_text(json.dumps({"groups": [{"name": f"tacker_{name}", "rules": list(rules)}]}, indent=4))
        file.chmod(0o644)
        await self._reload()

    async def remove_rules(self, name: str) -> None:
        """Remove a rule file, and have that noticed."""
        (self._given.rules / f"{name}.json").unlink()
        await self._reload()

    async def set(self, series: str, value: float | None) -> None:
        """Give a series a value, which is scraped from now on; None: it ends."""
        if value is None:
            self._series.pop(series, None)
        else:
            self._series[series] = value
        await self._write_series()

    async def firing(self) -> list[dict[str, Any]]:
        """Return the alerts that Alertmanager has."""
        async with self._session.get(f"{self._given.alertmanager_url}/api/v2/alerts") as response:
            found: list[dict[str, Any]] = await response.json()
            return found

    async def is_scraped(self, series: str) -> None:
        """Wait until Prometheus has a sample of a series."""

        async def has_it() -> bool:
            query = {"query": series}
            async with self._session.get(f"{self._given.prometheus_url}/api/v1/query", params=query) as response:
                return bool((await response.json())["data"]["result"])

        await until_true(has_it)

    async def _write_series(self) -> None:
        text = "".join(f"{name} {value}\n" for name, value in self._series.items())
        async with self._session.put(self._given.series_url, data=text.encode()) as response:
            response.raise_for_status()

    async def _reload(self) -> None:
        async with self._session.post(f"{self._given.prometheus_url}/-/reload") as response:
            response.raise_for_status()
