"""The phases of the ``kubernetes`` driver. A new phase is a row here, and a plan if it works on machines."""

from __future__ import annotations

from typing import Final

from kubevnfm_events.mgmt import RunPhase

from kubevnfm_mgmt_executor.domain.driver import Driver, PhaseResult, PhaseWork, Tools
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import read_cluster
from kubevnfm_mgmt_executor.domain.kubernetes.package import read_package
from kubevnfm_mgmt_executor.domain.kubernetes.plans import PlanFunction, install_cluster
from kubevnfm_mgmt_executor.domain.kubernetes.run import ResultFunction, cluster_access, run_plan
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun


def on_machines(plan: PlanFunction, result: ResultFunction) -> PhaseWork:
    """Return the work of a phase that runs a plan of node tasks on the cluster's machines."""

    async def work(command: RunPhase, tools: Tools) -> PhaseResult:
        # All checks of command and package stand before the first login: a wrong request changes no machine.
        cluster = read_cluster(command, tools.reveal)
        files = await read_package(tools.package, cluster.parameters)
        run = ClusterRun(cluster, files, tools)
        await run_plan(plan(cluster), run)
        return result(run)

    return work


async def nothing(_: RunPhase, __: Tools) -> PhaseResult:
    """Do nothing: the phase has no meaning for a cluster, but VNFDs of other managers map it to the driver."""
    return PhaseResult()


async def forget_machines(command: RunPhase, tools: Tools) -> PhaseResult:
    """Delete journal and host keys: the machines no longer exist, and others may get their addresses."""
    # The output stays, because operators read it after a termination; `ForgetInstance` deletes it with the instance.
    await tools.host_keys.forget(command.vnf_instance_id)
    await tools.journal.forget(command.vnf_instance_id)
    return PhaseResult()


PHASES: Final[Driver] = {
    "instantiate_start": nothing,
    "instantiate_end": on_machines(install_cluster, cluster_access),
    "terminate_start": nothing,
    "terminate_end": forget_machines,
    "change_external_connectivity_start": nothing,
    "change_external_connectivity_end": nothing,
    "modify_information_start": nothing,
    "modify_information_end": nothing,
}
