"""Runs lcm-api as a process of its own."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from kubevnfm_clients.charts import HttpChartPrograms
from kubevnfm_clients.logs import HttpNodeLogs
from kubevnfm_clients.multicloud.dry_runs import HttpDryRuns
from kubevnfm_clients.multicloud.health_checks import HttpHealthChecks
from kubevnfm_clients.multicloud.inventory import HttpInventory
from kubevnfm_clients.multicloud.links import HttpVirtualLinks
from kubevnfm_clients.multicloud.regions import HttpCloudRegions
from kubevnfm_clients.multicloud.verdicts import HttpVerdicts
from kubevnfm_clients.multicloud.volumes import HttpPersistentVolumes
from kubevnfm_clients.playbooks import HttpPlaybookPrograms
from kubevnfm_clients.pod_usages import HttpPodUsages
from kubevnfm_clients.session import Peers
from kubevnfm_clients.vims import HttpVims
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.service import run_service

from kubevnfm_lcm_api.multicloud.services import MultiCloudServices
from kubevnfm_lcm_api.settings import Settings
from kubevnfm_lcm_api.wiring import SERVICE, LcmApi, lcm_api


def wire(settings: Settings, backends: Backends, peers: Peers) -> AbstractAsyncContextManager[LcmApi]:
    """Return the service with its clients of other services."""
    vims = HttpVims(settings.vim_registry_url, *peers.credentials("vim-registry"))
    return lcm_api(
        settings,
        backends,
        vims=vims,
        node_logs=HttpNodeLogs(settings.mgmt_executor_url, *peers.credentials("mgmt-executor")),
        playbooks=HttpPlaybookPrograms(settings.mgmt_executor_url, *peers.credentials("mgmt-executor")),
        multicloud=MultiCloudServices(
            regions=HttpCloudRegions(
                settings.vim_registry_url, *peers.credentials("vim-registry"), ring=backends.key_ring
            ),
            links=HttpVirtualLinks(settings.infra_k8s_url, *peers.credentials("infra-k8s")),
            volumes=HttpPersistentVolumes(settings.infra_k8s_url, *peers.credentials("infra-k8s")),
            inventory=HttpInventory(settings.infra_k8s_url, *peers.credentials("infra-k8s")),
            dry_runs=HttpDryRuns(settings.infra_k8s_url, *peers.credentials("infra-k8s"), ring=backends.key_ring),
            verdicts=HttpVerdicts(settings.infra_k8s_url, *peers.credentials("infra-k8s")),
            charts=HttpChartPrograms(settings.infra_k8s_url, *peers.credentials("infra-k8s")),
            health_checks=HttpHealthChecks(settings.infra_k8s_url, *peers.credentials("infra-k8s")),
            usages=HttpPodUsages(settings.infra_k8s_url, *peers.credentials("infra-k8s"), ring=backends.key_ring),
        ),
    )


if __name__ == "__main__":
    run_service(SERVICE, Settings, wire)
