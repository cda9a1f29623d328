"""A cluster of a test's own, beside the lab, and the life of a CNF on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from callers.user import GRACEFUL, User, sample_body
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from servers.loopback import next_address


@asynccontextmanager
async def a_cluster(*names: str) -> AsyncIterator[LabCluster]:
    """Yield it; ``names``: further ones in its certificate."""
    labs, address = LabClusters(faults=FaultBook(), ledger=CallLedger()), next_address()
    cluster = await labs.create(
        address=address, version="v1.34.10", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12", san=names
    )
    await cluster.add_node("master", address=address, control_plane=True)
    await cluster.add_node("worker", address="127.0.0.8", control_plane=False)
    try:
        yield cluster
    finally:
        await labs.close()


async def live(user: User, vnfd_id: str, vim_id: str) -> None:
    """Deploy a CNF on a VIM, and remove it."""
    named = {"vimId": vim_id, "vimType": "ETSINFV.KUBERNETES.V_1"}
    instance_id = await user.create(vnfd_id)
    await user.do(instance_id, "instantiate", user.on_vim(sample_body("cnf", "instantiate"), named))
    await user.do(instance_id, "terminate", GRACEFUL)
    await user.delete(instance_id)
