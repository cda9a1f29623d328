"""Keeps the VNFCs of CNFs true between operations: Kubernetes replaces and moves their pods by itself (capi.md CR-120a).

The inventory of infra-k8s reports each pod that came, went or moved. Events may be repeated and arrive in another order, and
they do not have all that a VNFC shows. So an event that does not agree with the instance is only the reason to ask
infra-k8s for all of its pods; the answer is written if the instance was not written since the question. One question
stands for all events of a burst. While an operation runs, nothing is asked: its end reports the pods, and events that its
report may not include are compared once more afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events import Envelope, Event, PackageRef, VimConnection
from kubevnfm_events.inventory import PlacementChanged
from kubevnfm_events.objects import PodFacts
from kubevnfm_events.vnfcs import ReadVnfcs, VnfcsChanged, VnfcsRead
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import Stored
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.containers.releases import showing
from kubevnfm_lcm_api.lifecycle.core.idle_instances import Questions
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.request_parameters import DEF_FILES

log = structlog.get_logger()

_STORE_PAUSE_S: Final = 2.0
_BURST_S: Final = 0.2
"""Events of one instance that arrive within it are one question."""
_LOOK_S: Final = 1.0
_FIRST_PAUSE_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 30.0
"""From one look at an instance whose events are kept to the next, doubling: while its operation runs, or without an answer."""
_MOST_QUESTIONS: Final = 6
"""About events that no answer confirms: the cluster is away, and its watch lists all pods when it is back."""
_MOST_KEPT: Final = 1000
"""Instances whose events are kept."""
_ENDED: Final = ("Succeeded", "Failed")

Place = tuple[str, str]
"""Namespace and name."""


@dataclass
class _Burst:
    """Events of one instance that are compared together, by the call that has received the first of them."""

    changes: dict[Place, PlacementChanged]
    ended: asyncio.Future[Verdict]


@dataclass
class _Kept:
    """Events of one instance that the instance does not show yet."""

    due: float
    changes: dict[Place, PlacementChanged] = field(default_factory=dict)
    pause_s: float = _FIRST_PAUSE_S
    questions: int = 0


class FollowedVnfcs:
    """Has instances show the pods that run."""

    def __init__(
        self, *, store: DocumentStore, outbox: Outbox, questions: Questions, ring: KeyRing, clock: Clock
    ) -> None:
        self._store, self._outbox, self._questions = store, outbox, questions
        self._ring, self._clock = ring, clock
        self._bursts: dict[str, _Burst] = {}
        self._kept: dict[str, _Kept] = {}
        self._is_kept = asyncio.Event()

    async def follow(self, delivery: Delivery) -> Verdict:
        """Compare an event with its instance, or write what infra-k8s has read."""
        event = delivery.envelope.data
        if isinstance(event, PlacementChanged):
            return await self._compare(event) if _may_be_vnfc(event) else Ack()
        assert isinstance(event, VnfcsRead)
        try:
            await self._record(event)
        except StoreUnavailable as error:
            log.debug("vnfcs_not_recorded", reason=str(error))
            return Again(_STORE_PAUSE_S)
        return Ack()

    async def watch_kept(self) -> None:
        """Compare kept events when they are due, until cancelled; while there are none, nothing is done."""
        while True:
            await self._is_kept.wait()
            self._is_kept.clear()
            while self._kept:
                await asyncio.sleep(_LOOK_S)
                try:
                    await self._look()
                except StoreUnavailable as error:
                    log.debug("placements_not_compared", reason=str(error))

    async def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        for vnf_instance_id, unshown in [*self._kept.items()]:
            if unshown.due <= now:
                await self._ask_about(vnf_instance_id, {})

    async def _compare(self, change: PlacementChanged) -> Verdict:
        vnf_instance_id, place = change.vnf_instance_id, (change.namespace, change.name)
        burst = self._bursts.get(vnf_instance_id)
        if burst is not None:
            burst.changes[place] = change
            return await asyncio.shield(burst.ended)
        burst = _Burst({place: change}, asyncio.get_running_loop().create_future())
        self._bursts[vnf_instance_id] = burst
        verdict: Verdict = Again(_STORE_PAUSE_S)
        try:
            await asyncio.sleep(_BURST_S)
            del self._bursts[vnf_instance_id]
            await self._ask_about(vnf_instance_id, burst.changes)
            verdict = Ack()
        except StoreUnavailable as error:
            log.debug("placements_not_compared", reason=str(error))
        finally:
            if self._bursts.get(vnf_instance_id) is burst:
                del self._bursts[vnf_instance_id]
            burst.ended.set_result(verdict)
        return verdict

    async def _ask_about(self, vnf_instance_id: str, changes: Mapping[Place, PlacementChanged]) -> None:
        """Ask for the pods of an instance if these events, or those that are kept, do not agree with it."""
        stored = await self._store.get(COLLECTION, vnf_instance_id)
        if stored is None:
            self._kept.pop(vnf_instance_id, None)
            return
        if _is_claimed(stored):
            self._keep(vnf_instance_id, changes)
            return
        unshown = self._kept.get(vnf_instance_id)
        unseen = {**(unshown.changes if unshown is not None else {}), **changes}
        record = InstanceRecord.from_document(stored.body)
        release = _release_of(record)
        if release is None or _agree(unseen.values(), release.pods):
            self._kept.pop(vnf_instance_id, None)
            return
        if self._keep(vnf_instance_id, changes, is_asked=True):
            await self._ask(record, stored.revision)

    def _keep(self, vnf_instance_id: str, changes: Mapping[Place, PlacementChanged], *, is_asked: bool = False) -> bool:
        """Keep events for a later look; return False if there were enough questions about them."""
        now = asyncio.get_running_loop().time()
        unshown = self._kept.get(vnf_instance_id)
        if unshown is None:
            if len(self._kept) >= _MOST_KEPT:
                # The oldest; its next event compares it again.
                del self._kept[next(iter(self._kept))]
            unshown = self._kept[vnf_instance_id] = _Kept(now + _FIRST_PAUSE_S)
            self._is_kept.set()
        elif changes:
            unshown.questions = 0
        elif unshown.due <= now:
            unshown.pause_s = min(2 * unshown.pause_s, _LONGEST_PAUSE_S)
            unshown.due = now + unshown.pause_s
        unshown.changes.update(changes)
        unshown.questions += is_asked
        if unshown.questions > _MOST_QUESTIONS:
            del self._kept[vnf_instance_id]
            return False
        return True

    async def _ask(self, record: InstanceRecord, revision: int) -> None:
        held = record.release
        connection = record.vnf.vim_connection_info.get(held.vim_key) if held is not None else None
        if connection is None:
            return
        vim = VimConnection(**vars(connection))
        await self._questions.ask(
            ReadVnfcs(vim=vim, vnf_instance_id=record.vnf.id, revision=revision), connection.vim_id
        )

    async def _record(self, read: VnfcsRead) -> None:
        stored = await self._store.get(COLLECTION, read.vnf_instance_id)
        # The operation reports the pods at its end; what it may miss is kept.
        if stored is None or _is_claimed(stored):
            return
        before = InstanceRecord.from_document(stored.body)
        release = _release_of(before)
        if release is None:
            return
        # Pods of a workload that is gone are not replaced: they are shown until a repair, and drift names them.
        left = [pod for pod in release.pods if pod.vdu_id in read.lost_vdus]
        found = [*left, *(pod for pod in read.pods if pod.vdu_id not in read.lost_vdus)]
        present = tuple(sorted(found, key=lambda pod: (pod.vdu_id, pod.name)))
        if _by_uid(present) == _by_uid(release.pods):
            self._kept.pop(stored.id, None)
            return
        if stored.revision != read.revision:
            # Another answer, or an operation, may be newer than this one.
            await self._ask(before, stored.revision)
            return
        after = _with_pods(before, release.with_pods(present)).model_copy(
            update={"updated_at": rfc3339(self._clock.now())}
        )
        try:
            await self._outbox.replace(
                COLLECTION,
                stored.id,
                after.document(self._ring),
                if_revision=stored.revision,
                events=[_event(after, release.pods, present)],
            )
        except RevisionConflict:
            await self._ask_about(stored.id, {})
            return
        self._kept.pop(stored.id, None)
        log.info("vnfcs_recorded", vnf_instance_id=stored.id, vnfcs=len(present))


def _is_claimed(stored: Stored) -> bool:
    internals: Mapping[str, Any] = stored.body.get("internal") or {}
    return internals.get("currentOperation") is not None


def _release_of(record: InstanceRecord) -> Release | None:
    """Return the objects of a CNF; None of an instance without, and of a workload cluster, whose VNFCs are Machines."""
    if record.internals.workload is not None or record.release is None:
        return None
    return record.release.release


def _may_be_vnfc(change: PlacementChanged) -> bool:
    """Return whether it may be of a workload that runs a VDU; of the machine of a pool, only its pool is such a workload."""
    return change.vdu_id is not None or change.kind != "Pod"


def _agree(changes: Iterable[PlacementChanged], pods: Iterable[PodFacts]) -> bool:
    by_place = {(pod.namespace, pod.name): pod for pod in pods}
    return all(_agrees(each, by_place.get((each.namespace, each.name))) for each in changes)


def _agrees(change: PlacementChanged, shown: PodFacts | None) -> bool:
    """Return whether the instance shows what the event says."""
    now = change.new
    if now is None or now.phase in _ENDED:
        gone = now or change.old
        return shown is None or (gone is not None and shown.uid != gone.uid)
    addresses = {address for network in now.networks for address in network.addresses}
    return (
        shown is not None
        and shown.uid == now.uid
        and now.node in ("", shown.node)
        and (not addresses or not addresses.isdisjoint(shown.addresses))
    )


def _by_uid(pods: Iterable[PodFacts]) -> dict[str, PodFacts]:
    return {pod.uid: pod for pod in pods}


def _with_pods(record: InstanceRecord, release: Release) -> InstanceRecord:
    held, info = record.release, record.vnf.instantiated_vnf_info
    if held is None or info is None:
        return record
    package = PackageRef(package_id=record.vnf.vnf_pkg_id, vnfd_id=record.vnf.vnfd_id)
    return showing(record, release, package, held.vim_key, tuple((info.metadata or {}).get(DEF_FILES) or ()))


def _event(record: InstanceRecord, before: Iterable[PodFacts], now: Iterable[PodFacts]) -> Envelope[Event]:
    old, new = _by_uid(before), _by_uid(now)
    changed = VnfcsChanged(
        vnf_instance_id=record.vnf.id,
        vim_ids=record.facts.vim_ids,
        added=tuple(new[uid].name for uid in new.keys() - old.keys()),
        removed=tuple(old[uid].name for uid in old.keys() - new.keys()),
    )
    return Envelope(data=changed, source=SOURCE, subject=record.vnf.id)
