"""Differences of objects as a dry run shows them (multicloud.md MC-033)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.changing.field_differences import (
    ABSENT,
    LONGEST_TEXT,
    differences,
    is_hidden,
    is_in_pod_template,
    masked,
    pointer,
    shown_value,
)
from kubevnfm_infra_k8s.domain.objects import OPERATION_ANNOTATION, ObjectKey

SECRET = ObjectKey("v1", "Secret", "a", "login")
DEPLOYMENT = ObjectKey("apps/v1", "Deployment", "a", "web")


def found(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    shown = differences({"spec": before}, {"spec": after})
    return [(pointer(path), _known(one), _known(other)) for path, one, other in shown]


def _known(value: Any) -> Any:
    return "absent" if value is ABSENT else value


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("/spec/a", 1, 2)]),
        ({"a": 1}, {"a": True}, [("/spec/a", 1, True)]),
        ({"a": None}, {}, [("/spec/a", None, "absent")]),
        ({}, {"a/b": 1}, [("/spec/a~1b", "absent", 1)]),
        # By merge key, whatever their order; a removed element has its earlier place.
        (
            [{"name": "a", "v": 1}, {"name": "b"}],
            [{"name": "c"}, {"name": "a", "v": 2}],
            [("/spec/0", "absent", {"name": "c"}), ("/spec/1/v", 1, 2), ("/spec/1", {"name": "b"}, "absent")],
        ),
        # Without a key that is unique in both, by place.
        ([{"port": 1}, {"port": 1, "p": "UDP"}], [{"port": 1}], [("/spec/1", {"port": 1, "p": "UDP"}, "absent")]),
        (["a", "b"], ["a", "c", "d"], [("/spec/1", "b", "c"), ("/spec/2", "absent", "d")]),
        ([{"name": {}}], [{"name": []}], [("/spec/0/name", {}, [])]),
        ({"a": [1]}, {"a": {"b": 1}}, [("/spec/a", [1], {"b": 1})]),
    ],
)
def test_fields_and_elements_are_compared(before: Any, after: Any, expected: list[Any]) -> None:
    """MC-033."""
    assert found(before, after) == expected


def test_what_the_server_and_others_write_is_no_difference() -> None:
    """MC-033: status, fields of the API server, and the name of the operation."""
    there = {"uid": "1", "resourceVersion": "2", "managedFields": [{}], "annotations": {OPERATION_ANNOTATION: "a"}}
    before = {"metadata": {"name": "x", **there}, "status": {"replicas": 1}}
    assert list(differences(before, {"metadata": {"name": "x", "generation": 3}})) == []
    changed = {"metadata": {"name": "x", "annotations": {"a": "b", OPERATION_ANNOTATION: "c"}}}
    assert [pointer(path) for path, _, _ in differences(before, changed)] == ["/metadata/annotations"]


def test_no_data_of_a_secret_are_shown() -> None:
    """MC-033: also not those that kubectl repeats in an annotation."""
    last = "kubectl.kubernetes.io/last-applied-configuration"
    body = {"metadata": {"annotations": {last: "open", "a": "b"}}, "data": {"k": "open"}, "stringData": {"s": "open"}}
    assert "open" not in str(masked(SECRET, body))
    assert masked(SECRET, body)["metadata"]["annotations"]["a"] == "b"
    assert masked(DEPLOYMENT, body) == body
    assert all(is_hidden(SECRET, path) for path in (("data",), ("data", "k"), ("metadata", "annotations", last)))
    assert not is_hidden(SECRET, ("metadata", "labels", "a"))
    assert not is_hidden(DEPLOYMENT, ("data", "k"))


def test_long_texts_are_cut_and_restarts_are_known() -> None:
    """MC-033."""
    text, is_cut = shown_value([{"a": "x" * (LONGEST_TEXT + 1)}])
    assert (len(text[0]["a"]), is_cut) == (LONGEST_TEXT + 3, True)
    assert shown_value({"a": [1, None, "x"]}) == ({"a": [1, None, "x"]}, False)
    assert is_in_pod_template(DEPLOYMENT, ("spec", "template", "spec", "containers", "0", "image"))
    assert not is_in_pod_template(DEPLOYMENT, ("spec", "replicas"))
    assert not is_in_pod_template(SECRET, ("spec", "template"))
    # A machine takes the change of its template when it starts next (MC-066).
    machine = ObjectKey("kubevirt.io/v1", "VirtualMachine", "ns", "vm")
    assert not is_in_pod_template(machine, ("spec", "template", "spec", "networks"))
