"""The form of manifests, as far as later code reads them: where the API server expects an object, a list or texts.

It would refuse another form itself, but only after the plan was made from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubevnfm_csar.pod_templates import POD_TEMPLATES

from kubevnfm_infra_k8s.domain.objects import Body, group_of

_TEXTS: Final = "texts"
"""An object whose values are texts."""
_TEXT: Final = "text"
_META: Final[Mapping[str, Any]] = {"labels": _TEXTS, "annotations": _TEXTS}
_CLIENT: Final[Mapping[str, Any]] = {"service": {}}
_WEBHOOKS: Final[Mapping[str, Any]] = {"webhooks": [{"clientConfig": _CLIENT}]}
_PARTS: Final = [{"name": _TEXT, "metadata": _META}]
_FORMS: Final[Mapping[tuple[str, str], Mapping[str, Any]]] = {
    ("", "Service"): {"spec": {"selector": _TEXTS}},
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {
        "spec": {"versions": [{"subresources": {}}], "conversion": {"webhook": {"clientConfig": _CLIENT}}}
    },
    ("apps", "StatefulSet"): {"spec": {"volumeClaimTemplates": [{"metadata": _META}]}},
    ("cluster.x-k8s.io", "Cluster"): {
        "spec": {"topology": {"controlPlane": {}, "workers": {"machineDeployments": _PARTS, "machinePools": _PARTS}}}
    },
    ("cluster.x-k8s.io", "MachineDeployment"): {"spec": {}},
    ("cluster.x-k8s.io", "MachinePool"): {"spec": {}},
    ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"): {"spec": {}},
}
"""By API group and kind: an object by its attributes, a list by its items. Attributes that are not named have any form."""


def fault_of(body: Body) -> str:
    """Return the path and what is expected there: ``spec.versions[0]: an object expected``; "" if there is no fault."""
    kind = group_of(str(body.get("apiVersion"))), str(body.get("kind"))
    forms: list[Mapping[str, Any]] = [{"metadata": _META}, _FORMS.get(kind, {})]
    if (path := POD_TEMPLATES.get(kind)) is not None:
        form: Mapping[str, Any] = {"metadata": _META, "spec": {}}
        for name in reversed(path):
            form = {name: form}
        forms.append(form)
    return next((fault for form in forms for fault in _faults(body, form, "")), "")


def _faults(value: Any, form: Any, path: str) -> Iterator[str]:
    if form == _TEXT:
        if not isinstance(value, str):
            yield f"{path}: a text expected"
    elif isinstance(form, list):
        if not isinstance(value, list):
            yield f"{path}: a list expected"
            return
        for number, each in enumerate(value):
            yield from _faults(each, form[0], f"{path}[{number}]")
    elif not isinstance(value, Mapping):
        yield f"{path}: an object expected"
    elif form == _TEXTS:
        for name, each in value.items():
            if each is not None and not isinstance(each, str):
                yield f"{path}.{name}: a text expected"
    else:
        for name, inner in form.items():
            # An attribute without a value is as none.
            if value.get(name) is not None:
                yield from _faults(value[name], inner, f"{path}.{name}" if path else name)
