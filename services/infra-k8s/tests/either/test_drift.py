"""Objects that other parties change while no operation runs: found by the owners of fields, from metadata alone."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope
from kubevnfm_events.objects import (
    CompareObjects,
    ExpectedObjects,
    ObjectsCompared,
    ObjectsDrift,
    ObjectsFinding,
    VduTarget,
)
from kubevnfm_events.vnfcs import ReadVnfcs, VnfcsRead
from kubevnfm_infra_k8s.domain.errors import ClusterUnavailable, ForeignObjects
from kubevnfm_infra_k8s.domain.objects import PODS, Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Propagation
from kubevnfm_infra_k8s.domain.watching.object_watches import ObjectWatches
from kubevnfm_infra_k8s.handlers.comparison import ComparisonHandler
from kubevnfm_infra_k8s.handlers.vnfcs import VnfcHandler
from kubevnfm_lab.faults import CallLedger
from kubevnfm_secrets import KeyRing
from packages.kubernetes_objects import a_deployment, a_job, a_pod, an_object, things_of
from patience import until, until_true
from servers.certificates import Authority

RBAC = "rbac.authorization.k8s.io/v1"
EVENTS = Resource("v1", "Event", "events", namespaced=True)
_PASSING = "artifacts:\n- {file: csr.yaml}\n- {file: job.yaml, wait: none}\n- {file: map.yaml, priority: 1}\n"


@dataclass
class Comparing:
    """The comparison of instances on the ground, and its findings."""

    ground: Any
    handler: ComparisonHandler
    bus: InProcessBus
    found: list[ObjectsFinding] = field(default_factory=list)

    async def keep(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, ObjectsCompared)
        self.found += delivery.envelope.data.findings
        return Ack()

    async def round(
        self, *instances: str, known: ObjectsDrift | None = None, revision: int = 7
    ) -> list[ObjectsFinding]:
        """Return the findings of one command about the instance of the ground, or about these."""
        self.found.clear()
        expected = tuple(
            ExpectedObjects(vnf_instance_id=each, revision=revision, known=known)
            for each in instances or [self.ground.namespace]
        )
        command = CompareObjects(vim=self.ground.site.vim, expected=expected)
        deadline = self.handler.clock.now() + timedelta(seconds=60)
        envelope = Envelope(data=command, source="/kubevnfm/lcm-api", deadline=deadline)
        assert await self.handler.compare_objects(Delivery(envelope, 1)) == Ack()
        await self.bus.quiet()
        return list(self.found)

    async def drift(self) -> ObjectsDrift:
        """Return the drift, once a watch has seen it."""

        async def found() -> ObjectsDrift | None:
            findings = await self.round()
            return findings[0].drift if findings else None

        return await until(found)

    async def named(self) -> dict[str, str]:
        """Return what has happened, by ``kind name``."""
        return {f"{each.kind} {each.name}": each.what for each in (await self.drift()).objects}


@pytest.fixture
async def comparing(ground: Any) -> AsyncIterator[Comparing]:
    site = ground.site
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(InProcessBus(KeyRing.from_text(KeyRing.new_key())))
        watches = await stack.enter_async_context(ObjectWatches.open(site.clusters))
        handler = ComparisonHandler(
            clusters=site.clusters, vims=site.handlers.vims, releases=site.handlers.releases,
            shared=site.handlers.shared, watches=watches, bus=bus, clock=site.handlers.clock,
        )  # fmt: skip
        comparing = Comparing(ground, handler, bus)
        await bus.consume_events("found", ["infra.objects.compared"], comparing.keep)
        yield comparing


def settings(name: str = "settings", **data: str) -> Body:
    return an_object("ConfigMap", name, data=data or {"k": "v"})


def webhook(ground: Any, ca_bundle: str) -> Body:
    """Return a webhook that is called for nothing."""
    rule = {
        "apiGroups": [f"{ground.namespace}.example"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["things"],
    }
    client = {"service": {"namespace": ground.namespace, "name": "review"}, "caBundle": ca_bundle}
    return {
        "name": "review.example.com", "clientConfig": client, "rules": [rule], "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
    }  # fmt: skip


async def change(ground: Any, api_version: str, kind: str, name: str, patch: Body) -> None:
    """Change an object as a person does with kubectl."""
    await ground.as_other(api_version, kind, name, patch)


async def delete(ground: Any, api_version: str, kind: str, name: str) -> None:
    resource = await ground.cluster.resource(api_version, kind)
    place = ground.namespace if resource.namespaced else ""
    key = ObjectKey(api_version, kind, place, name)
    await ground.cluster.delete(resource, key, propagation=Propagation.BACKGROUND)


async def test_the_present_pods_of_a_cnf_are_read_and_lost_workloads_named(comparing: Comparing) -> None:
    """CR-120a: a pod that others delete is replaced, and those of a workload that others delete are not."""
    ground, bus, reads = comparing.ground, comparing.bus, asyncio.Queue[VnfcsRead]()
    handler = VnfcHandler(
        ground.site.clusters, ground.site.handlers.vims, ground.site.handlers.releases, bus, comparing.handler.clock
    )

    async def keep(delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, VnfcsRead)
        reads.put_nowait(delivery.envelope.data)
        return Ack()

    async def read(**of: Any) -> VnfcsRead | None:
        asked: dict[str, Any] = {"vim": ground.site.vim, "vnf_instance_id": ground.namespace, "revision": 7, **of}
        envelope = Envelope(data=ReadVnfcs(**asked), source="/kubevnfm/lcm-api")
        assert await handler.read_vnfcs(Delivery(envelope, 1)) == Ack()
        await bus.quiet()
        return None if reads.empty() else reads.get_nowait()

    await bus.consume_events("read", ["infra.vnfcs.read"], keep)
    applied = await ground.apply(
        a_deployment(replicas=2, pod=a_pod(terminationGracePeriodSeconds=0)),
        vdus=[VduTarget(vdu_id="VDU1", name="web")],
    )
    first = await read()
    assert first is not None
    assert (first.pods, first.lost_vdus, first.revision) == (applied.pods, (), 7)
    assert await read(vnf_instance_id="another") is None
    gone = first.pods[0]
    assert await ground.cluster.delete(PODS, ObjectKey("v1", "Pod", gone.namespace, gone.name), grace_period_s=0)

    async def replaced() -> VnfcsRead | None:
        now = await read()
        return now if now is not None and len(now.pods) == 2 else None

    now = await until(replaced)
    assert {each.uid for each in first.pods} - {each.uid for each in now.pods} == {gone.uid}
    assert now.lost_vdus == ()
    await delete(ground, "apps/v1", "Deployment", "web")
    lost = await read()
    assert lost is not None
    assert lost.lost_vdus == ("VDU1",)


async def test_an_object_that_was_deleted_is_named_until_it_exists_again(comparing: Comparing) -> None:
    """CR-121: found by a watch, so that a quiet round costs no request."""
    ground = comparing.ground
    await ground.apply(settings(), a_deployment(replicas=1))
    assert await comparing.round() == []
    await delete(ground, "v1", "ConfigMap", "settings")
    drift = await comparing.drift()
    assert (drift.state, drift.missing, drift.changed) == ("INCOMPLETE", 1, 0)
    (one,) = drift.objects
    assert (one.kind, one.namespace, one.name, one.what) == ("ConfigMap", ground.namespace, "settings", "missing")
    (finding,) = await comparing.round()
    assert finding.revision == 7
    assert f"1 does not exist: ConfigMap {ground.namespace}/settings (missing)" in finding.reason
    assert await comparing.round(known=drift) == [], "it is known"
    await ground.apply(settings(), a_deployment(replicas=1), operation="again")

    async def ended() -> ObjectsFinding | None:
        return next(iter(await comparing.round(known=drift, revision=8)), None)

    assert (await until(ended)).drift is None


async def test_each_kind_of_change_by_others_is_found(comparing: Comparing) -> None:
    """CR-121: another value, a field that is gone, a number of replicas, our labels."""
    ground = comparing.ground
    names = ("value", "gone", "labels", "same", "added")
    await ground.apply(*(settings(name) for name in names), a_deployment(replicas=1))
    assert await comparing.round() == []
    await change(ground, "v1", "ConfigMap", "value", {"data": {"k": "w"}})
    await change(ground, "v1", "ConfigMap", "gone", {"data": {"k": None}})
    await change(ground, "v1", "ConfigMap", "labels", {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}})
    # Neither the same value nor a field that we do not have is a change of what we have applied.
    await change(ground, "v1", "ConfigMap", "same", {"data": {"k": "v"}})
    await change(ground, "v1", "ConfigMap", "added", {"data": {"other": "x"}})
    await ground.scale_as_other("web", 2)

    async def all_found() -> dict[str, str] | None:
        named = await comparing.named()
        return named if len(named) >= 4 else None

    assert await until(all_found) == dict.fromkeys(
        ("Deployment web", "ConfigMap value", "ConfigMap gone", "ConfigMap labels"), "changed"
    )
    assert (await comparing.drift()).state == "CHANGED"


async def test_what_kubevnfm_and_controllers_do_is_no_drift(comparing: Comparing, tmp_path: Path) -> None:
    """CR-121: our scaling, the status of controllers, a restart by hand, an autoscaler, a CA bundle that is injected."""
    ground = comparing.ground
    ours, injected = (base64.b64encode(Authority(tmp_path, name).file.read_bytes()).decode() for name in ("a", "b"))
    review = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", ground.own_name("review"))
    webhooks = [webhook(ground, ours)]
    before = await ground.apply(
        settings(), a_deployment(replicas=1), a_deployment("scaled", replicas=1),
        an_object(review[1], review[2], api_version=review[0], webhooks=webhooks),
    )  # fmt: skip
    assert await comparing.round() == []
    web = next(each for each in before.objects if each.name == "web")
    await ground.site.scale({web: 2}, instance=ground.namespace, operation="out")
    restarted = {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}
    await change(ground, "apps/v1", "Deployment", "web", restarted)
    await ground.autoscale("scaled", least=2)
    await change(ground, *review, {"webhooks": [webhook(ground, injected)]})
    assert await comparing.round(revision=8) == []
    # Another client's number is one.
    await ground.scale_as_other("web", 3)
    assert await comparing.named() == {"Deployment web": "changed"}


async def test_an_object_in_the_place_of_ours_is_another_one(comparing: Comparing) -> None:
    """CR-121."""
    ground = comparing.ground
    await ground.apply(settings())
    await delete(ground, "v1", "ConfigMap", "settings")
    await ground.create(settings(k="theirs"))
    assert await comparing.named() == {"ConfigMap settings": "replaced"}
    assert (await comparing.drift()).state == "MISSING", "nothing of the instance is left"


async def test_thousands_of_missing_objects_are_counted_and_some_are_named(comparing: Comparing) -> None:
    """CR-121: workloads of VDUs first, and the reason is short; in the lab, whose calls are counted, by one list."""
    ground = comparing.ground
    await ground.apply(*(settings(f"c{number}") for number in range(60)))
    assert await comparing.round() == []
    for number in range(50):
        await delete(ground, "v1", "ConfigMap", f"c{number}")

    async def complete() -> ObjectsFinding | None:
        findings = await comparing.round()
        return findings[0] if findings and findings[0].drift and findings[0].drift.missing == 50 else None

    finding = await until(complete)
    assert finding.drift is not None
    assert len(finding.drift.objects) == 20
    assert finding.reason.endswith("and 45 more")


async def test_a_quiet_round_sends_no_request(comparing: Comparing, ledger: CallLedger) -> None:
    """CR-121: one watch for each kind serves all instances. In the lab, which counts."""
    ground = comparing.ground
    others = [f"{ground.namespace}-{number}" for number in range(3)]
    for each in others:
        await ground.apply(settings(each), instance=each)
    assert await comparing.round(*others) == []
    # The watch begins a moment after its list.
    await until_true(lambda: asyncio.sleep(0, not counted(ledger) or counted(ledger).get("watch configmaps", 0) > 0))
    begun = counted(ledger)
    for _ in range(3):
        assert await comparing.round(*others) == []
    assert counted(ledger) == begun
    await delete(ground, "v1", "ConfigMap", others[1])

    async def found() -> ObjectsFinding | None:
        return next(iter(await comparing.round(*others)), None)

    assert (await until(found)).vnf_instance_id == others[1]
    for verb in ("watch configmaps", "list configmaps"):
        assert counted(ledger).get(verb, 0) == begun.get(verb, 0)


def counted(ledger: CallLedger) -> dict[str, int]:
    """Return the requests so far, by verb and resource; none for a real cluster."""
    return {each["verb"]: each["count"] for each in ledger.calls() if each["part"] == "kubernetes"}


async def test_a_token_of_a_namespace_compares_what_it_may_see(comparing: Comparing) -> None:
    """CR-121: it may not watch whole kinds, so each kind is watched in the namespace."""
    ground = comparing.ground
    comparing.ground = limited = await ground.limited()
    await limited.apply(settings())
    await comparing.round()
    assert await comparing.round() == []
    await delete(ground, "v1", "ConfigMap", "settings")
    assert await comparing.named() == {"ConfigMap settings": "missing"}


async def test_an_object_that_an_earlier_version_has_applied_is_judged_by_its_existence(comparing: Comparing) -> None:
    """CR-121: until the next operation, because nothing is known about its fields."""
    ground = comparing.ground
    await ground.apply(settings("kept"), settings("gone"))
    stored = await ground.site.store.get("k8s_releases", ground.namespace)
    body = {**stored.body, "objects": [{name: value for name, value in each.items() if name != "owned"}
                                       for each in stored.body["objects"]]}  # fmt: skip
    await ground.site.store.replace("k8s_releases", ground.namespace, body, if_revision=stored.revision)
    await change(ground, "v1", "ConfigMap", "kept", {"data": {"k": "w"}})
    await delete(ground, "v1", "ConfigMap", "gone")
    assert await comparing.named() == {"ConfigMap gone": "missing"}


async def test_a_shared_object_is_missing_for_each_holder(comparing: Comparing) -> None:
    """CR-021, CR-121: and exists for all of them once one has applied it again."""
    ground = comparing.ground
    first, second = f"{ground.namespace}-a", f"{ground.namespace}-b"
    role = an_object("ClusterRole", ground.own_name("reader"), api_version=RBAC, rules=[])
    for each in (first, second):
        await ground.apply(role, instance=each)
    assert await comparing.round(first, second) == []
    await delete(ground, RBAC, "ClusterRole", role["metadata"]["name"])

    async def by_both() -> bool | None:
        found = await comparing.round(first, second)
        return {each.vnf_instance_id for each in found} == {first, second} or None

    assert await until(by_both)
    await ground.apply(role, instance=first, operation="again")

    async def by_none() -> bool | None:
        return not await comparing.round(first, second) or None

    assert await until(by_none)


async def test_a_repair_applies_what_differs_and_leaves_all_else(comparing: Comparing) -> None:
    """CR-121: objects that are as they were applied keep their uids, versions and numbers of replicas."""
    ground = comparing.ground
    before = await ground.apply(
        settings("gone"),
        settings("changed"),
        settings("kept"),
        a_deployment(replicas=1),
        a_deployment("auto", replicas=1),
    )
    assert await comparing.round() == []
    await delete(ground, "v1", "ConfigMap", "gone")
    await delete(ground, "apps/v1", "Deployment", "web")
    await change(ground, "v1", "ConfigMap", "changed", {"data": {"k": "w", "theirs": "x"}})
    await ground.autoscale("auto", least=2)
    untouched = await ground.shown("v1", "ConfigMap", "kept")
    done = await ground.repair(operation="mend")
    assert done.repaired == 3
    after, same = ({each.name: each.uid for each in applied.objects} for applied in (done, before))
    assert {name for name, uid in after.items() if uid != same[name]} == {"gone", "web"}
    assert list(after) == list(same), "in the order in which they were applied"
    assert (await ground.shown("v1", "ConfigMap", "changed"))["data"] == {"k": "v", "theirs": "x"}
    assert await ground.shown("v1", "ConfigMap", "kept") == untouched
    assert (await ground.shown("apps/v1", "Deployment", "auto"))["spec"]["replicas"] == 2
    # Delivered once more.
    assert await ground.repair(operation="mend") == done
    assert await comparing.round(revision=8) == []
    await ground.delete()
    for name in same:
        assert await ground.shown("v1", "ConfigMap", name) is None


async def test_a_repair_with_nothing_to_do_says_so(comparing: Comparing) -> None:
    """CR-121."""
    ground = comparing.ground
    await ground.apply(settings())
    done = await ground.repair()
    assert (done.repaired, [each.name for each in done.objects]) == (0, ["settings"])
    assert "there is nothing to do" in ground.site.progress[-1].message


async def test_a_repair_creates_a_namespace_again_with_all_that_was_in_it(comparing: Comparing) -> None:
    """CR-121: it waits until the deletion has ended."""
    ground = comparing.ground
    inner = ground.own_name("inner")
    place: dict[str, Any] = {"metadata": {"namespace": inner}}
    await ground.apply(
        an_object("Namespace", inner), an_object("ConfigMap", "a", data={"k": "v"}, **place),
        an_object("ServiceAccount", "b", **place), multi_namespace=True,
    )  # fmt: skip
    assert await comparing.round() == []
    await delete(ground, "v1", "Namespace", inner)
    done = await ground.repair(multi_namespace=True, operation="mend")
    assert done.repaired == 3
    resource = await ground.cluster.resource("v1", "ConfigMap")
    found = await ground.cluster.get(resource, ObjectKey("v1", "ConfigMap", inner, "a"))
    assert found is not None
    assert not found["metadata"].get("deletionTimestamp")
    assert await comparing.round(revision=8) == []
    await ground.delete()
    assert await ground.shown("v1", "Namespace", inner) is None


async def test_a_definition_that_was_deleted_takes_its_resources_with_it(comparing: Comparing) -> None:
    """CR-121: nothing serves the kind any more; a repair creates definition and resources again."""
    ground = comparing.ground
    group = f"{ground.namespace}.example"
    await ground.apply(things_of(group), an_object("Thing", "t", api_version=f"{group}/v1", spec={}), settings())
    assert await comparing.round() == []
    await delete(ground, "apiextensions.k8s.io/v1", "CustomResourceDefinition", f"things.{group}")

    async def both() -> ObjectsDrift | None:
        drift = await comparing.drift()
        return drift if drift.missing == 2 else None

    drift = await until(both)
    assert sorted(each.kind for each in drift.objects) == ["CustomResourceDefinition", "Thing"]

    async def repaired() -> int | None:
        # Discovery may show the kind a while longer: the worker tries again what then finds no server.
        with suppress(ClusterUnavailable):
            return int((await ground.repair(operation="mend")).repaired)
        return None

    assert await until(repaired) == 2
    assert await ground.shown(f"{group}/v1", "Thing", "t") is not None

    async def ended() -> ObjectsFinding | None:
        return next(iter(await comparing.round(known=drift, revision=8)), None)

    assert (await until(ended)).drift is None


async def test_an_object_without_our_labels_is_scaled_repaired_and_deleted(comparing: Comparing) -> None:
    """CR-121: its uid says whose it is. With the label of another instance it is that one's."""
    ground = comparing.ground
    before = await ground.apply(a_deployment(replicas=1), settings("theirs"))
    none = {"metadata": {"labels": {"kubevnfm.io/vnf-instance-id": None, "app.kubernetes.io/managed-by": None}}}
    await change(ground, "apps/v1", "Deployment", "web", none)
    web = next(each for each in before.objects if each.name == "web")
    await ground.site.scale({web: 2}, instance=ground.namespace, operation="out")
    assert await comparing.round() == [], "the scaling has put the labels back"
    await change(ground, "apps/v1", "Deployment", "web", none)
    assert await comparing.named() == {"Deployment web": "changed"}
    assert (await ground.repair(operation="mend")).repaired == 1
    assert (await ground.shown("apps/v1", "Deployment", "web"))["spec"]["replicas"] == 2
    await change(ground, "apps/v1", "Deployment", "web", none)
    await change(
        ground, "v1", "ConfigMap", "theirs", {"metadata": {"labels": {"kubevnfm.io/vnf-instance-id": "other"}}}
    )
    with pytest.raises(ForeignObjects, match=r"ConfigMap .*theirs .*delete or rename them"):
        await ground.repair(operation="again")
    await ground.delete()
    assert await ground.shown("apps/v1", "Deployment", "web") is None
    assert await ground.shown("v1", "ConfigMap", "theirs") is not None


