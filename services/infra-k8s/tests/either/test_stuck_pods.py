"""The progress of a wait names the pod that keeps a workload from becoming ready, with the pod's own reason."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.objects import PODS, Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.watching import readiness_wait, stuck_pods
from packages.kubernetes_objects import a_deployment, a_pod, an_object
from patience import until_true

DEPLOYMENTS = Resource("apps/v1", "Deployment", "deployments", namespaced=True)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods are read ten times as often as usual."""
    for each in (stuck_pods, readiness_wait):
        monkeypatch.setattr(each, "LOOK_EVERY_S", 0.5)


def a_warning(pod: Body, reason: str, message: str) -> Body:
    """Return an event about the pod of this metadata, of now."""
    about = {"apiVersion": "v1", "kind": "Pod", **{part: pod[part] for part in ("namespace", "name", "uid")}}
    facts: dict[str, Any] = {"involvedObject": about, "type": "Warning", "reason": reason, "message": message}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return an_object("Event", f"{pod['name']}-{reason.lower()}", **facts, firstTimestamp=now, lastTimestamp=now)


async def progress_of(ground: Any, deployment: Body, *, reason: str) -> str:
    """Return the progress that names the reason; it must come while the step still waits."""
    applying = asyncio.create_task(ground.apply(deployment))

    def said() -> str:
        return next((each.message for each in ground.site.progress if reason in each.message), "")

    async def is_named() -> bool:
        return bool(said()) or applying.done()

    await until_true(is_named)
    assert not applying.done(), applying.exception()
    # Without pods the Deployment is ready.
    await ground.cluster.patch(
        DEPLOYMENTS, ObjectKey("apps/v1", "Deployment", ground.namespace, "web"), {"spec": {"replicas": 0}}
    )
    await applying
    return said()


async def test_the_progress_names_an_image_that_cannot_be_pulled(ground: Any) -> None:
    """CR-025: the Deployment itself says only that it has too few ready pods, and only an event names a Secret that is not there."""
    pulling = a_pod(annotations=ground.fate("image"), imagePullSecrets=[{"name": "regcred"}])
    saying = asyncio.create_task(progress_of(ground, a_deployment(pod=pulling), reason="(regcred)"))

    async def is_refused() -> bool:
        return saying.done() or any("ImagePullBackOff" in each.message for each in ground.site.progress)

    await until_true(is_refused)
    pods = await ground.cluster.list(PODS, namespace=ground.namespace)
    message = "Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not succeed."
    for pod in pods:
        await ground.create(a_warning(pod["metadata"], "FailedToRetrieveImagePullSecret", message))
    said = await saying
    assert said.startswith(f"Deployment {ground.namespace}/web: 0 of 2 ")
    assert ", pod web-" in said
    assert said.endswith(f"FailedToRetrieveImagePullSecret: {message}")


async def test_the_progress_names_a_pod_that_fits_on_no_node(ground: Any) -> None:
    """CR-025: the scheduler's message is in the pod's condition PodScheduled."""
    web = a_deployment(pod=a_pod(nodeSelector={"room": ground.namespace}), replicas=1)
    said = await progress_of(ground, web, reason="unschedulable")
    assert ", pod web-" in said
    assert "nodes are available" in said


async def test_the_progress_names_why_no_pod_can_be_made(ground: Any) -> None:
    """CR-025: a Deployment has a condition for it, of a StatefulSet only an event says it."""
    pod = a_pod(serviceAccountName="missing")
    spec = {"serviceName": "db", "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    stateful_set = an_object("StatefulSet", "db", api_version="apps/v1", spec=spec)
    applying = asyncio.create_task(ground.apply(a_deployment(pod=pod), stateful_set))

    def said_of(subject: str, reason: str) -> bool:
        return any(
            each.message.startswith(f"{subject} {ground.namespace}/")
            and reason in each.message
            and 'serviceaccount "missing" not found' in each.message
            for each in ground.site.progress
        )

    async def are_named() -> bool:
        named = said_of("Deployment", "ReplicaFailure True, FailedCreate") and said_of("StatefulSet", "FailedCreate")
        return named or applying.done()

    await until_true(are_named)
    assert not applying.done(), applying.exception()
    applying.cancel()
    await asyncio.wait([applying])


async def said_of(ground: Any, applying: asyncio.Task[Any], *parts: str) -> None:
    """Return once one progress has all the parts; it must come while the step still waits."""

    async def is_said() -> bool:
        return applying.done() or any(all(part in each.message for part in parts) for each in ground.site.progress)

    await until_true(is_said)
    assert not applying.done(), applying.exception()


async def test_the_progress_names_why_a_claim_is_not_bound_and_why_kubelet_starts_no_container(ground: Any) -> None:
    """CR-025: a claim and a pod that starts say nothing themselves, only events about them do."""
    size = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "missing-class", "resources": size}
    claim = an_object("PersistentVolumeClaim", "data", spec=spec)
    mounted = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    starting, pulling = (
        a_deployment(name, pod=a_pod(annotations=ground.fate("stuck")), replicas=1) for name in ("late", "pulling")
    )
    web = a_deployment(pod=a_pod(volumes=mounted), replicas=1)
    applying = asyncio.create_task(ground.apply(claim, web, starting, pulling))
    why = 'ProvisioningFailed: storageclass.storage.k8s.io "missing-class" not found'
    place = f"PersistentVolumeClaim {ground.namespace}/data: "
    await said_of(ground, applying, place + "not bound yet, " + why)
    await said_of(
        ground, applying, f"Deployment {ground.namespace}/web: ", ", pod web-", "unschedulable: ", place + why
    )
    pods = await ground.cluster.list(PODS, namespace=ground.namespace)
    message = 'MountVolume.SetUp failed for volume "tls" : secret "tls" not found'
    events = {"pulling": ("FailedMount", "Pulling"), "late": ("FailedMount",)}
    for name, reasons in events.items():
        (pod,) = [each["metadata"] for each in pods if each["metadata"]["name"].startswith(f"{name}-")]
        for reason in reasons:
            kind = "Normal" if reason == "Pulling" else "Warning"
            await ground.create({**a_warning(pod, reason, message), "type": kind})
    await said_of(ground, applying, f", pod {pod['name']}: FailedMount: {message}")
    said = {text for each in ground.site.progress for text in each.obstacles if "FailedMount" in text}
    assert len(said) == 1, "the other one has got over it"
    applying.cancel()
    await asyncio.wait([applying])
