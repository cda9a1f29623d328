"""A gateway with cloud regions and a package that has an order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from kubevnfm_events import Envelope, Message
from kubevnfm_events.inventory import NetworkAddresses, ObjectChange, Placement, PlacementChanged
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
async def a_gateway(folder: Path, storage: Storage = _USUAL, **changes: Any) -> AsyncIterator[Gateway]:
    async with lcm_world(folder, storage, **changes) as world:
        world.vims.add("vim-edge", "kubernetes")
        world.regions.add("op/edge", "vim-edge", protected_namespaces=("ours",))
        world.regions.add("op/twice", "vim-edge")
        world.regions.add("other/twice", "vim-edge")
        onboarded = await world.upload(variant(folder, files=FILES))
        assert onboarded["onboardingState"] == "ONBOARDED", onboarded
        yield Gateway(world, onboarded["id"])


def a_pod(
    vnf_id: str, name: str, old: str | None = None, new: str | None = "Running", vim_id: str = "vim-edge"
) -> Envelope[Message]:
    """Return the event of a change of a pod; ``old`` and ``new``: its phases."""

    def placed(phase: str | None) -> Placement | None:
        on = (NetworkAddresses(addresses=("10.0.0.9",)),)
        return None if phase is None else Placement(uid=f"uid-of-{name}", node="n1", phase=phase, networks=on)

    change: ObjectChange = "created" if old is None else "vanished" if new is None else "changed"
    about = {"vnf_instance_id": vnf_id, "vim_id": vim_id, "api_version": "v1", "kind": "Pod", "name": name}
    placement = PlacementChanged(change=change, **about, old=placed(old), new=placed(new))
    return Envelope(placement, source="/kubevnfm/infra-k8s", subject=vnf_id)
