"""The requests of ETSI's conformance suite to a site, and instances, occurrences and packages in each state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from packages.package_builder import ONE_VNFD, v1_files
from packages.vm_packages import two_flavours
from worlds.lcm_world import Answer, World, sample_request

SENT: Final = {"Accept": "application/json", "Content-Type": "application/json"}
NOWHERE: Final = "00000000-0000-4000-8000-000000000000"
LCM, PACKAGES = "/vnflcm/v1", "/vnfpkgm/v1"

TASKS: Final[Mapping[str, Any]] = {
    "scale": {"type": "SCALE_OUT", "aspectId": "VDU1_scale"},
    "scale_to_level": {"instantiationLevelId": "three"},
    "heal": {"cause": "a test"},
    "change_ext_conn": {"extVirtualLinks": [{"id": "more", "resourceId": "net1", "extCps": [{"cpdId": "VDU1_CP1"}]}]},
    "operate": {"changeStateTo": "STOPPED"},
    "change_flavour": {"newFlavourId": "large"},
    "terminate": {"terminationType": "FORCEFUL"},
}
INSTANCE: Final = {
    "id", "vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion", "vnfPkgId",
    "instantiationState", "_links",
}  # fmt: skip
ODD: Final = bytes(range(256)) * 300


def many_files() -> dict[str, str | bytes]:
    """A package whose VNFD has several files, with an image."""
    return {**v1_files(), "Files/images/ubuntu.img": b"image" * 1000}


def one_file() -> dict[str, str | bytes]:
    """A package whose VNFD is one file, with an artifact of no known type."""
    return {"one.yaml": ONE_VNFD, "one.mf": "metadata:\n  vnf_product_name: One\n\nSource: one.yaml\nSource: Scripts/odd.bin\n", "Scripts/odd.bin": ODD}  # fmt: skip


async def ask(world: World, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    return await world.call(method, path, body, headers={**SENT, **headers})


def shown(answer: Answer, needed: set[str]) -> Any:
    """Return the JSON of a 200 or 201, or of a list, which has the attributes that the suite's schemas require."""
    assert answer.headers["Content-Type"].startswith("application/json")
    for each in answer.json if isinstance(answer.json, list) else [answer.json]:
        assert needed <= set(each)
    return answer.json


def location_of(answer: Answer, status: int) -> str:
    """Return the path of a Location header."""
    url = answer.must(status).headers["Location"]
    assert url.startswith("http://")
    return "/" + url.split("/", 3)[3]


async def an_instance(world: World) -> str:
    """Return a new instance of two flavours; the package is uploaded at the first call."""
    listed = (await world.packages("GET", "?filter=(eq,vnfProductName,Virtual machine)")).json
    vnfd_id = listed[0]["vnfdId"] if listed else (await world.upload(two_flavours(world.folder)))["vnfdId"]
    created = await ask(world, "POST", f"{LCM}/vnf_instances", {"vnfdId": vnfd_id})
    return str(shown(created.must(201), INSTANCE)["id"])


async def asked(world: World, instance_id: str, task: str, body: Any) -> dict[str, Any]:
    """Ask for a task; return its occurrence once it is COMPLETED."""
    path = location_of(await ask(world, "POST", f"{LCM}/vnf_instances/{instance_id}/{task}", body), 202)
    return await world.reached(path.rpartition("/")[2], "COMPLETED")


async def built(world: World) -> str:
    """Return an instance that is INSTANTIATED."""
    instance_id = await an_instance(world)
    await asked(world, instance_id, "instantiate", sample_request("vm", "instantiate.v1"))
    return instance_id


async def an_occurrence(world: World, state: str) -> str:
    """Return an occurrence that stays in this state."""
    if not (await world.packages("GET", "?filter=(eq,vnfProductName,Virtual machine)")).json:
        await world.sample()
    return await world.an_operation_in(state)
