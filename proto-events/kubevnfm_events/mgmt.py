"""Management drivers, which work inside the machines (mgmt-executor)."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_kit.error_text import ErrorText
from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_events.base import EVERY_WORKER, Command, Event, Facts
from kubevnfm_events.common import CancelStep, ClusterAccess, PackageRef, ServiceFacts
from kubevnfm_events.credentials import CredentialsSent, SendCredentials, WithdrawCredentials
from kubevnfm_events.kuryr import KuryrNetwork

Phase = Literal[
    "instantiate_start", "instantiate_end", "terminate_start", "terminate_end", "scale_start", "scale_end",
    "scale_rollback_start", "scale_rollback_end", "heal_start", "heal_end", "change_external_connectivity_start", "change_external_connectivity_end",
    "modify_information_start", "modify_information_end", "read_admin",
]  # fmt: skip
INSTANTIATE_START: Final = "instantiate_start"
INSTANTIATE_END: Final = "instantiate_end"
TERMINATE_START: Final = "terminate_start"
TERMINATE_END: Final = "terminate_end"
READ_ADMIN: Final = "read_admin"
"""The phase of the native driver that reads the access data of a cluster that a script of the package has built."""

KUBERNETES_DRIVER: Final = "kubernetes"
KURYR_DRIVER: Final = "kuryr-kubernetes"
CLUSTER_DRIVERS: Final = frozenset({KUBERNETES_DRIVER, "mgmt-drivers-kubernetes", KURYR_DRIVER})
"""Drivers that make machines a Kubernetes cluster; the second name is that of packages for older managers."""
REGISTRY_DRIVERS: Final = frozenset({"mgmt-drivers-private-registry", "private-registry"})
"""Names of the driver that makes a machine a private registry."""
NODE_PORTS_DRIVER: Final = "mgmt-drivers-cnf-nodeport"
"""Tacker's driver that has a load balancer forward to a CNF's node ports, after instantiate and until terminate."""


class ManagedNode(Facts):
    """A machine that a driver works on, with the addresses that the request's cp names point to."""

    vnfc_id: str
    """vnfcResourceInfo id: a rebuilt server has a new one, so it has no pinned host key and no journal yet."""
    role: Literal["master", "worker", "storage", "other"]
    ssh_address: str
    nic_address: str
    """The cluster-internal address."""
    subnet_cidr: str | None = None
    host: str | None = None
    """The compute host, for the CIS-node label."""
    zone: str | None = None
    server_id: str = ""
    is_target: bool = True
    """Whether the phase works on it; others are there for reference (scale, heal)."""
    name: str | None = None
    """The Kubernetes node name that an earlier operation gave it; None: it has none yet."""


class PhaseDone(Event, kind="mgmt.phase.done"):
    """The driver's phase succeeded."""

    driver: str
    phase: Phase
    cluster: ClusterAccess | None = None
    """Cluster drivers, instantiate_end and whole heal: how to reach the cluster."""
    node_names: dict[str, str] = Field(default_factory=dict)
    """Kubernetes node name by VNFC id."""
    left: str | None = None
    """heal_start with masters as targets: the VNFC id of the one that has left the cluster; it is the next to be replaced."""


class RunPhase(Command, kind="mgmt.run_phase", service="mgmt-executor", reply=PhaseDone):
    """Run a life-cycle phase of a management driver on the VNF's machines; a repeat continues from the journal."""

    vnf_instance_id: str
    driver: str
    """The implementation name of the VNFD (``mgmt-drivers-kubernetes``)."""
    phase: Phase
    package: PackageRef
    nodes: tuple[ManagedNode, ...]
    parameters: SecretParams = Field(default_factory=dict)
    """additionalParams of the instantiate request, overlaid by those of the present one: what a package's own script
    reads, and the only form of a cluster's parameters in commands of version 0.1.0."""
    cluster: ClusterParameters | None = None
    """Cluster drivers: the parameters of the cluster, as they were read when the request was accepted."""
    cluster_address: str | None = None
    """The address of ``cluster_cp_name``: API endpoint or VIP."""
    cluster_public_address: str | None = None
    """The floating address of ``cluster_fip_name`` or of the first master."""
    max_nodes: int | None = None
    """The most nodes that the VNFD's scaling allows: sizes the pod network's node mask."""
    gone: tuple[ManagedNode, ...] = ()
    """Machines that the operation has removed: what is stored about them is deleted, and their Nodes if there still are any."""
    volumes: dict[str, str] = Field(default_factory=dict)
    """A cluster's storage server: Cinder id by resource name of its volumes."""
    nfs_addresses: dict[str, str] = Field(default_factory=dict)
    """A cluster's storage server: the address of each port that ``nfs_server_cp`` names."""
    kuryr: KuryrNetwork | None = None
    """Clusters with Kuryr, instantiate_end: the network entities of the cluster."""
    services: tuple[ServiceFacts, ...] = ()
    """CNFs: the Services whose node ports are exposed outside of the cluster."""
    force: bool = False
    """FORCEFUL termination: a machine that does not answer does not hold it up."""


