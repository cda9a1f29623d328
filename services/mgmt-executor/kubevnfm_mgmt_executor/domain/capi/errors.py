"""Errors of the sender of credentials. No text holds a secret."""

from __future__ import annotations

from kubevnfm_kit.errors import InvalidInput, NotFound, OutsideUnavailable, TimedOut, Unprocessable, VnfmError

_TITLE = "Credentials of the workload cluster"


class CallbackNotConfigured(VnfmError):
    """mgmt-executor lacks the URL of a receiver, or the keys to sign with."""

    code = "callback-not-configured"
    title = _TITLE


class CallbackUrlRefused(InvalidInput):
    """Credentials may not be sent to this URL."""

    code = "callback-url-refused"
    title = _TITLE


class CallbackRefused(VnfmError):
    """The receiver has refused the call-back; the same request would be refused again."""

    code = "callback-refused"
    title = _TITLE


class CallbackUnreachable(VnfmError):
    """The receiver has not accepted the call-back within the tries of capi.md chapter 10."""

    # Not retryable: these were the tries. The next ones are a person's decision.
    code = "callback-unreachable"
    title = _TITLE
    status = 503


class ClusterMissing(NotFound):
    """The management cluster has no such Cluster object."""

    code = "capi-cluster-missing"
    title = _TITLE


class NotThereYet(OutsideUnavailable):
    """Something that Cluster API or Kubernetes makes does not exist yet."""

    code = "capi-not-there-yet"
    title = _TITLE


class WaitedTooLong(TimedOut):
    """A condition did not become true in its time; the text has the last error."""

    code = "capi-wait-timed-out"
    title = _TITLE


class KubeconfigRefused(Unprocessable):
    """The kubeconfig Secret is not as Cluster API writes it (CR-059, CR-063)."""

    code = "capi-kubeconfig-refused"
    title = _TITLE


class WorkloadRefused(VnfmError):
    """The workload cluster refuses the objects of the service account."""

    code = "capi-workload-refused"
    title = _TITLE


class ReaderRefused(VnfmError):
    """The management cluster refuses the account whose token a script of the package would get."""

    code = "capi-reader-refused"
    title = _TITLE
