"""The validation of built-in kinds: the usual mistakes in manifests, worded as Kubernetes words them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kubevnfm_lab.kubernetes.errors import (
    FieldProblem,
    bad_request,
    duplicate,
    field_forbidden,
    required,
    unsupported,
    wrong,
)
from kubevnfm_lab.kubernetes.objects import Obj, compact_json, value_at
from kubevnfm_lab.kubernetes.resources import Resource
from kubevnfm_lab.kubernetes.selectors import matches_selector
from kubevnfm_lab.kubernetes.service_rules import service_problems, service_status_problems

_LABEL: Final = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_SUBDOMAIN: Final = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_SERVICE: Final = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
_QUALIFIED: Final = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
_LABEL_VALUE: Final = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")

_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SERVICE_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and "
    "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LONG_NAMES: Final = frozenset(
    {"roles", "rolebindings", "clusterroles", "clusterrolebindings"}  # names of paths may have colons and capitals
)


def _name_problems(resource: Resource, name: str) -> Iterator[FieldProblem]:
    field = "metadata.name"
    if resource.group == "rbac.authorization.k8s.io" and resource.plural in _LONG_NAMES:
        if "/" in name or "%" in name or name in {".", ".."}:
            yield wrong(field, name, "may not contain '/' or '%'")
        return
    rule, text, limit = _SUBDOMAIN, _SUBDOMAIN_TEXT, 253
    if resource.name == "namespaces":
        rule, text, limit = _LABEL, _LABEL_TEXT, 63
    elif resource.name == "services":
        rule, text, limit = _SERVICE, _SERVICE_TEXT, 63
    if len(name) > limit:
        yield wrong(field, name, f"must be no more than {limit} characters")
    if not rule.match(name):
        yield wrong(field, name, text)


_LARGEST_ANNOTATIONS: Final = 262_144
_LARGEST_DATA: Final = 1_048_576
"""Bytes of a ConfigMap or a Secret."""


def metadata_problems(resource: Resource, obj: Obj) -> Iterator[FieldProblem]:
    """Yield the problems of name, labels and annotations."""
    metadata = obj["metadata"]
    name = metadata.get("name")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        yield from _name_problems(resource, str(name))
    yield from _label_problems(metadata.get("labels"), "metadata.labels")
    for owner in metadata.get("ownerReferences") or []:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield wrong(f"metadata.ownerReferences.{field}", owner.get(field, ""), "must not be empty")
    yield from _size_problems("metadata.annotations", metadata.get("annotations"), _LARGEST_ANNOTATIONS)
    for key in metadata.get("annotations") or {}:
        if not _QUALIFIED.match(key.rpartition("/")[2]):
            yield wrong(
                "metadata.annotations", key, "name part must consist of alphanumeric characters, '-', '_' or '.'"
            )


def _size_problems(field: str, values: Any, limit: int) -> Iterator[FieldProblem]:
    """Yield a problem if the keys and values of a map have too many bytes together."""
    size = sum(len(key.encode()) + len(str(value or "").encode()) for key, value in (values or {}).items())
    if size > limit:
        yield FieldProblem("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


def _label_problems(labels: Any, field: str) -> Iterator[FieldProblem]:
    for key, value in (labels or {}).items():
        if not _QUALIFIED.match(key.rpartition("/")[2]) or len(key.rpartition("/")[2]) > 63:
            yield wrong(field, key, "name part must consist of alphanumeric characters, '-', '_' or '.', at most 63")
        if len(value) > 63:
            yield wrong(field, value, "must be no more than 63 characters")
        if not _LABEL_VALUE.match(value):
            yield wrong(field, value, _VALUE_TEXT)


def _pod_spec_problems(spec: Any, field: str, *, claims: Iterable[str] = ()) -> Iterator[FieldProblem]:
    """Yield the problems of a pod's spec; ``claims``: volumes that its owner adds to it later."""
    if not isinstance(spec, dict) or not spec.get("containers"):
        yield required(f"{field}.containers")
        return
    names: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or []):
        if not volume.get("name"):
            yield required(f"{field}.volumes[{index}].name")
    volumes = {*claims, *(volume.get("name") for volume in spec.get("volumes") or [])}
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or []):
            here = f"{field}.{group}[{index}]"
            name = container.get("name")
            if not name:
                yield required(f"{here}.name")
            elif not _LABEL.match(name):
                yield wrong(f"{here}.name", name, _LABEL_TEXT)
            elif name in names:
                yield duplicate(f"{here}.name", name)
            names.add(name or "")
            if not container.get("image"):
                yield required(f"{here}.image")
            yield from _container_problems(container, here, volumes)
    if spec.get("restartPolicy") not in {None, "Always", "OnFailure", "Never"}:
        yield unsupported(f"{field}.restartPolicy", spec["restartPolicy"], ("Always", "OnFailure", "Never"))


