"""kubeadm and kubectl on the lab's machines: they make clusters, and refuse what the real ones refuse."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabClusters
from kubevnfm_lab.machines import MachineSettings, SshMachines
from kubevnfm_lab.ports import MachineSpec, Nic

PREPARE = """
set -e
sudo swapoff -a
sudo modprobe -a overlay br_netfilter
sudo sysctl -q -w net.ipv4.ip_forward=1
echo 'deb https://packages.example/core:/stable:/v1.31/deb/ /  # k8s' > $KUBEVNFM_SYSROOT/etc/apt/sources.list.d/kubernetes.list
sudo apt-get update -qq
sudo apt-get install -y -qq containerd conntrack kubelet kubeadm kubectl
"""
INIT = "sudo kubeadm init --pod-network-cidr 10.244.0.0/16"
KUBECTL = "sudo kubectl --kubeconfig /etc/kubernetes/admin.conf"

_numbers = count(1)


class Lab:
    """Machines and clusters with a client."""

    def __init__(self, machines: SshMachines, clusters: LabClusters, faults: FaultBook) -> None:
        self.machines, self.clusters, self.faults = machines, clusters, faults

    def address(self) -> str:
        # Each test process has a part of its own, so that tests can run side by side.
        number = next(_numbers)
        return f"127.{20 + os.getpid() % 60}.{os.getpid() // 60 % 250}.{number}"

    async def boot(self, name: str, **more: Any) -> MachineSpec:
        spec = MachineSpec(
            str(uuid.uuid4()), name, [Nic(IPv4Address(self.address()), "fa:16:3e:00:00:01", "net")], **more
        )
        await self.machines.boot(spec)
        return spec

    async def run(self, spec: MachineSpec, command: str, **more: Any) -> asyncssh.SSHCompletedProcess:
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
            return await connection.run(command, **more)

    async def must(self, spec: MachineSpec, command: str, **more: Any) -> str:
        ran = await self.run(spec, command, **more)
        assert ran.exit_status == 0, f"{ran.stdout!r}\n{ran.stderr!r}"
        return str(ran.stdout)

    async def prepared(self, *names: str) -> list[MachineSpec]:
        specs = [await self.boot(name) for name in names]
        await asyncio.gather(*(self.must(spec, PREPARE) for spec in specs))
        return specs

    async def join_command(self, master: MachineSpec) -> str:
        return "sudo " + (await self.must(master, "sudo kubeadm token create --print-join-command")).strip()

    async def nodes(self, master: MachineSpec) -> dict[str, str]:
        listed = json.loads(await self.must(master, f"{KUBECTL} get nodes -o json"))["items"]
        return {
            node["metadata"]["name"]: next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready")
            for node in listed
        }


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    faults, ledger = FaultBook(), CallLedger()
    clusters = LabClusters(faults=faults, ledger=ledger)
    await clusters.start()
    async with SshMachines.running(
        tmp_path / "lab", clusters=clusters, faults=faults, ledger=ledger, settings=MachineSettings()
    ) as machines:
        yield Lab(machines, clusters, faults)
    await clusters.close()


async def test_a_master_and_two_workers_become_a_cluster(lab: Lab) -> None:
    master, *workers = await lab.prepared("master1", "worker1", "worker2")
    printed = await lab.must(master, INIT)
    assert "Your Kubernetes control-plane has initialized successfully!" in printed
    join = await lab.join_command(master)
    await asyncio.gather(*(lab.must(worker, join) for worker in workers))
    await lab.must(master, f"{KUBECTL} wait --for=condition=Ready nodes --all --timeout=10s")
    assert await lab.nodes(master) == {"master1": "True", "worker1": "True", "worker2": "True"}
    assert await lab.must(master, f"{KUBECTL} -n kube-system get cm/kubeadm-config ds/kube-proxy -o name") == (
        "configmap/kubeadm-config\ndaemonset.apps/kube-proxy\n"
    )
    await lab.must(master, f"{KUBECTL} -n kube-system rollout status deployment/coredns --timeout 10s")
    assert lab.clusters.inventory()[0]["joins"] == {"master1": 1, "worker1": 1, "worker2": 1}


async def test_kubeadm_is_not_there_before_its_package(lab: Lab) -> None:
    node = await lab.boot("node")
    ran = await lab.run(node, "kubeadm version")
    assert (ran.exit_status, "command not found" in str(ran.stderr)) == (127, True)
    ran = await lab.run(node, "sudo apt-get install -y kubeadm")
    assert (ran.exit_status, ran.stderr) == (100, "E: Unable to locate package kubeadm\n")
    await lab.must(node, PREPARE)
    assert await lab.must(node, "kubeadm version -o short") == "v1.31.4\n"
    assert await lab.must(node, "kubelet --version") == "Kubernetes v1.31.4\n"


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        ("sudo swapon -a", "[ERROR Swap]"),
        ("sudo systemctl stop containerd", "[ERROR CRI]"),
        ("sudo sysctl -w net.ipv4.ip_forward=0", "[ERROR FileContent--proc-sys-net-ipv4-ip_forward]"),
        ("sudo apt-get remove -y kubelet", "[ERROR KubeletVersion]"),
        ("sudo apt-get remove -y conntrack", "[ERROR FileExisting-conntrack]"),
    ],
)
async def test_preflight_refuses_a_machine_that_is_not_prepared(lab: Lab, spoil: str, error: str) -> None:
    (master,) = await lab.prepared("master1")
    await lab.must(master, spoil)
    ran = await lab.run(master, INIT)
    assert ran.exit_status == 1
    assert error in str(ran.stderr)
    assert lab.clusters.inventory() == []


async def test_init_needs_the_bridge_module_and_root(lab: Lab) -> None:
    master = await lab.boot("master1")
    await lab.must(master, PREPARE.replace("br_netfilter", ""))
    ran = await lab.run(master, "kubeadm init")
    assert "[ERROR FileContent--proc-sys-net-bridge-bridge-nf-call-iptables]" in str(ran.stderr)
    assert "[ERROR IsPrivilegedUser]: user is not running as root" in str(ran.stderr)


async def test_a_second_init_is_refused_and_possible_after_a_reset(lab: Lab) -> None:
    (master,) = await lab.prepared("master1")
    await lab.must(master, INIT)
    ran = await lab.run(master, INIT)
    assert ran.exit_status == 1
    for name in (
        "FileAvailable--etc-kubernetes-manifests-kube-apiserver.yaml",
        "Port-6443",
        "DirAvailable--var-lib-etcd",
    ):
        assert f"[ERROR {name}]" in str(ran.stderr)
    await lab.must(master, "sudo kubeadm reset -f")
    assert lab.clusters.inventory() == []
    await lab.must(master, INIT)
    assert await lab.nodes(master) == {"master1": "True"}


async def test_a_join_checks_token_hash_and_reachability(lab: Lab) -> None:
    master, worker = await lab.prepared("master1", "worker1")
    await lab.must(master, INIT)
    join = await lab.join_command(master)
    endpoint, token, digest = join.split()[3], join.split()[5], join.split()[7]
    wrong = {
        join.replace(token, "abcdef.0123456789abcdef"): 'for token ID "abcdef"',
        join.replace(digest, f"sha256:{'0' * 64}"): "are pinned",
        join.replace(endpoint, f"{lab.address()}:6443"): "connection refused",
    }
    for command, error in wrong.items():
        ran = await lab.run(worker, command)
        assert ran.exit_status == 1, command
        assert error in str(ran.stderr)
        assert not Path(lab.machines.inventory()[1]["root"], "etc/kubernetes/kubelet.conf").exists()
    await lab.must(worker, join)
    ran = await lab.run(worker, join)
    assert "[ERROR FileAvailable--etc-kubernetes-kubelet.conf]" in str(ran.stderr)
    assert "[ERROR Port-10250]" in str(ran.stderr)


async def test_a_deleted_token_is_refused(lab: Lab) -> None:
    master, worker = await lab.prepared("master1", "worker1")
    await lab.must(master, INIT)
    join = await lab.join_command(master)
    await lab.must(master, f"sudo kubeadm token delete {join.split()[5].partition('.')[0]}")
    assert (await lab.run(worker, join)).exit_status == 1


async def test_a_ready_node_of_the_same_name_keeps_another_machine_out(lab: Lab) -> None:
    master, first, second = await lab.prepared("master1", "worker1", "worker1")
    await lab.must(master, INIT)
    join = await lab.join_command(master)
    await lab.must(first, join)
    ran = await lab.run(second, join)
    assert ran.exit_status == 1
    assert 'a Node with name "worker1" and status "Ready" already exists' in str(ran.stderr)
    await lab.machines.destroy(first.machine_id)
    await lab.must(second, join)
    assert await lab.nodes(master) == {"master1": "True", "worker1": "True"}


async def test_a_nodes_readiness_follows_its_machine(lab: Lab) -> None:
    master, worker = await lab.prepared("master1", "worker1")
    await lab.must(master, INIT)
    await lab.must(worker, await lab.join_command(master))
    await lab.machines.stop(worker.machine_id)
    assert await lab.nodes(master) == {"master1": "True", "worker1": "Unknown"}
    await lab.machines.start(worker.machine_id)
    await lab.must(master, f"{KUBECTL} wait --for=condition=Ready node/worker1 --timeout=10s")


async def test_a_cluster_ends_with_its_only_master(lab: Lab) -> None:
    (master,) = await lab.prepared("master1")
    await lab.must(master, INIT)
    assert len(lab.clusters.inventory()) == 1
    await lab.machines.destroy(master.machine_id)
    assert lab.clusters.inventory() == []


async def test_faults_and_simulated_time_reach_programs(lab: Lab) -> None:
    (master,) = await lab.prepared("master1")
    lab.faults.add(
        part="program", verb="kubeadm init", node="master1", effect="fail", status=9, message="fault", times=1
    )
    ran = await lab.run(master, INIT)
    assert (ran.exit_status, ran.stderr) == (9, "fault\n")
    lab.faults.add(part="program", verb="kubeadm init", effect="drop", times=1)
    assert (await lab.run(master, INIT)).exit_status == 137
    await lab.must(master, INIT)


async def test_kubectl_applies_labels_waits_and_deletes(lab: Lab) -> None:
    (master,) = await lab.prepared("master1")
    await lab.must(master, INIT)
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a.b": "1"}})
    assert await lab.must(master, f"{KUBECTL} apply -f -", input=manifest) == "configmap/c created\n"
    assert await lab.must(master, f"{KUBECTL} apply -f -", input=manifest) == "configmap/c unchanged\n"
    assert await lab.must(master, f"{KUBECTL} get cm c -o jsonpath='{{.data.a\\.b}}'") == "1"
    assert await lab.must(master, f"{KUBECTL} label node master1 zone=a") == "node/master1 labeled\n"
    ran = await lab.run(master, f"{KUBECTL} label node master1 zone=b")
    assert (ran.exit_status, "--overwrite is false" in str(ran.stderr)) == (1, True)
    assert "master1" in await lab.must(master, f"{KUBECTL} get nodes -l zone=a --no-headers")
    assert await lab.must(master, f"{KUBECTL} delete cm c") == 'configmap "c" deleted\n'
    ran = await lab.run(master, f"{KUBECTL} get cm c")
    assert (ran.exit_status, ran.stderr) == (1, 'Error from server (NotFound): configmaps "c" not found\n')
    assert await lab.must(master, f"{KUBECTL} get --raw /readyz") == "ok"


async def test_kubectl_without_a_server_says_so(lab: Lab) -> None:
    (master,) = await lab.prepared("master1")
    ran = await lab.run(master, "kubectl get nodes")
    assert ran.exit_status == 1
    assert "The connection to the server localhost:8080 was refused" in str(ran.stderr)
    ran = await lab.run(master, f"{KUBECTL} get nodes")
    assert ran.stderr == "error: stat /etc/kubernetes/admin.conf: no such file or directory\n"


async def test_a_virtual_address_keeps_serving_when_the_first_master_is_gone(lab: Lab) -> None:
    masters = await lab.prepared("master1", "master2", "master3")
    vip = lab.address()
    servers = "\n".join(f"  server m{i} {m.nics[0].address}:6443 check" for i, m in enumerate(masters))
    haproxy = f"frontend api\n  bind *:16443\n  default_backend masters\nbackend masters\n{servers}\n"
    for index, master in enumerate(masters):
        await lab.must(
            master,
            "sudo apt-get install -y -qq haproxy keepalived; mkdir -p $KUBEVNFM_SYSROOT/etc/haproxy $KUBEVNFM_SYSROOT/etc/keepalived",
        )
        await lab.must(
            master,
            "cat > $KUBEVNFM_SYSROOT/etc/haproxy/haproxy.cfg; haproxy -c -f /etc/haproxy/haproxy.cfg",
            input=haproxy,
        )
        keepalived = f"vrrp_instance V {{\n virtual_router_id 7\n priority {100 - index}\n virtual_ipaddress {{\n {vip}/24\n }}\n}}\n"
        await lab.must(master, "cat > $KUBEVNFM_SYSROOT/etc/keepalived/keepalived.conf", input=keepalived)
        await lab.must(master, "sudo systemctl restart haproxy keepalived")
    key = "a" * 64
    await lab.must(masters[0], f"{INIT} --control-plane-endpoint {vip}:16443 --upload-certs --certificate-key {key}")
    join = await lab.join_command(masters[0])
    ran = await lab.run(masters[1], f"{join} --control-plane --certificate-key {'b' * 64}")
    assert 'Secret "kubeadm-certs" was not found' in str(ran.stderr)
    for master in masters[1:]:
        await lab.must(master, f"{join} --control-plane --certificate-key {key}")
    assert await lab.nodes(masters[1]) == {"master1": "True", "master2": "True", "master3": "True"}
    await lab.machines.destroy(masters[0].machine_id)
    assert (await lab.nodes(masters[1]))["master1"] == "Unknown"
    listed = await lab.must(masters[1], f"{KUBECTL} -n kube-system exec etcd-master2 -- etcdctl member list -w json")
    dead = next(member["ID"] for member in json.loads(listed)["members"] if member["name"] == "master1")
    await lab.must(masters[1], f"{KUBECTL} -n kube-system exec etcd-master2 -- etcdctl member remove {dead:x}")
    assert (
        len(
            json.loads(
                await lab.must(masters[1], f"{KUBECTL} -n kube-system exec etcd-master3 -- etcdctl member list -w json")
            )["members"]
        )
        == 2
    )
    await lab.machines.stop(masters[1].machine_id)
    assert (await lab.run(masters[2], f"{KUBECTL} get nodes")).exit_status == 1  # one of two is no majority
    await lab.machines.start(masters[1].machine_id)
    assert (await lab.nodes(masters[2]))["master3"] == "True"