async def test_a_repair_leaves_an_object_of_others_in_the_place_of_ours(comparing: Comparing) -> None:
    """CR-020, CR-121: nothing is applied."""
    ground = comparing.ground
    await ground.apply(settings(), settings("gone"))
    for name in ("settings", "gone"):
        await delete(ground, "v1", "ConfigMap", name)
    await ground.create(settings(k="theirs"))
    with pytest.raises(ForeignObjects, match=r"ConfigMap .*settings"):
        await ground.repair()
    assert (await ground.shown("v1", "ConfigMap", "settings"))["data"] == {"k": "theirs"}
    assert await ground.shown("v1", "ConfigMap", "gone") is None


async def test_a_job_that_has_ended_and_was_collected_is_no_drift(comparing: Comparing) -> None:
    """CR-121: a repair does not run it again; also if another set of manifests brought it."""
    ground = comparing.ground
    await ground.apply(settings())
    job = a_job("once", ttlSecondsAfterFinished=0)
    await ground.site.replace({"f.yaml": [settings(), job]}, instance=ground.namespace, namespace=ground.namespace)

    async def is_collected() -> bool:
        return await ground.shown("batch/v1", "Job", "once") is None

    await until_true(is_collected)
    assert await comparing.round() == []
    ground.site.packages.add({"f.yaml": [settings(), job]}, package_id=f"p-{ground.namespace}")
    assert (await ground.repair()).repaired == 0


