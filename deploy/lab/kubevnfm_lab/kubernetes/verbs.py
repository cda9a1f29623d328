"""The verbs of any resource: get, list, create, update, patch, delete, and deletecollection.

Bodies are parsed, options read and answers built here; the rules are in the registry.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kubevnfm_lab import yaml_text
from kubevnfm_lab.kubernetes import schemas
from kubevnfm_lab.kubernetes.decoding import check_types
from kubevnfm_lab.kubernetes.errors import (
    bad_request,
    expired,
    invalid,
    not_found,
    required,
    unsupported_media_type,
    wrong,
)
from kubevnfm_lab.kubernetes.fields import check_fields
from kubevnfm_lab.kubernetes.objects import Key, Obj, copy_of, key_of, without_nulls
from kubevnfm_lab.kubernetes.ownership import apply
from kubevnfm_lab.kubernetes.patches import json_patch, merge_patch, strategic_merge
from kubevnfm_lab.kubernetes.registry import Deletion, Registry, require_name
from kubevnfm_lab.kubernetes.resources import Resource
from kubevnfm_lab.kubernetes.selectors import Predicate, field_selector, label_selector
from kubevnfm_lab.kubernetes.shapes import shape_of
from kubevnfm_lab.kubernetes.versions import in_version

APPLY_PATCH: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


@dataclass(frozen=True)
class Target:
    """The subject of a request: a resource, perhaps one object, perhaps a subresource of that."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


@dataclass(frozen=True)
class WriteOptions:
    """The query parameters of a write."""

    manager: str
    """``fieldManager``, or the client's name from its User-Agent."""
    dry_run: bool = False
    force: bool = False
    strict: bool = False
    """``fieldValidation=Strict``: fields that the schema lacks are an error."""

    @classmethod
    def read(cls, query: Mapping[str, str], user_agent: str) -> WriteOptions:
        """Return the options of a request; raise 400 for unsupported values."""
        dry_run = query.get("dryRun", "")
        if dry_run not in {"", "All"}:
            raise bad_request(f'dryRun: Unsupported value: "{dry_run}": supported values: "All"')
        return cls(
            # kubectl and the SDKs identify themselves in User-Agent, which Kubernetes uses as the default manager.
            manager=query.get("fieldManager") or user_agent.partition("/")[0] or "unknown",
            dry_run=dry_run == "All",
            force=query.get("force") in {"true", "1"},
            strict=query.get("fieldValidation") == "Strict",
        )


def parse_body(body: bytes, content_type: str) -> Any:
    """Return the value of a JSON or YAML body; raise 400 if it is neither, 415 for protobuf."""
    kind = content_type.partition(";")[0].strip().lower()
    if "protobuf" in kind:
        raise unsupported_media_type(kind, ("application/json", "application/yaml"))
    try:
        # A JSON body labelled as YAML is common, and the JSON parser is much faster.
        if "yaml" in kind and not body.lstrip().startswith((b"{", b"[")):
            return yaml_text.load(body)
        return json.loads(body)
    except (json.JSONDecodeError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type Object): {error}") from error


def read_object(value: Any, target: Target, *, api_version: str = "", kind: str = "") -> Obj:
    """Return the body as an object of the target's kind, named and placed as the path says.

    Raises: ApiError 400 when it is no object, or one of another kind, version or namespace.
    """
    if not isinstance(value, dict):
        raise bad_request("the object provided is unrecognized (must be of type Object)")
    wanted_version, wanted_kind = api_version or target.resource.api_version, kind or target.resource.kind
    obj: Obj = value
    obj["apiVersion"] = obj.get("apiVersion") or wanted_version
    obj["kind"] = obj.get("kind") or wanted_kind
    if (obj["apiVersion"], obj["kind"]) != (wanted_version, wanted_kind):
        raise bad_request(
            f"the API version in the data ({obj['apiVersion']}, Kind={obj['kind']}) does not match the expected API "
            f"version ({wanted_version}, Kind={wanted_kind})"
        )
    if target.resource.custom is None:
        # Kubernetes' typed decoder drops null: generated manifests contain ``creationTimestamp: null`` everywhere.
        obj = without_nulls(obj)
    obj["metadata"] = obj.get("metadata") or {}
    if not isinstance(obj["metadata"], dict):
        raise bad_request("metadata: a map was expected")
    if target.resource.namespaced and obj["metadata"].setdefault("namespace", target.namespace) != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return obj


