"""Heat stacks: the commands of infra-openstack and the events that answer them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kubevnfm_kit.error_text import ErrorText
from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_events.base import Command, Event, Facts
from kubevnfm_events.common import ApiVersion, CancelStep, DriftState, PackageRef, VimConnection


class UserData(Facts):
    """The LCM operation user data class of the package (sequences.md 6.4)."""

    path: str
    """Relative to the CSAR's root."""
    class_name: str


class PortFacts(Facts):
    """A Neutron port (or floating IP) of a stack."""

    name: str
    """Heat resource name, by which requests name connection points (``ssh_cp_name`` ...); empty if the port is not in the
    template: it was made before, or Nova has made it for a network."""
    clone_of: str = ""
    """The connection point of the VNFD that a numbered name stands for (``CP1`` for ``CP1-0``); empty: ``name`` does not."""
    resource_id: str
    resource_type: str = "OS::Neutron::Port"
    addresses: tuple[str, ...] = ()
    """Fixed addresses; of a floating IP: none."""
    floating_address: str | None = None
    mac: str | None = None
    network_id: str | None = None
    subnet_ids: tuple[str, ...] = ()
    subnet_cidrs: tuple[str, ...] = ()
    """CIDR by fixed address, in the order of ``addresses``."""

    @property
    def cpd_id(self) -> str:
        """The connection point in the VNFD."""
        return self.clone_of or self.name


class StorageFacts(Facts):
    """A Cinder volume of a stack."""

    name: str
    clone_of: str = ""
    """The storage of the VNFD that a numbered name stands for; empty: ``name`` does not."""
    resource_id: str
    server_id: str | None = None

    @property
    def storage_id(self) -> str:
        """The storage in the VNFD."""
        return self.clone_of or self.name


class NetworkFacts(Facts):
    """A Neutron network that a stack created."""

    name: str
    resource_id: str


class ServerFacts(Facts):
    """A Nova server of a stack: one VNFC."""

    vnfc_id: str
    """vnfcResourceInfo id: derived from stack resource and server id, so a rebuilt server is a new one."""
    name: str
    """Heat resource name (``masterNode``)."""
    vdu_id: str
    server_id: str
    server_name: str = ""
    host: str | None = None
    """OS-EXT-SRV-ATTR:host, or the hashed hostId where the tenant may not see it."""
    zone: str | None = None
    stack_id: str
    """The (nested) stack that holds the server."""
    group: str | None = None
    """Resource name of the AutoScalingGroup or clone that it belongs to, in the top stack."""
    member: str | None = None
    """Resource name of the member within the group."""
    created_at: datetime | None = None
    ports: tuple[PortFacts, ...] = ()
    """The ports that are bound to the server, whether the template declares them or not, and their floating IPs; of the
    floating IPs that no port has, those in the server's nested stack."""
    image_id: str | None = None
    is_reverted: bool = False
    """Whether the image is that of a VNF snapshot, to which an operation has reverted the machine."""
    flavor: str | None = None


class StackResources(Facts):
    """The resources of a stack and of all its nested stacks."""

    stack_id: str
    stack_name: str
    servers: tuple[ServerFacts, ...] = ()
    ports: tuple[PortFacts, ...] = ()
    """Ports and floating IPs of the top stack."""
    networks: tuple[NetworkFacts, ...] = ()
    volumes: tuple[StorageFacts, ...] = ()
    images: tuple[str, ...] = ()
    """Ids of the Glance images that were created for this VNF from its package."""
    nfv: SecretParams = Field(default_factory=dict)
    """The stack's parameter ``nfv``: flavors, images, networks and capacities by VDU or VNFC, as user data left them."""


class ResourcesCreated(Event, kind="infra.resources.created"):
    """The VNF's stack is complete."""

    resources: StackResources


class TaggedCommand(Command):
    """The attributes by which every command on a VNF's stack finds it."""

    vnf_instance_id: str
    tag: str
    """Stack tag by which a repeated command finds the stack: the instance id."""


