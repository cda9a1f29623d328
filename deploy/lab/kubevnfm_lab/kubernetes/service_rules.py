"""The validation of Services and of their status, worded as Kubernetes words it."""

from __future__ import annotations

from collections.abc import Iterator

from kubevnfm_lab.kubernetes.errors import FieldProblem, duplicate, field_forbidden, required, unsupported, wrong
from kubevnfm_lab.kubernetes.objects import Obj, value_at


def service_problems(obj: Obj) -> Iterator[FieldProblem]:
    """Yield the problems of a Service."""
    spec = obj.get("spec") or {}
    kind = spec.get("type", "ClusterIP")
    if kind not in {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}:
        yield unsupported("spec.type", kind, ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))
    ports = spec.get("ports") or []
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    if kind == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    seen = set()
    for index, port in enumerate(ports):
        number = port.get("port")
        if not isinstance(number, int) or not 0 < number < 65536:
            yield wrong(f"spec.ports[{index}].port", number, "must be between 1 and 65535, inclusive")
        if len(ports) > 1 and not port.get("name"):
            yield required(f"spec.ports[{index}].name")
        place = (number, port.get("protocol"))
        if place in seen:
            yield duplicate(f"spec.ports[{index}]", {"port": number, "protocol": port.get("protocol")})
        seen.add(place)


def service_status_problems(obj: Obj) -> Iterator[FieldProblem]:
    """Yield the problems of the status of a Service."""
    if value_at(obj, "status", "loadBalancer", "ingress") and obj["spec"]["type"] != "LoadBalancer":
        yield field_forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")
