"""Whether Helm charts can be rendered. infra-k8s, which renders them, knows (multicloud.md MC-048)."""

from __future__ import annotations

from typing import Protocol

import aiohttp
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_clients.http import InternalApi


class HelmMissing(Unprocessable, code="helm-missing", title="Helm chart not rendered"):
    """The package is a Helm chart, and this installation has no helm program."""


class ChartPrograms(Protocol):
    """Served by infra-k8s: ``/internal/v1/chart-program``. May raise OutsideUnavailable."""

    async def why_missing(self) -> str:
        """Return why no chart can be rendered; "" if the program is there."""
        ...


class HttpChartPrograms:
    """`ChartPrograms` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("infra-k8s", base_url, token, session)

    async def why_missing(self) -> str:
        return str((await self._api.call("GET", "chart-program"))["whyMissing"])
