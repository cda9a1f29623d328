"""Services: the endpoints of the pods that they select, and an address for those of type LoadBalancer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.controllers.pods import is_ready
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import Key, Obj, controller_reference, is_terminating, key_of, labels_of, value_at
from kubevnfm_lab.kubernetes.store import Change

_SLICES: Final = "endpointslices.discovery.k8s.io"
_BALANCERS: Final = IPv4Network("192.0.2.0/24")
"""Addresses of load balancers: TEST-NET-1 (RFC 5737), which no real network uses."""


class Services:
    """Keeps Endpoints and an EndpointSlice for every Service with a selector."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {"services": itself, "pods": self._selecting}

    def _selecting(self, change: Change) -> Iterable[Key]:
        labels = labels_of(change.obj)
        return [
            key_of(service)
            for service in self._plane.store.list("services", change.key.namespace)
            # A pod whose labels changed leaves the Services that selected its old labels.
            if _selects(service, labels) or (change.old is not None and _selects(service, labels_of(change.old)))
        ]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        service = self._plane.store.get("services", key)
        if service is None:
            endpoints = self._plane.store.get("endpoints", key)
            if endpoints is not None:
                self._plane.delete("endpoints", endpoints)
            return
        if is_terminating(service):
            return
        spec = service["spec"]
        # A service with a class is the business of another controller.
        is_ours = spec["type"] == "LoadBalancer" and not spec.get("loadBalancerClass")
        if is_ours and not value_at(service, "status", "loadBalancer", "ingress"):
            self._plane.later(self._plane.delay_s, lambda: self._balance(key))
        if spec.get("selector"):
            pods = [pod for pod in self._plane.store.list("pods", key.namespace) if _selects(service, labels_of(pod))]
            # A pod without an address, or one that ends, gets no traffic.
            self._write(service, [pod for pod in pods if value_at(pod, "status", "podIP") and not is_terminating(pod)])

    def _balance(self, key: Key) -> None:
        service = self._plane.store.get("services", key)
        if service is None or service["spec"]["type"] != "LoadBalancer":
            return
        if value_at(service, "status", "loadBalancer", "ingress"):
            return
        used = {
            ingress.get("ip")
            for other in self._plane.store.list("services")
            for ingress in value_at(other, "status", "loadBalancer", "ingress") or []
        }
        wanted = service["spec"].get("loadBalancerIP")
        free: Iterable[IPv4Address] = (address for address in _BALANCERS.hosts() if str(address) not in used)
        address = wanted or str(next(iter(free)))
        status = {"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}}
        self._plane.registry.set_status("services", key, status)

    def _write(self, service: Obj, pods: Sequence[Obj]) -> None:
        metadata = {
            "namespace": service["metadata"]["namespace"],
            "labels": dict(labels_of(service)),
        }
        name = service["metadata"]["name"]
        self._put("endpoints", {"metadata": {**metadata, "name": name}, **_endpoints(service, pods)})
        self._put(
            _SLICES,
            {
                "metadata": {
                    **metadata,
                    "name": f"{name}-{service['metadata']['uid'][:5]}",
                    "labels": {
                        **metadata["labels"],
                        "kubernetes.io/service-name": name,
                        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                    },
                    "ownerReferences": [controller_reference(service)],
                },
                **_slice(service, pods),
            },
        )

    def _put(self, resource: str, obj: Obj) -> None:
        """Create the object, or set its content."""

        def write(current: Obj) -> None:
            current.update({name: value for name, value in obj.items() if name != "metadata"})
            current["metadata"]["labels"] = obj["metadata"]["labels"]
            if "subsets" not in obj:
                current.pop("subsets", None)

        if self._plane.registry.change(resource, key_of(obj), write) is not None:
            return
        try:
            self._plane.create(resource, obj)
        except ApiError as error:
            if error.code not in {403, 404}:  # the namespace is being deleted
                raise


def _selects(service: Obj, labels: Mapping[str, str]) -> bool:
    selector = value_at(service, "spec", "selector")
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def _target(pod: Obj) -> Obj:
    metadata = pod["metadata"]
    return {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}


def _port_number(target: Any, pods: Sequence[Obj]) -> int:
    """Return the number of a target port, which may be given as the name of a container's port."""
    if isinstance(target, int):
        return target
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for port in container.get("ports") or []:
                if port.get("name") == target:
                    return int(port["containerPort"])
    return int(target) if str(target).isdigit() else 0


def _ports(service: Obj, pods: Sequence[Obj]) -> list[Obj]:
    ports = []
    for port in service["spec"].get("ports") or []:
        number = _port_number(port.get("targetPort", port["port"]), pods)
        named = {"name": port["name"]} if port.get("name") else {}
        ports.append({**named, "port": number, "protocol": port["protocol"]})
    return ports


def _endpoints(service: Obj, pods: Sequence[Obj]) -> Obj:
    # No subset rather than an empty one: `kubectl get endpoints` then shows <none>.
    if not pods:
        return {}
    subset: Obj = {"ports": _ports(service, pods)}
    for field, wanted in (("addresses", True), ("notReadyAddresses", False)):
        found = [
            {"ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"], "targetRef": _target(pod)}
            for pod in pods
            if is_ready(pod) is wanted
        ]
        if found:
            subset[field] = found
    return {"subsets": [subset]}


def _slice(service: Obj, pods: Sequence[Obj]) -> Obj:
    endpoints = [
        {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {"ready": is_ready(pod), "serving": is_ready(pod), "terminating": False},
            "nodeName": pod["spec"]["nodeName"],
            "targetRef": _target(pod),
        }
        for pod in pods
    ]
    return {"addressType": "IPv4", "endpoints": endpoints, "ports": _ports(service, pods)}
