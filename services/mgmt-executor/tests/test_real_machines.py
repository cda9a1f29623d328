"""The lab's machines behave as real ones did: images of the sandbox, dpkg's states, Debian, slow starts, clear errors.

The real ones had systemd, dpkg and kubeadm 1.34.10.
"""

from __future__ import annotations

import asyncio
import time

import pytest
from kubevnfm_lab.machines import MachineSettings
from kubevnfm_lab.machines.systems import DEBIAN
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful
from worlds.mgmt_lab import MgmtLab


@pytest.mark.parametrize(("version", "pause"), [("1.29.12", "3.9"), ("v1.30.8", "3.9"), ("1.34.10", "3.10.1")])
async def test_the_version_is_the_requested_one_and_the_sandbox_has_the_image_that_kubeadm_names(
    lab: MgmtLab, version: str, pause: str
) -> None:
    nodes = await lab.boot_cluster(workers=1)
    changes = {"x_kubernetes_version": version, "x_mirror": {"images": "https://mirror.example:5000"}}
    done = await lab.run(lab.command(nodes, changes=changes))
    assert done.cluster is not None
    assert done.cluster.kubernetes_version == f"v{version.removeprefix('v')}"
    await lab.assert_ready(done.cluster, ["master10", "worker20"])
    for node in nodes:
        config = (lab.machine(node).root / "etc/containerd/config.toml").read_text()
        assert f'sandbox_image = "registry.k8s.io/pause:{pause}"' in config


@pytest.mark.parametrize("machine_settings", [MachineSettings(system=DEBIAN)])
async def test_debian_12_becomes_a_cluster_also_with_a_configuration_of_an_earlier_try(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    for node in nodes:
        lab.machine(node).lay_out()
    earlier = lab.machine(nodes[1]).root / "etc/containerd/config.toml"
    earlier.parent.mkdir(parents=True, exist_ok=True)
    earlier.write_text("version = 2\n")
    done = await lab.run(lab.command(nodes))
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20"])
    assert "SystemdCgroup = true" in earlier.read_text()
    assert not lab.machine(nodes[1]).packages.unfinished


@pytest.mark.parametrize("machine_settings", [MachineSettings(system=DEBIAN)])
async def test_a_retry_repairs_packages_that_an_installation_left_half_done(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=0)
    machine = lab.machine(nodes[0])
    lab.faults.add(part="program", verb="apt-get update", status=100, message="stop here", times=1)
    with pytest.raises(CommandUnsuccessful):
        await lab.run(lab.command(nodes))
    packages = machine.packages
    for left in ("unpacked", "unpacked without runc", "half-configured", "half-installed", "interrupted"):
        (machine.root / "etc/containerd").mkdir(exist_ok=True)
        (machine.root / "etc/containerd/config.toml").write_text("version = 2\n")
        packages.installed["containerd"] = packages.distribution["containerd"]
        packages.unfinished["containerd"] = "half-configured" if left == "interrupted" else left.partition(" ")[0]
        packages.installed["runc"] = packages.distribution["runc"]
        if left == "unpacked without runc":
            del packages.installed["runc"]
        if left == "interrupted":
            (machine.root / "var/lib/dpkg/updates").mkdir(exist_ok=True)
            (machine.root / "var/lib/dpkg/updates/0001").write_text("Package: containerd\n")
        done = await lab.run(lab.command(nodes), operation=left, message=left)
        assert done.cluster is not None
        await lab.assert_ready(done.cluster, ["master10"])
        assert not packages.unfinished, left
        assert "runc" in packages.installed, left
        assert "repairing the packages containerd" in await lab.log(left)


@pytest.mark.parametrize(
    ("machine_settings", "version"),
    [(MachineSettings(first_answer_s=90), "1.34.10"), (MachineSettings(first_answer_s=250), "1.30.8")],
)
async def test_a_slow_control_plane_has_the_time_that_the_request_gives_to_nodes(lab: MgmtLab, version: str) -> None:
    nodes = await lab.boot_cluster(workers=1)
    limits = {"ssh_ready": 20, "node_install": 600, "command": 20}
    changes = {"x_kubernetes_version": version, "x_timeouts": {**limits, "node_ready": 80}}
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(lab.command(nodes, changes=changes))
    assert "context deadline exceeded" in str(caught.value)
    changes["x_timeouts"] = {**limits, "node_ready": 300}
    done = await lab.run(lab.command(nodes, changes=changes), operation="op-2", message="m-2")
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20"])


FLANNEL = "ghcr.io/flannel-io/flannel:v0.26.3"
LONG = {"ssh_ready": 20, "node_install": 600, "command": 20, "node_ready": 300}
LOOKS_FOR_AN_IMAGE = 5
"""After so many looks, a pod without image has failed the phase."""
SHOWN = "==== what the machine shows after the failure ===="


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "status", "why"),
    [
        (f"image {FLANNEL}", "ImagePullBackOff", f'Back-off pulling image "{FLANNEL}"'),
        pytest.param(
            f"container {FLANNEL}", "CrashLoopBackOff", "its log ends: no route to ***", marks=pytest.mark.deep
        ),
    ],
)
async def test_a_pod_network_that_cannot_start_fails_in_seconds_and_a_retry_starts_it_at_once(
    lab: MgmtLab, verb: str, status: str, why: str
) -> None:
    """Secrets in what is shown are masked."""
    nodes = await lab.boot_cluster(workers=0)
    proxy = "http://user:proxy-pass-word@proxy.example:3128"
    changes = {"x_timeouts": LONG, "proxy": {"http_proxy": proxy}}
    lab.faults.add(part="program", verb=verb, status=1, message=f"no route to {proxy}")
    began = time.monotonic()
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(lab.command(nodes, changes=changes))
    assert time.monotonic() - began < 90, "it waited for its time limit"
    error = str(caught.value)
    assert (caught.value.node, caught.value.task) == ("master10", "network")
    assert "daemonset/kube-flannel-ds in namespace kube-flannel: pod kube-flannel-ds-" in error
    assert f"cannot start: {status}: " in error
    assert why in error
    assert SHOWN not in error
    log = await lab.log()
    assert "proxy-pass-word" not in log + error
    _, shown, after = log.partition(SHOWN)
    assert shown
    for title in ("---- nodes\n", "---- pods\n", "---- kube-flannel/kube-flannel-ds-"):
        assert title in after, title
    assert status != "CrashLoopBackOff" or "no route to ***" in after
    lab.faults.clear()
    began = time.monotonic()
    done = await lab.run(lab.command(nodes, changes=changes), operation="op-2", message="m-2")
    assert done.cluster is not None
    assert time.monotonic() - began < 30


