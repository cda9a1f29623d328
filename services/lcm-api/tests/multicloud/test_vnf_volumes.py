"""VNFs that use persistent volumes: what is sent, and what of a request is refused (multicloud.md chapter 13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
import yaml
from kubevnfm_clients.multicloud.volumes import PersistentVolume, VolumeMountRequest
from kubevnfm_events.objects import ApplyObjects, HoldVolumes, ReleaseVolumes, ReplaceObjects
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lcm_api.lifecycle.containers.volumes import requested_volumes
from kubevnfm_lcm_api.lifecycle.core.faults import Faults
from packages.package_variants import OTHER_CNF, variant
from worlds.lcm_world import Answer, TwinVolumes, World, lcm_world

VNFS = "/multicloud/v1/vnf_instances"
FOLDER = "Files/kubernetes"
ORDER = f"{FOLDER}/artifact-order.yaml"
_FIRST = "33333333-aaaa-bbbb-cccc-dddddddddddd"
ONE = {"persistent_volume_id": "free", "claim_name": "data"}


def an_object(api_version: str, kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def mounting(claim: str, *, replicas: int = 1) -> dict[str, Any]:
    pod = {"containers": [], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}
    return {"replicas": replicas, "template": {"spec": pod}}


OWN = an_object("v1", "PersistentVolumeClaim", "own", {})
OBJECTS = (
    OWN,
    an_object("apps/v1", "Deployment", "web", mounting("data", replicas=2)),
    an_object(
        "apps/v1", "StatefulSet", "db",
        {"volumeClaimTemplates": [{"metadata": {"name": "disk"}}], "template": {"spec": {}}},
    ),
)  # fmt: skip


@dataclass(frozen=True)
class _Gateway:
    world: World
    csar_id: str
    other_id: str
    """A package whose artifacts have a claim ``data``."""

    async def bring_up(self, *volumes: Mapping[str, Any]) -> Answer:
        asked = {"cloud_region_id": "op/edge", "csar_id": self.csar_id, "volumes": list(volumes)}
        return await self.world.call("POST", VNFS, asked)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[_Gateway]:
    async with lcm_world(tmp_path_factory.mktemp("gateway")) as world:
        world.vims.add("vim-edge", "kubernetes")
        world.regions.add("op/edge", "vim-edge")
        for volume_id, vim_id, mode, refusal in (
            ("free", "vim-edge", "ReadWriteOnce", ""),
            ("alone", "vim-edge", "ReadWriteOncePod", ""),
            ("read", "vim-edge", "ReadOnlyMany", ""),
            ("elsewhere", "vim-far", "ReadWriteOnce", ""),
            ("taken", "vim-edge", "ReadWriteOnce", "it is in use by vnf:other"),
            ("failed", "vim-edge", "ReadWriteOnce", "it is Failed: its PersistentVolume was deleted"),
        ):
            world.volumes.by_id[volume_id] = PersistentVolume(
                id=volume_id, cloud_region_id="op/edge", vim_id=vim_id, name=f"v-{volume_id}", phase="Reserved", size="1Gi",
                access_modes=(mode,), volume_mode="Filesystem", reclaim="Retain", refusal=refusal, created_at="t", updated_at="t",
            )  # fmt: skip
        ids = []
        for vnfd_id, objects in ((_FIRST, OBJECTS), (OTHER_CNF, [{**OWN, "metadata": {"name": "data"}}])):
            files = {
                ORDER: "artifacts: [{file: a.yaml, priority: 1}]",
                f"{FOLDER}/a.yaml": yaml.safe_dump_all(objects),
            }
            ids.append((await world.upload(variant(world.folder, files=files, vnfd_id=vnfd_id)))["id"])
        yield _Gateway(world, *ids)


@pytest.mark.parametrize(
    ("volumes", "status", "pointers"),
    [
        ([{**ONE, "persistent_volume_id": "none"}], 422, ["/volumes/0/persistent_volume_id"]),
        ([{**ONE, "persistent_volume_id": "elsewhere"}], 422, ["/volumes/0/persistent_volume_id"]),
        ([{**ONE, "persistent_volume_id": "taken"}], 409, ["/volumes/0/persistent_volume_id"]),
        ([{**ONE, "persistent_volume_id": "failed"}], 409, ["/volumes/0/persistent_volume_id"]),
        ([ONE, {**ONE, "claim_name": "more"}], 422, ["/volumes/1/persistent_volume_id"]),
        ([ONE, {**ONE, "persistent_volume_id": "read"}], 422, ["/volumes/1/claim_name"] * 2),
        ([{**ONE, "claim_name": "No_Name"}], 422, ["/volumes/0/claim_name"]),
        ([{**ONE, "claim_name": "own"}], 422, ["/volumes/0/claim_name"]),
        ([{**ONE, "claim_name": "disk-db-0"}], 422, ["/volumes/0/claim_name"]),
        ([{**ONE, "persistent_volume_id": "alone"}], 422, ["/volumes/0/claim_name"]),
        ([{**ONE, "persistent_volume_id": "read"}], 422, ["/volumes/0/claim_name"]),
        ([{**ONE, "size": "1Gi"}], 422, ["/volumes/0/size"]),
        ([{"persistent_volume_id": "free"}], 422, ["/volumes/0/claim_name"]),
        ([ONE] * 65, 422, ["/volumes"]),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
@pytest.mark.asyncio(loop_scope="module")
async def test_a_volume_that_a_vnf_cannot_use_is_refused(
    gateway: _Gateway, volumes: list[dict[str, str]], status: int, pointers: list[str]
) -> None:
    refused = (await gateway.bring_up(*volumes)).problem(status)
    assert [each["pointer"] for each in refused["errors"]] == pointers
    assert gateway.world.twins.commands == []


@pytest.mark.asyncio(loop_scope="module")
async def test_a_vnf_uses_its_volumes_from_before_its_first_object_until_after_its_last(gateway: _Gateway) -> None:
    """MC-060, MC-101: also by each later operation."""
    world = gateway.world
    made = (await gateway.bring_up(ONE)).must(201).json
    one = f"{VNFS}/{made['vnf_id']}"
    hold, apply = (each.data for each in world.twins.commands)
    assert isinstance(hold, HoldVolumes)
    assert isinstance(apply, ApplyObjects)
    assert hold.volumes == apply.volumes == (hold.volumes[0],)
    assert hold.volumes[0].model_dump() == {**ONE, "access_modes": ("ReadWriteOnce",)}
    patched = {"Content-Type": "application/merge-patch+json"}
    changed = await world.call("PATCH", one, {"csar_id": gateway.other_id}, headers=patched)
    assert [each["pointer"] for each in changed.problem(422)["errors"]] == ["/csar_id"]
    (await world.call("PATCH", one, {"values": {"level": 2}}, headers=patched)).must(200)
    replace = world.twins.commands[-1].data
    assert isinstance(replace, ReplaceObjects)
    assert replace.volumes == hold.volumes
    (await world.call("DELETE", one)).must(204)
    assert world.twins.asked()[-2:] == ["infra.k8s.delete_objects", "infra.k8s.release_volumes"]
    assert world.twins.commands[-1].data == ReleaseVolumes(vnf_instance_id=made["vnf_id"])
    world.twins.commands.clear()


class _SlowVolumes(TwinVolumes):
    """Counts the calls that wait for the region at the same time."""

    waiting, most = 0, 0

    async def get(self, volume_id: str) -> PersistentVolume:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(0)
        self.waiting -= 1
        return await super().get(volume_id)


@pytest.mark.asyncio
async def test_volumes_are_read_at_once(gateway: _Gateway) -> None:
    """A request with 64 of them in a slow region does not wait 64 times."""
    slow = _SlowVolumes()
    slow.by_id.update(gateway.world.volumes.by_id)
    wanted = [VolumeMountRequest(persistent_volume_id=each, claim_name=each) for each in slow.by_id]
    faults = Faults()
    await requested_volumes(slow, wanted, faults, vim_id="vim-edge")
    with pytest.raises(Unprocessable):
        faults.check()
    assert slow.most == len(wanted)
