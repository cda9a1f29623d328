"""The tasks of clusters with Kuryr; all other tasks are those of the ``kubernetes`` driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_mgmt_executor.domain.driver import PackageFiles
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.registry_files import LIBRARY
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.kuryr.manifests import WORKLOADS, manifests
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult

SCRIPT: Final = "kuryr.sh"
MANIFEST: Final = "kuryr.yaml"


async def own_script(own: PackageFiles) -> bytes:
    """Return the driver's script for Kuryr."""
    content = await own.read(SCRIPT)
    assert content is not None, f"{SCRIPT} is a part of this program"
    return content


async def etcd(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Wait until each master has a started member of etcd: the "etcd cluster" step of document 000."""
    masters = "\n".join(f"{run.cluster.name(one)} {one.nic_address}" for one in run.cluster.masters)
    given = {"THROUGH": run.cluster.name(node), "MASTERS": masters}
    return await _script(run, node, "etcd", given)


async def kuryr(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Apply Kuryr's objects through the master ``node``; wait for its controller and for the daemon on the nodes so far."""
    cluster, network = run.cluster, run.cluster.kuryr
    parameters = cluster.parameters.kuryr_param
    if network is None or parameters is None:
        raise Unprocessable("kuryr", "missing: the network entities of the cluster expected")
    text = manifests(parameters, network, api_root=f"https://{cluster.endpoint}", reveal=run.tools.reveal)
    session = run.session(node)
    # With the login of Keystone: uploaded with mode 0600, to this master alone, and removed with the folder.
    await session.copy({MANIFEST: text.encode()})
    return await session.change(
        "network",
        {
            **values.common(cluster),
            "CNI_MANIFEST": MANIFEST,
            "CNI_WORKLOADS": "\n".join(f"{namespace} {workload}" for namespace, workload in WORKLOADS),
        },
        timeout_s=run.timeouts.command + len(WORKLOADS) * run.timeouts.node_ready,
    )


async def entry(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Wait until the API answers through the load balancer, where pods look for it."""
    assert run.cluster.kuryr is not None
    return await _script(run, node, "entry", {"API_ADDRESS": run.cluster.kuryr.api_address})


async def withdraw(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Delete the Services with load balancers for the outside, then Kuryr's controller."""
    return await _script(run, node, "withdraw", {})


async def _script(run: ClusterRun, node: ManagedNode, task: str, given: Mapping[str, str]) -> TaskResult:
    session, limits = run.session(node), run.timeouts
    await session.copy({SCRIPT: await own_script(run.tools.own_files), LIBRARY: run.files.script})
    return await session.change(
        task,
        {"TIMEOUT_S": str(limits.node_ready), **given},
        # `withdraw` waits for each Service in turn; 20 of them, at the most, may be slow.
        timeout_s=limits.command + (20 if task == "withdraw" else 1) * limits.node_ready,
        script=SCRIPT,
    )
