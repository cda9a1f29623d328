"""The tasks of a cluster's storage server and persistent volumes (sequences.md M16, M21 to M24)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kubevnfm_cluster.storage import mount_of
from kubevnfm_events.mgmt import ManagedNode
from pydantic import BaseModel, Field

from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.kubernetes.volume_files import MANIFESTS, OWNER_LABEL, SCRIPT
from kubevnfm_mgmt_executor.domain.node_session import NodeSession, ScriptAnswer
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult

OWN_CLAIM: Final = "kubevnfm-system/kubevnfm-heal"
"""The claim that does not exist, and that takes a volume so that no other does while it is deleted."""


class VolumesInUse(NodeFailure, code="persistent-volumes-in-use"):
    """Persistent volumes of the storage server belong to claims: its disk cannot go while they do."""


class ClaimRef(BaseModel):
    """ObjectReference of the claim that a volume belongs to."""

    namespace: str = ""
    name: str = ""


class NfsSource(BaseModel):
    """NFSVolumeSource."""

    server: str
    path: str


class VolumeMetadata(BaseModel):
    """ObjectMeta of a PersistentVolume."""

    name: str
    uid: str = ""
    labels: dict[str, str] | None = None
    resource_version: str = Field(default="", alias="resourceVersion")


class VolumeSpec(BaseModel):
    """PersistentVolumeSpec."""

    claim_ref: ClaimRef | None = Field(default=None, alias="claimRef")
    nfs: NfsSource | None = None


class VolumeStatus(BaseModel):
    """PersistentVolumeStatus."""

    phase: str = ""


class Volume(BaseModel):
    """PersistentVolume."""

    metadata: VolumeMetadata
    spec: VolumeSpec
    status: VolumeStatus = VolumeStatus()

    @property
    def claim(self) -> str | None:
        """Namespace and name of the claim that it belongs to."""
        taken = self.spec.claim_ref
        found = f"{taken.namespace}/{taken.name}" if taken is not None else None
        return None if found == OWN_CLAIM else found

    @property
    def owner(self) -> str | None:
        """The VNF instance that has made it."""
        return (self.metadata.labels or {}).get(OWNER_LABEL)


class VolumeList(BaseModel):
    """PersistentVolumeList."""

    items: tuple[Volume, ...] = ()


class VolumesAnswer(ScriptAnswer):
    """The result of ``listed`` and ``register``."""

    volumes: VolumeList = VolumeList()


def volumes_of(volumes: Sequence[Volume], *, instance_id: str) -> Sequence[Volume]:
    """Return the volumes that the VNF instance has made."""
    return [one for one in volumes if one.owner == instance_id]


def in_use(volumes: Sequence[Volume], *, instance_id: str, servers: Collection[str]) -> Sequence[str]:
    """Return a phrase for each volume of the VNF, or of one of its ``servers``, that belongs to a claim."""
    return [
        f"{one.metadata.name} ({one.status.phase}, claim {one.claim})"
        for one in volumes
        if one.claim is not None
        and (one.owner == instance_id or (one.spec.nfs is not None and one.spec.nfs.server in servers))
    ]


async def disks(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Mount the volumes of the storage server; a disk that holds nothing is formatted first, any other never is."""
    storage, limits = run.cluster.parameters.storage_server, run.timeouts
    assert storage is not None
    lines = [
        f"{run.cluster.volumes[one.volume_resource_id]} {one.mount_to} {one.volume_resource_id}"
        for one in storage.cinder_volume_setup_params
    ]
    given = {"DISKS": "\n".join(lines), "TIMEOUT_S": str(limits.command)}
    result = await _change(run, node, "disks", given, timeout_s=limits.node_install)
    return replace(result, facts={"volumes": dict(run.cluster.volumes)})


