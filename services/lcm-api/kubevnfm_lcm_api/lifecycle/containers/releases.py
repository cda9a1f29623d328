"""The effect of changes of a CNF's objects on its instance: the VNFCs that it shows, and resourceChanges. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubevnfm_events import PackageRef
from kubevnfm_events.objects import LeftObject, PodFacts
from kubevnfm_sol.resources import ResourceChanges
from pydantic.alias_generators import to_camel

from kubevnfm_lcm_api.lifecycle.containers import inventory
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release

_LEFT: Final = "kubevnfm_left"
_REPAIRED: Final = "kubevnfm_repaired"
"""Keys in the metadata of ``resourceChanges``."""


def changes_between(before: Release, after: Release | None, *, vnfd_id: str, vim_key: str) -> ResourceChanges:
    """Return the pods that were added and removed; a pod that was started again is another VNFC. None: not known."""
    if after is None:
        return ResourceChanges()
    earlier, present = {pod.uid for pod in before.pods}, {pod.uid for pod in after.pods}
    gone = [pod for pod in before.pods if pod.uid not in present]
    new = [pod for pod in after.pods if pod.uid not in earlier]
    return inventory.changes_of_pods({"REMOVED": gone, "ADDED": new}, vnfd_id=vnfd_id, vim_key=vim_key)


def metadata_of_left(left: Sequence[LeftObject]) -> dict[str, Any] | None:
    """Return the metadata of ``resourceChanges`` with the objects that a termination leaves; None if it leaves none.

    SOL003 has no change type for a resource that may still exist, and ``affectedVnfcs`` only for VNFCs.
    """
    shown = [{to_camel(name): value for name, value in each if value not in (None, (), False)} for each in left]
    return {_LEFT: shown} if shown else None


def metadata_of_repair(repaired: int | None) -> dict[str, Any] | None:
    """Return the metadata of ``resourceChanges`` with the number of objects that a repair has applied; None: not known."""
    return None if repaired is None else {_REPAIRED: repaired}


def pods_without(left: Sequence[LeftObject], release: Release | None) -> Sequence[PodFacts]:
    """Return the VNFCs of a release except those that may still run: they or their workload may be left."""
    vdus, names = {each.vdu_id for each in left}, {(each.namespace, each.name) for each in left}
    pods = release.pods if release is not None else ()
    return [pod for pod in pods if pod.vdu_id not in vdus and (pod.namespace, pod.name) not in names]


def with_management(instance: InstanceRecord, release: Release, vim_id: str | None) -> InstanceRecord:
    """Return the instance with what its objects are for Cluster API on a registered VIM: its providers, or a cluster of theirs."""
    if vim_id is None:
        return instance
    return instance.with_internals(
        management_vim_id=vim_id if release.is_management else None,
        management_vim_ids=(vim_id,) if release.has_cluster else (),
    )


def showing(
    instance: InstanceRecord,
    release: Release | None,
    package: PackageRef,
    vim_key: str,
    def_files: Sequence[str],
    ignored: Sequence[str] | None = None,
    **attributes: Any,
) -> InstanceRecord:
    """Return the instance with the pods that run now; ``attributes`` are further ones of instantiatedVnfInfo.

    ``ignored``: the files that its order does not list; None: those that are shown. Unchanged if ``release`` is None:
    nothing was reported.
    """
    info = instance.vnf.instantiated_vnf_info
    if release is None or info is None:
        return instance
    shown = inventory.info_of_release(
        release,
        vnfd_id=package.vnfd_id,
        vim_key=vim_key,
        flavour_id=info.flavour_id,
        scale_status=info.scale_status or (),
        max_scale_levels=info.max_scale_levels or (),
        def_files=def_files,
        ignored=ignored or (),
    )
    earlier = {k: v for k, v in (info.metadata or {}).items() if ignored is None or k != inventory.IGNORED}
    # Scripts leave metadata with the pods; those that stay keep it.
    left = {
        one.id: {name: value for name, value in (one.metadata or {}).items() if name != inventory.NODE}
        for one in info.vnfc_resource_info
    }
    pods = tuple(
        one.model_copy(update={"metadata": {**left.get(one.id, {}), **(one.metadata or {})}})
        for one in shown.vnfc_resource_info
    )
    properties = {one.id: one.vnfc_configurable_properties for one in info.vnfc_info}
    vnfcs = tuple(
        one.model_copy(update={"vnfc_configurable_properties": properties.get(one.id)}) for one in shown.vnfc_info
    )
    present = info.model_copy(
        update={
            "vnfc_resource_info": pods,
            "vnfc_info": vnfcs,
            "metadata": {**earlier, **(shown.metadata or {})},
            **attributes,
        }
    )
    return instance.with_vnf(instantiated_vnf_info=present).with_release(release)
