"""Decides whether an object is ready: one pure function for all kinds, like kstatus (capi.md CR-026 to CR-029).

The rules of Cluster API are in `capi.readiness`.

Source: kstatus (sigs.k8s.io/cli-utils) for the verdicts and the generic rules; the API reference for status fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from kubevnfm_csar.waits import WantedResult, WantedValue, shown

from kubevnfm_infra_k8s.domain.capi import readiness as capi
from kubevnfm_infra_k8s.domain.objects import (
    BUILT_IN_GROUPS,
    READY_WHEN_ANNOTATION,
    Body,
    annotations_of,
    condition,
    conditions,
    field_at,
    group_of,
    is_outdated,
    without_outdated_conditions,
)
from kubevnfm_infra_k8s.domain.passing_objects import has_done_its_work
from kubevnfm_infra_k8s.domain.reading import kubevirt
from kubevnfm_infra_k8s.domain.reading.ca_bundles import webhooks_without_ca
from kubevnfm_infra_k8s.domain.reading.ready_when import parse
from kubevnfm_infra_k8s.domain.reading.starting_pods import end_of
from kubevnfm_infra_k8s.domain.verdicts import CURRENT, NOT_FOUND, Observation, Status, Verdict, failed, in_progress

_GRACE_S: Final = 60.0
"""A pod that crashes, lacks its image or finds no node counts as failed only after this time."""
_TROUBLES: Final = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)


def judge(body: Body | None, seen: Observation) -> Verdict:
    """Return the verdict for an object as the API server shows it; ``body`` is None if it does not exist."""
    if body is None:
        return NOT_FOUND
    if field_at(body, "metadata", "deletionTimestamp"):
        return Verdict(Status.TERMINATING, "is being deleted")
    generation, observed = field_at(body, "metadata", "generation"), field_at(body, "status", "observedGeneration")
    # Until the controller has seen the latest change, the rest of the status describes the previous version.
    # KubeVirt writes that of the running machine, which may wait for a restart.
    kind = group_of(str(body.get("apiVersion"))), str(body.get("kind"))
    if observed is not None and generation is not None and observed != generation and kind != kubevirt.MACHINE:
        return in_progress(f"generation {observed} of {generation} observed")
    shown = without_outdated_conditions(body)
    if _is_true(shown, "Stalled"):
        return _failed(shown, "Stalled")
    if _is_true(shown, "Reconciling"):
        return in_progress(in_words(shown, "Reconciling"))
    if seen.wanted is not None:
        return _by_the_order(shown, seen, seen.wanted)
    own = annotations_of(body).get(READY_WHEN_ANNOTATION)
    if own is not None:
        return CURRENT if parse(own)(shown) else in_progress(f"waits for {own}")
    rule = _RULES.get(kind) or kubevirt.RULES.get(kind) or capi.rule_of(*kind)
    if rule is not None:
        return rule(shown, seen)
    return _by_ready_condition(body, seen)


def _by_the_order(body: Body, seen: Observation, wanted: WantedValue | WantedResult) -> Verdict:
    """Return the verdict by what the order of the package waits for (multicloud.md MC-011)."""
    waits = f"waits for {wanted}"
    # Without a status no controller has seen the object: what the path has then is the manifest's.
    if not field_at(body, "status"):
        return in_progress(f"{waits}: it has no status, and no wait of this form holds without one")
    if isinstance(wanted, WantedValue):
        return CURRENT if wanted.holds(body) else in_progress(waits)
    found = seen.evaluated
    if found is not None and found.has_failed:
        return failed(f"failed, as its order says: {shown(wanted.failed or '')}")
    if found is not None and found.holds:
        return CURRENT
    return in_progress(f"{waits}: {found.error}" if found is not None and found.error else waits)


def _by_ready_condition(body: Body, seen: Observation) -> Verdict:
    ready, generation = condition(body, "Ready"), field_at(body, "metadata", "generation")
    if ready is not None and is_outdated(ready, generation):
        return in_progress(f"Ready of generation {ready['observedGeneration']} of {generation}")
    if ready is not None:
        return CURRENT if _is_true(body, "Ready") else in_progress(in_words(body, "Ready"))
    left_s = seen.settle_s - seen.unchanged_s
    if left_s > 0 and lacks_status(body, has_status=seen.has_status):
        return Verdict(Status.IN_PROGRESS, "no status yet", again_in_s=left_s)
    return CURRENT


def lacks_status(body: Body, *, has_status: bool) -> bool:
    """Return whether an object is judged by its status, has none, and its kind has no rule: only time says whether it gets one.

    A new custom resource has none until its controller has seen it; some controllers never write one.
    """
    group, kind = group_of(str(body.get("apiVersion"))), str(body.get("kind"))
    if (
        not has_status
        or body.get("status")
        or group in BUILT_IN_GROUPS
        or READY_WHEN_ANNOTATION in annotations_of(body)
    ):
        return False
    return (group, kind) not in _RULES and (group, kind) not in kubevirt.RULES and capi.rule_of(group, kind) is None


# --- helpers of the rules ---------------------------------------------------------------------------------------------


def _is(body: Body, type: str, status: str) -> bool:
    found = condition(body, type)
    return found is not None and str(found.get("status")) == status


def _is_true(body: Body, type: str) -> bool:
    return _is(body, type, "True")


def in_words(body: Body, type: str) -> str:
    """Return a condition as text: ``Ready False, Waiting: for a node``."""
    found = condition(body, type) or {}
    reason = ": ".join(str(found[name]) for name in ("reason", "message") if found.get(name))
    return f"{type} {found.get('status', 'unknown')}" + (f", {reason}" if reason else "")


def _failed(body: Body, type: str) -> Verdict:
    return failed(in_words(body, type))


def _count(body: Body, name: str) -> int:
    value = field_at(body, "status", name)
    return value if isinstance(value, int) else 0


def _wanted(body: Body) -> int:
    replicas = field_at(body, "spec", "replicas")
    return replicas if isinstance(replicas, int) else 1


def _is_unobserved(body: Body) -> bool:
    return field_at(body, "status", "observedGeneration") is None


_UNOBSERVED: Final = in_progress("not observed yet")

# --- the rules of the kinds -------------------------------------------------------------------------------------------


def _deployment(body: Body, _: Observation) -> Verdict:
    progressing = condition(body, "Progressing") or {}
    # The manifest's own progressDeadlineSeconds: the author has decided that a longer wait is useless.
    if progressing.get("status") == "False" and progressing.get("reason") == "ProgressDeadlineExceeded":
        return _without_pods(body, _failed(body, "Progressing"))
    if _is_unobserved(body):
        return _UNOBSERVED
    return _without_pods(body, _deployment_by_counts(body))


def _without_pods(body: Body, verdict: Verdict) -> Verdict:
    """Add to a verdict why no pod can be made: a quota, Pod Security, a missing ServiceAccount (capi.md CR-025).

    Deployments and ReplicaSets say it themselves; the controllers of other workloads write an event (`StuckPods`).
    """
    if verdict.is_current or not _is_true(body, "ReplicaFailure"):
        return verdict
    return replace(verdict, message=f"{verdict.message}, {in_words(body, 'ReplicaFailure')}")


def _deployment_by_counts(body: Body) -> Verdict:
    wanted = _wanted(body)
    updated, ready, available = (
        _count(body, name) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    if updated < wanted:
        return in_progress(f"{updated} of {wanted} updated")
    if _count(body, "replicas") > updated:
        return in_progress(f"{_count(body, 'replicas') - updated} old replicas left")
    # Ready pods become available after minReadySeconds.
    if min(ready, available) < wanted:
        return in_progress(f"{min(ready, available)} of {wanted} ready")
    return CURRENT


def _stateful_set(body: Body, _: Observation) -> Verdict:
    if _is_unobserved(body):
        return _UNOBSERVED
    wanted, ready = _wanted(body), _count(body, "readyReplicas")
    if ready < wanted or _count(body, "replicas") != wanted:
        return in_progress(f"{ready} of {wanted} ready")
    strategy = field_at(body, "spec", "updateStrategy") or {}
    # The controller replaces no pod by itself, so old pods stay until an operator deletes them.
    if strategy.get("type") == "OnDelete":
        return CURRENT
    # Pods below the partition keep the old revision on purpose.
    to_update = wanted - min(int(field_at(strategy, "rollingUpdate", "partition") or 0), wanted)
    updated = _count(body, "updatedReplicas")
    is_whole = field_at(body, "status", "currentRevision") == field_at(body, "status", "updateRevision")
    if updated < to_update and not is_whole:
        return in_progress(f"{updated} of {to_update} updated")
    return CURRENT


def _replica_set(body: Body, _: Observation) -> Verdict:
    if _is_unobserved(body):
        return _UNOBSERVED
    wanted, ready = _wanted(body), min(_count(body, "readyReplicas"), _count(body, "availableReplicas"))
    return CURRENT if ready >= wanted else _without_pods(body, in_progress(f"{ready} of {wanted} ready"))


def _daemon_set(body: Body, _: Observation) -> Verdict:
    if _is_unobserved(body):
        return _UNOBSERVED
    wanted = _count(body, "desiredNumberScheduled")
    ready = min(_count(body, "numberReady"), _count(body, "numberAvailable"))
    updated = _count(body, "updatedNumberScheduled")
    if field_at(body, "spec", "updateStrategy", "type") != "OnDelete" and updated < wanted:
        return in_progress(f"{updated} of {wanted} updated")
    return CURRENT if ready >= wanted else in_progress(f"{ready} of {wanted} ready")


def _pod(body: Body, seen: Observation) -> Verdict:
    phase = field_at(body, "status", "phase")
    if phase == "Succeeded" or (_is_true(body, "Ready") and not seen.until_ended):
        return CURRENT
    if phase == "Failed":
        reason = field_at(body, "status", "message") or field_at(body, "status", "reason") or "its containers failed"
        return failed(str(reason))
    trouble = trouble_of_pod(body)
    if trouble is None:
        return in_progress(f"phase {phase or 'unknown'}")
    # A container often fails a few times until the objects that it needs exist.
    left_s = _GRACE_S - age_s(body, seen.now)
    if left_s > 0:
        return Verdict(Status.IN_PROGRESS, trouble, again_in_s=left_s)
    return Verdict(Status.FAILED, trouble)


def trouble_of_pod(body: Body) -> str | None:
    """Return why a pod does not start: the reason of its waiting container, or that no node fits; None otherwise."""
    for name in ("initContainerStatuses", "containerStatuses"):
        for container in field_at(body, "status", name) or []:
            waiting = field_at(container, "state", "waiting") or {}
            if waiting.get("reason") in _TROUBLES:
                message = waiting.get("message") or waiting["reason"]
                return f"container {container.get('name')}: {waiting['reason']}: {message}{end_of(container)}"
    scheduled = condition(body, "PodScheduled") or {}
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        return f"unschedulable: {scheduled.get('message', '')}".rstrip(": ")
    return None


def age_s(body: Body, now: datetime, since: str = "creationTimestamp") -> float:
    """Return the time since this moment of the object's metadata; 0 if it has none."""
    moment = field_at(body, "metadata", since)
    return (now - datetime.fromisoformat(str(moment)).astimezone(UTC)).total_seconds() if moment else 0.0


