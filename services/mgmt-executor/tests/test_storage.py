"""The storage server of a cluster and its persistent volumes, on the lab's machines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from clusters.running_clusters import of_phase, replaced, send
from clusters.storage_clusters import manifest
from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import ManagedNode, RunPhase
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.ids import new_id
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful, NodeFailure
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import read_cluster
from kubevnfm_mgmt_executor.domain.kubernetes.phases import finish_healing
from kubevnfm_mgmt_executor.domain.kubernetes.storage import Volume, VolumesInUse, in_use
from worlds.mgmt_lab import MgmtLab

VOLUMES = "/api/v1/persistentvolumes"
LIMITS = {"ssh_ready": 20, "node_install": 60, "command": 10, "node_ready": 20}


def storage(**changes: Any) -> dict[str, Any]:
    """Return the parameters of document 002's sample: one volume, three exports, three persistent volumes."""
    server = {
        "ssh_cp_name": "storage_server_CP",
        "username": "ubuntu",
        "password": "ubuntu",
        "cinder_volume_setup_params": [{"volume_resource_id": "storage_server_volume", "mount_to": "/volume"}],
        "nfs_server_setup_params": [
            {"export_dir": f"/volume/nfs/pv{number}", "export_to": "10.10.0.0/24"} for number in (1, 2, 3)
        ],
    }
    registered = [
        {"pv_manifest_file_path": f"Files/kubernetes/nfs-pv{number}.yaml", "nfs_server_cp": "storage_server_CP"}
        for number in (1, 2, 3)
    ]
    return {"storage_server": server | changes, "pv_registration_params": registered, "x_timeouts": LIMITS}


