"""The API server's defaults, as far as clients are known to read them.

Every function changes the object that it is given, which belongs to the current request.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Final

from kubevnfm_lab.kubernetes.objects import Obj, value_at


def _fill(target: Obj, **values: object) -> None:
    for name, value in values.items():
        if target.get(name) is None:
            target[name] = value


def pod_spec_defaults(spec: Obj) -> None:
    """Fill in a pod spec, of a Pod or of a template."""
    _fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
        securityContext={},
    )
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or []:
            if isinstance(container, dict):
                _container_defaults(container)
    for volume in spec.get("volumes") or []:
        for source in ("configMap", "secret", "projected"):
            if isinstance(volume, dict) and isinstance(volume.get(source), dict):
                _fill(volume[source], defaultMode=420)


def _container_defaults(container: Obj) -> None:
    image = str(container.get("image") or "")
    tag = image.rpartition("/")[2].partition(":")[2]
    _fill(
        container,
        # An image whose tag may move is pulled at every start; a version or a digest does not move.
        imagePullPolicy="Always" if tag in {"", "latest"} and "@" not in image else "IfNotPresent",
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
    )
    for port in container.get("ports") or []:
        if isinstance(port, dict):
            _fill(port, protocol="TCP")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(probe), dict):
            _fill(container[probe], timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)


def _template(spec: Obj) -> None:
    if isinstance(value_at(spec, "template", "spec"), dict):
        pod_spec_defaults(spec["template"]["spec"])


def _pod(obj: Obj) -> None:
    spec = obj["spec"]
    pod_spec_defaults(spec)
    # This is admission rather than defaulting, but a reader sees no difference.
    _fill(spec, serviceAccountName="default", enableServiceLinks=True, preemptionPolicy="PreemptLowerPriority")
    _fill(spec, serviceAccount=spec["serviceAccountName"], priority=0)


def _deployment(obj: Obj) -> None:
    spec = obj["spec"]
    _fill(spec, replicas=1, strategy={}, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    _fill(spec["strategy"], type="RollingUpdate")
    if spec["strategy"]["type"] == "RollingUpdate":
        _fill(spec["strategy"], rollingUpdate={})
        _fill(spec["strategy"]["rollingUpdate"], maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _replica_set(obj: Obj) -> None:
    _fill(obj["spec"], replicas=1)
    _template(obj["spec"])


def _stateful_set(obj: Obj) -> None:
    spec = obj["spec"]
    _fill(spec, replicas=1, podManagementPolicy="OrderedReady", updateStrategy={}, revisionHistoryLimit=10)
    _fill(spec, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"}, serviceName="")
    _fill(spec["updateStrategy"], type="RollingUpdate")
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        _fill(spec["updateStrategy"], rollingUpdate={})
        _fill(spec["updateStrategy"]["rollingUpdate"], partition=0)
    for claim in spec.get("volumeClaimTemplates") or []:
        _fill(claim, apiVersion="v1", kind="PersistentVolumeClaim", spec={}, status={"phase": "Pending"})
        _fill(claim["spec"], volumeMode="Filesystem")
    _template(spec)


def _daemon_set(obj: Obj) -> None:
    spec = obj["spec"]
    _fill(spec, updateStrategy={}, revisionHistoryLimit=10)
    _fill(spec["updateStrategy"], type="RollingUpdate")
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        _fill(spec["updateStrategy"], rollingUpdate={})
        _fill(spec["updateStrategy"]["rollingUpdate"], maxUnavailable=1, maxSurge=0)
    _template(spec)


def _job_spec(spec: Obj) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _fill(spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    _fill(spec, manualSelector=False, podReplacementPolicy="TerminatingOrFailed")
    _template(spec)


def _job(obj: Obj) -> None:
    spec, metadata = obj["spec"], obj["metadata"]
    _job_spec(spec)
    # A Job's pods are selected by its uid, so that a later Job of the same name does not adopt them.
    if not spec["manualSelector"] and not spec.get("selector") and isinstance(spec.get("template"), dict):
        uid = metadata.get("uid", "")
        own = {"batch.kubernetes.io/controller-uid": uid}
        labels = {**own, "batch.kubernetes.io/job-name": metadata.get("name", ""), "controller-uid": uid}
        template = spec["template"]
        template["metadata"] = dict(template.get("metadata") or {})
        template["metadata"]["labels"] = {
            **(template["metadata"].get("labels") or {}),
            **labels,
            "job-name": metadata.get("name", ""),
        }
        spec["selector"] = {"matchLabels": own}


def _cron_job(obj: Obj) -> None:
    spec = obj["spec"]
    _fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    if isinstance(value_at(spec, "jobTemplate", "spec"), dict):
        _template(spec["jobTemplate"]["spec"])


def _service(obj: Obj) -> None:
    spec = obj["spec"]
    _fill(spec, type="ClusterIP", sessionAffinity="None")
    if spec["type"] == "ExternalName":
        return
    _fill(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack", internalTrafficPolicy="Cluster")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        _fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)
    for port in spec.get("ports") or []:
        if isinstance(port, dict) and "port" in port:
            _fill(port, protocol="TCP", targetPort=port["port"])


def _endpoint_slice(obj: Obj) -> None:
    """``conditions`` is a struct in Go, which writes it as ``{}`` when empty; so are port names and protocols."""
    for endpoint in obj.get("endpoints") or []:
        if isinstance(endpoint, dict):
            _fill(endpoint, conditions={})
    for port in obj.get("ports") or []:
        if isinstance(port, dict):
            _fill(port, name="", protocol="TCP")


def _secret(obj: Obj) -> None:
    _fill(obj, type="Opaque")
    # A write-only field: readers find its values encoded under data.
    texts = obj.pop("stringData", None)
    if isinstance(texts, dict):
        encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _namespace(obj: Obj) -> None:
    metadata = obj["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata.get("name", "")}
    _fill(obj["spec"], finalizers=["kubernetes"])


def _claim(obj: Obj) -> None:
    _fill(obj["spec"], volumeMode="Filesystem")


def _volume(obj: Obj) -> None:
    _fill(obj["spec"], persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")


def _storage_class(obj: Obj) -> None:
    _fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _autoscaler(obj: Obj) -> None:
    _fill(obj["spec"], minReplicas=1)
    if not obj["spec"].get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        obj["spec"]["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _network_policy(obj: Obj) -> None:
    spec = obj["spec"]
    _fill(spec, podSelector={})
    _fill(spec, policyTypes=["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])


def _priority_class(obj: Obj) -> None:
    _fill(obj, preemptionPolicy="PreemptLowerPriority")


def _binding(obj: Obj) -> None:
    group = "rbac.authorization.k8s.io"
    if isinstance(obj.get("roleRef"), dict):
        _fill(obj["roleRef"], apiGroup=group)
    for subject in obj.get("subjects") or []:
        if isinstance(subject, dict) and subject.get("kind") in {"User", "Group"}:
            _fill(subject, apiGroup=group)


def _webhooks(obj: Obj) -> None:
    for webhook in obj.get("webhooks") or []:
        if isinstance(webhook, dict):
            _fill(webhook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
            _fill(webhook, namespaceSelector={}, objectSelector={})
            if isinstance(value_at(webhook, "clientConfig", "service"), dict):
                _fill(webhook["clientConfig"]["service"], port=443)


def _definition(obj: Obj) -> None:
    spec = obj["spec"]
    names = spec.get("names")
    if isinstance(names, dict) and isinstance(names.get("kind"), str):
        _fill(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")
    _fill(spec, conversion={"strategy": "None"})


_DEFAULTS: Final[Mapping[str, Callable[[Obj], None]]] = {
    "pods": _pod,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "replicationcontrollers": _replica_set,
    "statefulsets.apps": _stateful_set,
    "daemonsets.apps": _daemon_set,
    "jobs.batch": _job,
    "cronjobs.batch": _cron_job,
    "services": _service,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "secrets": _secret,
    "namespaces": _namespace,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "storageclasses.storage.k8s.io": _storage_class,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "networkpolicies.networking.k8s.io": _network_policy,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}

_HAVE_SPEC: Final = frozenset(
    {
        "namespaces",
        "networkpolicies.networking.k8s.io",
        "poddisruptionbudgets.policy",
    }  # kinds for which an empty spec is the same as none
)


def fill_in(resource: str, obj: Obj) -> None:
    """Fill in what the client left out; a spec of the wrong type is left to validation."""
    if resource in _HAVE_SPEC and obj.get("spec") is None:
        obj["spec"] = {}
    default = _DEFAULTS.get(resource)
    if default is not None and isinstance(obj.get("spec", {}), dict) and ("spec" in obj or resource in _SPECLESS):
        default(obj)


_SPECLESS: Final = frozenset(
    name
    for name in _DEFAULTS
    if name.startswith(
        ("secrets", "storageclasses", "priorityclasses", "rolebindings", "clusterrolebindings", "endpointslices")
    )
    or "webhookconfigurations" in name
)


def first_status(resource: str, obj: Obj) -> Obj:
    """Return ``{"status": ...}`` as a new object has it; empty for most kinds."""
    match resource:
        case "pods":
            return {"status": {"phase": "Pending", "qosClass": _quality_of_service(obj["spec"])}}
        case "persistentvolumeclaims" | "persistentvolumes":
            return {"status": {"phase": "Pending"}}
        case "namespaces":
            return {"status": {"phase": "Active"}}
        case "services":
            return {"status": {"loadBalancer": {}}}
        case _:
            return {}


def _quality_of_service(spec: Obj) -> str:
    asked = [container.get("resources") or {} for container in spec["containers"]]
    if not any(resources.get("requests") or resources.get("limits") for resources in asked):
        return "BestEffort"
    guaranteed = all(
        resources.get("limits", {}).keys() >= {"cpu", "memory"}
        and resources.get("requests", resources["limits"]) == resources["limits"]
        for resources in asked
    )
    return "Guaranteed" if guaranteed else "Burstable"
