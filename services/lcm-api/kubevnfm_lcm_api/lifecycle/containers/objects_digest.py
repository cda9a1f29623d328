"""The digest of the objects of a VNF, by which two revisions are compared (multicloud.md MC-042)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_secrets import KeyRing, map_secrets

_SECRET_PARTS: Final = ("data", "stringData")


def digest_of_objects(bodies: Sequence[Any], order: ObjectsOrder, ring: KeyRing, charts: Sequence[str] = ()) -> str:
    """Return the digest of objects with their variables filled in, and of what is added to them, as canonical JSON.

    ``charts``: those of the order, whose objects infra-k8s makes of the package and the values; these stand for them.
    Data of Secrets are keyed hashes: the digest of one that is guessed could otherwise be compared.
    """
    added = [
        [each.model_dump(mode="json") for each in part]
        for part in (order.networks, order.compute_profiles, order.volumes)
    ]
    if charts:
        values = json.dumps(map_secrets(order.values, lambda secret: secret.reveal(ring)), sort_keys=True)
        rendered = {"package": order.package.package_id, "charts": list(charts), "values": ring.fingerprint(values)}
        if order.kubernetes_version is not None:
            rendered["kubernetes_version"] = order.kubernetes_version
        added.append([rendered])
    text = json.dumps([[_hashed(each, ring) for each in bodies], added], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _hashed(body: Any, ring: KeyRing) -> Any:
    if not isinstance(body, Mapping) or (body.get("apiVersion"), body.get("kind")) != ("v1", "Secret"):
        return body
    return {
        name: ring.fingerprint(json.dumps(value)) if name in _SECRET_PARTS else value for name, value in body.items()
    }
