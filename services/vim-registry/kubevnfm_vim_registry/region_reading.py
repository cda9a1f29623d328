"""Reads from the clusters of regions, when a caller asks: health, features of nodes, objects of any kind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from kubevnfm_clients.multicloud.errors import RegionUnavailable
from kubevnfm_clients.multicloud.region_views import KubernetesObject, RegionFeatures, RegionHealth
from kubevnfm_clients.multicloud.regions import ObjectsWanted
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Unprocessable, VnfmError

from kubevnfm_vim_registry.domain.errors import VimForbids, VimRefused, VimUnauthorized, VimUnreachable
from kubevnfm_vim_registry.domain.features import features_of, readable
from kubevnfm_vim_registry.domain.ports import RegionProbe
from kubevnfm_vim_registry.domain.record import VimRecord

_DEVICES = "resource.k8s.io/v1"
_DAY_S = 86_400
_READING_S: Final = 50.0
"""The gateway waits 60 s; no caller is there for a later answer."""


class RegionReading:
    """Answers questions about the clusters of regions."""

    def __init__(self, probe: RegionProbe, clock: Clock, *, timeout_s: float, reading_s: float = _READING_S) -> None:
        """``timeout_s``: time limit of the call for `health`; ``reading_s``: of all calls for one of the other answers."""
        self._probe, self._clock = probe, clock
        self._timeout_s, self._reading_s = timeout_s, reading_s

    async def health(self, vim: VimRecord) -> RegionHealth:
        """Call the cluster once."""
        assert vim.region is not None
        not_after, days_left = vim.region.not_after, None
        if not_after is not None:
            left_s = (datetime.fromisoformat(not_after) - self._clock.now()).total_seconds()
            days_left = max(int(left_s // _DAY_S), 0)
        known = RegionHealth(
            reachable=False,
            server_version=vim.kubernetes_version,
            not_after=not_after,
            days_left=days_left,
            inventory=vim.region.inventory_state and vim.region.inventory_state.health,
        )
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                version = await self._probe.version(vim)
        except TimeoutError:
            return known.model_copy(update={"reason": f"no answer within {self._timeout_s:g} s"})
        except VnfmError as error:
            return known.model_copy(update={"reason": str(error)})
        latency_ms = round((time.monotonic() - started) * 1000, 1)
        return known.model_copy(update={"reachable": True, "server_version": version, "latency_ms": latency_ms})

    async def features(self, vim: VimRecord) -> RegionFeatures:
        """Read nodes and devices. Raises Unprocessable, RegionUnavailable."""
        async with self._as_answer():
            nodes, slices, classes = await asyncio.gather(
                self._probe.nodes(vim),
                self._probe.listed(vim, _DEVICES, "ResourceSlice"),
                self._probe.listed(vim, _DEVICES, "DeviceClass"),
            )
        # In a thread: 5,000 nodes take more than a second.
        return await asyncio.to_thread(features_of, nodes, slices, classes, as_of=rfc3339(self._clock.now()))

    async def resources(
        self, vim: VimRecord, wanted: ObjectsWanted, *, limit: int, after: str | None
    ) -> Page[KubernetesObject]:
        """Read objects. Raises Unprocessable, UnknownKind, RegionUnavailable."""
        async with self._as_answer():
            page = await self._probe.objects(vim, wanted, limit=limit, after=after)
        return Page([KubernetesObject.model_validate(readable(one)) for one in page.items], page.next_after)

    @asynccontextmanager
    async def _as_answer(self) -> AsyncIterator[None]:
        """Limit the time; raise what a caller of the multi-cloud API can act on, for the errors of VIMs."""
        try:
            async with asyncio.timeout(self._reading_s):
                yield
        except TimeoutError as error:
            raise RegionUnavailable(f"the region did not send all of it within {self._reading_s:g} s") from error
        except VimUnreachable as error:
            raise RegionUnavailable(str(error)) from error
        except (VimUnauthorized, VimRefused, VimForbids) as error:
            raise Unprocessable("", str(error)) from error
