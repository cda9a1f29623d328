"""Values of outputs that a hostile region may give, and the objects that outputs name (multicloud.md MC-138)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events.outputs import WantedOutput
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource, Wanted
from kubevnfm_infra_k8s.domain.outputs.record import Output, outputs_of
from kubevnfm_infra_k8s.domain.outputs.values import is_shown
from kubevnfm_kit.errors import Unprocessable


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, True),
        ("x" * 4094, True),
        ("x" * 4095, False),
        ("ü" * 2047, True),
        ("ü" * 2048, False),
        ([{"a": 2**63 - 1}], True),
        ([{"a": 2**63}], False),
        (-(2**63) - 1, False),
        (nested(31), True),
        (nested(32), False),
        ({"a": {"$sealed": "v1.x"}}, False),
        ({"$secret": "x"}, False),
        ({"a\0": 1}, False),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_stored_is_not_shown(value: Any, shown: bool) -> None:
    """MC-138: 4 KiB of JSON, 32 levels, 64 bits; nothing that a document has for a secret."""
    assert is_shown(value) is shown


def a_wanted(api_version: str, kind: str, namespace: str, name: str) -> Wanted:
    key = ObjectKey(api_version, kind, namespace, name)
    resource = Resource(api_version, kind, f"{kind.lower()}s", namespaced=bool(namespace))
    return Wanted(key=key, resource=resource, body={}, file="f.yaml", digest="")


def test_outputs_name_one_object_of_the_set() -> None:
    """MC-138: in the namespace of the instance, or without one; several groups may have a kind of one name."""
    objects = [
        a_wanted("v1", "Service", "mine", "web"),
        a_wanted("v1", "Service", "other", "web"),
        a_wanted("a.example.org/v1", "Database", "mine", "db"),
        a_wanted("b.example.org/v1", "Database", "mine", "db"),
        a_wanted("v1", "PersistentVolume", "", "pv"),
    ]

    def found(**of: Any) -> Output:
        wanted = WantedOutput(**{"name": "o", "jsonpath": "status", **of})
        return outputs_of([wanted], objects, namespace="mine")[0]

    assert found(kind="Service", object_name="web").key.namespace == "mine"
    assert found(kind="Service", object_name="web", namespace="other").key.namespace == "other"
    assert found(kind="PersistentVolume", object_name="pv").key.namespace == ""
    assert found(kind="Database", object_name="db", api_version="b.example.org/v1").key.group == "b.example.org"
    for wrong in ({"kind": "Database", "object_name": "db"}, {"kind": "Service", "object_name": "none"}):
        with pytest.raises(Unprocessable, match="additionalParams/outputs/o"):
            found(**wrong)
