"""A management cluster of Cluster API as a CNF: the sample on the lab's stand-ins for cert-manager and Cluster API."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import yaml
from kubevnfm_events.capi import CheckClusters, ClustersChecked
from kubevnfm_infra_k8s.domain.errors import (
    ClustersExist,
    ClusterUnavailable,
    ContractGoesBack,
    ObjectFailed,
    ObjectsNotReady,
)
from kubevnfm_lab.faults import FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_lab.kubernetes.objects import Key, value_at
from kubevnfm_worker.outcome import Done
from worlds.capi_management import files_of

SAMPLE = files_of("capi-management")
NOT_YET = 'Internal error occurred: failed calling webhook "validation.cluster.cluster.x-k8s.io": connection refused'
PROBE = "patch clusters"


def messages(site: Any) -> list[str]:
    return [str(each.message) for each in site.progress]


async def install(site: Any, files: dict[str, str] | None = None, **more: Any) -> Any:
    return await site.apply(files or SAMPLE, multi_namespace=True, **more)


async def test_a_management_cluster_is_ready_when_its_webhooks_are_trusted_and_work(
    site: Any, lab: LabCluster, faults: FaultBook
) -> None:
    """CR-039, CR-040, CR-041: each webhook has its CA bundle, and Cluster API has denied a Cluster; none is left."""
    faults.add(part="kubernetes", verb=PROBE, status=500, message=NOT_YET, times=1)
    applied = await install(site)
    assert {each.kind for each in applied.objects} > {"Certificate", "ValidatingWebhookConfiguration", "Deployment"}
    hooks = lab.store.get(
        "validatingwebhookconfigurations.admissionregistration.k8s.io", Key("", "capi-validating-webhook-configuration")
    )
    assert hooks is not None
    assert all(each["clientConfig"]["caBundle"] for each in hooks["webhooks"])
    definition = lab.store.get("customresourcedefinitions.apiextensions.k8s.io", Key("", "clusters.cluster.x-k8s.io"))
    assert value_at(definition, "spec", "conversion", "webhook", "clientConfig", "caBundle")
    assert lab.store.list("clusters.cluster.x-k8s.io") == []
    said = [each for each in messages(site) if "to deny an invalid Cluster" in each]
    assert (len(said), "connection refused" in said[0]) == (1, True)


async def test_the_time_limit_names_what_the_webhook_answered(site: Any, faults: FaultBook) -> None:
    """CR-041: until the denial comes, the CNF is not ready; the same operation can be retried."""
    faults.add(part="kubernetes", verb=PROBE, status=500, message=NOT_YET)
    with pytest.raises(ObjectsNotReady, match=r"webhook of Cluster API does not work yet.*connection refused") as late:
        await install(site.timed_out_once_said("connection refused"), wait_timeout_s=600.0)
    assert late.value.remains is not None
    faults.clear()
    await install(site, attempt=2)


async def test_a_denial_of_another_webhook_does_not_count(site: Any, faults: FaultBook) -> None:
    """CR-041: a policy that refuses the Cluster says nothing of Cluster API."""
    denial = 'admission webhook "policy.example" denied the request: no owner'
    # A 403 is asked for twice: the server may have been starting.
    faults.add(part="kubernetes", verb=PROBE, status=403, message=denial, times=2)
    await install(site)
    assert any("to deny an invalid Cluster" in each and "no owner" in each for each in messages(site))


async def test_a_probe_that_does_not_fit_the_schema_fails_at_once(site: Any, faults: FaultBook) -> None:
    """CR-041: the API server itself would refuse it for ever."""
    faults.add(part="kubernetes", verb=PROBE, status=422, message="spec.fresh: Required value", times=1)
    with pytest.raises(ObjectFailed, match=r"its schema does not fit the probe: .*spec\.fresh"):
        await install(site)


async def test_a_webhook_without_its_certificate_is_awaited(site: Any) -> None:
    """CR-040: without cert-manager's Certificate there is no CA bundle, and the time limit names the webhooks."""
    documents = [
        each for each in yaml.safe_load_all(SAMPLE["Files/kubernetes/core.yaml"]) if each["kind"] != "Certificate"
    ]
    files = {**SAMPLE, "Files/kubernetes/core.yaml": yaml.safe_dump_all(documents)}
    with pytest.raises(ObjectsNotReady) as late:
        await install(site.timed_out_once_said("no CA bundle yet"), files, wait_timeout_s=600.0)
    for name in ("validation.cluster.cluster.x-k8s.io", "conversion"):
        assert f"no CA bundle yet for webhook {name}" in str(late.value)


def ends(lab: LabCluster) -> list[str]:
    """Return the resources of which objects are deleted from now on, in order."""
    seen: list[str] = []
    lab.store.subscribe(lambda change: seen.append(change.resource) if change.kind == "DELETED" else None)
    return seen


