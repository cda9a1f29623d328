"""Persistent volumes and claims: bound to each other, provisioned by storage class, protected in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, is_terminating, key_of, labels_of, value_at
from kubevnfm_lab.kubernetes.selectors import matches_selector
from kubevnfm_lab.kubernetes.store import Change
from kubevnfm_lab.kubernetes.validation import quantity

_CLAIMS: Final = "persistentvolumeclaims"
_VOLUMES: Final = "persistentvolumes"
_CLASSES: Final = "storageclasses.storage.k8s.io"
_CLASSES_KIND: Final = "storageclass.storage.k8s.io"
"""How the controller names one in its events."""
_COMPONENT: Final = "persistentvolume-controller"
_CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
_VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"


class Claims:
    """Binds claims to volumes."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._reported: set[tuple[str, str]] = set()
        """The reason that the last Event gave, by uid of the claim."""

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_CLAIMS: itself, _VOLUMES: self._unbound, _CLASSES: self._unbound, "pods": self._of_pod}

    def _unbound(self, change: Change) -> Iterable[Key]:
        claims = self._plane.store.list(_CLAIMS)
        return [
            key_of(claim)
            for claim in claims
            if value_at(claim, "status", "phase") != "Bound" or value_at(claim, "spec", "volumeName") == change.key.name
        ]

    def _of_pod(self, change: Change) -> Iterable[Key]:
        return [Key(change.key.namespace, name) for name in _claims_of(change.obj)]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        claim = self._plane.store.get(_CLAIMS, key)
        if claim is None:
            return
        if is_terminating(claim):
            self._release(claim)
        elif value_at(claim, "spec", "volumeName") and value_at(claim, "status", "phase") == "Bound":
            self._check_volume(claim)
        else:
            self._bind(claim)

    def _release(self, claim: Obj) -> None:
        """Remove the finalizer of a terminating claim that no pod uses any more."""
        # pvc-protection: a claim in use outlives its deletion.
        if self._users(claim):
            return

        def release(obj: Obj) -> None:
            finalizers = obj["metadata"].get("finalizers") or []
            obj["metadata"]["finalizers"] = [f for f in finalizers if f != _CLAIM_PROTECTION]

        self._plane.registry.change(_CLAIMS, key_of(claim), release)

    def _users(self, claim: Obj) -> list[Obj]:
        pods = self._plane.store.list("pods", claim["metadata"]["namespace"])
        over = {"Succeeded", "Failed"}
        return [
            pod
            for pod in pods
            if claim["metadata"]["name"] in _claims_of(pod) and value_at(pod, "status", "phase") not in over
        ]

    def _check_volume(self, claim: Obj) -> None:
        volume = self._plane.store.get(_VOLUMES, Key("", claim["spec"]["volumeName"]))
        if volume is None:
            self._set_phase(claim, "Lost")
        elif quantity(claim["spec"]["resources"]["requests"]["storage"]) > quantity(
            volume["spec"]["capacity"]["storage"]
        ):
            self._grow(claim, volume)

    def _grow(self, claim: Obj, volume: Obj) -> None:
        """Do what the resizer of the class's driver does; volumes that no class has made do not grow."""
        if not value_at(volume, "metadata", "annotations", "pv.kubernetes.io/provisioned-by"):
            return
        size = claim["spec"]["resources"]["requests"]["storage"]

        def grow(obj: Obj) -> None:
            obj["spec"]["capacity"] = {"storage": size}

        self._plane.registry.change(_VOLUMES, key_of(volume), grow)
        self._plane.registry.set_status(_CLAIMS, key_of(claim), {**claim["status"], "capacity": {"storage": size}})

    def _bind(self, claim: Obj) -> None:
        if value_at(claim, "spec", "volumeName"):
            volume = self._named_volume(claim)
        else:
            volume = self._matching_volume(claim) or self._provisioned_volume(claim)
        if volume is None:
            return
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": claim["metadata"]["namespace"],
            "name": claim["metadata"]["name"],
            "uid": claim["metadata"]["uid"],
        }
        name = volume["metadata"]["name"]

        def claim_volume(obj: Obj) -> None:
            obj["spec"]["claimRef"] = reference
            obj["status"] = {"phase": "Bound"}

        def settle(obj: Obj) -> None:
            obj["spec"]["volumeName"] = name
            obj["status"] = {
                "phase": "Bound",
                "accessModes": volume["spec"]["accessModes"],
                "capacity": volume["spec"]["capacity"],
            }

        self._plane.registry.change(_VOLUMES, key_of(volume), claim_volume)
        self._plane.registry.change(_CLAIMS, key_of(claim), settle)

    def _named_volume(self, claim: Obj) -> Obj | None:
        """Return the volume that the claim names; None while it is absent, taken, or not what is asked for."""
        volume = self._plane.store.get(_VOLUMES, Key("", claim["spec"]["volumeName"]))
        if volume is None or _is_used_up(volume) or not _is_free_for(claim, volume):
            return None
        mismatch = next(_mismatches(claim, volume), None)
        if mismatch is not None:
            message = f'Cannot bind to requested volume "{volume["metadata"]["name"]}": {mismatch}'
            self._wait(claim, "VolumeMismatch", message, kind="Warning")
            return None
        return volume

    def _matching_volume(self, claim: Obj) -> Obj | None:
        """Return the volume that is reserved for the claim, or the smallest free one that suffices."""
        spec, fitting = claim["spec"], []
        for volume in self._plane.store.list(_VOLUMES):
            if _is_used_up(volume) or next(_mismatches(claim, volume), None) is not None:
                continue
            if not _is_free_for(claim, volume):
                continue
            if volume["spec"].get("claimRef") is not None:
                return volume
            if spec.get("selector") is None or matches_selector(spec["selector"], labels_of(volume)):
                fitting.append(volume)
        # The smallest, so that large volumes stay free for claims that need them.
        return min(fitting, key=lambda v: quantity(v["spec"]["capacity"]["storage"]), default=None)

    def _provisioned_volume(self, claim: Obj) -> Obj | None:
        name = value_at(claim, "spec", "storageClassName") or ""
        storage_class = self._plane.store.get(_CLASSES, Key("", name))
        if storage_class is not None:
            return self._provision(claim, storage_class)
        if name:
            self._wait(claim, "ProvisioningFailed", f'{_CLASSES_KIND} "{name}" not found', kind="Warning")
            return None
        message = "no persistent volumes available for this claim and no storage class is set"
        self._wait(claim, "FailedBinding", message)
        return None

    def _provision(self, claim: Obj, storage_class: Obj) -> Obj | None:
        """Create a volume for the claim; None while the claim waits for a pod or a person."""
        if storage_class["volumeBindingMode"] == "WaitForFirstConsumer" and not any(
            value_at(pod, "spec", "nodeName") for pod in self._users(claim)
        ):
            self._wait(claim, "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
            return None
        # Local volumes are made by hand and only bound.
        if storage_class["provisioner"] == "kubernetes.io/no-provisioner":
            message = "no volume plugin matched name: kubernetes.io/no-provisioner"
            self._wait(claim, "ProvisioningFailed", message, kind="Warning")
            return None
        name = f"pvc-{claim['metadata']['uid']}"
        spec = claim["spec"]
        return self._plane.create(
            _VOLUMES,
            {
                "metadata": {
                    "name": name,
                    "annotations": {"pv.kubernetes.io/provisioned-by": storage_class["provisioner"]},
                },
                "spec": {
                    "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                    "accessModes": spec["accessModes"],
                    "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
                    "storageClassName": storage_class["metadata"]["name"],
                    "volumeMode": spec["volumeMode"],
                    "csi": {"driver": storage_class["provisioner"], "volumeHandle": name},
                },
            },
        )

    def _wait(self, claim: Obj, reason: str, message: str, *, kind: str = "Normal") -> None:
        waiting = (claim["metadata"]["uid"], reason)
        if waiting not in self._reported:
            self._reported.add(waiting)
            self._plane.record(claim, kind, reason, message, component=_COMPONENT)

    def _set_phase(self, claim: Obj, phase: str) -> None:
        self._plane.registry.set_status(_CLAIMS, key_of(claim), {**(claim.get("status") or {}), "phase": phase})


class Volumes:
    """Keeps the phases of volumes and reclaims those whose claim is gone."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_VOLUMES: itself, _CLAIMS: self._of_claim}

    def _of_claim(self, change: Change) -> Iterable[Key]:
        name = value_at(change.obj, "spec", "volumeName")
        return (Key("", name),) if name else ()

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        volume = self._plane.store.get(_VOLUMES, key)
        if volume is None:
            return
        taker = value_at(volume, "spec", "claimRef") or {}
        claim = self._plane.store.get(_CLAIMS, Key(taker.get("namespace", ""), taker.get("name", "")))
        is_taken = claim is not None and claim["metadata"]["uid"] == taker.get("uid")
        if is_terminating(volume):
            if not is_taken:
                self._let_go(key)
        elif not taker.get("uid"):
            self._set_phase(volume, "Available")
        elif is_taken:
            self._set_phase(volume, "Bound")
        elif volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            self._plane.delete(_VOLUMES, volume)
        else:
            self._set_phase(volume, "Released")

    def _let_go(self, key: Key) -> None:
        def release(obj: Obj) -> None:
            finalizers = obj["metadata"].get("finalizers") or []
            obj["metadata"]["finalizers"] = [f for f in finalizers if f != _VOLUME_PROTECTION]

        self._plane.registry.change(_VOLUMES, key, release)

    def _set_phase(self, volume: Obj, phase: str) -> None:
        if value_at(volume, "status", "phase") != phase:
            self._plane.registry.set_status(_VOLUMES, key_of(volume), {"phase": phase})


def _is_used_up(volume: Obj) -> bool:
    return is_terminating(volume) or value_at(volume, "status", "phase") in {"Released", "Failed"}


def _is_free_for(claim: Obj, volume: Obj) -> bool:
    """Return whether no claim has the volume, or it is reserved for the claim by name: not for a later one of the same name."""
    taker = volume["spec"].get("claimRef")
    if taker is None:
        return True
    is_same = (taker.get("namespace"), taker.get("name")) == tuple(key_of(claim))
    return is_same and taker.get("uid") in {None, claim["metadata"]["uid"]}


def _mismatches(claim: Obj, volume: Obj) -> Iterator[str]:
    """Yield why a volume is not what a claim asks for, as the controller says it."""
    spec, offer = claim["spec"], volume["spec"]
    if quantity(offer["capacity"]["storage"]) < quantity(spec["resources"]["requests"]["storage"]):
        yield "requested PV is too small"
    if (spec.get("storageClassName") or "") != (offer.get("storageClassName") or ""):
        yield "storageClassName does not match"
    if spec.get("volumeMode", "Filesystem") != offer.get("volumeMode", "Filesystem"):
        yield "incompatible volumeMode"
    if not set(spec["accessModes"]) <= set(offer["accessModes"]):
        yield "incompatible accessMode"


def _claims_of(pod: Obj) -> set[str]:
    """Return the names of the claims that a pod uses."""
    volumes = value_at(pod, "spec", "volumes") or []
    names = {value_at(volume, "persistentVolumeClaim", "claimName") for volume in volumes}
    return {name for name in names if name}
