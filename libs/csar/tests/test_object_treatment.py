"""Rules of an order and of annotations for single objects, and the fields that are left out (multicloud.md MC-106a, c, d)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_csar.field_paths import has_field, without_fields
from kubevnfm_csar.object_treatment import Applying, Keep, keeps_of, read_ignored, said_by

POD: dict[str, Any] = {
    "spec": {
        "replicas": 2,
        "containers": [{"name": "web", "image": "a", "ports": [{"port": 80}]}, {"name": "log", "image": "b"}],
        "strategy": {"type": "Recreate"},
    }
}


@pytest.mark.parametrize(
    ("pointer", "left"),
    [
        ("/spec/replicas", {**POD["spec"], "replicas": None}),
        ("/spec/strategy/type", {**POD["spec"], "strategy": None}),
        ("/spec/containers/name=log", {**POD["spec"], "containers": POD["spec"]["containers"][:1]}),
        ("/spec/containers/name=none/image", POD["spec"]),
        ("/spec/containers/0/image", POD["spec"]),
        ("/spec/replicas/deeper", POD["spec"]),
    ],
)
def test_fields_are_left_out_with_the_maps_that_have_nothing_else(pointer: str, left: dict[str, Any]) -> None:
    """MC-106c: elements of lists by their merge key."""
    wanted = {name: value for name, value in left.items() if value is not None}
    assert without_fields(POD, read_ignored([pointer])) == {"spec": wanted}


def test_a_field_inside_an_element_is_left_out_of_that_one_alone() -> None:
    """MC-106c."""
    fields = read_ignored(["/spec/containers/name=web/ports/port=80", "/spec/containers/name=log/image"])
    containers: Any = without_fields(POD, fields)
    assert containers["spec"]["containers"] == [{"name": "web", "image": "a"}, {"name": "log"}]
    assert POD["spec"]["containers"][1]["image"] == "b"
    assert [has_field(POD, each) for each in fields] == [True, True]
    assert not has_field(containers, fields[1])


@pytest.mark.parametrize(
    ("annotations", "keeps"),
    [
        ({"kubevnfm.io/keep": "true"}, set(Keep)),
        ({"kubevnfm.io/keep": "on-change"}, {Keep.ON_CHANGE}),
        ({"kubevnfm.io/keep": " on-delete ,on-change"}, set(Keep)),
        ({"kubevnfm.io/keep": "false", "helm.sh/resource-policy": "keep"}, set()),
        ({"kubevnfm.io/keep": "for ever"}, set()),
        ({"helm.sh/resource-policy": "keep"}, set(Keep)),
        ({}, set()),
    ],
)
def test_annotations_say_when_an_object_is_kept(annotations: dict[str, str], keeps: set[Keep]) -> None:
    """MC-106d: Helm's annotation says the same as ours."""
    assert keeps_of(annotations) == keeps
    problems: list[str] = []
    said = said_by(annotations, problems)
    assert (said.keeps or set()) == keeps
    assert bool(problems) is ("for ever" in annotations.values())


def test_annotations_say_how_an_object_is_applied() -> None:
    """MC-106a, MC-106c: what is wrong is named."""
    problems: list[str] = []
    said = said_by({"kubevnfm.io/apply": "create-only", "kubevnfm.io/ignore-fields": "/data/a~1b, /data/c"}, problems)
    assert (said.applying, said.ignored, problems) == (Applying.CREATE_ONLY, (("data", "a/b"), ("data", "c")), [])
    wrong = said_by({"kubevnfm.io/apply": "sometimes", "kubevnfm.io/ignore-fields": "data"}, problems)
    assert (wrong.applying, wrong.ignored) == (None, None)
    assert [each.partition(":")[0] for each in problems] == ["kubevnfm.io/apply", "kubevnfm.io/ignore-fields"]
