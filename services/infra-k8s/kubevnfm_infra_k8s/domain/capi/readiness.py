"""The readiness of the kinds of Cluster API and of its infrastructure providers, for both contracts (capi.md chapter 8).

Phases never decide (CR-055): they are texts for people, and differ between versions.
Source: Cluster API, docs/proposals/20240916-improve-status-in-CAPI-resources.md; the status types of both API versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from kubevnfm_infra_k8s.domain.capi.contract import (
    BOOTSTRAP,
    CONTROL_PLANE,
    CORE,
    INFRASTRUCTURE,
    Conditions,
    Contract,
    contract_of,
    is_paused,
)
from kubevnfm_infra_k8s.domain.objects import Body, field_at
from kubevnfm_infra_k8s.domain.verdicts import CURRENT, Observation, Status, Verdict, failed, in_progress

Rule = Callable[[Body, Observation], Verdict]

_AUTHENTICATION: Final = "OpenStackAuthenticationSucceeded"
_GRACE_S: Final = 60.0
"""How long the cloud may refuse the credentials: the Secret with new ones may be applied a moment later."""
_CHANGES: Final = ("RollingOut", "ScalingUp", "ScalingDown", "Remediating")
"""Conditions of v1beta2 that are True while something changes."""


def _guarded(rule: Rule, *, is_observed: bool = True) -> Rule:
    """Return the rule after what is common: paused, permanent failures, and whether a controller has seen the object."""

    def judge(body: Body, seen: Observation) -> Verdict:
        if is_paused(body):
            return in_progress("paused: Cluster API leaves it alone until it is no longer paused")
        if failure := _failure(body):
            return failed(failure)
        refused = _refused_by_cloud(body, seen)
        if refused is not None:
            return refused
        # CR-054. Providers of infrastructure write no observedGeneration in their older versions.
        if is_observed and field_at(body, "status", "observedGeneration") is None:
            return in_progress("not observed yet")
        return rule(body, seen)

    return judge


def _failure(body: Body) -> str:
    """Return the permanent failure of an object of v1beta1 (CR-057); "" if there is none."""
    reason, message = (field_at(body, "status", name) for name in ("failureReason", "failureMessage"))
    return ": ".join(str(part) for part in (reason, message) if part)


def _refused_by_cloud(body: Body, seen: Observation) -> Verdict | None:
    found = Conditions(body)[_AUTHENTICATION]
    if found is None or found.status != "False":
        return None
    left_s = _GRACE_S - _age_s(found.since, seen)
    if left_s > 0:
        return Verdict(Status.IN_PROGRESS, found.in_words, again_in_s=left_s)
    return failed(found.in_words)


def _age_s(since: str, seen: Observation) -> float:
    try:
        return (seen.now - datetime.fromisoformat(since).astimezone(UTC)).total_seconds()
    except (ValueError, OverflowError):  # the latter: a moment of the year 1 or 9999 that is none in UTC
        return 0.0


def is_infrastructure_ready(body: Body) -> bool:
    """Return whether the infrastructure of a Cluster is provisioned."""
    return (
        field_at(body, "status", "initialization", "infrastructureProvisioned") is True
        or field_at(body, "status", "infrastructureReady") is True
    )


def endpoint_of(body: Body) -> str:
    """Return the address of a Cluster's API server as ``host:port``; "" until it is known."""
    endpoint = field_at(body, "spec", "controlPlaneEndpoint") or {}
    host, port = field_at(endpoint, "host"), field_at(endpoint, "port")
    return f"{host}:{port}" if host and port else ""


def is_initialized(body: Body) -> bool:
    """Return whether the API server of a Cluster has answered once."""
    return field_at(body, "status", "initialization", "controlPlaneInitialized") is True or Conditions(body).is_true(
        "ControlPlaneInitialized"
    )


def open_steps(body: Body) -> Iterator[tuple[str, str]]:
    """Yield the steps of chapter 8 that a Cluster has not done yet, in order, each with what is known about it."""
    said = Conditions(body)
    if not is_infrastructure_ready(body):
        yield "infrastructure", said.in_words("InfrastructureReady")
    if not endpoint_of(body):
        yield "endpoint", "the address of the API server is not known yet"
    if not is_initialized(body):
        yield "initialized", said.in_words("ControlPlaneInitialized")
    if field_at(body, "spec", "topology") is not None and not said.is_true("TopologyReconciled"):
        yield "class", said.in_words("TopologyReconciled")
    if contract_of(str(body.get("apiVersion"))) is Contract.V1BETA1:
        if field_at(body, "status", "controlPlaneReady") is not True and not said.is_true("ControlPlaneReady"):
            yield "control plane", said.in_words("ControlPlaneReady")
        if not said.is_true("Ready"):
            yield "all", said.in_words("Ready")
        return
    for step, name in (
        ("control plane", "ControlPlaneAvailable"),
        ("workers", "WorkersAvailable"),
        ("connection", "RemoteConnectionProbe"),
        ("all", "Available"),
    ):
        if not said.is_true(name):
            yield step, said.in_words(name)
    for name in _CHANGES:
        if said.is_true(name):
            yield "changes", said.in_words(name)


def _cluster(body: Body, _: Observation) -> Verdict:
    step = next(open_steps(body), None)
    return CURRENT if step is None else in_progress(f"{step[0]}: {step[1]}")


