"""Admission: completes or refuses an object after the rules of its kind passed (addresses, accounts, finalizers)."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Final

from kubevnfm_lab.kubernetes import capi_rules
from kubevnfm_lab.kubernetes.errors import forbidden, invalid, wrong
from kubevnfm_lab.kubernetes.objects import Key, Obj, key_of, value_at
from kubevnfm_lab.kubernetes.resources import Resource
from kubevnfm_lab.kubernetes.store import Store

_FIRST_NODE_PORT: Final = 30000
_LAST_NODE_PORT: Final = 32767
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Admission:
    """The admission of one cluster; it knows the service network and the CA."""

    def __init__(self, store: Store, *, service_cidr: str, ca_pem: str) -> None:
        self._store, self._ca_pem = store, ca_pem
        self._services = IPv4Network(service_cidr)

    def admit(self, resource: Resource, obj: Obj) -> None:
        """Complete the object; raise ApiError 403 or 422."""
        if resource.name == "services":
            self._admit_service(obj)
        elif resource.name == "pods":
            self._admit_pod(obj)
        elif resource.name == "persistentvolumeclaims":
            self._admit_claim(obj)
        elif resource.name == "persistentvolumes":
            _add_finalizer(obj, "kubernetes.io/pv-protection")
        elif resource.name == "customresourcedefinitions.apiextensions.k8s.io":
            _add_finalizer(obj, "customresourcecleanup.apiextensions.k8s.io")
        elif capi_rules.is_of_cluster_api(resource.group):
            capi_rules.check(resource, obj, self._store.get(resource.store_name, key_of(obj)))

    def namespace_contents(self) -> tuple[tuple[str, Obj], ...]:
        """Return what a new namespace contains, by resource: the default service account and the CA's certificate."""
        return (
            ("serviceaccounts", {"kind": "ServiceAccount", "metadata": {"name": "default"}}),
            (
                "configmaps",
                {"kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": self._ca_pem}},
            ),
        )

    def _admit_service(self, obj: Obj) -> None:
        spec, me = obj["spec"], Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
        others = [
            s for s in self._store.list("services") if Key(s["metadata"]["namespace"], s["metadata"]["name"]) != me
        ]
        current = self._store.get("services", me)
        if spec["type"] == "ExternalName":
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
            return
        # An update that leaves out clusterIP keeps it, which server-side apply relies on.
        if not spec.get("clusterIP") and current is not None:
            spec["clusterIP"] = value_at(current, "spec", "clusterIP")
        used = {value_at(service, "spec", "clusterIP") for service in others}
        address = spec.get("clusterIP")
        if not address:
            # The first address belongs to the API server, the tenth to the cluster's DNS.
            hosts = (str(host) for index, host in enumerate(self._services.hosts()) if index not in {0, 9})
            spec["clusterIP"] = next(host for host in hosts if host not in used)
        # "None" asks for a headless Service and may be used any number of times.
        elif address != "None" and address in used:
            problem = wrong(
                "spec.clusterIPs", [address], f"failed to allocate IP {address}: provided IP is already allocated"
            )
            raise invalid("", "Service", me.name, [problem])
        spec["clusterIPs"] = [spec["clusterIP"]]
        if spec["type"] in {"NodePort", "LoadBalancer"}:
            self._assign_node_ports(spec, others, current)

    def _assign_node_ports(self, spec: Obj, others: list[Obj], current: Obj | None) -> None:
        def ports(service: Obj | None) -> list[Obj]:
            return value_at(service, "spec", "ports") or []

        # A port keeps its number across updates, by port and protocol.
        mine = {(port["port"], port.get("protocol")): port.get("nodePort") for port in ports(current)}
        used = {port.get("nodePort") for service in others for port in ports(service)}
        used |= {port.get("nodePort") for port in spec.get("ports") or []}
        for port in spec.get("ports") or []:
            if not port.get("nodePort"):
                assigned = mine.get((port["port"], port.get("protocol")))
                free = (number for number in range(_FIRST_NODE_PORT, _LAST_NODE_PORT) if number not in used)
                port["nodePort"] = assigned or next(free)
                used.add(port["nodePort"])

    def _admit_pod(self, obj: Obj) -> None:
        metadata, spec = obj["metadata"], obj["spec"]
        namespace, account = metadata["namespace"], spec["serviceAccountName"]
        # Kubernetes refuses the pod too; its controller retries until the account exists.
        if self._store.get("serviceaccounts", Key(namespace, account)) is None:
            why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
            raise forbidden("", "pods", metadata["name"], why)
        wanted = spec.get("priorityClassName")
        if wanted and not spec.get("priority"):
            found = self._store.get("priorityclasses.scheduling.k8s.io", Key("", wanted))
            if found is None and wanted not in _SYSTEM_PRIORITIES:
                why = f"no PriorityClass with name {wanted} was found"
                raise forbidden("", "pods", metadata["name"], why)
            spec["priority"] = found["value"] if found is not None else _SYSTEM_PRIORITIES[wanted]

    def _admit_claim(self, obj: Obj) -> None:
        _add_finalizer(obj, "kubernetes.io/pvc-protection")
        # An absent class means the default one, an empty string means no class at all.
        if obj["spec"].get("storageClassName") is None:
            key = "storageclass.kubernetes.io/is-default-class"
            for storage_class in self._store.list("storageclasses.storage.k8s.io"):
                if value_at(storage_class, "metadata", "annotations", key) == "true":
                    obj["spec"]["storageClassName"] = storage_class["metadata"]["name"]


def _add_finalizer(obj: Obj, finalizer: str) -> None:
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") and finalizer not in (metadata.get("finalizers") or []):
        metadata["finalizers"] = [*(metadata.get("finalizers") or []), finalizer]
