"""The stand-in programs keep state and fail as the real ones do."""

from __future__ import annotations

import asyncio
import io
import json
import os
import tarfile
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.machines import MachineSettings, SshMachines
from kubevnfm_lab.machines.jsonpath import BadTemplate, render
from kubevnfm_lab.ports import Cluster, MachineSpec, Nic

_numbers = count(1)


class NoClusters:
    """These tests start none."""

    async def create(self, **_: Any) -> Cluster:
        raise NotImplementedError

    def find(self, address: str, port: int) -> Cluster | None:
        return None

    async def close_at(self, address: str) -> None:
        return None

    def inventory(self) -> Sequence[Mapping[str, Any]]:
        return []


class Lab:
    """Machines and a client."""

    def __init__(self, machines: SshMachines, faults: FaultBook) -> None:
        self.machines, self.faults = machines, faults

    async def boot(self, *volumes: str, name: str = "node") -> MachineSpec:
        # Each test process has a part of its own, so that tests can run side by side.
        address = IPv4Address(f"127.{210 + os.getpid() % 40}.{os.getpid() // 40 % 250}.{next(_numbers)}")
        spec = MachineSpec(str(uuid.uuid4()), name, [Nic(address, "fa:16:3e:00:00:01", "net")], volumes=volumes)
        await self.machines.boot(spec)
        return spec

    @asynccontextmanager
    async def login(self, spec: MachineSpec, user: str = "ubuntu") -> AsyncIterator[asyncssh.SSHClientConnection]:
        async with asyncssh.connect(
            str(spec.nics[0].address),
            self.machines.ssh_port,
            username=user,
            password=user,
            known_hosts=None,
            config=None,
            agent_path=None,
            client_keys=None,
        ) as connection:
            yield connection

    async def run(self, spec: MachineSpec, command: str, **more: Any) -> tuple[int | None, str, str]:
        async with self.login(spec) as connection:
            ran = await connection.run(command, **more)
        return ran.exit_status, str(ran.stdout), str(ran.stderr)


@pytest.fixture
def settings() -> MachineSettings:
    return MachineSettings()


@pytest.fixture
async def lab(tmp_path: Path, settings: MachineSettings) -> AsyncIterator[Lab]:
    faults = FaultBook()
    async with SshMachines.running(
        tmp_path / "lab", clusters=NoClusters(), faults=faults, ledger=CallLedger(), settings=settings
    ) as machines:
        yield Lab(machines, faults)


async def test_packages_are_installed_held_and_removed(lab: Lab) -> None:
    node = await lab.boot()
    code, _, errors = await lab.run(node, "apt-get install -y haproxy")
    assert (code, errors.splitlines()[1]) == (
        100,
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",
    )
    assert (await lab.run(node, "sudo apt-get install -y haproxy && sudo apt-mark hold haproxy"))[0] == 0
    query = "dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' haproxy keepalived"
    assert await lab.run(node, query) == (
        1,
        "haproxy 2.4.24-0ubuntu0.22.04.2 installed\n",
        "dpkg-query: no packages found matching keepalived\n",
    )
    assert (await lab.run(node, "apt-mark showhold"))[1] == "haproxy\n"
    assert (await lab.run(node, "sudo apt-get remove -y haproxy; haproxy -v"))[0] == 127
    assert (await lab.run(node, "sudo apt-get install -y haproxy=9.9"))[
        2
    ] == "E: Version '9.9' for 'haproxy' was not found\n"


async def test_services_start_fail_and_survive_a_reboot_when_enabled(lab: Lab) -> None:
    node = await lab.boot()
    assert await lab.run(node, "sudo systemctl start containerd") == (
        5,
        "",
        "Failed to start containerd.service: Unit containerd.service not found.\n",
    )
    assert (await lab.run(node, "sudo apt-get install -y containerd && systemctl is-active containerd"))[0] == 0
    assert (await lab.run(node, "systemctl stop containerd"))[0] == 4  # not root
    code, _, errors = await lab.run(
        node, "mkdir -p $KUBEVNFM_SYSROOT/etc/containerd; echo '= bad' > $KUBEVNFM_SYSROOT/etc/containerd/config.toml;"
        "sudo systemctl restart containerd"
    )  # fmt: skip
    assert (code, "control process exited with error code" in errors) == (1, True)
    assert (await lab.run(node, "systemctl is-active containerd"))[:2] == (3, "failed\n")
    assert "failed to load TOML" in (await lab.run(node, "journalctl -u containerd"))[1]
    await lab.run(node, "rm $KUBEVNFM_SYSROOT/etc/containerd/config.toml; sudo modprobe overlay; sudo swapoff -a")
    await lab.machines.stop(node.machine_id)
    await lab.machines.start(node.machine_id)
    assert (await lab.run(node, "systemctl is-active containerd"))[1] == "active\n"
    assert (await lab.run(node, "lsmod | grep -c overlay"))[1] == "0\n"
    assert (await lab.run(node, "swapon --show --noheadings"))[1] == "/swap.img file   2G   0B   -2\n"


