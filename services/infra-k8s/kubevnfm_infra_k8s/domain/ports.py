"""The interfaces that the domain needs: clusters, sources of manifests, and stored documents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from kubevnfm_csar.artifact_order import ArtifactOrder
from kubevnfm_csar.waits import WantedResult
from kubevnfm_events import Event, PackageRef, VimConnection
from kubevnfm_events.objects import ClaimedVolume, HelmChart, ObjectsDeleted, ObjectsOrder
from kubevnfm_worker.outcome import StepContext

from kubevnfm_infra_k8s.domain.beginning import Beginning
from kubevnfm_infra_k8s.domain.charts import ChartTarget
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_infra_k8s.domain.release import Release
from kubevnfm_infra_k8s.domain.verdicts import Evaluation

T = TypeVar("T")


@dataclass(frozen=True)
class Seen(Generic[T]):
    """The news of a watch: objects by name; nothing: it lives, and there is no news."""

    found: Mapping[str, T]
    gone: Collection[str] = ()
    is_all: bool = False
    """Whether no other objects exist: the watch has begun, or has begun again."""


PublishEvent = Callable[[Event], Awaitable[None]]
Note = Callable[[str], Awaitable[None]]


class Propagation(StrEnum):
    """The order in which an object and the objects that it owns are deleted."""

    FOREGROUND = "Foreground"
    """They are deleted first, so the absence of the owner means that all are gone. It costs the garbage collector a look
    at each object, one after the other."""
    BACKGROUND = "Background"
    """They are deleted afterwards."""


class Cluster(Protocol):
    """One Kubernetes API server. Every method may raise ClusterUnavailable, AccessRefused, ObjectRefused.

    Temporary failures (429, 5xx, a broken connection) are retried a few times before ClusterUnavailable.
    """

    @property
    def endpoint(self) -> str: ...

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """Return how the cluster serves the kind, from a cache; None if the cluster itself does not know it."""
        ...

    async def kinds(self) -> Sequence[Resource]:
        """Return all kinds that the cluster serves, each in the version that it prefers."""
        ...

    def known_resource(self, api_version: str, kind: str) -> Resource | None:
        """Return what `resource` would, from the cache alone: None also for a kind that the cluster serves since lately."""
        ...

    def forget_kinds(self) -> None:
        """Clear the cache of kinds."""
        ...

    def hiding(self, secrets: Sequence[str]) -> Cluster:
        """Return the same cluster: its errors, and the texts that `masked` returns, have ``***`` for these values."""
        ...

    def masked(self, text: str) -> str:
        """Return what the cluster says about an object, without the values that are hidden."""
        ...

    async def version(self) -> str:
        """Return the version of the API server, such as ``v1.34.1``."""
        ...

    async def api_versions(self) -> Sequence[str]:
        """Return what is served: each ``version`` or ``group/version``, and where known each with ``/Kind``."""
        ...

    async def get(self, resource: Resource, key: ObjectKey) -> Body | None:
        """Return the object, None if it or its kind does not exist."""
        ...

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "") -> Sequence[Body]:
        """Return the objects of a kind; ``labels`` is a label selector."""
        ...

    async def list_metadata(self, resource: Resource, *, namespace: str, most: int) -> Sequence[Body] | None:
        """Return the objects of a kind in a namespace, at least with their metadata; None if there are more than ``most``."""
        ...

    async def get_metadata(self, resource: Resource, key: ObjectKey) -> Body | None:
        """Return the object with nothing but its metadata, None if it or its kind does not exist."""
        ...

    def follow(
        self, resource: Resource, *, namespace: str = "", labels: str = "", name: str = ""
    ) -> AsyncGenerator[Seen[Body], None]:
        """Yield the matching objects, without managedFields: all of them at first, then each change.

        The name is ``namespace/name`` for a kind with namespaces if none is given: then all of them are followed. The caller
        has to close it.
        """
        ...

    def follow_metadata(
        self, resource: Resource, keep: Callable[[Body], T], *, namespace: str = "", labels: str = ""
    ) -> AsyncGenerator[Seen[T], None]:
        """Yield what ``keep`` makes of the metadata of the matching objects, as `follow` does.

        No body is read, and nothing of the metadata is kept.
        """
        ...

    def follow_kept(
        self,
        resource: Resource,
        keep: Callable[[Body], T],
        parts: Sequence[Sequence[str]],
        *,
        namespace: str = "",
        labels: str = "",
    ) -> AsyncGenerator[Seen[T], None]:
        """Yield what ``keep`` makes of the metadata of the matching objects and of what they have at the paths of ``parts``, as
        `follow` does; nothing else of them is kept.
        """
        ...

    async def apply(
        self, resource: Resource, key: ObjectKey, body: Body, *, dry_run: bool = False, takes_fields: bool = True
    ) -> Body:
        """Create or change the object (server-side apply as ``kubevnfm``); return the server's version of it.

        Raises WebhookUnavailable while an admission webhook does not answer, and, unless it ``takes_fields``, FieldConflict
        naming those of other managers.
        """
        ...

    async def keep(self, resource: Resource, key: ObjectKey, part: Body) -> None:
        """Own a part of the object also as a second field manager, so that `apply` leaves it as it is if it lacks it.

        ``part`` has the present values, and the uid of the object in its metadata. Does nothing if another party has changed
        one of them, or the object is another one: then others own the part, or there is nothing to keep.
        """
        ...

    async def create(self, resource: Resource, key: ObjectKey, body: Body) -> Body | None:
        """Create the object, and change none that exists; return the server's version of it, None if there is one of its name."""
        ...

    async def patch(self, resource: Resource, key: ObjectKey, change: Body) -> Body | None:
        """Merge a change into the object (RFC 7396); return the server's version of it, None if it does not exist."""
        ...

    async def pod_log(self, pod: ObjectKey, *, container: str, is_previous: bool = False) -> str:
        """Return the last lines of a container's log, at most some hundred thousand characters; "" if the pod does not exist.

        ``is_previous``: of the container that has ended, in whose place another one was started.
        """
        ...

    async def scale(self, resource: Resource, key: ObjectKey, *, replicas: int | None = None) -> Body | None:
        """Return the object's Scale (autoscaling/v1), None if it does not exist; set its ``replicas`` first if given."""
        ...

    async def restart_machine(self, machine: ObjectKey) -> None:
        """Have KubeVirt end the instance of a VirtualMachine, and start it again; does nothing while it does so already."""
        ...

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str = "",
        version: str = "",
        grace_period_s: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> bool:
        """Begin to delete the object and all objects that it owns; return False if it (with this uid) is known to be gone.

        Nothing happens to an object with another uid than a given one, and to that of the uid if it has another ``version``
        (``resourceVersion``).

        The API server answers with a Status what it has removed at once, and with the object what it only marks (Kubernetes
        documentation, "Resource deletion").
        """
        ...


