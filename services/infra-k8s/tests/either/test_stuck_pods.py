"""The progress of a wait names the pod that keeps a workload from becoming ready, with the pod's own reason."""

from __future__ import annotations

import asyncio
from typing import Any

from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource
from packages.kubernetes_objects import a_deployment, a_pod, an_object
from patience import until_true

DEPLOYMENTS = Resource("apps/v1", "Deployment", "deployments", namespaced=True)


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
    """CR-025: the Deployment itself says only that it has too few ready pods."""
    web = a_deployment(pod=a_pod(annotations=ground.fate("image")), replicas=2)
    said = await progress_of(ground, web, reason="ImagePullBackOff")
    assert said.startswith(f"Deployment {ground.namespace}/web: 0 of 2 ")
    assert ", pod web-" in said


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
