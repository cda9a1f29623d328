"""Packages in the form of Tacker's guides through their whole life, by both versions of the API."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
import pytest
from certificates import Authority
from guide_clusters import PODAFFINITY, REGISTRY_NAME, guide_package, guide_request
from guide_registries import PORT_NO, guide_registry, guide_registry_request
from kubevnfm_lab.machines.registry import RegistryPort, RegistrySettings
from lab_process import LabControl
from shown_clusters import cluster_of, nodes_of, nodes_with, volumes_of
from storage_clusters import NUMBERS, VDU
from user import GRACEFUL, ApiVersion, User

pytestmark = pytest.mark.parametrize("installation", ["single"], indirect=True)
CA: Final = "Files/registries/ca.crt"
LOGIN: Final = {"username": "tacker", "password": "pull-word"}
ASPECT: Final[dict[ApiVersion, str]] = {"v1": "worker_instance", "v2": "workerNode_scale"}


@pytest.fixture
async def registries(tmp_path: Path) -> AsyncIterator[list[dict[str, Any]]]:
    """The connections of document 004's sample: HTTP without login; HTTPS with login, CA and hosts entry."""
    pair = Authority(tmp_path).issue(REGISTRY_NAME, dns=REGISTRY_NAME)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    settings = RegistrySettings(context, lambda *given: given == tuple(LOGIN.values()))
    opened = [RegistryPort(["127.0.0.1"], 0), RegistryPort(["127.0.0.1"], 0, settings)]
    for one in opened:
        await one.open()
    yield [
        {"connection_type": "0", "server": f"127.0.0.1:{opened[0].port}"},
        {
            "connection_type": "1",
            "server": f"{REGISTRY_NAME}:{opened[1].port}",
            **LOGIN,
            "certificate_path": CA,
            "hosts_string": f"127.0.0.1 {REGISTRY_NAME}",
        },
    ]
    for one in opened:
        one.close()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("form", "api", "flavour"),
    [
        *((form, form, flavour) for form in ("v1", "v2") for flavour in ("simple", "complex", PODAFFINITY)),
        ("v1", "v2", "simple"),
        ("v2", "v1", "simple"),
    ],
)
async def test_a_cluster_package_lives_its_whole_life(
    user: User,
    v1: User,
    lab: LabControl,
    tmp_path: Path,
    registries: list[dict[str, Any]],
    form: ApiVersion,
    api: ApiVersion,
    flavour: str,
) -> None:
    """SEQ-060, SEQ-132 to SEQ-134, SEQ-136, SEQ-187: with a storage server and two registries; ``api`` is the version that it is used by."""
    caller = v1 if api == "v1" else user
    vnfd_id, ca = str(uuid4()), (tmp_path / "ca.pem").read_bytes()
    package = await caller.upload(guide_package(form, vnfd_id, has_storage=True, more={CA: ca}))
    assert (package["onboardingState"], package.get("warnings")) == ("ONBOARDED", None), package
    vim_id = (await caller.vims())["lab"]["id"]
    body = guide_request(
        form, caller.installation.lab, vim_id, flavour=flavour, api=api, has_storage=True, registries=registries
    )
    cluster_id = await caller.create(vnfd_id)
    view = await caller.do(cluster_id, "instantiate", body)
    first = await nodes_of(user, lab, cluster_id)
    assert len(first) == (5 if flavour == "complex" else 3)
    assert nodes_with(view, "registries") == nodes_with(view, "nfs_client") == first
    volumes = await volumes_of(user, lab, cluster_id)
    assert set(volumes) == {f"nfs-pv{number}" for number in NUMBERS}
    vim = (await caller.vims())["kubernetes_vim"]
    assert "pull-word" not in str(view) + str(await user.instance(cluster_id)) + await user.log(view["id"])

    scaling = {"aspectId": ASPECT[form], "numberOfSteps": "1" if api == "v1" else 1}
    view = await caller.do(cluster_id, "scale", {"type": "SCALE_OUT", **scaling})
    (new,) = await nodes_of(user, lab, cluster_id) - first
    assert nodes_with(view, "registries", "nfs_client", "join") == {new}
    await heal(user, caller, lab, cluster_id, new)
    if flavour == "complex":
        await heal(user, caller, lab, cluster_id, min(name for name in first if name.startswith("master")))
    if flavour == PODAFFINITY:
        labels = {each["name"]: each["labels"] for each in (await cluster_of(user, lab, cluster_id))["nodes"]}
        workers = [name for name in labels if name.startswith("worker")]
        assert len({labels[name]["CIS-node"] for name in workers}) == len(workers) == 3
    assert await volumes_of(user, lab, cluster_id) == volumes
    await caller.do(cluster_id, "scale", {"type": "SCALE_IN", **scaling})
    assert len(await nodes_of(user, lab, cluster_id)) == len(first)

    await heal_the_storage_server(user, caller, lab, cluster_id)
    view = await caller.do(cluster_id, "heal", {})
    again = await nodes_of(user, lab, cluster_id)
    assert len(again) == len(first)
    assert nodes_with(view, "registries") == nodes_with(view, "nfs_client") == again
    assert set(await volumes_of(user, lab, cluster_id)) == set(volumes)
    after = (await caller.vims())["kubernetes_vim"]
    assert (after["id"], after["status"]) == (vim["id"], "ACTIVE")
    await caller.terminate(cluster_id)
    assert set(await caller.vims()) == {"lab"}


