"""Why claims are not bound to a volume: the controller of volumes says it only by events (capi.md CR-025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_infra_k8s.domain.objects import CLAIMS, Body, ObjectKey, field_at

_REASONS: Final = frozenset({"ProvisioningFailed", "FailedBinding", "ExternalProvisioning"})
"""Those of events that say why. The last two are no warnings: the controller keeps trying."""


def why_unbound(events: Sequence[Body]) -> Mapping[ObjectKey, str]:
    """Return the reason of each claim that has one, by its newest event; the newest of the events is the last one."""
    found: dict[ObjectKey, str] = {}
    for event in events:
        about = event.get("involvedObject") or {}
        if about.get("kind") == CLAIMS.kind and event.get("reason") in _REASONS:
            key = _key(str(about.get("namespace") or ""), str(about.get("name") or ""))
            found[key] = f"{event['reason']}: {event.get('message', '')}"
    return found


def claims_of_pod(pod: Body) -> Sequence[ObjectKey]:
    """Return the claims that a pod uses."""
    namespace = str(field_at(pod, "metadata", "namespace") or "")
    names = (field_at(each, "persistentVolumeClaim", "claimName") for each in field_at(pod, "spec", "volumes") or ())
    return [_key(namespace, str(name)) for name in names if name]


def _key(namespace: str, name: str) -> ObjectKey:
    return ObjectKey("v1", CLAIMS.kind, namespace, name)