class Clusters(Protocol):
    """Connections to clusters, pooled by address and credentials."""

    def cluster(self, vim: VimConnection) -> AbstractAsyncContextManager[Cluster]:
        """Yield the cluster of a complete VIM connection. Raises InvalidInput naming a missing attribute."""
        ...


class RegionLabels(Protocol):
    """The labels of cloud regions for the namespaces that are made in them."""

    async def labels(self, vim: VimConnection) -> Mapping[str, str]:
        """Return the labels that an operator has set for the namespaces of a VIM's region. Raises OutsideUnavailable."""
        ...


class Sources(Protocol):
    """The files with manifests."""

    async def read(
        self,
        order: ObjectsOrder,
        *,
        vnf_instance_id: str,
        operation_id: str,
    ) -> Sequence[tuple[str, str]]:
        """Return (name, text) of each file, in order, with the variables. The content of a URL does not change during an operation.

        Raises InvalidInput for a file that the package lacks or that was modified, for a URL that is not allowed, and for
        a placeholder without a value.
        """
        ...

    async def ordering(self, order: ObjectsOrder) -> tuple[ArtifactOrder, Mapping[str, Any]]:
        """Return the content of the order artifact, and the values of its variables, secret ones as `Hidden`.

        Raises InvalidInput as `read` does, and Unprocessable naming its wrong places.
        """
        ...

    def secrets_in(self, order: ObjectsOrder) -> Sequence[str]:
        """Return the values, in clear, that the manifests of an order contain and that no message may show."""
        ...

    async def rendered(
        self,
        package: PackageRef,
        chart: HelmChart,
        target: ChartTarget,
        *,
        digest: str = "",
        vnf_instance_id: str,
        operation_id: str,
        note: Note,
    ) -> Sequence[tuple[str, str]]:
        """Return (name, text) of each template of a chart: the same ones during an operation, also if the chart uses chance.

        ``digest``: of the manifest in the registry that the path of the chart names; "" for one in the package. ``note``: publishes
        which Helm has rendered it. Raises InvalidInput as `read` does, ChartRefused, HelmMissing, ChartNotFetched; OutsideUnavailable
        while a chart is being fetched.
        """
        ...

    def of_dry_runs(self) -> Sources:
        """Return the same files, of whose content nothing is stored."""
        ...

    async def forget(self, vnf_instance_id: str) -> None:
        """Delete the stored content of the instance's URLs and charts."""
        ...