@dataclass
class Site:
    """A cluster with a storage server."""

    lab: MgmtLab
    nodes: list[ManagedNode]
    volume_id: str
    address: str
    """That of the cluster's API: of several masters the virtual one."""
    access: ClusterAccess | None = None

    @property
    def server(self) -> ManagedNode:
        """The storage server."""
        return next(node for node in self.nodes if node.role == "storage")

    @property
    def name(self) -> str:
        """Its name for people."""
        return self.lab.name(self.server)

    def file(self, path: str) -> str:
        """Return a file of the storage server."""
        return (self.lab.machine(self.server).root / path).read_text()

    def command(
        self, phase: Any = "instantiate_end", targets: Sequence[ManagedNode] | None = None, **changes: Any
    ) -> RunPhase:
        """Return the command of a phase."""
        gone = changes.pop("gone", ())
        asked = of_phase(
            self.lab, phase, self.nodes, self.nodes if targets is None else targets, gone=gone, **storage(**changes)
        )
        return asked.model_copy(
            update={
                "cluster_address": self.address,
                "volumes": {"storage_server_volume": self.volume_id},
                "nfs_addresses": {"storage_server_CP": self.server.nic_address},
            }
        )

    async def installed(self) -> None:
        """Run the installation."""
        done = await self.lab.run(self.command(), operation="op-0", message="m-0")
        assert self.server.vnfc_id not in done.node_names
        self.access = done.cluster
        named = [node.model_copy(update={"name": done.node_names.get(node.vnfc_id)}) for node in self.nodes]
        self.nodes = named
        self.lab.news.clear()

    async def volumes(self) -> dict[str, Any]:
        """Return the persistent volumes of the cluster by name."""
        assert self.access is not None
        listed = await self.lab.ask_api(self.access, VOLUMES)
        return {one["metadata"]["name"]: one for one in listed["items"]}

    async def claim(self, volume: str) -> None:
        """Claim a volume, and return once it is Bound."""
        assert self.access is not None
        spec = {
            "accessModes": ["ReadWriteMany"],
            "volumeName": volume,
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        path = "/api/v1/namespaces/default/persistentvolumeclaims"
        await send(self.lab, self.access, path, {"metadata": {"name": f"of-{volume}"}, "spec": spec})
        await self.until_phase(volume, "Bound")

    async def until_phase(self, volume: str, phase: str) -> None:
        """Return once a volume has a phase."""
        async with asyncio.timeout(60):
            while (await self.volumes())[volume]["status"]["phase"] != phase:  # noqa: ASYNC110  # the lab's API
                await asyncio.sleep(0.05)

    async def replace_server(self, *, keeps_volume: bool) -> ManagedNode:
        """Let Heat replace the storage server at its address; return the old one."""
        old = self.server
        await self.lab.machines.destroy(old.server_id)
        self.volume_id = self.volume_id if keeps_volume else new_id()
        octet = int(old.nic_address.rpartition(".")[2])
        new = await self.lab.boot("storage", octet, volumes=[self.volume_id])
        self.nodes = [new if node is old else node for node in self.nodes]
        return old


@pytest.fixture
async def site(lab: MgmtLab) -> Site:
    """Return machines, and a package, of a cluster with a storage server."""
    return await a_site(lab, masters=1)


async def a_site(lab: MgmtLab, *, masters: int) -> Site:
    """Return the machines of so many masters, a worker and a storage server, and their package."""
    folder = lab.packages.root / "Files/kubernetes"
    for number in (1, 2, 3):
        (folder / f"nfs-pv{number}.yaml").write_text(yaml.safe_dump(manifest(number)))
    volume_id = new_id()
    nodes = await asyncio.gather(
        *(lab.boot("master", 10 + number) for number in range(masters)),
        lab.boot("worker", 20),
        lab.boot("storage", 40, volumes=[volume_id]),
    )
    first = nodes[0].nic_address
    return Site(lab, nodes, volume_id, first if masters == 1 else first.rpartition(".")[0] + ".100")


def formatted(site: Site) -> int:
    """Return how often the volume was formatted."""
    return int(next(one["formatted"] for one in site.lab.machines.volumes() if one["id"] == site.volume_id))


async def test_a_cluster_gets_volumes_that_claims_can_have(site: Site) -> None:
    """SEQ-061 to SEQ-067, SEQ-074, SEQ-180, SEQ-190, SEQ-192, SEQ-193: killed at each part, repeated, then rebooted."""
    lab = site.lab
    for fencing, task in enumerate(("disks", "exports"), start=1):
        await lab.run_until(site.command(), task, site.name, operation="op-0", message="m-0", fencing=fencing)
    await lab.run_until(site.command(), "register_volumes", "master10", operation="op-0", message="m-0", fencing=3)
    lab.news.clear()
    done = await lab.run(site.command(), operation="op-0", message="m-0", fencing=4)
    site.access = done.cluster
    finished = [(news.task, news.node) for news in lab.news if news.state in ("finished", "skipped")]
    for before, after in (
        (("disks", site.name), ("exports", site.name)),
        (("exports", site.name), ("register_volumes", "master10")),
        (("nfs_client", "master10"), ("init", "master10")),
        (("nfs_client", "worker20"), ("join", "worker20")),
        (("verify", "master10"), ("register_volumes", "master10")),
    ):
        assert finished.index(before) < finished.index(after)
    found = await site.volumes()
    assert {name: one["status"]["phase"] for name, one in found.items()} == dict.fromkeys(
        ("nfs-pv1", "nfs-pv2", "nfs-pv3"), "Available"
    )
    for number in (1, 2, 3):
        one = found[f"nfs-pv{number}"]
        assert one["spec"]["nfs"] == {"path": f"/volume/nfs/pv{number}", "server": site.server.nic_address}
        assert one["metadata"]["labels"] == {"tier": "gold", "kubevnfm.io/vnf-instance-id": lab.instance_id}
    assert formatted(site) == 1
    (volume,) = (one for one in lab.machines.volumes() if one["id"] == site.volume_id)
    assert volume["filesystem"] == "ext4"
    assert f"UUID={volume['uuid']} /volume ext4 defaults,nofail," in site.file("etc/fstab")
    assert "/volume" in site.file("proc/mounts")
    exported = site.file(f"etc/exports.d/vnfm-{lab.instance_id}.exports").splitlines()
    assert exported == [
        f"/volume/nfs/pv{number} 10.10.0.0/24(rw,sync,no_subtree_check,all_squash,mountpoint=/volume)"
        for number in (1, 2, 3)
    ]
    assert len(site.file("var/lib/nfs/etab").splitlines()) == 3
    for node in site.nodes:
        # SEQ-091: the same package has both.
        assert (lab.machine(node).root / "sbin/mount.nfs").exists()
    assert lab.calls(site.server, "kubeadm join") == 0
    # SEQ-180: nothing is done twice by another message.
    lab.news.clear()
    await lab.run(site.command(), operation="op-0", message="m-1")
    again = {news.task: news.state for news in lab.news if news.state in ("finished", "skipped")}
    assert {again[task] for task in ("disks", "exports", "nfs_client", "register_volumes")} == {"skipped"}
    await lab.machines.stop(site.server.server_id)
    assert "/volume" not in site.file("proc/mounts")
    await lab.machines.start(site.server.server_id)
    assert " /volume ext4 " in site.file("proc/mounts")
    assert lab.machine(site.server).units.is_active("nfs-kernel-server")
    # The file has the name of the VNF, so exports of others stay as they are.
    assert site.file(f"etc/exports.d/vnfm-{lab.instance_id}.exports").splitlines() == exported


def holding(site: Site, kind: str) -> None:
    """Let the volume hold a file system, or something else, with data."""
    ((_, volume),) = site.lab.machine(site.server).disks.devices()
    volume.filesystem, volume.uuid = kind, new_id()
    volume.content.mkdir(parents=True)
    (volume.content / "data").write_text("precious")


async def test_a_volume_with_a_file_system_is_mounted_as_it_is(site: Site) -> None:
    """SEQ-190, W-31; SEQ-085, SEQ-088: a new worker can mount it, and the server is left alone."""
    holding(site, "xfs")
    await site.installed()
    assert formatted(site) == 0
    assert site.file("volume/data") == "precious"
    assert " /volume xfs defaults,nofail," in site.file("etc/fstab")
    lab = site.lab
    calls = dict(lab.machine(site.server).calls)
    new = await lab.boot("worker", 21)
    site.nodes.insert(2, new)
    await lab.run(site.command("scale_end", [new]))
    assert {news.node for news in lab.news if news.task == "nfs_client"} == {"worker21"}
    assert (lab.machine(new).root / "sbin/mount.nfs").exists()
    site.nodes[2] = new.model_copy(update={"name": "worker21"})
    await lab.run(site.command("scale_start", [site.nodes[2]]), message="m-2")
    assert dict(lab.machine(site.server).calls) == calls
    assert {one["status"]["phase"] for one in (await site.volumes()).values()} == {"Available"}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("LVM", "task disks: volume storage_server_volume: its disk holds no file system, but is not empty"),
        ("system", "task disks: operating system fedora 40: Ubuntu 20.04, 22.04 or 24.04, or Debian 12 expected"),
        ("another volume", "task disks: volume storage_server_volume: its disk did not appear within 1 s"),
    ],
)
async def test_a_machine_that_cannot_serve_is_named_before_it_is_changed(site: Site, fault: str, reason: str) -> None:
    """SEQ-091, SEQ-190; the retry goes on once it can."""
    lab, machine = site.lab, site.lab.machine(site.server)
    right = site.volume_id
    if fault == "LVM":
        holding(site, "LVM2_member")
    elif fault == "another volume":
        site.volume_id = new_id()
    else:
        machine.root.mkdir(exist_ok=True)
        release = machine.root / "etc/os-release"
        await lab.run_until(site.command(), "disks", site.name)
        text = release.read_text()
        release.write_text('ID="fedora"\nVERSION_ID="40"\n')
    limits = {**LIMITS, "command": 1} if fault == "another volume" else LIMITS
    asked = site.command()
    assert asked.cluster is not None
    timeouts = asked.cluster.x_timeouts.model_copy(update=limits)
    asked = asked.model_copy(update={"cluster": asked.cluster.model_copy(update={"x_timeouts": timeouts})})
    with pytest.raises(CommandUnsuccessful) as caught:
        await lab.run(asked, message="m-2")
    assert f"node {site.name}: {reason}" in str(caught.value)
    assert "/volume" not in (machine.root / "etc/fstab").read_text()
    assert machine.calls["mkfs.ext4"] == 0
    if fault == "system":
        release.write_text(text)
        site.volume_id = right
        await site.installed()
        assert formatted(site) == 1