async def test_webhooks_are_deleted_first_and_definitions_and_namespaces_last(site: Any, lab: LabCluster) -> None:
    """CR-044, CR-111: and nothing is left."""
    await install(site)
    seen = ends(lab)
    done = await site.delete()
    assert done.left == ()
    order = [
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "certificates.cert-manager.io",
        "deployments.apps",
        "customresourcedefinitions.apiextensions.k8s.io",
        "namespaces",
    ]
    places = {name: [at for at, each in enumerate(seen) if each == name] for name in order}
    for earlier, later in pairwise(order):
        assert max(places[earlier]) < min(places[later]), (earlier, later)
    assert lab.inventory()["objects"] == {}


@pytest.mark.parametrize("is_readable", [True, False])
async def test_definitions_with_resources_of_others_stay_and_are_reported(
    site: Any, lab: LabCluster, faults: FaultBook, is_readable: bool
) -> None:
    """CR-044, CR-022: also if they cannot be read any more, because the conversion webhook is gone; all else goes."""
    await install(site)
    template = {"metadata": {"name": "small", "namespace": "default"}, "spec": {}}
    lab.plane.create("openstackmachinetemplates.infrastructure.cluster.x-k8s.io", template)
    if not is_readable:
        message = "conversion webhook for infrastructure.cluster.x-k8s.io/v1beta1, Kind=OpenStackMachineTemplate failed"
        faults.add(part="kubernetes", verb="list openstackmachinetemplates", status=500, message=message)
    done = await site.delete()
    name = "openstackmachinetemplates.infrastructure.cluster.x-k8s.io"
    assert [(each.kind, each.name, each.cluster) for each in done.left] == [
        ("CustomResourceDefinition", name, lab.endpoint)
    ]
    assert f"CustomResourceDefinition {name}: stays: custom resources of it exist" in messages(site)
    assert list(lab.inventory()["objects"]) == [f"CustomResourceDefinition//{name}"]
    assert [each["metadata"]["name"] for each in lab.store.list(name)] == ["small"]


async def test_a_namespace_with_a_cluster_stays(site: Any, lab: LabCluster) -> None:
    """CR-044: its deletion would delete the cluster, for which no controller is left."""
    await install(site)
    lab.plane.create(
        "clusters.cluster.x-k8s.io", {"metadata": {"name": "foreign", "namespace": "capo-system"}, "spec": {}}
    )
    done = await site.delete()
    assert {(each.kind, each.name) for each in done.left} == {
        ("CustomResourceDefinition", "clusters.cluster.x-k8s.io"), ("Namespace", "capo-system")
    }  # fmt: skip
    assert "Namespace capo-system: stays: a Cluster of Cluster API is there" in messages(site)


# --- Clusters that need the providers ---------------------------------------------------------------------------------


async def checked(site: Any, *, force: bool = False) -> ClustersChecked:
    site.step = "check_clusters"
    command = CheckClusters(vnf_instance_id="i1", vim=site.vim, force=force)
    outcome = await site.handlers.check_clusters(command, site.context())
    assert isinstance(outcome, Done)
    assert isinstance(outcome.event, ClustersChecked)
    return outcome.event


def a_cluster(name: str, namespace: str = "default") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {}}


async def test_clusters_of_anyone_are_listed_and_refuse_the_deletion(site: Any, lab: LabCluster) -> None:
    """CR-043: with namespace and name, status 409; nothing is changed."""
    await install(site)
    assert (await checked(site)).clusters == ()
    for namespace in ("default", "capi-system"):
        lab.plane.create("clusters.cluster.x-k8s.io", a_cluster("edge", namespace))
    before = lab.inventory()["objects"]
    with pytest.raises(
        ClustersExist, match="the Clusters capi-system/edge, default/edge: delete those first"
    ) as refused:
        await checked(site)
    assert refused.value.status == 409
    assert lab.inventory()["objects"] == before


async def test_many_clusters_are_counted(site: Any, lab: LabCluster) -> None:
    """CR-043: an error names twenty."""
    await install(site)
    for number in range(25):
        lab.plane.create("clusters.cluster.x-k8s.io", a_cluster(f"edge-{number:02}"))
    with pytest.raises(ClustersExist, match=r"default/edge-19 and 5 more: delete"):
        await checked(site)


