"""Errors of the sender of credentials. No text holds a secret."""

from __future__ import annotations

from kubevnfm_kit.errors import InvalidInput, NotFound, OutsideUnavailable, TimedOut, Unprocessable, VnfmError

_TITLE = "Credentials of the workload cluster"


class CallbackNotConfigured(VnfmError, code="callback-not-configured", title=_TITLE):
    """mgmt-executor lacks the URL of a receiver, or the keys to sign with."""


class CallbackUrlRefused(InvalidInput, code="callback-url-refused", title=_TITLE):
    """Credentials may not be sent to this URL."""


class CallbackRefused(VnfmError, code="callback-refused", title=_TITLE):
    """The receiver has refused the call-back; the same request would be refused again."""


class CallbackUnreachable(VnfmError, code="callback-unreachable", title=_TITLE, status=503):
    """The receiver has not accepted the call-back within the tries of capi.md chapter 10."""

    # Not retryable: these were the tries. The next ones are a person's decision.


class ClusterMissing(NotFound, code="capi-cluster-missing", title=_TITLE):
    """The management cluster has no such Cluster object."""


class NotThereYet(OutsideUnavailable, code="capi-not-there-yet", title=_TITLE):
    """Something that Cluster API or Kubernetes makes does not exist yet."""


class WaitedTooLong(TimedOut, code="capi-wait-timed-out", title=_TITLE):
    """A condition did not become true in its time; the text has the last error."""


class KubeconfigRefused(Unprocessable, code="capi-kubeconfig-refused", title=_TITLE):
    """The kubeconfig Secret is not as Cluster API writes it (CR-059, CR-063)."""


class WorkloadRefused(VnfmError, code="capi-workload-refused", title=_TITLE):
    """The workload cluster refuses the objects of the service account."""


class ReaderRefused(VnfmError, code="capi-reader-refused", title=_TITLE):
    """The management cluster refuses the account whose token a script of the package would get."""
