"""The VNFCs that a request names."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_sol.resources import InstantiatedVnfInfo


def resource_ids(vnfc_ids: Sequence[str], info: InstantiatedVnfInfo) -> list[str]:
    """Return the ids in their VIM of VNFCs named by vnfcInfo or by vnfcResourceInfo: of machines, or names of pods.

    Raises InvalidInput for an unknown one.
    """
    # SOL003 names vnfcInfo; clients of Tacker's v1 API send the id of vnfcResourceInfo.
    resource_by_id = {one.id: one.compute_resource.resource_id for one in info.vnfc_resource_info}
    for vnfc in info.vnfc_info:
        if vnfc.vnfc_resource_info_id in resource_by_id:
            resource_by_id[vnfc.id] = resource_by_id[vnfc.vnfc_resource_info_id]
    for index, vnfc_id in enumerate(vnfc_ids):
        if vnfc_id not in resource_by_id:
            raise InvalidInput(f"vnfcInstanceId[{index}]", f"the VNF has no VNFC {vnfc_id}")
    return list(dict.fromkeys(resource_by_id[vnfc_id] for vnfc_id in vnfc_ids))
