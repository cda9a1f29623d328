"""The log of a failed hook's pod in an error (multicloud.md MC-141)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubevnfm_csar.hooks import Point, a_hook
from kubevnfm_infra_k8s.domain.hooks.words import last_words
from kubevnfm_infra_k8s.domain.objects import PODS, Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_secrets import Mask
from packages.kubernetes_objects import a_job

JOBS = Resource("batch/v1", "Job", "jobs", namespaced=True)


class PodsOf:
    """A cluster that has the pods of one Job, and their logs by pod and container."""

    def __init__(self, pods: Sequence[Body], logs: dict[tuple[str, str], str], secrets: Sequence[str] = ()) -> None:
        self.pods, self.logs, self.masked = pods, logs, Mask(secrets)

    async def list(self, resource: Resource, **_: Any) -> Sequence[Body]:
        assert resource == PODS
        return self.pods

    async def pod_log(self, pod: ObjectKey, *, container: str) -> str:
        return self.logs[pod.name, container]


def a_pod(name: str, made: str, statuses: Sequence[Body]) -> Body:
    owner = {"uid": "u1", "controller": True, "kind": "Job", "name": "h", "apiVersion": "batch/v1"}
    metadata = {"name": name, "creationTimestamp": made, "ownerReferences": [owner]}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "first"}]},
        "status": {"containerStatuses": statuses},
    }


async def said(cluster: Any) -> str:
    hook = PlannedHook(ObjectKey("batch/v1", "Job", "n", "h"), a_job("h"), JOBS, "h.yaml", a_hook(Point.PRE_APPLY))
    return await last_words(cluster, hook, "u1", vnf_instance_id="i1")


async def test_the_newest_pods_container_that_failed_is_quoted_without_secrets() -> None:
    """MC-141: each line as a quotation without control characters; the end counts, in bytes."""
    failed = {"name": "second", "state": {"terminated": {"exitCode": 3}}}
    pods = [a_pod("old", "2026-11-27T00:00:00Z", []), a_pod("new", "2026-11-27T00:01:00Z", [{"name": "first"}, failed])]
    text = "é" * 3000 + "\nno login with swordfish-10\n\x1b[31mend\x1b[0m\n"
    words = await said(PodsOf(pods, {("new", "second"): text}, ["swordfish-10"]))
    assert words == "\n| no login with ***\n| end"
    assert await said(PodsOf([], {})) == ""
    assert await said(PodsOf(pods[:1], {("old", "first"): " \n"})) == ""
