"""The variables that manifests use, and those that a schema describes (multicloud.md MC-022)."""

from __future__ import annotations

from typing import Any

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
