"""Changes of fields that cannot be changed: which objects they would replace, and whether they may (capi.md CR-035).

The template of a Job, the claim templates of a StatefulSet, a selector, a clusterIP, a roleRef, an immutable ConfigMap: an object with
another one has to be deleted and created again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kubevnfm_csar.object_treatment import REPLACE_ANNOTATION, Keep

from kubevnfm_infra_k8s.domain.capi.contract import CONTROL_PLANE, CORE
from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    OPERATION_ANNOTATION,
    Body,
    Wanted,
    annotations_of,
    condition,
    field_at,
    labels_of,
)

_UNPROCESSABLE: Final = 422
_SIGNS: Final = re.compile(
    r"field is immutable|immutable after creation|is immutable|cannot change roleRef|may not be changed in an update"
    r"|may not change fields other than|for fields other than .{1,400} are forbidden|updates to \S{1,80} are forbidden"
    r"|may not change once set"
)
"""How API servers say that a field cannot be changed (Kubernetes 1.34), and rules of definitions usually do."""
_PLACE: Final = re.compile(r"(?: is invalid: |\[|, |^)([A-Za-z][\w.]*(?:\[[^\]\s]{1,100}\][\w.]*)*): ")
_JOB: Final = ("batch", "Job")
_DATA: Final = "its data would go with it"
_MACHINES: Final = "its machines would go with it"
_NEVER: Final[Mapping[tuple[str, str], str]] = {
    ("", "Namespace"): "all that is in it would go with it",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "all resources of its kind would go with it",
    ("", "PersistentVolume"): _DATA,
    ("", "PersistentVolumeClaim"): _DATA,
    ("cdi.kubevirt.io", "DataVolume"): _DATA,
    (CORE, "Cluster"): _MACHINES,
    (CONTROL_PLANE, "KubeadmControlPlane"): _MACHINES,
}
"""The kinds that are never replaced, whatever the request and the manifest allow, and why."""
_MOST_PLACES: Final = 5
_LONGEST_SEARCHED: Final = 4096


@dataclass(frozen=True)
class Replacing:
    """Which objects of an instance may be deleted and created again, if a field of them cannot be changed."""

    vnf_instance_id: str
    kinds: Collection[str] = ()
    """Those that the request names."""
    is_undo: bool = False
    """Whether a change is taken back, and so what it has replaced."""
    not_ours: Collection[object] = ()
    """The keys of objects that existed before the instance, or that others share."""

    def obstacle(self, wanted: Wanted, there: Body) -> str:
        """Return why an object is not replaced; "" if it is."""
        kind, is_job = wanted.key.kind, wanted.key.group_kind == _JOB
        if labels_of(there).get(INSTANCE_LABEL) != self.vnf_instance_id or wanted.key in self.not_ours:
            return "it is not this instance's alone"
        lost = _NEVER.get(wanted.key.group_kind, _DATA if field_at(there, "spec", "dataVolumeTemplates") else "")
        if lost:
            return f"{lost}; give the new one another name"
        # An object that the change has only changed differs in no such field from its earlier manifest.
        made_by = annotations_of(there).get(OPERATION_ANNOTATION)
        if self.is_undo and made_by and made_by == annotations_of(wanted.body).get(OPERATION_ANNOTATION):
            return ""
        if Keep.ON_CHANGE in wanted.keeps:
            return "it is to be kept in every change"
        if kind in self.kinds or annotations_of(wanted.body).get(REPLACE_ANNOTATION) == "true":
            return ""
        if is_job and has_ended(there):
            return ""
        allowed = f'additionalParams.replace: [{kind}], or the annotation {REPLACE_ANNOTATION}: "true" of its manifest, allows it'
        return f"it has not ended; {allowed}" if is_job else allowed


def has_ended(job: Body) -> bool:
    """Return whether a Job has ended, well or not."""
    return any(str((condition(job, each) or {}).get("status")) == "True" for each in ("Complete", "Failed")) or bool(
        field_at(job, "status", "completionTime")
    )


def unchangeable_fields(refusal: ObjectRefused) -> str:
    """Return the fields that a refusal says cannot be changed, separated by commas; "" if it says something else."""
    message = refusal.message[:_LONGEST_SEARCHED]
    if refusal.http_status != _UNPROCESSABLE or not _SIGNS.search(message):
        return ""
    # The rest of a message is a value or a difference of values, in the words of Go.
    head = message.partition("\n")[0]
    places = [each for each in _PLACE.findall(head) if each.partition(".")[0].partition("[")[0] in _PARTS]
    return ", ".join(dict.fromkeys(places[:_MOST_PLACES])) or "a field of it"


_PARTS: Final = frozenset(
    {
        "spec", "data", "stringData", "binaryData", "immutable", "type", "roleRef", "value", "provisioner", "parameters",
        "reclaimPolicy", "volumeBindingMode", "handler", "driver", "metadata", "webhooks", "globalDefault", "preemptionPolicy",
    }
)  # fmt: skip
"""With what the path of a field begins."""


def refused_change(wanted: Wanted, fields: str, why: str = "") -> ObjectRefused:
    """Return the error of an object that would have to be replaced; ``why`` it is not, if the step replaces objects."""
    reason = f"{fields} is immutable" + (f", so the object would have to be replaced: {why}" if why else "")
    return ObjectRefused(str(wanted.key), reason, http_status=_UNPROCESSABLE)
