"""Finds out how Jobs have ended that Kubernetes has collected (``ttlSecondsAfterFinished``) before they were seen complete.

A worker that was restarted, or that was still applying other objects, may miss the whole life of a short Job. The
events about it stay for an hour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, field_at
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.verdicts import CURRENT, NOT_FOUND, Verdict, failed
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.watching.not_ready_report import EVENTS

LOOK_AGAIN_S: Final = 1.0
"""The event about the end of a Job can come after its deletion."""
_COMPLETED: Final = "Completed"
_FAILURES: Final = frozenset({"BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy", "FailedIndexes"})


async def verdicts_on_ended(cluster: Cluster, jobs: Sequence[Awaited]) -> Mapping[ObjectKey, Verdict]:
    """Return the verdicts on Jobs that do not exist; each was created with the uid."""
    namespaces = sorted({each.key.namespace for each in jobs})

    async def events_in(namespace: str) -> Sequence[Body]:
        try:
            return await cluster.list(EVENTS, namespace=namespace)
        except Forbidden:
            return []

    events = [event for found in await each_of(namespaces, events_in) for event in found]
    return {each.key: _verdict(each, events) for each in jobs}


def _verdict(job: Awaited, events: Sequence[Body]) -> Verdict:
    about = [each for each in events if field_at(each, "involvedObject", "uid") == job.uid]
    if any(each.get("reason") == _COMPLETED for each in about):
        return CURRENT
    failure = next((each for each in about if each.get("reason") in _FAILURES), None)
    if failure is not None:
        return failed(f"{failure['reason']}: {failure.get('message', '')}")
    return Verdict(NOT_FOUND.status, NOT_FOUND.message, again_in_s=LOOK_AGAIN_S)
