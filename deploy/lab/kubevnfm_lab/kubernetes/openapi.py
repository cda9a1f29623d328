"""The part of ``/openapi/v3`` that kubectl needs: which kinds exist, and that the server validates fields."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_lab.kubernetes.errors import not_served
from kubevnfm_lab.kubernetes.objects import Obj
from kubevnfm_lab.kubernetes.resources import Resource, ResourceTable


def document(table: ResourceTable, rest: Sequence[str], version: str) -> Obj:
    """Return the index, or the document of one group version (``rest`` is the path below ``/openapi/v3``)."""
    if not rest:
        names = [_place(group, v) for group in ("", *table.groups()) for v in table.versions(group)]
        return {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in names}}
    match rest:
        case ["api", api_version]:
            group = ""
        case ["apis", group, api_version]:
            pass
        case _:
            raise not_served()
    resources = table.of_version(group, api_version)
    if not resources:
        raise not_served()
    paths: Obj = {}
    schemas: Obj = {}
    for resource in resources:
        paths |= _paths(resource)
        schemas[f"lab.{resource.kind}"] = {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-group-version-kind": [_gvk(resource)],
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _gvk(resource: Resource) -> Obj:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _paths(resource: Resource) -> Obj:
    base = f"/{_place(resource.group, resource.version)}"
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    action = {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _gvk(resource),
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
    }
    return {f"{base}{scope}/{resource.plural}/{{name}}": {"patch": action}}