async def test_a_volume_is_formatted_mounted_and_keeps_its_data_on_another_machine(lab: Lab) -> None:
    volume = str(uuid.uuid4())
    node = await lab.boot(volume)
    device = f"/dev/disk/by-id/virtio-{volume[:20]}"
    assert (await lab.run(node, f"sudo blkid {device}"))[0] == 2
    mount = f"sudo mkdir -p $KUBEVNFM_SYSROOT/volume && sudo mount {device} /volume"
    code, _, errors = await lab.run(node, mount)
    assert (code, "wrong fs type" in errors) == (32, True)
    assert (await lab.run(node, f"sudo mkfs.ext4 -F {device}; {mount}"))[0] == 0
    assert (await lab.run(node, "findmnt -n -o SOURCE,FSTYPE /volume"))[1] == "/dev/vdb ext4\n"
    assert "is mounted; will not make a filesystem here!" in (await lab.run(node, f"sudo mkfs -t ext4 {device}"))[2]
    await lab.run(node, "echo data > $KUBEVNFM_SYSROOT/volume/file")
    await lab.machines.destroy(node.machine_id)
    other = await lab.boot(volume)
    uuid_line = (await lab.run(other, f"sudo blkid -s UUID -o value {device}"))[1].strip()
    fstab = f"echo UUID={uuid_line} /volume ext4 defaults,nofail 0 2 >> $KUBEVNFM_SYSROOT/etc/fstab"
    assert (
        await lab.run(
            other, f"mkdir $KUBEVNFM_SYSROOT/volume; {fstab}; sudo mount -a; cat $KUBEVNFM_SYSROOT/volume/file"
        )
    )[1] == "data\n"
    assert (await lab.run(other, "sudo umount /volume; ls $KUBEVNFM_SYSROOT/volume"))[1] == ""
    assert lab.machines.volumes()[0]["formatted"] == 1


async def test_directories_are_exported(lab: Lab) -> None:
    node = await lab.boot()
    line = "echo '/export 10.0.0.0/24(rw,sync)' | sudo tee $KUBEVNFM_SYSROOT/etc/exports"
    code, _, errors = await lab.run(node, f"sudo apt-get install -y nfs-kernel-server; {line}; sudo exportfs -ra")
    assert (code, errors) == (1, "exportfs: Failed to stat /export: No such file or directory\n")
    assert (await lab.run(node, "mkdir $KUBEVNFM_SYSROOT/export; sudo exportfs -ra"))[0] == 0
    assert "/export  10.0.0.0/24(" in (await lab.run(node, "sudo exportfs -s"))[1]
    assert (await lab.run(node, "showmount -e localhost"))[1] == "Export list for localhost:\n/export 10.0.0.0/24\n"


@pytest.mark.parametrize("settings", [MachineSettings(sudo_needs_password=True)])
async def test_sudo_asks_for_the_password_where_the_image_wants_it(lab: Lab) -> None:
    node = await lab.boot()
    assert await lab.run(node, "sudo -n whoami") == (1, "", "sudo: a password is required\n")
    assert await lab.run(node, "sudo -S -p '' sh -c 'whoami; cat'", input="ubuntu\nrest\n") == (0, "root\nrest\n", "")
    code, _, errors = await lab.run(node, "sudo -S -p '' whoami", input="wrong\n")
    assert (code, "Sorry, try again." in errors, "1 incorrect password attempt" in errors) == (1, True, True)


async def test_sudo_changes_the_user_and_forgets_the_callers_environment(lab: Lab) -> None:
    node = await lab.boot()
    printed = (
        await lab.run(
            node,
            "export SECRET=x; sudo env | grep -c SECRET; sudo -E sh -c \"echo $SECRET\"; sudo A=b sh -c 'echo $A ${HOME##*/} $(id -u)'",
        )
    )[1]
    assert printed == "0\nx\nb root 0\n"
    assert await lab.run(node, "sudo nothing-like-this") == (1, "", "sudo: nothing-like-this: command not found\n")


