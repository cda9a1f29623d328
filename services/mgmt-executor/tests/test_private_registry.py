"""A machine becomes a private registry, on the lab's machines."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kubevnfm_cluster.registry_vnf import REGISTRY_VNF
from kubevnfm_events.common import PackageRef
from kubevnfm_events.mgmt import ManagedNode, Phase, RunPhase
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_lab.machines import MachineSettings
from kubevnfm_lab.machines.registry import RegistryPort
from kubevnfm_lab.machines.systems import DEBIAN, UBUNTU
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful
from kubevnfm_secrets import hide
from servers.certificates import Authority
from worlds.mgmt_lab import MgmtLab

LOGIN = {"ssh_cp_name": "CP1", "ssh_username": "ubuntu", "ssh_password": "ubuntu"}
DRIVER = "mgmt-drivers-private-registry"
FOCAL = replace(UBUNTU, os_release=UBUNTU.os_release.replace("22.04", "20.04"))


def command(lab: MgmtLab, node: ManagedNode, *, phase: Phase = "instantiate_end", **changes: Any) -> RunPhase:
    return RunPhase(
        vnf_instance_id=lab.instance_id,
        driver=DRIVER,
        phase=phase,
        package=PackageRef(package_id="p", vnfd_id="d"),
        nodes=(node,),
        parameters=hide({REGISTRY_VNF: {**LOGIN, **changes}}),
    )


def saved_image(lab: MgmtLab) -> str:
    """Write an image as ``docker save`` does into the package; return its path there."""
    content = json.dumps([{"RepoTags": ["registry:2.8"]}]).encode()
    path = "Files/images/private_registry.tar"
    (lab.packages.root / "Files/images").mkdir(parents=True)
    with tarfile.open(lab.packages.root / path, mode="w") as tar:
        member = tarfile.TarInfo("manifest.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return path


async def status(url: str, login: tuple[str, str] | None = None) -> int:
    headers = {"Authorization": aiohttp.encode_basic_auth(*login)} if login else {}
    async with aiohttp.ClientSession() as session, session.get(f"{url}/v2/", ssl=False, headers=headers) as response:
        return response.status


@pytest.mark.parametrize("machine_settings", [MachineSettings(), MachineSettings(system=DEBIAN)])
async def test_a_machine_becomes_a_registry_from_the_image_of_the_package(lab: MgmtLab) -> None:
    """SEQ-111, SEQ-112, SEQ-113, SEQ-114."""
    node = await lab.boot("worker", 30)
    asked = command(lab, node, image_path=f"./{saved_image(lab)}", port_no="5002")
    await lab.run(asked)
    assert await status(f"http://{node.nic_address}:5002") == 200
    container = lab.machine(node).images.containers["private_registry"]
    assert (container.running, container.restart, container.ports) == (True, "always", {"5000/tcp": "5002"})
    assert container.binds == ["/private_registry:/var/lib/registry"]
    assert lab.machine(node).images.find("registry:2.8") == lab.machine(node).images.find(container.image)
    assert lab.calls(node, "docker pull") == 0
    assert [(n.task, n.node) for n in lab.news if n.state == "finished"] == [
        (task, "private-registry") for task in ("reach", "copy", "engine", "image", "serve")
    ]
    lab.news.clear()
    await lab.run(asked, message="m-2")
    assert {n.task for n in lab.news if n.state == "skipped"} == {"engine", "image", "serve"}
    assert lab.calls(node, "docker run") == lab.calls(node, "docker load") == 1


@pytest.mark.parametrize("machine_settings", [MachineSettings(system=FOCAL)])
async def test_without_an_image_it_is_pulled_and_a_heal_builds_the_registry_again(lab: MgmtLab) -> None:
    """SEQ-113, SEQ-114, SEQ-118, SEQ-119, SEQ-122 (the system of document 004), W-42."""
    node = await lab.boot("worker", 30)
    await lab.run(command(lab, node))
    assert await status(f"http://{node.nic_address}:5000") == 200
    assert "registry:2" in lab.machine(node).images.tags
    await lab.machines.destroy(node.server_id)
    healed = await lab.boot("worker", 30)
    lab.news.clear()
    await lab.run(command(lab, healed, phase="heal_end"), operation="op-2", message="m-2")
    assert await status(f"http://{healed.nic_address}:5000") == 200
    (served,) = [n for n in lab.news if (n.task, n.state) == ("serve", "finished")]
    assert served.message == "the images that were pushed before are lost with the earlier machine"


async def test_it_serves_https_with_a_login_and_nothing_of_it_is_readable(lab: MgmtLab, tmp_path: Path) -> None:
    """1.6, 8; SEQ-183."""
    pair = Authority(tmp_path).issue("r")
    (lab.packages.root / "Files/registries").mkdir(parents=True)
    (lab.packages.root / "Files/registries/tls.crt").write_bytes(pair.certificate.read_bytes())
    secured: dict[str, Any] = {
        "x_username": "pusher",
        "x_password": 'pass"\\word$(x)',
        "x_certificate_path": "Files/registries/tls.crt",
        "x_certificate_key": pair.key.read_text(),
    }
    node = await lab.boot("worker", 30)
    await lab.run(command(lab, node, **secured))
    url = f"https://{node.nic_address}:5000"
    assert await status(url, ("pusher", secured["x_password"])) == 200
    assert await status(url, ("pusher", "other")) == await status(url) == 401
    folder = lab.machine(node).root / "etc/kubevnfm-registry"
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {
        "htpasswd": 0o600,
        "tls.crt": 0o600,
        "tls.key": 0o600,
    }
    await lab.run(command(lab, node, **secured), message="m-2")
    assert lab.calls(node, "docker run") == 1
    assert secured["x_password"] not in (folder / "htpasswd").read_text() + await lab.log()

    await lab.run(command(lab, node, **{**secured, "x_password": "new"}), message="m-3")
    assert await status(url, ("pusher", "new")) == 200
    other = {**secured, "x_certificate_key": Authority(tmp_path, "other").issue("o").key.read_text()}
    with pytest.raises(Unprocessable, match="x_certificate_key: not the key of the first certificate"):
        await lab.run(command(lab, node, **other), message="m-4")


@pytest.mark.parametrize("task", ["engine", "image", "serve"])
async def test_an_installation_that_is_killed_goes_on_and_does_nothing_twice(lab: MgmtLab, task: str) -> None:
    """SEQ-180."""
    node = await lab.boot("worker", 30)
    asked = command(lab, node, image_path=saved_image(lab))
    await lab.run_until(asked, task, "private-registry")
    await lab.run(asked, fencing=2)
    assert await status(f"http://{node.nic_address}:5000") == 200
    assert list(lab.machine(node).images.containers) == ["private_registry"]
    assert lab.calls(node, "apt-get install") <= 2


async def test_a_port_that_is_taken_is_reported_and_a_retry_runs_the_registry(lab: MgmtLab) -> None:
    node = await lab.boot("worker", 30)
    taken = RegistryPort([node.nic_address], 5000)
    await taken.open()
    with pytest.raises(CommandUnsuccessful, match="docker run of the registry on port 5000") as caught:
        await lab.run(command(lab, node))
    assert "address already in use" in str(caught.value)
    taken.close()
    await lab.run(command(lab, node), message="m-2")
    assert await status(f"http://{node.nic_address}:5000") == 200


async def test_what_is_missing_is_named_before_the_first_login(lab: MgmtLab) -> None:
    """SEQ-115, SEQ-116, 2.9."""
    node = await lab.boot("worker", 30)
    with pytest.raises(InvalidInput, match=f"additionalParams/{REGISTRY_VNF}: missing: an object expected"):
        await lab.run(command(lab, node).model_copy(update={"parameters": {}}))
    with pytest.raises(Unprocessable, match=f"{REGISTRY_VNF}/image_path: the package has no file Files/other.tar"):
        await lab.run(command(lab, node, image_path="Files/other.tar"))
    assert lab.machine(node).calls["ssh connect"] == 0
