"""The levels that are stored with a scaling."""

from __future__ import annotations

import pytest
from kubevnfm_csar.vnfd.model import Flavour, ScalingAspect, Vdu
from kubevnfm_events.stacks import StorageFacts
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lcm_api.lifecycle.core.scale_levels import level_steps
from kubevnfm_lcm_api.lifecycle.machines.change_steps import ScaleVnf
from kubevnfm_lcm_api.lifecycle.machines.inventory import machines, machines_by_vdu
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.requests.scale import check_amounts
from worlds.lcm_builders import RESOURCES, a_change_draft


def test_the_levels_of_a_scaling_are_those_it_can_reach() -> None:
    """A VNFD may declare any number of levels."""
    aspect = ScalingAspect(aspect_id="a", max_scale_level=2**53, deltas=({"vdu": 1}, {"vdu": 3}))
    flavour = Flavour(flavour_id="f", file="f.yaml", aspects={"a": aspect, "other": aspect})
    assert level_steps(flavour, {"a": 1, "other": 0}, {"a": 3, "other": 0}) == {
        "a": ({"vdu": 0}, {"vdu": 1}, {"vdu": 4}, {"vdu": 7}),
        "other": ({"vdu": 0},),
    }


@pytest.mark.parametrize(("level", "says"), [(10_001, "level 10001 of aspect a"), (9_000, "leads to 26998 VNFCs")])
def test_a_scaling_beyond_what_any_vim_holds_is_refused_at_the_request(level: int, says: str) -> None:
    aspect = ScalingAspect(aspect_id="a", max_scale_level=2**53, deltas=({"vdu": 1}, {"vdu": 3}))
    flavour = Flavour(flavour_id="f", file="f.yaml", vdus={"vdu": Vdu(vdu_id="vdu")}, aspects={"a": aspect})
    with pytest.raises(InvalidInput, match=f"numberOfSteps.*{says}"):
        check_amounts(flavour, {"a": level}, "numberOfSteps")
    check_amounts(flavour, {"a": 3_000}, "numberOfSteps")


def test_a_machine_whose_replacement_failed_counts_once_with_it() -> None:
    """Both are shown as long as they exist, and commands name both, since Heat no longer lists the old one."""
    _, old, other = RESOURCES.servers
    new = old.model_copy(update={"server_id": "server-new", "vnfc_id": "vnfc-new"})
    stack = RESOURCES.model_copy(update={"servers": (*RESOURCES.servers, new)})
    assert machines_by_vdu(stack) == {"masterNode": 1, "workerNode": 2}
    assert [one.server_id for one in machines(stack) if one.vdu_id == "workerNode"] == ["server-new", other.server_id]
    command = ScaleVnf().ask(a_change_draft(ScaleVmDraft).with_resources(stack))
    assert {one.resource_id for one in command.shown} == {one.server_id for one in stack.servers}


def test_a_scaling_deletes_the_volumes_of_the_machines_that_leave() -> None:
    """API-173."""
    volumes = tuple(
        StorageFacts(name="disk", resource_id=f"volume-{one.server_id}", server_id=one.server_id)
        for one in RESOURCES.servers
    )
    before = RESOURCES.model_copy(update={"volumes": volumes})
    leaving = RESOURCES.servers[-1].server_id
    assert a_change_draft(ScaleVmDraft, before=before, leaving=(leaving,)).deleted_volumes == (f"volume-{leaving}",)
    assert a_change_draft(ScaleVmDraft, before=before).deleted_volumes == ()
