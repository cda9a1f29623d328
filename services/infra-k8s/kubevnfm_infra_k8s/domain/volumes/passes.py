"""One pass over one volume: its objects are brought to what its document says, looked at, or removed. Safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import structlog
from kubevnfm_events.volumes import VolumePhase
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded

from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet
from kubevnfm_infra_k8s.domain.volumes.bringing import MISSING, Bringing
from kubevnfm_infra_k8s.domain.volumes.errors import Broken
from kubevnfm_infra_k8s.domain.volumes.events import change_of
from kubevnfm_infra_k8s.domain.volumes.looking import shown
from kubevnfm_infra_k8s.domain.volumes.ports import VolumeRecords
from kubevnfm_infra_k8s.domain.volumes.record import Volume
from kubevnfm_infra_k8s.domain.volumes.removing import remove

log = structlog.get_logger()


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
        except Broken as reason:
            await self._fail(volume.id, reason)
            if reason.watched:
                raise NotYet(str(reason), *reason.watched) from reason
        except ObjectRefused as refusal:
            await self._fail(volume.id, refusal)

    async def remove(self, volume: Volume) -> None:
        try:
            await remove(self.cluster, self.records, volume)
            log.info("persistent_volume_removed", volume_id=volume.id, name=volume.name)
        except (Broken, ObjectRefused) as reason:
            await self._fail(volume.id, reason)

    async def look(self, volume: Volume) -> None:
        await self._store(volume, *await shown(self.cluster, volume))

    async def note(self, volume_id: str, reason: str) -> None:
        volume = await self.records.get(volume_id)
        if volume is None or volume.is_settled:
            return
        waited_s = (self.clock.now() - datetime.fromisoformat(volume.since)).total_seconds()
        # A pod that has not come yet is no failure, however long it takes.
        is_late = waited_s >= self.timeout_s and not volume.is_decided
        await self._store(volume, "Failed" if is_late else volume.phase, reason)

    async def _fail(self, volume_id: str, reason: Exception) -> None:
        """Show why there is no progress; the rounds try further."""
        if isinstance(reason, ObjectRefused) and reason.http_status == MISSING:
            raise NotYet(str(reason)) from reason
        volume = await self.records.get(volume_id)
        if volume is not None:
            await self._store(volume, "Failed", str(reason))

    async def _store(self, volume: Volume, phase: VolumePhase, detail: str) -> None:
        """Write how the volume stands, unless it stands so already."""
        text = bounded(detail)
        if (phase, text) != (volume.phase, volume.phase_detail):
            now = rfc3339(self.clock.now())
            changed = {"phase": phase, "phase_detail": text, "updated_at": now}
            written = volume.model_copy(update=changed)
            await self.records.replace(written, change_of(volume, written))
