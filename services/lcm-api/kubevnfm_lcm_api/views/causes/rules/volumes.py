"""Causes: claims that no volume is bound to, and pods that wait for them."""

from __future__ import annotations

from typing import Final

from kubevnfm_lcm_api.views.causes.rule import NAME, ON_NODES, rule

VOLUMES: Final = (
    rule(
        "storage-class-missing",
        "The claim[ {name}] is not bound: the storage class {storage_class} does not exist.",
        "Create the storage class, or name another one in the package",
        text=rf"storageclass\.storage\.k8s\.io \\?\"(?P<storage_class>{NAME})\\?\" not found",
        about="PersistentVolumeClaim",
    ),
    rule(
        "storage-class-missing",
        "The claim[ {name}] is not bound: it has no storage class, neither its own nor a default one, and no volume without a class fits it.",
        "Name a storage class in the package, or make one the default",
        text=r"no persistent volumes available for this claim and no storage class is set",
        about="PersistentVolumeClaim",
    ),
    rule(
        "volume-not-bound",
        "The claim[ {name}] is not bound: no volume fits it, and its storage class makes none by itself.",
        "Create a volume that fits the claim in size, access mode and class",
        text=r"ProvisioningFailed: no volume plugin matched name: kubernetes\.io/no-provisioner",
        about="PersistentVolumeClaim",
    ),
    rule(
        "volume-not-bound",
        "The claim[ {name}] is not bound: {said}",
        "Look at the provisioner of its storage class",
        text=r"ProvisioningFailed: (?P<said>.{1,300})",
        about="PersistentVolumeClaim",
    ),
    rule(
        "volume-not-bound",
        "The claim[ {name}] is not bound: the provisioner {provisioner} has not made its volume yet.",
        "See that the provisioner runs, and read its log",
        text=rf"Waiting for a volume to be created either by the external provisioner '(?P<provisioner>{NAME})'",
        about="PersistentVolumeClaim",
    ),
    rule(
        "volume-not-bound",
        "{pod} waits for a volume: {why}.",
        "Create the storage class or the volume that the claim asks for",
        text=rf"{ON_NODES}(?:unbound immediate PersistentVolumeClaims|didn't find available persistent volumes|volume node affinity conflict"
        r"|had volume node affinity|bind to the claim|persistentvolumeclaim .{1,100} not found)",
        about="Pod",
        words={
            r"volume node affinity": "its volume is on a node or in a zone in which the pod does not fit",
            r"persistentvolumeclaim .{1,100} not found": "its claim does not exist",
            r"didn't find available": "no persistent volume fits its claim",
            r"": "its claim is not bound",
        },
    ),
    rule(
        "volume-not-bound",
        "The claim[ {name}] is not bound to a volume yet.",
        "Look at the provisioner of its storage class, or create a volume that fits",
        text=r"PersistentVolumeClaim \S{1,300}: not bound yet",
        about="PersistentVolumeClaim",
    ),
    rule(
        "volume-lost",
        "The volume of the claim[ {name}] is lost.",
        "Restore the volume, or delete the claim",
        text=r"PersistentVolumeClaim \S{1,300}: its volume is lost",
        about="PersistentVolumeClaim",
    ),
)
