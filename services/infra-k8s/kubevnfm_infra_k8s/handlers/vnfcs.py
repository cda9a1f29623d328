"""The handler that reads which pods run the VDUs of a CNF between operations (capi.md CR-120a)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Delivery, MessageBus, Verdict
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events.vnfcs import ReadVnfcs, VnfcsRead
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import unless_said

from kubevnfm_infra_k8s.domain.ports import Clusters, Releases
from kubevnfm_infra_k8s.domain.reading.instance_facts import present_vnfcs
from kubevnfm_infra_k8s.domain.watching.comparing import lost_vdus

log = structlog.get_logger()

SOURCE: Final = "/kubevnfm/infra-k8s"


@dataclass(frozen=True)
class VnfcHandler:
    """Answers ReadVnfcs. An answer that is lost is repeated: lcm-api asks again after a while."""

    clusters: Clusters
    vims: VimDirectory
    releases: Releases
    bus: MessageBus
    clock: Clock

    async def read_vnfcs(self, delivery: Delivery) -> Verdict:
        """Publish the present pods; nothing if the cluster does not answer or the instance has no objects."""
        command, deadline = delivery.envelope.data, delivery.envelope.deadline
        assert isinstance(command, ReadVnfcs)
        # While this service was away, questions have collected; later ones have newer facts.
        if deadline is not None and self.clock.now() >= deadline:
            return Ack()
        try:
            read = await self._read(command)
        except VnfmError as error:
            unless_said(error).info("vnfcs_not_read", vnf_instance_id=command.vnf_instance_id, reason=str(error))
            return Ack()
        if read is not None:
            await self.bus.publish(delivery.envelope.follow_up(read, source=SOURCE))
        return Ack()

    async def _read(self, command: ReadVnfcs) -> VnfcsRead | None:
        release = await self.releases.get(command.vnf_instance_id)
        if release is None:
            return None
        vim = await self.vims.connection(command.vim)
        async with self.clusters.cluster(vim) as cluster:
            # The pods first: those of a workload that is deleted meanwhile are then lost, and not just gone.
            pods = await present_vnfcs(cluster, release)
            lost = await lost_vdus(cluster, release)
        return VnfcsRead(
            vnf_instance_id=command.vnf_instance_id, revision=command.revision, pods=tuple(pods), lost_vdus=lost
        )
