"""A gateway with cloud regions and a package that has an order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from packages.package_variants import variant

from worlds.lcm_world import Answer, Storage, World, lcm_world

VNFS: Final = "/multicloud/v1/vnf_instances"
FOLDER: Final = "Files/kubernetes"
ORDER: Final = f"{FOLDER}/artifact-order.yaml"
MAP: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {level: '${level}'}\n"
SECRET: Final = "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData: {key: '$password'}\n"
FILES: Final = {
    ORDER: "artifacts:\n- {file: a.yaml, priority: 2}\n- {file: b.yaml, priority: 1}\nvalues: {level: 3}\n",
    f"{FOLDER}/a.yaml": MAP,
    f"{FOLDER}/b.yaml": SECRET,
}
PASSWORD: Final = "open-sesame-7"
_USUAL: Final = Storage()


class Gateway:
    """A gateway with two regions of one name, another region, and an ordered package."""

    def __init__(self, world: World, csar_id: str) -> None:
        self.world, self.csar_id = world, csar_id

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return await self.world.call(method, path, body, headers=headers)

    async def bring_up(self, headers: Mapping[str, str] = {}, **changes: Any) -> Answer:
        asked = {"cloud_region_id": "op/edge", "csar_id": self.csar_id, "values": {"password": PASSWORD}, **changes}
        return await self.call("POST", VNFS, asked, **headers)


@asynccontextmanager
async def a_gateway(folder: Path, storage: Storage = _USUAL) -> AsyncIterator[Gateway]:
    async with lcm_world(folder, storage) as world:
        world.vims.add("vim-edge", "kubernetes")
        world.regions.add("op/edge", "vim-edge", protected_namespaces=("ours",))
        world.regions.add("op/twice", "vim-edge")
        world.regions.add("other/twice", "vim-edge")
        onboarded = await world.upload(variant(folder, files=FILES))
        assert onboarded["onboardingState"] == "ONBOARDED", onboarded
        yield Gateway(world, onboarded["id"])