async def exports(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Install the NFS server, and export the folders of the request."""
    storage = run.cluster.parameters.storage_server
    assert storage is not None
    lines = [
        f"{one.export_dir} {one.export_to} {mount_of(one.export_dir, storage)}"
        for one in storage.nfs_server_setup_params
    ]
    given = {**values.proxies(run.cluster), "EXPORTS": "\n".join(lines)}
    return await _change(run, node, "exports", given, timeout_s=run.timeouts.node_install)


async def nfs_client(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Install the program by which the kubelet mounts the volumes."""
    return await _change(run, node, "nfs_client", values.proxies(run.cluster), timeout_s=run.timeouts.node_install)


async def register_volumes(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Create the PersistentVolumes through the master ``node``; wait until claims can have them."""
    cluster, files, name = run.cluster, run.files.volumes, run.cluster.name(node)
    before = {one.metadata.name: one for one in await _listed(run, node)}
    others = [one for one in files.names if one in before and before[one].owner != cluster.vnf_instance_id]
    if others:
        raise NodeFailure(f"persistent volumes that are not this VNF's have the names {', '.join(others)}", node=name)
    await run.session(node).copy({MANIFESTS: files.manifests})
    given = {"VOLUMES": " ".join(files.names), "TIMEOUT_S": str(run.timeouts.node_ready)}
    limit_s = run.timeouts.command + len(files.names) * run.timeouts.node_ready
    answer = await _asked(run, node, "register", given, timeout_s=limit_s)
    own = volumes_of(answer.volumes.items, instance_id=cluster.vnf_instance_id)
    facts = {
        one.metadata.name: {"uid": one.metadata.uid, **(one.spec.nfs.model_dump() if one.spec.nfs else {})}
        for one in own
        if one.metadata.name in files.names
    }
    return TaskResult(changed=answer.changed, facts={"persistent_volumes": facts})


async def release_volumes(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Delete the PersistentVolumes of the VNF through the master ``node``, if no claim has one of them.

    Raises VolumesInUse before anything has changed.
    """
    cluster, limits = run.cluster, run.timeouts
    listed = await _listed(run, node)
    servers = set(cluster.nfs_addresses.values())
    used = in_use(listed, instance_id=cluster.vnf_instance_id, servers=servers)
    if used:
        raise VolumesInUse(
            f"persistent volumes are in use: {', '.join(used)}; delete these claims, and the volumes that stay Released",
            node=cluster.name(node),
        )
    own = volumes_of(listed, instance_id=cluster.vnf_instance_id)
    if not own:
        return TaskResult(changed=False)
    lines = [f"{one.metadata.name} {one.metadata.resource_version}" for one in own]
    limit_s = limits.command * (1 + len(own))
    await _change(run, node, "reserve", {"RESERVED": "\n".join(lines)}, timeout_s=limit_s)
    names = " ".join(one.metadata.name for one in own)
    given = {"VOLUMES": names, "TIMEOUT_S": str(limits.node_ready)}
    return await _change(run, node, "release", given, timeout_s=limits.command + limits.node_ready)


async def _listed(run: ClusterRun, node: ManagedNode) -> Sequence[Volume]:
    return (await _asked(run, node, "listed", {}, timeout_s=run.timeouts.command)).volumes.items


async def _asked(
    run: ClusterRun, node: ManagedNode, task: str, given: Mapping[str, str], *, timeout_s: float
) -> VolumesAnswer:
    session, values = await _with_script(run, node, given)
    return await session.run_script(task, values, timeout_s=timeout_s, answer=VolumesAnswer, script=SCRIPT)


async def _change(
    run: ClusterRun, node: ManagedNode, task: str, given: Mapping[str, str], *, timeout_s: float
) -> TaskResult:
    session, values = await _with_script(run, node, given)
    return await session.change(task, values, timeout_s=timeout_s, script=SCRIPT)


async def _with_script(
    run: ClusterRun, node: ManagedNode, given: Mapping[str, str]
) -> tuple[NodeSession, Mapping[str, str]]:
    await run.session(node).copy(run.files.volumes.scripts)
    return run.session(node), {"OWNER": run.cluster.vnf_instance_id, **given}
