"""Rules of VNFDs for the placement of machines, as server groups."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_csar.errors import PlacementUnsupported
from kubevnfm_csar.vnfd.model import AffinityRule, Flavour, Vdu
from kubevnfm_csar.vnfd.placement import placement_groups


def flavour(*rules: AffinityRule, machines: int = 2) -> Flavour:
    vdus = {name: Vdu(vdu_id=name) for name in ("A", "B")}
    counts = {"A": machines, "B": 1}
    return Flavour(flavour_id="f", file="v.yaml", vdus=vdus, initial_deltas=counts, affinity_rules=rules)


def rule(name: str, *targets: str, kind: Any = "anti-affinity", scope: str = "nfvi_node") -> AffinityRule:
    return AffinityRule(name=name, kind=kind, scope=scope, targets=targets)


def test_a_rule_about_two_machines_is_a_group() -> None:
    """SEQ-163."""
    (group,) = placement_groups(flavour(rule("r", "A")))
    assert (group.name, group.kind, group.vdu_ids) == ("r", "anti-affinity", ("A",))
    (both,) = placement_groups(flavour(rule("r", "A", "B", kind="affinity"), machines=1))
    assert (both.kind, both.vdu_ids) == ("affinity", ("A", "B"))


def test_a_rule_that_always_holds_is_no_group() -> None:
    assert placement_groups(flavour(rule("r", "B"), rule("z", "B", scope="zone"))) == ()


def test_a_rule_within_another_adds_nothing() -> None:
    rules = (rule("narrow", "A"), rule("wide", "A", "B"), rule("same", "B", "A"))
    assert [group.name for group in placement_groups(flavour(*rules))] == ["wide"]


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ([rule("r", "A", scope="zone")], "policy r: scope zone: nfvi_node expected"),
        ([rule("r", "A", "VL1")], "policy r: target VL1: VDUs, or groups of VDUs, expected"),
        ([rule("r", "A"), rule("s", "A", "B", kind="affinity")], "policy s: VDU A is a target of r too"),
    ],
)
def test_a_rule_that_server_groups_cannot_express_is_refused(rules: list[AffinityRule], reason: str) -> None:
    """SEQ-163: never ignored."""
    with pytest.raises(PlacementUnsupported, match=reason):
        placement_groups(flavour(*rules))


def test_rules_of_zones_are_left_to_the_nfvo_that_chooses_these() -> None:
    rules = (rule("z", "A", scope="zone"), rule("r", "A"))
    assert [group.name for group in placement_groups(flavour(*rules), has_zones=True)] == ["r"]
