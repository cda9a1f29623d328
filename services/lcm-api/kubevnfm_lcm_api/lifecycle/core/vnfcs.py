"""The VNFCs that a request names."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_sol.resources import InstantiatedVnfInfo


def resource_ids(vnfc_ids: Sequence[str], info: InstantiatedVnfInfo) -> list[str]:
    """Return the ids in their VIM of VNFCs named by vnfcInfo or by vnfcResourceInfo: of machines, or names of pods.

    Raises InvalidInput for an unknown one.
    """
    resource_by_id = resource_by_vnfc(info)
    for index, vnfc_id in enumerate(vnfc_ids):
        if vnfc_id not in resource_by_id:
            raise InvalidInput(f"vnfcInstanceId[{index}]", f"the VNF has no VNFC {vnfc_id}")
    return list(dict.fromkeys(resource_by_id[vnfc_id] for vnfc_id in vnfc_ids))


def resource_by_vnfc(info: InstantiatedVnfInfo) -> dict[str, str]:
    """Return the id in its VIM of each VNFC, by the id of its vnfcInfo and by that of its vnfcResourceInfo."""
    # SOL003 names vnfcInfo; clients of Tacker's v1 API send the id of vnfcResourceInfo.
    resources = {one.id: one.compute_resource.resource_id for one in info.vnfc_resource_info}
    for vnfc in info.vnfc_info:
        if vnfc.vnfc_resource_info_id in resources:
            resources[vnfc.id] = resources[vnfc.vnfc_resource_info_id]
    return resources
