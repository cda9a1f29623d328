"""Packages in the form of Tacker's guides through their whole life, by both versions of the API."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
import pytest
from callers.user import GRACEFUL, ApiVersion, User
from clouds.lab_process import LabControl
from clusters.shown_clusters import cluster_of, nodes_of, nodes_with, volumes_of
from clusters.storage_clusters import NUMBERS
from clusters.storage_clusters import VDU as STORAGE
from kubevnfm_lab.machines.registry import RegistryPort, RegistrySettings
from packages.guide_clusters import PODAFFINITY, PODAFFINITY_HA, REGISTRY_NAME, guide_package, guide_request
from packages.guide_registries import PORT_NO, guide_registry, guide_registry_request
from servers.certificates import Authority

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
        *((form, form, flavour) for form in ("v1", "v2") for flavour in ("simple", "complex", PODAFFINITY_HA)),
        ("v1", "v2", PODAFFINITY),
        ("v2", "v1", "complex"),
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
    vim_name = body["additionalParams"]["k8s_cluster_installation_param"]["vim_name"] = f"vim {vnfd_id}"
    cluster_id = await caller.create(vnfd_id)
    view = await caller.do(cluster_id, "instantiate", body)
    first = await nodes_of(user, lab, cluster_id)
    is_ha = flavour in ("complex", PODAFFINITY_HA)
    assert len(first) == (5 if is_ha else 3)
    assert nodes_with(view, "registries") == nodes_with(view, "nfs_client") == first
    volumes = await volumes_of(user, lab, cluster_id)
    assert set(volumes) == {f"nfs-pv{number}" for number in NUMBERS}
    vim = (await caller.vims())[vim_name]
    assert "pull-word" not in str(view) + str(await user.instance(cluster_id)) + await user.log(view["id"])

    # As the guides: v1 has numbers as texts, and the requests of v2 send all parameters again.
    scaling: dict[str, Any] = {"aspectId": ASPECT[form], "numberOfSteps": "1"}
    more: dict[str, Any] = {}
    if api == "v2":
        more = {"additionalParams": body["additionalParams"]}
        scaling |= {"numberOfSteps": 1, **more}
    view = await caller.do(cluster_id, "scale", {"type": "SCALE_OUT", **scaling})
    (new,) = await nodes_of(user, lab, cluster_id) - first
    assert nodes_with(view, "registries", "nfs_client", "join") == {new}
    await heal(user, caller, lab, cluster_id, [new], more)
    if flavour in (PODAFFINITY, PODAFFINITY_HA):
        labels = {each["name"]: each["labels"] for each in (await cluster_of(user, lab, cluster_id))["nodes"]}
        workers = [name for name in labels if name.startswith("worker")]
        assert len({labels[name]["CIS-node"] for name in workers}) == len(workers) == 3
    await caller.do(cluster_id, "scale", {"type": "SCALE_IN", **scaling})
    left = await nodes_of(user, lab, cluster_id)
    assert len(left) == len(first)

    machines = [STORAGE]
    if is_ha:
        machines += [min(name for name in left if name.startswith(role)) for role in ("master", "worker")]
    await heal(user, caller, lab, cluster_id, machines, more)
    view = await caller.do(cluster_id, "heal", {})
    again = await nodes_of(user, lab, cluster_id)
    assert len(again) == len(first)
    assert nodes_with(view, "registries") == nodes_with(view, "nfs_client") == again
    assert set(await volumes_of(user, lab, cluster_id)) == set(volumes)
    after = (await caller.vims())[vim_name]
    assert (after["id"], after["status"]) == (vim["id"], "ACTIVE")
    await caller.terminate(cluster_id)
    assert set(await caller.vims()) == {"lab"}


async def heal(
    user: User, caller: User, lab: LabControl, cluster_id: str, names: list[str], more: dict[str, Any]
) -> None:
    """Heal nodes, or the storage server: only their machines are new, and nodes and volumes have their names again."""
    nodes, volumes = await nodes_of(user, lab, cluster_id), await volumes_of(user, lab, cluster_id)
    machines = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    ill = [one for one in machines if one.get("metadata", {}).get("node_name", one["vduId"]) in names]
    assert len(ill) == len(names)
    ids = [await named(user, caller, cluster_id, one["id"]) for one in ill]
    view = await caller.do(cluster_id, "heal", {"vnfcInstanceId": ids, **more})
    assert nodes_with(view, "registries") == nodes_with(view, "nfs_client") == {*names} - {STORAGE}
    assert await nodes_of(user, lab, cluster_id) == nodes
    assert sorted(await changed(user, cluster_id, machines)) == sorted(one["vduId"] for one in ill)
    after = await volumes_of(user, lab, cluster_id)
    assert set(after) == set(volumes)
    is_same = [after[name] == uid for name, uid in volumes.items()]
    assert is_same == [STORAGE not in names] * len(volumes)


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
async def test_the_level_of_the_request_decides_the_sizes_of_groups_with_numbers(v1: User, lab: LabControl) -> None:
    """SEQ-048, 6.3: the guide's groups have those of the smallest level; also five masters keep one address."""
    vnfd_id = str(uuid4())
    await v1.upload(guide_package("v1", vnfd_id))
    vim_id = (await v1.vims())["lab"]["id"]
    body = guide_request("v1", v1.installation.lab, vim_id, flavour="complex")
    cluster_id = await v1.create(vnfd_id)
    await v1.do(cluster_id, "instantiate", {**body, "instantiationLevelId": "instantiation_level_2"})
    names = await nodes_of(v1, lab, cluster_id)
    assert sorted(name.rstrip("0123456789") for name in names) == ["master"] * 5 + ["worker"] * 4
    await v1.do(cluster_id, "scale", {"type": "SCALE_IN", "aspectId": ASPECT["v1"], "numberOfSteps": "1"})
    assert len(names - await nodes_of(v1, lab, cluster_id)) == 1
    await v1.do(cluster_id, "heal", {})
    assert len(await nodes_of(v1, lab, cluster_id)) == 8
    await v1.terminate(cluster_id)


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
