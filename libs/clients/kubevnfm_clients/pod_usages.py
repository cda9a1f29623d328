"""CPU and memory that pods use, as their cluster measures it (API group ``metrics.k8s.io``, of metrics-server). infra-k8s answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Protocol

import aiohttp
from kubevnfm_events import VimConnection
from kubevnfm_events.base import Facts
from kubevnfm_secrets import KeyRing, sealing
from pydantic import AwareDatetime, Field

from kubevnfm_clients.http import InternalApi

MOST_PODS: Final = 1000
"""The most pods of one question."""
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PodsInUse(Facts):
    """The pods whose usage is asked for."""

    vim: VimConnection
    vnf_instance_id: str
    """Its label is on the pods."""
    namespace: str
    pods: tuple[str, ...] = Field(max_length=MOST_PODS)
    """Their names."""


class PodUsage(Facts):
    """The usage of one pod: the sum of its containers."""

    pod: str
    at: AwareDatetime
    """The end of the time over which the cluster has measured."""
    window_s: Amount
    """Its length; 0: the cluster does not say."""
    cpu: Amount | None = None
    """CPUs."""
    memory: Amount | None = None
    """Bytes."""
    cpu_limit: Amount | None = None
    """The sum of the limits of its containers; None: none has one, or the cluster does not show the pod."""
    memory_limit: Amount | None = None
    """The same, or else the memory of its node; None: neither is known."""


class PodUsages(Protocol):
    """Served by infra-k8s: ``/internal/v1/resource-metrics``."""

    async def read(self, wanted: PodsInUse) -> Sequence[PodUsage]:
        """Return the newest usage of those pods that the cluster has measured.

        Raises ResourceMetricsUnavailable, OutsideUnavailable, NotFound (no such VIM), and what the cluster refuses.
        """
        ...


class HttpPodUsages:
    """`PodUsages` over HTTP; access data of VIMs are sealed on the way."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession, *, ring: KeyRing) -> None:
        self._api, self._ring = InternalApi("infra-k8s", base_url, token, session), ring

    async def read(self, wanted: PodsInUse) -> Sequence[PodUsage]:
        body = wanted.model_dump(mode="json", context=sealing(self._ring))
        answer = await self._api.call("POST", "resource-metrics", body=body)
        return [PodUsage.model_validate(each) for each in answer["pods"]]