async def test_manifests_are_checked_before_the_first_login(site: Site) -> None:
    """SEQ-092 again: the package is what the executor reads, whatever another version has accepted."""
    file = site.lab.packages.root / "Files/kubernetes/nfs-pv2.yaml"
    for content, reason in (
        ("kind: [", "not a manifest of persistent volumes"),
        (yaml.safe_dump(manifest(1)), "two PersistentVolumes have the name nfs-pv1"),
        (None, "the package has no file"),
    ):
        file.unlink() if content is None else file.write_text(content)
        with pytest.raises(Unprocessable, match=reason) as caught:
            await site.lab.run(site.command())
        assert caught.value.field.endswith("pv_registration_params/1/pv_manifest_file_path")
    assert site.lab.machine(site.server).calls["ssh connect"] == 0


async def test_a_worker_that_is_replaced_gets_the_client_before_it_joins(site: Site) -> None:
    """SEQ-086; in a heal of both, the volumes come back last."""
    asked = site.command("heal_end", [site.nodes[1], site.server])
    plan = finish_healing(read_cluster(asked, lambda secret: secret.reveal(site.lab.ring)))
    tasks = {planned.name: planned for planned in plan.tasks if planned.node.role != "master"}
    assert ("nfs_client", "worker20") in tasks["clear"].after
    registered = next(planned for planned in plan.tasks if planned.name == "register_volumes")
    assert set(registered.after) == {("verify", "master10"), ("exports", site.name)}


