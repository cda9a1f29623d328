"""Scale, heal and change of package of what runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kubevnfm_events.objects import ObjectFacts, ObjectsApplied, VduTarget
from kubevnfm_infra_k8s.adapters.documents import StoredReleases
from kubevnfm_infra_k8s.domain.changing.applied_fields import applied_part, applied_version
from kubevnfm_infra_k8s.domain.errors import ObjectsNotReady, ObjectsRefused
from kubevnfm_infra_k8s.domain.objects import ObjectKey, annotations_of, labels_of
from kubevnfm_store.sqlite.store import SqliteStore
from packages.kubernetes_objects import a_deployment, a_job, a_pod, an_object, things_of
from worlds.lives import Lives

VDUS = (VduTarget(vdu_id="WEB", name="web"), VduTarget(vdu_id="BARE", name="bare"))


def uids(done: ObjectsApplied, vdu_id: str) -> set[str]:
    return {pod.uid for pod in done.pods if pod.vdu_id == vdu_id}


def web_of(done: ObjectsApplied) -> ObjectFacts:
    return next(one for one in done.objects if one.vdu_id == "WEB")


async def test_a_deployment_is_scaled_out_and_in(ground: Any) -> None:
    """CR-033, CR-093: pods that leave are gone, and the count may be asked for twice."""
    before = await ground.apply(a_deployment(), vdus=VDUS)
    out = await ground.site.scale({web_of(before): 4}, instance=ground.namespace, operation="out")
    again = await ground.site.scale({web_of(before): 4}, instance=ground.namespace, operation="out")
    assert (len(uids(out, "WEB")), uids(before, "WEB") < uids(out, "WEB")) == (4, True)
    assert uids(again, "WEB") == uids(out, "WEB")
    less = await ground.site.scale({web_of(before): 1}, instance=ground.namespace, operation="in")
    assert (len(uids(less, "WEB")), uids(less, "WEB") < uids(out, "WEB")) == (1, True)


async def test_the_part_that_we_have_applied_is_found_again(ground: Any) -> None:
    """CR-086: as the API server has recorded it, with lists whose items have keys, and without what its controllers add."""
    await ground.apply(a_deployment(), vdus=VDUS)
    resource = await ground.cluster.resource("apps/v1", "Deployment")
    key = ObjectKey("apps/v1", "Deployment", ground.namespace, "web")
    body: Any = await ground.shown("apps/v1", "Deployment", "web")
    assert applied_version(body) == "apps/v1"
    part: Any = applied_part(body, key)
    assert set(part) == {"apiVersion", "kind", "metadata", "spec"}
    assert "deployment.kubernetes.io/revision" in annotations_of(body).keys() - annotations_of(part).keys()
    assert "strategy" in body["spec"].keys() - part["spec"].keys()
    again = await ground.cluster.apply(resource, key, part, dry_run=True)
    assert (again["spec"], labels_of(again)) == (body["spec"], labels_of(body))
    part["spec"]["replicas"] = 1
    changed = await ground.cluster.apply(resource, key, part, dry_run=True)
    assert changed["spec"] == {**body["spec"], "replicas": 1}


async def test_pods_are_replaced_one_by_one_or_from_their_manifest(ground: Any) -> None:
    """CR-034."""
    bare = an_object("Pod", "bare", spec=a_pod()["spec"])
    before = await ground.apply(a_deployment(), bare, vdus=VDUS)
    ill = [pod for pod in before.pods if pod.vdu_id == "BARE" or pod.uid == min(uids(before, "WEB"))]
    after = await ground.site.heal(
        ill, def_files=["f.yaml"], vdus=VDUS, instance=ground.namespace, namespace=ground.namespace
    )
    assert {pod.uid for pod in before.pods} - {pod.uid for pod in after.pods} == {pod.uid for pod in ill}
    assert len(after.pods) == len(before.pods) == 3


async def test_other_manifests_are_applied_and_what_they_lack_is_pruned(ground: Any) -> None:
    """CR-022, CR-035, CR-094: a Namespace with an object of another client stays, an empty one goes."""
    guest, empty = (an_object("Namespace", ground.own_name(name)) for name in ("guest", "empty"))
    settings = an_object("ConfigMap", "settings", data={"k": "v"})
    await ground.apply(guest, empty, settings, a_deployment(), vdus=VDUS, multi_namespace=True)
    place = guest["metadata"]["name"]
    secret = an_object("Secret", "of-others", metadata={"namespace": place})
    resource = await ground.cluster.resource("v1", "Secret")
    await ground.cluster.apply(resource, ObjectKey("v1", "Secret", place, "of-others"), secret)
    new = {"f.yaml": [a_deployment(replicas=1), an_object("ConfigMap", "more", data={"k": "v"})]}
    done = await ground.site.replace(
        new,
        vdus=(VduTarget(vdu_id="WEB", name="web", replicas=3),),
        instance=ground.namespace,
        namespace=ground.namespace,
    )
    assert {one.name for one in done.objects} == {"web", "more", place}
    assert len(uids(done, "WEB")) == 3
    assert await ground.shown("v1", "ConfigMap", "settings") is None
    assert await ground.shown("v1", "Namespace", empty["metadata"]["name"]) is None
    assert await ground.shown("v1", "Namespace", place) is not None


def a_disk(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a volume, and the spec of a claim that only it serves."""
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Mi"}}}
    volume = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": name,
        "capacity": {"storage": "1Mi"},
        "hostPath": {"path": "/tmp/disk"},
    }
    return an_object("PersistentVolume", name, spec=volume), claim


