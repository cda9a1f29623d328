"""Outputs: values that are read from the objects of an instance, and read again when these change (multicloud.md MC-138)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from kubevnfm_events import VimConnection
from kubevnfm_events.outputs import WantedOutput
from kubevnfm_infra_k8s.domain.outputs.owner import Outputs
from kubevnfm_infra_k8s.domain.outputs.watch import OutputWatch
from kubevnfm_kit.clock import SystemClock
from packages.kubernetes_objects import an_object
from patience import until_true
from worlds.inventory_world import inventory_world
from worlds.link_world import OneVim
from worlds.output_world import KeptOutputs

ADDRESS = "{.status.loadBalancer.ingress[0].ip}"


@dataclass(frozen=True)
class FaultyVim(OneVim):
    """A directory that raises errors which nothing expects."""

    faults: list[Exception]

    async def connection(self, vim: VimConnection) -> VimConnection:
        if self.faults:
            raise self.faults.pop()
        return await super().connection(vim)


@pytest.fixture
def unexpected() -> list[Exception]:
    """The errors that the directory of VIMs raises next."""
    return []


@pytest.fixture
async def kept_outputs(ground: Any, unexpected: list[Exception]) -> AsyncIterator[KeptOutputs]:
    """The outputs, with a process that watches their objects."""
    records = KeptOutputs()
    outputs = Outputs(records, SystemClock())
    site = ground.site = ground.site.with_changes(outputs=outputs).registered()
    async with inventory_world(site.store, site.clusters, {"vim": site.vim}, lease_s=2.0) as world:
        world.outputs = OutputWatch(outputs, FaultyVim({"vim": site.vim}, unexpected), site.clusters, look_s=0.1)
        world.start()
        yield records


def wanted(name: str, kind: str, of: str, jsonpath: str) -> WantedOutput:
    return WantedOutput(name=name, kind=kind, object_name=of, jsonpath=jsonpath)


async def test_the_address_of_a_service_that_comes_late_changes_and_goes(
    ground: Any, kept_outputs: KeptOutputs, unexpected: list[Exception]
) -> None:
    """MC-138 (scenario 18): each change is published once; what cannot be shown is null."""
    # With a class that no controller here has: the test writes the address.
    balanced = {"type": "LoadBalancer", "loadBalancerClass": "example.com/late", "selector": {"app": "web"}}
    at_once = {"annotations": {"kubevnfm.io/ready-when": "spec.type == LoadBalancer"}}
    service = an_object("Service", "web", spec={**balanced, "ports": [{"port": 80}]}, metadata=at_once)
    settings = an_object("ConfigMap", "settings", data={"mode": "active", "long": "x" * 5000})
    outputs = (
        wanted("address", "Service", "web", ADDRESS),
        wanted("mode", "ConfigMap", "settings", "data.mode"),
        wanted("long", "ConfigMap", "settings", "data.long"),
    )
    applied = await ground.apply(service, settings, outputs=outputs)
    first = {"address": None, "mode": "active", "long": None}
    assert applied.outputs is not None
    assert applied.outputs.values == first
    # The Service may have been seen before the ConfigMap was made: that is another reading.
    assert kept_outputs.events[-1].read == applied.outputs
    applied_at = len(kept_outputs.events) - 1

    for address in ("203.0.113.7", "203.0.113.8", None):
        ingress = [{"ip": address}] if address else []
        before = len(kept_outputs.events)
        unexpected.append(RuntimeError("a fault of ours"))
        await ground.as_other("v1", "Service", "web", {"status": {"loadBalancer": {"ingress": ingress}}}, at="/status")

        async def is_published(before: int = before) -> bool:
            return len(kept_outputs.events) > before

        await until_true(is_published)
        assert kept_outputs.events[-1].read.values == {**first, "address": address}
        # Another change of the object is none of its outputs.
        await ground.as_other("v1", "Service", "web", {"metadata": {"annotations": {"seen": str(address)}}})
    changes = [each.read.values for each in kept_outputs.events[applied_at:]]
    assert changes == [{**first, "address": each} for each in (None, "203.0.113.7", "203.0.113.8", None)]
    every = [each.read.values for each in kept_outputs.events]
    assert all(before != after for before, after in pairwise(every))
    numbers = [each.read.number for each in kept_outputs.events]
    assert sorted(set(numbers)) == numbers
    await ground.delete()
    assert kept_outputs.records == {}