class StackOrder(Facts):
    """How a VNF's stack is to be made or changed: commands carry it, and lcm-api keeps it with the operation."""

    stack_name: str
    package: PackageRef
    vim: VimConnection
    flavour_id: str
    instantiation_level_id: str | None = None
    api_version: ApiVersion = "v2"
    """The version of the API of the request: decides how user data without a base class of its own is called."""
    request: SecretParams = Field(default_factory=dict)
    """The operation's request in the form of that API version (SOL003), secrets sealed."""
    grant: SecretParams = Field(default_factory=dict)
    """Grant in SOL003 v3 form."""
    grant_request: SecretParams = Field(default_factory=dict)
    instance: SecretParams = Field(default_factory=dict)
    """VnfInstance in SOL003 v3 form before the operation, for user data."""
    user_data: UserData | None = None
    """The class whose method named after the operation is called, if it has one; None: the built-in default."""


class CreateResources(
    StackOrder,
    TaggedCommand,
    kind="infra.openstack.create_resources",
    service="infra-openstack",
    reply=ResourcesCreated,
):
    """Create the VNF's stack from its package, or continue with the one of an earlier delivery."""

    request: SecretParams
    """InstantiateVnfRequest in the form of that API version (SOL003), secrets sealed."""
    timeout_s: float = 1200.0
    """Heat's own deadline for the stack."""


class ResourcesDeleted(Event, kind="infra.resources.deleted"):
    """Nothing of the VNF's stack is left."""

    stack_name: str


class DeleteResources(
    TaggedCommand, kind="infra.openstack.delete_resources", service="infra-openstack", reply=ResourcesDeleted
):
    """Delete everything that carries the tag: the stack, complete or not, and the images created for it."""

    stack_name: str
    vim: VimConnection
    graceful_wait_s: float = 0.0
    """GRACEFUL termination: wait this long before the stack is deleted (TerminateVnfRequest gracefulTerminationTimeout)."""
    successor: StackOrder | None = None
    """The stack that is made in its place afterwards: nothing is deleted unless the VIM takes it."""


class ResourcesChanged(Event, kind="infra.resources.changed"):
    """The VNF's stack is in the state that a command asked for."""

    resources: StackResources
    is_missing: bool = False
    """The answer to RestoreResources if the stack does not exist: there was nothing to restore, ``resources`` is empty."""


class LeftPackage(Facts):
    """The package whose template a stack has, if a modification of the VNF has named another one since."""

    package: PackageRef
    instantiate_request: SecretParams = Field(default_factory=dict)
    """The InstantiateVnfRequest that leads to the VNF with the present package, in the form of the API version."""


class StackChangeOrder(StackOrder):
    """The same for a stack that exists: the wanted state, not the difference to it, so that a repeat changes nothing more."""

    counts: dict[str, int] = Field(default_factory=dict)
    """The wanted number of instances by VDU."""
    connections: SecretParams = Field(default_factory=dict)
    """All wanted ``extVirtualLinks`` and ``extManagedVirtualLinks``, in SOL003 v3 form."""
    left_package: LeftPackage | None = None
    """None: the stack has the template of ``package``. Otherwise the machines that are made from now on have it."""


class ShownResource(Facts):
    """A server or volume that the instance shows."""

    resource_type: Literal["OS::Nova::Server", "OS::Cinder::Volume"]
    name: str
    """Heat resource name."""
    resource_id: str
    stack_id: str
    """The (nested) stack that held it."""


class StackCommand(StackChangeOrder, TaggedCommand, service="infra-openstack", reply=ResourcesChanged):
    """The attributes of every command that changes a VNF's stack."""

    shown: tuple[ShownResource, ...] = ()
    """All servers and volumes that the instance shows: Heat no longer lists a server whose replacement has failed, which
    may run all the same."""

    timeout_s: float = 1200.0
    """Heat's own deadline for the update."""


class ScaleResources(StackCommand, kind="infra.openstack.scale_resources"):
    """Bring the VDUs' instances to ``counts``."""

    leaving: tuple[str, ...] = ()
    """Nova ids of the servers to remove."""


class KeepingCommand(StackCommand):
    """The attributes of a command after which the stack is to be as it was before the operation."""

    before: StackResources | None = None
    """Its resources then; None: they are not compared."""
    connections_before: SecretParams = Field(default_factory=dict)
    """Its external and managed links; the parts of them that ``before`` shows are shown again at the end of the step."""


