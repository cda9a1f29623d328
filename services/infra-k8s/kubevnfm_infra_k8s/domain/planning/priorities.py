"""The stages of an order artifact: which objects are applied together, and in which stages they are deleted (MC-013, MC-014)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Final

from kubevnfm_csar.artifact_order import limit_s
from kubevnfm_csar.order_graph import Place
from kubevnfm_csar.waits import Wait

from kubevnfm_infra_k8s.domain.objects import CLAIMS, ObjectKey, Wanted
from kubevnfm_infra_k8s.domain.planning.order import deletion_stages

_LAST: Final = frozenset({"Namespace", "PersistentVolume", CLAIMS.kind})
"""Deleted after the objects of all priorities: a pod holds its claim, a claim its volume, and a namespace takes all it has with it."""

_NAMED: Final = 5
"""The most predecessors that the name of a stage has."""


@dataclass(frozen=True)
class Stage:
    """Objects that are applied together: those of one priority, or, apart from these, those that name the same predecessors."""

    number: int
    """From 1, in all stages of a set."""
    count: int
    """The number of priorities."""
    objects: Sequence[Wanted]
    needs: Sequence[frozenset[ObjectKey]] = ()
    """Sets of the objects whose waits must hold before. For a priority: those that the priority before has, and further ones
    that count. A stage apart has the set of each predecessor; many stages share one, which may have thousands of objects."""
    after: str = ""
    """The names of ``needs``, for a stage apart from the priorities."""
    is_apart: bool = False
    is_ordered: bool = True
    """Whether an order artifact makes the stages; if not, there is one, and nothing waits for it."""

    def __str__(self) -> str:
        return f"after {self.after or 'nothing'}" if self.is_apart else f"priority {self.number} of {self.count}"

    @cached_property
    def keys(self) -> frozenset[ObjectKey]:
        return frozenset(each.key for each in self.objects)


def is_awaited(wanted: Wanted) -> bool:
    """Return whether what comes after the object waits for more than that it was sent."""
    return wanted.artifact is not None and wanted.artifact.wait is not Wait.NONE and wanted.resource.is_persistent


def limit_of(wanted: Wanted, default_s: float) -> float:
    """Return the limit of the wait for an object in seconds."""
    artifact = wanted.artifact
    return default_s if artifact is None or artifact.timeout_s is None else float(artifact.timeout_s)


def stages(objects: Sequence[Wanted]) -> Sequence[Stage]:
    """Return the stages in which to apply, priorities first; objects without a place in the order have the lowest priority."""
    if not any(each.artifact is not None for each in objects):
        return [Stage(1, 1, objects, is_ordered=False)]
    lowest = min(each.artifact.priority for each in objects if each.artifact is not None)

    def priority(each: Wanted) -> int:
        return lowest if each.artifact is None else each.artifact.priority

    chain = sorted((each for each in objects if each.after is None), key=priority)
    groups = [list(group) for _, group in groupby(chain, key=priority)]
    counted = sorted(
        (each for each in objects if each.after is None or (each.artifact is not None and each.artifact.has_priority)),
        key=priority,
    )
    found: list[Stage] = []
    done = 0
    for number, group in enumerate(groups, start=1):
        begun, own = done, priority(group[0])
        while done < len(counted) and priority(counted[done]) < own:
            done += 1
        needs = frozenset(each.key for each in counted[begun:done])
        found.append(Stage(number, len(groups), group, [needs]))
    return [*found, *_stages_apart(objects, len(groups))]


def _stages_apart(objects: Sequence[Wanted], count: int) -> Iterator[Stage]:
    """Yield a stage for each set of predecessors that objects name."""
    by_place: dict[Place, list[ObjectKey]] = {}
    by_after: dict[frozenset[Place], list[Wanted]] = {}
    for each in objects:
        by_place.setdefault((each.file, each.document), []).append(each.key)
        by_place.setdefault((each.file, 0), []).append(each.key)
        if each.after is not None:
            by_after.setdefault(each.after, []).append(each)
    keys_of = {place: frozenset(keys) for place, keys in by_place.items()}
    for number, (after, group) in enumerate(by_after.items(), start=count + 1):
        needs = [keys_of[place] for place in after if place in keys_of]
        named = sorted(file if not document else str(by_place[file, document][0]) for file, document in after)
        shown = ", ".join(named[:_NAMED]) + (", ..." if len(named) > _NAMED else "")
        yield Stage(number, count, group, needs, after=shown, is_apart=True)


def longest_wait_s(objects: Sequence[Wanted], default_s: float) -> float:
    """Return the time in which all objects are ready or have failed; ``default_s``: of a wait without a limit of its own."""
    artifacts = [each.artifact for each in objects if each.artifact is not None]
    return max(default_s, limit_s(artifacts, default_s))


def is_ready_awaited(wanted: Wanted) -> bool:
    """Return whether an operation ends only when the object is ready (MC-013)."""
    return wanted.artifact is None or wanted.artifact.wait not in (Wait.NONE, Wait.EXISTS)


def bring_down_stages(
    priorities: Mapping[ObjectKey, int | None], *, webhooks_first: bool = False
) -> Sequence[Sequence[ObjectKey]]:
    """Return the stages of a deletion; each must be complete before the next begins.

    ``priorities``: of the objects in the order in which they were applied; None for an object without a place in an order.
    Such objects are deleted last. ``webhooks_first``: see `deletion_stages`.
    """
    if all(priority is None for priority in priorities.values()):
        return deletion_stages(list(priorities), webhooks_first=webhooks_first)
    last: list[ObjectKey] = []
    by_priority: dict[int, list[ObjectKey]] = {}
    for key, priority in priorities.items():
        if key.kind in _LAST and not key.is_custom:
            last.append(key)
        else:
            by_priority.setdefault(-1 if priority is None else priority, []).append(key)
    found: list[Sequence[ObjectKey]] = []
    for priority in sorted(by_priority, reverse=True):
        found += deletion_stages(by_priority[priority], webhooks_first=webhooks_first)
    return [*found, *deletion_stages(last)]