def _job(body: Body, _: Observation) -> Verdict:
    if has_done_its_work(body):
        return CURRENT
    if _is_true(body, "Failed"):
        return _failed(body, "Failed")
    ended = f"{_count(body, 'succeeded')} of {field_at(body, 'spec', 'completions') or 1} completed"
    fails = _count(body, "failed")
    return in_progress(f"{ended}, {fails} failed" if fails else ended)


def _service(body: Body, _: Observation) -> Verdict:
    if field_at(body, "spec", "type") != "LoadBalancer" or field_at(body, "status", "loadBalancer", "ingress"):
        return CURRENT
    return in_progress("no load balancer address yet")


def _claim(body: Body, seen: Observation) -> Verdict:
    phase = field_at(body, "status", "phase")
    if phase == "Bound":
        return CURRENT
    if phase == "Lost":
        return failed("its volume is lost")
    if seen.waits_for_consumer is None:
        return CURRENT
    # "" asks for no class at all; only a missing class stands for the default one.
    storage_class = field_at(body, "spec", "storageClassName")
    if ("" if storage_class is None else storage_class or None) in seen.waits_for_consumer:
        return CURRENT
    return in_progress("not bound yet")


def _phase(good: frozenset[str]) -> Callable[[Body, Observation], Verdict]:
    def rule(body: Body, _: Observation) -> Verdict:
        phase = field_at(body, "status", "phase")
        if phase == "Failed":
            return failed(str(field_at(body, "status", "message") or "phase Failed"))
        return CURRENT if phase in good else in_progress(f"phase {phase or 'unknown'}")

    return rule


