"""One pass over one volume: its objects are brought to what its document says, looked at, or removed. Safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_clients.multicloud.volumes import Phase
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded

from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.bringing import Bringing
from kubevnfm_infra_k8s.domain.volumes.errors import Broken
from kubevnfm_infra_k8s.domain.volumes.phases import phase_of
from kubevnfm_infra_k8s.domain.volumes.ports import VolumeRecords
from kubevnfm_infra_k8s.domain.volumes.record import Volume
from kubevnfm_infra_k8s.domain.volumes.removing import remove

log = structlog.get_logger()

_MISSING: Final = 404
"""The status for a claim whose namespace does not exist."""


@dataclass(frozen=True)
class VolumePasses:
    """`reconciling.ports.Passes` for volumes."""

    records: VolumeRecords
    cluster: Cluster
    clock: Clock
    timeout_s: float
    """After this time a volume that is not as wanted shows Failed, and is tried further."""

    async def bring(self, volume: Volume) -> None:
        try:
            await Bringing(self.cluster, self.records, volume).bring()
        except (Broken, ObjectRefused) as reason:
            await self._fail(volume.id, reason)

    async def remove(self, volume: Volume) -> None:
        try:
            await remove(self.cluster, self.records, volume)
            log.info("persistent_volume_removed", volume_id=volume.id, name=volume.name)
        except (Broken, ObjectRefused) as reason:
            await self._fail(volume.id, reason)

    async def look(self, volume: Volume) -> None:
        pv = await self.cluster.get(VOLUMES, pv_key(volume.pv)) if volume.pv else None
        await self._store(volume, *phase_of(volume, pv))

    async def note(self, volume_id: str, reason: str) -> None:
        volume = await self.records.get(volume_id)
        if volume is None or volume.is_settled:
            return
        waited_s = (self.clock.now() - datetime.fromisoformat(volume.since)).total_seconds()
        await self._store(volume, "Failed" if waited_s >= self.timeout_s else volume.phase, reason)

    async def _fail(self, volume_id: str, reason: Exception) -> None:
        """Show why there is no progress; the rounds try further."""
        if isinstance(reason, ObjectRefused) and reason.http_status == _MISSING:
            raise NotYet(str(reason)) from reason
        volume = await self.records.get(volume_id)
        if volume is not None:
            await self._store(volume, "Failed", str(reason))

    async def _store(self, volume: Volume, phase: Phase, detail: str) -> None:
        """Write how the volume stands, unless it stands so already."""
        text = bounded(detail)
        if (phase, text) != (volume.phase, volume.phase_detail):
            now = rfc3339(self.clock.now())
            changed = {"phase": phase, "phase_detail": text, "updated_at": now}
            await self.records.replace(volume.model_copy(update=changed))
