"""The levels that are stored with a scaling."""

from __future__ import annotations

from kubevnfm_csar import Flavour, ScalingAspect
from kubevnfm_lcm_api.lifecycle.domain.scale_levels import level_steps


def test_the_levels_of_a_scaling_are_those_it_can_reach() -> None:
    """A VNFD may declare any number of levels."""
    aspect = ScalingAspect(aspect_id="a", max_scale_level=2**53, deltas=({"vdu": 1}, {"vdu": 3}))
    flavour = Flavour(flavour_id="f", file="f.yaml", aspects={"a": aspect, "other": aspect})
    assert level_steps(flavour, {"a": 1, "other": 0}, {"a": 3, "other": 0}) == {
        "a": ({"vdu": 0}, {"vdu": 1}, {"vdu": 4}, {"vdu": 7}),
        "other": ({"vdu": 0},),
    }
