"""Reports about claims and volumes."""

from __future__ import annotations

from typing import Final

from worlds.reported_causes.case import Case

VOLUMES: Final = (
    Case(
        "an unbound claim",
        "objects-not-ready",
        "Deployment default/web: 0 of 1 ready, pod web-6b7-abc: unschedulable: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
        "volume-not-bound",
        "Pod web-6b7-abc waits for a volume: its claim is not bound.",
        "Pod default/web-6b7-abc",
    ),
    Case(
        "a volume in another zone",
        "objects-not-ready",
        "Deployment default/web: 0 of 1 ready, pod web-6b7-abc: unschedulable: 0/1 nodes are available: 1 node(s) had volume node affinity conflict.",
        "volume-not-bound",
        "Pod web-6b7-abc waits for a volume: its volume is on a node or in a zone in which the pod does not fit.",
        "Pod default/web-6b7-abc",
    ),
    Case(
        "a missing storage class",
        "objects-not-ready",
        'PersistentVolumeClaim default/data: not bound yet, warning ProvisioningFailed: storageclass.storage.k8s.io "fast" not found',
        "storage-class-missing",
        "The claim data is not bound: the storage class fast does not exist.",
        "PersistentVolumeClaim default/data",
    ),
    Case(
        "no default storage class",
        "objects-not-ready",
        "PersistentVolumeClaim default/data: not bound yet, warning FailedBinding: no persistent volumes available for this claim and no storage class is set",
        "storage-class-missing",
        "The claim data is not bound: it has no storage class, neither its own nor a default one, and no volume without a class fits it.",
        "PersistentVolumeClaim default/data",
    ),
    Case(
        "a provisioner out of space",
        "objects-not-ready",
        'PersistentVolumeClaim default/data: not bound yet, warning ProvisioningFailed: failed to provision volume with StorageClass "csi": rpc error: code = ResourceExhausted desc = out of space',
        "volume-not-bound",
        "The claim data is not bound: \"failed to provision volume with StorageClass 'csi': out of space\".",
        "PersistentVolumeClaim default/data",
    ),
    Case(
        "a claim that does not exist, by a real scheduler",
        "objects-not-ready",
        'Deployment causes-d/web: 0 of 1 ready, pod web-6b7-abc: unschedulable: 0/3 nodes are available: persistentvolumeclaim "nosuch" not found. not found',
        "volume-not-bound",
        "Pod web-6b7-abc waits for a volume: its claim does not exist.",
        "Pod causes-d/web-6b7-abc",
    ),
    Case(
        "a claim of an unknown storage class, as a real controller says it, and the pod that waits for it",
        "objects-not-ready",
        'Deployment t/web: 0 of 2 ready, pod web-6494599fc9-h25sj: unschedulable: 0/5 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found; PersistentVolumeClaim t/data: ProvisioningFailed: storageclass.storage.k8s.io "fast" not found',
        "storage-class-missing",
        "The claim data is not bound: the storage class fast does not exist.",
        "PersistentVolumeClaim t/data",
    ),
    Case(
        "a claim that no volume of its class fits",
        "objects-not-ready",
        "PersistentVolumeClaim t/data: not bound yet, ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner",
        "volume-not-bound",
        "The claim data is not bound: no volume fits it, and its storage class makes none by itself.",
        "PersistentVolumeClaim t/data",
    ),
    Case(
        "a provisioner that is away",
        "objects-not-ready",
        "PersistentVolumeClaim t/data: not bound yet, ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'csi.example.com' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
        "volume-not-bound",
        "The claim data is not bound: the provisioner csi.example.com has not made its volume yet.",
        "PersistentVolumeClaim t/data",
    ),
    Case(
        "a claim without a volume yet",
        "objects-not-ready",
        "PersistentVolumeClaim t/data: not bound yet",
        "volume-not-bound",
        "The claim data is not bound to a volume yet.",
        "PersistentVolumeClaim t/data",
    ),
    Case(
        "a claim that lost its volume",
        "object-failed",
        "PersistentVolumeClaim t/data: its volume is lost",
        "volume-lost",
        "The volume of the claim data is lost.",
        "PersistentVolumeClaim t/data",
    ),
)
