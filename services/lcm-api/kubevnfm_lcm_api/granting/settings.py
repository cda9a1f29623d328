"""The settings of grants by an NFVO; part of the settings of lcm-api and of the single process."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from kubevnfm_kit.service_urls import check_service_url
from kubevnfm_kit.tls import ClientTls
from pydantic import BaseModel, Field, SecretStr, model_validator


class GrantSettings(BaseModel):
    """The NFVO that grants operations (SOL003 clause 9), and the access to it."""

    nfvo_url: str | None = None
    """The NFVO's API root: grants are asked for at ``<nfvo_url>/grant/v1/grants``. None: every operation is granted here."""
    nfvo_auth: Literal["none", "basic", "oauth2"] = "none"
    """How kubevnfm authenticates to the NFVO; ``oauth2``: client credentials."""
    nfvo_user: str = ""
    """The user's name, or the OAuth 2.0 client id."""
    nfvo_password: SecretStr = SecretStr("")
    """The user's password, or the OAuth 2.0 client secret."""
    nfvo_token_url: str | None = None
    """The token endpoint, for ``oauth2``."""
    nfvo_poll_s: float = Field(default=5.0, gt=0)
    """Seconds between two polls of an NFVO that has not decided yet, unless its answer has a Retry-After."""
    nfvo_timeout_s: float = Field(default=1800.0, gt=0)
    """Seconds that an operation waits for its grant, as people may have to decide. Then it is ROLLED_BACK."""
    nfvo_call_timeout_s: float = Field(default=20.0, gt=0)
    """Seconds that one call may take."""
    nfvo_tls_ca: Path | None = None
    """PEM file of the CAs that may have issued the NFVO's certificate; None: the CAs of the operating system."""
    nfvo_tls_certificate: Path | None = None
    """PEM file of the client certificate for the NFVO; with ``nfvo_tls_key``. Reloaded when replaced."""
    nfvo_tls_key: Path | None = None
    """PEM file of the client certificate's key."""

    @model_validator(mode="after")
    def _nfvo_can_be_asked(self) -> Self:
        for name in ("nfvo_url", "nfvo_token_url"):
            given = getattr(self, name)
            if given is not None:
                check_service_url(name, given)
        if self.nfvo_auth != "none" and not (self.nfvo_user and self.nfvo_password.get_secret_value()):
            raise ValueError("nfvo_auth: needs nfvo_user and nfvo_password")
        if self.nfvo_auth == "oauth2" and self.nfvo_token_url is None:
            raise ValueError("nfvo_auth: oauth2 needs nfvo_token_url")
        if (self.nfvo_tls_certificate is None) != (self.nfvo_tls_key is None):
            raise ValueError("nfvo_tls_certificate and nfvo_tls_key: both or none expected")
        return self

    @property
    def nfvo_tls(self) -> ClientTls:
        """The TLS settings for calls to the NFVO."""
        return ClientTls(self.nfvo_tls_ca, self.nfvo_tls_certificate, self.nfvo_tls_key)