@pytest.mark.slow
async def test_a_pod_that_keeps_a_node_from_being_ready_fails_the_last_task_in_seconds(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    worker = lab.name(nodes[1])
    # The pod network rolls out before the worker has joined. kube-proxy is not a part of it, and only `verify` sees it.
    lab.faults.add(part="program", verb="image *kube-proxy*", node=worker, status=1, message="not found")
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(lab.command(nodes, changes={"x_timeouts": LONG}))
    assert caught.value.task == "verify"
    assert "daemonset/kube-proxy in namespace kube-system: pod kube-proxy-" in str(caught.value)
    assert "cannot start: ImagePullBackOff" in str(caught.value)


@pytest.mark.slow
async def test_pods_that_a_kubelet_refuses_while_it_starts_are_waited_for(lab: MgmtLab) -> None:
    """Seen on real machines after a heal; the kubelet refuses all pods until it has read the Services."""
    nodes = await lab.boot_cluster(workers=1)
    why = "services have not yet been read at least once, cannot construct envvars"
    refused = lab.faults.add(part="program", verb="config *kube-proxy*", node=lab.name(nodes[1]), status=1, message=why)
    work = asyncio.create_task(lab.run(lab.command(nodes, changes={"x_timeouts": LONG})))
    await lab.running(nodes[1], "kubeadm join")
    for _ in range(LOOKS_FOR_AN_IMAGE):
        seen = lab.calls(nodes[0], "kubectl rollout")
        while lab.calls(nodes[0], "kubectl rollout") == seen and not work.done():  # noqa: ASYNC110  # a count, no event
            await asyncio.sleep(0.01)
    assert not work.done()
    lab.faults.remove(refused.fault_id)
    done = await work
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20"])


@pytest.mark.parametrize(
    ("verb", "task", "what"),
    [
        (
            "apt-get update",
            "prepare",
            "apt-get update with the Kubernetes packages of https://mirror.example/k8s/ ended",
        ),
        (
            "curl",
            "prepare",
            "download of the package repository's key from https://mirror.example/k8s/Release.key ended",
        ),
        ("kubeadm init", "init", "kubeadm init of the control plane at https://{address}:6443 ended"),
        ("kubectl apply", "network", "kubectl apply of the pod network's manifest at https://{address}:6443 ended"),
        ("kubectl rollout", "network", "did not roll out within 5 s at https://{address}:6443"),
    ],
)
async def test_errors_name_the_thing_its_address_and_the_cause(lab: MgmtLab, verb: str, task: str, what: str) -> None:
    nodes = await lab.boot_cluster(workers=0)
    lab.faults.add(part="program", verb=verb, status=7, message="the cause")
    changes = {"x_mirror": {"apt": "https://mirror.example/k8s/"}, "x_timeouts": {**LONG, "node_ready": 5}}
    changes["x_kubernetes_version"] = "1.34.10"
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(lab.command(nodes, changes=changes))
    error = str(caught.value)
    assert caught.value.task == task or (verb, caught.value.task) == ("kubectl apply", "admin")
    if caught.value.task == task:
        assert what.format(address=nodes[0].nic_address) in error
    assert error.count("the cause") == 1
    assert "$" not in error
    if task == "init":
        assert "---- kubelet\n" in (await lab.log()).partition(SHOWN)[2]
