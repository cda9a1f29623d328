"""The errors of Kubernetes API servers, and of the OpenID providers that their users log in to."""

from __future__ import annotations

from kubevnfm_kit.errors import OutsideUnavailable, VnfmError


class ApiUnauthorized(VnfmError):
    """The API server, or the OpenID provider, rejects the access data."""

    code = "cluster-unauthorized"
    title = "Unauthorized for the cluster"
    status = 422

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"{endpoint}: {reason}")
        self.endpoint, self.reason = endpoint, reason


class ApiRefused(VnfmError):
    """The server answers, but not as a Kubernetes API or OpenID provider does, or its certificate is not trusted."""

    code = "cluster-refused"
    title = "Cluster refused"
    status = 422

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"{endpoint}: {reason}")
        self.endpoint, self.reason = endpoint, reason


class ApiUnavailable(OutsideUnavailable):
    """The API server, or the OpenID provider, does not answer now."""

    code = "cluster-unavailable"
    title = "Cluster unavailable"

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"{endpoint} does not answer: {reason}")
        self.endpoint, self.reason = endpoint, reason
