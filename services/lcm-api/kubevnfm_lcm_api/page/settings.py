"""The settings of the web page; a part of the settings of each process that serves the public API."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from kubevnfm_access.openid import LoginClient
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode


class PageSettings(BaseModel):
    """How the page is used."""

    page_session_s: int = Field(default=12 * 3600, ge=60, le=30 * 24 * 3600)
    """How long a login to the web page lasts, in seconds; it ends earlier when its credentials are withdrawn."""
    page_login_client_id: str | None = Field(default=None, min_length=1, max_length=1000)
    """The client as which the gateway is registered at ``auth_bearer_issuer``, so that people log in there (OpenID Connect);
    None: the page takes tokens only."""
    page_login_client_secret: SecretStr | None = Field(default=None, min_length=1)
    """Its secret; None: a public client, which is protected by PKCE alone."""
    page_login_scopes: Annotated[tuple[str, ...], NoDecode] = ("openid", "profile")
    """The scopes that the login asks the issuer for; ``openid`` is needed."""
    page_login_judges: Literal["access-token", "id-token"] = "access-token"
    """The token that is judged: the access token, or the ID token of issuers whose access tokens are no JWTs, with
    ``auth_bearer_audience`` equal to the client id."""

    @field_validator("page_login_scopes", mode="before")
    @classmethod
    def _words(cls, given: Any) -> Any:
        return given.replace(",", " ").split() if isinstance(given, str) else given

    @model_validator(mode="after")
    def _login_fits(self) -> Self:
        if self.page_login_client_id is None:
            if self.page_login_client_secret is not None:
                raise ValueError("page_login_client_secret: page_login_client_id needed")
            return self
        if "bearer" not in getattr(self, "auth_modes", ()) or not getattr(self, "auth_bearer_issuer", None):
            raise ValueError("page_login_client_id: needs the mode bearer in auth_modes, and auth_bearer_issuer")
        if "openid" not in self.page_login_scopes:
            raise ValueError("page_login_scopes: openid expected among them")
        return self

    @property
    def login_client(self) -> LoginClient | None:
        """The client with which people log in at the issuer."""
        if self.page_login_client_id is None:
            return None
        secret = self.page_login_client_secret
        return LoginClient(
            self.page_login_client_id,
            None if secret is None else secret.get_secret_value(),
            self.page_login_scopes,
            is_id_token_judged=self.page_login_judges == "id-token",
        )
