"""The errors of a CNF's objects, as in the table of capi.md, chapter 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_csar.capi_providers import ContractLoss
from kubevnfm_events.objects import ObjectsApplied
from kubevnfm_kit.errors import Conflict, NotFound, OutsideUnavailable, TimedOut, VnfmError

from kubevnfm_infra_k8s.domain.autoscalers import Autoscaler
from kubevnfm_infra_k8s.domain.objects import ObjectKey


class WithRemains(VnfmError):
    """A step has failed that may have applied objects."""

    about: frozenset[ObjectKey] = frozenset()
    """The objects that have failed or were not ready, if they are known."""

    remains: ObjectsApplied | None = None
    """The objects that exist."""


class StillWaiting(Exception):
    """The objects of a priority are not ready within the time of a call; a later call continues. It is no failure."""


class UnknownKinds(VnfmError, code="unknown-kind", title="Kubernetes kind unknown"):
    """The cluster does not serve these kinds, and the manifests do not define them."""

    def __init__(self, kinds: Sequence[str]) -> None:
        super().__init__(f"the cluster does not serve {'; '.join(kinds)}")


class PolicyViolated(VnfmError, code="cnf-policy", title="CNF policy violated"):
    """The objects ask the cluster for more than the operator's policy allows; nothing was applied."""


class ObjectRefused(VnfmError, code="object-refused", title="Kubernetes API refused an object"):
    """The API server rejected an object; a repeat would not help."""

    def __init__(self, what: str, message: str, *, http_status: int = 0) -> None:
        super().__init__(f"{what}: {message}")
        self.what, self.message, self.http_status = what, message, http_status

    @classmethod
    def with_status(cls, what: str, message: str, http_status: int) -> ObjectRefused:
        """Return the error of an answer with this status."""
        return (Forbidden if http_status == 403 else ObjectRefused)(what, message, http_status=http_status)


class Forbidden(ObjectRefused):
    """The credentials of the VIM do not permit the request. Reading then yields: unknown."""


class ObjectsRefused(VnfmError, code="object-refused", title="Kubernetes API refused objects"):
    """The API server would reject these objects; nothing was applied."""

    def __init__(self, refusals: Sequence[ObjectRefused]) -> None:
        super().__init__("; ".join(str(each) for each in refusals))
        self.refusals = refusals


class AccessRefused(VnfmError, code="vim-access-refused", title="Kubernetes API refused the credentials"):
    """The cluster does not accept the credentials of the VIM."""


class AddressRefused(AccessRefused, code="cluster-address-refused", title="Address of the cluster not allowed"):
    """The address of a cluster that a VNF has built is not one of VNFs."""


class AddressUnnamed(AddressRefused):
    """An operator has not named the network of the address. No termination gives up on such a cluster: it answers once it is named."""


class NotScalable(VnfmError, code="kind-not-scalable", title="Kubernetes kind cannot be scaled"):
    """Objects of this kind have no number of replicas (capi.md CR-086)."""

    def __init__(self, key: ObjectKey) -> None:
        super().__init__(f"{key}: kind {key.kind} ({key.api_version}) has no subresource scale in this cluster")


class OutsideAutoscaler(
    VnfmError, code="outside-autoscaler-limits", title="Number outside the limits of the autoscaler"
):
    """The cluster's autoscaler would change a number outside its limits (capi.md CR-091)."""

    def __init__(self, key: ObjectKey, count: int, limits: str) -> None:
        super().__init__(f"{key}: {count} replicas wanted, {limits} expected by the annotations of its autoscaler")


class Autoscaled(VnfmError, code="replicas-autoscaled", title="Number of replicas belongs to an autoscaler"):
    """An autoscaler calculates the number and would take another one back (multicloud.md MC-114); nothing was changed."""

    def __init__(self, key: ObjectKey, count: int, owner: Autoscaler) -> None:
        limits = f" ({owner.limits.in_words})" if owner.limits.in_words else ""
        super().__init__(
            f"{key}: {count} replicas wanted, but {owner.name}{limits} chooses the number: {owner.way_out}"
        )


class MachineAtRest(Conflict):
    """KubeVirt would not start the virtual machine again after a heal (multicloud.md MC-063); nothing was changed."""

    def __init__(self, key: ObjectKey, reason: str) -> None:
        super().__init__(f"{key}: {reason}")


class ObjectMissing(WithRemains, code="object-missing", title="Kubernetes object does not exist"):
    """An object of the instance was deleted by another party; a repair applies it again."""

    def __init__(self, key: ObjectKey) -> None:
        super().__init__(f"{key}: does not exist; a heal with additionalParams.repair: true applies it again")


class LinkNotReady(VnfmError, code="link-not-ready", title="Virtual link not ready", status=409):
    """A virtual link of the instance has failed, or did not become ready in time."""


class VolumeNotReady(VnfmError, code="volume-not-ready", title="Persistent volume not ready", status=409):
    """A persistent volume of the instance has failed, or its claim did not become bound, or was not removed, in time."""


class HelmMissing(VnfmError, code="helm-missing", title="Helm chart not rendered"):
    """The VNF is a Helm chart, and this installation has no helm program."""