def _definition(body: Body, seen: Observation) -> Verdict:
    if _is(body, "NamesAccepted", "False"):
        return _failed(body, "NamesAccepted")
    if not _is_true(body, "Established"):
        return in_progress("not established yet")
    return CURRENT if seen.only_served else _webhooks(body, seen)


def _webhooks(body: Body, _: Observation) -> Verdict:
    lacking = webhooks_without_ca(body)
    return in_progress(f"no CA bundle yet for webhook {', '.join(lacking)}") if lacking else CURRENT


def _by_condition(type: str) -> Callable[[Body, Observation], Verdict]:
    return lambda body, _: CURRENT if _is_true(body, type) else in_progress(in_words(body, type))


def _autoscaler(body: Body, _: Observation) -> Verdict:
    # Its controller writes the first condition after 15 s, and nothing of the set waits for that.
    is_refused = _is(body, "AbleToScale", "False")
    return in_progress(in_words(body, "AbleToScale")) if is_refused else CURRENT


def _observed(body: Body, _: Observation) -> Verdict:
    return _UNOBSERVED if _is_unobserved(body) else CURRENT


_RULES: Final[Mapping[tuple[str, str], Callable[[Body, Observation], Verdict]]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("", "Pod"): _pod,
    ("batch", "Job"): _job,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _phase(frozenset({"Available", "Bound"})),
    ("", "Namespace"): _phase(frozenset({"Active"})),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("apiregistration.k8s.io", "APIService"): _by_condition("Available"),
    # Not by the rule for custom resources: cert-manager may take longer than the settling time to write a status.
    ("cert-manager.io", "Certificate"): _by_condition("Ready"),
    ("cert-manager.io", "Issuer"): _by_condition("Ready"),
    ("cert-manager.io", "ClusterIssuer"): _by_condition("Ready"),
    ("policy", "PodDisruptionBudget"): _observed,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    # Many clusters have no Ingress controller that reports an address.
    ("networking.k8s.io", "Ingress"): lambda body, seen: CURRENT,
}


def last_condition(body: Body) -> str:
    """Return the condition that changed last, as text; "" if there is none (capi.md CR-025)."""
    listed = [each for each in conditions(body) if each.get("type")]
    if not listed:
        return ""
    newest = max(listed, key=lambda each: str(each.get("lastTransitionTime") or ""))
    return in_words(body, str(newest["type"]))