@pytest.mark.parametrize("settings", [MachineSettings(content_by_url={"https://mirror.example/*": b"\0binary\n"})])
async def test_downloads_come_from_the_lab_or_cannot_be_resolved(lab: Lab) -> None:
    node = await lab.boot()
    assert await lab.run(node, "curl -fsSL https://mirror.example/a.tgz | od -c | head -1") == (
        0,
        "0000000  \\0   b   i   n   a   r   y  \\n\n",
        "",
    )
    assert await lab.run(node, "curl -fsSL https://elsewhere.example/a") == (
        6,
        "",
        "curl: (6) Could not resolve host: elsewhere.example\n",
    )
    assert (await lab.run(node, "wget -q -O out https://mirror.example/b && stat -c %s out"))[1] == "8\n"


async def test_a_registry_container_answers_on_its_port(lab: Lab) -> None:
    node = await lab.boot()
    assert (await lab.run(node, "sudo apt-get install -y docker-ce && sudo docker info --format '{{.ServerVersion}}'"))[
        1
    ].endswith("27.5.1\n")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        content = json.dumps([{"RepoTags": ["registry:2"]}]).encode()
        member = tarfile.TarInfo("manifest.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    async with (
        lab.login(node, "root") as connection,
        connection.start_sftp_client() as sftp,
        sftp.open("/home/ubuntu/registry.tar", "wb") as file,
    ):
        await file.write(archive.getvalue())
    run = "sudo docker run -d -p 5000:5000 --restart=always --name private_registry registry:2"
    assert (await lab.run(node, f"sudo docker load -i registry.tar && {run}"))[0] == 0
    assert (await lab.run(node, run))[0] == 125
    assert (await lab.run(node, "sudo docker inspect -f '{{.State.Status}}' private_registry"))[1] == "running\n"
    for _ in range(2):
        reader, writer = await asyncio.open_connection(str(node.nics[0].address), 5000)
        writer.write(b"GET /v2/ HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        await lab.machines.stop(node.machine_id)
        with pytest.raises(OSError):
            await asyncio.open_connection(str(node.nics[0].address), 5000)
        await lab.machines.start(node.machine_id)


async def test_cloud_init_reports_unreadable_user_data(lab: Lab) -> None:
    node = await lab.boot()
    assert json.loads((await lab.run(node, "cloud-init status --wait --format json"))[1])["status"] == "done"
    spec = MachineSpec("bad", "bad", [Nic(IPv4Address("127.0.77.1"), "m", "n")], user_data="#cloud-config\na: [\n")
    await lab.machines.boot(spec)
    code, printed, _ = await lab.run(spec, "cloud-init status --format json")
    assert (code, json.loads(printed)["status"]) == (1, "error")


async def test_a_program_that_is_killed_ends_in_the_lab_too(lab: Lab) -> None:
    node = await lab.boot()
    lab.faults.add(part="program", verb="modprobe *", effect="hang")
    code, printed, _ = await lab.run(node, "timeout 0.2 sudo modprobe overlay; echo $?; lsmod | grep -c overlay")
    assert (code, printed) == (1, "124\n0\n")


async def test_a_floating_address_leads_to_the_machine(lab: Lab) -> None:
    node = await lab.boot()
    floating = str(node.nics[0].address + 100)
    await lab.machines.add_floating(floating, str(node.nics[0].address))
    by_floating = MachineSpec("", "", [Nic(IPv4Address(floating), "", "")])
    assert (await lab.run(by_floating, "hostname"))[1] == "node\n"
    await lab.machines.remove_floating(floating)
    with pytest.raises(OSError):
        await lab.run(by_floating, "hostname")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{.items[*].metadata.name}", "a b"),
        ("{.items[0].metadata.name}{'\\n'}", "a\n"),
        (
            '{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}',
            "a=True\nb=False\n",
        ),
        ("{.items[1].metadata.labels['k8s.io/x']}", "1"),
        ("{.items[1].metadata.labels.k8s\\.io/x}", "1"),
        ("{.missing}", ""),
        ("{.items[-1:].metadata}", '{"name":"b","labels":{"k8s.io/x":"1"}}'),
    ],
)
def test_jsonpath_templates(template: str, expected: str) -> None:
    document = {
        "items": [
            {"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            {
                "metadata": {"name": "b", "labels": {"k8s.io/x": "1"}},
                "status": {"conditions": [{"type": "Ready", "status": "False"}]},
            },
        ]
    }
    assert render(template, document) == expected


def test_a_jsonpath_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(BadTemplate, match="unrecognized character"):
        render("{.items[?}", {"items": []})


async def test_a_machine_has_the_host_name_that_nova_makes_of_its_server(lab: Lab) -> None:
    """Linux has 64 characters for it; kubeadm takes it as the name of a Node, which is a label of DNS."""
    node = await lab.boot(name=f"-VNF_of.a (test) {'x' * 80}")
    # Nova cuts before it removes characters.
    assert (await lab.run(node, "hostname"))[1] == f"vnf-of-a-test-{'x' * 46}\n"
