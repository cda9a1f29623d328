"""Adds to the verdicts on workloads why a pod of theirs does not start, or cannot be made (capi.md CR-025).

The pod says the first itself, or kubelet by a warning about it: a volume that cannot be mounted, a network plugin that fails, a probe.
An event of the workload's controller says the second: a quota, Pod Security, a missing ServiceAccount. Why a claim is not bound, and a
pod waits for it, only an event of the claim says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kubevnfm_kit.clock import Clock, machine_now
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.objects import (
    CLAIMS,
    MACHINE_OWNERS,
    WORKLOADS,
    Body,
    ObjectKey,
    condition,
    field_at,
    name_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.instance_facts import running_parts
from kubevnfm_infra_k8s.domain.reading.readiness import age_s, trouble_of_pod
from kubevnfm_infra_k8s.domain.reading.starting_pods import standing_of_pod
from kubevnfm_infra_k8s.domain.reading.vdus import is_running, owned_parts
from kubevnfm_infra_k8s.domain.verdicts import Verdict
from kubevnfm_infra_k8s.domain.watching.not_ready_report import age_order, events_in, open_warnings
from kubevnfm_infra_k8s.domain.watching.unbound_claims import claims_of_pod, why_unbound

LOOK_EVERY_S: Final = 5.0
"""A pod that fails changes nothing in its Deployment, so the watch of that shows nothing."""
_SILENT: Final = frozenset({("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job")})
"""The kinds without a condition for it; `readiness` reads that of the others."""
_OWNERS: Final = WORKLOADS - MACHINE_OWNERS - {("", "Pod")} | {("batch", "Job")}
_CLAIM: Final = ("", CLAIMS.kind)
_UNBOUND: Final = "unbound immediate PersistentVolumeClaims"
"""How the scheduler says that a claim of the pod is not bound; it names none."""


_CRASHES: Final = "CrashLoopBackOff"
_PULLS: Final = "ImagePull"
_NO_CREDENTIALS: Final = "FailedToRetrieveImagePullSecret"
"""How kubelet says that a Secret with the credentials of a registry does not exist."""
_MOST_LINES: Final = 50
"""Logs that are read for one wait: a container that ends again is read again."""
_LONGEST_LINE: Final = 300


@dataclass
class StuckPods:
    """The reasons of the pods of an instance that do not start, as last read."""

    cluster: Cluster
    vnf_instance_id: str
    clock: Clock
    _reasons: Mapping[ObjectKey, str] = field(default_factory=dict)
    _read_at: float | None = None
    _lines: dict[tuple[str, str, int], str] = field(default_factory=dict)
    """The last line of a container that has ended, by pod, name and number of starts."""

    async def explain(
        self, verdicts: Mapping[ObjectKey, Verdict], bodies: Mapping[ObjectKey, Body], *, is_last: bool
    ) -> Mapping[ObjectKey, Verdict]:
        """Return the verdicts on workloads and claims that are not ready, each with the reason: of a workload, that of a pod.

        The pods are read every `LOOK_EVERY_S` seconds, and when this is the last look.
        """
        waiting = {
            key: bodies[key]
            for key, verdict in verdicts.items()
            if key.group_kind in _OWNERS | {_CLAIM} and not verdict.is_current and key in bodies
        }
        now = asyncio.get_running_loop().time()
        if waiting and (is_last or self._read_at is None or now - self._read_at >= LOOK_EVERY_S):
            self._reasons, self._read_at = await self._read(waiting), now
        return {
            key: replace(verdicts[key], message=f"{verdicts[key].message or verdicts[key].status}, {reason}")
            for key, reason in self._reasons.items()
            if key in waiting
        }

    async def _read(self, waiting: Mapping[ObjectKey, Body]) -> Mapping[ObjectKey, str]:
        workloads = {key: body for key, body in waiting.items() if key.group_kind != _CLAIM}
        claims = waiting.keys() - workloads.keys()
        try:
            found = await running_parts(self.cluster, self.vnf_instance_id, workloads) if workloads else None
        except VnfmError:  # credentials may not permit to read pods; the verdict is useful without them too
            found = None
        by_uid = {uid_of(body): key for key, body in workloads.items()}
        owned = owned_parts(by_uid, found) if found is not None else []
        stuck: dict[ObjectKey, tuple[Body, str]] = {}
        starting: dict[ObjectKey, Body] = {}
        # The newest pod shows what is wrong now; older ones can belong to an earlier version of the workload.
        for pod, owner in sorted(owned, key=lambda each: _created(each[0]), reverse=True):
            if not is_running(pod) or _is_ready(pod):
                continue
            trouble = trouble_of_pod(pod)
            if trouble is not None:
                stuck.setdefault(by_uid[owner], (pod, trouble))
            else:
                starting.setdefault(by_uid[owner], pod)
        reasons = {key: f"pod {name_of(pod)}: {trouble}" for key, (pod, trouble) in stuck.items()}
        unbound = {key: claims_of_pod(pod) for key, (pod, trouble) in stuck.items() if _UNBOUND in trouble}
        for key, (pod, trouble) in stuck.items():
            if _CRASHES in trouble:
                reasons[key] += await self._last_line(pod, trouble)
        silent = [
            key
            for key in workloads
            if found is not None and key.group_kind in _SILENT and key not in stuck and key not in starting
        ]
        # A moment after its start a pod has no trouble yet.
        late = {
            key: pod
            for key, pod in starting.items()
            if key not in stuck and age_s(pod, machine_now(self.clock)) >= LOOK_EVERY_S
        }
        # A scheduler that waits for the volume of a claim reports no trouble of its own.
        unbound |= {key: claims_of_pod(pod) for key, pod in late.items() if not field_at(pod, "spec", "nodeName")}
        # A registry that refuses says nothing of a Secret that is not there: only an event does.
        pulling = {
            key: pod
            for key, (pod, trouble) in stuck.items()
            if _PULLS in trouble and field_at(pod, "spec", "imagePullSecrets")
        }
        asked = {*claims, *unbound, *silent, *late, *pulling}
        if not asked:
            return reasons
        events = sorted(await events_in(self.cluster, sorted({key.namespace for key in asked})), key=age_order)
        said = why_unbound(events)
        found_reasons = {
            **{key: f"pod {name_of(pod)}: {what}" for key, pod in late.items() if (what := standing_of_pod(pod))},
            **_not_made(events, {uid_of(workloads[key]): key for key in silent}, owned),
            **_warned(events, late),
            **reasons,
        }
        for key, wanted in unbound.items():
            parts = [found_reasons.get(key, ""), *(f"{claim}: {said[claim]}" for claim in wanted if claim in said)]
            found_reasons[key] = "; ".join(filter(None, parts))
        found_reasons |= {claim: said[claim] for claim in claims if claim in said}
        missing = _warned([each for each in events if each.get("reason") == _NO_CREDENTIALS], pulling)
        found_reasons |= {key: f"{found_reasons[key]}; {warning}" for key, warning in missing.items()}
        return {key: reason for key, reason in found_reasons.items() if reason}

    async def _last_line(self, pod: Body, trouble: str) -> str:
        """Return the last line that a container has logged before it ended; "" if its end says one, or the log cannot be read."""
        end = last_end_of(pod)
        if end is None:
            return ""
        if end not in self._lines:
            if len(self._lines) >= _MOST_LINES:
                return ""
            key = ObjectKey("v1", "Pod", str(field_at(pod, "metadata", "namespace")), name_of(pod))
            try:
                text = await self.cluster.pod_log(key, container=end[1], is_previous=True)
            except VnfmError:  # the account may not read logs; the reason is useful without them too
                text = ""
            # Masked as a whole: a part of a secret would not be found.
            lines = self.cluster.masked(text).strip().splitlines()
            self._lines[end] = f": {lines[-1].strip()[:_LONGEST_LINE]}" if lines else ""
        # Behind the code with which it ended.
        return self._lines[end] if "exit code" in trouble else ""


def _not_made(
    events: Sequence[Body], lacking: Mapping[str, ObjectKey], owned: Sequence[tuple[Body, str]]
) -> Mapping[ObjectKey, str]:
    """Return why controllers cannot make the next pod, for workloads of which all pods that exist are ready."""
    newest = {owner: max(_created(pod) for pod, each in owned if each == owner) for _, owner in owned}
    reasons: dict[ObjectKey, str] = {}
    for event in open_warnings(events):
        uid = str(field_at(event, "involvedObject", "uid"))
        # One from before the newest pod is over.
        if uid in lacking and event.get("reason") == "FailedCreate" and age_order(event)[0] >= newest.get(uid, ""):
            reasons[lacking[uid]] = f"FailedCreate: {event.get('message', '')}"
    return reasons


def _warned(events: Sequence[Body], late: Mapping[ObjectKey, Body]) -> Mapping[ObjectKey, str]:
    """Return the newest warning about the pods that are not ready yet, by workload."""
    by_uid = {uid_of(pod): (key, name_of(pod)) for key, pod in late.items()}
    reasons: dict[ObjectKey, str] = {}
    for event in open_warnings(events):
        uid = str(field_at(event, "involvedObject", "uid"))
        if uid in by_uid:
            key, name = by_uid[uid]
            reasons[key] = f"pod {name}: {event.get('reason', '')}: {event.get('message', '')}"
    return reasons


def last_end_of(pod: Body) -> tuple[str, str, int] | None:
    """Return the pod, the name and the number of starts of the container that ends again and again; None: its end says why, or there is none."""
    container = _crashed(pod)
    if container is None or field_at(container, "lastState", "terminated", "message"):
        return None
    return uid_of(pod), str(container.get("name")), container.get("restartCount") or 0


def _crashed(pod: Body) -> Body | None:
    """Return the status of the container that `trouble_of_pod` names."""
    for name in ("initContainerStatuses", "containerStatuses"):
        for container in field_at(pod, "status", name) or ():
            if field_at(container, "state", "waiting", "reason") == _CRASHES:
                return dict(container)
    return None


def _is_ready(pod: Body) -> bool:
    return str((condition(pod, "Ready") or {}).get("status")) == "True"


def _created(pod: Body) -> str:
    return str(field_at(pod, "metadata", "creationTimestamp") or "")
