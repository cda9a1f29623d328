"""``values.schema.json``: reading it, and the defaults in it (multicloud.md MC-022, MC-029)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from kubevnfm_csar.order_reader import read_order
from kubevnfm_csar.ordered_manifests import all_values
from kubevnfm_csar.values_schema import LARGEST, SchemaRefused, ValuesSchema, described, read_schema, with_defaults
from kubevnfm_kit.errors import Unprocessable

PORT = {"type": "integer", "default": 5432}


def defaults(schema: dict[str, Any], **values: Any) -> Any:
    return with_defaults(ValuesSchema("values.schema.json", schema), values)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "a JSON object expected"),
        ("true", "a JSON object expected"),
        ("[" * 200 + "]" * 200, "nested deeper"),
        (json.dumps({"$schema": "http://json-schema.org/draft-03/schema#"}), "a draft of JSON Schema from 4 to 2020-12"),
        (json.dumps({"$schema": "https://example.org/schema"}), "a draft of JSON Schema from 4 to 2020-12"),
        (json.dumps({"$schema": 7}), "a draft of JSON Schema from 4 to 2020-12"),
        (json.dumps({"title": "é" * (LARGEST // 12)}, ensure_ascii=True) + " " * LARGEST, "at most 1048576 bytes"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaRefused, match=reason):
        read_schema("values.schema.json", text)


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"])
def test_each_draft_is_read(draft: str) -> None:
    for scheme, end in (("http", "#"), ("https", "")):
        text = json.dumps({"$schema": f"{scheme}://json-schema.org/{draft}/schema{end}"})
        assert read_schema("s", text).name == "s"


def test_defaults_fill_in_what_is_missing() -> None:
    """Members of objects have them too; a value that is given stays, whatever it is."""
    schema = {"properties": {"level": {"default": 3}, "db": {"properties": {"port": PORT, "host": {"type": "string"}}}}}
    assert defaults(schema) == {"level": 3, "db": {"port": 5432}}
    assert defaults(schema, level=None, db={"host": "a"}) == {"level": None, "db": {"host": "a", "port": 5432}}
    assert defaults(schema, level=1, db="x") == {"level": 1, "db": "x"}


def test_an_object_that_would_lack_a_member_is_not_made() -> None:
    """Otherwise it would break the rule that a request which leaves it out does not."""
    schema = {"properties": {"db": {"required": ["host"], "properties": {"port": PORT}}}}
    assert defaults(schema) == {}
    assert defaults(schema, db={"host": "a"}) == {"db": {"host": "a", "port": 5432}}
    given = {"properties": {"db": {"default": {"host": "b"}, "required": ["host"], "properties": {"port": PORT}}}}
    assert defaults(given) == {"db": {"host": "b", "port": 5432}}


def test_references_within_the_file_and_all_of_are_followed() -> None:
    schema = {
        "$defs": {"a/b": {"properties": {"port": PORT}}},
        "properties": {"db": {"$ref": "#/$defs/a~1b"}, "far": {"$ref": "other.json"}, "none": {"$ref": "#/no/where"}},
        "allOf": [{"properties": {"level": {"default": 1}}}],
    }
    assert defaults(schema) == {"db": {"port": 5432}, "level": 1}


def test_names_that_are_no_variables_have_no_defaults() -> None:
    schema = {"properties": {name: {"default": 1} for name in ("vnf_id", "namespace", "-a", "ok")}}
    assert defaults(schema) == {"ok": 1}


def test_a_schema_that_refers_to_itself_ends() -> None:
    """A tree is filled in as far as it is given; what grows without end is refused."""
    tree = {"properties": {"size": {"default": 1}, "left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    filled = defaults(tree, left={"right": {}})
    assert filled["left"]["right"]["size"] == filled["left"]["size"] == filled["size"] == 1
    assert defaults({"allOf": [{"$ref": "#"}], "properties": {"a": {"default": 1}}}) == {"a": 1}
    doubled: dict[str, Any] = {"d0": {"default": 1}}
    for n in range(1, 60):
        one = {"$ref": f"#/$defs/d{n - 1}"}
        doubled[f"d{n}"] = {"properties": {"a": one, "b": one}}
    with pytest.raises(SchemaRefused, match="more than 100000"):
        defaults({"$defs": doubled, "properties": {"x": {"$ref": "#/$defs/d59"}}})


@pytest.mark.parametrize("read", [lambda schema: with_defaults(schema, {}), described])
@pytest.mark.parametrize("shared", [{"$ref": "#" + "/a" * 5000}, {"required": ["a"] * 5000, "properties": {"n": PORT}}])
def test_what_many_places_refer_to_costs_once_for_each(read: Callable[[ValuesSchema], object], shared: Any) -> None:
    """A long reference, or a long list: 1 MiB of them took hours."""
    places = {f"p{n}": {"$ref": "#/$defs/shared"} for n in range(100)}
    with pytest.raises(SchemaRefused, match="more than 100000"):
        read(ValuesSchema("s", {"$defs": {"shared": shared}, "properties": places}))


def test_a_default_that_has_its_own_schema_in_it_ends() -> None:
    """The default is taken as it is, and nothing is made inside of it again."""
    schema = {"default": {"a": {}}, "properties": {"a": {"$ref": "#"}, "n": {"default": 1}}}
    filled = defaults(schema)
    assert filled["n"] == filled["a"]["n"] == 1
    assert defaults(schema, a={"a": {"n": 2}})["a"]["a"]["n"] == 2


@pytest.mark.parametrize("read", [lambda schema: with_defaults(schema, {}), described])
def test_a_chain_of_objects_without_end_is_refused(read: Callable[[ValuesSchema], object]) -> None:
    """Each in the one before: neither the stack nor the memory of a service is the limit."""
    chain: dict[str, Any] = {f"d{n}": {"properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(20_000)}
    chain["d20000"] = {"default": 1}
    with pytest.raises(SchemaRefused, match="nested deeper than 64 levels"):
        read(ValuesSchema("s", {"$defs": chain, "properties": {"x": {"$ref": "#/$defs/d0"}}}))


def test_the_order_and_the_request_count_above_the_schema() -> None:
    """MC-029."""
    schema = json.dumps({"properties": {"a": {"default": "schema"}, "b": {"default": "schema"}, "c": {"default": 3}}})
    text = "artifacts: [{file: a.yaml}]\nvalues: {a: order, b: order}\n"
    order = read_order("artifact-order.yaml", text, {"a.yaml"}, schema)
    assert all_values(order, {"b": "given"}) == {"a": "order", "b": "given", "c": 3}
    assert all_values(read_order("artifact-order.yaml", text, {"a.yaml"}), {}) == {"a": "order", "b": "order"}
    with pytest.raises(Unprocessable, match=r"order_artifact: x/values\.schema\.json: not JSON"):
        read_order("x/artifact-order.yaml", text, {"a.yaml"}, "{")
