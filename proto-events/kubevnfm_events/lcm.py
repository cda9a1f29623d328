"""The life cycle (lcm-api): events for other systems, and the commands that lcm-api sends to itself."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kubevnfm_kit.error_text import ErrorText
from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_events.base import Command, Event, Facts
from kubevnfm_events.common import CancelStep
from kubevnfm_events.objects import DriftedObject

OperationState = Literal[
    "STARTING", "PROCESSING", "COMPLETED", "FAILED_TEMP", "FAILED", "ROLLING_BACK", "ROLLED_BACK"
]  # fmt: skip


class AdvanceOperation(Command, kind="lcm.advance_operation", service="lcm-api"):
    """Continue an operation: insert its occurrence if it is missing, grant it, start the steps that can start."""

    occurrence: SecretParams = Field(default_factory=dict)
    """The occurrence document, as long as it may not be stored yet: the instance is claimed first."""
    may_rotate: bool = True
    """Whether the instance had a rotation of credentials, which the operation waits for, when it was claimed: none begins
    afterwards. Earlier versions do not say."""


class RemainsRemoved(Event, kind="lcm.remains.removed"):
    """Everything that a failed instantiate had left of an instance is removed."""

    vnf_instance_id: str


class RemoveRemains(Command, kind="lcm.remove_remains", service="lcm-api", reply=RemainsRemoved):
    """Remove everything that a FAILED instantiate left of an instance; answered by RemainsRemoved."""

    vnf_instance_id: str
    vnf_lcm_op_occ_id: str
    """The FAILED occurrence: its plan and its draft determine what may have been left."""


class OrphansMarked(Event, kind="lcm.orphans.marked"):
    """Every VNF instance that loses what an instance provides is marked; InstanceOrphaned was published about each."""

    vnf_instance_id: str
    count: int = 0
    """The instances that the command has marked; those that an earlier delivery had marked do not count."""


class MarkOrphans(Command, kind="lcm.mark_orphans", service="lcm-api", reply=OrphansMarked):
    """Mark the VNF instances that use what an instance provides and is about to delete; answered by OrphansMarked."""

    vnf_instance_id: str
    """The provider."""
    provided: Literal["cluster", "registry", "management"]
    resource_id: str
    """The id of what they use: that of the cluster's or management cluster's VIM, ``address:port`` of the registry."""
    other_ids: tuple[str, ...] = ()
    """Further ids of it: its other addresses."""
    operation: str
    """The operation that deletes it: TERMINATE ..."""


class PackageChecked(Event, kind="lcm.package.checked"):
    """The content of a VNF package was checked and accepted; PackageChanged has reported its new state."""

    vnf_pkg_id: str


class OnboardPackage(Command, kind="lcm.onboard_package", service="lcm-api", reply=PackageChecked):
    """Check, unpack and read an uploaded CSAR; answered by PackageChecked, or PackageChanged when it is refused."""

    package_id: str


class PackageFetched(Event, kind="lcm.package.fetched"):
    """A VNF package was fetched from its address; it is checked next."""

    vnf_pkg_id: str


class FetchPackage(Command, kind="lcm.fetch_package", service="lcm-api", reply=PackageFetched):
    """Fetch a CSAR from the address that its package document holds; answered by PackageFetched or PackageChanged."""

    package_id: str


class ChartFetched(Event, kind="lcm.chart.fetched"):
    """The fetch of a Helm chart has ended: it is held, or its document has the reason."""

    chart_id: str


class FetchChart(Command, kind="lcm.fetch_chart", service="lcm-api", reply=ChartFetched):
    """Fetch a Helm chart from the registry that its document names; answered by ChartFetched."""

    chart_id: str
    """The digest of its manifest, without the algorithm."""


class PackageAwaited(Event, kind="lcm.package.awaited"):
    """The VNF package that an instantiate has waited for is held, and the operation has its steps."""

    vnf_instance_id: str


class AwaitPackage(Command, kind="lcm.await_package", service="lcm-api", reply=PackageAwaited):
    """Have the VNF package of an instantiate fetched, and plan the operation with it; answered by PackageAwaited."""

    vnf_instance_id: str


class DeliverNotification(Command, kind="lcm.deliver_notification", service="lcm-api"):
    """Deliver the next notification of one subscription (SOL003 5.4.20)."""

    subscription_id: str


class NotificationsDelivered(Event, kind="lcm.notifications.delivered", by="lcm-api"):
    """A subscriber that had refused notifications, or was away, accepts them again."""

    subscription_id: str


class NotificationDropped(Event, kind="lcm.notification.dropped", by="lcm-api"):
    """A notification was not delivered and will not be: the subscriber refused it, or was unreachable for too long."""

    subscription_id: str
    notification_id: str
    notification_type: str
    """VnfLcmOperationOccurrenceNotification ..."""
    vnf_instance_id: str
    """Empty if the notification was about a VNF package."""
    vnf_lcm_op_occ_id: str = ""
    operation_state: str = ""
    vnf_pkg_id: str = ""
    """Set if the notification was about a VNF package."""
    queued_at: datetime
    reason: ErrorText


class Problem(Facts):
    """ProblemDetails (RFC 7807, SOL013)."""

    type: str = "about:blank"
    title: str = ""
    status: int
    detail: ErrorText
    instance: str = ""


class InstanceEvent(Event):
    """The attributes of every event about a VNF instance itself."""

    vnf_instance_id: str
    vnf_instance_name: str = ""
    vnfd_id: str
    vnf_provider: str = ""
    vnf_product_name: str = ""
    vnf_software_version: str = ""
    vnfd_version: str = ""
    vim_ids: tuple[str, ...] = ()
    """The registered VIMs on which its resources exist or are being created."""


class InstanceCreated(InstanceEvent, kind="lcm.instance.created", by="lcm-api"):
    """A VNF instance identifier was created."""


class InstanceDeleted(InstanceEvent, kind="lcm.instance.deleted", by="lcm-api"):
    """A VNF instance identifier was deleted."""

    follows: str = ""
    """As in OperationChanged."""
    follows_at: datetime | None = None


class InstanceDrifted(InstanceEvent, kind="lcm.instance.drifted", by="lcm-api"):
    """The resources of a VNF instance were found deleted, changed or failed although no operation runs, or exist again."""

    state: Literal["NONE", "MISSING", "FAILED", "INCOMPLETE", "CHANGED"]
    """NONE: the drift has ended, by itself or by an operation. MISSING: the stack, or every object, does not exist. FAILED:
    Heat reports the stack as failed. INCOMPLETE: some of its servers do not exist or are in state ERROR, or some objects do
    not exist. CHANGED: other parties have changed objects."""
    vnfc_ids: tuple[str, ...] = ()
    """The VNFCs (vnfcResourceInfo) whose servers do not exist or are in state ERROR, empty if the stack is MISSING; those of
    workloads that do not exist."""
    objects: tuple[DriftedObject, ...] = ()
    """The first ones of the objects that do not exist or were changed; none for a stack."""
    reason: ErrorText = ""
    """One sentence for a person."""


class InstanceOrphaned(InstanceEvent, kind="lcm.instance.orphaned", by="lcm-api"):
    """A VNF instance loses what another one provides: the other is terminated FORCEFUL, or is healed as a whole."""

    provider_id: str
    """The VNF instance that provided it."""
    provided: Literal["cluster", "registry", "management"]
    """The kind of what it provided; a later version may add values."""
    reason: ErrorText = ""
    """One sentence for a person."""


class InstanceTroubled(Event, kind="lcm.instance.troubled", by="lcm-api"):
    """The problem of a pod or virtual machine that lists of VNF instances show for one has begun, changed or ended."""

    vnf_instance_id: str
    text: str = ""
    """The one which has had its problem for the longest time, and the reason; empty: all work."""


class ServersChanged(Event, kind="lcm.servers.changed", by="lcm-api"):
    """An operation has ended on a VNF instance that names, or has named, a notifier of faults: it may have other servers."""

    vnf_instance_id: str


class AutomaticReason(Facts):
    """Why kubevnfm itself has begun an operation."""

    trigger: str
    """The kind of what has asked for it: ``alarm``, ``threshold``, ``auto-healing``, ``auto-scaling`` or ``server-notification``."""
    trigger_id: str
    """The id of the first fact that has asked for it."""
    reason: ErrorText
    """One sentence for a person."""
    action_id: str
    """The automatic action that was carried out by it."""


class OperationChanged(Event, kind="lcm.operation.changed", by="lcm-api"):
    """An operation occurrence entered a state (SOL003 5.6.2.2; the table is api.md 4.1)."""

    vnf_lcm_op_occ_id: str
    vnf_instance_id: str
    vnf_instance_name: str = ""
    vnfd_id: str = ""
    vnf_provider: str = ""
    vnf_product_name: str = ""
    vnf_software_version: str = ""
    vnfd_version: str = ""
    vim_ids: tuple[str, ...] = ()
    """The registered VIMs on which the instance has, or may get, resources."""
    operation: str
    """INSTANTIATE, TERMINATE ..."""
    state: OperationState
    state_entered_time: datetime
    start_time: datetime | None = None
    """When the operation was accepted."""
    is_automatic_invocation: bool = False
    automatic: AutomaticReason | None = None
    """Set if `is_automatic_invocation`."""
    is_first: bool = False
    """The first state of the occurrence: its notification has status START."""
    follows: str = ""
    """The id of the event before this one about the same VNF instance: its creation, its deletion or a state of an
    operation. A consumer that must keep them in order waits for that one."""
    follows_at: datetime | None = None
    """The time at which that event became true."""
    error: Problem | None = None
    affected_vnfcs: tuple[dict[str, object], ...] = ()
    affected_virtual_links: tuple[dict[str, object], ...] = ()
    affected_virtual_storages: tuple[dict[str, object], ...] = ()
    changed_info: dict[str, object] | None = None
    affected_ext_link_ports: tuple[dict[str, object], ...] = ()
    """SOL003 v3 only."""
    changed_ext_connectivity: tuple[dict[str, object], ...] = ()
    """ExtVirtualLinkInfo in SOL003 v3 form."""
    modifications_triggered_by_vnf_pkg_change: dict[str, object] | None = None
    """SOL003 v3 only."""
    vnf_snapshot_info_id: str | None = None
    """CREATE_SNAPSHOT and REVERT_TO_SNAPSHOT: the individual VNF snapshot."""
    change_metadata: dict[str, object] | None = None
    """``resourceChanges.metadata``: the objects that a FORCEFUL termination leaves, by ``kubevnfm_left``."""


class AutomaticDecided(Event, kind="lcm.automatic.decided", by="lcm-api"):
    """An automatic heal or scaling of a VNF instance has begun, was not done, or would have begun (trial)."""

    action_id: str
    vnf_instance_id: str
    operation: Literal["HEAL", "SCALE"]
    state: Literal["STARTED", "NOT_DONE", "TRIAL"]
    reason: ErrorText = ""
    """Why it was asked for; why it was not done."""
    vnf_lcm_op_occ_id: str = ""
    """STARTED: the operation."""


class StepChanged(Event, kind="lcm.step.changed", by="lcm-api"):
    """A step of an operation started, ended or failed."""

    vnf_lcm_op_occ_id: str
    step: str
    """The step's stable name: ``create_resources`` ..."""
    title: str
    """For people: "Create the virtual resources"."""
    state: Literal["started", "finished", "failed", "undoing", "undone"]
    attempt: int = 1
    number: int = 0
    """Position in the plan, from 1."""
    of: int = 0
    """Number of steps in the plan."""
    done: int | None = None
    """Number of steps that are done."""
    duration_s: float | None = None
    detail: ErrorText = ""


class PackageChanged(Event, kind="lcm.package.changed", by="lcm-api"):
    """A VNF package was onboarded, was not onboarded because of an error, was enabled, disabled or deleted (SOL005 9.4)."""

    vnf_pkg_id: str
    vnfd_id: str = ""
    """This and the names that follow: set once the package was onboarded."""
    vnf_provider: str = ""
    vnf_product_name: str = ""
    vnf_software_version: str = ""
    vnfd_version: str = ""
    vnfm_info: tuple[str, ...] = ()
    """The VNFMs that the VNFD names as compatible."""
    usage_state: str = ""
    """IN_USE, NOT_IN_USE."""
    change: Literal["CREATED", "ONBOARDED", "ERROR", "ENABLED", "DISABLED", "DELETED"]
    follows: str = ""
    """The id of the event before this one about the same package, from ONBOARDED on. A consumer that must keep them in
    order waits for that one."""
    follows_at: datetime | None = None
    """The time at which that event became true."""


class CancelLcmStep(CancelStep, kind="lcm.cancel_step", service="lcm-api"):
    """Stop working on a command of lcm-api itself."""
