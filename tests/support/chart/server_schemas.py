"""The schemas of an API server's own OpenAPI, in the form that kubeconform reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

LOCATION: Final = "{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json"
"""Below the folder: the file of a kind, as kubeconform fills it in; it takes the version for the group of kinds that have none."""


def write_schemas(read: Callable[[str], str], folder: Path) -> int:
    """Write a file for each kind that the server has; ``read`` returns the text of a path of the server. Return their number."""
    written = 0
    for place in json.loads(read("/openapi/v3"))["paths"].values():
        url = place["serverRelativeURL"]
        if not url.startswith(("/openapi/v3/api/v1?", "/openapi/v3/apis/")):
            continue
        schemas = _closed(json.loads(read(url)).get("components", {}).get("schemas", {}))
        for name, schema in schemas.items():
            for kind in schema.get("x-kubernetes-group-version-kind", ()):
                whole = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
                path = folder / f"{kind['kind'].lower()}-{kind['group'] or kind['version']}-{kind['version']}.json"
                path.write_text(json.dumps(whole), encoding="utf-8")
                written += 1
    return written


def _closed(one: Any) -> Any:
    """Return the schemas with objects that have no other attributes than those listed: a server drops others without a word."""
    if isinstance(one, list):
        return [_closed(each) for each in one]
    if not isinstance(one, dict):
        return one
    inner = {name: _closed(each) for name, each in one.items() if name != "default"}
    if isinstance(one.get("properties"), dict) and "additionalProperties" not in one:
        inner["additionalProperties"] = False
    return inner