class ScriptEdit(Facts):
    """A value of the VnfInstance that a script has set or removed."""

    path: tuple[str, ...]
    """The attributes from the VnfInstance (v2 form) to the value; an entry of vnfcResourceInfo by its id."""
    change: SecretParams = Field(default_factory=dict)
    """``{"value": ...}``, secrets sealed; empty: removed."""


class DriverVim(Facts):
    """The VIM that a driver class of Tacker's v1 has created for the cluster that it has built (sequences.md 6.7)."""

    vim_id: str
    """The id that the class was given for it."""
    name: str
    access: ClusterAccess


class ScriptAnswer(Facts):
    """The answer of a script of the package on its stdout (sequences.md 6.5)."""

    edits: tuple[ScriptEdit, ...] = ()
    data: SecretParams = Field(default_factory=dict)
    """``user_script_err_handling_data``: what it wants to find again when it runs after a failure."""
    vim: DriverVim | None = None
    """None: the script is no driver class, or has created none."""


class ScriptDone(Event, kind="mgmt.script.done"):
    """The script of the package ended with exit status 0."""

    answer: ScriptAnswer = ScriptAnswer()
    sent: CredentialsSent | None = None
    """The facts of the workload cluster whose credentials the script was to send; None: it was to send none."""


class CredentialsSender(Facts):
    """The call-back that a script of a workload cluster makes in place of the driver ``capi-credentials`` (capi.md CR-009, CR-077).

    The script gets access data of the management cluster, the facts and the key of the call-back, and connections to the
    management cluster, the receiver and the workload cluster. One of the two is set.
    """

    vim_key: str
    """The entry of the instance's vimConnectionInfo that gets the access data of the management cluster."""
    sends: SendCredentials | None = None
    """CREATED or ROTATED: what the driver would be asked. ``mode`` and ``cluster_role`` have no effect."""
    withdraws: WithdrawCredentials | None = None
    """DELETED: what the driver would be asked."""


ANSIBLE: Final = "ansible"
"""The ``driver_class`` of a RunScript whose file lists Ansible playbooks (sequences.md 6.8)."""


class RunScript(Command, kind="mgmt.run_script", service="mgmt-executor", reply=ScriptDone):
    """Run a script of the package in the sandbox; a repeat runs it again, as a script says nowhere how far it came."""

    vnf_instance_id: str
    package: PackageRef
    file: str
    """The script's path in the package."""
    driver_class: str = ""
    """The class of the file that runs the phase, as a driver of Tacker's v1 (sequences.md 6.6); empty: the file is run."""
    task: str
    """The name for people and for the log: the phase, or ``coordinate-new/VDU1/0``."""
    given: SecretParams
    """The dictionary that the script reads as a pickle from its stdin."""
    folders: dict[str, PackageRef] = Field(default_factory=dict)
    """Entries that the dictionary gets in addition: the folder of a package, as the script finds it."""
    reach: tuple[str, ...] = ()
    """The addresses of the VNF's own machines: the script can connect to these alone."""
    answers: bool = True
    """Whether its stdout is an answer; False: it is output like any other."""
    sender: CredentialsSender | None = None
    """None: the script sends no credentials, and reaches the machines of its VNF alone."""


class InstanceForgotten(Event, kind="mgmt.instance.forgotten"):
    """Nothing about the instance's machines is stored any more."""


class ForgetInstance(Command, kind="mgmt.forget_instance", service="mgmt-executor", reply=InstanceForgotten):
    """Delete the journal, pinned host keys and node logs of an instance whose machines are gone."""

    vnf_instance_id: str


class TaskProgressed(Event, kind="mgmt.task.progressed", by=EVERY_WORKER):
    """A task of a step changed its state. For people who watch the operation."""

    node: str = ""
    """Host name, or ``""`` for the step as a whole."""
    task: str
    """Stable name: ``reach``, ``prepare``, ``init``, ``join`` ..."""
    state: Literal["started", "progressed", "finished", "failed", "skipped", "cancelled"]
    """``skipped``: nothing was left to do; ``cancelled``: started, and stopped because another task failed."""
    message: ErrorText = ""
    done: int | None = None
    total: int | None = None
    duration_s: float | None = None
    code: str = ""
    """The code of the error with which it failed, or because of which a command is tried again (task ``wait``)."""
    obstacles: tuple[ErrorText, ...] = ()
    """The first ones of the objects that the task waits for now, each with its state; ``message`` names the last that changed."""
    since: datetime | None = None
    """Task ``wait``: when the wait began. Without ``code`` its command waits for something by itself, and nothing has failed."""
    tries: int | None = None
    """Task ``wait``: how often the command was tried in a row."""


class CancelMgmtStep(CancelStep, kind="mgmt.cancel_step", service="mgmt-executor"):
    """Stop working on a command of mgmt-executor; the commands that run on the machines over SSH are ended."""
