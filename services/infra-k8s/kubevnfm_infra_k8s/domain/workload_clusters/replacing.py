"""Replaces one Machine of a workload cluster (capi.md CR-113 to CR-115).

The Machine is known by its uid, and so are those that existed before. A call that was interrupted anywhere can be repeated:
what has been deleted is not deleted again, and a Machine of another uid is the new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_events.capi import CheckMachines, MachineFacts
from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_kit.clock import Clock, machine_now

from kubevnfm_infra_k8s.domain.capi.contract import Conditions, is_paused
from kubevnfm_infra_k8s.domain.capi.machines import is_leaving, is_of_control_plane
from kubevnfm_infra_k8s.domain.capi.readiness import counts
from kubevnfm_infra_k8s.domain.errors import ClusterFailed, ClusterNotReady, MachinesMissing, QuorumAtRisk
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, annotations_of, name_of, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.readiness import judge
from kubevnfm_infra_k8s.domain.verdicts import Observation
from kubevnfm_infra_k8s.domain.workload_clusters.assessment import PAUSED, ClusterObjects
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_wait import ClusterKinds, objects_in, objects_now
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_watches import ClusterView
from kubevnfm_infra_k8s.domain.workload_clusters.health import (
    check_quorum,
    illness_of,
    is_being_built,
    is_health_checked,
    owner_of,
    owners_in,
)

log = structlog.get_logger()

REMEDIATE: Final = "cluster.x-k8s.io/remediate-machine"
"""A MachineHealthCheck has a Machine with this annotation replaced, whatever its health is."""


def machines_to_replace(objects: ClusterObjects, command: CheckMachines, seen: Observation) -> Sequence[Body]:
    """Return the Machines, workers first: those that the command names, otherwise those that are not healthy.

    Raises: MachinesMissing naming each Machine that does not exist (CR-118); QuorumAtRisk (CR-114).
    """
    if command.chosen:
        by_uid = {uid_of(each): each for each in objects.machines}
        missing = [each.name for each in command.chosen if each.uid not in by_uid]
        if missing:
            raise MachinesMissing(missing)
        chosen = [by_uid[each.uid] for each in command.chosen]
    else:
        chosen = [
            each
            for each in objects.machines
            # Without an owner none would come in its place; what is being deleted is being replaced already.
            if owner_of(objects, each) is not None
            and not is_leaving(each)
            and illness_of(each, seen)
            and not is_being_built(each, command.timeouts, seen)
        ]
    if not command.is_forced:
        for each in chosen:
            check_quorum(objects, each, seen)
    return sorted(chosen, key=is_of_control_plane)


@dataclass(frozen=True)
class Replacement:
    """The replacement of one Machine in one step."""

    cluster: Cluster
    """The management cluster."""
    view: ClusterView
    kinds: ClusterKinds
    workload: WorkloadCluster
    machine: MachineFacts
    known: Collection[str]
    """The uids of the Machines that existed before."""
    clock: Clock
    deadline: datetime
    progress: Progress

    async def begin(self, *, is_forced: bool) -> None:
        """Have the Machine replaced, unless that has begun. Raises QuorumAtRisk, unless ``is_forced``."""
        key = ObjectKey(self.kinds.machines.api_version, "Machine", self.machine.namespace, self.machine.name)
        body = await self.cluster.get(self.kinds.machines, key)
        if body is None or uid_of(body) != self.machine.uid or is_leaving(body):
            return
        is_asked = REMEDIATE in annotations_of(body)
        is_at_risk = False
        if not is_asked:
            # A watch may lag behind: another Machine can be ill, or leaving, since.
            objects = await objects_now(self.cluster, self.kinds, self.workload)
            try:
                check_quorum(objects, body, Observation(now=machine_now(self.clock)))
            except QuorumAtRisk:
                if not is_forced:
                    raise
                is_at_risk = True
        # A control plane does not remediate a Machine that its quorum needs, so that only a deletion is of use there.
        if is_at_risk or not is_health_checked(body, await self._health_checks(), self.workload.name):
            await self.cluster.delete(self.kinds.machines, key, uid=self.machine.uid)
            log.info("machine_deleted", machine=str(key))
        elif not is_asked:
            # With the uid, so that a new Machine of this name is not meant.
            change = {"metadata": {"uid": self.machine.uid, "annotations": {REMEDIATE: ""}}}
            await self.cluster.patch(self.kinds.machines, key, change)
            log.info("machine_remediation_asked", machine=str(key))

    async def done(self, *, within_s: float) -> ClusterObjects | None:
        """Return the objects once the Machine is gone and the one in its place is ready; None after ``within_s``.

        Raises ClusterFailed if the new Machine has failed for good, ClusterNotReady at the deadline.
        """
        loop = asyncio.get_running_loop()
        look_until = loop.time() + within_s
        while True:
            objects, now = self._objects(), self.clock.now()
            awaited = self._awaited(objects, Observation(now=machine_now(self.clock)))
            if not awaited:
                return objects
            left_s = (self.deadline - now).total_seconds()
            if left_s <= 0:
                raise ClusterNotReady(f"Machine {self._name}: not replaced in time: {awaited}")
            await self.progress.on(f"Machine {self._name}", awaited, done=0, total=1)
            left_s = min(left_s, look_until - loop.time())
            if not await self.view.change(within_s=left_s) and loop.time() >= look_until:
                return None

    @property
    def _name(self) -> str:
        return f"{self.machine.namespace}/{self.machine.name}"

    def _objects(self) -> ClusterObjects:
        return objects_in(self.view, self.kinds, self.workload.name)

    async def _health_checks(self) -> Sequence[Body]:
        version = self.kinds.cluster.api_version
        found = await self.cluster.resource(version, "MachineHealthCheck")
        return [] if found is None else await self.cluster.list(found, namespace=self.workload.namespace)

    def _awaited(self, objects: ClusterObjects, seen: Observation) -> str:
        """Return for what the replacement waits; "" if it is done."""
        if objects.cluster is not None and is_paused(objects.cluster):
            return PAUSED
        old = next((each for each in objects.machines if uid_of(each) == self.machine.uid), None)
        if old is not None:
            return _stage_of(old)
        owner = next((each for each in owners_in(objects) if self._is_owner(each)), None)
        if owner is None:
            return f"gone, and {self.machine.owner_kind} {self.machine.owner} does not exist"
        mine = [each for each in objects.machines if owner_of(objects, each) is owner and not is_leaving(each)]
        wanted = counts(owner)["wanted"]
        if len(mine) < wanted:
            said = Conditions(owner).first_false()
            return f"gone, {len(mine)} of {wanted} Machines there" + (f", {said}" if said else "")
        for each in mine:
            # One that existed before may be ill for its own reasons.
            if uid_of(each) not in self.known and (illness := illness_of(each, seen)):
                if judge(each, seen).is_final:
                    raise ClusterFailed(f"Machine {self.machine.namespace}/{name_of(each)}: {illness}")
                return f"gone, Machine {name_of(each)} in its place: {illness}"
        return ""

    def _is_owner(self, body: Body) -> bool:
        return (body.get("kind"), name_of(body)) == (self.machine.owner_kind, self.machine.owner)


def _stage_of(machine: Body) -> str:
    if not is_leaving(machine):
        return "waits for its MachineHealthCheck"
    said = Conditions(machine)["Deleting"]
    return "being deleted" + (f", {said.message}" if said is not None and said.message else "")
