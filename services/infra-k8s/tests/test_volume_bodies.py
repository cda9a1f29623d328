"""The objects of volumes, quantities and phases: what is made of a document, without a cluster."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from kubevnfm_clients.multicloud.volumes import VolumeRequest
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.quantities import bytes_of
from kubevnfm_infra_k8s.domain.volumes import bodies
from kubevnfm_infra_k8s.domain.volumes.phases import phase_of
from kubevnfm_infra_k8s.domain.volumes.record import Use, Volume

NOW = "2026-01-01T00:00:00.000Z"
CLAIM = ObjectKey("v1", "PersistentVolumeClaim", "ns1", "data")


def a_volume(**changes: Any) -> Volume:
    given: dict[str, Any] = {
        "cloud_region_id": "op/edge",
        "name": "data",
        "size": "1Gi",
        "access_modes": ["ReadWriteOnce"],
    }
    if "storage_class" not in changes:
        given["source"] = {"nfs": {"server": "192.0.2.9", "path": "/data"}}
    request = VolumeRequest.model_validate({**given, **changes})
    return Volume.from_request(request, id="v1", vim_id="vim", place="links", now=NOW)


def a_pv(volume: Volume, claim: ObjectKey | None = None, *, uid: str = "", phase: str = "Available") -> dict[str, Any]:
    body = dict(bodies.pv_body(volume, "kubevnfm-v1", claim or volume.reserved_claim))
    spec = {**body["spec"]}
    if uid:
        spec["claimRef"] = {**spec["claimRef"], "uid": uid}
    metadata = {**body["metadata"], "uid": "u1", "resourceVersion": "7"}
    return {**body, "metadata": metadata, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1Gi", 2**30),
        ("1.5Ki", 1536),
        ("1k", 1000),
        ("1e3", 1000),
        ("2E", 2 * 10**18),
        ("1048576", 2**20),
        ("2000m", 2),
    ],
)
def test_a_quantity_is_a_number_of_bytes(text: str, expected: int) -> None:
    assert bytes_of(text) == Decimal(expected)


@pytest.mark.parametrize(
    "text", ["", "0", "0Gi", "-1", "1 Gi", "1GB", "1gi", "Gi", "1e99", "8Ei", "\u0661Gi", "1m", "9" * 30, None, 5]
)
def test_what_is_no_quantity_of_a_volume_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="a quantity"):
        bytes_of(text)


def test_a_persistent_volume_is_reserved_from_its_first_moment() -> None:
    spec = bodies.pv_body(a_volume(), "kubevnfm-v1", a_volume().reserved_claim)["spec"]
    assert spec == {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": "links",
            "name": "kubevnfm-v1",
        },
        "nfs": {"server": "192.0.2.9", "path": "/data"},
    }


def test_a_local_volume_names_its_nodes() -> None:
    volume = a_volume(source={"local": {"path": "/d", "nodes": ["n1", "n2"]}})
    spec = bodies.pv_body(volume, "kubevnfm-v1", CLAIM)["spec"]
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2"]}]
    assert spec["local"] == {"path": "/d"}
    assert bodies.place_of_data(volume) == "local /d on n1, n2"


def test_a_csi_volume_keeps_the_spelling_of_its_members() -> None:
    csi = {"driver": "d.example.com", "volumeHandle": "h", "fsType": "xfs", "volumeAttributes": {"a": "b"}}
    volume = a_volume(source={"csi": csi})
    assert bodies.pv_body(volume, "kubevnfm-v1", CLAIM)["spec"]["csi"] == csi
    assert bodies.place_of_data(volume) == "csi d.example.com h"


def test_the_exchange_names_the_version_that_was_read_and_clears_the_uid() -> None:
    """MC-102."""
    change = bodies.exchange(a_pv(a_volume(), uid="old"), CLAIM)
    assert change["metadata"] == {"resourceVersion": "7"}
    assert change["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "ns1",
        "name": "data",
        "uid": None,
        "resourceVersion": None,
    }


def test_a_claim_asks_for_what_the_persistent_volume_has_and_grows_afterwards() -> None:
    """MC-105: the API server refuses growth of an unbound claim."""
    volume = a_volume(storage_class="fast", size="2Gi")
    pv = a_pv(volume.model_copy(update={"size": "1Gi"}))
    claim = bodies.bound_claim(volume, CLAIM, pv)
    assert claim["spec"]["resources"] == {"requests": {"storage": "1Gi"}}
    assert claim["spec"]["volumeName"] == "kubevnfm-v1"
    assert bodies.change_of_claim(volume, claim) == {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert bodies.change_of_claim(volume.model_copy(update={"size": "1Gi"}), claim) is None


def test_a_size_of_the_region_that_is_none_is_no_reason_to_grow() -> None:
    volume = a_volume(storage_class="fast", size="2Gi")
    sizes = ("1Gi", "2Gi", "64Ei", "much", None)
    assert [bodies.is_smaller(size, volume) for size in sizes] == [True, False, False, False, False]


def test_the_source_has_the_nodes_and_options_that_its_provisioner_has_set() -> None:
    spec = {"csi": {"driver": "d", "volumeHandle": "h"}, "mountOptions": ["ro"], "nodeAffinity": {"required": {}}}
    volume = a_volume(storage_class="fast").model_copy(update={"pv_source": bodies.source_in({"spec": spec})})
    assert spec.items() <= bodies.pv_body(volume, "kubevnfm-v1-a", CLAIM)["spec"].items()


def test_data_of_another_kind_of_source_are_not_where_a_deleted_object_was() -> None:
    """MC-104: the PersistentVolume goes with the volume."""
    volume = a_volume(storage_class="disks").model_copy(
        update={"pv": "disk-1", "pv_source": bodies.source_in({"spec": {"hostPath": {"path": "/d"}}})}
    )
    assert bodies.place_of_data(volume) == "the source that PersistentVolume disk-1 had"


def test_the_phase_is_that_of_the_region() -> None:
    volume = a_volume().model_copy(update={"pv_uid": "u1"})
    used = volume.with_use(Use(reference="vnf:a", namespace="ns1", claim_name="data"))
    foreign = ObjectKey("v1", "PersistentVolumeClaim", "ns9", "thief")
    unlabelled = a_pv(volume)
    unlabelled["metadata"] = {**unlabelled["metadata"], "labels": {}}
    deleted = a_pv(volume, CLAIM, uid="c", phase="Bound")
    deleted["metadata"] = {**deleted["metadata"], "deletionTimestamp": NOW}
    free = a_pv(volume)
    free["spec"] = {name: value for name, value in free["spec"].items() if name != "claimRef"}
    for of, pv, phase, detail in (
        (volume, a_pv(volume), "Reserved", ""),
        (used, a_pv(volume, CLAIM), "Reserved", ""),
        (used, a_pv(volume, CLAIM, uid="c", phase="Bound"), "Bound", ""),
        (used, a_pv(volume, CLAIM, uid="c", phase="Released"), "Released", "claim ns1/data is gone"),
        (volume, None, "Failed", "was deleted by another party"),
        (volume.model_copy(update={"pv_uid": "u0"}), a_pv(volume), "Failed", "was replaced by another party"),
        (volume, a_pv(volume, foreign), "Failed", "was reserved for ns9/thief by another party"),
        (used, deleted, "Failed", "is being deleted by another party"),
        (volume, unlabelled, "Failed", "has lost the label"),
        (volume, free, "Failed", "lost its claimRef"),
        (volume, {**a_pv(volume), "status": {"phase": "Failed", "message": "no deleter"}}, "Failed", "no deleter"),
    ):
        shown = phase_of(of, pv)
        assert shown[0] == phase
        assert detail in shown[1]


def test_only_some_volumes_are_shared() -> None:
    """MC-103."""
    local = {"local": {"path": "/d", "nodes": ["n1"]}}
    assert [
        a_volume().is_shared,
        a_volume(access_modes=["ReadWriteMany"]).is_shared,
        a_volume(access_modes=["ReadOnlyMany", "ReadWriteMany"]).is_shared,
        a_volume(access_modes=["ReadWriteMany", "ReadWriteOnce"]).is_shared,
        a_volume(access_modes=["ReadWriteMany"], source=local).is_shared,
    ] == [False, True, True, False, False]


def test_a_volume_whose_region_is_not_registered_any_more_waits_for_no_claim() -> None:
    uses = (
        Use(reference="vnf:a", namespace="ns1", claim_name="data", is_leaving=True),
        Use(reference="vnf:b", namespace="ns2", claim_name="data"),
    )
    volume = a_volume().model_copy(update={"uses": uses, "wanted": 4, "reached": 3})
    changed = volume.without_region("its region is gone", now=NOW)
    assert (changed.is_settled, changed.holders, changed.phase) == (True, ["vnf:b"], "Failed")
    assert changed.phase_detail == "its region is gone"
    assert changed.without_region("its region is gone", now="later") is changed