async def test_a_shared_object_that_others_have_changed_is_repaired_by_one_holder(comparing: Comparing) -> None:
    """CR-021, CR-121: it keeps its label, and is gone after the last holder, also if another holder has created it again."""
    ground = comparing.ground
    first, second = f"{ground.namespace}-a", f"{ground.namespace}-b"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    name = ground.own_name("reader")
    role = an_object("ClusterRole", name, api_version=RBAC, rules=rules)
    for each in (first, second):
        await ground.apply(role, instance=each)
    await change(ground, RBAC, "ClusterRole", name, {"rules": []})
    assert (await ground.repair(instance=second, operation="mend")).repaired == 1
    found = await ground.shown(RBAC, "ClusterRole", name)
    assert (found["rules"], found["metadata"]["labels"]["kubevnfm.io/vnf-instance-id"]) == (rules, first)
    assert await comparing.round(first, second) == []
    await delete(ground, RBAC, "ClusterRole", name)
    assert (await ground.repair(instance=second, operation="again")).repaired == 1
    assert await comparing.round(first, second, revision=9) == []
    for each in (second, first):
        await ground.delete(instance=each)
    assert await ground.shown(RBAC, "ClusterRole", name) is None


async def test_a_lease_that_is_renewed_is_no_drift(comparing: Comparing) -> None:
    """CR-121: kinds that others write by design are judged by their existence."""
    ground = comparing.ground
    lease = an_object("Lease", "leader", api_version="coordination.k8s.io/v1", spec={"holderIdentity": "a"})
    await ground.apply(lease)
    assert await comparing.round() == []
    await change(ground, "coordination.k8s.io/v1", "Lease", "leader", {"spec": {"holderIdentity": "b"}})
    assert await comparing.round(revision=8) == []
    await delete(ground, "coordination.k8s.io/v1", "Lease", "leader")
    assert await comparing.named() == {"Lease leader": "missing"}


