"""Scaling of clusters with ``spec.topology`` on the lab's stand-in: the number is written into the Cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from kubevnfm_events.capi import ClusterReached
from kubevnfm_infra_k8s.domain.capi.topology import (
    part_of,
    topology_vdus,
    with_part_count,
    with_topology_replicas,
)
from kubevnfm_infra_k8s.domain.changing.applied_fields import applied_part, applied_version
from kubevnfm_infra_k8s.domain.errors import MachinesMissing, OutsideAutoscaler
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.watching.drift import Sighting, judge
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_lab.kubernetes.objects import value_at
from worlds.capi_management import CLASS_VDUS, Management, files_of, managed

CLUSTERS = Resource("cluster.x-k8s.io/v1beta2", "Cluster", "clusters", namespaced=True)
CLUSTER = ObjectKey(CLUSTERS.api_version, "Cluster", "default", "workload")
DEPLOYMENTS = "machinedeployments.cluster.x-k8s.io"
SAMPLE = "capi-workload-class"
LIMIT = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-{}-size"


@pytest.fixture
async def management(site: Any, lab: LabCluster) -> AsyncIterator[Management]:
    async with managed(site, lab) as management:
        yield management


async def built(management: Management, files: Mapping[str, str] | None = None) -> ClusterReached:
    """One Machine of the control plane and two workers."""
    return await management.built(SAMPLE, files=files, vdus=CLASS_VDUS)


async def settled(management: Management, attempt: int) -> ClusterReached:
    return await management.wait("available", attempt=attempt, is_settled=True, vdus=CLASS_VDUS)


def counts(reached: ClusterReached) -> dict[str | None, int]:
    return dict(Counter(each.vdu_id for each in reached.machines))


async def shown(management: Management) -> Any:
    async with management.site.cluster() as cluster:
        return await cluster.get(CLUSTERS, CLUSTER)


async def test_numbers_are_written_into_the_topology_and_nothing_else_changes(management: Management) -> None:
    """CR-050, CR-086, CR-089, CR-121: workers out, control plane out, both back in one call; a repeat writes nothing."""
    first = await built(management)
    release = await management.site.handlers.releases.get("i1")
    (entry,) = [each for each in release.entries if each.key.kind == "Cluster"]
    assert entry.topology_vdus == ("controlPlane", "worker")
    before = await shown(management)

    await management.scale_topology({"md-0": 4})
    more = await settled(management, 2)
    assert counts(more) == {"controlPlane": 1, "worker": 4}
    after = await shown(management)
    after["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"] = 2
    assert after["spec"] == before["spec"]
    assert {one["manager"] for one in after["metadata"]["managedFields"] if one["operation"] == "Apply"} == {"kubevnfm"}

    await management.scale_topology({"controlPlane": 3}, operation="op3")
    assert counts(await settled(management, 3)) == {"controlPlane": 3, "worker": 4}
    version = (await shown(management))["metadata"]["resourceVersion"]
    await management.scale_topology({"controlPlane": 3}, operation="op3")
    assert (await shown(management))["metadata"]["resourceVersion"] == version
    await management.scale_topology({"controlPlane": 1, "md-0": 2}, operation="op4")
    less = await settled(management, 4)
    assert counts(less) == counts(first)
    (entry,) = [each for each in (await management.site.handlers.releases.get("i1")).entries if each.key == CLUSTER]
    assert (bool(entry.owned), judge(entry, Sighting.from_body(await shown(management)))) == (True, None)


async def test_chosen_machines_of_a_topology_leave_first(management: Management) -> None:
    """CR-090: they are annotated before the number goes down; one that is gone already ends it before others leave."""
    await built(management)
    await management.scale_topology({"md-0": 3})
    three = await settled(management, 2)
    chosen = next(each for each in three.machines if each.vdu_id == "worker")
    for operation in ("op3", "op3"):
        await management.scale_topology({"md-0": 2}, chosen, operation=operation)
    left = await settled(management, 3)
    assert {each.uid for each in left.machines} == {each.uid for each in three.machines} - {chosen.uid}
    with pytest.raises(MachinesMissing, match=f"has no Machines {chosen.name}"):
        await management.scale_topology({"md-0": 1}, chosen, operation="op4")
    assert counts(await settled(management, 4))["worker"] == 2


async def test_the_number_stays_at_a_change_of_package(management: Management) -> None:
    """CR-094: the scale level counts, not the manifest."""
    await built(management)
    await management.scale_topology({"md-0": 3})
    await settled(management, 2)
    files = files_of(SAMPLE)
    vdus = [one.model_copy(update={"replicas": 3}) if one.name == "md-0" else one for one in CLASS_VDUS]
    await management.update(files, "all", operation="op3", vdus=vdus)
    assert counts(await settled(management, 3)) == {"controlPlane": 1, "worker": 3}


async def test_a_number_that_an_autoscaler_owns_is_not_written_into_the_topology(management: Management) -> None:
    """CR-091: the number of the MachineDeployment is set, within the limits; the topology would take it back for ever."""
    files = files_of(SAMPLE)
    limits = "".join(f'              {LIMIT.format(end)}: "{size}"\n' for end, size in (("min", 1), ("max", 3)))
    name, text = next((name, text) for name, text in files.items() if "          name: md-0\n" in text)
    found = "          name: md-0\n"
    files[name] = text.replace(found, f"{found}          metadata:\n            annotations:\n{limits}", 1)
    assert counts(await built(management, files)) == {"controlPlane": 1, "worker": 1}
    await management.scale_topology({"md-0": 3})
    assert counts(await settled(management, 2)) == {"controlPlane": 1, "worker": 3}
    assert "replicas" not in part_of(await shown(management), "md-0")  # type: ignore[operator]
    with pytest.raises(OutsideAutoscaler, match="4 replicas wanted, 1 to 3 expected"):
        await management.scale_topology({"md-0": 4}, operation="op3")
    (workers,) = management.lab.store.list(DEPLOYMENTS, "default")
    assert value_at(workers, "spec", "replicas") == 3


async def test_a_part_that_the_topology_lacks_is_refused_by_name(management: Management) -> None:
    """CR-086: another party may have changed the topology."""
    await built(management)
    with pytest.raises(Unprocessable, match=r"spec\.topology: Cluster default/workload has no md-9"):
        await management.scale_topology({"md-9": 1})


# --- pure functions -----------------------------------------------------------------------------------------------------

LIVE: dict[str, Any] = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Cluster",
    "metadata": {
        "name": "workload",
        "namespace": "default",
        "uid": "u1",
        "resourceVersion": "7",
        "labels": {"ours": "yes", "theirs": "yes"},
        "finalizers": ["cluster.cluster.x-k8s.io"],
        "managedFields": [
            {"manager": "kubevnfm", "operation": "Update", "apiVersion": "cluster.x-k8s.io/v1beta1", "fieldsV1": {}},
            {
                "manager": "kubevnfm",
                "operation": "Apply",
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:ours": {}}},
                    "f:spec": {
                        "f:clusterNetwork": {"f:pods": {"f:cidrBlocks": {}}},
                        "f:topology": {
                            "f:controlPlane": {},
                            "f:version": {},
                            "f:workers": {
                                "f:machineDeployments": {
                                    'k:{"name":"md-0"}': {".": {}, "f:class": {}, "f:name": {}, "f:replicas": {}},
                                    'k:{"name":"gone"}': {".": {}, "f:name": {}},
                                }
                            },
                        },
                        "f:names": {'v:"a"': {}},
                    },
                },
            },
        ],
    },
    "spec": {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "serviceDomain": "cluster.local"},
        "controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443},
        "names": ["a", "b"],
        "topology": {
            "version": "v1.33.1",
            "controlPlane": {},
            "workers": {
                "machineDeployments": [
                    {"class": "w", "name": "md-0", "replicas": 1, "metadata": {"labels": {"theirs": "yes"}}},
                    {"class": "w", "name": "theirs", "replicas": 1},
                ],
                "machinePools": [{"class": "p", "name": "mp-0", "replicas": 1}],
            },
        },
    },
    "status": {"phase": "Provisioned"},
}
"""A Cluster as an API server stores it whose definition has lists with keys."""


def test_the_part_that_we_have_applied_is_found_in_what_others_have_added() -> None:
    """CR-086: an apply without the rest of our fields would remove them, and one with the fields of others would take them."""
    assert applied_version(LIVE) == "cluster.x-k8s.io/v1beta2"
    assert applied_part(LIVE, CLUSTER) == {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "workload", "namespace": "default", "uid": "u1", "labels": {"ours": "yes"}},
        "spec": {
            "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
            "names": ["a"],
            "topology": {
                "version": "v1.33.1",
                "controlPlane": {},
                "workers": {"machineDeployments": [{"class": "w", "name": "md-0", "replicas": 1}]},
            },
        },
    }
    assert applied_part({**LIVE, "metadata": {"managedFields": []}}, CLUSTER) is None


def test_a_number_is_set_in_what_was_applied() -> None:
    """CR-086: also that of a part that another party has added, and that of a MachinePool."""
    config = applied_part(LIVE, CLUSTER)
    assert config is not None
    changed = with_part_count(config, LIVE, "md-0", 3)
    assert changed["spec"]["topology"]["workers"]["machineDeployments"] == [
        {"class": "w", "name": "md-0", "replicas": 3}
    ]
    assert config["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"] == 1
    assert with_part_count(config, LIVE, "controlPlane", 3)["spec"]["topology"]["controlPlane"] == {"replicas": 3}
    added = with_part_count(config, LIVE, "mp-0", 2)["spec"]["topology"]["workers"]
    assert added["machinePools"] == [{"name": "mp-0", "replicas": 2}]
    assert len(added["machineDeployments"]) == 1


def test_a_machine_pool_of_a_topology_stands_for_a_vdu() -> None:
    """CR-050, CR-051."""
    pool = CLASS_VDUS[1].model_copy(update={"name": "mp-0", "replicas": 5})
    assert [each.name for each in topology_vdus(LIVE, [*CLASS_VDUS, pool])] == ["controlPlane", "md-0", "mp-0"]
    assert part_of(with_topology_replicas(LIVE, [pool]), "mp-0") == {"class": "p", "name": "mp-0", "replicas": 5}
