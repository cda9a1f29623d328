"""A kind of VNF is one folder: one that the product does not know works over HTTP beside the others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from worlds.lcm_world import World, lcm_world
from worlds.note_kind import NOTE, TASKS, notes_registered


@pytest.fixture
async def noted(tmp_path: Path) -> AsyncIterator[World]:
    with notes_registered():
        async with lcm_world(tmp_path) as running:
            yield running


async def test_a_kind_of_its_own_is_instantiated_and_terminated(noted: World) -> None:
    await noted.sample()
    instance_id = await noted.create()
    note = {"flavourId": "simple", "additionalParams": {NOTE: "hello"}}
    await noted.reached(await noted.ask(instance_id, "instantiate", note), "COMPLETED")
    instance = (await noted.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json
    assert instance["instantiatedVnfInfo"]["metadata"] == {NOTE: True}
    assert noted.twins.asked() == ["mgmt.forget_instance"]
    refused = (await noted.lcm("POST", f"/vnf_instances/{instance_id}/heal", {"cause": "x"})).problem(404)
    assert refused["detail"] == "heal is not supported by this VNF: it is a note"
    ended = await noted.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"})
    await noted.reached(ended, "COMPLETED")


async def test_a_task_that_the_kind_does_not_have_is_refused_by_name(noted: World) -> None:
    await noted.sample()
    instance_id = await noted.create()
    note = {"flavourId": "simple", "additionalParams": {NOTE: "hello"}}
    await noted.reached(await noted.ask(instance_id, "instantiate", note), "COMPLETED")
    bodies = {
        "scale": {"type": "SCALE_OUT", "aspectId": "VDU1_scale"},
        "scale_to_level": {"scaleInfo": [{"aspectId": "VDU1_scale", "scaleLevel": 0}]},
        "operate": {"changeStateTo": "STOPPED"},
        "change_ext_conn": {"extVirtualLinks": [{"id": "link", "resourceId": "net", "extCps": []}]},
        "change_flavour": {"newFlavourId": "simple"},
        "change_vnfpkg": {"vnfdId": "x"},
    }
    assert tuple(bodies) == TASKS
    for task, body in bodies.items():
        refused = (await noted.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body)).problem(404)
        assert refused["detail"] == f"{task} is not supported by this VNF: it is a note"


async def test_a_request_of_another_kind_finds_its_own(noted: World) -> None:
    await noted.sample()
    instance_id = await noted.create()
    await noted.reached(await noted.instantiate(instance_id), "COMPLETED")
    assert "infra.openstack.create_resources" in noted.twins.asked()
