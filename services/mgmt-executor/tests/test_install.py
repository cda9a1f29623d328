"""Installing clusters on the lab's machines: real SSH, a real shell, the package's real script."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from kubevnfm_cluster.parameters import ROOT
from kubevnfm_cluster.rules import SharedAddress
from kubevnfm_kit.errors import InvalidInput, Unprocessable, VnfmError
from kubevnfm_lab.machines import MachineSettings
from kubevnfm_mgmt_executor.domain.certificates import public_key_hash
from kubevnfm_mgmt_executor.domain.errors import (
    CommandUnsuccessful,
    DriverUnknown,
    HostKeyChanged,
    LoginRefused,
    NodeUnreachable,
)
from kubevnfm_secrets import hide
from kubevnfm_store.query import Query
from servers.ssh_keys import encrypted_key
from worlds.kill_steps import killed_at
from worlds.mgmt_lab import MgmtLab

STEPS = (
    ("reach", "master10"),
    ("copy", "worker20"),
    ("prepare", "master10"),
    ("prepare", "worker20"),
    ("init", "master10"),
    ("network", "master10"),
    ("admin", "master10"),
    ("token", "master10"),
    ("join", "worker20"),
    ("label", "master10"),
    ("verify", "master10"),
    ("revoke", "master10"),
)


async def test_a_cluster_of_one_master_and_workers_comes_up(lab: MgmtLab) -> None:
    """SEQ-006, SEQ-008, SEQ-028, SEQ-032, SEQ-046, SEQ-048, SEQ-068.

    Nothing is left in the login's home, and the join token is revoked.
    """
    nodes = await lab.boot_cluster(workers=3)
    done = await lab.run(lab.command(nodes))

    assert done.cluster is not None
    assert done.cluster.server == f"https://{nodes[0].nic_address}:6443"
    assert done.cluster.ssl_ca_cert_hash == public_key_hash(done.cluster.ssl_ca_cert)
    assert done.cluster.kubernetes_version == "v1.31.4"
    assert done.cluster.certificate_key is not None
    assert len(done.cluster.certificate_key.reveal(lab.ring)) == 64
    names = ["master10", "worker20", "worker21", "worker22"]
    assert done.node_names == dict(zip([node.vnfc_id for node in nodes], names, strict=True))

    cluster = lab.clusters.find(nodes[0].nic_address, 6443)
    assert cluster is not None
    assert cluster.ca_pem.strip() == done.cluster.ssl_ca_cert.strip()
    listed = await lab.ask_api(done.cluster, "/api/v1/nodes")
    labels = {item["metadata"]["name"]: item["metadata"]["labels"].get("CIS-node") for item in listed["items"]}
    assert labels == {"master10": None, "worker20": "compute-0", "worker21": "compute-0", "worker22": "compute-1"}
    for node in nodes:
        assert not list((lab.machine(node).root / "home/ubuntu/.kubevnfm").glob("*"))
        config = (lab.machine(node).root / "etc/containerd/config.toml").read_text()
        assert 'sandbox_image = "registry.k8s.io/pause:3.10"' in config
    assert lab.calls(nodes[0], "kubeadm token") == 2  # one made for all workers, and deleted
    secrets = await lab.ask_api(done.cluster, "/api/v1/namespaces/kube-system/secrets")
    # kubeadm's own from the init lives ten minutes; ours is gone
    tokens = [s for s in secrets["items"] if s["type"] == "bootstrap.kubernetes.io/token"]
    assert len(tokens) <= 1


async def test_a_cluster_comes_up_by_key_through_a_bastion(lab: MgmtLab) -> None:
    """SEQ-194: machines of cloud images refuse passwords, and only one host reaches them."""
    phrase = "open sesame"
    key, public_key = encrypted_key(phrase)
    jump = await lab.boot("worker", 80)
    nodes = [await lab.boot("master", 10, public_key=public_key), await lab.boot("worker", 20, public_key=public_key)]
    login = {
        "password": None,
        "private_key": key,
        "private_key_passphrase": phrase,
        "ssh_port": lab.machines.ssh_port,
        "bastion": {
            "host": jump.ssh_address,
            "port": lab.machines.ssh_port,
            "username": "ubuntu",
            "password": "ubuntu",
        },
    }
    done = await lab.run(lab.command(nodes, changes={"master_node": login, "worker_node": login}))
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20"])
    assert lab.calls(jump, "ssh connect") == 2
    assert lab.calls(jump, "ssh exec") == 0
    pinned = [str(one.body["vnfcId"]) for one in await lab.store.find("host_keys", Query())]
    bastion = f"bastion {jump.ssh_address} {lab.machines.ssh_port}"
    assert sorted(pinned) == sorted([bastion, *(node.vnfc_id for node in nodes)])

    await lab.run(lab.command(nodes, phase="terminate_end"), message="m-2")
    assert not await lab.store.find("host_keys", Query())


async def test_a_refused_key_fails_the_task_and_names_the_user(lab: MgmtLab) -> None:
    key, other = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    nodes = [await lab.boot("master", 10, public_key=key.export_public_key().decode())]
    login = {"password": None, "private_key": other.export_private_key().decode()}
    with pytest.raises(LoginRefused, match="user ubuntu: the machine refuses the login"):
        await lab.run(lab.command(nodes, changes={"master_node": login}))
    with pytest.raises(LoginRefused, match="user ubuntu: the machine refuses the login"):
        await lab.run(lab.command(nodes), message="m-2")  # a password


async def test_the_settings_of_a_node_outlast_a_reboot(lab: MgmtLab) -> None:
    """SEQ-024, SEQ-193; machines without internet are installed from mirrors."""
    nodes = await lab.boot_cluster(workers=1)
    mirror = {"apt": "https://mirror.example/kubernetes/v1.31/deb/", "images": "https://mirror.example:5000"}
    proxy = {"http_proxy": "http://proxy.example:3128"}
    await lab.run(lab.command(nodes, changes={"proxy": proxy, "x_mirror": mirror}))
    root = lab.machine(nodes[1]).root
    hosts = (root / "etc/hosts").read_text()
    assert f"{nodes[0].nic_address} master10\n{nodes[1].nic_address} worker20\n# kubevnfm end" in hosts
    assert "127.0.0.1 localhost" in hosts
    assert (root / "etc/hostname").read_text().strip() == "worker20"
    assert "# kubevnfm: /swap.img" in (root / "etc/fstab").read_text()
    assert "br_netfilter" in (root / "etc/modules-load.d/kubevnfm.conf").read_text()
    settings = (root / "etc/systemd/system/containerd.service.d/kubevnfm-proxy.conf").read_text()
    assert 'Environment="HTTP_PROXY=http://proxy.example:3128"' in settings
    assert "192.168.0.0/16" in settings
    sources = (root / "etc/apt/sources.list.d/kubernetes.list").read_text()
    assert "https://mirror.example/kubernetes/v1.31/deb/ /" in sources
    registries = (root / "etc/containerd/certs.d/_default/hosts.toml").read_text()
    assert '[host."https://mirror.example:5000"]' in registries
    await lab.machines.stop(nodes[1].server_id)
    await lab.machines.start(nodes[1].server_id)
    assert lab.machine(nodes[1]).kernel.swap_devices == []
    assert lab.machine(nodes[1]).kernel.sysctl["net.ipv4.ip_forward"] == "1"


@pytest.mark.parametrize(("task", "node"), killed_at(STEPS, in_every_run=()))
async def test_a_phase_that_is_killed_in_a_task_continues_and_does_nothing_twice(
    lab: MgmtLab, task: str, node: str
) -> None:
    nodes = await lab.boot_cluster(workers=2)
    command = lab.command(nodes)
    await lab.run_until(command, task, node)
    finished = lab.finished()
    done = await lab.run(command, fencing=2)
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20", "worker21"])
    lab.assert_done_once(nodes, finished)


async def test_a_phase_that_is_killed_again_and_again_cleans_up_continues_and_does_nothing_twice(lab: MgmtLab) -> None:
    """When a task begins, and while a program runs."""
    nodes = await lab.boot_cluster(workers=2)
    command, fencing = lab.command(nodes), itertools.count(1)
    settled: dict[tuple[str, str], int] = {}

    def settle() -> None:
        """Note how often a program ran on a node where its task has finished."""
        for one in nodes:
            for name, ran in (
                ("prepare", "apt-get install"),
                ("init", "kubeadm init"),
                ("init", "kubeadm reset"),
                ("join", "kubeadm join"),
                ("join", "kubeadm reset"),
            ):
                if (name, lab.name(one)) in lab.finished():
                    settled.setdefault((lab.name(one), ran), lab.calls(one, ran))

    for task, program, node in (
        ("prepare", "apt-get install", nodes[1]),
        ("init", "kubeadm init", nodes[0]),
        ("join", "kubeadm join", nodes[1]),
    ):
        await lab.run_until(command, task, lab.name(node), fencing=next(fencing))
        settle()
        before = lab.calls(node, program)
        lab.faults.add(part="program", verb=program, node=lab.machine(node).name, effect="hang")
        work = asyncio.create_task(lab.handlers.run_phase(command, lab.context(fencing=next(fencing))))
        async with asyncio.timeout(300):
            await lab.until_called(node, program, times=before + 1)
        await lab.kill(work)
        lab.faults.clear()
        settle()
    done = await lab.run(command, fencing=next(fencing))
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20", "worker21"])
    assert {("worker20", "apt-get install"), ("master10", "kubeadm init"), ("master10", "kubeadm reset")} <= set(
        settled
    )
    assert settled == {
        (lab.name(one), ran): lab.calls(one, ran) for one in nodes for name, ran in settled if name == lab.name(one)
    }


async def test_a_retry_does_not_touch_machines_that_are_ready(lab: MgmtLab) -> None:
    """SEQ-182."""
    nodes = await lab.boot_cluster(workers=2)
    command = lab.command(nodes)
    lab.faults.add(
        part="program",
        verb="kubeadm join",
        node=lab.machine(nodes[2]).name,
        status=1,
        message="couldn't validate the identity of the API Server",
        times=1,
    )
    lab.faults.add(part="program", verb="kubeadm join", node=lab.machine(nodes[2]).name, effect="slow", seconds=1.0)
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(command)
    assert (caught.value.node, caught.value.task) == ("worker21", "join")
    lab.faults.clear()
    await lab.run(command)  # so that worker20 has joined whatever the order was
    before = {lab.name(node): dict(lab.machine(node).calls) for node in nodes}
    lab.news.clear()
    await lab.run(command, operation="op-2", message="m-2")
    for node in nodes:
        after = lab.machine(node).calls
        for program in ("apt-get install", "apt-get update", "kubeadm join", "kubeadm reset", "systemctl restart"):
            assert after[program] == before[lab.name(node)].get(program, 0), (lab.name(node), program)
    states = {(news.task, news.node): news.state for news in lab.news}
    for untouched in (("prepare", "master10"), ("init", "master10"), ("prepare", "worker21"), ("join", "worker21")):
        assert states[untouched] == "skipped"
    assert ("token", "master10") not in states  # no node had to join


async def test_a_failing_kubeadm_names_node_task_command_exit_code_and_last_lines(lab: MgmtLab) -> None:
    """SEQ-045."""
    nodes = await lab.boot_cluster(workers=1)
    lab.faults.add(part="program", verb="kubeadm init", status=3, message="[ERROR Mem]: the system RAM is too small")
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(lab.command(nodes))
    error = caught.value
    assert (error.node, error.task, error.code, error.title, error.status) == (
        "master10",
        "init",
        "mgmt-driver-failed",
        "Management driver failed",
        422,
    )
    for part in ("node master10", "task init", "kubeadm init", "exit code 3", "the system RAM is too small"):
        assert part in str(error)
    assert "the system RAM is too small" in await lab.log(node="master10")
    (record,) = [s.body for s in await lab.store.find("tasks", Query()) if s.body["task"] == "init"]
    assert record["state"] == "failed"
    assert "exit code 3" in record["error"]


async def test_tasks_of_other_nodes_are_reported_as_cancelled_after_a_failure(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    lab.faults.add(part="program", verb="apt-get install", node=lab.machine(nodes[1]).name, effect="hang")
    held = lab.faults.add(part="program", verb="kubeadm init", effect="hang")
    lab.faults.add(part="program", verb="kubeadm init", status=3, message="[ERROR Mem]: the system RAM is too small")
    work = asyncio.create_task(lab.handlers.run_phase(lab.command(nodes), lab.context()))
    async with asyncio.timeout(300):
        await lab.begun("init", "master10")
        await lab.running(nodes[1], "apt-get install")
        lab.faults.remove(held.fault_id)
        with pytest.raises(CommandUnsuccessful):
            await work
    last = {(news.task, news.node): news for news in lab.news}
    assert last["init", "master10"].state == "failed"
    assert last["prepare", "worker20"].state == "cancelled"
    assert last["prepare", "worker20"].duration_s is not None
    assert "started" not in {news.state for news in last.values()}


async def test_a_reason_that_the_script_gives_is_reported_once(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=0)
    lab.faults.add(part="program", verb="kubeadm init", status=1, message="stop here")
    with pytest.raises(CommandUnsuccessful):
        await lab.run(lab.command(nodes))
    (lab.machine(nodes[0]).root / "etc/os-release").write_text('ID=debian\nVERSION_ID="11"\n')
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(lab.command(nodes), operation="op-2", message="m-2")
    reason = "node master10: task prepare: operating system debian 11: Ubuntu 22.04 or 24.04, or Debian 12 expected"
    assert str(caught.value) == reason


async def test_a_wrong_password_ends_the_phase_at_once_and_names_the_node(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    changes = {"worker_node": {"password": "wrong-password"}, "x_timeouts": {"ssh_ready": 600}}
    async with asyncio.timeout(300):
        with pytest.raises(LoginRefused) as caught:
            await lab.run(lab.command(nodes, changes=changes))
    assert caught.value.node == "worker20"
    assert "wrong-password" not in str(caught.value)


async def test_a_machine_that_never_answers_is_named_after_the_time_limit(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    await lab.machines.stop(nodes[1].server_id)
    with pytest.raises(NodeUnreachable, match="node worker20: no SSH session with"):
        await lab.run(lab.command(nodes, changes={"x_timeouts": {"ssh_ready": 1}}))


async def test_the_phase_waits_for_a_machine_that_boots_slowly_and_for_a_lock_of_dpkg(
    lab: MgmtLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubevnfm_mgmt_executor.adapters.ssh.BOOTS_S", 0.0)
    nodes = await lab.boot_cluster(workers=1)
    await lab.machines.stop(nodes[1].server_id)
    work = asyncio.create_task(lab.run(lab.command(nodes)))
    async with asyncio.timeout(300):
        await lab.begun("prepare", "master10")
        with (lab.machine(nodes[0]).root / "var/lib/dpkg/lock-frontend").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            held = "Could not get lock /var/lib/dpkg/lock-frontend: it is held by process "
            await lab.until(lambda: any(n.message.startswith(f"{held}{os.getpid()} (") for n in lab.news))
        await lab.begun("admin", "master10")  # the master does not wait for the worker
        await lab.until(lambda: any((n.task, n.node, n.state) == ("reach", "worker20", "progressed") for n in lab.news))
    (waits,) = [n.message for n in lab.news if (n.task, n.state) == ("reach", "progressed")]
    assert waits.startswith("no SSH session with ")
    # A connection that breaks is opened again, and its task continues.
    lab.faults.add(part="ssh", verb="exec", node=lab.machine(nodes[1]).name, effect="drop", times=1, after=2)
    await lab.machines.start(nodes[1].server_id)
    assert (await work).cluster is not None
    assert lab.calls(nodes[1], "kubeadm join") == 1
    assert lab.calls(nodes[1], "ssh connect") == 2


async def test_a_changed_host_key_stops_the_phase_before_anything_is_sent(lab: MgmtLab) -> None:
    """SEQ-184."""
    nodes = await lab.boot_cluster(workers=1)
    command = lab.command(nodes)
    await lab.run_until(command, "prepare", "worker20")
    machine = lab.machine(nodes[1])
    await lab.machines.stop(nodes[1].server_id)
    machine.host_key = asyncssh.generate_private_key("ssh-ed25519")
    await lab.machines.start(nodes[1].server_id)
    ran = machine.calls["ssh exec"]
    with pytest.raises(HostKeyChanged) as caught:
        await lab.run(command, fencing=2)
    assert caught.value.node == "worker20"
    assert not caught.value.retryable
    assert machine.calls["ssh exec"] == ran


async def test_a_rebuilt_machine_may_have_another_host_key(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    done = await lab.run(lab.command(nodes))
    assert done.cluster is not None
    await lab.machines.destroy(nodes[1].server_id)
    rebuilt = await lab.boot("worker", 20)
    assert rebuilt.vnfc_id != nodes[1].vnfc_id
    await lab.ask_api(done.cluster, "/api/v1/nodes/worker20", method="DELETE")
    await lab.run(lab.command([nodes[0], rebuilt]), operation="op-2", message="m-2")


async def test_secrets_are_in_no_log_journal_error_or_news(lab: MgmtLab) -> None:
    """SEQ-183."""
    nodes = await lab.boot_cluster(workers=1)
    proxy = "http://user:proxy-pass-word@proxy.example:3128"
    # apt prints the proxy that it cannot resolve, as the real one does
    lab.faults.add(
        part="program", verb="apt-get update", status=100, message=f"Could not resolve '{proxy}' (ubuntu)", times=1
    )
    command = lab.command(nodes, changes={"proxy": {"http_proxy": proxy}, "x_max_parallel_nodes": 1})
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(command)
    done = await lab.run(command)
    assert done.cluster is not None
    secrets = [
        "proxy-pass-word",
        done.cluster.bearer_token.reveal(lab.ring),
        done.cluster.certificate_key.reveal(lab.ring) if done.cluster.certificate_key else "",
    ]
    stored = [
        str(caught.value),
        await lab.log(),
        json.dumps([dict(stored.body) for stored in await lab.store.find("tasks", Query())]),
        "".join(news.model_dump_json() for news in lab.news),
    ]
    for place, text in enumerate(stored):
        for secret in secrets:
            assert secret not in text, (place, secret)
        assert not re.search(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b", text), place  # join tokens
    assert "Could not resolve '***'" in stored[0]


NASTY = "a'b\"c;$(touch /tmp/kubevnfm-injected)`touch /tmp/kubevnfm-injected`&&|\\"


@pytest.mark.parametrize(
    "machine_settings", [MachineSettings(password_by_user={"ubuntu": NASTY}, sudo_needs_password=True)]
)
async def test_a_password_full_of_shell_characters_is_passed_unchanged(lab: MgmtLab) -> None:
    """SEQ-185: to SSH, and to sudo on its standard input."""
    marker = Path("/tmp/kubevnfm-injected")
    nodes = await lab.boot_cluster(workers=1)
    changes = {role: {"password": NASTY} for role in ("master_node", "worker_node")}
    assert (await lab.run(lab.command(nodes, changes=changes))).cluster is not None
    assert not marker.exists()
    assert "touch" not in await lab.log()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"script_path": "../install.sh"}, "script_path"),
        ({"master_node": {"username": "ubuntu; reboot"}}, "master_node/username"),
        ({"worker_node": {"password": "x\ny"}}, "worker_node/password"),
        ({"proxy": {"http_proxy": 'http://x"; rm -rf /'}}, "proxy/http_proxy"),
        ({"proxy": {"no_proxy": "a,$(reboot)"}}, "proxy/no_proxy"),
        ({"x_mirror": {"apt": "https://x y/"}}, "x_mirror/apt"),
        ({"x_cri": "docker"}, "x_cri"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_harmful_parameters_are_refused_with_their_field(
    lab: MgmtLab, changes: Mapping[str, Any], field: str
) -> None:
    """SEQ-185: only a command of version 0.1.0 can bring all of them: the model of later ones has forms of its own."""
    nodes = await lab.boot_cluster(workers=1)
    command = lab.command(nodes).model_copy(update={"cluster": None, "parameters": hide(lab.parameters(changes))})
    with pytest.raises(InvalidInput) as caught:
        await lab.run(command)
    assert caught.value.field == f"{ROOT}/{field}"
    assert "reboot" not in str(caught.value)
    assert all(lab.machine(node).calls["ssh connect"] == 0 for node in nodes)


async def test_two_machines_with_one_address_are_refused(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    twin = nodes[1].model_copy(update={"vnfc_id": "twin"})
    with pytest.raises(SharedAddress, match=r"is the address of worker vnfc-.* and worker twin"):
        await lab.run(lab.command([*nodes, twin]))


async def test_a_pod_network_that_overlaps_that_of_the_nodes_is_refused(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    over = {"127.0.0.0/8": f"the network of the machine at {nodes[0].nic_address}", "10.0.0.0/8": "cluster_cidr"}
    for cidr, what in over.items():
        with pytest.raises(Unprocessable, match=f"{cidr} overlaps .*{what}"):
            await lab.run(lab.command(nodes, changes={"master_node": {"pod_cidr": cidr}}))


async def test_files_that_the_package_lacks_are_refused_by_name(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=0)
    for field in ("script_path", "x_cni"):
        with pytest.raises(Unprocessable, match=rf"{field}: the package has no file Files/other"):
            await lab.run(lab.command(nodes, changes={field: "Files/other"}))
    assert lab.machine(nodes[0]).calls["ssh connect"] == 0


async def test_a_script_of_another_interface_is_not_run_and_the_drivers_own_builds_the_cluster(lab: MgmtLab) -> None:
    """SEQ-005, 045, A10 of Tacker's packages: they bring a script of other arguments, and no manifest of a pod network."""
    nodes = await lab.boot_cluster(workers=1)
    package = lab.packages.root
    (package / "Scripts/install_k8s_cluster.sh").write_text("#!/bin/bash\necho the script of the package\n")
    (package / "Files/kubernetes/cni.yaml").unlink()
    done = await lab.run(lab.command(nodes))
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20"])
    assert await lab.ask_api(done.cluster, "/apis/apps/v1/namespaces/kube-flannel/daemonsets/kube-flannel-ds")
    assert "the script of the package" not in await lab.log()
    (remark,) = [news for news in lab.news if news.task == "files"]
    assert (remark.node, remark.state) == ("", "finished")
    assert "Scripts/install_k8s_cluster.sh of the package has another interface and is not run" in remark.message
    assert "the package has no Files/kubernetes/cni.yaml" in remark.message