def selection(query: Mapping[str, str], resource: Resource) -> Predicate | None:
    """Return the predicate of the request's selectors; None if it has none."""
    tests: list[Predicate] = []
    if query.get("labelSelector"):
        tests.append(label_selector(query["labelSelector"]))
    if query.get("fieldSelector"):
        tests.append(field_selector(query["fieldSelector"], resource.store_name))
    return (lambda obj: all(test(obj) for test in tests)) if tests else None


class Verbs:
    """The verbs, the same for every resource."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def get(self, target: Target) -> Obj:
        """Return the object; raise 404."""
        return self._registry.get(target.resource, target.key)

    def list(self, target: Target, query: Mapping[str, str]) -> Obj:
        """Return the list that the query asks for, in pages if it has a limit."""
        resource, store = target.resource, self._registry.store
        found = self._selected(target, query)
        metadata: Obj = {"resourceVersion": str(store.revision)}
        start = query.get("continue", "")
        # A page continues after a key, not at an offset, so objects that come and go do not shift it.
        if start:
            after = _read_continue(start)
            found = [obj for obj in found if key_of(obj) > after]
        limit = _number(query.get("limit") or 0, "limit")
        if 0 < limit < len(found):
            metadata |= {"continue": _continue(key_of(found[limit - 1])), "remainingItemCount": len(found) - limit}
            found = found[:limit]
        return {
            "kind": resource.list_kind or f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": metadata,
            "items": [in_version(obj, resource) for obj in found],
        }

    def _selected(self, target: Target, query: Mapping[str, str]) -> Sequence[Obj]:
        found = self._registry.store.list(target.resource.store_name, target.namespace)
        selects = selection(query, target.resource)
        return found if selects is None else [obj for obj in found if selects(obj)]

    def create(self, target: Target, value: Any, options: WriteOptions) -> Obj:
        """Create the object in the body."""
        obj = read_object(value, target)
        self._check_fields(target.resource, obj, options)
        if obj["metadata"].get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        return self._registry.create(
            target.resource, obj, manager=options.manager, by_user=True, dry_run=options.dry_run
        )

    def update(self, target: Target, value: Any, options: WriteOptions) -> Obj:
        """Replace the object by the body."""
        resource = target.resource
        obj = read_object(value, target)
        require_name(resource, obj, target.key)
        self._check_fields(resource, obj, options)
        # Custom resources have no unconditional update in Kubernetes.
        if resource.custom is not None and not obj["metadata"].get("resourceVersion"):
            problem = wrong("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource.group, resource.plural, target.name, [problem])
        return self._replace(target, obj, options)

    def _replace(self, target: Target, obj: Obj, options: WriteOptions, *, applied: bool = False) -> Obj:
        return self._registry.replace(
            target.resource,
            obj,
            subresource=target.subresource,
            manager="" if applied else options.manager,
            dry_run=options.dry_run,
        )

    def patch(self, target: Target, value: Any, content_type: str, options: WriteOptions) -> tuple[Obj, bool]:
        """Patch the object in the body's format; return it and whether an apply created it.

        Raises: ApiError 404, 409, 415 (a format that there is not, or strategic merge of a custom resource), 422.
        """
        kind = content_type.partition(";")[0].strip().lower()
        resource = target.resource
        if kind == APPLY_PATCH:
            return self._apply(target, value, options)
        if kind not in PATCHES or (kind == STRATEGIC_PATCH and resource.custom is not None):
            raise unsupported_media_type(kind, [p for p in PATCHES if resource.custom is None or p != STRATEGIC_PATCH])
        live = self.get(target)
        if kind == JSON_PATCH:
            patched = json_patch(live, value)
        elif kind == MERGE_PATCH:
            patched = merge_patch(live, value)
        else:
            patched = strategic_merge(live, value, shape_of(resource))
        if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
            raise bad_request("the patch leaves no object")
        # As with whole objects, a null in a built-in kind means an absent field.
        obj: Obj = without_nulls(patched) if resource.custom is None else copy_of(patched)
        require_name(resource, obj, target.key)
        self._check_fields(resource, obj, options)
        return self._replace(target, obj, options), False

    def _apply(self, target: Target, value: Any, options: WriteOptions) -> tuple[Obj, bool]:
        resource = target.resource
        if not isinstance(value, dict):
            raise bad_request("error decoding YAML: an object was expected")
        if not value.get("apiVersion") or not value.get("kind"):
            raise bad_request("error decoding YAML: Object 'Kind' and 'apiVersion' are needed in an apply patch")
        # "unknown" means that the request named no manager and sent no User-Agent.
        if options.manager == "unknown":
            raise invalid("meta.k8s.io", "PatchOptions", "", [required("fieldManager", "is required for apply patch")])
        config = read_object(value, target)
        metadata = config["metadata"]
        if metadata.get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        require_name(resource, config, target.key)
        check_fields(resource, config)
        check_types(resource, config)
        self._check_fields(resource, config, options)
        stored = self._registry.store.get(resource.store_name, target.key)
        # An apply that carries identity expects an existing object, so it must not create one.
        if stored is None and (target.subresource or metadata.get("uid") or metadata.get("resourceVersion")):
            raise not_found(resource.group, resource.plural, target.name)
        live = in_version(stored, resource) if stored is not None else None
        version = metadata.get("resourceVersion")
        applied = apply(
            live,
            config,
            resource,
            manager=options.manager,
            force=options.force,
            subresource=target.subresource,
        )
        if live is None:
            return self._registry.create(resource, applied, by_user=True, dry_run=options.dry_run), True
        # Without a version of its own an apply cannot conflict by version, only by field ownership.
        applied["metadata"]["resourceVersion"] = version or live["metadata"]["resourceVersion"]
        return self._replace(target, applied, options, applied=True), False

    def _check_fields(self, resource: Resource, obj: Obj, options: WriteOptions) -> None:
        # Built-in kinds have no schema here, so their unknown fields cannot be recognised.
        if not options.strict or resource.custom is None:
            return
        _, unknown = schemas.pruned(obj, resource.custom.schema)
        if unknown:
            listed = ", ".join(f'unknown field "{field}"' for field in unknown)
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: strict decoding '
                f"error: {listed}"
            )

    def delete(self, target: Target, how: Deletion) -> Obj:
        """Delete the object; return it if it remains for now (finalizers, grace), otherwise a Success status."""
        obj, gone = self._registry.delete(target.resource, target.key, how)
        # Kubernetes returns a Status for a deleted object, but the object itself for pods.
        if not gone or target.resource.name == "pods":
            return obj
        details = {"name": target.name, "kind": target.resource.plural, "uid": obj["metadata"]["uid"]}
        if target.resource.group:
            details["group"] = target.resource.group
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def delete_collection(self, target: Target, query: Mapping[str, str], how: Deletion) -> Obj:
        """Delete all objects that the selectors match; return their list as it was."""
        found = self.list(target, query)
        for obj in found["items"]:
            self._registry.delete(target.resource, key_of(obj), how)
        return found


def read_deletion(query: Mapping[str, str], value: Any) -> Deletion:
    """Return the options of a deletion, from the DeleteOptions body or else from the query."""
    body: Mapping[str, Any] = value if isinstance(value, dict) else {}
    policy = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
    if policy not in {"", "Foreground", "Background", "Orphan"}:
        problem = wrong("propagationPolicy", policy, 'supported values: "Foreground", "Background", "Orphan"')
        raise invalid("meta.k8s.io", "DeleteOptions", "", [problem])
    # orphanDependents is the deprecated form of propagationPolicy; old kubectl still sends it.
    orphan = body.get("orphanDependents", {"true": True, "false": False}.get(query.get("orphanDependents", "")))
    if orphan is not None and not policy:
        policy = "Orphan" if orphan else "Background"
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    preconditions = body.get("preconditions")
    if not isinstance(preconditions, dict):
        preconditions = {}
    return Deletion(
        policy=policy,
        grace_s=None if grace is None or grace == "" else _number(grace, "gracePeriodSeconds"),
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=body.get("dryRun") == ["All"] or query.get("dryRun") == "All",
    )


def _number(value: Any, name: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise bad_request(f"{name}: a number was expected, got {value!r}") from error


def _continue(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _read_continue(token: str) -> Key:
    try:
        namespace, name = json.loads(base64.urlsafe_b64decode(token))
    except (binascii.Error, ValueError) as error:
        raise expired("The provided continue parameter is too old or not valid.") from error
    return Key(namespace, name)