class HealResources(KeepingCommand, kind="infra.openstack.heal_resources"):
    """Let Heat replace these servers and volumes; their ports, and with them the addresses, stay."""

    servers: tuple[str, ...] = ()
    """Nova ids; a server that is not in the stack any more was replaced already."""
    volumes: tuple[str, ...] = ()
    """Cinder ids; their data are lost."""


class ChangeConnections(StackCommand, kind="infra.openstack.change_connections"):
    """Move external connection points to the networks and addresses of ``connections``."""


class ChangeTemplate(StackCommand, kind="infra.openstack.change_template"):
    """Give the stack the template and parameters of another flavour, or of another package."""

    changed_vdus: tuple[str, ...] = ()
    """The VDUs whose machines change; the others keep their parameters. Empty: all VDUs."""
    unchanged: tuple[str, ...] = ()
    """A rolling update: resources of the top stack whose machines a later command changes. Until then they, and what only
    they use, stay as they were before the operation. Empty: nothing is left for a later command."""
    instantiate_request: SecretParams = Field(default_factory=dict)
    """The InstantiateVnfRequest that leads to the wanted VNF, in SOL003 v3 form, for what knows only instantiation:
    the built-in rules, and user data without a method for the operation. Empty: ``request`` is one."""


class RestoreResources(KeepingCommand, kind="infra.openstack.restore_resources"):
    """Restore the stack to its state before the operation; nothing happens if the operation changed nothing."""

    staying: tuple[str, ...] = ()
    """Nova ids of the servers that stay: members of groups with any other server are removed first."""
    restored: tuple[str, ...] = ()
    """The reversal of a rolling update: the resources of the top stack whose machines are restored, with what only they
    use; all else stays as it is now. Empty: the whole stack is restored."""


class ServersOperated(Event, kind="infra.resources.operated"):
    """The servers are in the state that was asked for."""

    servers: tuple[str, ...] = ()
    state: Literal["STARTED", "STOPPED"]


class OperateServers(Command, kind="infra.openstack.operate_servers", service="infra-openstack", reply=ServersOperated):
    """Start or stop servers."""

    vnf_instance_id: str
    vim: VimConnection
    servers: tuple[str, ...]
    """Nova ids."""
    state: Literal["STARTED", "STOPPED"]
    graceful_wait_s: float = 0.0
    """GRACEFUL stop: wait this long first (OperateVnfRequest gracefulStopTimeout)."""
    existing_only: bool = False
    """Servers that do not exist are left out. A rollback sets it: what was deleted by hand has no earlier state."""


class StackDrift(Facts):
    """A difference between the resources that an instance shows and those that exist."""

    state: DriftState
    servers: tuple[str, ...] = ()
    """Nova ids of the servers that do not exist or are in state ERROR; empty if the stack does not exist."""


class ExpectedStack(Facts):
    """A stack as the instance shows it."""

    vnf_instance_id: str
    revision: int
    """The revision of the instance's document; the finding repeats it, and counts only if it still holds."""
    stack_id: str
    stack_name: str
    servers: tuple[str, ...] = ()
    """Nova ids."""
    known: StackDrift | None = None
    """The drift that the instance shows already."""


class CompareStacks(Command, kind="infra.openstack.compare_stacks", service="infra-openstack"):
    """Compare stacks of one VIM with what exists there; answered by StacksCompared if there is news, else by nothing."""

    vim: VimConnection
    expected: tuple[ExpectedStack, ...]


class StackFinding(Facts):
    """A stack whose drift is not the one that is known."""

    vnf_instance_id: str
    revision: int
    drift: StackDrift | None = None
    """None: the stack and its servers exist again."""
    reason: ErrorText = ""
    """One sentence for a person."""


class StacksCompared(Event, kind="infra.stacks.compared", by="infra-openstack"):
    """Stacks were found deleted, failed or incomplete, or exist again. Only what was not known is reported."""

    findings: tuple[StackFinding, ...]


class CancelOpenstackStep(CancelStep, kind="infra.openstack.cancel_step", service="infra-openstack"):
    """Stop working on a command of infra-openstack; Heat stops its work for it too."""