async def test_the_administrator_of_a_cluster_that_a_script_has_built_is_read(lab: MgmtLab) -> None:
    """6.7.6: with the driver's own script, whatever the package's is. SEQ-005: files of the package are used without a remark."""
    nodes = await lab.boot_cluster(workers=0)
    script = lab.packages.root / "Scripts/install_k8s_cluster.sh"
    script.write_text(script.read_text().replace("task=\n", "task=\necho the first script of the package\n", 1))
    built = await lab.run(lab.command(nodes))
    assert "the first script of the package" in await lab.log()
    assert not [news for news in lab.news if news.task == "files"]
    script.write_text("#!/bin/bash\necho the script of the package\n")
    present = [node.model_copy(update={"is_target": False}) for node in nodes]
    read = await lab.run(lab.command(present).model_copy(update={"phase": "read_admin"}), operation="read")
    assert built.cluster is not None
    assert read.cluster is not None
    assert (read.cluster.server, read.cluster.ssl_ca_cert) == (built.cluster.server, built.cluster.ssl_ca_cert)
    assert (read.cluster.kubernetes_version, read.node_names) == (built.cluster.kubernetes_version, {})
    assert await lab.ask_api(read.cluster, "/version")
    assert "script of the package" not in await lab.log("read")


async def test_an_unknown_driver_is_named(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=0)
    with pytest.raises(DriverUnknown, match="'mgmt-drivers-magic'") as caught:
        await lab.run(lab.command(nodes).model_copy(update={"driver": "mgmt-drivers-magic"}))
    assert caught.value.status == 422


