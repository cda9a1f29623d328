"""A stand-in for metrics-server: the API group ``metrics.k8s.io``, served where its APIService is.

Each container of a running pod uses what the pod's annotations say, and otherwise the same as all others. A value is measured at the
moment of the question.

Source: the answers of metrics-server v0.9.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_lab.kubernetes.errors import method_not_allowed, not_found
from kubevnfm_lab.kubernetes.objects import Key, Obj, annotations_of, labels_of, now, value_at
from kubevnfm_lab.kubernetes.resources import Resource
from kubevnfm_lab.kubernetes.store import Store
from kubevnfm_lab.kubernetes.validation import quantity
from kubevnfm_lab.kubernetes.verbs import Target, selection

GROUP: Final = "metrics.k8s.io"
API_SERVICE: Final = f"v1beta1.{GROUP}"
CPU_ANNOTATION: Final = "lab.kubevnfm.io/cpu"
MEMORY_ANNOTATION: Final = "lab.kubevnfm.io/memory"
"""On a pod: the usage of each of its containers."""
_DEFAULT: Final = {"cpu": "100m", "memory": "64Mi"}
_WINDOW: Final = "15.021s"
_READ: Final = ("get", "list")
RESOURCES: Final = (
    Resource(GROUP, "v1beta1", "NodeMetrics", "nodes", namespaced=False, verbs=_READ),
    Resource(GROUP, "v1beta1", "PodMetrics", "pods", verbs=_READ),
)


class PodMetrics:
    """Answers the requests of the group."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def answer(self, target: Target, verb: str, query: Mapping[str, str]) -> Obj:
        """Return one measurement, or a list of them: whole, whatever its limit. Raises ApiError 404, 405."""
        resource = target.resource
        found = {
            Key(each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
            for each in self._store.list(resource.plural, target.namespace)
            if resource.plural == "nodes" or value_at(each, "status", "phase") == "Running"
        }
        if verb == "get":
            if target.key not in found:
                raise not_found("", resource.plural, target.name)
            return {"kind": resource.kind, "apiVersion": resource.api_version, **self._measured(found[target.key])}
        if verb != "list":
            raise method_not_allowed(resource.group, resource.plural)
        selects = selection(query, resource)
        items = [self._measured(each) for each in found.values() if selects is None or selects(each)]
        return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": {}, "items": items}

    def _measured(self, obj: Obj) -> Obj:
        moment, of = now(), obj["metadata"]
        shown: Obj = {"name": of["name"], "creationTimestamp": moment, "labels": dict(labels_of(obj))}
        frame = {"timestamp": moment, "window": _WINDOW}
        if obj["kind"] == "Node":
            pods = [each for each in self._store.list("pods") if value_at(each, "spec", "nodeName") == shown["name"]]
            usages = [one["usage"] for each in pods for one in _containers(each)]
            used = {name: sum(quantity(each[name]) for each in usages) for name in _DEFAULT}
            usage = {"cpu": f"{int(used['cpu'] * 1e9)}n", "memory": f"{int(used['memory'] / 1024)}Ki"}
            return {"metadata": shown, **frame, "usage": usage}
        return {"metadata": {**shown, "namespace": of["namespace"]}, **frame, "containers": _containers(obj)}


def _containers(pod: Obj) -> list[Obj]:
    said = annotations_of(pod)
    usage = {
        "cpu": said.get(CPU_ANNOTATION, _DEFAULT["cpu"]), "memory": said.get(MEMORY_ANNOTATION, _DEFAULT["memory"])
    }  # fmt: skip
    return [{"name": each["name"], "usage": usage} for each in pod["spec"]["containers"]]
