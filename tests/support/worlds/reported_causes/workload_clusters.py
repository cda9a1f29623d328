"""Reports about clusters of Cluster API."""

from __future__ import annotations

from typing import Final

from worlds.reported_causes.case import Case

WORKLOAD_CLUSTERS: Final = (
    Case(
        "a machine of cluster api",
        "cluster-failed",
        "Cluster default/workload: Machine default/workload-md-0-x: CreateError: failed to create server: flavor nosuch not found",
        "machine-failed",
        'Cluster API cannot make machine workload-md-0-x: "CreateError: failed to create server: flavor nosuch not found".',
        "Machine default/workload-md-0-x",
    ),
    Case(
        "a cluster of cluster api that is late",
        "cluster-not-ready",
        "Cluster default/workload: initialized: ControlPlaneInitialized False, WaitingForControlPlane: x",
        "cluster-not-ready",
        'The cluster workload was not ready in time: "initialized: ControlPlaneInitialized False, WaitingForControlPlane: x".',
        "Cluster default/workload",
    ),
    Case(
        "a receiver that is away",
        "callback-unreachable",
        "https://receiver.example/v1: the receiver answered 503: Service Unavailable (8 tries in 63 s)",
        "callback-not-received",
        'The receiver receiver.example has not accepted the call-back about the workload cluster: "503: Service Unavailable (8 tries in 63 s)".',
        "Receiver receiver.example",
    ),
    Case(
        "a receiver that refuses",
        "callback-refused",
        "https://[fd00::1]:8443/v1: the receiver answered 401: urn:unsigned: not signed",
        "callback-refused",
        'The receiver [fd00::1]:8443 refuses the call-back about the workload cluster: "401: urn:unsigned: not signed".',
        "Receiver [fd00::1]:8443",
    ),
    Case(
        "a kubeconfig that does not come",
        "capi-wait-timed-out",
        "waited 600 s for the kubeconfig Secret: Secret default/w-kubeconfig does not exist yet",
        "workload-cluster-late",
        'The new cluster is not usable yet, after 600 s for the kubeconfig Secret: "Secret default/w-kubeconfig does not exist yet".',
        "",
    ),
    Case(
        "infrastructure of cluster api that is late",
        "cluster-not-ready",
        "Cluster default/workload: phase infrastructure not done in 600 s, 0 of 3 Machines ready: infrastructure: InfrastructureReady False, NotReady: no quota for routers",
        "cluster-not-ready",
        'The cluster workload is not ready after 600 s in phase infrastructure, with 0 of 3 machines: "infrastructure: InfrastructureReady False, NotReady: no quota for routers".',
        "Cluster default/workload",
    ),
    Case(
        "a cluster of cluster api without a network plugin",
        "cluster-not-ready",
        "Cluster default/workload: phase workers not done in 600 s, 0 of 2 Machines ready: initialized. the API server answers, but no node is Ready. Without a network plugin (CNI) none becomes so: name its manifests in additionalParams.capi.addon-def-files, apply them by a ClusterResourceSet, or ask for capi.ready: initialized",
        "network-plugin-missing",
        "No node of the cluster workload is Ready, as nothing in it is a network plugin (CNI) that runs.",
        "Cluster default/workload",
    ),
    Case(
        "a cloud that refuses cluster api",
        "objects-not-ready",
        "OpenStackCluster t/c: OpenStackAuthenticationSucceeded False, InvalidCredentials: Authentication failed",
        "cloud-refuses-provider",
        'The cloud refuses the credentials that Cluster API uses: "InvalidCredentials: Authentication failed".',
        "OpenStackCluster t/c",
    ),
    Case(
        "a cluster of cluster api that is refused",
        "cluster-failed",
        "Cluster t/c: InvalidConfiguration: the version v9 is not supported",
        "cluster-failed",
        'Cluster API cannot build the cluster c: "InvalidConfiguration: the version v9 is not supported".',
        "Cluster t/c",
    ),
    Case(
        "a paused cluster of cluster api",
        "cluster-not-ready",
        "Cluster t/c: paused: Cluster API leaves the cluster alone until it is no longer paused",
        "cluster-paused",
        "Cluster c is paused, so Cluster API leaves it alone.",
        "Cluster t/c",
    ),
    Case(
        "a paused pool of cluster api",
        "objects-not-ready",
        "MachineDeployment t/c-md-0: paused: Cluster API leaves it alone until it is no longer paused",
        "cluster-paused",
        "MachineDeployment c-md-0 is paused, so Cluster API leaves it alone.",
        "MachineDeployment t/c-md-0",
    ),
    Case(
        "a receiver that lacks credentials",
        "credentials-missing",
        "credentials-receiver has no credentials of cluster c: they were erased, or they were sent to another receiver",
        "credentials-missing",
        "The receiver of this manager has no credentials of the workload cluster: they were erased, or sent to another receiver.",
        "",
    ),
    Case(
        "a manager without keys for call-backs",
        "callback-not-configured",
        "mgmt-executor has no callback_master_keys, so it cannot sign a call-back",
        "callback-not-configured",
        'No call-back about the workload cluster can be sent: "mgmt-executor has no callback_master_keys, so it cannot sign a call-back".',
        "",
    ),
    Case(
        "a receiver that is tried again",
        "mgmt-driver-failed",
        "waits since 2026-11-20T12:00:00Z for the receiver (at most 8 tries, or 300 s if the receiver names a pause): try 3, after 12 s: the receiver answered 503: Service Unavailable; next try in 20 s",
        "callback-not-received",
        'The receiver does not accept the call-back about the workload cluster yet: "503: Service Unavailable".',
        "",
    ),
)