class LaterHooks(Protocol):
    """The hooks that run at the end of an instance and in its health checks, as they were planned when its objects were applied."""

    async def get(self, vnf_instance_id: str) -> tuple[Sequence[PlannedHook], Sequence[str]]:
        """Return the hooks, and the secrets that no message about them shows."""
        ...

    async def save(self, vnf_instance_id: str, hooks: Sequence[PlannedHook], secrets: Sequence[str]) -> None:
        """Store the hooks in the place of those before. Raises HooksTooLarge."""
        ...

    async def forget(self, vnf_instance_id: str) -> None:
        """Delete the hooks."""
        ...


class InstanceChecks(Protocol):
    """The health checks of VNF instances."""

    async def forget(self, vnf_instance_id: str) -> None:
        """Have the checks of an instance that has ended removed, with what one that runs has made meanwhile."""
        ...


class Releases(Protocol):
    """The inventories of VNF instances."""

    async def get(self, vnf_instance_id: str, part: str = "") -> Release | None:
        """Return the inventory of a part of the instance's objects (`Release.part`)."""
        ...

    async def save(self, release: Release) -> Release:
        """Store the release; return it with its new revision. Raises RevisionConflict if another worker changed it."""
        ...

    async def note(self, release: Release) -> None:
        """Have the inventory watch the objects of a release; `save` does so too."""
        ...

    async def delete(self, vnf_instance_id: str, part: str = "") -> None: ...

    async def others_in(self, cluster: str, namespace: str, *, than: str) -> Sequence[str]:
        """Return the ids of up to 10 other releases that have objects in the namespace."""
        ...

    async def strangers_in(self, cluster: str, namespace: str, *, than: str) -> Sequence[str]:
        """Return the ids of up to 10 other releases that have objects in the namespace, and not its implied Namespace.

        All others join its holders before they write there.
        """
        ...

    async def owners_of(self, cluster: str, namespace: str, *, than: str) -> Sequence[str]:
        """Return the ids of up to 10 other releases that have the namespace itself, or objects in it."""
        ...


@dataclass(frozen=True)
class Sharing:
    """The VNF instances that share a cluster-scoped object: ids in the order in which they joined or left."""

    holders: Sequence[str]
    former: Sequence[str]
    """The last ones that left. The object may still carry the label of one of them."""


class SharedObjects(Protocol):
    """The VNF instances that hold cluster-scoped objects (capi.md CR-021)."""

    async def hold(self, cluster: str, key: ObjectKey, digest: str, vnf_instance_id: str) -> Sequence[str]:
        """Join the object's holders; return the others. Raises SharedObjectDiffers, without joining."""
        ...

    async def holders(self, cluster: str, key: ObjectKey) -> Sequence[str]:
        """Return the instances that hold the object."""
        ...

    async def release(self, cluster: str, key: ObjectKey, vnf_instance_id: str) -> Sharing:
        """Leave the object's holders; return those that remain. May be repeated."""
        ...

    async def forget(self, cluster: str, key: ObjectKey) -> None:
        """Delete the record of a deleted object, unless an instance has joined it meanwhile."""
        ...


