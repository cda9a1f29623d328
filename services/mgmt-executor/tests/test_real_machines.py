"""The lab's machines behave as real ones did: images of the sandbox, dpkg's states, Debian, slow control planes.

The real ones had systemd, dpkg and kubeadm 1.34.10.
"""

from __future__ import annotations

import pytest
from kubevnfm_lab.machines import MachineSettings
from kubevnfm_lab.machines.systems import DEBIAN
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful
from mgmt_lab import MgmtLab


@pytest.mark.parametrize(("version", "pause"), [("1.30.8", "3.9"), ("1.31.4", "3.10"), ("1.34.10", "3.10.1")])
async def test_the_sandbox_has_the_image_that_kubeadm_names(lab: MgmtLab, version: str, pause: str) -> None:
    nodes = await lab.boot_cluster(workers=1)
    changes = {"x_kubernetes_version": version, "x_mirror": {"images": "https://mirror.example:5000"}}
    done = await lab.run(lab.command(nodes, changes=changes))
    assert done.cluster is not None
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
@pytest.mark.parametrize(
    "left", ["unpacked", "unpacked without runc", "half-configured", "half-installed", "interrupted"]
)
async def test_a_retry_repairs_packages_that_an_installation_left_half_done(lab: MgmtLab, left: str) -> None:
    nodes = await lab.boot_cluster(workers=0)
    machine = lab.machine(nodes[0])
    lab.faults.add(part="program", verb="apt-get update", status=100, message="stop here", times=1)
    with pytest.raises(CommandUnsuccessful):
        await lab.run(lab.command(nodes))
    packages = machine.packages
    (machine.root / "etc/containerd").mkdir(exist_ok=True)
    (machine.root / "etc/containerd/config.toml").write_text("version = 2\n")
    packages.installed["containerd"] = packages.distribution["containerd"]
    packages.unfinished["containerd"] = "half-configured" if left == "interrupted" else left.partition(" ")[0]
    if left != "unpacked without runc":
        packages.installed["runc"] = packages.distribution["runc"]
    if left == "interrupted":
        (machine.root / "var/lib/dpkg/updates").mkdir()
        (machine.root / "var/lib/dpkg/updates/0001").write_text("Package: containerd\n")
    done = await lab.run(lab.command(nodes), operation="op-2", message="m-2")
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10"])
    assert not packages.unfinished
    assert "runc" in packages.installed
    assert "repairing the packages containerd" in await lab.log("op-2")


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
