"""What the domain needs of clusters, packages and stored documents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from kubevnfm_events import Event, PackageRef, VimConnection
from kubevnfm_worker import StepContext

from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.release import Release

Tell = Callable[[Event], Awaitable[None]]


class Cluster(Protocol):
    """One Kubernetes API server. Every method may raise ClusterUnavailable, AccessRefused, ObjectRefused.

    What passes by itself (429, 5xx, a broken connection) is tried a few times before ClusterUnavailable.
    """

    @property
    def endpoint(self) -> str: ...

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """Return how the kind is served, from what is known of the cluster; asks it anew before saying None."""
        ...

    def forget_kinds(self) -> None:
        """Kinds have changed: ask the cluster at the next occasion."""
        ...

    async def get(self, resource: Resource, key: ObjectKey) -> Body | None:
        """Return the object, None when it (or its kind) is not there."""
        ...

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "") -> Sequence[Body]:
        """Return the objects of a kind; ``labels`` is a label selector."""
        ...

    def follow(
        self, resource: Resource, *, namespace: str = "", labels: str = "", name: str = ""
    ) -> AsyncGenerator[Mapping[str, Body], None]:
        """Yield the fitting objects by name: at once, and again after each change. Never ends by itself: close it."""
        ...

    async def apply(self, resource: Resource, key: ObjectKey, body: Body, *, dry_run: bool = False) -> Body:
        """Make the object as ``body`` says (server-side apply as ``kubevnfm``, forced); return it as it is then.

        Raises WebhookUnavailable while an admission webhook does not answer.
        """
        ...

    async def relabel(self, resource: Resource, key: ObjectKey, labels: Mapping[str, str]) -> None:
        """Set labels of an object, if it is there."""
        ...

    async def delete(
        self, resource: Resource, key: ObjectKey, *, uid: str = "", grace_period_s: int | None = None
    ) -> bool:
        """Begin to delete the object with all it owns; return False when it (with this uid) is gone already."""
        ...


class Clusters(Protocol):
    """Connections to clusters, pooled by address and credentials."""

    def cluster(self, vim: VimConnection) -> AbstractAsyncContextManager[Cluster]:
        """Within the block, the cluster of a complete VIM connection. Raises InvalidInput naming what it lacks."""
        ...


class Sources(Protocol):
    """Where manifests come from."""

    async def read(
        self, package: PackageRef, def_files: Sequence[str], *, vnf_instance_id: str, operation_id: str
    ) -> Sequence[tuple[str, str]]:
        """Return (name, text) of each file, in order; what came from a URL is the same at every call of an operation.

        Raises InvalidInput for a file that is not in the package, changed since, or whose URL may not be fetched.
        """
        ...

    async def forget(self, vnf_instance_id: str) -> None:
        """Delete what was kept for the instance."""
        ...


class Releases(Protocol):
    """The inventories."""

    async def get(self, vnf_instance_id: str) -> Release | None: ...

    async def save(self, release: Release) -> Release:
        """Store it; return it with its new revision. Raises RevisionConflict when another worker wrote it."""
        ...

    async def delete(self, vnf_instance_id: str) -> None: ...

    async def others_in(self, cluster: str, namespace: str, *, than: str) -> Sequence[str]:
        """Return the ids of other instances that have objects in the namespace (up to 10)."""
        ...


@dataclass(frozen=True)
class Sharing:
    """Who takes part in a cluster-scoped object; ids of VNF instances, in the order they came or left."""

    holders: Sequence[str]
    former: Sequence[str]
    """Who left it lately: the object may still carry the label of one of them."""


class SharedObjects(Protocol):
    """Who holds which cluster-scoped object of which cluster (capi.md CR-021)."""

    async def hold(self, cluster: str, key: ObjectKey, digest: str, vnf_instance_id: str) -> Sequence[str]:
        """Take part in the object; return the other holders. Raises SharedObjectDiffers, taking part in nothing."""
        ...

    async def release(self, cluster: str, key: ObjectKey, vnf_instance_id: str) -> Sharing:
        """Take no part any more; return who still does, as of now: safe to be asked again."""
        ...

    async def forget(self, cluster: str, key: ObjectKey) -> None:
        """Keep no record of an object that is gone, unless somebody takes part in it by now."""
        ...


class Beginnings(Protocol):
    """When the work on a step attempt began: one deadline for it, however often it is taken up."""

    async def of(self, context: StepContext, vnf_instance_id: str) -> datetime:
        """Return the moment of the first call for this attempt."""
        ...

    async def forget(self, vnf_instance_id: str) -> None: ...
