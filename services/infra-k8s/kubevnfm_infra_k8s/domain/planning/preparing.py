"""Prepares a manifest for the API server: namespace, labels, annotations, replicas (capi.md CR-018, CR-031)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from kubevnfm_csar.pod_templates import MACHINE_TEMPLATES, OWNED_MACHINE_TEMPLATES, POD_TEMPLATES

from kubevnfm_infra_k8s.domain.objects import (
    CLAIM_OF_ANNOTATION,
    INSTANCE_LABEL,
    MANAGED_BY,
    ONAP_LABEL,
    OPERATION_ANNOTATION,
    TACKER_LABEL,
    Body,
    group_of,
    labels_of,
)
from kubevnfm_infra_k8s.domain.reading.ca_bundles import without_others_bundles
from kubevnfm_infra_k8s.domain.reading.manifests import Manifest

_OF_THE_SERVER: Final = frozenset(
    {
        "namespace", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
        "resourceVersion", "selfLink", "uid",
    }
)  # fmt: skip
"""The metadata that a manifest does not decide: the namespace is chosen apart, the rest is the API server's. It is in exported
manifests, and refused by the API server: a ``uid`` or ``resourceVersion`` is one of an object that is to exist already."""
_LABELLED: Final = {**POD_TEMPLATES, **{kind: path for kind, path in MACHINE_TEMPLATES.items() if path}}
"""The paths of the templates that get the labels of the instance: those of pods, and of virtual machines with node and addresses."""


def instance_labels(vnf_instance_id: str) -> dict[str, str]:
    """Return the labels that select all objects of an instance."""
    return {INSTANCE_LABEL: vnf_instance_id, TACKER_LABEL: vnf_instance_id}


def ordered_labels(vnf_instance_id: str) -> dict[str, str]:
    """Return the labels of the objects of a package with an order: ONAP's tools know them by theirs (multicloud.md MC-040)."""
    return {**instance_labels(vnf_instance_id), ONAP_LABEL: vnf_instance_id}


def labels_as(body: Body, vnf_instance_id: str) -> dict[str, str]:
    """Return the labels of an instance for an object that has those of another one."""
    return (ordered_labels if ONAP_LABEL in labels_of(body) else instance_labels)(vnf_instance_id)


def prepared(
    manifest: Manifest, *, namespace: str, vnf_instance_id: str, operation_id: str, replicas: int | None = None
) -> dict[str, Any]:
    """Return the object to apply; ``namespace`` is "" for a cluster-scoped kind.

    Selectors do not change, because the API server refuses new selectors for existing workloads.
    """
    body = placed(manifest, namespace=namespace)
    metadata = body["metadata"]
    own = ordered_labels(vnf_instance_id) if manifest.artifact is not None else instance_labels(vnf_instance_id)
    metadata["labels"] = {**(metadata.get("labels") or {}), **own, **MANAGED_BY}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), OPERATION_ANNOTATION: operation_id}
    # Pods inherit only the labels of the template, and they are found by label.
    kind = group_of(manifest.api_version), manifest.kind
    for path in (_LABELLED.get(kind), OWNED_MACHINE_TEMPLATES.get(kind)):
        template = _object_at(body, path) if path else None
        if template is not None:
            inner = template.get("metadata") or {}
            template["metadata"] = {**inner, "labels": {**(inner.get("labels") or {}), **own}}
    if (manifest.api_version.rpartition("/")[0], manifest.kind) == ("apps", "StatefulSet"):
        _mark_claims(body, own)
    if replicas is not None:
        body["spec"] = {**(body.get("spec") or {}), "replicas": replicas}
    return without_others_bundles(body)


def placed(manifest: Manifest, *, namespace: str) -> dict[str, Any]:
    """Return the object in its namespace, otherwise as it was written: the form of a kind that is not stored.

    The API server refuses access reviews whose metadata has more than a namespace.
    """
    body: dict[str, Any] = deepcopy(dict(manifest.body))
    # Manifests that were exported from a cluster have one. It belongs to the controllers.
    body.pop("status", None)
    metadata = {name: value for name, value in (body.get("metadata") or {}).items() if name not in _OF_THE_SERVER}
    body["metadata"] = {**metadata, **({"namespace": namespace} if namespace else {})}
    return body


def labelled(body: Body, labels: Mapping[str, str]) -> Body:
    """Return the object with these labels added."""
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}


def _mark_claims(stateful_set: dict[str, Any], own: Mapping[str, str]) -> None:
    """Have each claim say whose it is: the StatefulSet controller copies labels and annotations of the template into it."""
    spec = _object_at(stateful_set, ("spec",)) or {}
    templates = spec.get("volumeClaimTemplates")
    for template in templates if isinstance(templates, list) else ():
        inner = template.get("metadata") if isinstance(template, dict) else None
        if isinstance(inner, dict):
            inner["labels"] = {**(inner.get("labels") or {}), **own}
            annotations = inner.get("annotations") or {}
            inner["annotations"] = {**annotations, CLAIM_OF_ANNOTATION: stateful_set["metadata"].get("name")}


def _object_at(body: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    node: object = body
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None
