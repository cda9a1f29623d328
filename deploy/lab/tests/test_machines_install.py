"""The sample package's own install script runs on the lab's machines, task by task, and a second time without
changes."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabClusters
from kubevnfm_lab.machines import SshMachines
from kubevnfm_lab.ports import MachineSpec, Nic

SAMPLE = Path(__file__).parents[2] / "samples" / "cluster"
SCRIPT = SAMPLE / "Scripts" / "install_k8s_cluster.sh"

_numbers = count(1)


class Lab:
    """Machines, and a manager's actions on them."""

    def __init__(self, machines: SshMachines, clusters: LabClusters, ledger: CallLedger) -> None:
        self.machines, self.clusters, self.ledger = machines, clusters, ledger

    async def boot(self, name: str) -> MachineSpec:
        address = IPv4Address(f"127.{80 + os.getpid() % 20}.{os.getpid() // 20 % 250}.{next(_numbers)}")
        spec = MachineSpec(str(uuid.uuid4()), name, [Nic(address, "fa:16:3e:00:00:01", "net")])
        await self.machines.boot(spec)
        return spec

    @asynccontextmanager
    async def login(self, spec: MachineSpec) -> AsyncIterator[asyncssh.SSHClientConnection]:
        async with asyncssh.connect(
            str(spec.nics[0].address),
            self.machines.ssh_port,
            username="ubuntu",
            password="ubuntu",
            known_hosts=None,
            config=None,
            agent_path=None,
            client_keys=None,
        ) as connection:
            yield connection

    async def task(self, spec: MachineSpec, name: str, **values: str) -> Mapping[str, Any]:
        params = "".join(f"{key}='{value}'\n" for key, value in values.items())
        command = f"sudo -n bash work/install.sh {name} --params work/params --result work/result.json"
        async with self.login(spec) as connection, connection.start_sftp_client() as sftp:
            await sftp.makedirs("work", exist_ok=True)
            # The sample's files are links to those of the driver.
            await sftp.put(str(SCRIPT), "work/install.sh", follow_symlinks=True)
            await sftp.put(str(SAMPLE / "Files/kubernetes/cni.yaml"), "work/cni.yaml", follow_symlinks=True)
            async with sftp.open("work/params", "w") as file:
                await file.write(params)
            ran = await connection.run(command)
            assert ran.exit_status == 0, f"{name}: {ran.stdout!r} {ran.stderr!r}"
            async with sftp.open("work/result.json") as file:
                written: Mapping[str, Any] = json.loads(await file.read())
        return written


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    faults, ledger = FaultBook(), CallLedger()
    clusters = LabClusters(faults=faults, ledger=ledger)
    await clusters.start()
    async with SshMachines.running(tmp_path / "lab", clusters=clusters, faults=faults, ledger=ledger) as machines:
        yield Lab(machines, clusters, ledger)
    await clusters.close()


async def test_the_install_script_makes_a_cluster_and_changes_nothing_the_second_time(lab: Lab) -> None:
    master, worker = await asyncio.gather(lab.boot("m"), lab.boot("w"))
    endpoint = f"{master.nics[0].address}:6443"
    hosts = f"{master.nics[0].address} master1\n{worker.nics[0].address} worker1"
    common = {"OWNER": "vnf-1", "HOSTS_ENTRIES": hosts, "TIMEOUT_S": "10"}
    prepared = await asyncio.gather(
        lab.task(master, "prepare", NODE_NAME="master1", **common),
        lab.task(worker, "prepare", NODE_NAME="worker1", **common),
    )
    assert [result["changed"] for result in prepared] == [True, True]
    assert prepared[0]["kubernetes_version"] == "v1.31.4"
    on_master = {
        **common,
        "NODE_NAME": "master1",
        "NODE_IP": str(master.nics[0].address),
        "ENDPOINT": endpoint,
        "CERT_SANS": "cluster.example",
        "POD_CIDR": "192.168.0.0/16",
        "SERVICE_CIDR": "10.96.0.0/12",
        "NODE_CIDR_MASK": "24",
    }
    init = await lab.task(master, "init", **on_master)
    token = (await lab.task(master, "token", TOKEN_TTL_S="600", **common))["token"]
    cluster = lab.clusters.find(str(master.nics[0].address), 6443)
    assert cluster is not None
    assert init["ca_cert"] == cluster.ca_pem.strip()
    join = {
        **common,
        "NODE_NAME": "worker1",
        "NODE_IP": str(worker.nics[0].address),
        "ENDPOINT": endpoint,
        "JOIN_TOKEN": token,
        "CA_CERT_HASH": cluster.ca_cert_hash(),
    }
    workloads = "kube-flannel daemonset/kube-flannel-ds"
    network = lab.task(master, "network", CNI_MANIFEST="cni.yaml", CNI_WORKLOADS=workloads, **common)
    await asyncio.gather(network, lab.task(worker, "join", **join))
    admin = await lab.task(master, "admin", CERTIFICATE_KEY="0" * 64, **on_master)
    assert admin["token_base64"]
    await lab.task(master, "label", LABELS="CIS-node=host-1|worker1", **common)
    verified = await lab.task(master, "verify", NODES="master1 worker1", **common)
    assert {node["metadata"]["name"] for node in verified["nodes"]["items"]} == {"master1", "worker1"}
    await lab.task(master, "revoke", TOKEN_ID=token[:6], **common)
    assert not cluster.bootstrap_token_is_valid(token)

    again = [
        await lab.task(master, "prepare", NODE_NAME="master1", **common),
        await lab.task(master, "init", **on_master),
        await lab.task(worker, "prepare", NODE_NAME="worker1", **common),
        await lab.task(worker, "join", **join),
    ]
    assert [result["changed"] for result in again] == [False] * 4
    counts = {(call["verb"], call["node"]): call["count"] for call in lab.ledger.calls() if call["part"] == "program"}
    assert counts["kubeadm init", "m"] == 1
    assert counts["kubeadm init phase", "m"] == 1
    assert counts["kubeadm join", "w"] == 1
    assert cluster.inventory()["joins"] == {"master1": 1, "worker1": 1}
