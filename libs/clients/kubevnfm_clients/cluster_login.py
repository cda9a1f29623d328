"""The one login to Kubernetes clusters: the ``Authorization`` header that a VIM's access data give."""

from __future__ import annotations

import base64
from typing import Final

from kubevnfm_clients.cluster_access import ClusterAccess
from kubevnfm_clients.cluster_errors import ApiUnauthorized
from kubevnfm_clients.oidc_tokens import OidcTokens
from kubevnfm_clients.service_account_tokens import Guarded, ServiceAccountTokens, unguarded

_BEARER: Final = "Bearer "


class ClusterTokens:
    """The tokens that are requested for logins, of all clusters."""

    def __init__(self, *, timeout_s: float = 20.0) -> None:
        """``timeout_s``: time limit of a request for one."""
        self.oidc = OidcTokens(timeout_s=timeout_s)
        self.service_accounts = ServiceAccountTokens(timeout_s=timeout_s)


class ClusterLogin:
    """The ``Authorization`` header for one cluster."""

    def __init__(self, access: ClusterAccess, tokens: ClusterTokens, guarded: Guarded = unguarded) -> None:
        """``guarded``: encloses requests of tokens to the cluster, as its other calls are."""
        self._access, self._tokens, self._guarded = access, tokens, guarded
        self._rejected = ""
        self._for_tokens = None if access.service_account is None else ClusterLogin(access.for_tokens, tokens)

    @property
    def is_renewable(self) -> bool:
        """Whether another header may be accepted after the cluster has rejected one."""
        return self._access.oidc is not None or self._for_tokens is not None

    async def header(self) -> str:
        """Return the present value, "" for none. Raises as the tokens do."""
        access = self._access
        if access.service_account is not None and self._for_tokens is not None:
            order, login, tokens = access.service_account, self._for_tokens, self._tokens.service_accounts
            sent = ""

            async def login_header() -> str:
                nonlocal sent
                sent = await login.header()
                return sent

            try:
                token = await tokens.token(
                    access, order, login_header, instead_of=self._rejected, guarded=self._guarded
                )
            except ApiUnauthorized:
                login.reject(sent)
                raise
            return f"{_BEARER}{token}"
        if access.oidc is not None:
            return f"{_BEARER}{await self._tokens.oidc.token(access.oidc, access.endpoint, instead_of=self._rejected)}"
        if access.username:
            pair = base64.b64encode(f"{access.username}:{access.password}".encode()).decode()
            return f"Basic {pair}"
        return f"{_BEARER}{access.bearer_token}" if access.bearer_token else ""

    def reject(self, header: str) -> None:
        """Return another token next time than that of a header, because the cluster has rejected it."""
        self._rejected = header.removeprefix(_BEARER)
