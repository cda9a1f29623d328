"""The sizes that a Base HOT allows its groups are known when a scaling is requested."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_csar.hot import BaseHot, Template
from kubevnfm_events.stacks import StackResources
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lcm_api.lifecycle.machines.group_sizes import check_group_sizes, stack_values
from worlds.lcm_builders import RESOURCES

MEMBER = Template(
    name="worker.yaml",
    path="nested/worker.yaml",
    text="",
    body={"resources": {"workerNode": {"type": "OS::Nova::Server"}}},
)
BY_NAME = {"most": {"type": "number", "default": 3}}
EMPTY = StackResources(stack_id="s", stack_name="s")


def hot(least: object, most: object, parameters: dict[str, Any] | None = None) -> BaseHot:
    """Return a template with a group of workers, and one more of masters that has no limits."""
    groups = {
        name: {"type": "OS::Heat::AutoScalingGroup", "properties": {**limits, "resource": {"type": "worker.yaml"}}}
        for name, limits in (("worker_instance", {"min_size": least, "max_size": most}), ("master_instance", {}))
    }
    top = Template(name="top", path="top", text="", body={"parameters": parameters or {}, "resources": groups})
    return BaseHot(flavour_id="simple", top=top, nested={"worker.yaml": MEMBER})


def check(
    one: BaseHot,
    count: int,
    *,
    given: dict[str, Any] | None = None,
    has_user_data: bool = False,
    resources: StackResources = RESOURCES,
) -> None:
    values = stack_values(one.top, resources, given or {}, has_user_data=has_user_data)
    present = {vdu: sum(server.vdu_id == vdu for server in resources.servers) for vdu in ("masterNode", "workerNode")}
    check_group_sizes(
        "aspectId", one, resources, present=present, wanted={**present, "workerNode": count}, values=values
    )


NFV = RESOURCES.model_copy(update={"nfv": {"VDU": {"workerNode": {"least": 2, "most": "3"}}}})
FROM_NFV = hot(
    {"get_param": ["nfv", "VDU", "workerNode", "least"]}, {"get_param": ["nfv", "VDU", "workerNode", "most"]}
)


@pytest.mark.parametrize(
    ("one", "known"),
    [
        (hot(2, 3), {}),
        (hot("2", "3"), {}),
        (FROM_NFV, {"resources": NFV}),
        (hot(2, {"get_param": "most"}, BY_NAME), {}),
        (hot({"get_param": "least"}, 3, {"least": {"type": "number"}}), {"given": {"least": "2"}}),
    ],
)
def test_a_size_outside_of_the_limits_is_refused(one: BaseHot, known: dict[str, Any]) -> None:
    check(one, 3, **known)
    with pytest.raises(Unprocessable) as raised:
        check(one, 4, **known)
    expected = "aspectId: 4 machines of workerNode: group worker_instance of the Base HOT has min_size 2, max_size 3"
    assert str(raised.value) == expected
    with pytest.raises(Unprocessable, match="1 machines of workerNode"):
        check(one, 1, **known)


def test_one_known_limit_is_enough() -> None:
    one = hot(2, {"get_param": "unknown"})
    check(one, 9)
    with pytest.raises(Unprocessable, match="min_size 2, max_size unknown"):
        check(one, 1)


def test_a_group_that_has_no_member_yet_is_found_by_its_template() -> None:
    with pytest.raises(Unprocessable, match="4 machines of workerNode"):
        check(hot(0, 3), 4, resources=EMPTY)


@pytest.mark.parametrize(
    ("one", "known"),
    [
        # Only Heat computes functions.
        (hot({"str_to_num": "2"}, True), {}),
        # User data of the package decide about parameters.
        (hot(0, {"get_param": "most"}, BY_NAME), {"has_user_data": True}),
        # The value is in the stack's parameters, not in those of the template.
        (FROM_NFV, {}),
    ],
)
def test_a_limit_that_only_heat_knows_is_left_to_heat(one: BaseHot, known: dict[str, Any]) -> None:
    check(one, 1, **known)
    check(one, 9, **known)


def test_machines_outside_of_the_group_are_not_counted_as_its_members() -> None:
    moved = tuple(
        server.model_copy(update={"group": None}) if server.name == "workerNode" and server.member == "w2" else server
        for server in RESOURCES.servers
    )
    check(hot(1, 2), 9, resources=RESOURCES.model_copy(update={"servers": moved}))


def test_a_group_that_keeps_its_size_is_not_checked() -> None:
    check(hot(5, 6), 2)