async def test_a_new_storage_server_has_the_volumes_again(site: Site) -> None:
    """SEQ-078, SEQ-080 to SEQ-082, SEQ-190, SEQ-180: killed in both phases, and repeated; with another disk and with its own."""
    await site.installed()
    for keeps_volume in (False, True):
        await is_replaced_and_has_the_volumes_again(site, keeps_volume=keeps_volume)


async def is_replaced_and_has_the_volumes_again(site: Site, *, keeps_volume: bool) -> None:
    lab, number = site.lab, int(keeps_volume)
    lab.machine(site.server).root.joinpath("volume/nfs/pv1/data").write_text("precious")
    uids = {name: one["metadata"]["uid"] for name, one in (await site.volumes()).items()}
    joined = {node.vnfc_id: dict(lab.machine(node).calls) for node in site.nodes[1:2]}
    start = site.command("heal_start", [site.server])
    lab.news.clear()
    await lab.run_until(start, "release_volumes", "master10", operation=f"start-{number}", message="m-1")
    await lab.run(start, operation=f"start-{number}", message="m-1", fencing=2)
    assert await site.volumes() == {}
    # A repeat finds nothing left to do.
    await lab.run(start, operation=f"start-{number}", message="m-2")
    old = await site.replace_server(keeps_volume=keeps_volume)
    end = site.command("heal_end", [site.server], gone=[old])
    lab.news.clear()
    await lab.run_until(end, "exports", site.name, operation=f"end-{number}", message="m-3")
    await lab.run(end, operation=f"end-{number}", message="m-3", fencing=2)
    now = await site.volumes()
    assert {one["status"]["phase"] for one in now.values()} == {"Available"}
    assert set(now) == set(uids)
    assert not {one["metadata"]["uid"] for one in now.values()} & set(uids.values())
    data = lab.machine(site.server).root / "volume/nfs/pv1/data"
    assert formatted(site) == 1
    assert data.exists() == keeps_volume
    assert {news.node for news in lab.news} == {"master10", site.name}
    assert {node.vnfc_id: dict(lab.machine(node).calls) for node in site.nodes[1:2]} == joined


async def without_volumes(site: Site, dead: ManagedNode) -> None:
    """Let a master and the storage server die, and begin the heal of both."""
    lab = site.lab
    for node in (dead, site.server):
        await lab.machines.stop(node.server_id)
    lab.news.clear()
    done = await lab.run(site.command("heal_start", [dead, site.server]), message="m-1")
    assert done.left is None
    assert {news.task for news in lab.news} == {"reach", "copy", "quorum", "release_volumes"}
    assert await site.volumes() == {}


@pytest.mark.slow
async def test_no_volume_leaves_the_cluster_for_a_master_that_etcd_cannot_lose(lab: MgmtLab) -> None:
    """5.2, 5.3: the rule of quorum is checked first, for all masters of the heal."""
    site = await a_site(lab, masters=3)
    await site.installed()
    before = await site.volumes()
    await lab.machines.stop(site.nodes[2].server_id)
    with pytest.raises(NodeFailure, match="while master10 is replaced, 1 of 3 members of etcd would be left"):
        await lab.run(site.command("heal_start", [site.nodes[0], site.server]), message="m-0")
    assert await site.volumes() == before
    await without_volumes(site, site.nodes[2])


@pytest.mark.deep
async def test_a_mix_of_dead_machines_is_healed_masters_first_and_the_volumes_come_back_last(lab: MgmtLab) -> None:
    """5.2: no task of a master waits for the storage server, which is still down then."""
    site = await a_site(lab, masters=3)
    await site.installed()
    assert site.access is not None
    uids = {name: one["metadata"]["uid"] for name, one in (await site.volumes()).items()}
    dead, worker = site.nodes[2], site.nodes[3]
    await without_volumes(site, dead)
    assert (await lab.run(site.command("heal_start", [dead]), message="m-2")).left == dead.vnfc_id
    site.nodes[2] = await replaced(lab, dead)
    await lab.run(site.command("heal_end", [site.nodes[2]], gone=[dead]), message="m-3")
    assert (lab.machine(site.nodes[2]).root / "sbin/mount.nfs").exists()
    assert await site.volumes() == {}

    await lab.run(site.command("heal_start", [worker]), message="m-4")
    site.nodes[3] = await replaced(lab, worker)
    old = await site.replace_server(keeps_volume=False)
    end = site.command("heal_end", [site.nodes[3], site.server], gone=[dead, worker, old])
    await lab.run(end, message="m-5")
    await lab.assert_ready(site.access, ["master10", "master11", "master12", "worker20"])
    now = await site.volumes()
    assert {one["status"]["phase"] for one in now.values()} == {"Available"}
    assert set(now) == set(uids)
    assert not {one["metadata"]["uid"] for one in now.values()} & set(uids.values())


