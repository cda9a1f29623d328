"""A workload cluster of lcm-api alone: built with the answers of twins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubevnfm_events.capi import ClusterReached
from kubevnfm_events.objects import ObjectFacts, ObjectsApplied
from packages.package_variants import SAMPLES, changed_package

from worlds.lcm_builders import WORKLOAD_CLUSTER, a_machine
from worlds.lcm_world import World, sample_request

APPLY, AWAIT, SCALE = "infra.k8s.apply_objects", "infra.k8s.await_cluster", "infra.k8s.scale_objects"
KINDS = (
    ("cluster.x-k8s.io/v1beta2", "Cluster", "workload"),
    ("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "workload-control-plane"),
    ("cluster.x-k8s.io/v1beta2", "MachineDeployment", "workload-md-0"),
)
TOPOLOGY = (("cluster.x-k8s.io/v1beta2", "Cluster", "workload"),)
"""The objects of a cluster whose topology has the numbers."""
VNFD = "Definitions/capi-workload.vnfd.yaml"
SHOWN = "/vnf_instances/{}"


def applied(kinds: Sequence[tuple[str, str, str]] = KINDS) -> ObjectsApplied:
    """The answer to the command that applies these objects."""
    return ObjectsApplied(
        namespace="default",
        objects=tuple(
            ObjectFacts(
                api_version=version, kind=kind, namespace="default", name=name, uid=name,
                topology_vdus=("controlPlane", "worker") if kinds is TOPOLOGY else (),
            )
            for version, kind, name in kinds
        ),
    )  # fmt: skip


def machines(workers: Sequence[int], control_planes: int = 1) -> ClusterReached:
    """The cluster with these workers, and as many control plane machines."""
    names = [("controlPlane", f"cp-{n}") for n in range(control_planes)]
    names += [("worker", f"md-{n}") for n in workers]
    return ClusterReached(
        cluster=WORKLOAD_CLUSTER, uid="u", endpoint="https://192.0.2.10:6443", stage="available",
        machines=tuple(a_machine(name, vdu_id) for vdu_id, name in names),
    )  # fmt: skip


async def built(
    world: World,
    kinds: Sequence[tuple[str, str, str]] = KINDS,
    *,
    descriptor: str | None = None,
    reached: ClusterReached | None = None,
    **capi: Any,
) -> str:
    """Return the sample cluster, INSTANTIATED with one worker or as ``reached``; ``kinds``: the objects of its files.

    ``capi``: more of ``additionalParams.capi``.
    """
    world.twins.answers[APPLY] = applied(kinds)
    world.twins.answers[AWAIT] = reached or machines([0])
    if kinds is TOPOLOGY:
        text = descriptor or (SAMPLES / "capi-workload" / VNFD).read_text(encoding="utf-8")
        # Parts of a topology have names of their own (capi.md CR-050).
        descriptor = text.replace("workload-control-plane", "controlPlane").replace("workload-md-0", "md-0")
    if descriptor is None:
        await world.sample("capi-workload")
    else:
        await world.upload(changed_package(world.folder, "capi-workload", {VNFD: descriptor}))
    world.vims.add("k8s", "kubernetes")
    instance_id = await world.create("capi-workload")
    vims = {"management": {"vimId": "k8s", "vimType": "kubernetes"}}
    parameters = sample_request("capi-workload", "instantiate")["additionalParams"]
    operation_id = await world.instantiate(
        instance_id,
        "capi-workload",
        vimConnectionInfo=vims,
        additionalParams={**parameters, "capi": {**parameters["capi"], **capi}},
    )
    await world.reached(operation_id, "COMPLETED")
    return instance_id


def sent(world: World, kind: type[Any]) -> list[Any]:
    """Return the commands of a kind, in order."""
    return [each.data for each in world.twins.commands if isinstance(each.data, kind)]


async def shown(world: World, instance_id: str) -> Any:
    """Return the instance as GET shows it."""
    return (await world.lcm("GET", SHOWN.format(instance_id))).json
