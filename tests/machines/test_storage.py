"""A storage server on real machines; see docs/real-machines.md. Skipped unless KUBEVNFM_MACHINES names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from clusters.seen_cluster import SeenCluster
from real.real_machines import FILE, STORAGE_PORT, VOLUME, RealMachines

pytestmark = pytest.mark.skipif(FILE is None, reason="no machines are given: see docs/real-machines.md")

MOUNT: Final = "/volume"
EXPORT: Final = f"{MOUNT}/nfs/pv1"
MANIFEST: Final = "Files/kubernetes/pv1.yaml"
VOLUMES: Final = "/api/v1/persistentvolumes"


async def test_a_storage_server_exports_its_volume_and_keeps_it_in_a_heal(tmp_path: Path) -> None:
    """SEQ-061, SEQ-062, SEQ-065, SEQ-066, SEQ-080, SEQ-081: the disk is formatted once; exports and persistent volumes are read from outside.

    Nothing is mounted over NFS: that takes a client in the kernel.
    """
    assert FILE is not None
    async with RealMachines.of_file(Path(FILE), tmp_path) as machines:
        given = machines.given
        if given.storage is None or not given.renew:
            pytest.skip("a master, a storage server, and the command renew expected")
        (machines.package / MANIFEST).write_text(json.dumps(volume()), encoding="utf-8")
        places = [given.masters[0], given.storage.address]
        await machines.do("renew", *places)
        await machines.do("attach", given.storage.address)
        master, server = machines.node(places[0], "master"), machines.node(places[1], "storage")
        asked = parameters(machines)
        done = await machines.run(machines.command("instantiate_end", [master, server], parameters=asked), tmp_path)
        assert done.cluster is not None
        seen = SeenCluster(machines, done.cluster)
        master = master.model_copy(update={"name": done.node_names[master.vnfc_id]})
        await see_volume(seen, server.nic_address)
        file_system = await machines.on(server.nic_address, f"findmnt -n -o UUID,FSTYPE --mountpoint {MOUNT}")
        assert file_system.split()[1] == "ext4"
        await machines.on(server.nic_address, f"echo kept >{EXPORT}/file")

        command = machines.command("heal_start", [master, server], targets=[server], parameters=asked)
        await machines.run(command, tmp_path)
        assert (await machines.ask_api(seen.access, VOLUMES))["items"] == []
        await machines.do("renew", server.nic_address)
        await machines.do("attach", server.nic_address)
        healed = machines.node(server.nic_address, "storage")
        command = machines.command("heal_end", [master, healed], targets=[healed], gone=[server], parameters=asked)
        await machines.run(command, tmp_path)
        await see_volume(seen, healed.nic_address)
        assert file_system == await machines.on(healed.nic_address, f"findmnt -n -o UUID,FSTYPE --mountpoint {MOUNT}")
        assert await machines.on(healed.nic_address, f"cat {EXPORT}/file") == "kept\n"


def parameters(machines: RealMachines) -> dict[str, Any]:
    """Return the parameters of the storage server and its persistent volume."""
    return {
        "storage_server": {
            **machines.given.login,
            "ssh_cp_name": STORAGE_PORT,
            "cinder_volume_setup_params": [{"volume_resource_id": VOLUME, "mount_to": MOUNT}],
            "nfs_server_setup_params": [{"export_dir": EXPORT, "export_to": machines.given.subnet_cidr}],
        },
        "pv_registration_params": [{"pv_manifest_file_path": MANIFEST, "nfs_server_cp": STORAGE_PORT}],
    }


def volume() -> dict[str, Any]:
    """Return the manifest of a persistent volume, with an address that the driver replaces."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv1"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "nfs": {"path": EXPORT, "server": "192.0.2.254"},
        },
    }


async def see_volume(seen: SeenCluster, address: str) -> None:
    """Fail unless the server exports the folder, and the cluster has the persistent volume at its address."""
    listed = await seen.machines.on(address, "exportfs -s")
    assert [line.split("(")[0].split() for line in listed.splitlines()] == [[EXPORT, seen.machines.given.subnet_cidr]]
    (found,) = (await seen.machines.ask_api(seen.access, VOLUMES))["items"]
    assert (found["metadata"]["name"], found["status"]["phase"]) == ("pv1", "Available")
    assert found["spec"]["nfs"] == {"path": EXPORT, "server": address}