async def test_clusters_that_are_given_up_are_reported_with_their_machines(site: Any, lab: LabCluster) -> None:
    """CR-043: what a FORCEFUL termination orphans, with the servers behind it."""
    await install(site)
    lab.plane.create("clusters.cluster.x-k8s.io", a_cluster("edge"))
    machine = a_cluster("edge-1") | {"spec": {"clusterName": "edge", "providerID": "openstack:///1"}}
    machine["metadata"]["labels"] = {"cluster.x-k8s.io/cluster-name": "edge"}
    lab.plane.create("machines.cluster.x-k8s.io", machine)
    done = await checked(site, force=True)
    found = [(each.kind, each.namespace, each.name, each.provider_id) for each in done.clusters]
    assert found == [("Cluster", "default", "edge", None), ("Machine", "default", "edge-1", "openstack:///1")]
    assert all(each.uid and each.cluster == lab.endpoint for each in done.clusters)
    assert "these Clusters lose their controllers: default/edge" in messages(site)


async def test_a_set_that_brings_a_cluster_of_its_own_may_go_with_it(site: Any) -> None:
    """CR-043: the deletion of the inventory begins with it."""
    cluster = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", **a_cluster("own")}
    cluster["spec"] = {"paused": True}
    await install(site, {**SAMPLE, "own.yaml": yaml.safe_dump(cluster)}, cluster_apart=True)
    assert (await checked(site)).clusters == ()


async def test_only_force_takes_a_cluster_that_does_not_answer_for_one_without_clusters(
    site: Any, lab: LabCluster, labs: LabClusters
) -> None:
    """CR-043, CR-023: a FORCEFUL termination ends, and its progress says what it does not know."""
    await install(site)
    await labs.close_at(lab.address)
    with pytest.raises(ClusterUnavailable):
        await checked(site)
    assert (await checked(site, force=True)).clusters == ()
    assert site.progress[-1].state == "failed"
    assert messages(site)[-1].endswith("its Clusters are not known")


# --- upgrades ---------------------------------------------------------------------------------------------------------

CORE = "Files/kubernetes/core.yaml"
INFRASTRUCTURE = "Files/kubernetes/infrastructure.yaml"
TEMPLATES = "openstackmachinetemplates.infrastructure.cluster.x-k8s.io"


def changed(file: str, *changes: tuple[str, str]) -> dict[str, str]:
    """Return the sample with texts of a file replaced."""
    text = SAMPLE[file]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return {**SAMPLE, file: text}


async def test_an_upgrade_applies_definitions_before_controllers_and_reports_the_versions(
    site: Any, lab: LabCluster, faults: FaultBook
) -> None:
    """CR-045, CR-046, CR-041: as read from the cluster; the webhook is probed again."""
    applied = await install(site)
    assert applied.providers is not None
    assert [each.name for each in applied.providers.infrastructure] == ["openstack"]
    assert applied.providers.core.version == "v1.14.2"
    written: list[str] = []
    lab.store.subscribe(lambda change: written.append(change.resource) if change.kind == "MODIFIED" else None)
    faults.add(part="kubernetes", verb=PROBE, status=500, message=NOT_YET, times=1)
    newer = changed(
        CORE,
        ("version: v1.14.2", "version: v1.15.0"),
        ("pause:3.10", "pause:3.11"),
        ("    - cl\n", "    - cl\n    - cls\n"),
    )
    done = await site.replace(newer, multi_namespace=True)
    assert done.providers is not None
    assert done.providers.core.version == "v1.15.0"
    assert any("to deny an invalid Cluster" in each for each in messages(site))
    # In the rehearsal nothing is written.
    first = {
        name: written.index(name) for name in ("customresourcedefinitions.apiextensions.k8s.io", "deployments.apps")
    }
    assert list(first.values()) == sorted(first.values())


async def test_the_contract_of_a_provider_never_goes_back(site: Any, lab: LabCluster) -> None:
    """CR-046: 422 with both contracts, and nothing was changed, so that a rollback has nothing to undo."""
    await install(site)
    before = lab.store.revision
    older = changed(INFRASTRUCTURE, ("    cluster.x-k8s.io/v1beta2: v1beta2\n", ""))
    with pytest.raises(
        ContractGoesBack, match=r"infrastructure-openstack: contract v1beta1, .* older than v1beta2"
    ) as refused:
        await site.replace(older, multi_namespace=True)
    assert (refused.value.status, refused.value.made_nothing) == (422, True)
    assert lab.store.revision == before


async def test_a_provider_that_a_package_lacks_leaves_its_definitions_in_use(site: Any, lab: LabCluster) -> None:
    """CR-046, CR-022: its controllers go."""
    await install(site)
    lab.plane.create(TEMPLATES, a_cluster("small"))
    rest = {name: text for name, text in SAMPLE.items() if name != INFRASTRUCTURE}
    await site.replace(rest, multi_namespace=True)
    left = [name for name in lab.inventory()["objects"] if "openstack" in name or "capo" in name]
    assert left == [f"CustomResourceDefinition//{TEMPLATES}"]
