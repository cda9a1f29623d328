"""Scaling aspects, instantiation levels, affinity and package changes out of a topology's policies."""

from __future__ import annotations

from typing import Any, Literal

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_csar.vnfd.model import AffinityRule, Level, PackageChange, ScalingAspect
from kubevnfm_csar.vnfd.topology import Topology
from kubevnfm_csar.vnfd.values import mapping, sequence, text


def scaling_aspects(topology: Topology) -> dict[str, ScalingAspect]:
    """Return the aspects by id, with VduScalingAspectDeltas folded in. Raises PackageRefused."""
    steps: dict[str, list[str]] = {}
    declared: dict[str, JsonMapping] = {}
    for _, properties, _ in topology.policies("ScalingAspects"):
        for aspect_id, aspect in mapping(properties.get("aspects")).items():
            declared[aspect_id] = mapping(aspect)
            steps[aspect_id] = [str(delta) for delta in sequence(mapping(aspect).get("step_deltas"))]
    changes = _changes(topology, declared)
    found = {}
    for aspect_id, aspect in declared.items():
        names = steps[aspect_id] or list(changes[aspect_id])[:1]
        if not names:
            topology.warn(f"aspect {aspect_id} has no deltas: scaling it changes nothing")
        for name in dict.fromkeys(names):
            if name not in changes[aspect_id]:
                topology.warn(
                    f"aspect {aspect_id}: no VduScalingAspectDeltas gives {name} of step_deltas: this step changes nothing"
                )
        found[aspect_id] = ScalingAspect(
            aspect_id=aspect_id,
            name=text(aspect.get("name")),
            description=text(aspect.get("description")),
            max_scale_level=topology.whole_number(aspect.get("max_scale_level"), f"aspect {aspect_id}.max_scale_level"),
            deltas=tuple(changes[aspect_id].get(name, {}) for name in names),
        )
    return found


def _changes(topology: Topology, declared: JsonMapping) -> dict[str, dict[str, dict[str, int]]]:
    """Return instances by VDU by delta name by aspect."""
    found: dict[str, dict[str, dict[str, int]]] = {aspect_id: {} for aspect_id in declared}
    for name, properties, targets in topology.policies("VduScalingAspectDeltas"):
        aspect_id = text(properties.get("aspect"))
        if aspect_id not in declared:
            topology.warn(f"policy {name}: aspect {aspect_id} is not declared: its deltas are not used")
            continue
        for delta, change in mapping(properties.get("deltas")).items():
            count = _instances(topology, change, what=f"policy {name}.{delta}")
            for target in _vdu_targets(topology, name, targets):
                found[aspect_id].setdefault(delta, {})[target] = count
    return found


def initial_deltas(topology: Topology) -> dict[str, int]:
    """Return the instances by VDU at scale level 0. Raises PackageRefused."""
    found = {}
    for name, properties, targets in topology.policies("VduInitialDelta"):
        count = _instances(topology, properties.get("initial_delta"), what=f"policy {name}.initial_delta")
        for target in _vdu_targets(topology, name, targets):
            found[target] = count
    return found


def instantiation_levels(topology: Topology) -> tuple[dict[str, Level], str | None]:
    """Return the levels by id and the default one's id. Raises PackageRefused."""
    counts: dict[str, dict[str, int]] = {}
    for name, properties, targets in topology.policies("VduInstantiationLevels"):
        for level_id, level in mapping(properties.get("levels")).items():
            count = _instances(topology, level, what=f"policy {name}.{level_id}")
            for target in _vdu_targets(topology, name, targets):
                counts.setdefault(level_id, {})[target] = count
    levels: dict[str, Level] = {}
    default: str | None = None
    for name, properties, _ in topology.policies("InstantiationLevels"):
        for level_id, level in mapping(properties.get("levels")).items():
            levels[level_id] = Level(
                level_id=level_id,
                description=text(mapping(level).get("description")),
                scale_levels={
                    aspect_id: topology.whole_number(
                        mapping(info).get("scale_level"), f"policy {name}.{level_id}.{aspect_id}.scale_level"
                    )
                    for aspect_id, info in mapping(mapping(level).get("scale_info")).items()
                },
                counts=counts.get(level_id, {}),
            )
        default = text(properties.get("default_level")) or default
    for level_id, by_vdu in counts.items():
        # VduInstantiationLevels may come without an InstantiationLevels policy: such a level scales no aspect.
        levels.setdefault(level_id, Level(level_id=level_id, counts=by_vdu))
    # SOL001 requires default_level only if there are several levels.
    if default is None and len(levels) == 1:
        default = next(iter(levels))
    if default is not None and default not in levels:
        raise topology.refused(f"default_level {default} is not among the levels")
    return levels, default


def affinity_rules(topology: Topology) -> tuple[AffinityRule, ...]:
    """Return the affinity and anti-affinity rules, groups written out."""
    found = []
    kinds: tuple[tuple[str, Literal["affinity", "anti-affinity"]], ...] = (
        ("AffinityRule", "affinity"),
        ("AntiAffinityRule", "anti-affinity"),
    )
    group_by_policy = _group_by_policy(topology)
    for policy, kind in kinds:
        for name, properties, targets in topology.policies(policy):
            found.append(
                AffinityRule(
                    name=name,
                    kind=kind,
                    scope=text(properties.get("scope")) or "nfvi_node",
                    targets=targets,
                    group=group_by_policy.get(name),
                )
            )
    return tuple(found)


def _group_by_policy(topology: Topology) -> dict[str, str]:
    """Return the first group among the targets of each policy that names one."""
    groups = mapping(topology.template.get("groups"))
    found: dict[str, str] = {}
    for entry in sequence(topology.template.get("policies")):
        for policy, body in mapping(entry).items():
            for target in sequence(mapping(body).get("targets")):
                if str(target) in groups:
                    found.setdefault(policy, str(target))
                    break
    return found


def package_changes(topology: Topology) -> tuple[PackageChange, ...]:
    """Return the VnfPackageChange policies."""
    return tuple(
        PackageChange(
            name=name,
            selector=tuple(
                {key: text(value) for key, value in mapping(item).items()}
                for item in sequence(properties.get("selector"))
            ),
        )
        for name, properties, _ in topology.policies("VnfPackageChange")
    )


def _instances(topology: Topology, value: Any, *, what: str) -> int:
    number = mapping(value).get("number_of_instances")
    if number is None:
        raise topology.refused(f"{what}: number_of_instances is missing")
    return topology.whole_number(number, f"{what}.number_of_instances")


def _vdu_targets(topology: Topology, policy: str, targets: tuple[str, ...]) -> tuple[str, ...]:
    for target in targets:
        if target not in topology.nodes:
            topology.warn(f"policy {policy}: its target {target} is no node of this flavour")
    return tuple(target for target in targets if target in topology.nodes)
