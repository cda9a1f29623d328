"""How a subscriber wants us to show who we are (SOL013 8.3.4, api.md 6.2), and what its end of a delivery is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, Self
from urllib.parse import urlsplit

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_sol.base import SolRequest
from pydantic import Field, field_validator, model_validator

AuthType = Literal["OAUTH2_CLIENT_CERT", "TLS_CERT", "OAUTH2_CLIENT_CREDENTIALS", "BASIC"]
STRONGEST_FIRST: Final[Sequence[AuthType]] = ("OAUTH2_CLIENT_CERT", "TLS_CERT", "OAUTH2_CLIENT_CREDENTIALS", "BASIC")
WITH_CERTIFICATE: Final = frozenset({"OAUTH2_CLIENT_CERT", "TLS_CERT"})
THUMBPRINT: Final = "x5t#S256"
"""RFC 7515 4.1.8: base64url of the SHA-256 of the certificate's DER, without padding."""


def checked_uri(uri: str) -> str:
    """Return an address that we may be asked to call. Raises ValueError."""
    parts = urlsplit(uri)
    # reading the port raises ValueError when it is none
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0 or parts.username is not None:
        raise ValueError("an absolute http or https URI without credentials expected")
    return uri


class ParamsBasic(SolRequest):
    """HTTP Basic towards the subscriber."""

    user_name: str = Field(pattern="^[^:]*$")
    """Basic has a colon between name and password (RFC 7617)."""
    password: Secret


class ParamsOauth2ClientCredentials(SolRequest):
    """OAuth 2.0 client credentials, the client known by a password; by its name, all of it counts as secret."""

    client_id: Secret
    client_password: Secret
    token_endpoint: Secret


class CertificateRef(SolRequest):
    """Which certificate of ours the subscriber's token endpoint knows."""

    type: Literal["x5t#S256"]
    value: str


class ParamsOauth2ClientCert(SolRequest):
    """OAuth 2.0 client credentials, the client known by its TLS certificate (RFC 8705)."""

    client_id: str
    certificate_ref: CertificateRef
    token_endpoint: str = Field(max_length=2048)

    _is_http = field_validator("token_endpoint")(checked_uri)


class Authentication(SolRequest):
    """SubscriptionAuthentication: what the subscriber takes; we use the strongest of it that we can."""

    auth_type: tuple[AuthType, ...] = Field(min_length=1)
    params_basic: ParamsBasic | None = None
    params_oauth2_client_credentials: ParamsOauth2ClientCredentials | None = None
    params_oauth2_client_cert: ParamsOauth2ClientCert | None = None

    @model_validator(mode="after")
    def _has_its_parameters(self) -> Self:
        needed = {
            "BASIC": ("paramsBasic", self.params_basic),
            "OAUTH2_CLIENT_CREDENTIALS": ("paramsOauth2ClientCredentials", self.params_oauth2_client_credentials),
            "OAUTH2_CLIENT_CERT": ("paramsOauth2ClientCert", self.params_oauth2_client_cert),
        }
        for auth_type in self.auth_type:
            name, given = needed.get(auth_type, ("", self))
            if given is None:
                raise ValueError(f"{name}: required with {auth_type}")
        return self

    def check_addresses(self, ring: KeyRing) -> None:
        """Raise InvalidInput for a token endpoint that is no HTTP address; one that counts as secret is only seen here."""
        params = self.params_oauth2_client_credentials
        try:
            if params is not None:
                checked_uri(params.token_endpoint.reveal(ring))
        except ValueError as error:
            raise InvalidInput(
                "authentication/paramsOauth2ClientCredentials/tokenEndpoint",
                "an absolute http or https URI without credentials expected",
            ) from error


def strongest(accepted: Sequence[str], *, has_certificate: bool) -> AuthType | None:
    """Return the type of authentication to use; None when we can do none of them."""
    doable = (one for one in STRONGEST_FIRST if one in accepted and (has_certificate or one not in WITH_CERTIFICATE))
    return next(doable, None)


@dataclass(frozen=True)
class Callback:
    """Where a subscriber listens."""

    uri: str
    authentication: Mapping[str, Any] | None = None
    """SubscriptionAuthentication, what is sealed in it as Secret."""


@dataclass(frozen=True)
class Taken:
    """The subscriber has the notification."""


@dataclass(frozen=True)
class Untaken:
    """It does not have it, and may take it later."""

    reason: str
    again_in_s: float | None = None
    """When the subscriber wants it again (Retry-After)."""


@dataclass(frozen=True)
class Refused:
    """It will never take it."""

    reason: str


class Subscriber(Protocol):
    """The other end of a subscription."""

    async def obstacle(self, callback: Callback) -> str | None:
        """Return why we could never call this subscriber as it wants, None when we could; nothing is called."""
        ...

    async def test(self, callback: Callback) -> str | None:
        """GET the callback URI; return None when it answers 204, else what it did."""
        ...

    async def notify(self, callback: Callback, body: Mapping[str, Any], version: str) -> Taken | Untaken | Refused:
        """POST a notification, with the ``Version`` that was subscribed."""
        ...
