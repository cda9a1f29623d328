"""The variables that manifests use, and those that a schema describes (multicloud.md MC-022)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubevnfm_csar.order_reader import read_order
from kubevnfm_csar.unused_values import unused_values
from kubevnfm_csar.values_schema import ValuesSchema, described
from kubevnfm_csar.variable_uses import uses_in


def test_each_use_has_its_place_in_names_and_values() -> None:
    """MC-024: what stays in the text is no use."""
    body = {"a/b": ["x$one$$two", "${db.port:-1}$(NAME)"], "$key": {"deep": "${a}${a}"}, "n": 5, "odd": "${ $ $1"}
    assert [(each.name, str(each.path), each.has_default) for each in uses_in(body)] == [
        ("one", "/a~1b/0", False),
        ("db.port", "/a~1b/1", True),
        ("key", "/$key", False),
        ("a", "/$key/deep", False),
        ("a", "/$key/deep", False),
    ]
    off: dict[str, Any] = {"metadata": {"annotations": {"kubevnfm.io/substitute": "false"}}, "x": "$a"}
    assert list(uses_in(off)) == list(uses_in("$a")) == []


def test_a_schema_describes_objects_and_their_members() -> None:
    schema = {
        "required": ["db", "level"],
        "properties": {
            "db": {"required": ["host"], "properties": {"host": {}, "port": {}, "no.name": {}}},
            "more": {"required": ["x"], "properties": {"x": {}}},
            "level": {"$ref": "#/$defs/level"},
            "vnf_id": {},
            "-a": {},
            "sub-chart": {},
            "tree": {"$ref": "#"},
        },
        "$defs": {"level": {"type": "integer"}},
    }
    found = described(ValuesSchema("s", schema))
    assert {name: each.is_required for name, each in found.items()} == {
        "db": True,
        "db.host": True,
        "db.port": False,
        "more": False,
        # Its object may be left out.
        "more.x": False,
        "level": True,
        "sub-chart": False,
    }
    assert [part.get("type") for part in found["level"].parts] == [None, "integer"]


ORDER = "artifacts: [{file: a.yaml}]\nvalues: {size: 1, db: {host: h}}\n"
CLOSED = {"properties": {"level": {"type": "string"}, "labels": {"additionalProperties": {"type": "string"}}}}


@pytest.mark.parametrize(
    ("schema", "given", "unused"),
    [
        (None, {"tag": 1, "size": 2, "db": {"host": "x", "port": 3}, "namespace": "n", "x_secret_names": ["tag"]}, {}),
        (None, {"tga": 1, "db": {"prt": 2, "port": 1}, "zzz": {"a": {"b": 1}}}, {"tga": "tag", "db/prt": "db.port", "zzz": ""}),
        (None, {"whole": {"anything": 1}, "db": 7}, {}),
        (CLOSED, {"level": "x", "labels": {"a": "b"}, "lvel": 1}, {"lvel": "level"}),
        ({**CLOSED, "additionalProperties": True}, {"lvel": 1}, {}),
        ({**CLOSED, "patternProperties": {"^x": {}}}, {"lvel": 1}, {}),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"anyOf": [{"properties": {"q": {}}}]}}}, {"q": 1}, {}),
        (None, {f"n{number}": 1 for number in range(50)}, {f"n{number}": "" for number in range(20)}),
        (None, {"x" * 10_000: 1}, {"x" * 100: ""}),
    ],
)  # fmt: skip
def test_a_value_that_names_no_variable_is_named_with_the_nearest_one(
    schema: dict[str, Any] | None, given: dict[str, Any], unused: dict[str, str]
) -> None:
    """MC-022: the variables are those of the artifacts, of the order and of the schema; what a schema leaves open is free."""
    order = read_order("artifact-order.yaml", ORDER, {"a.yaml"}, None if schema is None else json.dumps(schema))
    found = unused_values(order, given, ["tag", "db.port", "whole"])
    near = [
        f"the nearest is {each}" if each else "GET /artifacts/{csar_id}/variables lists them"
        for each in unused.values()
    ]
    assert [each.nearest or "" for each in found] == list(unused.values())
    # A pointer of a name that is too long to be shown is left out.
    fields = [f"/additionalParams/values/{path}" if "x" * 10_000 not in given else None for path in unused]
    assert [each.field for each in found] == fields
    assert [each.text.partition(": ")[0] for each in found] == [f"additionalParams/values/{path}" for path in unused]
    assert [each.text.rpartition("; ")[2] for each in found] == near


def test_values_of_charts_are_free() -> None:
    """MC-048: their templates alone say what they use."""
    order = read_order("artifact-order.yaml", "artifacts: [{chart: c}]\n", {"c/Chart.yaml"})
    assert unused_values(order, {"any": 1}, []) == ()
