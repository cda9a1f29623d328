"""Applies the objects again that other parties have deleted or changed (capi.md CR-121)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

import structlog

from kubevnfm_infra_k8s.domain.capi.contract import CONTROL_PLANE, is_cluster
from kubevnfm_infra_k8s.domain.changing.applying import ApplyRun
from kubevnfm_infra_k8s.domain.errors import ClusterLost, ObjectsNotGone
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Wanted
from kubevnfm_infra_k8s.domain.ownership import is_scaled_apart
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.domain.removing.deletion_state import deletion_obstacle, deletion_progress
from kubevnfm_infra_k8s.domain.watching.comparing import Difference, collected, differences
from kubevnfm_infra_k8s.domain.watching.drift import is_compared
from kubevnfm_infra_k8s.domain.workload_clusters.cloud_secrets import FIELD as CLOUDS
from kubevnfm_infra_k8s.domain.workload_clusters.cloud_secrets import CloudSecretRun
from kubevnfm_infra_k8s.domain.workload_clusters.templates import with_present_names

log = structlog.get_logger()

_CONTROL_PLANES: Final = "KubeadmControlPlane"


@dataclass(frozen=True)
class Repair:
    """The result of a call."""

    release: Release
    plan: Plan
    """The objects of the inventory, under their present names, but for those that Kubernetes has removed by itself."""
    is_ending: bool = False
    """Whether an object is still being deleted that is then created again."""


@dataclass(frozen=True)
class RepairRun:
    """The repair of one instance's objects in one step."""

    applying: ApplyRun
    operation_id: str
    attempt: str
    is_workload_cluster: bool
    secrets: CloudSecretRun | None = None
    """Makes the Secrets of the cloud, which the plan has without content; None: the plan has none of them (CR-049)."""

    async def repair(self, plan: Plan, release: Release) -> Repair:
        """Apply what differs from what was applied; a repeated call continues. ``release.repaired``: how many objects.

        Raises: ClusterLost; ObjectsNotGone at the deadline; as `ApplyRun.apply`.
        """
        cluster, releases = self.applying.wait.cluster, self.applying.releases
        plan = _of_inventory(plan, release, without=await collected(cluster, release))
        if release.applied_by == self.attempt:
            return Repair(release, plan)
        compared = [entry for entry in release.entries if is_compared(entry)]
        found = await differences(cluster, self.applying.shared, release, compared)
        before = release.repaired if release.repaired_by == self.operation_id else None
        if before is None or before < len(found):
            lost = [key for key, each in found.items() if each.what != "changed" and _makes_machines(key)]
            if self.is_workload_cluster and lost:
                raise ClusterLost(lost)
            # Stored first: after a crash, or in a retry, less differs, and the wait for all objects is still to come. More
            # differs while the content of a namespace is being deleted.
            release = await releases.save(replace(release, repaired_by=self.operation_id, repaired=len(found)))
        if not found:
            return Repair(release, plan)
        if await self._are_ending(found):
            return Repair(release, plan, is_ending=True)
        known = {each.key for each in plan.objects}
        release = await releases.save(_without_obsolete(release, found, known))
        plan = replace(plan, objects=[_keeping_scale(each, found) for each in plan.objects])
        only = known & found.keys()
        clouds = {each.key for each in plan.objects if each.file == CLOUDS} if self.secrets is not None else set()
        if self.secrets is not None and clouds & only:
            # All of them have the same login.
            plan, only = await self.secrets.with_secrets(plan, release, changed=found), only | clouds
        applying = replace(self.applying, only=only)
        release = await applying.apply(plan, release, applied_by=self.attempt)
        log.info("objects_repaired", objects=release.repaired)
        return Repair(release, plan)

    async def _are_ending(self, found: Mapping[ObjectKey, Difference]) -> bool:
        """Return whether objects are still being deleted: what is applied to one goes with it."""
        ending = {key: each.there for key, each in found.items() if each.what == "missing" and each.there is not None}
        if ending and self.applying.wait.left_s() <= 0:
            raise ObjectsNotGone("; ".join(deletion_obstacle(key, body) for key, body in ending.items()))
        said = {str(key): deletion_progress(key, body) for key, body in ending.items()}
        await self.applying.progress.on_all(said, done=0, total=len(found))
        return bool(ending)


def _of_inventory(plan: Plan, release: Release, *, without: Set[ObjectKey]) -> Plan:
    """Return the plan with the objects that the inventory has, but for some: a URL may have others by now."""
    known = {entry.key for entry in release.entries} - without
    objects = with_present_names(plan.objects, release)
    return replace(plan, objects=[each for each in objects if each.key in known])


def _makes_machines(key: ObjectKey) -> bool:
    return is_cluster(key) or (key.kind == _CONTROL_PLANES and key.group == CONTROL_PLANE)


def _without_obsolete(release: Release, found: Mapping[ObjectKey, Difference], known: Collection[ObjectKey]) -> Release:
    """Return the release without what no manifest has any more and others have deleted.

    An object that is created again is no longer one that existed before the VNF.
    """

    def after(entry: Entry) -> Entry | None:
        what = found[entry.key].what if entry.key in found else None
        if what is None:
            return entry
        if entry.key not in known:
            # Never pruned, such as a Namespace with objects of others.
            return replace(entry, owned="") if what == "changed" else None
        return entry if what == "changed" else replace(entry, is_adopted=False)

    entries = [kept for entry in release.entries if (kept := after(entry)) is not None]
    return replace(release, entries=entries)


def _keeping_scale(wanted: Wanted, found: Mapping[ObjectKey, Difference]) -> Wanted:
    """Return the object without its number of replicas if our own scaling has set it since."""
    difference = found.get(wanted.key)
    if difference is None or difference.what != "changed" or not is_scaled_apart(difference.there or {}):
        return wanted
    spec = {name: value for name, value in (wanted.body.get("spec") or {}).items() if name != "replicas"}
    return replace(wanted, body={**wanted.body, "spec": spec})