def a_request() -> str:
    """Return a request of a certificate, as a CertificateSigningRequest has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "own")])
    signed = x509.CertificateSigningRequestBuilder(name).sign(key, SHA256())
    return base64.b64encode(signed.public_bytes(Encoding.PEM)).decode()


async def test_what_kubernetes_removes_by_itself_is_not_missing(comparing: Comparing) -> None:
    """CR-121: a request of a certificate, a Job that need not be awaited; neither a repair nor a change makes them again."""
    ground, name = comparing.ground, comparing.ground.own_name("server")
    api = "certificates.k8s.io/v1"
    request = an_object(
        "CertificateSigningRequest",
        name,
        api_version=api,
        spec={"signerName": "example.com/own", "usages": ["digital signature"], "request": a_request()},
    )
    job = a_job("once", ttlSecondsAfterFinished=0)
    files = {"order.yaml": _PASSING, "csr.yaml": request, "job.yaml": job, "map.yaml": settings()}
    order = {"order_artifact": "order.yaml", "namespace": ground.namespace, "instance": ground.namespace}
    names = ["csr.yaml", "job.yaml", "map.yaml"]
    ground.instances.add(ground.namespace)
    await ground.site.apply(files, def_files=names, **order)
    await delete(ground, api, "CertificateSigningRequest", name)

    async def is_collected() -> bool:
        return await ground.shown("batch/v1", "Job", "once") is None

    await until_true(is_collected)
    assert await comparing.round() == []
    repaired = await ground.site.repair(package_id=f"p-{ground.namespace}", def_files=names, operation="mend", **order)
    assert repaired.repaired == 0
    other = {**files, "map.yaml": settings(k="w")}

    async def uid_of_job() -> str:
        release = await ground.site.handlers.releases.get(ground.namespace)
        return next(str(each.uid) for each in release.entries if each.key.kind == "Job")

    made = await uid_of_job()
    # As after an hour.
    for each in await ground.cluster.list(EVENTS, namespace=ground.namespace):
        await ground.cluster.delete(EVENTS, EVENTS.key(each))
    await ground.site.replace(other, package_id="p2", def_files=names, operation="change", **order)
    assert await ground.shown(api, "CertificateSigningRequest", name) is None
    assert await uid_of_job() == made
    assert await comparing.round(revision=8) == []
    # Another request is another certificate.
    request["spec"]["usages"] = ["server auth"]
    await ground.site.replace(other, package_id="p3", def_files=names, operation="renew", **order)
    assert (await ground.shown(api, "CertificateSigningRequest", name))["spec"]["usages"] == ["server auth"]
    # And another Job is one that has yet to run.
    again = {**other, "job.yaml": a_job("once", command="echo", ttlSecondsAfterFinished=0)}
    await ground.site.replace(again, package_id="p4", def_files=names, operation="other", **order)
    assert await uid_of_job() != made
    assert await comparing.round(revision=9) == []


async def test_a_repair_does_not_wait_for_what_kubernetes_has_removed(comparing: Comparing) -> None:
    """CR-121: a request of a certificate is gone for good, while another object is made again."""
    ground, name = comparing.ground, comparing.ground.own_name("server")
    api = "certificates.k8s.io/v1"
    spec = {"signerName": "example.com/own", "usages": ["digital signature"], "request": a_request()}
    await ground.apply(an_object("CertificateSigningRequest", name, api_version=api, spec=spec), settings())
    await delete(ground, api, "CertificateSigningRequest", name)
    await delete(ground, "v1", "ConfigMap", "settings")
    assert (await ground.repair()).repaired == 1
    assert await ground.shown(api, "CertificateSigningRequest", name) is None
    assert (await ground.shown("v1", "ConfigMap", "settings"))["data"] == {"k": "v"}
    assert await comparing.round() == []
