"""GrantRequest (SOL003 V3.7.1 clause 9.5.2.2), made of the resources that the draft of an operation states. Pure.

An NFVO and the user data of packages receive it in the same form: the ids of added resources are equal in both, so that
user data find the zone that was granted to a resource.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_sol.lcm import OperationType, VnfLcmOpOcc

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Json, Resources
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft

_SCOPE: Final = {"nfvi_node": "NFVI_NODE", "zone": "ZONE", "zone_group": "ZONE_GROUP", "nfvi_pop": "NFVI_POP"}
_FLAVOUR_MATTERS: Final = frozenset({OperationType.INSTANTIATE, OperationType.CHANGE_FLAVOUR})


def grant_request(
    occ: VnfLcmOpOcc, vnfd_id: str, draft: Draft, flavour: Flavour | None, found: Resources, parameters: Json
) -> Json:
    """Return the request without its links.

    ``vnfd_id``: of the instance; ``flavour``: None if the operation is not made from a flavour; ``found``: its
    resources; ``parameters``: additionalParams.
    """
    level = occ.operation_params.get("instantiationLevelId")
    request: Json = {
        "vnfInstanceId": occ.vnf_instance_id,
        "vnfLcmOpOccId": occ.id,
        "vnfdId": vnfd_id,
        "operation": occ.operation.value,
        "isAutomaticInvocation": occ.is_automatic_invocation,
    }
    if draft.dst_vnfd_id is not None:
        request["dstVnfdId"] = draft.dst_vnfd_id
    if occ.operation in _FLAVOUR_MATTERS:
        request["flavourId"] = getattr(draft, "flavour_id", "")
    if level is not None and occ.operation in {*_FLAVOUR_MATTERS, OperationType.SCALE_TO_LEVEL}:
        request["instantiationLevelId"] = level
    optional = {
        "addResources": found.add,
        "removeResources": found.remove,
        "updateResources": found.update,
        "placementConstraints": list(_placement(found, flavour, getattr(draft, "vim_key", ""))),
        "additionalParams": parameters,
    }
    return request | {name: value for name, value in optional.items() if value}


def package_grant_request(occ: VnfLcmOpOcc, vnfd_id: str, draft: ScriptedDraft, flavour: Flavour) -> Json:
    """Return the request for the package's user data and scripts, with the same contents as Tacker's (sequences.md 6.4)."""
    found = draft.resources_for_package(flavour)
    parameters = occ.operation_params.get("additionalParams") or {}
    request = grant_request(occ, vnfd_id, draft, flavour, found, parameters)
    return {"flavourId": draft.flavour_for_package, **request} if draft.flavour_for_package is not None else request


def _placement(found: Resources, flavour: Flavour | None, vim_key: str) -> Iterator[Json]:
    """Yield the VNFD's affinity rules for added machines, among themselves and with those that stay."""
    # A snapshot of a machine is on no host.
    machines = [one for one in found.add if one["type"] == "COMPUTE" and "snapshotResDef" not in one]
    for rule in flavour.affinity_rules if flavour is not None else ():
        added = [one["id"] for one in machines if one["vduId"] in rule.targets]
        staying = [server_id for vdu_id in rule.targets for server_id in found.stay.get(vdu_id, ())]
        scope = _SCOPE.get(rule.scope.lower())
        # SOL003 has no other scope, and a rule about a single machine constrains nothing.
        if scope is None or not added or len(added) + len(staying) < 2:
            continue
        yield {
            "affinityOrAntiAffinity": "AFFINITY" if rule.kind == "affinity" else "ANTI_AFFINITY",
            "scope": scope,
            "resource": [
                *({"idType": "GRANT", "resourceId": one} for one in added),
                *({"idType": "RES_MGMT", "resourceId": one, "vimConnectionId": vim_key} for one in staying),
            ],
        }
