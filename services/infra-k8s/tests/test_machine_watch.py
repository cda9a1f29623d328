"""The watch over the Machines of workload clusters between operations, on the lab's stand-in for Cluster API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope
from kubevnfm_events.capi import ClusterReached, ExpectedMachines, MachinesChanged, MachinesFinding, WatchMachines
from kubevnfm_infra_k8s.handlers.watches import WatchHandler
from kubevnfm_lab.faults import CallLedger
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_lab.kubernetes.objects import Key
from kubevnfm_secrets import KeyRing
from patience import until, until_true
from worlds.capi_management import MACHINES, VDUS, Management, managed


class Watched:
    """A management cluster, and the handler with what it publishes."""

    def __init__(self, management: Management, bus: InProcessBus) -> None:
        site = management.site
        self.management, self.bus = management, bus
        self.found: list[MachinesFinding] = []
        self.handler = WatchHandler(
            clusters=site.clusters, vims=site.handlers.vims, watches=management.handlers.watches, bus=bus,
            clock=site.handlers.clock,
        )  # fmt: skip

    async def keep(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, MachinesChanged)
        self.found += delivery.envelope.data.findings
        return Ack()

    async def ask(self, expected: ClusterReached, *, in_s: float = 60.0) -> None:
        """Deliver the command once; it is taken at once, however long it is watched."""
        one = ExpectedMachines(
            vnf_instance_id="i1",
            revision=7,
            cluster=self.management.cluster_of(),
            vdus=VDUS,
            machines=expected.machines,
        )
        deadline = self.management.handlers.clock.now() + timedelta(seconds=in_s)
        command = WatchMachines(vim=self.management.site.vim, expected=(one,))
        envelope = Envelope(data=command, source="/kubevnfm/lcm-api", deadline=deadline)
        assert await self.handler.watch_machines(Delivery(envelope, 1)) == Ack()


@pytest.fixture
async def watched(site: Any, lab: LabCluster) -> AsyncIterator[Watched]:
    async with managed(site, lab) as management, InProcessBus(KeyRing.from_text(KeyRing.new_key())) as bus:
        watched = Watched(management, bus)
        await bus.consume_events("found", ["infra.machines.changed"], watched.keep)
        async with watched.handler.watching():
            yield watched


async def test_a_machine_that_cluster_api_replaces_is_found_with_its_successor(
    watched: Watched, ledger: CallLedger
) -> None:
    """CR-119, CR-120: with node and addresses; until then the watch costs no request of its own."""
    reached = await watched.management.built()
    await watched.ask(reached)
    lists = sum(each["count"] for each in ledger.calls() if each["verb"] == "list machines")
    worker = next(each for each in reached.machines if each.vdu_id == "worker")
    # As the owner does for a MachineHealthCheck.
    machine = watched.management.lab.store.get(MACHINES, Key("default", worker.name))
    assert machine is not None
    assert watched.found == []
    watched.management.lab.plane.delete(MACHINES, machine)
    asked = 1

    async def replaced() -> MachinesFinding | None:
        nonlocal asked
        complete = [
            one for one in watched.found if len(one.machines) == 3 and all(each.addresses for each in one.machines)
        ]
        # Each question is answered once, with what is there then.
        if not complete and len(watched.found) == asked:
            asked += 1
            await watched.ask(reached)
        return complete[0] if complete else None

    finding = await until(replaced, timeout_s=60)
    (new,) = (each for each in finding.machines if each.name in finding.added)
    assert (finding.revision, finding.removed) == (7, (worker.name,))
    assert (new.vdu_id, new.node, new.owner) == ("worker", new.name, "workload-md-0")
    assert sum(each["count"] for each in ledger.calls() if each["verb"] == "list machines") == lists


async def test_a_question_ends_with_its_deadline(watched: Watched) -> None:
    """CR-120: the next one knows newer facts."""
    reached = await watched.management.built()
    earlier = reached.model_copy(update={"machines": reached.machines[1:]})
    await watched.ask(earlier, in_s=0.0)
    await watched.ask(reached, in_s=0.05)

    async def has_ended() -> bool:
        return not watched.handler.is_watching

    await until_true(has_ended, timeout_s=60)
    assert watched.found == []