async def test_a_stateful_set_mounts_its_claim_templates_and_its_claims_go_with_it(ground: Any) -> None:
    """CR-023, CR-029: an API server accepts a mount that only a claim template names."""
    pod = a_pod()
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    volume, claim = a_disk(ground.own_name("disk"))
    spec = {
        "serviceName": "db",
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": pod,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    service = an_object(
        "Service", "db", spec={"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]}
    )
    await ground.apply(
        volume,
        service,
        an_object("StatefulSet", "db", api_version="apps/v1", spec=spec),
    )
    assert await ground.shown("v1", "PersistentVolumeClaim", "data-db-0") is not None
    await ground.delete()
    assert await ground.shown("v1", "PersistentVolumeClaim", "data-db-0") is None


async def test_a_mount_that_no_volume_has_is_refused(ground: Any) -> None:
    """CR-017: neither the pod nor a claim template names it."""
    body = a_deployment()
    body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "missing", "mountPath": "/data"}]
    with pytest.raises(ObjectsRefused, match=r'volumeMounts\[0\]\.name: Not found: "missing"'):
        await ground.apply(body)


def with_selector(value: str) -> dict[str, Any]:
    """Return a Deployment that differs in its selector."""
    pod = a_pod()
    pod["metadata"]["labels"] = {"app": "web", "v": value}
    body = a_deployment(pod=pod, replicas=1)
    body["spec"]["selector"] = {"matchLabels": {"app": "web", "v": value}}
    return body


async def test_what_cannot_be_changed_is_replaced_where_that_is_allowed(ground: Any) -> None:
    """CR-035: a Job that has ended always; other kinds if the request names them, or an annotation the object."""
    await ground.apply(a_job("once"), with_selector("a"), an_object("ConfigMap", "c", data={"a": "1"}, immutable=True))
    before = {
        kind: (await ground.shown(version, kind, name))["metadata"]["uid"]
        for version, kind, name in (
            ("batch/v1", "Job", "once"),
            ("apps/v1", "Deployment", "web"),
            ("v1", "ConfigMap", "c"),
        )
    }
    changed = [
        a_job("once", command="echo two"),
        with_selector("b"),
        an_object("ConfigMap", "c", data={"a": "2"}, immutable=True),
    ]
    place = {"instance": ground.namespace, "namespace": ground.namespace}
    with pytest.raises(ObjectsRefused) as caught:
        await ground.site.replace({"f.yaml": changed}, operation="refused", **place)
    said = sorted(str(each) for each in caught.value.refusals)
    way_out = (
        'additionalParams.replace: [{0}], or the annotation kubevnfm.io/replace: "true" of its manifest, allows it'
    )
    assert said == [
        f"{kind} {ground.namespace}/{name}: {field} is immutable, so the object would have to be replaced: {way_out.format(kind)}"
        for kind, name, field in (("ConfigMap", "c", "data"), ("Deployment", "web", "spec.selector"))
    ]
    assert (await ground.shown("batch/v1", "Job", "once"))["metadata"]["uid"] == before["Job"]
    changed[2]["metadata"]["annotations"] = {"kubevnfm.io/replace": "true"}
    done = await ground.site.replace({"f.yaml": changed}, operation="allowed", replace_kinds=("Deployment",), **place)
    now = {each.kind: each.uid for each in done.objects}
    assert now.keys() == before.keys()
    assert all(now[kind] != before[kind] for kind in before)
    assert (await ground.shown("v1", "ConfigMap", "c"))["data"] == {"a": "2"}
    assert (await ground.shown("batch/v1", "Job", "once"))["status"]["succeeded"] == 1
    # Nothing has changed: nothing is replaced.
    again = await ground.site.replace({"f.yaml": changed}, operation="again", replace_kinds=("Deployment",), **place)
    assert {each.kind: each.uid for each in again.objects} == now


async def test_a_job_that_runs_is_not_replaced_by_itself(ground: Any) -> None:
    """CR-035: but it is when the change is taken back that has made it."""
    await ground.apply(a_job("once"))
    place = {"instance": ground.namespace, "namespace": ground.namespace}
    running = a_job("once", annotations=ground.fate("stuck"))
    hurried = replace(ground, site=ground.site.with_changes(ready_timeout_s=1.0))
    with pytest.raises(ObjectsNotReady):
        await hurried.site.replace({"f.yaml": [running]}, operation="change", **place)
    with pytest.raises(
        ObjectsRefused, match=r"spec\.template is immutable, .* replaced: it has not ended; additionalParams"
    ):
        await ground.site.replace({"f.yaml": [a_job("once", command="echo two")]}, operation="other", **place)
    await ground.site.replace({"f.yaml": [a_job("once")]}, operation="change", attempt=2, is_undo=True, **place)
    assert (await ground.shown("batch/v1", "Job", "once"))["status"]["succeeded"] == 1


