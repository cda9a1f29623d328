"""Keeps the VNFCs of workload clusters true between operations: Cluster API replaces Machines by itself (capi.md CR-119, CR-120).

In each round infra-k8s is asked once for each management cluster to watch until the next round. Its findings are written into
the instance, unless the instance was written meanwhile. Nothing is remembered between the rounds, so that a lost question or
answer is made good by the next one.
"""

from __future__ import annotations

from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.capi import ExpectedMachines, MachinesChanged, MachinesFinding, WatchMachines
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.lifecycle.containers.releases import showing
from kubevnfm_lcm_api.lifecycle.core.idle_instances import ByVim, Questions
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.request_parameters import DEF_FILES
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import WorkloadInternals
from kubevnfm_lcm_api.lifecycle.workloads.drafts import showing_machines, vnfcs_of
from kubevnfm_lcm_api.lifecycle.workloads.idle_clusters import by_management, idle_clusters, management_of

log = structlog.get_logger()

_STORE_PAUSE_S: Final = 2.0


class MachineWatch:
    """Has the Machines of workload clusters watched, and records what changed."""

    def __init__(self, *, store: DocumentStore, questions: Questions, ring: KeyRing, clock: Clock) -> None:
        self._store, self._questions, self._ring, self._clock = store, questions, ring, clock

    async def look(self) -> None:
        """Ask once for each management cluster. Raises StoreUnavailable."""
        asked: ByVim[ExpectedMachines] = by_management()
        async for cluster in idle_clusters(self._store):
            # Without its VDUs, it is not known which Machines are VNFCs; the next operation stores them.
            if cluster.workload.vdus:
                asked.add(cluster.management, _expected(cluster.stored, cluster.workload))
        for management, clusters in asked.questions():
            await self._ask(management, clusters)

    async def record_findings(self, delivery: Delivery) -> Verdict:
        """Write the present Machines into their instances."""
        changed = delivery.envelope.data
        assert isinstance(changed, MachinesChanged)
        try:
            for finding in changed.findings:
                await self._record(finding)
        except StoreUnavailable as error:
            log.debug("machines_not_recorded", reason=str(error))
            return Again(_STORE_PAUSE_S)
        return Ack()

    async def _record(self, finding: MachinesFinding) -> None:
        stored = await self._store.get(COLLECTION, finding.vnf_instance_id)
        # Written since the question: an operation runs, or has replaced the Machines.
        if stored is None or stored.revision != finding.revision:
            return
        before = InstanceRecord.from_document(stored.body)
        if before.internals.workload is None:
            return
        workload = before.internals.workload.model_copy(update={"machines": finding.machines})
        after = with_machines(before, workload).model_copy(update={"updated_at": rfc3339(self._clock.now())})
        try:
            written = await self._store.replace(
                COLLECTION, stored.id, after.document(self._ring), if_revision=stored.revision
            )
        except RevisionConflict:
            return
        log.info("machines_recorded", vnf_instance_id=stored.id, added=finding.added, removed=finding.removed)
        connection = management_of(after)
        if connection is not None:
            # At once: a Machine that was added has no node and no addresses yet.
            await self._ask(connection, (_expected(written, workload),))

    async def _ask(self, vim: VimConnection, clusters: tuple[ExpectedMachines, ...]) -> None:
        await self._questions.ask(WatchMachines(vim=vim, expected=clusters), vim.vim_id)


def with_machines(record: InstanceRecord, workload: WorkloadInternals) -> InstanceRecord:
    """Return the instance with these Machines as its VNFCs."""
    held, info = record.release, record.vnf.instantiated_vnf_info
    if held is None or held.release is None or info is None:
        return record
    release = held.release.model_copy(update={"pods": vnfcs_of(workload.machines)})
    package = PackageRef(package_id=record.vnf.vnf_pkg_id, vnfd_id=record.vnf.vnfd_id)
    files = tuple((info.metadata or {}).get(DEF_FILES) or ())
    return showing_machines(showing(record, release, package, held.vim_key, files), workload)


def _expected(stored: Stored, workload: WorkloadInternals) -> ExpectedMachines:
    return ExpectedMachines(
        vnf_instance_id=stored.id,
        revision=stored.revision,
        cluster=workload.cluster,
        vdus=workload.vdus,
        machines=workload.machines,
    )
