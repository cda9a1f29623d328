"""What can go wrong with the objects of a CNF, as the table of capi.md chapter 3 answers it."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_events.infra import ObjectsApplied
from kubevnfm_kit.errors import Conflict, OutsideUnavailable, TimedOut, VnfmError

from kubevnfm_infra_k8s.domain.objects import ObjectKey


class UnknownKinds(VnfmError):
    """The cluster does not serve these kinds, and the package does not define them."""

    code = "unknown-kind"
    title = "Kubernetes kind unknown"
    status = 422

    def __init__(self, kinds: Sequence[str]) -> None:
        super().__init__(f"the cluster serves no {'; no '.join(kinds)}")
        self.kinds = kinds


class ObjectRefused(VnfmError):
    """The API server refused an object for good."""

    code = "object-refused"
    title = "Kubernetes API refused an object"
    status = 422

    def __init__(self, what: str, message: str, *, http_status: int = 0) -> None:
        super().__init__(f"{what}: {message}")
        self.what, self.http_status = what, http_status


class ObjectsRefused(VnfmError):
    """The API server would refuse these objects; nothing was applied."""

    code = "object-refused"
    title = "Kubernetes API refused objects"
    status = 422

    def __init__(self, refusals: Sequence[ObjectRefused]) -> None:
        super().__init__("; ".join(str(each) for each in refusals))
        self.refusals = refusals


class AccessRefused(VnfmError):
    """The cluster does not accept the credentials of the VIM."""

    code = "vim-access-refused"
    title = "Kubernetes API refused the credentials"
    status = 422


class ForeignObjects(Conflict):
    """Objects of these names are there already and are not this instance's."""

    code = "foreign-object"
    title = "Kubernetes object exists"

    def __init__(self, keys: Sequence[ObjectKey]) -> None:
        names = ", ".join(str(key) for key in keys)
        super().__init__(
            f"not of this VNF instance, but there already: {names} (additionalParams.adopt takes them over)"
        )
        self.keys = keys


class SharedObjectDiffers(Conflict):
    """A cluster-scoped object is another instance's too, with other content."""

    code = "shared-object-differs"
    title = "Kubernetes object is shared"

    def __init__(self, key: ObjectKey, holders: Sequence[str]) -> None:
        super().__init__(f"{key}: VNF instances {', '.join(holders)} have it with other content")
        self.key = key


class WebhookUnavailable(OutsideUnavailable):
    """An admission webhook does not answer (yet): its pods are starting, or its CA is being injected."""

    code = "webhook-unavailable"
    title = "Admission webhook unavailable"


class ClusterUnavailable(OutsideUnavailable):
    """The API server does not answer."""

    code = "cluster-unavailable"
    title = "Kubernetes API unavailable"


class ObjectFailed(VnfmError):
    """An object cannot become ready any more."""

    code = "object-failed"
    title = "Kubernetes object failed"
    status = 422
    remains: ObjectsApplied | None = None
    """What was applied all the same."""


class ObjectsNotReady(TimedOut):
    """Not everything was ready in time; the message names each object, its last condition and newest warning."""

    code = "objects-not-ready"
    title = "Kubernetes objects not ready in time"
    status = 422
    remains: ObjectsApplied | None = None
    """What was applied all the same."""


class ObjectsNotGone(TimedOut):
    """Not everything was gone in time; the message names each object and what holds it."""

    code = "objects-not-gone"
    title = "Kubernetes objects not gone in time"
    status = 422