async def test_a_volume_in_use_refuses_the_heal_and_nothing_changes(site: Site) -> None:
    """SEQ-079; the retry goes on once the claim, and a volume that stays Released, are gone."""
    lab = site.lab
    await site.installed()
    assert site.access is not None
    await site.claim("nfs-pv2")
    worker = site.nodes[1]
    for phase in ("Bound", "Released"):
        if phase == "Released":
            claim = "/api/v1/namespaces/default/persistentvolumeclaims/of-nfs-pv2"
            await lab.ask_api(site.access, claim, method="DELETE")
            await site.until_phase("nfs-pv2", "Released")
        before = await site.volumes()
        with pytest.raises(VolumesInUse) as caught:
            await lab.run(site.command("heal_start", [worker, site.server]), message=phase)
        assert f"nfs-pv2 ({phase}, claim default/of-nfs-pv2)" in str(caught.value)
        assert (caught.value.node, caught.value.task) == ("master10", "release_volumes")
        assert await site.volumes() == before
        assert not {"cordon", "drain", "delete"} & {news.task for news in lab.news}
    await lab.ask_api(site.access, f"{VOLUMES}/nfs-pv2", method="DELETE")
    await lab.run(site.command("heal_start", [worker, site.server]), message="m-2")
    assert await site.volumes() == {}
    order = [news.task for news in lab.news if news.state == "finished"]
    assert order.index("release_volumes") < order.index("cordon")


def a_volume(name: str, **spec: Any) -> Volume:
    return Volume.model_validate({"metadata": {"name": name, **spec.pop("metadata", {})}, "spec": spec})


def test_a_volume_of_a_person_on_the_same_server_is_in_use_too() -> None:
    """M24; the reservation by an earlier try is no use."""
    claim = {"namespace": "shop", "name": "data"}
    own = {"labels": {"kubevnfm.io/vnf-instance-id": "i"}}
    volumes = [
        a_volume("free", metadata=own),
        a_volume("reserved", metadata=own, claimRef={"namespace": "kubevnfm-system", "name": "kubevnfm-heal"}),
        a_volume("taken", metadata=own, claimRef=claim),
        a_volume("by-hand", nfs={"server": "10.0.0.4", "path": "/volume/x"}, claimRef=claim),
        a_volume("elsewhere", nfs={"server": "10.0.0.5", "path": "/volume/x"}, claimRef=claim),
    ]
    found = in_use(volumes, instance_id="i", servers={"10.0.0.4"})
    assert [one.partition(" ")[0] for one in found] == ["taken", "by-hand"]


async def test_volumes_of_others_are_never_overwritten(site: Site) -> None:
    """M23: a volume of the same name that a person has made stays as it is."""
    lab = site.lab
    await site.installed()
    assert site.access is not None
    await lab.run(site.command("heal_start", [site.server]), message="m-1")
    await send(lab, site.access, VOLUMES, manifest(2))
    before = await site.volumes()
    with pytest.raises(NodeFailure, match="persistent volumes that are not this VNF's have the names nfs-pv2"):
        await lab.run(site.command("heal_end", [site.server]), message="m-2")
    assert set(await site.volumes()) == set(before)


async def test_a_claim_that_is_faster_than_the_deletion_keeps_its_volume(site: Site) -> None:
    """M24: no volume is deleted then, and those that were reserved already are free again."""
    lab = site.lab
    await site.installed()
    held = lab.faults.add(part="program", verb="kubectl patch", effect="hang", after=1, times=1)
    start = site.command("heal_start", [site.server])
    work = asyncio.create_task(lab.run(start, message="m-1"))
    while lab.calls(site.nodes[0], "kubectl patch") < 2:  # noqa: ASYNC110  # the lab has a count, but no event
        await asyncio.sleep(0.01)
    await site.claim("nfs-pv2")
    lab.faults.remove(held.fault_id)
    with pytest.raises(CommandUnsuccessful, match="PersistentVolume nfs-pv2 has changed meanwhile"):
        await work
    now = await site.volumes()
    assert {name: one["status"]["phase"] for name, one in now.items()} == {
        "nfs-pv1": "Available",
        "nfs-pv2": "Bound",
        "nfs-pv3": "Available",
    }
    assert "claimRef" not in now["nfs-pv1"]["spec"]
