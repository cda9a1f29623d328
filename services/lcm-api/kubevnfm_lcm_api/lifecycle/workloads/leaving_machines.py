"""``additionalParams.vnfc_instance_ids`` of a scale in: the Machines that leave first (capi.md CR-090)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_events.objects import ObjectFacts
from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.vnfcs import resource_by_vnfc
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import WorkloadInternals

_NAME: Final = "vnfc_instance_ids"
_PLACE: Final = f"additionalParams/{_NAME}"


def leaving_machines(
    vnf: CnfUnderChange,
    workload: WorkloadInternals,
    parameters: Mapping[str, Any],
    differences: Mapping[str, int],
) -> tuple[ObjectFacts, ...]:
    """Return the Machines that a scaling is to remove first.

    ``differences``: of the numbers of VNFCs, by VDU. Raises: InvalidInput for a malformed list and unknown VNFCs;
    Unprocessable for VNFCs of a VDU that loses fewer.
    """
    given = parameters.get(_NAME)
    if given is None:
        return ()
    if not isinstance(given, list) or not given or not all(isinstance(each, str) for each in given):
        raise InvalidInput(_PLACE, "a list of the ids of VNFCs expected")
    names, machines = resource_by_vnfc(vnf.info), {each.name: each for each in workload.machines}
    for index, vnfc_id in enumerate(given):
        if names.get(vnfc_id) not in machines:
            raise InvalidInput(f"{_PLACE}[{index}]", f"the VNF has no VNFC {vnfc_id}")
    chosen = [machines[name] for name in dict.fromkeys(names[each] for each in given)]
    for vdu_id, count in Counter(each.vdu_id for each in chosen).items():
        leave = max(0, -differences.get(vdu_id or "", 0))
        if count > leave:
            raise Unprocessable(_PLACE, f"names {count} VNFCs of VDU {vdu_id}, of which {leave} leave")
    return tuple(
        ObjectFacts(
            api_version=workload.cluster.api_version,
            kind="Machine",
            namespace=each.namespace,
            name=each.name,
            uid=each.uid,
        )
        for each in chosen
    )
