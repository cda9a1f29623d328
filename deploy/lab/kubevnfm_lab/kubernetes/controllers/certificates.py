"""A stand-in for cert-manager, wherever its kinds are served: Issuers and Certificates are ready, and CA bundles injected.

No Secret is made, because nothing in the lab serves with a certificate of it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, annotations_of, key_of, value_at, with_condition
from kubevnfm_lab.kubernetes.pki import Authority
from kubevnfm_lab.kubernetes.store import Change

_ISSUERS: Final = "issuers.cert-manager.io"
_CERTIFICATES: Final = "certificates.cert-manager.io"
_TRUSTING: Final = (
    "customresourcedefinitions.apiextensions.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
)
_INJECTED_FROM: Final = "cert-manager.io/inject-ca-from"


class Issuers:
    """Issuers are ready at once."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_ISSUERS: itself}

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        self._plane.registry.change(_ISSUERS, key, _be_ready)


class Certificates:
    """Issues each Certificate at once, and gives its CA bundle to the webhooks that ask for it by an annotation."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._bundles: dict[Key, str] = {}
        """By Certificate."""

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_CERTIFICATES: itself, **dict.fromkeys(_TRUSTING, self._of_certificate)}

    @staticmethod
    def _of_certificate(change: Change) -> Iterable[Key]:
        namespace, _, name = annotations_of(change.obj).get(_INJECTED_FROM, "").partition("/")
        return [Key(namespace, name)] if name else []

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        if self._plane.registry.change(_CERTIFICATES, key, _be_ready) is None:
            return
        if key not in self._bundles:
            self._bundles[key] = base64.b64encode(Authority(key.name).pem.encode()).decode()

        def inject(obj: Obj) -> None:
            for config in _client_configs(obj):
                config["caBundle"] = self._bundles[key]

        for resource in _TRUSTING:
            for obj in self._plane.store.list(resource):
                if annotations_of(obj).get(_INJECTED_FROM) == f"{key.namespace}/{key.name}":
                    self._plane.registry.change(resource, key_of(obj), inject)


def _be_ready(obj: Obj) -> None:
    status = obj.get("status") or {}
    before = status.get("conditions") or []
    ready = with_condition(before, "Ready", status=True, reason="Ready", message="Certificate is up to date")
    obj["status"] = {**status, "conditions": ready}


def _client_configs(obj: Obj) -> Iterator[Obj]:
    conversion = value_at(obj, "spec", "conversion", "webhook", "clientConfig")
    if conversion is not None:
        yield conversion
    yield from (each["clientConfig"] for each in obj.get("webhooks") or [])