def _container_problems(container: Obj, field: str, volumes: set[str]) -> Iterator[FieldProblem]:
    for index, port in enumerate(container.get("ports") or []):
        number = port.get("containerPort")
        if not isinstance(number, int) or not 0 < number < 65536:
            yield wrong(f"{field}.ports[{index}].containerPort", number, "must be between 1 and 65535, inclusive")
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if not mount.get("mountPath"):
            yield required(f"{field}.volumeMounts[{index}].mountPath")
        if mount.get("name") not in volumes:
            yield FieldProblem(
                "FieldValueNotFound",
                f"{field}.volumeMounts[{index}].name",
                f"Not found: {compact_json(mount.get('name'))}",
            )
    resources = container.get("resources") or {}
    for name, asked in (resources.get("requests") or {}).items():
        limit = (resources.get("limits") or {}).get(name)
        if limit is not None and quantity(asked) > quantity(limit):
            yield wrong(f"{field}.resources.requests", asked, f"must be less than or equal to {name} limit of {limit}")


# Quantities are compared only, so floats are exact enough.
_UNITS: Final = {
    "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
_QUANTITY: Final = re.compile(r"^([0-9.]+)([a-zA-Z]*)$")


def quantity(value: Any) -> float:
    """Return a resource quantity (``500m``, ``2Gi``) as a number; 0 if it is not one."""
    found = _QUANTITY.match(str(value))
    return float(found[1]) * _UNITS.get(found[2], 0.0) if found else 0.0


def _pod(obj: Obj) -> Iterator[FieldProblem]:
    yield from _pod_spec_problems(obj.get("spec"), "spec")


def _workload(obj: Obj, *, claims: Iterable[str] = ()) -> Iterator[FieldProblem]:
    spec = obj.get("spec") or {}
    template, selector = spec.get("template"), spec.get("selector")
    if (spec.get("replicas") or 0) < 0:
        yield wrong("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    labels = value_at(template, "metadata", "labels") or {}
    if selector is None:
        yield required("spec.selector")
    if selector is not None and not matches_selector(selector, labels):
        yield wrong("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from _label_problems(labels, "spec.template.metadata.labels")
    yield from _pod_spec_problems(value_at(template, "spec"), "spec.template.spec", claims=claims)
    policy = value_at(template, "spec", "restartPolicy")
    if policy in {"OnFailure", "Never"}:
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


_PERCENTAGE: Final = re.compile(r"^[0-9]+%$")


def _deployment(obj: Obj) -> Iterator[FieldProblem]:
    yield from _workload(obj)
    strategy = value_at(obj, "spec", "strategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in {None, "Recreate", "RollingUpdate"}:
        yield unsupported("spec.strategy.type", kind, ("Recreate", "RollingUpdate"))
    if kind == "Recreate" and rolling is not None:
        why = "may not be specified when strategy `type` is 'Recreate'"
        yield field_forbidden("spec.strategy.rollingUpdate", why)
    for field, value in (rolling or {}).items():
        yield from _share_problems(value, f"spec.strategy.rollingUpdate.{field}")


def _share_problems(value: Any, field: str) -> Iterator[FieldProblem]:
    if isinstance(value, str) and not _PERCENTAGE.match(value):
        yield wrong(field, value, "a valid percent string must be a numeric string followed by an ending '%'")
    elif not isinstance(value, str | int) or isinstance(value, bool):
        yield wrong(field, value, "an integer or a percentage was expected")
    elif isinstance(value, int) and value < 0:
        yield wrong(field, value, "must be greater than or equal to 0")


def _daemon_set(obj: Obj) -> Iterator[FieldProblem]:
    yield from _workload(obj)
    for field, value in (value_at(obj, "spec", "updateStrategy", "rollingUpdate") or {}).items():
        yield from _share_problems(value, f"spec.updateStrategy.rollingUpdate.{field}")


def _stateful_set(obj: Obj) -> Iterator[FieldProblem]:
    claims = value_at(obj, "spec", "volumeClaimTemplates") or []
    # The controller turns each claim template into a volume of the pod, so a mount may name one.
    yield from _workload(obj, claims=[name for claim in claims if (name := value_at(claim, "metadata", "name"))])
    for index, claim in enumerate(claims):
        if not value_at(claim, "metadata", "name"):
            yield required(f"spec.volumeClaimTemplates[{index}].metadata.name")


def _budget(obj: Obj) -> Iterator[FieldProblem]:
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield wrong("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        if spec.get(field) is not None:
            yield from _share_problems(spec[field], f"spec.{field}")


def _job(obj: Obj) -> Iterator[FieldProblem]:
    template = value_at(obj, "spec", "template")
    yield from _pod_spec_problems(value_at(template, "spec"), "spec.template.spec")
    policy = value_at(template, "spec", "restartPolicy")
    if policy not in {"OnFailure", "Never"}:
        yield unsupported("spec.template.spec.restartPolicy", policy, ("OnFailure", "Never"))


def _cron_job(obj: Obj) -> Iterator[FieldProblem]:
    if not value_at(obj, "spec", "schedule"):
        yield required("spec.schedule")
    yield from _pod_spec_problems(
        value_at(obj, "spec", "jobTemplate", "spec", "template", "spec"), "spec.jobTemplate.spec.template.spec"
    )


def _config_map(obj: Obj) -> Iterator[FieldProblem]:
    yield from _size_problems("[]", {**(obj.get("data") or {}), **(obj.get("binaryData") or {})}, _LARGEST_DATA)


def _secret(obj: Obj) -> Iterator[FieldProblem]:
    yield from _size_problems("data", obj.get("data"), _LARGEST_DATA * 4 // 3)
    for name, text in (obj.get("data") or {}).items():
        if text is None:
            continue
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            # The decoder refuses this before validation does, hence a 400.
            raise bad_request(
                f'Secret in version "v1" cannot be handled as a Secret: illegal base64 data in field data.{name}: {error}'
            ) from error
    if obj.get("type") == "kubernetes.io/service-account-token":
        key = "kubernetes.io/service-account.name"
        if not value_at(obj, "metadata", "annotations", key):
            yield required(f"metadata.annotations[{key}]")


def _claim(obj: Obj) -> Iterator[FieldProblem]:
    if not value_at(obj, "spec", "accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if not value_at(obj, "spec", "resources", "requests", "storage"):
        yield required("spec.resources[storage]")


def _volume(obj: Obj) -> Iterator[FieldProblem]:
    if not value_at(obj, "spec", "accessModes"):
        yield required("spec.accessModes")
    if not value_at(obj, "spec", "capacity"):
        yield required("spec.capacity")


def _role(obj: Obj) -> Iterator[FieldProblem]:
    for index, rule in enumerate(obj.get("rules") or []):
        if not rule.get("verbs"):
            yield required(f"rules[{index}].verbs", "verbs must contain at least one value")
        if not rule.get("nonResourceURLs"):
            if "apiGroups" not in rule:
                yield required(f"rules[{index}].apiGroups", "resource rules must supply at least one api group")
            if not rule.get("resources"):
                yield required(f"rules[{index}].resources", "resource rules must supply at least one resource")


def _role_binding(obj: Obj) -> Iterator[FieldProblem]:
    if not value_at(obj, "roleRef", "name"):
        yield required("roleRef.name")
    kind = value_at(obj, "roleRef", "kind")
    if kind not in {"Role", "ClusterRole"}:
        yield unsupported("roleRef.kind", kind, ("ClusterRole", "Role"))
    for index, subject in enumerate(obj.get("subjects") or []):
        if not subject.get("name"):
            yield required(f"subjects[{index}].name")
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            yield required(f"subjects[{index}].namespace")


def _autoscaler(obj: Obj) -> Iterator[FieldProblem]:
    spec = obj.get("spec") or {}
    if not spec.get("maxReplicas"):
        yield wrong("spec.maxReplicas", spec.get("maxReplicas", 0), "must be greater than 0")
    elif spec["maxReplicas"] < spec.get("minReplicas", 1):
        yield wrong("spec.maxReplicas", spec["maxReplicas"], "must be greater than or equal to `minReplicas`")
    for name in ("kind", "name"):
        if not value_at(spec, "scaleTargetRef", name):
            yield required(f"spec.scaleTargetRef.{name}")


def _storage_class(obj: Obj) -> Iterator[FieldProblem]:
    if not obj.get("provisioner"):
        yield required("provisioner")


def _priority_class(obj: Obj) -> Iterator[FieldProblem]:
    if not isinstance(obj.get("value"), int):
        yield required("value")


def _ingress(obj: Obj) -> Iterator[FieldProblem]:
    spec = obj.get("spec") or {}
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield wrong("spec", spec, "either `defaultBackend` or `rules` must be specified")
    for index, rule in enumerate(spec.get("rules") or []):
        for position, path in enumerate(value_at(rule, "http", "paths") or []):
            if not path.get("pathType"):
                yield required(f"spec.rules[{index}].http.paths[{position}].pathType", "pathType must be specified")


def _definition(obj: Obj) -> Iterator[FieldProblem]:
    spec = obj.get("spec") or {}
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    for field in ("plural", "kind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    if not spec.get("group"):
        yield required("spec.group")
    if spec.get("scope") not in {"Cluster", "Namespaced"}:
        yield unsupported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    expected = f"{names.get('plural')}.{spec.get('group')}"
    if obj["metadata"].get("name") != expected:
        yield wrong("metadata.name", obj["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield wrong(
            "spec.versions",
            [v.get("name") for v in versions],
            "must have exactly one version marked as storage version",
        )
    for index, version in enumerate(versions):
        if not version.get("name"):
            yield required(f"spec.versions[{index}].name")
        if value_at(version, "schema", "openAPIV3Schema") is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")


_RULES: Final[Mapping[str, Callable[[Obj], Iterator[FieldProblem]]]] = {
    "pods": _pod,
    "deployments.apps": _deployment,
    "replicasets.apps": _workload,
    "statefulsets.apps": _stateful_set,
    "daemonsets.apps": _daemon_set,
    "jobs.batch": _job,
    "cronjobs.batch": _cron_job,
    "services": service_problems,
    "poddisruptionbudgets.policy": _budget,
    "configmaps": _config_map,
    "secrets": _secret,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "roles.rbac.authorization.k8s.io": _role,
    "clusterroles.rbac.authorization.k8s.io": _role,
    "rolebindings.rbac.authorization.k8s.io": _role_binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _role_binding,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "storageclasses.storage.k8s.io": _storage_class,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "ingresses.networking.k8s.io": _ingress,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}


def kind_problems(resource: Resource, obj: Obj) -> Iterator[FieldProblem]:
    """Yield the problems of the object by the rules of its kind."""
    rule = _RULES.get(resource.name)
    if rule is not None:
        yield from rule(obj)


def status_problems(resource: Resource, obj: Obj) -> Iterator[FieldProblem]:
    """Yield the problems of an object whose status alone is written."""
    if resource.name == "services":
        yield from service_status_problems(obj)


def _resize_problems(old: Obj, new: Obj) -> Iterator[FieldProblem]:
    if value_at(old, "status", "phase") != "Bound":
        yield field_forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        )
    path = ("spec", "resources", "requests", "storage")
    if quantity(value_at(new, *path)) < quantity(value_at(old, *path)):
        yield field_forbidden(".".join(path), "field can not be less than previous value")


_IMMUTABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "deployments.apps": ("spec.selector",),
    "replicasets.apps": ("spec.selector",),
    "daemonsets.apps": ("spec.selector",),
    "jobs.batch": ("spec.selector", "spec.template", "spec.completionMode"),
    "secrets": ("type",),
    "rolebindings.rbac.authorization.k8s.io": ("roleRef",),
    "clusterrolebindings.rbac.authorization.k8s.io": ("roleRef",),
    "storageclasses.storage.k8s.io": ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    "priorityclasses.scheduling.k8s.io": ("value", "preemptionPolicy"),
    "customresourcedefinitions.apiextensions.k8s.io": ("spec.scope", "spec.group"),
}
_STATEFUL_SET_MAY_CHANGE: Final = frozenset(
    {"replicas", "ordinals", "template", "updateStrategy", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
     "revisionHistoryLimit"}
)  # fmt: skip
_POD_MAY_CHANGE: Final = frozenset(
    {"initContainers", "containers", "activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds",
     "nodeName", "ephemeralContainers", "schedulingGates"}
)  # fmt: skip


def change_problems(resource: Resource, old: Obj, new: Obj) -> Iterator[FieldProblem]:
    """Yield the changes that are not permitted."""
    for field in _IMMUTABLE.get(resource.name, ()):
        before, after = value_at(old, *field.split(".")), value_at(new, *field.split("."))
        if before != after:
            yield wrong(field, after, "field is immutable")
    before, after = old.get("spec") or {}, new.get("spec") or {}
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if resource.name == "statefulsets.apps" and changed - _STATEFUL_SET_MAY_CHANGE:
        yield field_forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        )
    if resource.name == "pods" and changed - _POD_MAY_CHANGE:
        yield field_forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
            "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
            "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        )
    if resource.name == "persistentvolumeclaims" and changed - {"resources", "volumeName", "volumeAttributesClassName"}:
        yield field_forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        )
    if resource.name == "persistentvolumeclaims" and "resources" in changed:
        yield from _resize_problems(old, new)
    # Changing the type to ExternalName releases the address; any other change has to keep it.
    keeps_address = "ExternalName" not in {before.get("type"), after.get("type")}
    if resource.name == "services" and keeps_address and before.get("clusterIP") and "clusterIP" in changed:
        yield wrong("spec.clusterIPs[0]", [after.get("clusterIP")], "may not change once set")
    frozen = resource.name in {"configmaps", "secrets"} and old.get("immutable")
    if frozen and any(old.get(part) != new.get(part) for part in ("data", "binaryData", "immutable")):
        yield field_forbidden("data", "field is immutable when `immutable` is set")
