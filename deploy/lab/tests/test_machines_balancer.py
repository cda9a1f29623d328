"""The load balancers of the lab's machines."""

from __future__ import annotations

import asyncio

from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes.clusters import LabClusters
from kubevnfm_lab.machines.balancer import Balancer
from kubevnfm_lab.machines.controlplanes import ControlPlanes


class _SlowBalancer(Balancer):
    """A balancer whose updates wait after they have read the configurations."""

    def __init__(self) -> None:
        super().__init__(lambda: (), ControlPlanes(LabClusters(faults=FaultBook(), ledger=CallLedger())))
        self.runs = 0
        self.proceed = asyncio.Event()

    async def settle(self) -> None:
        self.runs += 1
        await self.proceed.wait()


async def test_a_change_during_an_update_is_followed_by_another_update() -> None:
    balancer = _SlowBalancer()
    balancer.changed()
    await asyncio.sleep(0)
    assert balancer.runs == 1
    balancer.changed()
    balancer.changed()
    balancer.proceed.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert balancer.runs == 2
    await balancer.close()


async def test_a_change_just_after_an_update_is_followed_by_another_update() -> None:
    balancer = _SlowBalancer()
    balancer.proceed.set()
    for runs in range(1, 4):
        balancer.changed()
        await asyncio.sleep(0)  # the update has ended, and the loop has not yet called its callbacks
        assert balancer.runs == runs
    await balancer.close()
