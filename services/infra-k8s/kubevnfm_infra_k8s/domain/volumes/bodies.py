"""The objects of a volume: PersistentVolumes and claims, and the changes of them. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_infra_k8s.domain.objects import (
    CLAIMS,
    MANAGED_BY,
    Body,
    ObjectKey,
    Resource,
    field_at,
    labels_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.quantities import bytes_of
from kubevnfm_infra_k8s.domain.volumes.record import VOLUME_LABEL, Volume

VOLUMES: Final = Resource("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
_HOSTNAME: Final = "kubernetes.io/hostname"
SOURCES: Final = ("nfs", "csi", "local")
_WITH_SOURCE: Final = ("nodeAffinity", "mountOptions")
"""The members of a PersistentVolume that say from which nodes, and how, its source is reached."""


def pv_key(name: str) -> ObjectKey:
    """Return the key of a PersistentVolume."""
    return ObjectKey(VOLUMES.api_version, VOLUMES.kind, "", name)


def pv_body(volume: Volume, name: str, claim: ObjectKey) -> Body:
    """Return a PersistentVolume with the volume's source that is reserved for a claim from its first moment."""
    source = dict(volume.source or volume.pv_source or {})
    spec: JsonObject = {
        "capacity": {"storage": volume.size},
        "accessModes": list(volume.access_modes),
        "volumeMode": volume.volume_mode,
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": volume.storage_class or "",
        "claimRef": _reference(claim),
    }
    local = source.get("local")
    if local is not None and "nodes" in local:
        terms = {"key": _HOSTNAME, "operator": "In", "values": local["nodes"]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [terms]}]}}
        source["local"] = {member: value for member, value in local.items() if member != "nodes"}
    metadata = {"name": name, "labels": _labels(volume)}
    return {"apiVersion": "v1", "kind": VOLUMES.kind, "metadata": metadata, "spec": {**spec, **source}}


def provisioning_claim(volume: Volume, key: ObjectKey) -> Body:
    """Return a claim for which the volume's class provisions a PersistentVolume."""
    return _claim(volume, key, volume.size, {})


def bound_claim(volume: Volume, key: ObjectKey, pv: Body) -> Body:
    """Return a claim for a PersistentVolume that exists.

    It asks for what the PersistentVolume has: the API server refuses to let a claim grow before it is bound.
    """
    size = str(field_at(pv, "spec", "capacity", "storage") or volume.size)
    return _claim(volume, key, size, {"volumeName": pv["metadata"]["name"]})


def _claim(volume: Volume, key: ObjectKey, size: str, more: JsonMapping) -> Body:
    spec = {
        "accessModes": list(volume.access_modes),
        "volumeMode": volume.volume_mode,
        "storageClassName": volume.storage_class or "",
        "resources": {"requests": {"storage": size}},
        **more,
    }
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": _labels(volume),
    }
    return {"apiVersion": "v1", "kind": CLAIMS.kind, "metadata": metadata, "spec": spec}


def exchange(pv: Body, claim: ObjectKey, uid: str = "") -> Body:
    """Return the merge patch that reserves a PersistentVolume for another claim; ``uid``: "" if that does not exist.

    A null takes the uid of the claim before it away; server-side apply would not, because the controller owns the field. The API server
    refuses the patch if the PersistentVolume has changed since it was read.
    """
    version = field_at(pv, "metadata", "resourceVersion")
    reference = {**_reference(claim), "uid": uid or None, "resourceVersion": None}
    return {"metadata": {"resourceVersion": version}, "spec": {"claimRef": reference}}


def patch_to_keep(volume: Volume, *, reclaim: str = "Retain") -> Body:
    """Return the merge patch that has a PersistentVolume and its data survive its claim, or not, and marks it as the volume's."""
    return {"metadata": {"labels": _changed_labels(volume)}, "spec": {"persistentVolumeReclaimPolicy": reclaim}}


def is_kept(volume: Volume, pv: Body) -> bool:
    """Return whether `patch_to_keep` would change nothing."""
    return _has_labels(volume, pv) and field_at(pv, "spec", "persistentVolumeReclaimPolicy") == "Retain"


def change_of_claim(volume: Volume, claim: Body) -> Body | None:
    """Return the merge patch that has a bound claim grow and gives it the volume's labels; None if it is as wanted."""
    change: JsonObject = {} if _has_labels(volume, claim) else {"metadata": {"labels": _changed_labels(volume)}}
    if is_smaller(field_at(claim, "spec", "resources", "requests", "storage"), volume):
        change["spec"] = {"resources": {"requests": {"storage": volume.size}}}
    return change or None


def is_smaller(present: object, volume: Volume) -> bool:
    """Return whether a volume is to grow from a size that the region shows; not if that is no quantity."""
    try:
        return volume.storage_class is not None and bytes_of(present) < bytes_of(volume.size)
    except ValueError:
        return False


def _labels(volume: Volume) -> Mapping[str, str]:
    return {**volume.labels, **MANAGED_BY, VOLUME_LABEL: volume.id}


def _changed_labels(volume: Volume) -> Mapping[str, str | None]:
    """Return the labels for a merge patch: a null takes one away."""
    return {**dict.fromkeys(volume.former_labels, None), **_labels(volume)}


def _has_labels(volume: Volume, body: Body) -> bool:
    present = labels_of(body)
    return _labels(volume).items() <= present.items() and not set(volume.former_labels) & present.keys()


def is_own(volume: Volume, body: Body) -> bool:
    """Return whether an object has the label of the volume."""
    return labels_of(body).get(VOLUME_LABEL) == volume.id


def is_of(volume: Volume, pv: Body) -> bool:
    """Return whether a PersistentVolume is the volume's: by its label, or as the one that was seen, though it has lost that."""
    return is_own(volume, pv) or (bool(volume.pv_uid) and uid_of(pv) == volume.pv_uid)


def source_in(pv: Body) -> JsonObject | None:
    """Return where the data of a PersistentVolume are, and from where; None if its kind of source is none that we name."""
    spec = field_at(pv, "spec") or {}
    found = next(({name: dict(spec[name])} for name in SOURCES if isinstance(spec.get(name), dict)), None)
    return found if found is None else {**found, **{name: spec[name] for name in _WITH_SOURCE if spec.get(name)}}


def place_of_data(volume: Volume) -> str:
    """Return where the data of a volume are, as a text."""
    source = volume.source or volume.pv_source or {}
    if "nfs" in source:
        return f"nfs {source['nfs'].get('server')}:{source['nfs'].get('path')}"
    if "csi" in source:
        return f"csi {source['csi'].get('driver')} {source['csi'].get('volumeHandle')}"
    if "local" in source:
        nodes = ", ".join(source["local"].get("nodes", ()))
        return f"local {source['local'].get('path')}" + (f" on {nodes}" if nodes else "")
    # The object itself is deleted with the volume.
    return f"the source that PersistentVolume {volume.pv} had" if volume.pv else ""


def claim_of(pv: Body) -> tuple[ObjectKey, str] | None:
    """Return the claim for which a PersistentVolume is reserved, and its uid: "" until the two are bound."""
    namespace, name, uid = (field_at(pv, "spec", "claimRef", member) for member in ("namespace", "name", "uid"))
    if not name:
        return None
    return ObjectKey(CLAIMS.api_version, CLAIMS.kind, str(namespace), str(name)), str(uid or "")


def _reference(claim: ObjectKey) -> JsonObject:
    return {
        "apiVersion": claim.api_version,
        "kind": claim.kind,
        "namespace": claim.namespace,
        "name": claim.name,
    }
