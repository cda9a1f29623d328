"""The rules of a heal of a cluster's nodes, and what it needs to know (sequences.md 5.1 to 5.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubevnfm_cluster import read_cluster_parameters
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.requests.cluster_nodes import ClusterFields, changed_cluster, servers_of
from kubevnfm_lcm_api.lifecycle.requests.vnf_under_change import VnfUnderChange

_FIELD: Final = "vnfcInstanceId"


def healed_cluster(vnf: VnfUnderChange, chosen: Collection[str] | None, given: Mapping[str, Any]) -> ClusterFields:
    """Return the fields of a cluster whose nodes are healed; none for any other VNF.

    ``chosen``: Nova ids of the machines that the request names, None: it names none; ``given``: its additionalParams.
    Raises: Unprocessable if the cluster would not survive the loss of the machines; InvalidInput, Unprocessable of
    `with_overrides`.
    """
    internals = vnf.record.internals
    driver = internals.phases.get("heal_end")
    if driver is None or "instantiate_end" not in internals.phases:
        return {}
    present = read_cluster_parameters(internals.parameters)
    masters = {server.server_id for server in servers_of(vnf, present, "master")}
    workers = {server.server_id for server in servers_of(vnf, present, "worker")}
    if chosen is None:
        raise Unprocessable(_FIELD, "missing: the workers to heal expected, a cluster cannot be healed as a whole yet")
    healed = masters.intersection(chosen)
    if healed and len(masters) == 1:
        raise Unprocessable(
            _FIELD, "HEAL-1M: this is the only master, and the cluster is lost with it: terminate and instantiate again"
        )
    if healed:
        raise Unprocessable(_FIELD, "a master is among the machines: masters cannot be healed yet")
    if not workers.issuperset(chosen):
        raise Unprocessable(_FIELD, "a machine that is neither master nor worker is named: it cannot be healed yet")
    return changed_cluster(vnf, driver, given)