class Deletions(Protocol):
    """The answers to deletions that have ended. A repeat of the command finds no inventory that it could answer from."""

    async def answered(self, context: StepContext) -> ObjectsDeleted | None:
        """Return what an earlier delivery of the command has answered; None if none has come so far."""
        ...

    async def record(self, context: StepContext, answer: ObjectsDeleted) -> None:
        """Keep the answer for a time in which the command can be delivered again. May be repeated."""
        ...


class Expressions(Protocol):
    """Evaluates the expressions of an order, away from the event loop and within limits."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Yield the time in which `evaluate` may be called."""
        ...

    async def evaluate(self, wanted: WantedResult, body: Body) -> Evaluation:
        """Return the results for an object."""
        ...


class StartTimes(Protocol):
    """The start of each step attempt, so that all deliveries of its command share one deadline."""

    async def beginning(self, context: StepContext, vnf_instance_id: str) -> Beginning:
        """Return the first call for this attempt, and since when its cluster has not answered; that ends with this call."""
        ...

    async def note_silence(self, context: StepContext, since: datetime) -> None:
        """Store that the cluster of an attempt has not answered from this time on; nothing if the attempt has no limit yet."""
        ...

    async def started_at(self, context: StepContext, vnf_instance_id: str) -> datetime:
        """Return the time of the first call for this attempt."""
        ...

    async def forget(self, vnf_instance_id: str) -> None: ...


@dataclass(frozen=True)
class LinkUse:
    """The use that an instance makes of a virtual link."""

    namespaces: Sequence[str] | None = None
    """Where its pods are; None: where they were."""
    addresses: Sequence[str] = ()
    """The addresses that its interfaces have fixed."""


class LinkUses(Protocol):
    """The virtual links that instances hold. Each call may be repeated."""

    async def hold(self, vnf_instance_id: str, uses: Mapping[str, LinkUse]) -> None:
        """Have the instance hold these links, also in the namespaces where it has them: pods are there until they go. Raises NotFound, BeingRemoved, Unprocessable, Conflict."""
        ...

    async def keep(self, vnf_instance_id: str, uses: Mapping[str, LinkUse]) -> Sequence[str]:
        """Release all links that the instance holds but for these; return their ids."""
        ...

    async def leave(self, vnf_instance_id: str, namespaces: Sequence[str], *, vim_id: str, within_s: float) -> None:
        """Release all links of the instance, and wait until those that leave the namespaces have no object there, for so long.

        ``vim_id``: of the region whose namespaces they are; links of others are not awaited. "": it is not known.
        """
        ...

    async def waited_for(self, vnf_instance_id: str, uses: Mapping[str, LinkUse], *, within_s: float) -> str:
        """Return which of the links is not ready yet, after a wait for it; "" if all are. Raises LinkNotReady."""
        ...


class VolumeUses(Protocol):
    """The persistent volumes that instances use. Each call may be repeated."""

    async def hold(self, vnf_instance_id: str, volumes: Sequence[ClaimedVolume], namespace: str) -> None:
        """Make the instance a user of these volumes. Raises NotFound, BeingRemoved, InUse, Conflict, Unprocessable."""
        ...

    async def waited_for(
        self, vnf_instance_id: str, volumes: Sequence[ClaimedVolume], namespace: str, *, within_s: float
    ) -> str:
        """Return what is awaited until the claims are bound, or wait for their first pod, after a wait; "" if nothing is.

        A volume that the instance does not use is taken again. Raises VolumeNotReady, and as `hold`.
        """
        ...

    async def unbound(self, vnf_instance_id: str) -> Sequence[ObjectKey]:
        """Return the claims of the instance of which it is not known yet that they are bound."""
        ...

    async def leave(self, vnf_instance_id: str, *, kept: Collection[str] = (), within_s: float) -> Mapping[str, str]:
        """Have the claims of the instance removed, but for those of the ``kept`` volumes.

        Returns: those volumes, by id, whose claims still exist after a wait, and why.
        """
        ...

    async def check_answering(self, vnf_instance_id: str) -> None:
        """Raise ClusterUnavailable if a region does not answer in which claims of the instance are to go."""
        ...
