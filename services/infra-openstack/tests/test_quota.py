"""The estimate of a stack's quota usage before its creation."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_infra_openstack.domain import quota
from kubevnfm_infra_openstack.domain.errors import QuotaExceeded
from kubevnfm_infra_openstack.domain.quota import Flavor, check, demand_of

FLAVORS = {"m1.small": Flavor(1, 2048), "m1.large": Flavor(4, 8192)}
MEMBER = {
    "parameters": {"flavor": {"type": "string"}},
    "resources": {
        "cp": {"type": "OS::Neutron::Port"},
        "vm": {
            "type": "OS::Nova::Server",
            "properties": {"flavor": {"get_param": "flavor"}, "networks": [{"port": {"get_resource": "cp"}}]},
        },
    },
}


def demand(resources: dict[str, Any], nested: dict[str, Any] | None = None, **given: Any) -> dict[str, int]:
    template = {"parameters": {"n": {"type": "number", "default": 2}, "nfv": {}}, "resources": resources}
    return dict(demand_of(template, nested or {}, given, FLAVORS))


def a_group(size: Any, kind: str = "OS::Heat::AutoScalingGroup") -> dict[str, Any]:
    member = {"type": "worker.yaml", "properties": {"flavor": {"get_param": ["nfv", "VDU", "w", "flavor"]}}}
    if kind == "OS::Heat::ResourceGroup":
        return {"type": kind, "properties": {"count": size, "resource_def": member}}
    return {"type": kind, "properties": {"desired_capacity": size, "min_size": 1, "resource": member}}


@pytest.mark.parametrize("kind", ["OS::Heat::AutoScalingGroup", "OS::Heat::ResourceGroup"])
def test_a_group_counts_once_for_each_member(kind: str) -> None:
    group = a_group({"get_param": "n"}, kind)
    nfv = {"VDU": {"w": {"flavor": "m1.large"}}}
    assert demand({"group": group}, {"worker.yaml": MEMBER}, n=3, nfv=nfv) == {
        quota.SERVERS: 3,
        quota.PORTS: 3,
        quota.CORES: 12,
        quota.RAM: 3 * 8192,
    }
    assert demand({"group": group}, {"worker.yaml": MEMBER}, nfv=nfv)[quota.SERVERS] == 2


def test_ports_that_nova_creates_are_counted() -> None:
    server = {"type": "OS::Nova::Server", "properties": {"flavor": "m1.small", "networks": [{"network": "a"}]}}
    assert demand({"s": server})[quota.PORTS] == 1


def test_volumes_and_floating_ips_count() -> None:
    volume = {"type": "OS::Cinder::Volume", "properties": {"size": "7"}}
    assert demand({"v": volume, "f": {"type": "OS::Neutron::FloatingIP"}}) == {
        quota.VOLUMES: 1,
        quota.VOLUME_GIB: 7,
        quota.FLOATING_IPS: 1,
    }


@pytest.mark.parametrize(
    "resource",
    [
        {"type": "OS::Nova::Server", "condition": "maybe"},
        {"type": "unknown.yaml"},
        {"type": "OS::Heat::ResourceGroup", "properties": {"count": {"get_attr": ["x"]}, "resource_def": {}}},
        {"type": "OS::Neutron::Net"},
    ],
)
def test_unknown_values_count_as_nothing(resource: dict[str, Any]) -> None:
    assert demand({"r": resource}) == {}


def test_an_unlisted_flavor_counts_as_nothing() -> None:
    assert demand({"s": {"type": "OS::Nova::Server", "properties": {"flavor": "odd"}}}) == {quota.SERVERS: 1}


def test_a_template_that_contains_itself_is_counted_to_a_limited_depth() -> None:
    again = {"resources": {"again": {"type": "again.yaml"}, "p": {"type": "OS::Neutron::Port"}}}
    assert demand({"a": {"type": "again.yaml"}}, {"again.yaml": again})[quota.PORTS] < 10


def test_the_first_shortage_is_named_with_wanted_and_free_amount() -> None:
    check({quota.SERVERS: 3}, {})
    check({quota.SERVERS: 3}, {quota.SERVERS: 3})
    with pytest.raises(QuotaExceeded, match="3 wanted, 0 free") as caught:
        check({quota.SERVERS: 3}, {quota.SERVERS: -1})
    assert (caught.value.resource, caught.value.wanted, caught.value.free) == (quota.SERVERS, 3, 0)
    assert caught.value.status == 422