def a_database(service: str, claim: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return a StatefulSet whose claim goes with it; the name of its service cannot be changed."""
    pod = a_pod()
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    spec = {
        "serviceName": service,
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": pod,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return an_object("StatefulSet", "db", api_version="apps/v1", spec=spec, metadata=metadata)


async def test_a_replacement_keeps_claims_and_is_taken_back(ground: Any, store: SqliteStore) -> None:
    """CR-035: beside a new kind, whatever the process dies at, and without the annotation in the earlier manifest."""
    deaths, handlers = Lives(), ground.site.handlers
    mortal = ground.site.with_changes(
        clusters=deaths.clusters(handlers.clusters), releases=StoredReleases(deaths.store(store))
    )
    volume, disk = a_disk(ground.own_name("disk"))
    await ground.apply(volume, a_database("one", disk))
    place = {"instance": ground.namespace, "namespace": ground.namespace, "operation": "change"}

    async def seen() -> tuple[str, ...]:
        found = [
            await ground.shown("apps/v1", "StatefulSet", "db"),
            await ground.shown("v1", "PersistentVolumeClaim", "data-db-0"),
        ]
        assert found[0]["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
        return found[0]["spec"]["serviceName"], *(each["metadata"]["uid"] for each in found)

    _, first, claim = await seen()
    changed = [
        volume,
        things_of(f"{ground.namespace}.example.com"),
        a_database("two", disk, annotations={"kubevnfm.io/replace": "true"}),
    ]
    await deaths.until_done(lambda: mortal.replace({"f.yaml": changed}, **place))
    assert {each.partition(" ")[0] for each in deaths.deaths} >= {"patch", "delete", "apply"}
    service, second, kept = await seen()
    assert (service, kept) == ("two", claim)
    assert second != first
    await deaths.until_done(
        lambda: mortal.replace(
            {"f.yaml": [volume, a_database("one", disk)]}, package_id="p-before", attempt=2, is_undo=True, **place
        )
    )
    service, third, kept = await seen()
    assert (service, kept) == ("one", claim)
    assert third not in (first, second)


async def test_a_definition_and_its_resource_change_together(ground: Any) -> None:
    """CR-017: the resource has a field of the new definition; a wrong field in the one that does not change is named first."""
    group = f"{ground.namespace}.example.com"

    def objects(*fields: str, used: str) -> dict[str, Any]:
        definition = things_of(group)
        spec = {"type": "object", "properties": {each: {"type": "string"} for each in fields}}
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"spec": spec}
        return {"f.yaml": [definition, an_object("Thing", "t", api_version=f"{group}/v1", spec={used: "1"})]}

    place = {"instance": ground.namespace, "namespace": ground.namespace}
    await ground.apply(*objects("a", used="a")["f.yaml"])
    with pytest.raises(ObjectsRefused, match="b: field not declared in schema"):
        await ground.site.replace(objects("a", used="b"), package_id="p-wrong", operation="wrong", **place)
    await ground.site.replace(objects("a", "b", used="b"), package_id="p-right", operation="right", **place)
    thing: Any = await ground.shown(f"{group}/v1", "Thing", "t")
    assert thing["spec"] == {"b": "1"}


async def test_what_would_not_come_again_is_not_replaced(ground: Any) -> None:
    """CR-035: what holds data, and an object that would be refused also as a new one; both are named, and stay."""
    volume, claim = a_disk(ground.own_name("disk"))
    before = [volume, with_selector("a"), an_object("PersistentVolumeClaim", "data", spec=claim)]
    before[1]["spec"]["template"]["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    await ground.apply(*before)
    web: Any = await ground.shown("apps/v1", "Deployment", "web")
    after = [
        volume,
        with_selector("b"),
        an_object("PersistentVolumeClaim", "data", spec={**claim, "accessModes": ["ReadOnlyMany"]}),
    ]
    after[1]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "missing", "mountPath": "/data"}]
    with pytest.raises(ObjectsRefused) as caught:
        await ground.site.replace(
            {"f.yaml": after}, instance=ground.namespace, namespace=ground.namespace,
            replace_kinds=("Deployment", "PersistentVolumeClaim"),
        )  # fmt: skip
    said = sorted(str(each) for each in caught.value.refusals)
    assert len(said) == 2
    assert said[0].startswith(f"Deployment {ground.namespace}/web: ")
    assert 'volumeMounts[0].name: Not found: "missing"' in said[0]
    assert "immutable" not in said[0]
    assert said[1].endswith(
        "so the object would have to be replaced: its data would go with it; give the new one another name"
    )
    now: Any = await ground.shown("apps/v1", "Deployment", "web")
    assert now["metadata"]["uid"] == web["metadata"]["uid"]
