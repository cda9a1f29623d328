"""Causes: clusters that Cluster API builds, and the credentials that they send."""

from __future__ import annotations

from typing import Final

from kubevnfm_lcm_api.views.causes.rule import rule

_SAID: Final = r"(?P<said>.{1,300})"
_RECEIVER: Final = (
    r"(?:https?://(?P<receiver>(?:\[[0-9A-Fa-f:.]{2,60}\]|[^\s/:]{1,253})(?::\d{1,5})?)\S{0,2000}?: )?"
    rf"(?:the receiver answered )?{_SAID}"
)

WORKLOAD_CLUSTERS: Final = (
    rule(
        "machine-failed",
        "Cluster API cannot make machine[ {name}]: {said}",
        "Correct what the provider names: flavor, image, quota, credentials of the cloud",
        text=r"(?:Machine|OpenStackMachine|KubeadmConfig) \S{1,300}: (?P<said>(?:InfrastructureReady False|InstanceReady False|BootstrapReady False|CreateError|UpdateError|CreateMachineError|InvalidConfigurationMachineError|InsufficientResourcesMachineError).{0,280})",
        about="Machine",
    ),
    rule(
        "cloud-refuses-provider",
        "The cloud refuses the credentials that Cluster API uses: {said}",
        "Correct the Secret with the access data of the cloud",
        text=r"OpenStackAuthenticationSucceeded False, (?P<said>.{1,250})",
    ),
    rule(
        "cluster-failed",
        "Cluster API cannot build the cluster[ {name}]: {said}",
        "Correct what the provider names: flavor, image, quota, credentials of the cloud",
        code="cluster-failed",
        text=r"(?:Cluster|Machine) \S{1,300}: (?P<said>.{1,300})",
        about="Cluster",
    ),
    rule(
        "cluster-paused",
        "{thing} is paused, so Cluster API leaves it alone.",
        "Remove spec.paused and the annotation cluster.x-k8s.io/paused",
        text=r"paused: Cluster API leaves (?:it|the cluster) alone",
    ),
    rule(
        "network-plugin-missing",
        "No node of the cluster[ {name}] is Ready, as nothing in it is a network plugin (CNI) that runs.",
        "Name a network plugin in capi.addon-def-files, or look at the pods of the one that is there",
        text=r"no node is Ready.{0,80}network plugin|capi\.addon-def-files",
        about="Cluster",
    ),
    rule(
        "callback-refused",
        "The receiver[ {receiver}] refuses the call-back about the workload cluster: {said}",
        "Correct the keys or the receiver (docs/credentials-receiver.md)",
        code="callback-refused",
        text=_RECEIVER,
        about="Receiver",
        named="receiver",
    ),
    rule(
        "callback-not-received",
        "The receiver[ {receiver}] has not accepted the call-back about the workload cluster: {said}",
        "Look at the receiver, and at the way to it",
        code="callback-unreachable",
        text=_RECEIVER,
        about="Receiver",
        named="receiver",
    ),
    rule(
        "callback-not-received",
        "The receiver does not accept the call-back about the workload cluster yet: {said}",
        "Look at the receiver, and at the way to it",
        text=r"waits since \S{1,40} for the receiver \([^)]{1,120}\): try \d{1,4}, after \d{1,9} s: (?:the receiver answered )?(?P<said>.{1,250}?)(?:; next try|$)",
    ),
    rule(
        "callback-not-configured",
        "No call-back about the workload cluster can be sent: {said}",
        "Set receiver_url and callback_master_keys of mgmt-executor (docs/credentials-receiver.md)",
        code="callback-not-configured",
        text=_SAID,
    ),
    rule(
        "credentials-missing",
        "The receiver of this manager has no credentials of the workload cluster: they were erased, or sent to another receiver.",
        "Have them sent to this receiver; with a receiver of your own, set capi.register_vim to false in the next request",
        code="credentials-missing",
    ),
    rule(
        "workload-cluster-late",
        "The new cluster is not usable yet, after {seconds} s for {what}: {said}",
        "Look at the control plane of the new cluster",
        text=r"wait(?:ed|ing since) (?P<seconds>\d{1,9}) s for (?P<what>[^:]{1,120}?(?: at https?://[^\s:]{1,200}:\d{1,5})?): (?P<said>.{1,250})",
        about="Cluster",
    ),
    rule(
        "cluster-not-ready",
        "The cluster[ {name}] is not ready after {seconds} s in phase {phase}, with {ready} of {wanted} machines: {said}",
        "Remove the cause, or give the phase more time (capi.timeouts)",
        text=r"Cluster \S{1,300}: phase (?P<phase>[a-z ]{1,40}) not done in (?P<seconds>[\d.e+]{1,12}) s, (?P<ready>\d{1,6}) of (?P<wanted>\d{1,6}) Machines ready: (?P<said>.{1,300})",
        about="Cluster",
    ),
    rule(
        "cluster-not-ready",
        "The cluster[ {name}] was not ready in time: {said}",
        "Remove the cause; if no node is Ready, name a network plugin in capi.addon-def-files; or give more time",
        code="cluster-not-ready",
        text=r"(?:Cluster|Machine) \S{1,300}: (?P<said>.{1,300})",
        about="Cluster",
        is_shallow=True,
    ),
)