async def heal(user: User, caller: User, lab: LabControl, cluster_id: str, name: str) -> None:
    """Heal one node: its machine is new, all others stay, and it has its name again."""
    before = await nodes_of(user, lab, cluster_id)
    machines = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    (ill,) = [one for one in machines if one.get("metadata", {}).get("node_name") == name]
    view = await caller.do(cluster_id, "heal", {"vnfcInstanceId": [await named(user, caller, cluster_id, ill["id"])]})
    assert nodes_with(view, "registries") == nodes_with(view, "nfs_client") == {name}
    assert await nodes_of(user, lab, cluster_id) == before
    assert await changed(user, cluster_id, machines) == [ill["vduId"]]


async def heal_the_storage_server(user: User, caller: User, lab: LabControl, cluster_id: str) -> None:
    """Heal it: its persistent volumes are registered again."""
    before = await volumes_of(user, lab, cluster_id)
    machines = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    (server,) = [one for one in machines if one["vduId"] == VDU]
    asked = {"vnfcInstanceId": [await named(user, caller, cluster_id, server["id"])]}
    await caller.do(cluster_id, "heal", asked)
    after = await volumes_of(user, lab, cluster_id)
    assert set(after) == set(before)
    assert not set(after.values()) & set(before.values())
    assert await changed(user, cluster_id, machines) == [VDU]


async def named(user: User, caller: User, instance_id: str, resource_id: str) -> str:
    """Return the id by which a request names a machine: v1 has that of vnfcResourceInfo, v2 that of vnfcInfo."""
    if caller.version == "v1":
        return resource_id
    listed = (await user.instance(instance_id))["instantiatedVnfInfo"]["vnfcInfo"]
    return str(next(one["id"] for one in listed if one["vnfcResourceInfoId"] == resource_id))


async def changed(user: User, instance_id: str, before: list[dict[str, Any]]) -> list[str]:
    """Return the VDU of each machine that has another server than before."""
    servers = {one["computeResource"]["resourceId"] for one in before}
    now = (await user.instance(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert len(now) == len(before)
    return [one["vduId"] for one in now if one["computeResource"]["resourceId"] not in servers]


@pytest.mark.deep
@pytest.mark.parametrize("api", ["v1", "v2"])
async def test_a_registry_package_lives_its_whole_life(user: User, v1: User, lab: LabControl, api: ApiVersion) -> None:
    """SEQ-110, SEQ-117, SEQ-119, SEQ-187, API-158: a cluster that uses it by a host name keeps it from being taken away."""
    caller = v1 if api == "v1" else user
    vim_id = (await caller.vims())["lab"]["id"]
    vnfd_id = str(uuid4())
    package = await caller.upload(guide_registry(vnfd_id))
    assert (package["onboardingState"], package.get("warnings")) == ("ONBOARDED", None), package
    registry_id = await caller.create(vnfd_id)
    body = guide_registry_request(api, caller.installation.lab, vim_id)
    view = await caller.do(registry_id, "instantiate", body)
    assert "of the package was run" not in await caller.log(view["id"])
    address = await serving(user, registry_id)

    vnfd_id = str(uuid4())
    await caller.upload(guide_package(api, vnfd_id))
    connection = {
        "connection_type": "0",
        "server": f"{REGISTRY_NAME}:{PORT_NO}",
        "hosts_string": f"{address} {REGISTRY_NAME}",
    }
    cluster_id = await caller.create(vnfd_id)
    body = guide_request(api, caller.installation.lab, vim_id, registries=[connection])
    await caller.do(cluster_id, "instantiate", body)
    assert cluster_id in (await caller.ask(registry_id, "terminate", GRACEFUL)).must(409).detail
    machines = (await user.instance(registry_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    asked = {"vnfcInstanceId": [await named(user, caller, registry_id, machines[0]["id"])]}
    await caller.do(registry_id, "heal", asked)
    assert await changed(user, registry_id, machines) == ["PrivateRegistryVDU"]
    assert await serving(user, registry_id) == address
    out = {"type": "SCALE_OUT", "aspectId": ASPECT[api], "numberOfSteps": 1}
    await caller.do(cluster_id, "scale", out)
    assert len(await nodes_of(user, lab, cluster_id)) == 4
    await caller.terminate(cluster_id)

    await caller.do(registry_id, "heal", {})
    await serving(user, registry_id)
    await caller.terminate(registry_id)


async def serving(user: User, registry_id: str) -> str:
    """Return the address of the registry's machine, after checking that it serves."""
    (point,) = (await user.instance(registry_id))["instantiatedVnfInfo"]["extCpInfo"]
    (protocol,) = point["cpProtocolInfo"]
    address = str(protocol["ipOverEthernet"]["ipAddresses"][0]["addresses"][0])
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}:{PORT_NO}/v2/") as response:
        assert response.status == 200
    return address
