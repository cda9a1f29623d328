"""The fields of built-in kinds with their types: server-side apply refuses what is not declared, of another type, or twice.

The declarations are ``fields.json``, taken from the OpenAPI documents of a real API server by ``python -m
kubevnfm_lab.kubernetes.fields < documents``: by type name, the type of each field in this notation:

``s`` text, ``b`` boolean, ``n`` number, ``q`` quantity, ``y`` bytes in base64, ``*`` anything, ``{X}`` map of X, ``[X]``
list of X, ``[X|key,key=default]`` list with keys, ``#Name`` another type.

Source: sigs.k8s.io/structured-merge-diff (package typed), whose wording the messages have.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypedDict

from kubevnfm_lab.kubernetes import schemas
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import Obj, compact_json
from kubevnfm_lab.kubernetes.resources import BUILT_IN, Resource

_FILE: Final = "fields.json"
_QUANTITY: Final = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_QUANTITY_TEXT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_PRESERVED: Final = "x-kubernetes-preserve-unknown-fields"


class Declarations(TypedDict):
    """The content of ``fields.json``."""

    kinds: Mapping[str, str]
    """Type name by ``group/version/kind``."""
    types: Mapping[str, Mapping[str, str]]
    """Type of each field, by type name."""


@cache
def _declared() -> Declarations:
    content: Declarations = json.loads(files(__package__).joinpath(_FILE).read_text())
    return content


def check_fields(resource: Resource, obj: Obj) -> None:
    """Raise ApiError 500, as server-side apply does, for fields that the API server cannot read."""
    problems = list(_problems(resource, obj))
    if problems:
        text = problems[0] if len(problems) == 1 else "errors:" + "".join(f"\n  {each}" for each in problems)
        raise ApiError(500, f"failed to create typed patch object ({_named(resource, obj)}): {text}", reason="")
    unreadable = next(_unreadable(obj, f"#{_type_of(resource)}"), None) if _type_of(resource) else None
    if unreadable is not None:
        kind = f"{resource.api_version}, Kind={resource.kind}"
        message = f"failed to convert new object ({_named(resource, obj)}) to proper version: "
        message += f"unable to convert unstructured object to {kind}: {unreadable}"
        raise ApiError(500, message, reason="")


def _named(resource: Resource, obj: Obj) -> str:
    metadata = obj.get("metadata") or {}
    place = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    version = resource.api_version if resource.group else f"/{resource.version}"
    return f"{place}; {version}, Kind={resource.kind}"


def _type_of(resource: Resource) -> str:
    return _declared()["kinds"].get(f"{resource.group}/{resource.version}/{resource.kind}", "")


def _problems(resource: Resource, obj: Obj) -> Iterator[str]:
    if resource.custom is not None:
        yield from _matches(obj.get("metadata"), "#ObjectMeta", ".metadata")
        if not resource.custom.schema.get(_PRESERVED):
            _, unknown = schemas.pruned(obj, resource.custom.schema)
            yield from (f".{path}: field not declared in schema" for path in unknown)
    elif name := _type_of(resource):
        yield from _matches(obj, f"#{name}", "")


def _matches(value: Any, kind: str, path: str) -> Iterator[str]:
    """Yield what is wrong with a value of this type."""
    if value is None or kind == "*":
        return
    match kind[0]:
        case "#" | "{":
            if not isinstance(value, dict):
                yield f"{path}: expected map, got &{{{_printed(value)}}}"
                return
            for name, item in value.items():
                inner = kind[1:-1] if kind[0] == "{" else _declared()["types"][kind[1:]].get(name)
                if inner is None:
                    yield f"{path}.{name}: field not declared in schema"
                else:
                    yield from _matches(item, inner, f"{path}.{name}")
        case "[":
            yield from _matches_list(value, kind, path)
        case "b" if not isinstance(value, bool):
            yield f"{path}: expected boolean, got &value.valueUnstructured{{Value:{_printed(value)}}}"
        case "n" if isinstance(value, bool) or not isinstance(value, int | float):
            found = "string" if isinstance(value, str) else f"&value.valueUnstructured{{Value:{_printed(value)}}}"
            yield f"{path}: expected numeric (int or float), got {found}"
        case "s" | "y" if not isinstance(value, str):
            yield f"{path}: expected string, got &value.valueUnstructured{{Value:{_printed(value)}}}"


def _matches_list(value: Any, kind: str, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got &{{{_printed(value)}}}"
        return
    inner, _, listed = kind[1:-1].partition("|")
    keys = dict(_key(each) for each in listed.split(",")) if listed else {}
    seen: set[str] = set()
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if keys and isinstance(item, dict):
            found = {name: item.get(name, default) for name, default in keys.items()}
            present = {name: each for name, each in found.items() if each is not None}
            text = ",".join(f"{name}={compact_json(each)}" for name, each in sorted(present.items()))
            place = f"{path}[{text}]"
            if text in seen:
                yield f"{path}: duplicate entries for key [{text}]"
                continue
            seen.add(text)
        yield from _matches(item, inner, place)


def _key(text: str) -> tuple[str, str | None]:
    name, has_default, default = text.partition("=")
    return name, default if has_default else None


def _unreadable(value: Any, kind: str) -> Iterator[str]:
    """Yield what the decoder of the API server cannot read in a value that has the declared types."""
    if isinstance(value, dict) and kind[0] in "#{":
        for name, item in value.items():
            yield from _unreadable(item, kind[1:-1] if kind[0] == "{" else _declared()["types"][kind[1:]][name])
    elif isinstance(value, list) and kind[0] == "[":
        for item in value:
            yield from _unreadable(item, kind[1:-1].partition("|")[0])
    elif kind == "q" and not (isinstance(value, int | float) or _QUANTITY.fullmatch(str(value))):
        yield _QUANTITY_TEXT
    elif kind == "y" and isinstance(value, str):
        try:
            base64.b64decode(value, validate=True)
        except binascii.Error:
            yield "error decoding from json: illegal base64 data at input byte 0"


def _printed(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)


# --- how fields.json is made -------------------------------------------------------------------------------------------

_ANYTHING: Final = frozenset(
    {
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus",
    }
)
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def declarations(documents: Mapping[str, Any]) -> Declarations:
    """Return the declarations of the lab's built-in kinds, from the schemas of OpenAPI documents by name."""
    served = {(each.group, each.version, each.kind) for each in BUILT_IN}
    kinds = {
        f"{gvk['group']}/{gvk['version']}/{gvk['kind']}": name
        for name, schema in documents.items()
        for gvk in schema.get("x-kubernetes-group-version-kind") or []
        if (gvk["group"], gvk["version"], gvk["kind"]) in served
    }
    types: dict[str, Mapping[str, str]] = {}
    left = [*kinds.values(), _OBJECT_META]
    while left:
        name = left.pop()
        if name in types:
            continue
        properties = documents[name].get("properties") or {}
        types[name] = {field: _notation(each, documents) for field, each in properties.items()}
        left += [found for each in types[name].values() for found in re.findall(r"#([\w.-]+)", each)]
    short = {name: name.rpartition(".")[2] if name == _OBJECT_META else name.removeprefix("io.k8s.") for name in types}

    def shortened(kind: str) -> str:
        return re.sub(r"#([\w.-]+)", lambda found: f"#{short[found.group(1)]}", kind)

    return {
        "kinds": {kind: short[name] for kind, name in sorted(kinds.items())},
        "types": {
            short[name]: {field: shortened(kind) for field, kind in sorted(fields.items())}
            for name, fields in sorted(types.items(), key=lambda each: short[each[0]])
        },
    }


