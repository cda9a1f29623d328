"""How the instances of the stories come to be. Writes of that time are not recorded."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from answers import (
    DRIVER,
    KURYR_DRIVER,
    KURYR_PARAMETERS,
    KURYR_RESOURCES,
    NODE_PORTS,
    VIM,
)
from clusters.storage_clusters import storage_cluster, storage_parameters
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_cluster.parameters import CLUSTER
from kubevnfm_csar.pack import pack
from kubevnfm_events.objects import AttachedLink
from packages.package_variants import OTHER_CNF, OTHER_VM, variant
from packages.vm_packages import other_image, two_flavours
from script import Script
from worlds.lcm_world import SAMPLES, sample_request

Setup = Callable[[Script], Awaitable[str]]
"""Creates the instance of a story and returns its id. Its writes are not recorded."""


async def vm(script: Script, content: bytes | None = None) -> str:
    """Return a new instance of the sample ``vm``, or of another package that is like it."""
    package = await script.world.upload(script.world.zipped("vm") if content is None else content)
    return await script.world.create(vnfdId=package["vnfdId"])


async def live_vm(script: Script, content: bytes | None = None, *, version: str = "v2") -> str:
    """Return an instance that is INSTANTIATED."""
    instance_id = await vm(script, content)
    await script.do(instance_id, "instantiate", vm_body(version), version=version)
    return instance_id


def vm_of_two_flavours(version: str = "v2", before: Sequence[tuple[str, object]] = ()) -> Setup:
    """Return the set-up of an INSTANTIATED instance with two flavours, changed by the operations ``before``."""

    async def setup(script: Script) -> str:
        instance_id = await live_vm(script, two_flavours(script.world.folder), version=version)
        for task, body in before:
            await script.do(instance_id, task, body)
        return instance_id

    return setup


async def vm_with_snapshot(script: Script) -> str:
    """Return an instance that is INSTANTIATED, of which a snapshot was taken."""
    instance_id = await live_vm(script)
    await script.make_snapshot_info()
    await script.do(instance_id, "create_snapshot", {"vnfSnapshotInfoId": script.snapshot_info_id})
    return instance_id


async def vm_without_snapshot(script: Script) -> str:
    """Return an instance that is INSTANTIATED, and an individual VNF snapshot that is empty."""
    await script.make_snapshot_info()
    return await live_vm(script)


async def vm_and_another_package(script: Script) -> str:
    """Return an instance that is INSTANTIATED; the package that it can change to is there too."""
    instance_id = await live_vm(script)
    await script.world.upload(other_image(script.world.folder))
    return instance_id


async def scripted_vm(script: Script) -> str:
    """Return an INSTANTIATED instance whose package has scripts; the package that it can change to is there too."""
    moments = ("start", "end", "rollback_start", "rollback_end")
    phases = {f"change_current_package_{moment}": "own" for moment in moments}
    phases |= {f"modify_information_{moment}": "own" for moment in moments[:2]}
    files = {"Scripts/coordinate.py": "pass\n"}
    folder = script.world.folder
    instance_id = await live_vm(script, variant(folder, "vm", phases=phases, files=files))
    await script.world.upload(variant(folder, "vm", phases=phases, files=files, vnfd_id=OTHER_VM))
    return instance_id


def vm_body(version: str = "v2") -> dict[str, Any]:
    """Return an instantiate request with a VIM and parameters of its own."""
    if version == "v1":
        request = sample_request("vm", "instantiate.v1")
        vim: Any = [{"id": "vim1", **VIM}]
    else:
        request, vim = sample_request("vm", "instantiate"), {"vim1": VIM}
    return {**request, "vimConnectionInfo": vim, "additionalParams": {"colour": "blue", "admin_password": "secret"}}


async def cluster(script: Script) -> str:
    """Return a new instance of the sample ``cluster``, whose driver has all phases of instantiate and terminate."""
    root = script.world.folder / "all-phases"
    shutil.copytree(SAMPLES / "cluster", root, ignore=shutil.ignore_patterns("requests"))
    for phase in ("instantiate_start", "terminate_start"):
        _replace_in(root / "Definitions", f"{phase}: []", f"{phase}: {{implementation: {DRIVER}}}")
    return await _cluster_of(script, root)


async def kuryr_cluster(script: Script) -> str:
    """Return a new instance of a cluster with Kuryr: the sample ``cluster`` with the driver and the networks for it."""
    root = script.world.folder / "kuryr"
    shutil.copytree(SAMPLES / "cluster", root, ignore=shutil.ignore_patterns("requests"))
    _replace_in(root / "Definitions", "terminate_start: []", f"terminate_start: {{implementation: {KURYR_DRIVER}}}")
    _replace_in(root / "Definitions", DRIVER, KURYR_DRIVER)
    _replace_in(root / "BaseHOT/simple", "\nresources:\n", f"\nresources:\n{KURYR_RESOURCES}")
    return await _cluster_of(script, root)


def kuryr_body() -> dict[str, Any]:
    """Return the instantiate request of a cluster with Kuryr."""
    body: dict[str, Any] = sample_request("cluster", "instantiate")
    body["additionalParams"][CLUSTER] = {
        **body["additionalParams"][CLUSTER],
        "kuryr_param": KURYR_PARAMETERS,
    }
    body["additionalParams"][CLUSTER]["master_node"] |= {"pod_cidr": "10.200.0.0/16", "cluster_cidr": "10.96.0.0/17"}
    return body


async def live_kuryr_cluster(script: Script) -> str:
    """Return a cluster with Kuryr that is INSTANTIATED."""
    instance_id = await kuryr_cluster(script)
    await script.do(instance_id, "instantiate", kuryr_body())
    return instance_id


def _replace_in(folder: Path, old: str, new: str) -> None:
    for path in folder.glob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace(old, new)
        assert yaml.safe_load(text)
        path.write_text(text, encoding="utf-8")


async def _cluster_of(script: Script, root: Path) -> str:
    archive = root.with_suffix(".zip")
    pack(root, archive)
    package = await script.world.upload(archive.read_bytes())
    return await script.world.create("cluster", vnfdId=package["vnfdId"])


async def live_cluster(script: Script) -> str:
    """Return a cluster that is INSTANTIATED."""
    instance_id = await cluster(script)
    await script.do(instance_id, "instantiate", sample_request("cluster", "instantiate"))
    return instance_id


async def live_ha_cluster(script: Script) -> str:
    """Return a cluster with three masters that is INSTANTIATED."""
    instance_id = await cluster(script)
    await script.do(instance_id, "instantiate", sample_request("cluster", "instantiate_complex"))
    return instance_id


def live_cluster_with_storage(request: str) -> Setup:
    """Return the set-up of an INSTANTIATED cluster with a storage server, made by a request of the sample ``cluster``."""

    async def setup(script: Script) -> str:
        package = await script.world.upload(storage_cluster("4cf1e5fe-5a37-4ee8-a5a7-64bd4da8ff2c"))
        instance_id = await script.world.create(vnfdId=package["vnfdId"])
        body: dict[str, Any] = sample_request("cluster", request)
        body["additionalParams"][CLUSTER] |= storage_parameters("secret-of-the-server")
        await script.do(instance_id, "instantiate", body)
        return instance_id

    return setup


async def registry(script: Script) -> str:
    """Return a new instance of the sample ``registry``."""
    await script.world.sample("registry")
    return await script.world.create("registry")


async def live_registry(script: Script) -> str:
    """Return a private registry that is INSTANTIATED."""
    instance_id = await registry(script)
    await script.do(instance_id, "instantiate", sample_request("registry", "instantiate"))
    return instance_id


async def cnf(script: Script) -> str:
    """Return a new instance of the sample ``cnf``."""
    script.world.vims.add("vim-k", "kubernetes")
    await script.world.sample("cnf")
    return await script.world.create("cnf")


def cnf_body() -> dict[str, Any]:
    """Return the instantiate request of a CNF."""
    connection = {
        "vimId": "vim-k", "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://127.0.0.1:6443", "ssl_ca_cert": "None"},
        "accessInfo": {"bearer_token": "token-of-the-vim"},
    }  # fmt: skip
    return {**sample_request("cnf", "instantiate"), "vimConnectionInfo": {"cluster": connection}}


async def workload(script: Script, sample: str = "capi-workload") -> str:
    """Return a new instance of the sample."""
    script.world.vims.add("vim-k", "kubernetes")
    await script.world.sample(sample)
    return await script.world.create(sample)


def workload_body() -> dict[str, Any]:
    """Return the instantiate request of a workload cluster."""
    return {**sample_request("capi-workload", "instantiate"), "vimConnectionInfo": cnf_body()["vimConnectionInfo"]}


async def live_workload(script: Script, sample: str = "capi-workload") -> str:
    """Return a workload cluster that is INSTANTIATED."""
    instance_id = await workload(script, sample)
    await script.do(instance_id, "instantiate", workload_body())
    return instance_id


async def workload_with_a_sender(script: Script) -> str:
    """Return a new workload cluster whose package sends its credentials itself."""
    return await workload(script, "capi-workload-sender")


async def live_workload_with_a_sender(script: Script) -> str:
    """Return the same, INSTANTIATED."""
    return await live_workload(script, "capi-workload-sender")


async def management(script: Script) -> str:
    """Return a new instance of the sample ``capi-management``."""
    script.world.vims.add("vim-k", "kubernetes")
    await script.world.sample("capi-management")
    return await script.world.create("capi-management")


def management_body() -> dict[str, Any]:
    """Return the instantiate request of a management cluster."""
    return {**sample_request("capi-management", "instantiate"), "vimConnectionInfo": cnf_body()["vimConnectionInfo"]}


async def live_management(script: Script) -> str:
    """Return a management cluster that is INSTANTIATED."""
    instance_id = await management(script)
    await script.do(instance_id, "instantiate", management_body())
    return instance_id


async def cnf_on_links(script: Script) -> str:
    """Return a new instance of a CNF with a connection point, and have a virtual link for it."""
    script.world.vims.add("vim-k", "kubernetes")
    script.world.links.attachable["link-1"] = AttachedLink(name="protected", type="nad", definition="protected")
    onboarded = await script.world.upload(variant(script.world.folder, cps={"oam": None}))
    assert onboarded["onboardingState"] == "ONBOARDED", onboarded
    return await script.world.create("cnf")


def linked_body() -> dict[str, Any]:
    """Return the instantiate request of a CNF on a virtual link."""
    link = {"id": "outer", "resourceId": "link-1", "extCps": [{"cpdId": "oam"}]}
    return {**cnf_body(), "extVirtualLinks": [link]}


async def live_cnf_on_links(script: Script) -> str:
    """Return a CNF on a virtual link that is INSTANTIATED."""
    instance_id = await cnf_on_links(script)
    await script.do(instance_id, "instantiate", linked_body())
    return instance_id


async def live_cnf(script: Script) -> str:
    """Return a CNF that is INSTANTIATED."""
    instance_id = await cnf(script)
    await script.do(instance_id, "instantiate", cnf_body())
    return instance_id


async def updatable_cnf(script: Script) -> str:
    """Return a CNF that is INSTANTIATED and whose driver changes its images; the package to change to is there too."""
    script.world.vims.add("vim-k", "kubernetes")
    phases = {"modify_information_end": "mgmt-container-update"}
    for content in (
        variant(script.world.folder, phases=phases),
        variant(script.world.folder, phases=phases, vnfd_id=OTHER_CNF),
    ):
        await script.world.upload(content)
    instance_id = await script.world.create("cnf")
    await script.do(instance_id, "instantiate", cnf_body())
    return instance_id


async def cnf_with_node_ports(script: Script) -> str:
    """Return a new instance of a CNF whose driver has a load balancer forward to its node ports."""
    script.world.vims.add("vim-k", "kubernetes")
    phases = dict.fromkeys(("instantiate_end", "terminate_end"), NODE_PORTS)
    files = {"Scripts/configure_lb.sh": "exit 0\n"}
    await script.world.upload(variant(script.world.folder, phases=phases, files=files))
    return await script.world.create("cnf")


async def scripted_cnf(script: Script) -> str:
    """Return a new instance of a CNF whose package has scripts; the package that it can change to is there too."""
    script.world.vims.add("vim-k", "kubernetes")
    phases = {f"instantiate_{moment}": "own" for moment in ("start", "end", "rollback_start", "rollback_end")}
    phases |= {f"{name}_{moment}": "own" for name in ("modify_information", "terminate") for moment in ("start", "end")}
    await script.world.upload(variant(script.world.folder, phases=phases))
    await script.world.upload(variant(script.world.folder, phases=phases, vnfd_id=OTHER_CNF))
    return await script.world.create("cnf")


async def live_scripted_cnf(script: Script) -> str:
    """Return such a CNF that is INSTANTIATED."""
    instance_id = await scripted_cnf(script)
    await script.do(instance_id, "instantiate", cnf_body())
    return instance_id


def balanced_body() -> dict[str, Any]:
    """Return the instantiate request of a CNF behind a load balancer."""
    login = {"ssh_ip": "10.0.0.9", "ssh_username": "ubuntu", "ssh_password": "secret-of-the-balancer"}
    balancer = {"script_path": "Scripts/configure_lb.sh", "external_lb_param": login}
    body = cnf_body()
    return {**body, "additionalParams": {**body["additionalParams"], "lcm-kubernetes-external-lb": balancer}}


async def live_cnf_with_node_ports(script: Script) -> str:
    """Return a CNF behind a load balancer that is INSTANTIATED."""
    instance_id = await cnf_with_node_ports(script)
    await script.do(instance_id, "instantiate", balanced_body())
    return instance_id


async def volume(script: Script) -> str:
    """Have a region with a persistent volume, and a package with an order; return no instance: there is none yet."""
    script.world.vims.add("vim-k", "kubernetes")
    script.world.regions.add("op/edge", "vim-k")
    _add_volume(script, "volume-1")
    folder = "Files/kubernetes"
    order = {f"{folder}/artifact-order.yaml": "artifacts: [{file: configmap.yaml, priority: 1}]"}
    onboarded = await script.world.upload(variant(script.world.folder, files=order))
    assert onboarded["onboardingState"] == "ONBOARDED", onboarded
    script.package_id = onboarded["id"]
    return ""


def _add_volume(script: Script, name: str) -> None:
    script.world.volumes.by_id[name] = PersistentVolume(
        id=name, cloud_region_id="op/edge", vim_id="vim-k", name="data", phase="Reserved", size="1Gi",
        access_modes=("ReadWriteOnce",), volume_mode="Filesystem", reclaim="Retain", created_at="t", updated_at="t",
    )  # fmt: skip


def _holds(number: str) -> dict[str, Any]:
    return {
        "networks": [{"vdu_id": "VDU1", "virtual_link_id": f"link-{number}"}],
        "volumes": [{"persistent_volume_id": f"volume-{number}", "claim_name": f"data-{number}"}],
    }


def body_with_volume(script: Script) -> dict[str, Any]:
    """Return the multi-cloud request of a VNF that uses the volume."""
    volumes = [{"persistent_volume_id": "volume-1", "claim_name": "data"}]
    return {"cloud_region_id": "op/edge", "csar_id": script.package_id, "namespace": "default", "volumes": volumes}


def body_of_unheld(script: Script) -> dict[str, Any]:
    """Return the multi-cloud request of a VNF whose package is fetched first, from an address that no call may go to."""
    source = {"url": "http://127.0.0.1:1/csar", "sha256": "0" * 64}
    return {"cloud_region_id": "op/edge", "artifacts": source, "namespace": "default", "values": {"password": "ubuntu"}}


async def live_cnf_with_volume(script: Script) -> str:
    """Return a CNF with a persistent volume that is INSTANTIATED."""
    await volume(script)
    script.world.twins.waiting.clear()
    await script.bring_up(body_with_volume(script))
    instance_id = script.instance_id
    await script.settled(script.operation_id)
    return instance_id


async def live_cnf_with_other_holds(script: Script) -> str:
    """Return a CNF on a link and with a volume that is INSTANTIATED; the ones that it can change to are there too."""
    await volume(script)
    _add_volume(script, "volume-2")
    for name in ("link-1", "link-2"):
        script.world.links.attachable[name] = AttachedLink(name=name, type="nad", definition=name)
    folder = "Files/kubernetes"
    order = {f"{folder}/artifact-order.yaml": "artifacts: [{file: deployment.yaml, priority: 1}]"}
    onboarded = await script.world.upload(variant(script.world.folder, files=order, vnfd_id=OTHER_CNF))
    script.package_id = onboarded["id"]
    script.world.twins.waiting.clear()
    await script.bring_up({**body_with_volume(script), **_holds("1")})
    instance_id = script.instance_id
    await script.settled(script.operation_id)
    return instance_id


OTHER_HOLDS: Final[dict[str, Any]] = _holds("2")
"""The multi-cloud change to another link and another volume."""