def counts(body: Body) -> Mapping[str, int]:
    """Return the wanted and the counted replicas of an owner of Machines, named as in v1beta2."""
    is_old = contract_of(str(body.get("apiVersion"))) is Contract.V1BETA1
    names = {"readyReplicas": "readyReplicas", "availableReplicas": "availableReplicas"}
    kind = body.get("kind")
    if kind in ("KubeadmControlPlane", "MachineDeployment"):
        names["upToDateReplicas"] = "updatedReplicas" if is_old else "upToDateReplicas"
    # The KubeadmControlPlane of v1beta1 counts no available replicas.
    if is_old and kind == "KubeadmControlPlane":
        del names["availableReplicas"]
    wanted = field_at(body, "spec", "replicas")
    found = {"wanted": wanted if isinstance(wanted, int) else 1, "replicas": _count(body, "replicas")}
    return {**found, **{name: _count(body, path) for name, path in names.items()}}


def _count(body: Body, name: str) -> int:
    value = field_at(body, "status", name)
    return value if isinstance(value, int) else 0


def _uncounted(body: Body) -> str:
    """Return which count of Machines differs from the wanted number; "" if none does."""
    found = dict(counts(body))
    wanted = found.pop("wanted")
    words = {
        "replicas": "there",
        "readyReplicas": "ready",
        "availableReplicas": "available",
        "upToDateReplicas": "updated",
    }
    return next((f"{count} of {wanted} {words[name]}" for name, count in found.items() if count != wanted), "")


def _machines(*needed: str, unless_against: tuple[str, ...] = ()) -> Rule:
    """Return the rule of an owner of Machines: these conditions True, nothing changing, and every Machine counted."""

    def rule(body: Body, _: Observation) -> Verdict:
        said = Conditions(body)
        for name in _CHANGES:
            if said.is_true(name):
                return _with_counts(body, said.in_words(name))
        if against := said.first_against(unless_against):
            return _with_counts(body, against)
        if uncounted := _uncounted(body):
            because = said.first_false()
            return in_progress(f"{uncounted}, {because}" if because else uncounted)
        return _until(said.first_lacking(needed))

    return rule


def _with_counts(body: Body, message: str) -> Verdict:
    uncounted = _uncounted(body)
    return in_progress(f"{uncounted}, {message}" if uncounted else message)


def _until(message: str) -> Verdict:
    return in_progress(message) if message else CURRENT


def _control_plane(body: Body, seen: Observation) -> Verdict:
    if contract_of(str(body.get("apiVersion"))) is Contract.V1BETA1:
        if field_at(body, "status", "ready") is not True and field_at(body, "spec", "replicas") != 0:
            return _with_counts(body, Conditions(body).first_false() or "not ready yet")
        return _OLD_CONTROL_PLANE(body, seen)
    return _NEW_CONTROL_PLANE(body, seen)


_OLD_CONTROL_PLANE: Final = _machines(
    "Available", "CertificatesAvailable", unless_against=("MachinesSpecUpToDate", "Resized")
)
# An external etcd has no condition, so the two about components count only if they are there.
_NEW_CONTROL_PLANE: Final = _machines(
    "Available", "CertificatesAvailable", unless_against=("EtcdClusterHealthy", "ControlPlaneComponentsHealthy")
)


def _machine(body: Body, _: Observation) -> Verdict:
    said = Conditions(body)
    if contract_of(str(body.get("apiVersion"))) is Contract.V1BETA1:
        needed: tuple[str, ...] = ("BootstrapReady", "InfrastructureReady", "NodeHealthy", "Ready")
    else:
        needed = ("BootstrapConfigReady", "InfrastructureReady", "NodeHealthy", "NodeReady", "Ready", "Available")
        # Only a Machine with an owner, whose template it can differ from, has this condition.
        if against := said.first_against(["UpToDate"]):
            return in_progress(against)
    return _until(said.first_lacking(needed))


def _provided(body: Body, _: Observation) -> Verdict:
    """Judge an object of the infrastructure provider, whose status has the form of either contract."""
    is_ready = (
        field_at(body, "status", "initialization", "provisioned") is True or field_at(body, "status", "ready") is True
    )
    said = Conditions(body)
    if not is_ready:
        return in_progress(said.first_false() or "not provisioned yet")
    return _until(said.first_against(["Ready"]))


def _class(body: Body, _: Observation) -> Verdict:
    return _until(Conditions(body).first_against(["VariablesReady", "VariablesReconciled"]))


def _as_applied(body: Body, _: Observation) -> Verdict:
    """A template is ready as it is: no controller works on it."""
    return CURRENT


RULES: Final[Mapping[tuple[str, str], Rule]] = {
    (CORE, "Cluster"): _guarded(_cluster),
    (CORE, "MachineDeployment"): _guarded(_machines("Available", unless_against=("MachineSetReady",))),
    (CORE, "MachineSet"): _guarded(_machines()),
    (CORE, "MachinePool"): _guarded(_machines(unless_against=("Available", "Ready"))),
    (CORE, "Machine"): _guarded(_machine),
    (CORE, "ClusterClass"): _class,
    (CONTROL_PLANE, "KubeadmControlPlane"): _guarded(_control_plane),
    (CONTROL_PLANE, "KubeadmControlPlaneTemplate"): _as_applied,
    (BOOTSTRAP, "KubeadmConfigTemplate"): _as_applied,
}
"""By API group and kind."""
_PROVIDED: Final = _guarded(_provided, is_observed=False)


def rule_of(group: str, kind: str) -> Rule | None:
    """Return the rule of a kind of Cluster API, None for other kinds.

    The contract gives the kinds of every infrastructure provider the same names and the same status.
    """
    if group == INFRASTRUCTURE and kind.endswith("Template"):
        return _as_applied
    if group == INFRASTRUCTURE and kind.endswith(("Cluster", "Machine")):
        return _PROVIDED
    return RULES.get((group, kind))
