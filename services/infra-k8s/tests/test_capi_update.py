"""Update of workload clusters on the lab's stand-in for Cluster API: what is replaced, in which order, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from itertools import chain
from typing import Any

import pytest
from kubevnfm_events.capi import ClusterReached, UpdatePart
from kubevnfm_infra_k8s.domain.errors import ObjectRefused, ObjectsRefused
from kubevnfm_infra_k8s.domain.workload_clusters.classes import earlier_class
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_wait import kinds_of, objects_now
from kubevnfm_infra_k8s.domain.workload_clusters.references import references
from kubevnfm_infra_k8s.domain.workload_clusters.templates import renamed
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_lab.kubernetes.objects import Key, value_at
from worlds.capi_management import CLASS_VDUS, Management, files_of, managed

CLUSTER, PLANE, WORKERS = (f"Files/kubernetes/{name}.yaml" for name in ("cluster", "control-plane", "workers"))
TEMPLATES = "openstackmachinetemplates.infrastructure.cluster.x-k8s.io"
BOOTSTRAPS = "kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io"
MACHINES = "machines.cluster.x-k8s.io"
PARTS: tuple[UpdatePart, ...] = ("check", "control_plane", "all", "prune")


@pytest.fixture
async def management(site: Any, lab: LabCluster) -> AsyncIterator[Management]:
    async with managed(site, lab) as management:
        yield management


async def built(management: Management, sample: str = "capi-workload") -> ClusterReached:
    """Return the cluster of a sample, available with one Machine of the control plane and two workers."""
    vdus = management.vdus_of(sample)
    await management.apply(sample)
    await management.wait("initialized", vdus=vdus)
    await management.addons()
    return await management.wait("available", vdus=vdus)


def changed(*changes: tuple[str, str, str], sample: str = "capi-workload") -> dict[str, str]:
    """Return the files of a sample with other texts: (file, old, new)."""
    files = files_of(sample)
    for name, old, new in changes:
        assert old in files[name]
        files[name] = files[name].replace(old, new)
    return files


async def updated(management: Management, files: dict[str, str], *, operation: str = "op2", **more: Any) -> Any:
    """Do the whole update; return the Machines."""
    for each in PARTS:
        event = await management.update(files, each, operation=operation, **more)
        if each in ("control_plane", "all"):
            attempt = int(operation[2:]) * 10 + PARTS.index(each)
            reached = await management.wait("available", attempt=attempt, is_settled=True, **more)
    assert event.objects
    return reached


def names(management: Management, resource: str) -> Sequence[str]:
    return sorted(each["metadata"]["name"] for each in management.lab.store.list(resource, "default"))


def uids(reached: ClusterReached, vdu_id: str) -> set[str]:
    return {each.uid for each in reached.machines if each.vdu_id == vdu_id}


FLAVOR = (WORKERS, "name: m1.medium", "name: m1.large")


@pytest.mark.parametrize("sample", ["capi-workload", "capi-workload-v1beta1"])
async def test_a_changed_template_becomes_another_one_and_its_machines_follow(
    management: Management, sample: str
) -> None:
    """CR-094, CR-095, CR-096, CR-100: by both contracts; a repeat changes nothing, and the way back finds the old name."""
    before = await built(management, sample)
    flavor = (WORKERS, "m1.medium", "m1.large")
    after = await updated(management, changed(flavor, sample=sample))
    assert uids(after, "controlPlane") == uids(before, "controlPlane")
    assert uids(after, "worker").isdisjoint(uids(before, "worker"))
    # The replicas are those of the scale level, not those of the manifest.
    assert Counter(each.vdu_id for each in after.machines) == {"controlPlane": 1, "worker": 2}
    kept, other = names(management, TEMPLATES)
    assert (kept, other.rpartition("-")[0], len(other.rpartition("-")[2])) == (
        "workload-control-plane", "workload-md-0", 8,
    )  # fmt: skip
    release = await management.site.handlers.releases.get("i1")
    pairs = {entry.key.name: entry.manifest_name for entry in release.entries if entry.manifest_name}
    assert pairs == {other: "workload-md-0"}

    again = await updated(management, changed(flavor, sample=sample), operation="op3")
    assert {each.uid for each in again.machines} == {each.uid for each in after.machines}
    assert names(management, TEMPLATES) == [kept, other]

    back = await updated(management, files_of(sample), operation="op4")
    assert uids(back, "worker").isdisjoint(uids(after, "worker"))
    assert len(names(management, TEMPLATES)) == 2


def records(management: Management) -> dict[str, list[tuple[str, str]]]:
    """Return by kind: how often and in which versions kubevnfm has applied the objects of the cluster."""
    found: dict[str, list[tuple[str, str]]] = {}
    for resource in management.lab.store.resources_with_objects():
        for each in management.lab.store.list(resource, "default"):
            if each["metadata"].get("labels", {}).get("kubevnfm.io/vnf-instance-id") == "i1" and "x-k8s.io" in resource:
                entries = [one for one in each["metadata"].get("managedFields", ()) if one["operation"] == "Apply"]
                versions = [(one["manager"], one["apiVersion"].rpartition("/")[2]) for one in entries]
                found.setdefault(each["kind"], []).extend(versions)
    return found


async def test_a_package_of_another_api_version_is_applied_by_one_manager_in_one_version(
    management: Management, ledger: CallLedger
) -> None:
    """CR-036, CR-038: applied in full, and once more; what the new files lack goes, and comes back with the old ones."""
    old = files_of("capi-workload-v1beta1")
    old[CLUSTER] = old[CLUSTER].replace(
        "metadata:\n  name: workload\n", "metadata:\n  name: workload\n  labels: {old: 'yes'}\n", 1
    )
    await management.apply("capi-workload-v1beta1", files=old)
    await management.wait("initialized")
    await management.addons()
    before = await management.wait("available")
    assert set(chain(*records(management).values())) == {("kubevnfm", "v1beta1")}
    clusters, key = "clusters.cluster.x-k8s.io", Key("default", "workload")

    files = files_of("capi-workload")
    management.version = "v1beta2"
    for operation, applies in (("op2", 2), ("op3", 1)):
        ledger.clear()
        await management.update(files, "control_plane", operation=operation)
        sent = {each["verb"]: each["count"] for each in ledger.calls() if each["part"] == "kubernetes"}
        assert sent["patch clusters"] == applies
    after = await updated(management, files, operation="op4")
    assert set(chain(*records(management).values())) == {("kubevnfm", "v1beta2")}
    assert "old" not in labels_of(management, clusters, key)
    assert Counter(each.vdu_id for each in after.machines) == Counter(each.vdu_id for each in before.machines)
    release = await management.site.handlers.releases.get("i1")
    assert {entry.key.api_version.rpartition("/")[2] for entry in release.entries if entry.key.is_custom} == {"v1beta2"}

    management.version = "v1beta1"
    await updated(management, old, operation="op5")
    assert set(chain(*records(management).values())) == {("kubevnfm", "v1beta1")}
    assert labels_of(management, clusters, key)["old"] == "yes"


def labels_of(management: Management, resource: str, key: Key) -> dict[str, str]:
    found = management.lab.store.get(resource, key)
    assert found is not None
    return dict(found["metadata"]["labels"])


async def test_a_changed_bootstrap_template_that_no_webhook_refuses_rolls_out_too(management: Management) -> None:
    """CR-095, CR-097: the dry run shows that the spec would change."""
    before = await built(management)
    after = await updated(management, changed((WORKERS, "value: external", "value: none")))
    assert uids(after, "worker").isdisjoint(uids(before, "worker"))
    assert [name.rpartition("-")[0] for name in names(management, BOOTSTRAPS)] == ["workload-md-0"]
    assert names(management, TEMPLATES) == ["workload-control-plane", "workload-md-0"]


async def test_a_template_in_use_is_not_pruned(management: Management) -> None:
    """CR-096: a MachineSet of the earlier revision refers to it; it stays in the inventory."""
    await built(management)
    await updated(management, changed(FLAVOR))
    old = next(name for name in names(management, TEMPLATES) if name.startswith("workload-md-0"))
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachineTemplate", "name": old}
    template = {"spec": {"infrastructureRef": reference}}
    spec = {"clusterName": "another", "replicas": 0, "template": template}
    management.lab.plane.create(
        "machinesets.cluster.x-k8s.io", {"metadata": {"name": "earlier", "namespace": "default"}, "spec": spec}
    )
    await updated(management, files_of("capi-workload"), operation="op3")
    assert old in names(management, TEMPLATES)
    release = await management.site.handlers.releases.get("i1")
    assert old in [entry.key.name for entry in release.entries]


async def test_the_workers_follow_the_version_of_their_control_plane(management: Management) -> None:
    """CR-098, CR-100: they keep their version until every Machine of the control plane has the new one."""
    await built(management)
    files = changed((PLANE, "v1.33.1", "v1.34.0"), (WORKERS, "v1.33.1", "v1.34.0"))
    assert (await management.update(files, "check")).version_step == "v1.34.0"
    assert versions(management) == {"controlPlane": {"v1.33.1"}, "worker": {"v1.33.1"}}
    await management.update(files, "control_plane")
    await management.wait("available", attempt=2, is_settled=True)
    assert versions(management) == {"controlPlane": {"v1.34.0"}, "worker": {"v1.33.1"}}
    await management.update(files, "all")
    reached = await management.wait("available", attempt=3, is_settled=True)
    assert versions(management) == {"controlPlane": {"v1.34.0"}, "worker": {"v1.34.0"}}
    assert {each.version for each in reached.machines} == {"v1.34.0"}


def versions(management: Management) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"controlPlane": set(), "worker": set()}
    for each in management.lab.store.list(MACHINES, "default"):
        is_plane = "cluster.x-k8s.io/control-plane" in each["metadata"]["labels"]
        found["controlPlane" if is_plane else "worker"].add(str(value_at(each, "spec", "version")))
    return found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((PLANE, "version: v1.33.1", "version: v1.32.9"), r"spec\.version of .*v1\.32\.9 is below v1\.33\.1"),
        ((PLANE, "version: v1.33.1", "version: v1.35.0"), r"v1\.35\.0 is more than one minor version above v1\.33\.1"),
        ((PLANE, "version: v1.33.1", "version: latest"), r"latest: a version as v1\.33\.1 expected"),
        ((WORKERS, "version: v1.33.1", "version: v1.34.0"), r"v1\.34\.0 is above v1\.33\.1, that of the control plane"),
        ((CLUSTER, "192.168.0.0/16", "10.244.0.0/16"), r"clusterNetwork\.pods\.cidrBlocks.*192\.168\.0\.0/16"),
        ((CLUSTER, "10.96.0.0/12", "10.0.0.0/16"), r"clusterNetwork\.services\.cidrBlocks"),
        (
            (
                CLUSTER,
                "  controlPlaneRef:",
                "  controlPlaneEndpoint:\n    host: other\n    port: 1\n  controlPlaneRef:",
            ),
            "spec.controlPlaneEndpoint",
        ),
        ((WORKERS, "clusterName: workload", "clusterName: another"), r"spec\.clusterName"),
        ((CLUSTER, "name: workload\nspec:\n  clusterNetwork", "name: w2\nspec:\n  clusterNetwork"), "found w2"),
    ],
)
async def test_what_cannot_change_is_refused_by_field_before_anything_is_sent(
    management: Management, change: tuple[str, str, str], said: str
) -> None:
    """CR-098, CR-099: versions that Kubernetes cannot reach, and what the machines were set up with."""
    await management.apply()
    await management.wait("initialized")
    with pytest.raises(InvalidInput, match=said) as refused:
        await management.update(changed(change), "check")
    assert refused.value.status == 422
    assert not sent_by(management, "op2")


def sent_by(management: Management, operation: str) -> list[str]:
    """Return the objects that an operation has applied."""
    store = management.lab.store
    everything = [each for resource in store.resources_with_objects() for each in store.list(resource, "default")]
    return [
        each["metadata"]["name"]
        for each in everything
        if (each["metadata"].get("annotations") or {}).get("kubevnfm.io/operation-id") == operation
    ]


async def test_the_denial_of_a_webhook_names_the_field_before_anything_is_sent(management: Management) -> None:
    """CR-099: a field of the KubeadmControlPlane that its webhook does not let change."""
    await management.apply()
    await management.wait("initialized")
    denied = changed(
        FLAVOR, (PLANE, "    clusterConfiguration:\n", "    clusterConfiguration:\n      certificatesDir: /other\n")
    )
    with pytest.raises(
        ObjectsRefused, match=r"kubeadmConfigSpec\.clusterConfiguration\.certificatesDir.*cannot be mod"
    ):
        await management.update(denied, "check")
    assert not sent_by(management, "op2")


async def test_a_denial_that_is_about_another_field_is_an_error(management: Management, faults: FaultBook) -> None:
    """CR-097: only a field that cannot change makes another object."""
    await management.apply()
    await management.wait("initialized")
    faults.add(
        part="kubernetes", verb="patch openstackmachinetemplates*", effect="fail", status=422,
        message="spec.template.spec.flavor: Required value",
    )  # fmt: skip
    with pytest.raises(ObjectRefused, match=r"flavor: Required value"):
        await management.update(changed(FLAVOR), "check")


async def test_what_another_package_lacks_is_pruned_and_what_it_adds_is_made(management: Management) -> None:
    """CR-094: after the new state is ready."""
    await built(management)
    more = (
        files_of("capi-workload")[WORKERS]
        .replace("workload-md-0", "workload-md-1")
        .replace("replicas: 1", "replicas: 2")
    )
    files = {name: text for name, text in files_of("capi-workload").items() if name != WORKERS}
    reached = await updated(management, {**files, "Files/kubernetes/more.yaml": more})
    assert Counter(each.owner_kind for each in reached.machines) == {"KubeadmControlPlane": 1, "MachineDeployment": 4}
    assert names(management, "machinedeployments.cluster.x-k8s.io") == ["workload-md-1"]
    assert names(management, TEMPLATES) == ["workload-control-plane", "workload-md-1"]


async def test_another_version_of_the_api_is_the_same_object(management: Management) -> None:
    """CR-094: a package of v1beta2 in place of one of v1beta1 prunes nothing, and its objects are applied in full."""
    before = await built(management, "capi-workload-v1beta1")
    management.version = "v1beta2"
    cluster = management.lab.store.get("clusters.cluster.x-k8s.io", Key("default", "workload"))
    await updated(management, files_of("capi-workload"))
    after = management.lab.store.get("clusters.cluster.x-k8s.io", Key("default", "workload"))
    assert value_at(cluster, "metadata", "uid") == value_at(after, "metadata", "uid")
    assert before.uid == value_at(after, "metadata", "uid")


def test_references_are_found_and_renamed_in_both_forms() -> None:
    """CR-095: group or version beside kind and name, at any depth."""
    name = ("infrastructure.cluster.x-k8s.io", "OpenStackMachineTemplate", "md-0")
    new = {"apiGroup": name[0], "kind": name[1], "name": name[2]}
    old = {"apiVersion": f"{name[0]}/v1beta1", "kind": name[1], "name": name[2]}
    spec = {"a": [{"templateRef": new}], "template": {"ref": old}, "name": "md-0"}
    assert list(references(spec)) == [name, name]
    assert renamed(spec, {name: "md-0-1"}) == {
        "a": [{"templateRef": {**new, "name": "md-0-1"}}], "template": {"ref": {**old, "name": "md-0-1"}}, "name": "md-0",
    }  # fmt: skip


async def test_a_change_of_a_class_is_done_once_its_clusters_follow(management: Management) -> None:
    """CR-095, CR-100: the workers are replaced, and until Cluster API has seen the class, nothing else says that they will be."""
    files = files_of("capi-workload-class")
    before = await built(management, "capi-workload-class")
    workload, vdus = management.cluster_of(), CLASS_VDUS
    async with management.site.handlers.connected(management.site.vim) as cluster:
        kinds = await kinds_of(cluster, workload, None)
        earlier = await objects_now(cluster, kinds, workload)
        assert await earlier_class(cluster, earlier) == ""
    head, _, tail = files["Files/kubernetes/class.yaml"].rpartition("name: m1.medium")
    after = await updated(
        management, {**files, "Files/kubernetes/class.yaml": f"{head}name: m1.large{tail}"}, vdus=vdus
    )
    assert uids(after, "controlPlane") == uids(before, "controlPlane")
    assert uids(after, "worker").isdisjoint(uids(before, "worker"))
    # The watch may still show these objects when the class has changed.
    async with management.site.handlers.connected(management.site.vim) as cluster:
        said = await earlier_class(cluster, earlier)
        assert "is made from workload-class-md-0, workload-class-md-0-" in said
        assert said.startswith("MachineDeployment workload-md-0-")
        assert await earlier_class(cluster, await objects_now(cluster, kinds, workload)) == ""
