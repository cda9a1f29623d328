"""Scale levels of machines and of containers: what they declare, and what exists amounts to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_sol.resources import (
    InstantiatedVnfInfo,
    ScaleInfo,
)

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord

Steps = Mapping[str, Sequence[Mapping[str, int]]]
"""By aspect: for each level, the VNFCs by VDU in addition to those of level 0."""


def reached_levels(
    wanted: Sequence[ScaleInfo],
    old: Sequence[ScaleInfo],
    steps_of: Steps,
    *,
    now: Mapping[str, int],
    before: Mapping[str, int],
) -> tuple[ScaleInfo, ...]:
    """Return for each aspect the highest level, from the old to the wanted one, whose VNFCs all exist.

    ``now``, ``before``: the number of VNFCs by VDU; VDUs without any may be left out.
    """
    old_levels = {one.aspect_id: one.scale_level for one in old}
    found = []
    for one in wanted:
        levels = steps_of.get(one.aspect_id, ())
        first = old_levels.get(one.aspect_id, 0)
        # Relative to the VNFCs before, which may be more or less than those that the levels count.
        reached = [
            level
            for level in range(min(first, one.scale_level), max(first, one.scale_level) + 1)
            if level < len(levels)
            and all(
                now.get(vdu, 0) >= before.get(vdu, 0) + amount - levels[first].get(vdu, 0)
                for vdu, amount in levels[level].items()
            )
        ]
        found.append(one.model_copy(update={"scale_level": max(reached, default=min(first, one.scale_level))}))
    return tuple(found)


def levels_of(info: InstantiatedVnfInfo) -> dict[str, int]:
    """Return the scale level by aspect."""
    return {one.aspect_id: one.scale_level for one in info.scale_status or ()}


def scale_status(levels: Mapping[str, int]) -> tuple[ScaleInfo, ...]:
    """Return SOL003's form of the levels."""
    return tuple(ScaleInfo(aspect_id=name, scale_level=level) for name, level in levels.items())


def declared_counts(flavour: Flavour, level_id: str | None, levels: Mapping[str, int]) -> dict[str, int]:
    """Return the VNFCs by VDU that a descriptor gives for scale levels of a VNF that began at an instantiation level."""
    first, counts = flavour.scale_levels(level_id), {}
    for vdu_id, initial in flavour.initial_counts(level_id).items():
        counts[vdu_id] = initial + sum(
            aspect.delta(vdu_id, level=levels.get(name, 0)) - aspect.delta(vdu_id, level=first[name])
            for name, aspect in flavour.aspects.items()
        )
    return counts


def level_steps(flavour: Flavour, *reached: Mapping[str, int]) -> dict[str, tuple[dict[str, int], ...]]:
    """Return for each aspect and each of its levels, up to the highest ``reached``, the VNFCs by VDU in addition to those of level 0.

    Stored with an operation, so that the level that a failed scaling has reached is found without the package.
    """
    return {
        name: tuple(
            {vdu_id: aspect.delta(vdu_id, level=level) for vdu_id in aspect.vdu_ids}
            # Not up to max_scale_level, which is any number that the VNFD gives.
            for level in range(max((levels.get(name, 0) for levels in reached), default=0) + 1)
        )
        for name, aspect in flavour.aspects.items()
    }


def scale_status_of(instance: InstanceRecord) -> tuple[ScaleInfo, ...]:
    info = instance.vnf.instantiated_vnf_info
    return (info.scale_status if info is not None else None) or ()
