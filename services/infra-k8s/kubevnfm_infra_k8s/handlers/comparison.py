"""The handler that finds what other parties have deleted or changed of the objects of instances (capi.md CR-121)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import structlog
from cachetools import LRUCache
from kubevnfm_bus.port import Ack, Delivery, MessageBus, Verdict
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import CompareObjects, ExpectedObjects, ObjectsCompared, ObjectsFinding
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import unless_said

from kubevnfm_infra_k8s.domain.errors import Forbidden, ObjectRefused
from kubevnfm_infra_k8s.domain.objects import Resource
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters, Releases, SharedObjects
from kubevnfm_infra_k8s.domain.reading.existing import served_kinds
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.domain.watching.comparing import differences
from kubevnfm_infra_k8s.domain.watching.drift import drift_of, is_compared, judge, reason_of
from kubevnfm_infra_k8s.domain.watching.object_watches import ObjectWatches, Scope, Watch

log = structlog.get_logger()

SOURCE: Final = "/kubevnfm/infra-k8s"
_LIST_S: Final = 20.0
"""How long the first lists of a cluster may take; what is not listed then is compared in a later round."""
_ROUNDS: Final = 5
"""A watch ends if no command comes for so many rounds. Each of several processes gets one in some rounds only."""
_MOST_WATCHES: Final = 400
"""Watches of one command, each of which has a connection of its own."""
_MOST_REMEMBERED: Final = 20_000
"""Instances whose last comparison is remembered, with some 500 bytes each."""
_WATCHED: Final = frozenset({"list", "watch"})


@dataclass(frozen=True)
class _Judged:
    """The last comparison of an instance that brought no news."""

    expected: ExpectedObjects
    scopes: frozenset[Scope]
    at: int
    """When it began, in the time of the watches."""


class _NotNow(Exception):
    """An instance cannot be compared in this round."""


@dataclass(frozen=True)
class _Round:
    """One command, the cluster and what the watches have seen of it."""

    place: str
    """The cluster, and the VIM whose credentials are used."""
    cluster: Cluster
    at: int
    view: Mapping[Scope, Watch] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparisonHandler:
    """Answers CompareObjects. An answer that is lost is repeated: lcm-api asks again after a while.

    A comparison without news is remembered until a watch sees a change, so that a quiet cluster costs no requests and its
    inventories are not read.
    """

    clusters: Clusters
    vims: VimDirectory
    releases: Releases
    shared: SharedObjects
    watches: ObjectWatches
    bus: MessageBus
    clock: Clock
    _judged: LRUCache[tuple[str, str], _Judged] = field(default_factory=lambda: LRUCache(_MOST_REMEMBERED), repr=False)
    """By place and instance."""
    _narrow: set[tuple[str, Resource]] = field(default_factory=set, repr=False)
    """The kinds that the credentials of a place may watch in single namespaces only."""

    async def compare_objects(self, delivery: Delivery) -> Verdict:
        """Publish what differs from what is known; nothing if there is no news or the cluster does not answer."""
        command = delivery.envelope.data
        assert isinstance(command, CompareObjects)
        deadline = delivery.envelope.deadline
        round_s = (deadline - self.clock.now()).total_seconds() if deadline is not None else _LIST_S
        # While this service was away, commands have collected; the next one asks the same with newer facts.
        if round_s <= 0:
            return Ack()
        try:
            findings = await self._findings(command, round_s=round_s)
        except VnfmError as error:
            # Not the objects' fault: the VIM's own status shows it.
            unless_said(error).info("objects_not_compared", vim_id=command.vim.vim_id, reason=str(error))
            return Ack()
        if findings:
            log.info("objects_differ", vim_id=command.vim.vim_id, instances=len(findings))
            await self.bus.publish(delivery.envelope.follow_up(ObjectsCompared(findings=findings), source=SOURCE))
        return Ack()

    async def _findings(self, command: CompareObjects, *, round_s: float) -> tuple[ObjectsFinding, ...]:
        vim = await self.vims.connection(command.vim)
        async with self.clusters.cluster(vim) as cluster:
            # The time is read first: what changes meanwhile is found by the next round.
            begun = _Round(f"{cluster.endpoint} {vim.vim_id}", cluster, self.watches.now)
            scopes: dict[str, frozenset[Scope]] = {}
            releases: dict[str, Release] = {}
            for each in command.expected:
                mine = each.vnf_instance_id
                judged = self._judged.get((begun.place, mine))
                if judged is not None and judged.expected == each and not self._has_narrowed(judged, begun):
                    scopes[mine] = judged.scopes
                elif (release := await self.releases.get(mine)) is not None:
                    releases[mine] = release
                    # An earlier version has stored it. With access data of the request it is in no registered VIM.
                    if not release.vim_id and vim.vim_id and command.vim.is_reference:
                        await self.releases.note(replace(release, vim_id=vim.vim_id))
                    scopes[mine] = await self._scopes(begun, release)
            wanted = _limited(scopes, vim)
            linger_s = _ROUNDS * round_s
            async with self.watches.viewing(
                vim, begun.place, wanted, within_s=min(_LIST_S, round_s), linger_s=linger_s
            ) as view:
                seen = _Round(begun.place, cluster, begun.at, view)
                findings: list[ObjectsFinding] = []
                for each in command.expected:
                    try:
                        finding = await self._finding(each, seen, scopes, releases.get(each.vnf_instance_id))
                    except _NotNow as reason:
                        log.info("instance_not_compared", vnf_instance_id=each.vnf_instance_id, reason=str(reason))
                        continue
                    if finding is not None:
                        findings.append(finding)
        return tuple(findings)

    async def _scopes(self, begun: _Round, release: Release) -> frozenset[Scope]:
        """Return where the objects of a release are watched."""
        compared = [entry for entry in release.entries if is_compared(entry)]
        served = await served_kinds(begun.cluster, [entry.key.api_kind for entry in compared])
        return frozenset(
            (resource, self._namespace(begun.place, resource, entry))
            for entry in compared
            if (resource := served[entry.key.api_kind]) is not None and resource.verbs >= _WATCHED
        )

    def _has_narrowed(self, judged: _Judged, begun: _Round) -> bool:
        return any((begun.place, resource) in self._narrow and not namespace for resource, namespace in judged.scopes)

    def _namespace(self, place: str, resource: Resource, entry: Entry) -> str:
        return entry.key.namespace if (place, resource) in self._narrow else ""

    async def _finding(
        self,
        expected: ExpectedObjects,
        seen: _Round,
        scopes: Mapping[str, frozenset[Scope]],
        release: Release | None,
    ) -> ObjectsFinding | None:
        """Return what is not known yet. Raises _NotNow."""
        mine = expected.vnf_instance_id
        # No inventory: nothing was applied, or an operation has just deleted everything.
        if mine not in scopes:
            return None
        self._check(seen, scopes[mine])
        if release is None:
            if not self._has_changed(self._judged[seen.place, mine], seen):
                return None
            release = await self.releases.get(mine)
            if release is None:
                return None
        compared = [entry for entry in release.entries if is_compared(entry)]
        suspects = await self._suspects(seen, compared)
        # A watch may be a moment behind, and an object whose labels were removed is not in it.
        found = await differences(seen.cluster, self.shared, release, suspects) if suspects else {}
        drift = drift_of(compared, {key: each.what for key, each in found.items()})
        if drift != expected.known:
            return ObjectsFinding(
                vnf_instance_id=mine, revision=expected.revision, drift=drift, reason=reason_of(drift)
            )
        self._judged[seen.place, mine] = _Judged(expected, scopes[mine], seen.at)
        return None

    def _check(self, seen: _Round, scopes: frozenset[Scope]) -> None:
        """Raise _NotNow if the watches of an instance do not say how its objects are."""
        for scope in scopes:
            resource, namespace = scope
            watch = seen.view.get(scope)
            if watch is None:
                raise _NotNow(f"{resource.plural} are not listed yet")
            if watch.error is None:
                continue
            if not isinstance(watch.error, ObjectRefused):
                raise _NotNow(str(watch.error))
            if isinstance(watch.error, Forbidden) and resource.namespaced and not namespace:
                self._narrow.add((seen.place, resource))
                raise _NotNow(f"{resource.plural} are watched in single namespaces from now on: {watch.error}")

    async def _suspects(self, seen: _Round, compared: list[Entry]) -> list[Entry]:
        """Return the entries that are not as expected by what the watches have seen."""
        served = await served_kinds(seen.cluster, [entry.key.api_kind for entry in compared])
        suspects: list[Entry] = []
        for entry in compared:
            resource = served[entry.key.api_kind]
            if resource is None:
                suspects.append(entry)
                continue
            namespace = self._namespace(seen.place, resource, entry)
            watch = seen.view.get((resource, namespace))
            # Nothing is known of a kind that the credentials may not watch, or that cannot be watched.
            if watch is None or watch.error is not None:
                continue
            name = entry.key.name if namespace or not entry.key.namespace else f"{entry.key.namespace}/{entry.key.name}"
            if judge(entry, watch.state.objects.get(name)) is not None:
                suspects.append(entry)
        return suspects

    @staticmethod
    def _has_changed(judged: _Judged, seen: _Round) -> bool:
        mine = judged.expected.vnf_instance_id
        return any(
            seen.view[scope].state.has_changed(mine, is_namespaced=scope[0].namespaced, since=judged.at)
            for scope in judged.scopes
        )


def _limited(scopes: Mapping[str, frozenset[Scope]], vim: VimConnection) -> frozenset[Scope]:
    """Return the scopes to watch: those of the first instances if there are too many."""
    wanted: set[Scope] = set()
    for number, mine in enumerate(scopes.values()):
        if len(wanted | mine) > _MOST_WATCHES:
            log.warning("too_many_kinds_to_watch", vim_id=vim.vim_id, instances=len(scopes) - number)
            break
        wanted |= mine
    return frozenset(wanted)
