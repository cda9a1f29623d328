"""The pods of a CNF in the form of SOL003: instantiatedVnfInfo and resourceChanges. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_events.objects import PodFacts
from kubevnfm_sol.resources import (
    AffectedVnfc,
    ChangeType,
    InstantiatedVnfInfo,
    ResourceChanges,
    ScaleInfo,
    VnfcInfo,
    VnfcResourceInfo,
)

from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.resource_handle import handle

IGNORED: Final = "kubevnfm_ignored_artifacts"
"""In the metadata of a CNF: the files of its package that its order artifact does not list (multicloud.md MC-016)."""

NODE: Final = "node"
"""In the metadata of a VNFC: the node of its pod."""


def info_of_release(
    release: Release,
    *,
    vnfd_id: str,
    vim_key: str,
    flavour_id: str,
    scale_status: Sequence[ScaleInfo],
    max_scale_levels: Sequence[ScaleInfo],
    def_files: Sequence[str],
    ignored: Sequence[str] = (),
) -> InstantiatedVnfInfo:
    """Return instantiatedVnfInfo of a CNF: one VNFC a pod (capi.md CR-032); ``ignored``: files that its order does not list."""
    vnfcs = tuple(_pod_vnfc(pod, vnfd_id, vim_key) for pod in release.pods)
    workloads = {o.vdu_id: f"{o.kind}/{o.name}" for o in release.objects if o.vdu_id is not None}
    return InstantiatedVnfInfo(
        flavour_id=flavour_id,
        scale_status=tuple(scale_status) or None,
        max_scale_levels=tuple(max_scale_levels) or None,
        vnfc_resource_info=vnfcs,
        vnfc_info=tuple(
            VnfcInfo(id=f"{pod.vdu_id}-{pod.name}", vdu_id=pod.vdu_id, vnfc_resource_info_id=pod.name)
            for pod in release.pods
        ),
        metadata={
            "namespace": release.namespace,
            "lcm-kubernetes-def-files": list(def_files),
            "vdu_resources": workloads,
            **({IGNORED: list(ignored)} if ignored else {}),
        },
    )


def _pod_vnfc(pod: PodFacts, vnfd_id: str, vim_key: str) -> VnfcResourceInfo:
    return VnfcResourceInfo(
        id=pod.name,
        vdu_id=pod.vdu_id,
        vnfd_id=vnfd_id,
        compute_resource=handle(pod.name, vim_key, pod.owner_kind),
        metadata={"namespace": pod.namespace, **({NODE: pod.node} if pod.node else {})},
    )


def changes_of_release(release: Release, *, vnfd_id: str, vim_key: str, change: ChangeType) -> ResourceChanges:
    """Return every pod of the release as affected."""
    return changes_of_pods({change: release.pods}, vnfd_id=vnfd_id, vim_key=vim_key)


def changes_of_pods(
    pods_by_change: Mapping[ChangeType, Sequence[PodFacts]], *, vnfd_id: str, vim_key: str
) -> ResourceChanges:
    """Return pods as affected, each with what happened to it."""
    return ResourceChanges(
        affected_vnfcs=tuple(
            AffectedVnfc(
                id=pod.name,
                vdu_id=pod.vdu_id,
                vnfd_id=vnfd_id,
                change_type=change,
                compute_resource=handle(pod.name, vim_key, pod.owner_kind),
            )
            for change, pods in pods_by_change.items()
            for pod in pods
        )
    )
