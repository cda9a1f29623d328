"""Objects that a VNF has kept: they have no labels of an instance, and name the VNF that has left them (multicloud.md MC-106d)."""

from __future__ import annotations

from kubevnfm_csar.object_treatment import KEPT_FROM_ANNOTATION, Keep, keeps_of

from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, Body, annotations_of, labels_of
from kubevnfm_infra_k8s.domain.release import Entry

KEPT: dict[Keep, str] = {
    Keep.ON_DELETE: "it is kept, as keep: on-delete says",
    Keep.ON_CHANGE: "it is kept, as keep: on-change says",
}
"""Why an object stays."""


def is_kept(entry: Entry, body: Body, deletion: Keep) -> bool:
    """Return whether a deletion leaves an object: its artifact has said so, or its annotation says so by now."""
    said = entry.is_kept if deletion is Keep.ON_DELETE else entry.is_kept_on_change
    return said or deletion in keeps_of(annotations_of(body))


def is_given_back(body: Body, adopts: str, vnf_instance_id: str) -> bool:
    """Return whether an instance may take an object over that a VNF has kept: its own, or that of the one that it names."""
    kept_from = annotations_of(body).get(KEPT_FROM_ANNOTATION, "")
    return bool(kept_from) and INSTANCE_LABEL not in labels_of(body) and kept_from in (adopts, vnf_instance_id)
