"""Virtual links in memory, whose users take and give back while processes are killed and other parties interfere.

Two processes work on the same documents and the same cluster. A process may be killed before and after each write to either of them; its
turn then lasts until the clock has passed it. The calls of users are repeated as an HTTP client or a step would repeat them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients.multicloud.links import LinkRequest
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters import stored_links
from kubevnfm_infra_k8s.adapters import turns as stored_turns
from kubevnfm_infra_k8s.adapters.turns import StoredTurns
from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.links.bringing import Bringing
from kubevnfm_infra_k8s.domain.links.owner import VirtualLinks
from kubevnfm_infra_k8s.domain.links.record import LINK_LABEL, SHARED_LABEL, Link
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, labels_of, uid_of
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet
from kubevnfm_infra_k8s.domain.reconciling.ports import Region
from kubevnfm_infra_k8s.domain.reconciling.work import ReconcilingWork
from kubevnfm_kit.errors import BeingRemoved, NotFound
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.owners import Owners
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import Outgoing
from kubevnfm_store.query import Filter
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay

from worlds.link_world import GivenRegions, OneVim
from worlds.set_clock import SetClock
from worlds.watched_store import WatchedStore

SPECS: Mapping[str, tuple[str, Body]] = {
    "plain": ("nad", {"macvlan": {"master": "eth0"}}),
    "ovn-a": ("ovn4nfv", {"ipv4Subnets": [{"name": "s", "subnet": "10.1.0.0/24"}]}),
    "ovn-b": ("ovn4nfv", {"ipv4Subnets": [{"name": "s", "subnet": "10.2.0.0/24"}]}),
}
TEN: Mapping[str, tuple[str, Body]] = {
    **{f"plain-{n}": ("nad", {"macvlan": {"master": f"eth{n}"}}) for n in range(4)},
    **{f"ovn-{n}": ("ovn4nfv", {"ipv4Subnets": [{"name": "s", "subnet": f"10.{n}.0.0/24"}]}) for n in range(6)},
}
NAMES = st.sampled_from(sorted(SPECS))
REFERENCES = st.sampled_from(["vnf:1", "vnf:2", "so"])
DEATHS = st.one_of(st.none(), st.integers(0, 20))
"""After how many calls of store and cluster the process dies."""
NAMESPACES = st.sampled_from(["ns1", "ns2"])


class Killed(Exception):
    """The process is gone: from now on none of its calls does anything."""


@dataclass
class Life:
    """When the process dies."""

    calls_left: int | None = None
    is_dead: bool = False

    def call(self) -> None:
        """Count a call of the process; it is lost if the process dies here."""
        if self.is_dead:
            raise Killed
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left < 0:
                self.is_dead = True
                raise Killed


class MortalStore(WatchedStore):
    """The documents, as the process that is alive writes them."""

    life = Life()

    def before_write(self) -> None:
        self.life.call()

    def after_write(self, collection: str, id: str, body: JsonMapping | None, outbox: Sequence[Outgoing]) -> None:
        self.life.call()

    async def delete_many(self, collection: str, filter: Filter) -> int:
        self.life.call()
        return await super().delete_many(collection, filter)


@dataclass
class MemoryCluster:
    """The part of `domain.ports.Cluster` that links use, in memory."""

    life: Life
    objects: dict[ObjectKey, Body] = field(default_factory=dict)
    refusal: ObjectRefused | None = None
    """How it answers deletions."""
    _uids: count[int] = field(default_factory=count)

    @asynccontextmanager
    async def cluster(self, vim: VimConnection) -> AsyncIterator[MemoryCluster]:
        yield self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=True)

    def forget_kinds(self) -> None:
        """Nothing is kept."""

    async def get(self, resource: Resource, key: ObjectKey) -> Body | None:
        self.life.call()
        return self.objects.get(key)

    async def apply(self, resource: Resource, key: ObjectKey, body: Body) -> Body:
        self.life.call()
        there = self.objects.get(key)
        uid = uid_of(there) if there is not None else f"uid-{next(self._uids)}"
        self.objects[key] = {**body, "metadata": {**body["metadata"], "uid": uid}, "status": {"state": "Created"}}
        self.life.call()
        return self.objects[key]

    async def delete(self, resource: Resource, key: ObjectKey, *, uid: str) -> bool:
        self.life.call()
        if self.refusal is not None:
            raise self.refusal
        there = self.objects.get(key)
        if there is None or uid_of(there) != uid:
            return False
        del self.objects[key]
        self.life.call()
        return True


class NoWork:
    """`owner.LinkWork`: the passes are those of the machine."""

    def __init__(self, records: stored_links.StoredLinks) -> None:
        self._records = records

    def wake(self, link_id: str) -> None:
        """Rules have the passes."""

    async def decided(self, link_id: str, *, within_s: float) -> Link | None:
        return await self._records.get(link_id)


class Counts(RuleBasedStateMachine):
    """Users hold what they have taken and not given back, whatever happens."""

    def __init__(self, specs: Mapping[str, tuple[str, Body]] = SPECS) -> None:
        super().__init__()
        self.specs = specs
        self.loop = asyncio.new_event_loop()
        self.folder = TemporaryDirectory()
        self.clock = SetClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.held: dict[str, dict[str, str]] = {name: {} for name in specs}
        """The namespace by user, by link."""
        self.ids: dict[str, str] = {}
        self.is_tampered = False
        self.life = Life()
        self.cluster = MemoryCluster(self.life)
        self._ends: list[Callable[[], Awaitable[object]]] = []
        self.run(self._open())

    async def _open(self) -> None:
        ring = KeyRing.from_text(KeyRing.new_key())
        opened: Any = MortalStore.open(Path(self.folder.name) / "documents.db")
        self.store = await opened.__aenter__()
        self.store.life = self.life
        for collection, indexes in {**stored_links.INDEXES, **stored_turns.INDEXES}.items():
            await self.store.ensure_indexes(collection, indexes)
        bus = InProcessBus(ring)
        await bus.__aenter__()
        relay = OutboxRelay(self.store, bus, collections=[stored_links.LINKS])
        await relay.__aenter__()
        self._ends = [lambda: opened.__aexit__(None, None, None), lambda: bus.__aexit__(None, None, None)]
        self._ends.append(lambda: relay.__aexit__(None, None, None))
        self.records = stored_links.StoredLinks(self.store, Outbox(self.store, relay, ring))
        turns, clusters = StoredTurns(self.store, self.clock, Owners()), self._clusters()
        vims = OneVim({"vim": VimConnection(vim_type="ETSINFV.KUBERNETES.V_1")})
        regions = GivenRegions({"op/one": Region("vim", "links")})
        self.links = VirtualLinks(self.records, turns, regions, vims, clusters, NoWork(self.records), self.clock)
        self.work = ReconcilingWork[Link](
            "link",
            self.records,
            turns,
            regions,
            vims,
            clusters,
            lambda cluster: Bringing(self.records, turns, cluster, self.clock, timeout_s=1e9),
            self.clock,
        )

    def _clusters(self) -> Any:
        return self.cluster

    def run(self, work: Coroutine[Any, Any, Any], dies_after: int | None = None) -> Any:
        """Run a call of a process; None if it is killed, after so many calls of store and cluster.

        The next call is one of another process, when the turns of the dead one have ended.
        """
        self.life.calls_left = dies_after
        try:
            return self.loop.run_until_complete(work)
        except Killed:
            self.clock.advance(60)
            return None
        finally:
            self.life.is_dead, self.life.calls_left = False, None

    def teardown(self) -> None:
        self._settle()
        for name, users in self.held.items():
            for reference in list(users):
                self._give_back(name, reference)
        self._settle()
        assert self.run(self.records.page({}, limit=10, after=None)) == []
        foreign = [each for each in self.cluster.objects.values() if not _is_of_a_link(each)]
        assert list(self.cluster.objects.values()) == foreign

        async def close() -> None:
            for end in reversed(self._ends):
                await end()

        self.loop.run_until_complete(close())
        self.loop.close()
        self.folder.cleanup()
        super().teardown()

    @rule(name=NAMES, reference=REFERENCES, namespace=NAMESPACES, times=st.integers(1, 2), dies_after=DEATHS)
    def create(self, name: str, reference: str, namespace: str, times: int, dies_after: int | None) -> None:
        """POST, once or twice, and again after a kill."""
        kind, spec = self.specs[name]
        asked = LinkRequest.model_validate(
            {
                "cloud_region_id": "op/one", "name": name, "type": kind, "spec": spec,
                "reference": reference, "namespaces": [namespace],
            }
        )  # fmt: skip
        for _ in range(times):
            self._take(name, reference, namespace, lambda: self._created(asked), dies_after)

    @rule(name=NAMES, reference=REFERENCES, namespace=NAMESPACES, times=st.integers(1, 2), dies_after=DEATHS)
    def hold(self, name: str, reference: str, namespace: str, times: int, dies_after: int | None) -> None:
        """PUT of a reference, as a step of a VNF does it."""
        if name in self.ids:
            for _ in range(times):
                self._take(name, reference, namespace, lambda: self._taken(name, reference, namespace), dies_after)

    @rule(name=NAMES, reference=REFERENCES, times=st.integers(1, 2), dies_after=DEATHS)
    def release(self, name: str, reference: str, times: int, dies_after: int | None) -> None:
        """DELETE of a reference, as the undo of the step does it."""
        for _ in range(times):
            self._give_back(name, reference, dies_after)

    @rule(name=NAMES, dies_after=DEATHS)
    def bring(self, name: str, dies_after: int | None) -> None:
        """Have a pass over a link."""
        if name in self.ids:
            self.run(self._pass(self.ids[name]), dies_after)

    @rule(index=st.integers(0, 20))
    def other_party_deletes(self, index: int) -> None:
        """Delete an object as a person with kubectl does."""
        keys = sorted(self.cluster.objects)
        if keys:
            self.is_tampered = True
            del self.cluster.objects[keys[index % len(keys)]]

    @rule()
    def settle(self) -> None:
        """Have rounds until nothing is left to do, and compare all with what the users hold."""
        self._settle()
        for name, users in self.held.items():
            link = self.run(self.records.named("vim", name))
            assert (link is not None) == bool(users)
            assert {each.namespace for each in self._own(name)} == self._wanted(name)
            if link is not None:
                assert link.status == "READY", link.status_detail
        by_pods = {each.namespace for each in self._own("ovn-networkobj")}
        of_ovn = (users for name, users in self.held.items() if self.specs[name][0] == "ovn4nfv")
        assert by_pods == {namespace for users in of_ovn for namespace in users.values()}

    @invariant()
    def no_count_drifts(self) -> None:
        for name, users in self.held.items():
            link = self.run(self.records.named("vim", name))
            references = set() if link is None else set(link.references)
            assert references == set(users), (name, references, users)
            if link is not None:
                assert link.shown().use_count == len(users)
                assert link.is_removed == (not users)

    def _take(
        self,
        name: str,
        reference: str,
        namespace: str,
        call: Callable[[], Coroutine[Any, Any, bool]],
        dies_after: int | None,
    ) -> None:
        done = self.run(call(), dies_after)
        if done is None:  # killed: the caller repeats it until it knows
            done = self.run(call())
        if done:
            self.held[name][reference] = namespace

    async def _created(self, asked: LinkRequest) -> bool:
        try:
            created = await self.links.create(asked, wait_s=0)
        except BeingRemoved:
            return False
        self.ids[asked.name] = created.link.id
        return True

    async def _taken(self, name: str, reference: str, namespace: str) -> bool:
        try:
            await self.links.hold(self.ids[name], reference, [namespace])
        except (NotFound, BeingRemoved):
            return False
        return True

    def _give_back(self, name: str, reference: str, dies_after: int | None = None) -> None:
        async def call() -> bool:
            try:
                await self.links.release(self.ids[name], reference)
            except NotFound:
                return True
            return True

        if name in self.ids:
            if self.run(call(), dies_after) is None:
                self.run(call())
            self.held[name].pop(reference, None)

    async def _pass(self, link_id: str) -> bool:
        try:
            await self.work.one_pass(link_id)
        except NotYet:
            return False
        return True

    def _settle(self) -> None:
        for _ in range(5):
            for link_id, _vim in self.run(self.records.unsettled()):
                self.run(self._pass(link_id))
            self.clock.advance(60)
        if not self.is_tampered:
            return
        # The next request alone repairs what another party has deleted.
        self.is_tampered = False
        for link_id, _vim in self.run(self.records.settled()):
            link = self.run(self.records.get(link_id))
            reference = link.references[0]
            self.run(self.links.hold(link_id, reference, link.namespaces_of(reference)))
            self.run(self._pass(link_id))

    def _own(self, name: str) -> list[ObjectKey]:
        return [key for key in self.cluster.objects if key.name == name]

    def _wanted(self, name: str) -> set[str]:
        users = self.held[name]
        if self.specs[name][0] == "nad":
            return set(users.values())
        return {"links"} if users else set()


def _is_of_a_link(body: Body) -> bool:
    return bool({LINK_LABEL, SHARED_LABEL} & set(labels_of(body)))
