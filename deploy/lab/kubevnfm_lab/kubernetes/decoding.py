"""The types of the fields of built-in kinds: a value that Kubernetes' decoder cannot read is refused before validation.

By field name, with the parent where a name has two meanings. It covers the fields that the lab's code relies on and the
usual mistakes (numbers as labels, texts as replicas). Fields that are not listed may have any type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_lab.kubernetes.errors import ApiError, bad_request
from kubevnfm_lab.kubernetes.objects import Obj
from kubevnfm_lab.kubernetes.resources import Resource

_TEXT, _NUMBER, _MAP, _TEXTS, _OBJECT, _LIST = "string", "int32", "map[string]string", "[]string", "object", "[]object"


def _all(kind: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), kind)


_TYPES: Final[Mapping[str, str]] = {
    **_all(
        _TEXT, "name generateName namespace uid apiVersion kind image clusterIP storageClassName volumeName provisioner"
    ),
    **_all(
        _TEXT,
        "serviceAccountName nodeName restartPolicy priorityClassName schedule group plural singular scope mountPath",
    ),
    **_all(
        _TEXT, "podManagementPolicy provisioner reclaimPolicy volumeBindingMode type protocol serviceName claimName"
    ),
    **_all(
        _NUMBER, "replicas minReplicas maxReplicas completions parallelism backoffLimit minReadySeconds containerPort"
    ),
    **_all(
        _NUMBER,
        "revisionHistoryLimit progressDeadlineSeconds terminationGracePeriodSeconds nodePort partition hostPort",
    ),
    **_all(_MAP, "labels annotations matchLabels nodeSelector"),
    **_all(_TEXTS, "finalizers accessModes verbs apiGroups resourceNames nonResourceURLs command args"),
    **_all(
        _OBJECT,
        "metadata spec template strategy rollingUpdate updateStrategy selector resources requests limits",
    ),
    **_all(
        _OBJECT, "roleRef names scaleTargetRef capacity jobTemplate claimRef configMap secret persistentVolumeClaim"
    ),
    **_all(
        _OBJECT,
        "affinity nodeAffinity securityContext service clientConfig podSelector namespaceSelector schema target",
    ),
    **_all(
        _OBJECT, "ordinals persistentVolumeClaimRetentionPolicy requiredDuringSchedulingIgnoredDuringExecution http"
    ),
    **_all(
        _LIST,
        "containers initContainers env ports volumes volumeMounts ownerReferences rules subjects versions metrics",
    ),
    **_all(
        _LIST, "tolerations taints conditions imagePullSecrets volumeClaimTemplates webhooks matchExpressions paths"
    ),
    **_all(_LIST, "nodeSelectorTerms matchFields"),
}
_BY_PARENT: Final[Mapping[tuple[str, str], str]] = {
    ("", "status"): _OBJECT,
    ("rules", "resources"): _TEXTS,
    # A LimitRange.
    ("spec", "limits"): _LIST,
    ("devices", "requests"): _LIST,
    ("endpoints", "conditions"): _OBJECT,
    ("env", "value"): _TEXT,
    ("strategy", "type"): _TEXT,
    ("conversion", "strategy"): _TEXT,
    ("matchExpressions", "values"): _TEXTS,
    ("matchFields", "values"): _TEXTS,
    ("matchExpressions", "key"): _TEXT,
    ("matchFields", "key"): _TEXT,
    ("tolerations", "key"): _TEXT,
    ("taints", "key"): _TEXT,
}
_OPEN: Final = frozenset({"openAPIV3Schema", "managedFields", "resources", "requests", "limits", "capacity"})
"""Fields whose content is free; their keys are not Kubernetes fields."""


def check_types(resource: Resource, obj: Obj) -> None:
    """Raise ApiError 400 that names the first unreadable field; of custom kinds only the metadata is read."""
    whole: Obj = obj if resource.custom is None else {"metadata": obj["metadata"]}
    if resource.name in {"configmaps", "secrets"}:
        for name in ("data", "stringData"):
            if whole.get(name) is not None:
                _check(resource, whole[name], _MAP, name)
    _descend(resource, {name: value for name, value in whole.items() if name not in {"data", "stringData"}}, "", "")


def _descend(resource: Resource, value: Any, parent: str, path: str) -> None:
    if isinstance(value, list):
        for item in value:
            _descend(resource, item, parent, path)
    if not isinstance(value, dict):
        return
    for name, item in value.items():
        here = f"{path}.{name}" if path else name
        wanted = _BY_PARENT.get((parent, name)) or _TYPES.get(name)
        if wanted is not None and item is not None:
            _check(resource, item, wanted, here)
        # Keys of free content may be called like fields: a label "spec" is a string all the same.
        if wanted != _MAP and name not in _OPEN:
            _descend(resource, item, name, here)
        elif name == "resources" and isinstance(item, dict):
            for part in item.keys() & {"requests", "limits"}:
                _check(resource, item[part], _OBJECT, f"{here}.{part}")


def _check(resource: Resource, value: Any, wanted: str, path: str) -> None:
    if wanted == _TEXT:
        _require(resource, value, str, wanted, path)
    elif wanted == _NUMBER:
        _require(resource, value, int, wanted, path)
    elif wanted in {_OBJECT, _MAP}:
        _require(
            resource, value, dict, "map[string]string" if wanted == _MAP else f"v1.{path.rpartition('.')[2]}", path
        )
        for item in value.values() if wanted == _MAP else ():
            _require(resource, item, str, _TEXT, path)
    else:
        _require(resource, value, list, wanted, path)
        for item in value:
            _require(resource, item, str if wanted == _TEXTS else dict, _TEXT if wanted == _TEXTS else _OBJECT, path)


def _require(resource: Resource, value: Any, kind: type, wanted: str, path: str) -> None:
    # In Python a bool is an int, but JSON's true is no number.
    is_fine = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if not is_fine:
        raise _unreadable(resource, value, wanted, path)


def _unreadable(resource: Resource, value: Any, wanted: str, path: str) -> ApiError:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    found = names.get(type(value), "null")
    return bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: json: cannot unmarshal '
        f"{found} into Go struct field {resource.kind}.{path} of type {wanted}"
    )
