"""The scale subresource: a small object that reads and sets the number of replicas of any scalable kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevnfm_lab.kubernetes.errors import bad_request, invalid, wrong
from kubevnfm_lab.kubernetes.objects import Obj, copy_of, value_at
from kubevnfm_lab.kubernetes.patches import json_patch, merge_patch
from kubevnfm_lab.kubernetes.registry import Registry
from kubevnfm_lab.kubernetes.selectors import selector_text
from kubevnfm_lab.kubernetes.verbs import JSON_PATCH, Target, WriteOptions


def _paths(target: Target) -> Mapping[str, tuple[str, ...]]:
    """Return the paths of wanted replicas, actual replicas and the selector."""
    given = target.resource.custom.scale_paths if target.resource.custom is not None else {}

    def split(name: str, default: str) -> tuple[str, ...]:
        return tuple(given.get(name, default).strip(".").split("."))

    return {
        "wanted": split("specReplicasPath", ".spec.replicas"),
        "there": split("statusReplicasPath", ".status.replicas"),
        "selector": split("labelSelectorPath", ".spec.selector"),
    }


def scale_of(target: Target, obj: Obj) -> Obj:
    """Return the Scale of an object."""
    paths, metadata = _paths(target), obj["metadata"]
    shown = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = value_at(obj, *paths["selector"])
    wanted = value_at(obj, *paths["wanted"])
    scale: Obj = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in shown if name in metadata},
        "spec": {"replicas": wanted} if wanted else {},
        "status": {"replicas": value_at(obj, *paths["there"]) or 0},
    }
    text = selector if isinstance(selector, str) else selector_text(selector)
    if text:
        scale["status"]["selector"] = text
    return scale


def set_scale(registry: Registry, target: Target, value: Any, options: WriteOptions) -> Obj:
    """Set the number of replicas that a Scale asks for; return the new Scale."""
    if not isinstance(value, dict):
        raise bad_request("the object provided is unrecognized (must be of type Scale)")
    old = registry.get(target.resource, target.key)
    replicas = value_at(value, "spec", "replicas") or 0
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        problem = wrong("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", "Scale", target.name, [problem])
    new: Obj = copy_of(old)
    version = value_at(value, "metadata", "resourceVersion")
    if version:
        new["metadata"]["resourceVersion"] = version
    *parents, last = _paths(target)["wanted"]
    node = new
    for name in parents:
        node = node.setdefault(name, {})
    node[last] = replicas
    changed = registry.replace(
        target.resource, new, subresource="scale", manager=options.manager, dry_run=options.dry_run
    )
    return scale_of(target, changed)


def patch_scale(registry: Registry, target: Target, value: Any, content_type: str, options: WriteOptions) -> Obj:
    """Patch the Scale; every format but JSON Patch is a merge here, since a Scale has no lists."""
    scale = scale_of(target, registry.get(target.resource, target.key))
    is_json_patch = content_type.partition(";")[0].strip() == JSON_PATCH
    patched = json_patch(scale, value) if is_json_patch else merge_patch(scale, value)
    if value_at(value, "metadata", "resourceVersion") is None and isinstance(patched, dict):
        patched["metadata"].pop("resourceVersion", None)
    return set_scale(registry, target, patched, options)
