"""The present schemas are compatible with the released ones; the checker finds schemas that were broken on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from contracts.schema_compatibility import breaks
from kubevnfm_events.contract import messages
from kubevnfm_events.schema import ASYNCAPI, RELEASED, message_schema
from pydantic import BaseModel, Field

RELEASED_SCHEMAS = sorted(path for path in RELEASED.glob("*/*.json") if path.name != ASYNCAPI)
TODAY = {message.type: message for message in messages()}


@pytest.mark.parametrize("path", RELEASED_SCHEMAS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_todays_message_breaks_no_released_one(path: Path) -> None:
    assert path.stem in TODAY, f"{path.stem} was released and is gone"
    released = json.loads(path.read_text(encoding="utf-8"))
    assert breaks(released, message_schema(TODAY[path.stem])) == []


def test_a_release_is_kept() -> None:
    assert RELEASED_SCHEMAS


class Part(BaseModel):
    place: str
    size: int = 0


class Tree(BaseModel):
    name: str
    below: list[Tree] = []


class Old(BaseModel):
    name: str
    kind: str
    count: int = 0
    ratio: float = 0.0
    state: str = Field(default="a", json_schema_extra={"enum": ["a", "b"]})
    parts: list[Part] = []
    by_name: dict[str, Part] = {}
    maybe: Part | None = None
    either: int | str = 0
    tree: Tree | None = None
    label: str = Field(default="", max_length=10)


def changed(**properties: Any) -> dict[str, Any]:
    """Return the schema of Old with some properties replaced (None: removed)."""
    schema = Old.model_json_schema()
    for name, value in properties.items():
        if value is None:
            del schema["properties"][name]
        else:
            schema["properties"][name] = value
    return schema


def requiring(*names: str) -> dict[str, Any]:
    return {**Old.model_json_schema(), "required": list(names)}


def with_part(**properties: Any) -> dict[str, Any]:
    schema = Old.model_json_schema()
    schema["$defs"]["Part"]["properties"].update(properties)
    return schema


COMPATIBLE = {
    "the same": Old.model_json_schema(),
    "a new optional attribute": changed(added={"type": "string"}),
    "a new value": changed(state={"enum": ["a", "b", "c"], "type": "string"}),
    "an integer that may be any number": changed(count={"type": "number"}),
    "an attribute that may be null now": changed(name={"anyOf": [{"type": "string"}, {"type": "null"}]}),
    "a longer text": changed(label={"type": "string", "maxLength": 20}),
    "a new description": changed(name={"type": "string", "description": "new"}),
    "a new optional attribute of a part": with_part(color={"type": "string"}),
}
BROKEN = {
    "removed": (changed(kind=None), "kind: removed"),
    "new and required": (
        {**requiring("name", "kind", "added"), "properties": changed(added={"type": "string"})["properties"]},
        "added: new and required",
    ),
    "became required": (requiring("name", "kind", "count"), "count: became required"),
    "became optional": (requiring("name"), "kind: became optional"),
    "another type": (changed(count={"type": "string"}), "count: type integer became string"),
    "a narrower number": (changed(ratio={"type": "integer"}), "ratio: type number became integer"),
    "a value less": (changed(state={"enum": ["a"], "type": "string"}), "state: b no longer accepted"),
    "values where any was taken": (changed(name={"enum": ["x"], "type": "string"}), "name: only x"),
    "a constant": (changed(name={"const": "x", "type": "string"}), "name: only x"),
    "no null any more": (changed(maybe={"$ref": "#/$defs/Part"}), "maybe: type null became object"),
    "one alternative less": (changed(either={"type": "integer"}), "either: type string became integer"),
    "a shorter text": (changed(label={"type": "string", "maxLength": 5}), "label: maxLength 5 is stricter"),
    "a text that may not be empty": (changed(name={"type": "string", "minLength": 1}), "name: minLength 1"),
    "a pattern": (changed(name={"type": "string", "pattern": "^x"}), "name: pattern became ^x"),
    "a part's attribute of another type": (with_part(place={"type": "integer"}), "parts[].place: type string"),
    "a map's value of another type": (with_part(size={"type": "string"}), "by_name.*.size: type integer"),
    "items of another type": (changed(parts={"type": "array", "items": {"type": "string"}}), "parts[]: type object"),
    "no further attributes": (changed(by_name={"type": "object", "additionalProperties": False}), "by_name.*: accepts"),
}


@pytest.mark.parametrize("name", COMPATIBLE)
def test_a_compatible_change_is_let_through(name: str) -> None:
    assert breaks(Old.model_json_schema(), COMPATIBLE[name]) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_breaking_change_is_found_and_named(name: str) -> None:
    schema, sentence = BROKEN[name]
    assert any(found.startswith(sentence) for found in breaks(Old.model_json_schema(), schema)), breaks(
        Old.model_json_schema(), schema
    )
