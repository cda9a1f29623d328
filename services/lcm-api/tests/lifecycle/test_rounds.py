"""The cost of the rounds: each query names an index, so that it reads no more documents than it is about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from kubevnfm_clients.ports import Vims
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lcm_api.lifecycle.core.drift_watch import DriftWatch
from kubevnfm_lcm_api.lifecycle.core.idle_instances import Questions
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION
from kubevnfm_lcm_api.lifecycle.core.suspension import RegionSuspensions
from kubevnfm_lcm_api.lifecycle.wiring import INDEXES
from kubevnfm_lcm_api.lifecycle.workloads.machine_watch import MachineWatch
from kubevnfm_store.query import AllOf, Compare, Exists, Filter, Op, Query, Stored
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from worlds.lcm_world import RING, FragileStore, Storage, lcm_world


class ListeningStore(FragileStore):
    """Keeps the queries."""

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]  # as the class has them
        self.queries: list[Query] = []

    async def find(self, collection: str, query: Query) -> Sequence[Stored]:
        if collection == COLLECTION:
            self.queries.append(query)
        return await super().find(collection, query)


def is_served(filter: Filter) -> bool:
    """Return whether an index leads to the documents of the filter."""
    match filter:
        case AllOf(filters):
            return any(is_served(each) for each in filters)
        case Compare(path, _, _):
            # Most instances have the same state, and those that fit are nearly all.
            return path != "instantiationState" and any(index.fields[0] == path for index in INDEXES[COLLECTION])
        case Exists(path, True):
            return any(index.sparse and list(index.fields) == [path] for index in INDEXES[COLLECTION])
        case _:
            return False


async def test_no_query_of_a_round_grows_with_the_number_of_instances(tmp_path: Path) -> None:
    async with (
        lcm_world(tmp_path, Storage(kind=ListeningStore)) as world,
        OutboxRelay(world.store, world.bus, collections=[COLLECTION]) as relay,
    ):
        world.vims.records["vim-1"]["status"] = "ACTIVE"
        vims: Vims = world.vims
        store, clock = world.store, SystemClock()
        assert isinstance(store, ListeningStore)
        questions = Questions(world.bus, clock, 60.0)
        drift = DriftWatch(
            store=store,
            outbox=Outbox(store, relay, RING),
            questions=questions,
            vims=vims,
            suspensions=RegionSuspensions(world.regions),
            ring=RING,
            clock=clock,
        )
        machines = MachineWatch(store=store, questions=questions, ring=RING, clock=clock)
        for look in (drift.look, machines.look):
            store.queries.clear()
            await look()
            assert store.queries
            assert [each for each in store.queries if not is_served(each.filter)] == []


@pytest.mark.parametrize(
    "filter", [Exists("internal/vimIds", exists=False), Exists("internal/workload"), AllOf(), Compare("x", Op.EQ, [1])]
)
def test_a_query_without_an_index_is_noticed(filter: Filter) -> None:
    assert not is_served(filter)
