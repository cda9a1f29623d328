"""v1 answers have the form that clients of SOL003 V2.6.1 expect where it differs from v2 (api.md chapters 3 and 10)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from worlds.lcm_world import World, lcm_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        await running.sample()
        yield running


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for each in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(each)


def _has_no_nulls(tree: Any) -> None:
    assert all(value is not None for node in _nodes(tree) for value in node.values())


async def test_an_instance_has_the_attributes_of_2_6_1(world: World) -> None:
    """API-023, API-025, API-152."""
    operation_id = await world.an_operation_in("COMPLETED")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    old = (await world.v1("GET", f"/vnf_instances/{instance_id}")).must(200).json
    new = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json
    _has_no_nulls(old)
    _has_no_nulls(new)
    (connection,) = old["vimConnectionInfo"]
    assert connection["id"] in new["vimConnectionInfo"]
    assert connection["vimType"] == "openstack"
    assert new["vimConnectionInfo"][connection["id"]]["vimType"].startswith("ETSINFV.")
    assert old["vnfPkgId"]
    assert "vnfPkgId" not in new
    assert old["vnfInstanceName"]
    info = old["instantiatedVnfInfo"]
    assert info.get("virtualLinkResourceInfo") == info.get("vnfVirtualLinkResourceInfo")
    for name in ("maxScaleLevels", "vipCpInfo", "metadata"):
        assert name not in info
    for each in info["extCpInfo"]:
        assert "cpConfigId" not in each
        assert {"id", "cpdId", "cpProtocolInfo"} <= set(each)
    for name in ("vnfcResourceInfo", "virtualLinkResourceInfo", "virtualStorageResourceInfo"):
        for each in info.get(name, ()):
            handles = [node for node in _nodes(each) if "resourceId" in node]
            assert handles
            assert all("vimConnectionId" in handle for handle in handles), "V2.6.1's schema requires it"
    assert all(link["href"].startswith(f"{world.url}/vnflcm/v1/") for link in old["_links"].values())


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK"])
async def test_an_occurrence_has_the_attributes_of_2_6_1(world: World, state: str) -> None:
    """API-054, API-152."""
    operation_id = await world.an_operation_in(state)
    old = (await world.v1("GET", f"/vnf_lcm_op_occs/{operation_id}")).must(200).json
    _has_no_nulls(old)
    needed = {
        "id", "operationState", "stateEnteredTime", "startTime", "vnfInstanceId", "operation", "isAutomaticInvocation",
        "isCancelPending", "operationParams", "_links",
    }  # fmt: skip
    assert needed <= set(old)
    assert isinstance(old["operationParams"], dict)
    listed = (await world.v1("GET", "/vnf_lcm_op_occs")).must(200).json
    assert all(needed <= set(each) for each in listed), "lists must have the required attributes"
    changes = old.get("resourceChanges", {})
    assert "affectedExtLinkPorts" not in changes
    for link in changes.get("affectedVirtualLinks", ()):
        assert link["virtualLinkDescId"] == link["vnfVirtualLinkDescId"]
    assert all(link["href"].startswith(f"{world.url}/vnflcm/v1/") for link in old["_links"].values())
