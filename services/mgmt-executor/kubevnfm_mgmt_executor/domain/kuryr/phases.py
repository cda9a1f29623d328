"""The phases of the ``kuryr-kubernetes`` driver (sequences.md 1.8, B5)."""

from __future__ import annotations

from typing import Final

import structlog
from kubevnfm_events.mgmt import RunPhase
from kubevnfm_kit.errors import VnfmError

from kubevnfm_mgmt_executor.domain.driver import Driver, PackageFiles, PhaseResult, Tools, forget_machines, nothing
from kubevnfm_mgmt_executor.domain.errors import AddressRefused
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster
from kubevnfm_mgmt_executor.domain.kubernetes.package import InstallFiles
from kubevnfm_mgmt_executor.domain.kubernetes.phases import (
    Plan,
    cluster_access,
    find_master,
    install_cluster,
    no_facts,
    node_phases,
    on_machines,
)
from kubevnfm_mgmt_executor.domain.kubernetes.registry_files import OWN_LIBRARY, read_registry_files
from kubevnfm_mgmt_executor.domain.kubernetes.volume_files import read_volume_files
from kubevnfm_mgmt_executor.domain.kuryr.manifests import WORKLOADS

log = structlog.get_logger()


def install_kuryr_cluster(cluster: Cluster) -> Plan:
    """Install a cluster (sequences.md 1.10) with Kuryr in place of a pod network."""
    plan = install_cluster(cluster, network="kuryr")
    last = [(task.name, cluster.name(task.node)) for task in plan.tasks if task.name in ("init", "join_master")]
    # One after the other: both upload the driver's script.
    plan.add("entry", cluster.master, after=[plan.add("etcd", cluster.master, after=last)])
    return plan


def withdraw_kuryr(cluster: Cluster) -> Plan:
    """Let Kuryr delete what it has made for Services, then stop it."""
    plan, master = Plan(cluster), cluster.master
    plan.add("withdraw", master, after=[plan.add("reach", master)])
    return plan


async def read_files(package: PackageFiles, own: PackageFiles, cluster: Cluster) -> InstallFiles:
    """Return the files of a phase. The script is always the driver's own: it must leave kube-proxy out.

    Kuryr's pods are waited for wherever nodes join: C2k.
    """
    script = await own.read(OWN_LIBRARY)
    assert script is not None, f"{OWN_LIBRARY} is a part of this program"
    path = cluster.parameters.script_path
    remark = f"{path} of the package is not run: the driver's own script works on clusters with Kuryr"
    remarks = [] if await package.read(path) == script else [remark]
    registries = await read_registry_files(package, own, cluster.parameters.private_registry_connection_info)
    volumes = await read_volume_files(package, own, cluster)
    return InstallFiles(script, b"", WORKLOADS, tuple(remarks), registries, volumes)


_WITHDRAW: Final = on_machines(withdraw_kuryr, no_facts, read_files, begin=find_master)


async def stop(command: RunPhase, tools: Tools) -> PhaseResult:
    """Stop Kuryr. FORCEFUL: a cluster that cannot be worked on does not hold the termination up.

    Nor does one whose address is not granted, graceful or not: no repeat could reach it.
    """
    try:
        return await _WITHDRAW(command, tools)
    except VnfmError as error:
        if not command.force and not isinstance(error, AddressRefused):
            raise
        log.warning("kuryr_not_stopped", reason=str(error))
        await tools.recorder.remark("withdraw", f"Kuryr could not be stopped: {error}")
        return PhaseResult()


_INSTALL: Final = on_machines(install_kuryr_cluster, cluster_access, read_files)
PHASES: Final[Driver] = {
    "instantiate_start": nothing,
    "instantiate_end": _INSTALL,
    **node_phases(_INSTALL, read_files),
    "terminate_start": stop,
    "terminate_end": forget_machines,
    "change_external_connectivity_start": nothing,
    "change_external_connectivity_end": nothing,
    "modify_information_start": nothing,
    "modify_information_end": nothing,
}
