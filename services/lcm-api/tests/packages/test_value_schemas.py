"""Comparing values with schemas of packages: every rule, and schemas that would take for ever (multicloud.md MC-022)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubevnfm_lcm_api.packages.adapters.schema_process import SchemaProcesses
from kubevnfm_lcm_api.packages.adapters.schema_rules import NoSchema, compiled, violations
from kubevnfm_lcm_api.packages.domain.ports import SchemaUnusable


@pytest.fixture
async def schemas() -> AsyncIterator[SchemaProcesses]:
    async with SchemaProcesses(cpu_s=1) as running:
        yield running


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ({"type": "integer"}, "s3cret", "integer expected"),
        ({"type": ["integer", "null"]}, "s3cret", "null or integer expected"),
        ({"enum": [1, "b"]}, "s3cret", "one of 1, b expected"),
        ({"const": {"a": 1}}, "s3cret", '{"a": 1} expected'),
        ({"minimum": 5}, 4, "at least 5 expected"),
        ({"maximum": 5}, 6, "at most 5 expected"),
        ({"exclusiveMinimum": 5}, 5, "more than 5 expected"),
        ({"exclusiveMaximum": 5}, 5, "less than 5 expected"),
        ({"multipleOf": 5}, 6, "a multiple of 5 expected"),
        ({"minLength": 9}, "s3cret", "at least 9 characters expected"),
        ({"maxLength": 2}, "s3cret", "at most 2 characters expected"),
        ({"pattern": "^a(?!b)"}, "s3cret", "a text that matches ^a(?!b) expected"),
        ({"minItems": 2}, ["s3cret"], "at least 2 items expected"),
        ({"maxItems": 0}, ["s3cret"], "at most 0 items expected"),
        ({"minProperties": 2}, {"a": "s3cret"}, "at least 2 members expected"),
        ({"maxProperties": 0}, {"a": "s3cret"}, "at most 0 members expected"),
        ({"oneOf": [{"type": "null"}]}, "s3cret", "the rule oneOf of the schema is broken"),
        ({"not": {"type": "string"}}, "s3cret", "the rule not of the schema is broken"),
        ({"propertyNames": {"maxLength": 1}}, {"s3cret": 1}, "the rule propertyNames of the schema is broken"),
        ({"uniqueItems": True}, ["s3cret", "s3cret"], "the rule uniqueItems of the schema is broken"),
    ],
)  # fmt: skip
def test_each_rule_says_what_was_expected_and_never_the_value(rule: Any, value: Any, expected: str) -> None:
    assert violations({"properties": {"x": rule}}, {"x": value}, 9) == [(["x"], expected)]


def test_names_that_are_missing_or_unknown_have_places_of_their_own() -> None:
    schema = {"properties": {"db": {"required": ["host"], "properties": {"port": {}}, "additionalProperties": False}}}
    found = violations(schema, {"db": {"a": 1, "b": 2}}, 9)
    assert sorted(found) == [
        (["db", "a"], "no such member"),
        (["db", "b"], "no such member"),
        (["db", "host"], "a value expected"),
    ]
    assert len(violations({"properties": {"x": {"items": False}}}, {"x": list(range(500))}, 100)) == 100


def test_a_draft_decides_what_a_schema_means() -> None:
    """`exclusiveMinimum` is a boolean in draft 4, and a number since draft 6."""
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"x": {"exclusiveMinimum": True, "minimum": 5}}}  # fmt: skip
    assert len(violations(old, {"x": 5}, 9)) == 1
    with pytest.raises(NoSchema, match="exclusiveMinimum"):
        compiled({**old, "$schema": "https://json-schema.org/draft/2020-12/schema"})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "foo"}, "no JSON Schema: type"),
        ({"properties": {"a": {"pattern": "("}}}, "no JSON Schema: properties/a/pattern"),
        ({"$ref": "http://127.0.0.1:9/x.json"}, "place in this file"),
        ({"$ref": "file:///etc/passwd"}, "place in this file"),
        ({"$id": "http://127.0.0.1:9/a.json", "$ref": "b.json"}, "place in this file"),
        ({"$ref": "#/nope"}, "place in this file"),
    ],
)  # fmt: skip
def test_what_is_no_schema_or_refers_to_another_file_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(NoSchema, match=reason):
        compiled(schema)


def doubled(word: str) -> Any:
    """Return a schema that is judged 2**39 times."""
    parts: dict[str, Any] = {"d0": {"type": "integer"}}
    for n in range(1, 40):
        parts[f"d{n}"] = {word: [{"$ref": f"#/$defs/d{n - 1}"}] * 2}
    return {"$defs": parts, "properties": {"x": {"$ref": "#/$defs/d39"}}}


async def test_a_schema_that_takes_for_ever_is_given_up_and_holds_nothing_up(schemas: SchemaProcesses) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    task = asyncio.create_task(tick())
    # It may reach the limit of memory first.
    with pytest.raises(SchemaUnusable, match="the comparison needs more than the 1"):
        await schemas.violations(doubled("allOf"), {"x": "a"}, 9)
    task.cancel()
    # The loop has gone on: in this process, the library would have stopped it.
    assert ticks > 5
    # The next question has another process.
    (found,) = await schemas.violations({"properties": {"x": {"type": "null"}}}, {"x": 1}, 9)
    assert (found.path, found.rule) == (("x",), "null expected")


async def test_hostile_schemas_end_no_service(schemas: SchemaProcesses) -> None:
    """References in a circle, texts that a pattern takes long for: an answer, or a refusal."""
    circle = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    assert await schemas.violations(circle, {"x": 1}, 9) == []
    slow = {"properties": {"x": {"pattern": "^(a+)+(?=b)c$"}}}
    assert len(await schemas.violations(slow, {"x": "a" * 50_000}, 9)) == 1
    with pytest.raises(SchemaUnusable, match="place in this file"):
        await schemas.violations({"$ref": "other.json"}, {}, 9)


async def test_a_comparison_that_fails_prints_no_value(
    schemas: SchemaProcesses, capfd: pytest.CaptureFixture[str]
) -> None:
    """The output of the process is that of the service, and native code prints what it fails with, values too."""
    # The reader of bodies refuses half a surrogate pair, which the library cannot take: nothing else is known to fail there.
    with pytest.raises(SchemaUnusable, match="failed with an error that is not expected") as caught:
        await schemas.violations({"properties": {"x": {"type": "null"}}}, {"x": "s3cret\ud800"}, 9)
    printed = capfd.readouterr()
    assert "Traceback" not in printed.err
    assert "s3cret" not in f"{printed.err}{printed.out}{caught.value}"
    # The process goes on.
    assert len(await schemas.violations({"properties": {"x": {"type": "null"}}}, {"x": 1}, 9)) == 1
