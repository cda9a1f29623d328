"""The ``kubernetes`` driver: which phase means what."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.clock import Clock

from kubevnfm_mgmt_executor.domain.driver import PhaseRequest, PhaseResult, Tools
from kubevnfm_mgmt_executor.domain.errors import PhaseUnsupported
from kubevnfm_mgmt_executor.domain.kubernetes.install import ClusterInstall
from kubevnfm_mgmt_executor.domain.kubernetes.package import read_package
from kubevnfm_mgmt_executor.domain.kubernetes.request import cluster_request

NAMES: Final = ("kubernetes", "mgmt-drivers-kubernetes")

NOTHING_TO_DO: Final = frozenset(
    {
        "instantiate_start",
        "terminate_start",
        "change_external_connectivity_start",
        "change_external_connectivity_end",
        "modify_information_start",
        "modify_information_end",
    }
)


class KubernetesDriver:
    """Clusters of kubeadm on the VNF's machines."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def run(self, request: PhaseRequest, tools: Tools) -> PhaseResult:
        """Do the phase. Raises PhaseUnsupported, and what installing raises."""
        if request.phase in NOTHING_TO_DO:
            return PhaseResult()
        if request.phase == "terminate_end":
            # The machines are gone by now; others may get their addresses.
            await tools.host_keys.forget(request.vnf_instance_id)
            await tools.journal.forget(request.vnf_instance_id)
            return PhaseResult()
        if request.phase == "instantiate_end":
            cluster = cluster_request(request)
            files = await read_package(request.package, cluster.parameters)
            return await ClusterInstall(cluster, files, tools, clock=self._clock).run()
        raise PhaseUnsupported(f"phase {request.phase}: clusters cannot be scaled or healed yet")
