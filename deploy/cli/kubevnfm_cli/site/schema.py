"""The published schema of site files, and the checks that it states.

`site.schema.json` is the one description of the form: editors read it, `kubevnfm explain site` prints it, and `problems`
checks a file with it. The keywords of JSON Schema that it uses are interpreted here; a test compares the verdicts with
those of a whole implementation. An unknown name gets its place and the nearest known one, which such implementations lack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kubevnfm_cli.names import did_you_mean
from kubevnfm_cli.yaml_reader import Path

Schema = Mapping[str, Any]
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_NAMES: Final = {"object": "a map", "array": "a list", "string": "a text", "integer": "a whole number", "number": "a number",
                 "boolean": "true or false", "null": "null"}  # fmt: skip
_FORMS: Final = {
    "siteName": "1 to 40 lower-case letters, digits and hyphens",
    "name": "1 to 63 letters, digits, -, _ and ., first and last a letter or digit",
    "dnsName": "1 to 63 lower-case letters, digits and hyphens, first and last a letter or digit",
    "freeName": "a map of attributes, each of which may have a value from outside,",
}
"""Patterns in words, by the name of the definition."""
Problem = tuple[Path, str]
"""Where in the document, and what is wrong."""


@cache
def site_schema() -> Schema:
    """Return the schema of one document of a site file."""
    schema: Schema = json.loads(schema_text())
    return schema


def schema_text() -> str:
    """Return the schema as it is published."""
    return files("kubevnfm_cli.site").joinpath("site.schema.json").read_text()


def resolved(schema: Schema, root: Schema) -> Schema:
    """Return a schema with its reference followed; keywords beside the reference are kept."""
    if "$ref" not in schema:
        return schema
    name = str(schema["$ref"]).removeprefix("#/$defs/")
    beside = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return {**resolved(root["$defs"][name], root), "x-name": name, **beside}


def problems(value: Any, schema: Schema, root: Schema, path: Path = ()) -> Iterator[Problem]:
    """Yield what is wrong with a value, in the order of the document."""
    schema = resolved(schema, root)
    if "anyOf" in schema:
        yield from _any_of(value, schema["anyOf"], root, path)
        return
    if "const" in schema and value != schema["const"]:
        yield path, f"{schema['const']} expected"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield path, _one_of(value, schema["enum"])
        return
    expected = schema.get("type")
    if expected is not None and not _is(value, expected):
        yield path, f"{_NAMES[expected]} expected, found {_found(value)}"
    elif isinstance(value, dict):
        yield from _of_map(value, schema, root, path)
    elif isinstance(value, list):
        yield from _of_list(value, schema, root, path)
    elif isinstance(value, str):
        yield from _of_text(value, schema, path)
    elif (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and not schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        yield path, f"{schema.get('minimum')} to {schema.get('maximum')} expected"


def _is(value: Any, expected: str) -> bool:
    # A boolean is an int for Python, and no number of JSON.
    if isinstance(value, bool):
        return expected == "boolean"
    if expected == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[expected])


def _found(value: Any) -> str:
    kind = next((name for name in _TYPES if _is(value, name)), "null")
    if kind in ("object", "array"):
        return _NAMES[kind]
    if kind == "string":
        return "a text"
    return "nothing" if value is None else json.dumps(value)


def _one_of(value: Any, allowed: Sequence[Any]) -> str:
    names = [str(each) for each in allowed]
    near = did_you_mean(value, names) if isinstance(value, str) and len(names) > 1 else ""
    return f"one of {', '.join(names)} expected{near if 'mean' in near else ''}"


def _any_of(value: Any, choices: Sequence[Schema], root: Schema, path: Path) -> Iterator[Problem]:
    found = []
    for choice in choices:
        wrong = list(problems(value, choice, root, path))
        if not wrong:
            return
        found.append(wrong)
    # The choice whose type fits is the one that was meant.
    meant = next((wrong for wrong in found if any(where != path for where, _ in wrong)), None)
    fitting = [
        wrong for wrong, choice in zip(found, choices, strict=True) if _is(value, resolved(choice, root)["type"])
    ]
    if meant or fitting:
        yield from (meant or fitting[0])
        return
    names = " or ".join(dict.fromkeys(_NAMES[resolved(choice, root)["type"]] for choice in choices))
    yield path, f"{names} expected, found {_found(value)}"


def _of_map(value: Mapping[str, Any], schema: Schema, root: Schema, path: Path) -> Iterator[Problem]:
    known: Mapping[str, Schema] = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield path, f"{name} is missing"
    if len(value) < schema.get("minProperties", 0) or len(value) > schema.get("maxProperties", len(value)):
        yield path, f"one of {', '.join(known)} expected"
    for name, inner in value.items():
        where = (*path, name)
        if "propertyNames" in schema:
            yield from problems(name, schema["propertyNames"], root, where)
        if name in known:
            yield from problems(inner, known[name], root, where)
        elif others is False:
            yield where, f"{name} is not known here{did_you_mean(name, known)}"
        elif isinstance(others, dict):
            yield from problems(inner, others, root, where)


def _of_list(value: Sequence[Any], schema: Schema, root: Schema, path: Path) -> Iterator[Problem]:
    if len(value) < schema.get("minItems", 0):
        yield path, f"a list of at least {schema['minItems']} expected"
    for index, inner in enumerate(value):
        yield from problems(inner, schema.get("items", {}), root, (*path, index))


def _of_text(value: str, schema: Schema, path: Path) -> Iterator[Problem]:
    if len(value) < schema.get("minLength", 0):
        yield path, "a text that is not empty expected"
    elif len(value) > schema.get("maxLength", len(value)):
        yield path, f"a text of at most {schema['maxLength']} characters expected"
    elif "pattern" in schema and not _matches(schema["pattern"], value):
        yield path, f"{_FORMS.get(schema.get('x-name', ''), schema['pattern'])} expected"


def _matches(pattern: str, value: str) -> bool:
    # For Python, an end may also be before a line end.
    return re.search(pattern.replace("$", r"\Z"), value) is not None