async def test_a_worker_that_lost_the_command_cannot_write_the_journal_of_its_successor(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=0)
    await lab.run_until(lab.command(nodes), "prepare", "master10", fencing=2)
    with pytest.raises(VnfmError) as caught:
        await lab.run(lab.command(nodes), fencing=1)
    assert caught.value.code == "claim-lost"


async def test_ten_workers_join_side_by_side(lab: MgmtLab) -> None:
    """SEQ-181."""
    nodes = await lab.boot_cluster(workers=10)
    lab.faults.add(part="program", verb="kubeadm join", effect="hang")
    work = asyncio.create_task(lab.run(lab.command(nodes)))
    async with asyncio.timeout(300):
        for node in nodes[1:]:
            await lab.running(node, "kubeadm join")
    lab.faults.clear()
    await work


async def test_no_more_workers_are_installed_at_a_time_than_the_request_allows(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=3)
    for node in nodes:
        lab.faults.add(part="program", verb="apt-get update", node=lab.machine(node).name, effect="hang")
    work = asyncio.create_task(lab.run(lab.command(nodes, changes={"x_max_parallel_nodes": 2})))
    async with asyncio.timeout(300):
        await lab.until(lambda: sum(news.task == "copy" and news.state == "finished" for news in lab.news) == 4)
        await lab.running(nodes[0], "apt-get update")  # the master waits for no worker
    begun = [n.node for n in lab.news if (n.task, n.state) == ("prepare", "started")]
    assert sorted(begun)[0] == "master10"
    assert len(begun) == 3
    lab.faults.clear()
    await work


async def test_terminate_end_forgets_the_machines(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=0)
    await lab.run(lab.command(nodes, phase="instantiate_start"))
    assert lab.machine(nodes[0]).calls["ssh connect"] == 0
    await lab.run(lab.command(nodes))
    assert await lab.store.find("host_keys", Query())
    await lab.run(lab.command(nodes, phase="terminate_end"), operation="op-2", message="m-2")
    assert not await lab.store.find("host_keys", Query())
    assert not await lab.store.find("tasks", Query())
    assert "master10 init" in await lab.log()  # what happened stays readable until the instance is deleted
