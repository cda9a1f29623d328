"""The errors of Kubernetes API servers, and of the OpenID providers that their users log in to."""

from __future__ import annotations

from kubevnfm_kit.errors import OutsideUnavailable, PlacedError


class ApiUnauthorized(PlacedError, code="cluster-unauthorized", title="Unauthorized for the cluster"):
    """The API server, or the OpenID provider, rejects the access data."""


class ApiRefused(PlacedError, code="cluster-refused", title="Cluster refused"):
    """The server answers, but not as a Kubernetes API or OpenID provider does, or its certificate is not trusted."""


class TokenRefused(ApiRefused, code="cluster-token-refused", title="Cluster refused a token"):
    """The API server gives no token of the ServiceAccount whose rights are to be used."""


class ApiUnavailable(
    PlacedError,
    OutsideUnavailable,
    code="cluster-unavailable",
    title="Cluster unavailable",
    template="{place} does not answer: {reason}",
):
    """The API server, or the OpenID provider, does not answer now."""


class ProxyAway(ApiUnavailable, template="{place}: {reason}"):
    """The proxy to it does not answer, or does not connect to it."""
