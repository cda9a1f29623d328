"""The groups of machines that a VNFD places on one host or on different hosts (SOL001 6.10.12, 6.10.13; SEQ-163)."""

from __future__ import annotations

from typing import Final, Literal

from kubevnfm_csar.errors import PlacementUnsupported
from kubevnfm_csar.vnfd.model import AffinityRule, Flavour, Part

_HOST: Final = "nfvi_node"


class PlacementGroup(Part):
    """Machines that share a host (affinity), or of which no two do (anti-affinity): a server group of Nova."""

    name: str
    """The policy's name."""
    kind: Literal["affinity", "anti-affinity"]
    vdu_ids: tuple[str, ...]


def placement_groups(flavour: Flavour, *, has_zones: bool = False) -> tuple[PlacementGroup, ...]:
    """Return the groups; rules that never concern two machines are left out, as they always hold.

    ``has_zones``: whether an NFVO chooses the zones, which then follow the rules of a wider scope than a host.
    Raises PlacementUnsupported for a rule that server groups cannot express: of another scope, about something that is
    no VDU, or about a VDU of which another group decides already.
    """
    rules = [rule for rule in flavour.affinity_rules if _matters(rule, flavour)]
    if has_zones:
        rules = [rule for rule in rules if rule.scope == _HOST]
    groups: list[PlacementGroup] = []
    for rule in rules:
        if rule.scope != _HOST:
            raise PlacementUnsupported(rule.name, f"scope {rule.scope}: {_HOST} expected")
        strange = [target for target in rule.targets if target not in flavour.vdus]
        if strange:
            raise PlacementUnsupported(rule.name, f"target {strange[0]}: VDUs, or groups of VDUs, expected")
        groups.append(PlacementGroup(name=rule.name, kind=rule.kind, vdu_ids=tuple(dict.fromkeys(rule.targets))))
    # A rule for fewer VDUs than another of its kind adds nothing to it.
    wider = [one for number, one in enumerate(groups) if not any(_adds_nothing(number, one, at, other)
             for at, other in enumerate(groups))]  # fmt: skip
    group_by_vdu: dict[str, PlacementGroup] = {}
    for group in wider:
        for vdu_id in group.vdu_ids:
            # Nova takes one group for a server.
            if vdu_id in group_by_vdu:
                other = group_by_vdu[vdu_id].name
                raise PlacementUnsupported(group.name, f"VDU {vdu_id} is a target of {other} too: one rule expected")
            group_by_vdu[vdu_id] = group
    return tuple(wider)


def _matters(rule: AffinityRule, flavour: Flavour) -> bool:
    """Return whether the rule can concern two machines; what is no VDU counts as if it could."""
    if any(target not in flavour.vdus for target in rule.targets):
        return len(set(rule.targets)) > 1
    return sum(flavour.max_count(vdu_id) for vdu_id in set(rule.targets)) > 1


def _adds_nothing(number: int, group: PlacementGroup, at: int, other: PlacementGroup) -> bool:
    if number == at or group.kind != other.kind:
        return False
    mine, others = set(group.vdu_ids), set(other.vdu_ids)
    return mine < others or (mine == others and at < number)