class ForeignObjects(Conflict, code="foreign-object", title="Kubernetes object exists"):
    """Objects of these names exist and do not belong to this instance."""

    def __init__(self, keys: Sequence[ObjectKey], *, way_out: str = "") -> None:
        names = ", ".join(str(key) for key in keys)
        hint = way_out or "additionalParams.adopt takes them over"
        super().__init__(f"existing objects do not belong to this VNF instance: {names} ({hint})")


class FieldConflict(WithRemains, Conflict, code="conflict"):
    """Another manager has a field that the object's order does not let us take (multicloud.md MC-106b)."""


class SharedObjectDiffers(Conflict, code="shared-object-differs", title="Kubernetes object is shared"):
    """A cluster-scoped object also belongs to another instance, with different content."""

    def __init__(self, key: ObjectKey, holders: Sequence[str]) -> None:
        super().__init__(f"{key}: VNF instances {', '.join(holders)} use it with different content")


class WebhookUnavailable(OutsideUnavailable, code="webhook-unavailable", title="Webhook unavailable"):
    """A webhook for admission or conversion does not answer, because its pods start or its CA is being injected."""


class ClusterUnavailable(OutsideUnavailable, code="cluster-unavailable", title="Kubernetes API unavailable"):
    """The API server does not answer."""


class GroupUnavailable(ClusterUnavailable):
    """The API server answers, but not the server of an API group that extends it."""


class ObjectFailed(WithRemains, code="object-failed", title="Kubernetes object failed"):
    """An object has failed and will not become ready."""


class ObjectsNotReady(
    WithRemains, TimedOut, code="objects-not-ready", title="Kubernetes objects not ready in time", status=422
):
    """Some objects were not ready in time; the message names each one, its last condition and newest warning."""


class ObjectsNotGone(
    WithRemains, TimedOut, code="objects-not-gone", title="Kubernetes objects not deleted in time", status=422
):
    """Some objects were not deleted in time; the message names each one and what blocks its deletion."""


class HookFailed(WithRemains, code="hook-failed", title="Hook failed"):
    """A hook of the package has failed, or did not end in time; the message has the end of its pod's log (multicloud.md MC-141)."""


class HooksTooLarge(VnfmError, code="hooks-too-large", title="Hooks too large"):
    """The hooks that run at the end of an instance are stored with it, and have a limit."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the objects of hooks pre-delete and post-delete have more than {most} characters together")


class ClusterFailed(VnfmError, code="cluster-failed", title="Workload cluster failed"):
    """A workload cluster has failed for good; waiting would not help (capi.md CR-057)."""


class ClusterNotReady(TimedOut, code="cluster-not-ready", title="Workload cluster not ready in time", status=422):
    """A workload cluster did not come as far as was asked for in time; the message names the phase and what it said."""


class ClusterLost(Conflict, code="cluster-lost", title="Workload cluster was deleted"):
    """The objects that a workload cluster consists of were deleted: its machines are gone, and its access data are of no use."""

    def __init__(self, keys: Sequence[ObjectKey]) -> None:
        names = ", ".join(str(key) for key in keys)
        super().__init__(
            f"{names}: deleted by another party, and the machines of the cluster with it; heal with "
            "additionalParams.capi.recreate: true, which builds it again behind the same VIM, or terminate the VNF instance"
        )


class KubeconfigInvalid(VnfmError, code="kubeconfig-invalid", title="Kubeconfig of a workload cluster invalid"):
    """The Secret with a workload cluster's kubeconfig is not as Cluster API writes it."""


class MachinesMissing(NotFound, code="machine-missing", title="Machine does not exist"):
    """Machines that a request names do not exist any more; nothing was deleted (capi.md CR-090, CR-118)."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"the cluster has no Machines {', '.join(names)}")


class QuorumAtRisk(Conflict, code="quorum-at-risk", title="Control plane would lose its majority"):
    """Without a Machine of the control plane, the rest of etcd would have no majority (capi.md CR-114)."""

    def __init__(self, machine: str, *, healthy: int, members: int, ill: Sequence[str]) -> None:
        others = f"; not healthy: {', '.join(ill)}" if ill else ""
        super().__init__(
            f"Machine {machine}: without it {healthy} of {members} members of etcd would be healthy, and "
            f"{majority_of(members)} are needed{others} (additionalParams.force: true replaces it nevertheless)"
        )


class ClustersExist(Conflict, code="clusters-exist", title="Clusters of Cluster API exist"):
    """Clusters of Cluster API need the providers that are to be deleted; nothing was deleted (capi.md CR-043)."""

    def __init__(self, keys: Sequence[ObjectKey]) -> None:
        names = ", ".join(f"{key.namespace}/{key.name}" for key in keys[:_NAMED])
        more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
        super().__init__(
            f"the management cluster has the Clusters {names}{more}: delete those first, or terminate this one FORCEFUL"
        )


class ContractGoesBack(VnfmError, code="contract-goes-back", title="Contract of Cluster API would go back"):
    """The manifests have providers of an earlier contract than those that the cluster has (capi.md CR-046)."""

    def __init__(self, losses: Sequence[ContractLoss]) -> None:
        super().__init__("; ".join(str(each) for each in losses))


_NAMED: Final = 20
"""The most Clusters that an error names."""


def majority_of(members: int) -> int:
    """Return how many members of etcd must be healthy."""
    return members // 2 + 1
