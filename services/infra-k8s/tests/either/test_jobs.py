"""Jobs that are collected after their end (``ttlSecondsAfterFinished``)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from kubevnfm_events.objects import ApplyObjects
from kubevnfm_infra_k8s.domain.errors import ObjectFailed, ObjectsRefused
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource
from kubevnfm_worker.outcome import Done, NotYet
from packages.kubernetes_objects import a_deployment, a_job, a_pod
from patience import until_true

JOBS = Resource("batch/v1", "Job", "jobs", namespaced=True)
EVENTS = Resource("v1", "Event", "events", namespaced=True)
DEPLOYMENTS = Resource("apps/v1", "Deployment", "deployments", namespaced=True)


async def until_collected(ground: Any, reason: str) -> None:
    """Return when the Job has ended, which its event shows, and was deleted."""

    async def is_over() -> bool:
        events = await ground.cluster.list(EVENTS, namespace=ground.namespace)
        ended = any(event.get("reason") == reason for event in events)
        return ended and not await ground.cluster.list(JOBS, namespace=ground.namespace)

    await until_true(is_over, pause_s=0.05)


async def test_a_job_that_was_seen_complete_stays_complete(ground: Any) -> None:
    """CR-029: it is collected while another object is not ready yet."""
    web = a_deployment(pod=a_pod(annotations=ground.fate("stuck")), replicas=1)
    applying = asyncio.create_task(ground.apply(a_job("once", ttlSecondsAfterFinished=0), web))
    await until_collected(ground, "Completed")
    assert not applying.done()
    # Without pods the Deployment is ready.
    await ground.cluster.patch(
        DEPLOYMENTS, ObjectKey("apps/v1", "Deployment", ground.namespace, "web"), {"spec": {"replicas": 0}}
    )
    done = await applying
    assert [each.name for each in done.objects] == ["once", "web"]
    # A retry of the step must not run it once more.
    job, none = a_job("once", ttlSecondsAfterFinished=0), {**web, "spec": {**web["spec"], "replicas": 0}}
    await ground.apply(job, none, attempt=2)
    assert await ground.shown("batch/v1", "Job", "once") is None
    # Nor a change that is refused, and taken back.
    wrong = a_deployment()
    wrong["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "missing", "mountPath": "/data"}]
    other = a_job("once", command="echo", ttlSecondsAfterFinished=0)
    place = {"instance": ground.namespace, "namespace": ground.namespace, "operation": "change"}
    with pytest.raises(ObjectsRefused):
        await ground.site.replace({"f.yaml": [other, wrong]}, **place)
    await ground.site.replace({"f.yaml": [job, none]}, package_id="p-before", attempt=2, is_undo=True, **place)
    (once, _) = (await ground.site.handlers.releases.get(ground.namespace)).entries
    assert (once.uid, once.is_complete) == ("", True)
    assert (await ground.delete()).count == 2


async def outcome_after_collection(ground: Any, job: Body, reason: str) -> Done | NotYet:
    """Return what a worker makes of a Job that ended while no worker was looking."""
    package = ground.site.packages.add({"f.yaml": job})
    ground.instances.add(ground.namespace)
    command = ApplyObjects(
        vnf_instance_id=ground.namespace,
        package=package,
        vim=ground.site.vim,
        def_files=("f.yaml",),
        namespace=ground.namespace,
    )
    with suppress(ObjectFailed):
        await ground.site.handlers.apply_objects(command, ground.site.context())
    await until_collected(ground, reason)
    # The release as it is stored before the end of a Job was seen.
    releases = ground.site.handlers.releases
    release = await releases.get(ground.namespace)
    await releases.save(replace(release, entries=[replace(each, is_complete=False) for each in release.entries]))
    outcome: Done | NotYet = await ground.site.handlers.apply_objects(command, ground.site.context())
    return outcome


async def test_the_end_of_a_job_that_no_worker_saw_is_read_from_its_events(ground: Any) -> None:
    """CR-029: the worker may have been restarted while the Job ended; another attempt does not make it again."""
    job = a_job("once", ttlSecondsAfterFinished=0)
    outcome = await outcome_after_collection(ground, job, "Completed")
    assert isinstance(outcome, Done)
    release = await ground.site.handlers.releases.get(ground.namespace)
    (before,) = release.entries
    await ground.site.handlers.releases.save(replace(release, entries=[replace(before, is_complete=False)]))
    await ground.apply(job, attempt=2)
    (after,) = (await ground.site.handlers.releases.get(ground.namespace)).entries
    assert after.uid == before.uid


async def test_the_failure_of_a_job_that_no_worker_saw_is_read_from_its_events(ground: Any) -> None:
    """CR-029: a collected Job is not ready merely because it is gone."""
    job = a_job("once", command="exit 3", annotations={"stage": "fail"}, ttlSecondsAfterFinished=0)
    with pytest.raises(ObjectFailed, match=r"Job .*once: BackoffLimitExceeded"):
        await outcome_after_collection(ground, job, "BackoffLimitExceeded")
