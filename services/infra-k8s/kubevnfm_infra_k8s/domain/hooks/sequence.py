"""The order in which the hooks of a set of manifests run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import Final

from kubevnfm_csar.hooks import DELETIONS, Occasion, Point
from kubevnfm_csar.order_graph import Place

from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_infra_k8s.domain.planning.order import rank

_LATER: Final = DELETIONS | {Point.TEST}
_Rank = tuple[int, int, str, str]


def hooks_at(hooks: Sequence[PlannedHook], point: Point, occasion: Occasion = Occasion.CREATE) -> Sequence[PlannedHook]:
    """Return the hooks that run at a point, in their order."""
    return list(_ordered([each for each in hooks if each.hook.runs_at(point, occasion)]))


def hooks_for_later(hooks: Sequence[PlannedHook]) -> Sequence[PlannedHook]:
    """Return the hooks that run after the operation: when the instance ends, and in its health checks."""
    return [each for each in hooks if each.hook.points & _LATER]


def _ordered(hooks: Sequence[PlannedHook]) -> Iterator[PlannedHook]:
    """Yield hooks by priority, kind and name, but each after those that it names."""
    by_place: Mapping[Place, PlannedHook] = {each.place: each for each in hooks}
    sorter = TopologicalSorter({each.place: each.after & by_place.keys() for each in hooks})
    sorter.prepare()
    ready: list[tuple[_Rank, Place]] = []
    while sorter.is_active():
        for place in sorter.get_ready():
            heappush(ready, (_rank(by_place[place]), place))
        _, first = heappop(ready)
        yield by_place[first]
        sorter.done(first)


def _rank(hook: PlannedHook) -> _Rank:
    return hook.priority, rank(hook.key), hook.key.name, hook.key.namespace
