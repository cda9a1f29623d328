"""``/multicloud/v1/persistent-volumes`` over HTTP (multicloud.md chapter 13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.volumes import VolumeUse
from kubevnfm_kit.errors import BeingRemoved, InUse, NotFound
from worlds.lcm_world import Answer
from worlds.volume_world import VOLUMES, VolumeWorld, volume_world

NFS = {"server": "192.0.2.9", "path": "/data"}
WAIT_S = 60.0
BAD_INPUT: list[tuple[dict[str, Any], list[str]]] = [
    ({"source": None}, ["/storage_class", "/source"]),
    ({"storage_class": "fast"}, ["/storage_class", "/source"]),
    ({"source": {}}, ["/source"]),
    ({"source": {"nfs": NFS, "local": {"path": "/d", "nodes": ["n1"]}}}, ["/source"]),
    ({"source": {"nfs": {"server": "192.0.2.9"}}}, ["/source/nfs/path"]),
    ({"source": {"csi": {"driver": "d.example.com"}}}, ["/source/csi/volumeHandle"]),
    ({"source": {"local": {"path": "/d"}}}, ["/source/local/nodes"]),
    ({"source": {"hostPath": {"path": "/d"}}}, ["/source/hostPath"]),
    ({"source": {"nfs": {**NFS, "mount": "x"}}}, ["/source/nfs/mount"]),
    ({"reclaim": "Delete"}, ["/reclaim"]),
    ({"reclaim": "Recycle"}, ["/reclaim"]),
    ({"source": None, "storage_class": "unknown"}, ["/storage_class"]),
    ({"access_modes": []}, ["/access_modes"]),
    ({"access_modes": ["ReadWriteSometimes"]}, ["/access_modes/0"]),
    ({"access_modes": ["ReadWriteOnce", "ReadWriteOnce"]}, ["/access_modes"]),
    ({"access_modes": ["ReadWriteOncePod", "ReadWriteOnce"]}, ["/access_modes"]),
    ({"access_modes": None}, ["/access_modes"]),
    ({"volume_mode": ""}, ["/volume_mode"]),
    ({"volume_mode": "Tape"}, ["/volume_mode"]),
    ({"size": "0"}, ["/size"]),
    ({"size": "0Gi"}, ["/size"]),
    ({"size": "-1Gi"}, ["/size"]),
    ({"size": "10 GB"}, ["/size"]),
    ({"size": "1e99"}, ["/size"]),
    ({"size": "9" * 33}, ["/size"]),
    ({"size": 10}, ["/size"]),
    ({"name": "Data"}, ["/name"]),
    ({"name": "d" * 64}, ["/name"]),
    ({"namespace": "no_label"}, ["/namespace"]),
    ({"namespace": "kube-system"}, ["/namespace"]),
    ({"labels": {"tier": "x" * 64}}, ["/labels/tier"]),
    ({"labels": {"kubevnfm.io/vnf-instance-id": "x"}}, ["/labels"]),
    ({"labels": {"app.kubernetes.io/managed-by": "other"}}, ["/labels"]),
    ({"labels": {f"l{number}": "x" for number in range(65)}}, ["/labels"]),
    ({"cloud_region_id": "op/other"}, ["/cloud_region_id"]),
    ({"colour": "red"}, ["/colour"]),
]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[VolumeWorld]:
    async with volume_world(tmp_path) as running:
        yield running


def pointers(answer: Answer) -> list[str]:
    """Return the pointers of a 422."""
    return [error["pointer"] for error in answer.problem(422)["errors"]]


def use(world: VolumeWorld, name: str = "data") -> VolumeUse:
    return VolumeUse(namespace=world.ground.namespace, claim_name=name)


async def test_nothing_is_written_in_a_suspended_region(world: VolumeWorld) -> None:
    """MC-139."""
    made = (await world.create()).must(201)
    one = f"{VOLUMES}/{made.json['id']}"
    suspension = Suspension(by="ann", since="2026-11-26T10:00:00.000Z", reason="new disks", scope="region")
    world.ground.suspended["vim"] = suspension
    seen = (await world.call("GET", one)).must(200)
    assert seen.json == {**made.json, "suspended": suspension.model_dump()}
    assert seen.headers["ETag"] != made.headers["ETag"]
    assert (await world.call("GET", VOLUMES)).must(200).json == [seen.json]
    patch = {"labels": {"tier": "gold"}}
    refused = [await world.create(name="new"), await world.call("PATCH", one, patch), await world.call("DELETE", one)]
    for answer in refused:
        assert answer.problem(409)["type"] == "suspended"
    assert (await world.create()).must(200).json["updated_at"] == made.json["updated_at"]
    world.ground.suspended.clear()
    assert (await world.call("GET", one)).must(200).json == made.json
    (await world.call("DELETE", one)).must(200)


async def test_a_volume_is_created_listed_shown_and_deleted(world: VolumeWorld) -> None:
    made = (await world.create(labels={"tier": "gold"})).must(201)
    volume = made.json
    assert made.headers["Location"] == f"{world.url}{VOLUMES}/{volume['id']}"
    shown = {
        "name": "data",
        "pv": f"kubevnfm-{volume['id']}",
        "phase": "Reserved",
        "phase_detail": "",
        "in_use_by": [],
        "size": "1Gi",
        "source": {"nfs": NFS},
        "labels": {"tier": "gold"},
    }
    assert {name: volume[name] for name in shown} == shown
    assert not {"revision", "is_decided", "claim"} & volume.keys()
    one = (await world.call("GET", f"{VOLUMES}/{volume['id']}")).must(200)
    assert one.json == volume
    assert one.headers["ETag"] == made.headers["ETag"]
    known = {"If-None-Match": one.headers["ETag"]}
    (await world.call("GET", f"{VOLUMES}/{volume['id']}", headers=known)).must(304)
    assert (await world.call("GET", f"{VOLUMES}?status=Reserved&name=data")).must(200).json == [volume]
    assert (await world.call("GET", f"{VOLUMES}?status=Bound")).must(200).json == []
    removed = (await world.call("DELETE", f"{VOLUMES}/{volume['id']}")).must(200).json
    assert removed == {"id": volume["id"], "is_gone": True, "data": "kept", "where": "nfs 192.0.2.9:/data"}
    (await world.call("GET", f"{VOLUMES}/{volume['id']}")).problem(404)


async def test_a_list_has_pages(world: VolumeWorld) -> None:
    made = [(await world.create(name=f"v{number}")).must(201).json["id"] for number in range(3)]
    first = (await world.call("GET", f"{VOLUMES}?limit=2")).must(200)
    path = first.headers["Link"].split(">")[0].removeprefix(f"<{world.url}")
    second = (await world.call("GET", path)).must(200)
    assert sorted(made) == [volume["id"] for volume in first.json + second.json]


async def test_the_work_is_waited_for_or_not(world: VolumeWorld) -> None:
    """MC-004."""
    at_once = await world.call("POST", VOLUMES, world.request(), {"Prefer": "respond-async"})
    assert at_once.status in {201, 202}
    assert at_once.headers["Location"].endswith(at_once.json["id"])
    again = (await world.call("POST", VOLUMES, world.request(), {"Prefer": "wait=121"})).must(200)
    assert (again.json["id"], again.json["phase"]) == (at_once.json["id"], "Reserved")
    assert again.headers["Preference-Applied"] == "wait=120"


async def test_bad_input_is_refused_with_its_place(world: VolumeWorld) -> None:
    for changes, expected in BAD_INPUT:
        assert pointers(await world.create(**changes)) == expected, changes
    assert (await world.call("GET", VOLUMES)).must(200).json == []


async def test_a_body_that_is_none_is_refused(world: VolumeWorld) -> None:
    (await world.call("POST", VOLUMES)).problem(400)
    (await world.call("GET", f"{VOLUMES}?colour=red")).problem(400)
    (await world.call("GET", f"{VOLUMES}?limit=0")).problem(400)


async def test_the_same_name_with_another_spec_is_refused_and_with_an_equal_one_found(world: VolumeWorld) -> None:
    made = (await world.create()).must(201)
    same = (await world.create()).must(200)
    assert same.json["id"] == made.json["id"]
    other = (await world.create(size="2Gi")).problem(409)
    assert [error["pointer"] for error in other["errors"]] == ["/name"]
    assert "differs in size" in other["detail"]


async def test_a_size_that_shrinks_and_members_that_do_not_change_are_refused(world: VolumeWorld) -> None:
    storage_class = await world.ground.storage_class("rigid")
    made = (await world.create(source=None, storage_class=storage_class)).must(201).json
    one = f"{VOLUMES}/{made['id']}"
    for patch, pointer in (
        ({"size": "512Mi"}, "/size"),
        ({"size": "2Gi"}, "/size"),
        ({"size": "zero"}, "/size"),
        ({"name": "other"}, "/name"),
        ({"access_modes": ["ReadWriteMany"]}, "/access_modes"),
        ({"reclaim": "Delete"}, "/reclaim"),
        ({"labels": {"kubevnfm.io/persistent-volume-id": "x"}}, "/labels"),
        ({"storage_class": "other"}, "/storage_class"),
    ):
        assert pointers(await world.call("PATCH", one, patch)) == [pointer]


async def test_a_volume_of_a_class_that_allows_it_grows(world: VolumeWorld) -> None:
    storage_class = await world.ground.storage_class("fast", allowVolumeExpansion=True)
    made = (await world.create(source=None, storage_class=storage_class)).must(201)
    one, tag = f"{VOLUMES}/{made.json['id']}", {"If-Match": made.headers["ETag"]}
    grown = (await world.call("PATCH", one, {"size": "2Gi", "labels": {"tier": "gold"}}, tag)).must(200)
    assert (grown.json["size"], grown.json["labels"]) == ("2Gi", {"tier": "gold"})
    assert grown.json["phase_detail"] == "grows from 1Gi to 2Gi when the next VNF binds it"
    (await world.call("PATCH", one, {"size": "3Gi"}, tag)).problem(412)
    (await world.call("DELETE", one, headers=tag)).problem(412)
    (await world.call("DELETE", one, headers={"If-Match": grown.headers["ETag"]})).must(200)


async def test_a_volume_in_use_is_not_deleted(world: VolumeWorld) -> None:
    """MC-103, MC-104; a VNF takes and leaves by the owner's internal API, which is safe to repeat."""
    made = (await world.create()).must(201).json
    one = f"{VOLUMES}/{made['id']}"
    taken = await world.client.use(made["id"], "vnf:a", use(world), wait_s=WAIT_S)
    assert taken.is_bound
    assert await world.client.use(made["id"], "vnf:a", use(world), wait_s=WAIT_S) == taken
    with pytest.raises(InUse) as refused:
        await world.client.use(made["id"], "vnf:b", use(world, "second"), wait_s=0)
    assert refused.value.holders == ("vnf:a",)
    shown = (await world.call("GET", one)).must(200).json
    assert (shown["phase"], shown["in_use_by"]) == ("Bound", ["vnf:a"])
    assert shown["claim"] == {"namespace": world.ground.namespace, "name": "data"}
    problem = (await world.call("DELETE", one)).problem(409)
    assert (problem["type"], problem["holders"], problem["holder_count"]) == ("in-use", ["vnf:a"], 1)
    assert await world.client.leave(made["id"], "vnf:a", wait_s=WAIT_S)
    assert await world.client.leave(made["id"], "vnf:a", wait_s=WAIT_S)
    (await world.call("DELETE", one)).must(200)
    with pytest.raises(NotFound):
        await world.client.use(made["id"], "vnf:a", use(world), wait_s=0)


async def test_data_of_a_class_go_with_the_volume_if_they_are_to(world: VolumeWorld) -> None:
    storage_class = await world.ground.storage_class("fast")
    made = (await world.create(source=None, storage_class=storage_class, reclaim="Delete")).must(201).json
    (await world.call("DELETE", f"{VOLUMES}/{made['id']}")).must(204)
    assert await world.ground.pv(made["pv"]) is None


async def test_a_volume_that_is_being_removed_is_not_taken(world: VolumeWorld) -> None:
    storage_class = await world.ground.storage_class("fast")
    made = (await world.create(source=None, storage_class=storage_class, reclaim="Delete")).must(201).json
    stored = await world.ground.records.get(made["id"])
    assert stored is not None
    await world.ground.records.replace(stored.model_copy(update={"is_removed": True}))
    refused = await world.create(source=None, storage_class=storage_class, reclaim="Delete")
    problem = refused.problem(409)
    assert (problem["type"], "Retry-After" in refused.headers) == ("being-removed", True)
    with pytest.raises(BeingRemoved):
        await world.client.use(made["id"], "vnf:a", use(world), wait_s=0)
    (await world.call("DELETE", f"{VOLUMES}/{made['id']}")).must(204)
