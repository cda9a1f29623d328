"""The log of a failed hook's pod in an error (multicloud.md MC-141)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubevnfm_csar.hooks import Point, a_hook
from kubevnfm_infra_k8s.domain.hooks.words import last_words
from kubevnfm_infra_k8s.domain.objects import PODS, Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_infra_k8s.domain.verdicts import in_progress
from kubevnfm_infra_k8s.domain.watching.not_ready_report import not_ready
from kubevnfm_infra_k8s.domain.watching.stuck_pods import StuckPods
from kubevnfm_kit.clock import SystemClock
from kubevnfm_secrets import Mask
from packages.kubernetes_objects import a_job

JOBS = Resource("batch/v1", "Job", "jobs", namespaced=True)


class PodsOf:
    """A cluster that has the pods of one Job, and their logs by pod and container."""

    def __init__(self, pods: Sequence[Body], logs: dict[tuple[str, str], str], secrets: Sequence[str] = ()) -> None:
        self.pods, self.logs, self.masked = pods, logs, Mask(secrets)
        self.read: list[tuple[str, str, bool]] = []

    async def list(self, resource: Resource, **_: Any) -> Sequence[Body]:
        return self.pods if resource == PODS else []

    async def pod_log(self, pod: ObjectKey, *, container: str, is_previous: bool = False) -> str:
        self.read.append((pod.name, container, is_previous))
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


async def test_a_container_that_ends_again_and_again_is_named_with_its_last_line() -> None:
    """CR-025: of the run that has ended, without secrets; read once for each run."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    crashed = {"name": "c", "state": waiting, "lastState": {"terminated": {"exitCode": 2}}, "restartCount": 3}
    pod = a_pod("web", "2026-11-27T00:01:00Z", [crashed])
    key = ObjectKey("batch/v1", "Job", "n", "h")
    cluster: Any = PodsOf([pod], {("web", "c"): "starts\nno login with swordfish-10\n"}, ["swordfish-10"])
    pods = StuckPods(cluster, "i1", SystemClock())
    for _ in range(2):
        found = await pods.explain(
            {key: in_progress("0 of 1 completed")}, {key: {"metadata": {"uid": "u1"}}}, is_last=True
        )
        assert found[key].message.endswith("it last ended with exit code 2: no login with ***")
    assert cluster.read == [("web", "c", True)]


async def test_what_a_cluster_says_cannot_change_the_terminal_of_a_reader() -> None:
    """CR-025: a container chooses the message of its end, and a controller the one of a condition."""
    key, cluster = ObjectKey("batch/v1", "Job", "n", "h"), PodsOf([], {}, ["swordfish-10"])
    message = "\x1b]0;title\x07no \x1b[31mlogin\x1b[0m with sword\x1b[0mfish-10\r"
    found: Any = cluster
    assert await not_ready(found, "i1", {key: in_progress(message)}, {}) == "Job n/h: no login with ***\ufffd"
