"""Features of nodes and devices, from what an API server lists."""

from __future__ import annotations

from typing import Any

from kubevnfm_vim_registry.domain.features import features_of, node_capabilities


def a_slice(pool: str, generation: int, count: int, *devices: str, **spec: Any) -> dict[str, Any]:
    return {
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            "devices": [
                {
                    "name": name,
                    "attributes": {"model": {"string": "x"}, "index": {"int": 2}, "driver": {"version": "1.2.3"}},
                    "capacity": {"memory": {"value": "40Gi"}},
                }
                for name in devices
            ],
            **spec,
        }
    }


def test_a_pool_has_the_slices_of_its_newest_generation() -> None:
    """MC-118."""
    slices = [a_slice("a", 1, 1, "old"), a_slice("a", 2, 2, "new-0", nodeName="node-1"), a_slice("b", 1, 1, "other")]
    features = features_of([], slices, [{"metadata": {"name": "gpu.example.com"}}], as_of="now")
    first, second = features.devices
    assert (first.pool, first.generation, first.incomplete, first.node) == ("a", 2, True, "node-1")
    assert [device.name for device in first.devices] == ["new-0"]
    assert first.devices[0].attributes == {"model": "x", "index": 2, "driver": "1.2.3"}
    assert first.devices[0].capacity == {"memory": "40Gi"}
    assert (second.pool, second.incomplete, second.node) == ("b", False, "")
    assert features.device_classes == ("gpu.example.com",)


def test_objects_of_another_form_are_no_error() -> None:
    strange: list[dict[str, Any]] = [
        {},
        {"metadata": None, "status": [], "spec": 7},
        {"spec": {"pool": 1, "devices": {"a": 1}}},
    ]
    features = features_of(strange, strange, strange, as_of="now")
    assert len(features.nodes) == 3
    assert node_capabilities(strange) == frozenset()


def test_extended_resources_are_summed_if_they_are_whole_numbers() -> None:
    def node(**allocatable: str) -> dict[str, Any]:
        return {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}

    nodes = [node(**{"intel.com/a": "4", "cpu": "8"}), node(**{"intel.com/a": "3", "intel.com/b": "-1", "x/c": "1k"})]
    assert features_of(nodes, [], [], as_of="now").extended_resources == {"intel.com/a": 7}
    ovs = node(**{"ovs-cni.network.kubevirt.io/br1": "1000"})
    assert node_capabilities([ovs]) == {"ovs"}