def _notation(schema: Mapping[str, Any], documents: Mapping[str, Any]) -> str:
    inner: Mapping[str, Any] = next(iter(schema.get("allOf") or []), {})
    reference = str(schema.get("$ref") or inner.get("$ref") or "").rpartition("/")[2]
    if reference:
        return _notation_of_type(reference, documents)
    match schema.get("type"):
        case "string":
            return "y" if schema.get("format") == "byte" else "s"
        case "integer" | "number":
            return "n"
        case "boolean":
            return "b"
        case "array":
            items = schema["items"]
            keys = schema.get("x-kubernetes-list-map-keys") or []
            listed = ",".join(_key_text(each, items, documents) for each in keys)
            return f"[{_notation(items, documents)}{'|' if listed else ''}{listed}]"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"{{{_notation(schema['additionalProperties'], documents)}}}"
        case _:
            return "*"


def _notation_of_type(name: str, documents: Mapping[str, Any]) -> str:
    schema = documents[name]
    if name in _ANYTHING:
        return "*"
    if name.endswith(".Quantity"):
        return "q"
    return f"#{name}" if schema.get("properties") else "s" if schema.get("type") == "string" else "*"


def _key_text(key: str, items: Mapping[str, Any], documents: Mapping[str, Any]) -> str:
    reference = str(items.get("$ref") or (items.get("allOf") or [{}])[0].get("$ref") or "").rpartition("/")[2]
    field = (documents[reference].get("properties") or {}).get(key) or {}
    return f"{key}={field['default']}" if field.get("default") else key


def _text(declared: Declarations) -> str:
    """Return the file's text, with one line for each kind and each type, so that changes can be read."""
    parts = []
    for name, entries in (("kinds", declared["kinds"]), ("types", declared["types"])):
        lines = [f" {json.dumps(each)}: {compact_json(entry)}" for each, entry in entries.items()]
        parts.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n}")
    return "{" + ", ".join(parts) + "}\n"


if __name__ == "__main__":
    sys.stdout.write(_text(declarations(json.load(sys.stdin))))
