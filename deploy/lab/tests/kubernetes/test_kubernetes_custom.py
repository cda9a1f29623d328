"""Custom resources: their definitions, schemas, versions and subresources."""

from __future__ import annotations

from typing import Any

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
OLD_WIDGETS = "/apis/example.com/v1beta1/namespaces/default/widgets"

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}},
            },
        },
    },
}
STATUS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def a_definition(**version: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}}
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    subresources = {"status": {}, "scale": scale}
    newest = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": subresources, **version}
    old = {"name": "v1beta1", "served": True, "storage": False, "schema": schema, "subresources": subresources}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [newest, old],
        },
    }


def a_widget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


async def establish(api: Any, definition: dict[str, Any]) -> Any:
    await api.apply(f"{DEFINITIONS}/{definition['metadata']['name']}", definition)

    def established(obj: Any) -> bool:
        conditions = {c["type"]: c["status"] for c in obj.get("status", {}).get("conditions", [])}
        return conditions == {"NamesAccepted": "True", "Established": "True"}

    return await api.until(DEFINITIONS, definition["metadata"]["name"], established)


async def test_a_definition_makes_its_kind_served_in_all_versions(api: Any) -> None:
    assert (await api.call("GET", WIDGETS)).code == 404
    made = await establish(api, a_definition())
    assert made["status"]["acceptedNames"]["listKind"] == "WidgetList"
    assert made["status"]["storedVersions"] == ["v1"]
    group = await api.get("/apis/example.com")
    assert group["preferredVersion"]["version"] == "v1"
    assert {r["name"] for r in (await api.get("/apis/example.com/v1beta1"))["resources"]} == {
        "widgets",
        "widgets/status",
        "widgets/scale",
    }
    await api.post(WIDGETS, a_widget(size=1))
    older = await api.get(f"{OLD_WIDGETS}/w")
    assert (older["apiVersion"], older["spec"]["size"]) == ("example.com/v1beta1", 1)
    changed = await api.patch(f"{OLD_WIDGETS}/w", {"spec": {"size": 2}})
    assert changed["metadata"]["generation"] == 2
    assert (await api.get(WIDGETS))["items"][0]["spec"]["size"] == 2
    assert (await api.get(WIDGETS))["kind"] == "WidgetList"


async def test_a_resource_is_checked_pruned_and_given_defaults_by_its_schema(api: Any) -> None:
    await establish(api, a_definition())
    answer = await api.call("POST", WIDGETS, a_widget(size="big", mode="odd"))
    assert answer.code == 422
    assert answer.body["message"] == (
        'Widget.example.com "w" is invalid: [spec.size: Invalid value: "big": spec.size in body must be of type integer: '
        '"string", spec.mode: Unsupported value: "odd": supported values: "fast", "slow"]'
    )
    missing = await api.call("POST", WIDGETS, a_widget())
    assert "is invalid: spec.size: Required value" in missing.body["message"]
    made = await api.post(WIDGETS, a_widget(size=1, unknown=1, free={"any": {"thing": True}}))
    assert made["spec"] == {"size": 1, "mode": "fast", "free": {"any": {"thing": True}}}


async def test_strict_validation_refuses_unknown_fields(api: Any) -> None:
    await establish(api, a_definition())
    answer = await api.call("POST", f"{WIDGETS}?fieldValidation=Strict", a_widget(size=1, unknown=1))
    assert answer.code == 400
    assert 'strict decoding error: unknown field "spec.unknown"' in answer.body["message"]


async def test_status_and_scale_follow_the_definition(api: Any) -> None:
    await establish(api, a_definition())
    made = await api.post(WIDGETS, a_widget(size=1) | {"status": {"size": 9}})
    assert "status" not in made
    patched = await api.patch(f"{WIDGETS}/w/status", {"status": {"size": 1}, "spec": {"size": 7}})
    assert (patched["status"], patched["spec"]["size"], patched["metadata"]["generation"]) == ({"size": 1}, 1, 1)
    scale = await api.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 3}})
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 1)
    assert (await api.get(f"{WIDGETS}/w"))["spec"]["size"] == 3


async def test_without_a_status_subresource_status_is_an_ordinary_field(api: Any) -> None:
    definition = a_definition()
    for version in definition["spec"]["versions"]:
        version["subresources"] = {}
    await establish(api, definition)
    made = await api.post(WIDGETS, a_widget(size=1) | {"status": {"size": 9}})
    assert made["status"] == {"size": 9}
    assert (await api.call("PATCH", f"{WIDGETS}/w/status", {}, kind="application/merge-patch+json")).code == 404


async def test_lists_of_a_custom_resource_merge_as_its_schema_says(api: Any) -> None:
    await establish(api, a_definition())
    await api.apply(f"{WIDGETS}/w", a_widget(size=1, parts=[{"name": "a", "weight": 1}]), manager="one")
    answer = await api.apply(f"{WIDGETS}/w", a_widget(size=1, parts=[{"name": "b"}]), manager="two")
    assert [p["name"] for p in answer.body["spec"]["parts"]] == ["a", "b"]
    clash = await api.apply(f"{WIDGETS}/w", a_widget(size=1, parts=[{"name": "a", "weight": 2}]), manager="two")
    assert '.spec.parts[name="a"].weight' in clash.body["message"]


async def test_a_custom_resource_is_not_patched_strategically(api: Any) -> None:
    await establish(api, a_definition())
    await api.post(WIDGETS, a_widget(size=1))
    answer = await api.call("PATCH", f"{WIDGETS}/w", {}, kind="application/strategic-merge-patch+json")
    assert answer.code == 415


async def test_a_definition_takes_its_resources_along(api: Any) -> None:
    await establish(api, a_definition())
    await api.post(WIDGETS, a_widget(size=1) | {"metadata": {"name": "w", "finalizers": ["example.com/wait"]}})
    await api.delete(f"{DEFINITIONS}/widgets.example.com")
    await api.until(WIDGETS, "w", lambda obj: "deletionTimestamp" in obj["metadata"])
    await api.patch(f"{WIDGETS}/w", {"metadata": {"finalizers": None}})
    await api.until_gone(DEFINITIONS, "widgets.example.com")
    assert (await api.call("GET", WIDGETS)).code == 404


async def test_a_kind_that_is_taken_is_not_accepted(api: Any) -> None:
    await establish(api, a_definition())
    other = a_definition()
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"] = {"plural": "gadgets", "kind": "Widget"}
    await api.post(DEFINITIONS, other)

    def refused(obj: Any) -> bool:
        conditions = {c["type"]: c["status"] for c in obj.get("status", {}).get("conditions", [])}
        return conditions == {"NamesAccepted": "False", "Established": "False"}

    await api.until(DEFINITIONS, "gadgets.example.com", refused)


async def test_a_definition_needs_one_storage_version_and_its_own_name(api: Any) -> None:
    definition = a_definition(storage=False)
    definition["metadata"]["name"] = "other.example.com"
    answer = await api.call("POST", DEFINITIONS, definition)
    assert answer.code == 422
    fields = {cause["field"] for cause in answer.body["details"]["causes"]}
    assert fields == {"metadata.name", "spec.versions"}
