"""Objects that Kubernetes removes by itself after a time: one that has done its work and was collected is not missing (capi.md CR-121)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, field_at, group_of

_KINDS: Final[Mapping[tuple[str, str], str]] = {
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
    ): "removed an hour after it was issued or refused, or a day after it was made",
    ("certificates.k8s.io", "PodCertificateRequest"): "removed some minutes after it was issued or refused",
    ("", "Event"): "removed after an hour (`--event-ttl` of the API server)",
    ("events.k8s.io", "Event"): "the same objects in another group",
    ("coordination.k8s.io", "LeaseCandidate"): "removed once it was not renewed for half an hour",
}
"""The kinds of which no object stays, with the reasons."""
_JOB: Final = ("batch", "Job")
_REQUEST: Final = ("certificates.k8s.io", "CertificateSigningRequest")
_OF_BOOTSTRAP: Final = "bootstrap.kubernetes.io/token"


def is_passing_kind(key: ObjectKey) -> bool:
    """Return whether Kubernetes removes all objects of this kind after a time."""
    return (key.group, key.kind) in _KINDS


def is_passing(body: Body) -> bool:
    """Return whether Kubernetes removes this object after a time."""
    kind = _kind(body)
    if kind == _JOB:
        return field_at(body, "spec", "ttlSecondsAfterFinished") is not None
    if kind == ("", "Secret") and body.get("type") == _OF_BOOTSTRAP:
        return any(field_at(body, member, "expiration") is not None for member in ("data", "stringData"))
    return kind in _KINDS


def has_done_its_work(body: Body) -> bool:
    """Return whether the object has come to its good end, which no later change can take back."""
    kind = _kind(body)
    if kind == _JOB:
        conditions: Any = field_at(body, "status", "conditions") or []
        return any(each.get("type") == "Complete" and each.get("status") == "True" for each in conditions)
    return kind == _REQUEST and bool(field_at(body, "status", "certificate"))


def _kind(body: Body) -> tuple[str, str]:
    return group_of(str(body.get("apiVersion"))), str(body.get("kind"))
