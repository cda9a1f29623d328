"""The Cluster among the manifests of a package, and the replicas that its topology gives to VDUs (capi.md CR-050 to CR-052)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_events.infra import VduTarget
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_infra_k8s.domain.capi.autoscaling import Limits
from kubevnfm_infra_k8s.domain.capi.contract import is_cluster
from kubevnfm_infra_k8s.domain.capi.machines import CONTROL_PLANE_VDU
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, annotations_of, field_at

_FIELD: Final = "additionalParams.capi.cluster_name"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_NAME: Final = 63


def workload_cluster(keys: Sequence[ObjectKey], wanted: str | None) -> WorkloadCluster | None:
    """Return the Cluster among the objects; None if there is none and none is wanted.

    Raises InvalidInput if it is not clear which one is meant, and for a name that is no RFC 1123 label.
    """
    found = [key for key in keys if is_cluster(key)]
    if wanted is not None:
        found = [key for key in found if key.name == wanted]
        if not found:
            raise InvalidInput(_FIELD, f"the files have no Cluster {wanted}")
    if len(found) > 1:
        raise InvalidInput(_FIELD, f"one of {', '.join(key.name for key in found)} expected, as the files have several")
    for key in found:
        if len(key.name) > _LONGEST_NAME or not _NAME.fullmatch(key.name):
            raise InvalidInput(
                "metadata.name", f"{key}: at most {_LONGEST_NAME} lower-case letters, digits and - expected (RFC 1123)"
            )
        return WorkloadCluster(name=key.name, namespace=key.namespace, api_version=key.api_version)
    return None


def topology_vdus(body: Body, vdus: Sequence[VduTarget]) -> Sequence[VduTarget]:
    """Return the VDUs for which parts of a Cluster's topology stand."""
    names = {str(each.get("name")) for each in _deployments(body)}
    if field_at(body, "spec", "topology") is not None:
        names.add(CONTROL_PLANE_VDU)
    return [vdu for vdu in vdus if vdu.name in names]


def with_topology_replicas(body: Body, vdus: Sequence[VduTarget]) -> Body:
    """Return the Cluster with the replicas of the instantiation level in its topology, where no autoscaler owns them."""
    replicas = {vdu.name: vdu.replicas for vdu in topology_vdus(body, vdus) if vdu.replicas is not None}
    if field_at(body, "spec", "topology") is None:
        return body
    changed: dict[str, Any] = deepcopy(dict(body))
    topology = changed["spec"]["topology"]
    if CONTROL_PLANE_VDU in replicas:
        topology["controlPlane"] = {**(topology.get("controlPlane") or {}), "replicas": replicas[CONTROL_PLANE_VDU]}
    for each in _deployments(changed):
        if Limits.from_annotations(annotations_of(each)).are_complete:
            # Otherwise each apply would take the number back that the autoscaler has chosen (CR-091).
            each.pop("replicas", None)
        elif each.get("name") in replicas:
            each["replicas"] = replicas[str(each["name"])]
    return changed


def _deployments(body: Body) -> Sequence[dict[str, Any]]:
    found = field_at(body, "spec", "topology", "workers", "machineDeployments")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
