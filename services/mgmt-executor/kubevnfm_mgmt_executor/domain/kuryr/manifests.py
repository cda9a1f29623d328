"""The Kubernetes objects of Kuryr: its kinds, accounts, configuration, the controller, and the daemon on the nodes.

Source of names, mounts and rights: kuryr-kubernetes, "Kuryr installation as a Kubernetes network addon".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubevnfm_cluster.kuryr import KuryrParameters
from kubevnfm_events.kuryr import KuryrNetwork
from kubevnfm_kit.foreign_yaml.writing import write_yaml_documents
from kubevnfm_secrets import Secret

from kubevnfm_mgmt_executor.domain.kuryr.configuration import CA_FILE, kuryr_conf, neutron_conf

NAMESPACE: Final = "kube-system"
CONTROLLER, CNI, CONFIGURATION = "kuryr-controller", "kuryr-cni", "kuryr-config"
LOGIN: Final = "kuryr-login"
CERTIFICATES: Final = "kuryr-certificates"
WORKLOADS: Final = ((NAMESPACE, f"deployment/{CONTROLLER}"), (NAMESPACE, f"daemonset/{CNI}"))
"""Namespace and ``kind/name`` of what must run before pods have a network."""
_KINDS: Final = {
    "KuryrPort": "kuryrports",
    "KuryrLoadBalancer": "kuryrloadbalancers",
    "KuryrNetwork": "kuryrnetworks",
    "KuryrNetworkPolicy": "kuryrnetworkpolicies",
}
"""The kinds of the group openstack.org in which Kuryr keeps what it has made."""

Manifest = dict[str, Any]


def manifests(kuryr: KuryrParameters, network: KuryrNetwork, *, api_root: str, reveal: Callable[[Secret], str]) -> str:
    """Return all objects as YAML; the Secret with the login holds it in clear."""
    conf = kuryr_conf(kuryr, network, api_root=api_root)
    objects = [
        *(_definition(kind, plural) for kind, plural in _KINDS.items()),
        *_account(CONTROLLER, _CONTROLLER_RULES),
        *_account(CNI, _CNI_RULES),
        _named("ConfigMap", CONFIGURATION, data={"kuryr.conf": conf}),
        _named("Secret", LOGIN, type="Opaque", stringData={"neutron.conf": neutron_conf(network, reveal)}),
        _named("Secret", CERTIFICATES, type="Opaque", stringData={"kuryr-ca-bundle.crt": network.login.ca_pem}),
        _controller(kuryr),
        _cni(kuryr),
    ]
    return write_yaml_documents(objects)


def _rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str]) -> Manifest:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


_READ: Final = ("get", "list", "watch")
_OWN: Final = (*(_KINDS.values()), *(f"{one}/status" for one in _KINDS.values()))
_CONTROLLER_RULES: Final = (
    _rule(("",), ("endpoints", "namespaces", "nodes", "pods", "services"), (*_READ, "patch", "update")),
    _rule(("",), ("services/status", "pods/status"), ("get", "patch", "update")),
    _rule(("discovery.k8s.io",), ("endpointslices",), _READ),
    _rule(("networking.k8s.io",), ("networkpolicies",), (*_READ, "patch", "update")),
    _rule(("openstack.org",), _OWN, ("*",)),
    _rule(("", "events.k8s.io"), ("events",), ("create", "patch")),
)
_CNI_RULES: Final = (
    _rule(("",), ("pods",), _READ),
    _rule(("openstack.org",), _OWN, (*_READ, "patch", "update")),
    _rule(("", "events.k8s.io"), ("events",), ("create", "patch")),
)


def _account(name: str, rules: Sequence[Manifest]) -> Sequence[Manifest]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    api = "rbac.authorization.k8s.io/v1"
    return [
        _named("ServiceAccount", name),
        {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)},
        {
            "apiVersion": api,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def _definition(kind: str, plural: str) -> Manifest:
    # Their content is a matter of Kuryr alone, so the schema leaves it open.
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.openstack.org"},
        "spec": {
            "group": "openstack.org",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


def _named(kind: str, name: str, **rest: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **rest}


def _controller(kuryr: KuryrParameters) -> Manifest:
    projected = [
        {"configMap": {"name": CONFIGURATION}},
        {"secret": {"name": LOGIN}},
    ]
    return _workload(
        "Deployment",
        CONTROLLER,
        {"replicas": 1, "strategy": {"type": "Recreate"}},  # two at a time would make everything twice
        pod={
            "hostNetwork": True,  # it makes the pod network, so it cannot need it
            "volumes": [
                {"name": "config", "projected": {"sources": projected, "defaultMode": 0o400}},
                {"name": "certificates", "secret": {"secretName": CERTIFICATES}},
            ],
        },
        container={
            "image": kuryr.x_controller_image,
            "args": ["--config-dir", "/etc/kuryr"],
            "volumeMounts": [
                {"name": "config", "mountPath": "/etc/kuryr", "readOnly": True},
                {"name": "certificates", "mountPath": CA_FILE, "subPath": "kuryr-ca-bundle.crt", "readOnly": True},
            ],
            "readinessProbe": _probe("/ready", 8082),
            "livenessProbe": _probe("/alive", 8082),
        },
    )


def _cni(kuryr: KuryrParameters) -> Manifest:
    paths = {"bin": "/opt/cni/bin", "net-conf": "/etc/cni/net.d", "proc": "/proc", "var-run": "/var/run"}
    volumes = [{"name": name, "hostPath": {"path": path}} for name, path in paths.items()]
    mounts = [
        {"name": "bin", "mountPath": "/opt/cni/bin"},
        {"name": "net-conf", "mountPath": "/etc/cni/net.d"},
        {"name": "proc", "mountPath": "/host_proc"},
        {"name": "var-run", "mountPath": "/var/run", "mountPropagation": "HostToContainer"},
        {"name": "config", "mountPath": "/etc/kuryr", "readOnly": True},
    ]
    return _workload(
        "DaemonSet",
        CNI,
        {},
        pod={
            "hostNetwork": True,
            "volumes": [*volumes, {"name": "config", "configMap": {"name": CONFIGURATION}}],
        },
        container={
            "image": kuryr.x_cni_image,
            "env": [
                {"name": "KUBERNETES_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "KURYR_CNI_POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "securityContext": {"privileged": True},
            "volumeMounts": mounts,
            "readinessProbe": _probe("/ready", 8090),
            "livenessProbe": _probe("/alive", 8090),
        },
    )


def _workload(
    kind: str, name: str, spec: Mapping[str, Any], *, pod: Mapping[str, Any], container: Mapping[str, Any]
) -> Manifest:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            **spec,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name,
                    # A node is not Ready, and a master is closed to others, until they run there.
                    "tolerations": [{"operator": "Exists"}],
                    "priorityClassName": "system-node-critical",
                    **pod,
                    "containers": [{"name": name, **container}],
                },
            },
        },
    }


def _probe(path: str, port: int) -> Manifest:
    return {"httpGet": {"path": path, "port": port}, "initialDelaySeconds": 5, "timeoutSeconds": 10}
