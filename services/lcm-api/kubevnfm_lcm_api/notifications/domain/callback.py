"""The authentication that a subscriber wants (SOL013 8.3.4, api.md 6.2), and the results of a delivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self
from urllib.parse import urlsplit

from kubevnfm_kit.errors import InvalidInput, VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_sol.base import SolRequest
from pydantic import Field, model_validator

AuthType = Literal["OAUTH2_CLIENT_CERT", "TLS_CERT", "OAUTH2_CLIENT_CREDENTIALS", "BASIC"]
STRONGEST_FIRST: Final[Sequence[AuthType]] = ("OAUTH2_CLIENT_CERT", "TLS_CERT", "OAUTH2_CLIENT_CREDENTIALS", "BASIC")
_LONGEST_ENDPOINT: Final = 2048
WITH_CERTIFICATE: Final = frozenset({"OAUTH2_CLIENT_CERT", "TLS_CERT"})


def checked_uri(uri: str) -> str:
    """Return the address if it can be called. Raises ValueError."""
    parts = urlsplit(uri)
    # `port` raises ValueError if it is not a number from 0 to 65535.
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0 or parts.username is not None:
        raise ValueError("an absolute http or https URI without credentials expected")
    return uri


class ParamsBasic(SolRequest):
    """HTTP Basic towards the subscriber."""

    user_name: str = Field(pattern="^[^:]*$")
    """A colon separates name and password in Basic (RFC 7617)."""
    password: Secret


class ParamsOauth2ClientCredentials(SolRequest):
    """OAuth 2.0 client credentials with a password. As the attribute's name says credentials, all of it is secret."""

    client_id: Secret
    client_password: Secret
    token_endpoint: Secret


class CertificateRef(SolRequest):
    """The client certificate that the subscriber's token endpoint knows."""

    type: Literal["x5t#S256"]
    value: str
    """Base64url of the SHA-256 of the certificate's DER, without padding (RFC 7515 4.1.8)."""


class ParamsOauth2ClientCert(SolRequest):
    """OAuth 2.0 client credentials with a TLS client certificate (RFC 8705)."""

    client_id: str
    certificate_ref: CertificateRef
    token_endpoint: Secret
    """Its query may have a token. In the store of earlier versions it is in clear."""


class Authentication(SolRequest):
    """SubscriptionAuthentication: the types that the subscriber accepts; the strongest supported one is used."""

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
        """Raise InvalidInput unless the token endpoints are HTTP addresses; they are sealed, so only this method can check them."""
        for name, params in (
            ("paramsOauth2ClientCredentials", self.params_oauth2_client_credentials),
            ("paramsOauth2ClientCert", self.params_oauth2_client_cert),
        ):
            if params is None:
                continue
            try:
                address = checked_uri(params.token_endpoint.reveal(ring))
            except ValueError:
                address = ""
            if not 0 < len(address) <= _LONGEST_ENDPOINT:
                raise InvalidInput(
                    f"authentication/{name}/tokenEndpoint",
                    f"an absolute http or https URI without credentials expected, of at most {_LONGEST_ENDPOINT} characters",
                )


def strongest(accepted: Sequence[str], *, has_certificate: bool) -> AuthType | None:
    """Return the type of authentication to use; None if none of them is supported."""
    doable = (one for one in STRONGEST_FIRST if one in accepted and (has_certificate or one not in WITH_CERTIFICATE))
    return next(doable, None)


class CallbackRefused(VnfmError, code="callback-test-failed", title="Callback test failed"):
    """The callback URI has failed the test of SOL003 (5.4.18.3.1: 422), or must not or cannot be called."""


@dataclass(frozen=True)
class Callback:
    """The address that a subscriber listens on."""

    uri: Secret | str
    """Secret if it has a query, in which there may be a token."""
    authentication: JsonMapping | None = None
    """SubscriptionAuthentication, its sealed values as Secret."""


@dataclass(frozen=True)
class Notice:
    """The content of one POST to a subscriber."""

    body: JsonMapping | Sequence[JsonMapping]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Taken:
    """The subscriber has accepted the notification."""

    status: int


@dataclass(frozen=True)
class Untaken:
    """The subscriber has not accepted it, and may do so later."""

    reason: str
    again_in_s: float | None = None
    """The delay that the subscriber has asked for (Retry-After)."""
    status: int | None = None
    """None: it has not answered."""


@dataclass(frozen=True)
class Refused:
    """The subscriber will never accept it."""

    reason: str
    status: int


class Subscriber(Protocol):
    """The remote side of a subscription."""

    async def obstacle(self, callback: Callback) -> str | None:
        """Return why this subscriber can never be called as it wants, None if it can; makes no call."""
        ...

    async def test(self, callback: Callback) -> str | None:
        """GET the callback URI; return None if it answers 204, else what went wrong."""
        ...

    async def notify(self, callback: Callback, notice: Notice) -> Taken | Untaken | Refused:
        """POST a notification."""
        ...
