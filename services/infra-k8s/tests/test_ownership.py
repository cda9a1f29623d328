"""Which writes of others change the hash of our fields, as a table over ``managedFields``."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.ownership import (
    has_owner,
    is_applied,
    is_kept,
    is_scaled_apart,
    ours_alone,
    owned_fields,
    present_fields,
    with_scaled_fields,
)

APPLIED: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:template": {"f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}}}},
    },
}
WITHOUT_REPLICAS = {
    **APPLIED,
    "f:spec": {name: each for name, each in APPLIED["f:spec"].items() if name != "f:replicas"},
}
REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
IMAGE: dict[str, Any] = {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"main"}': {"f:image": {}}}}}}}
WITHOUT_IMAGE = {
    **APPLIED,
    "f:spec": {
        "f:replicas": {},
        "f:template": {"f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:name": {}}}}},
    },
}


def entry(fields: Any, manager: str = "kubevnfm", operation: str = "Apply", subresource: str = "") -> dict[str, Any]:
    more = {"subresource": subresource} if subresource else {}
    return {"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def scaled_by(manager: str) -> dict[str, Any]:
    return entry(REPLICAS, manager, "Update", "scale")


def body(*entries: dict[str, Any], kind: str = "Deployment", **annotations: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"managedFields": list(entries), "annotations": annotations}}


def with_field(*path: str) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name in reversed(path):
        tree = {name: tree}
    return (
        {**APPLIED, "f:spec": {**APPLIED["f:spec"], **tree["f:spec"]}} if path[0] == "f:spec" else {**APPLIED, **tree}
    )


STATUS = entry({"f:status": {"f:replicas": {}}}, "kube-controller-manager", "Update", "status")
RESTARTED: dict[str, Any] = {
    "f:spec": {"f:template": {"f:metadata": {"f:annotations": {".": {}, "f:kubevnfm.io/restarted-for": {}}}}}
}
OURS = body(entry(APPLIED))
CASES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("nothing", OURS, OURS, False),
    ("a status", OURS, body(entry(APPLIED), STATUS), False),
    ("a field of another manager", OURS, body(entry(APPLIED), entry({"f:spec": {"f:paused": {}}}, "x", "Update")), False),
    ("our image by another manager", OURS, body(entry(WITHOUT_IMAGE), entry(IMAGE, "kubectl-set", "Update")), True),
    ("a label that is gone", OURS, body(entry({"f:spec": APPLIED["f:spec"]})), True),
    ("all our fields", OURS, body(entry(APPLIED, "helm")), True),
    ("owners that were erased", OURS, {"kind": "Deployment", "metadata": {}}, True),
    ("our image by our own patch", OURS, body(entry(WITHOUT_IMAGE), entry(IMAGE, operation="Update")), False),
    ("a restart", OURS, body(entry(APPLIED), entry(RESTARTED, operation="Update")), False),
    ("our own scaling", OURS, body(entry(WITHOUT_REPLICAS), scaled_by("kubevnfm")), False),
    ("an autoscaler", OURS, body(entry(WITHOUT_REPLICAS), scaled_by("kube-controller-manager")), False),
    ("a person who scales", OURS, body(entry(WITHOUT_REPLICAS), scaled_by("kubectl")), True),
    ("replicas by an update", OURS, body(entry(WITHOUT_REPLICAS), entry(REPLICAS, "kubectl-edit", "Update")), True),
    (
        "replicas of a pool that its cloud scales", OURS,
        body(
            entry(WITHOUT_REPLICAS), entry(REPLICAS, "manager", "Update"),
            **{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"},
        ), False,
    ),
    ("an autoscaler of replicas that we leave out", body(entry(WITHOUT_REPLICAS)),
     body(entry(WITHOUT_REPLICAS), scaled_by("kube-controller-manager")), False),
    ("a scaling of replicas that we leave out", body(entry(WITHOUT_REPLICAS)),
     body(entry(WITHOUT_REPLICAS), scaled_by("kubectl")), False),
    ("a scaling of replicas that we have only scaled", body(entry(WITHOUT_REPLICAS), scaled_by("kubevnfm")),
     body(entry(WITHOUT_REPLICAS), scaled_by("kubectl")), True),
    ("CA data of a definition", body(entry(with_field("f:spec", "f:conversion", "f:webhook", "f:caBundle"))), OURS, False),
    ("CA data of a webhook", body(entry(with_field("f:webhooks", 'k:{"name":"w"}', "f:clientConfig", "f:caBundle"))),
     OURS, False),
    ("a key that is named like CA data", body(entry(with_field("f:data", "f:caBundle"))), OURS, True),
    ("the address of a cluster", body(entry(with_field("f:spec", "f:controlPlaneEndpoint", "f:host"))), OURS, False),
    ("the version of a reference", body(entry(with_field("f:spec", "f:infrastructureRef", "f:apiVersion"))), OURS, False),
    ("the name of a reference", body(entry(with_field("f:spec", "f:infrastructureRef", "f:name"))), OURS, True),
    ("a roll-out", OURS, body(entry(APPLIED), entry({"f:spec": {"f:rollout": {".": {}, "f:after": {}}}}, operation="Update")),
     False),
    ("what no server records", {"kind": "ConfigMap", "metadata": {}}, {"kind": "ConfigMap", "metadata": {}}, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "is_changed"), [each[1:] for each in CASES], ids=[each[0] for each in CASES]
)
def test_a_change_by_others_is_found_and_what_belongs_to_others_is_not(
    before: dict[str, Any], after: dict[str, Any], is_changed: bool
) -> None:
    """CR-121."""
    owned = owned_fields(before)
    assert (bool(owned) and owned not in present_fields(after)) is is_changed


def test_a_lease_that_its_holder_renews_has_nothing_to_compare() -> None:
    """CR-121: such kinds are written by others by design."""
    assert owned_fields(body(entry(APPLIED), kind="Lease")) == ""


@pytest.mark.parametrize("fields", [None, [], "x", {"f:spec": None}, {"f:spec": ["x"]}, {"f:spec": {"f:a": 1}}])
def test_owners_of_another_form_are_no_error(fields: Any) -> None:
    """The server may be hostile."""
    assert present_fields({"metadata": {"managedFields": [entry(fields), "x", None]}})
    assert present_fields({"metadata": {"managedFields": fields}})


def test_replicas_that_we_have_scaled_are_known() -> None:
    assert not is_scaled_apart(OURS)
    assert is_scaled_apart(body(entry(WITHOUT_REPLICAS), scaled_by("kubevnfm")))
    for manager in ("kube-controller-manager", "kubectl"):
        assert not is_scaled_apart(body(entry(WITHOUT_REPLICAS), scaled_by(manager)))


def test_the_owners_of_a_number_are_known() -> None:
    """MC-114: dropping a number resets it only if nothing but our apply owns it."""
    path, second = ("spec", "replicas"), entry(REPLICAS, "kubevnfm-handover")
    assert ours_alone(OURS, [path])
    for other in (second, scaled_by("kube-controller-manager"), entry(REPLICAS, "kubectl", "Update")):
        assert is_applied(body(entry(APPLIED), other), path)
        assert not ours_alone(body(entry(APPLIED), other), [path])
    for apart in (body(entry(WITHOUT_REPLICAS), second), body(entry(WITHOUT_REPLICAS), scaled_by("kubevnfm"))):
        assert has_owner(apart, path)
        assert not is_applied(apart, path)
        assert not ours_alone(apart, [path])
    assert not has_owner(body(entry(WITHOUT_REPLICAS)), path)
    assert is_kept(body(second), path)
    assert not is_kept(OURS, path)


def test_our_own_number_that_no_manager_owns_is_not_compared_any_more() -> None:
    """CR-121, MC-114: after a scaling to 0; but not if another party has changed more than that."""
    owned, zero = owned_fields(OURS), body(entry(WITHOUT_REPLICAS))
    assert with_scaled_fields(owned, zero) == owned_fields(zero)
    changed = body(entry({"f:spec": {"f:template": {}}}))
    assert with_scaled_fields(owned, changed) == owned
    assert with_scaled_fields(owned, body(entry(WITHOUT_REPLICAS), scaled_by("kubectl"))) == owned
