"""The CA bundles by which an API server trusts webhooks: which are missing, and which are others' to write (CR-040).

cert-manager and its like write them into definitions, webhook configurations and APIServices, after these were applied.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from kubevnfm_infra_k8s.domain.objects import Body, annotations_of, field_at

_BUNDLE: Final = "caBundle"
_INJECTED: Final = re.compile(r"/inject-(apiserver-)?ca")
"""In the name of an annotation that asks for a bundle: ``cert-manager.io/inject-ca-from`` and those like it."""
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_DER_SEQUENCE: Final = 0x30
"""The first byte of each certificate."""


def webhooks_without_ca(body: Body) -> Sequence[str]:
    """Return the webhooks of a definition or a webhook configuration that the API server cannot trust yet.

    The webhook of a Service needs a bundle with a certificate in it. One with a ``url`` may have a public certificate.
    """
    return [
        name
        for name, config in _client_configs(body)
        if isinstance(config.get("service"), Mapping) and not _has_certificate(config.get(_BUNDLE))
    ]


def without_others_bundles(body: dict[str, Any]) -> dict[str, Any]:
    """Return the object to apply without the bundles that another party writes into it.

    An apply would take the field from that party, and put the placeholder of the manifest (such as ``Cg==``) in its place.
    """
    is_injected = any(_INJECTED.search(name) for name in annotations_of(body))

    def is_anothers(holder: Body) -> bool:
        return _BUNDLE in holder and (is_injected or not _has_certificate(holder[_BUNDLE]))

    if not any(is_anothers(holder) for holder in _holders(body)):
        return body
    changed = deepcopy(body)
    for holder in _holders(changed):
        if is_anothers(holder):
            del holder[_BUNDLE]
    return changed


def _client_configs(body: Body) -> Iterator[tuple[str, Any]]:
    """Yield (name, ``clientConfig``) of each webhook."""
    conversion = field_at(body, "spec", "conversion")
    if field_at(conversion, "strategy") == "Webhook":
        yield "conversion", field_at(conversion, "webhook", "clientConfig") or {}
    webhooks = body.get("webhooks")
    for each in webhooks if isinstance(webhooks, list) else ():
        config = field_at(each, "clientConfig")
        if isinstance(config, Mapping):
            yield str(each.get("name")), config


def _holders(body: Body) -> Iterator[Any]:
    """Yield the parts of an object that can have a bundle."""
    kind = body.get("kind")
    if kind in ("CustomResourceDefinition", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        for _, config in _client_configs(body):
            yield config
    elif kind == "APIService" and isinstance(body.get("spec"), Mapping):
        yield body["spec"]


def _has_certificate(bundle: object) -> bool:
    if not isinstance(bundle, str):
        return False
    try:
        found = _CERTIFICATE.search(base64.b64decode(bundle, validate=True))
        return found is not None and base64.b64decode(found[1])[:1] == bytes([_DER_SEQUENCE])
    except (binascii.Error, ValueError):
        return False
