"""Calls Kubernetes clusters: reads version and namespaces, over TLS that is verified if a CA is given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp
from kubevnfm_clients.cluster_api import ApiAnswer, ClusterApi
from kubevnfm_clients.cluster_errors import ApiRefused, ApiUnauthorized, ApiUnavailable, ProxyAway, TokenRefused
from kubevnfm_clients.cluster_login import ClusterTokens
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import KeyRing

from kubevnfm_vim_registry.domain.errors import (
    KubernetesTooOld,
    VimBehindProxy,
    VimRefused,
    VimTokenRefused,
    VimUnauthorized,
    VimUnreachable,
)
from kubevnfm_vim_registry.domain.ports import Verified
from kubevnfm_vim_registry.domain.record import JsonObject, VimRecord

_OLDEST: Final = (1, 25)
_NAMESPACES: Final = 500
_NO_NAMESPACES: Final = "its list of namespaces is not that of a Kubernetes API"
_LONGEST_NAME: Final = 63
"""Characters of a namespace (RFC 1123); the names are stored and shown."""
_LONGEST_VERSION: Final = 64


class KubernetesProbe:
    """`domain.ports.VimProbe` for clusters."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        vnf_session: aiohttp.ClientSession,
        ring: KeyRing,
        *,
        timeout_s: float,
    ) -> None:
        """``vnf_session``: for clusters of VNFs; ``timeout_s``: time limit for one request."""
        self._session, self._vnf_session = session, vnf_session
        self._ring, self._timeout_s = ring, timeout_s
        self._tokens = ClusterTokens(timeout_s=timeout_s)

    async def verify(self, vim: VimRecord) -> Verified:
        """Access data that are limited to one namespace are accepted."""
        with translated_api_errors():
            api = self.api(vim)
            version = _supported(api, await api.get("/version"), may_lack=vim.cluster_uid is not None)
            # The limit protects against huge clusters; the list is only shown to clients.
            path = f"/api/v1/namespaces?limit={_NAMESPACES}"
            listed = await api.get(path)
            if listed.status == 403:
                return Verified((str(vim.vim_project.get("name") or "default"),), version)
            try:
                names = sorted(str(item["metadata"]["name"]) for item in found_in(api, path, listed).get("items") or ())
            except (KeyError, TypeError) as error:
                raise VimRefused(vim.auth_url, _NO_NAMESPACES) from error
            if any(len(name) > _LONGEST_NAME for name in names):
                raise VimRefused(vim.auth_url, _NO_NAMESPACES)
            return Verified(tuple(names[:_NAMESPACES]), version)

    async def check(self, vim: VimRecord) -> None:
        with translated_api_errors():
            await self.answering(vim)

    async def answering(self, vim: VimRecord) -> ClusterApi:
        """Return the client of a cluster, with a connection, once the cluster has accepted the credentials."""
        api = self.api(vim)
        # Not /version, which answers without valid credentials too.
        answer = await api.get("/api")
        if answer.status != 403:
            found_in(api, "/api", answer)
        return api

    def api(self, vim: VimRecord) -> ClusterApi:
        """Return the client of a cluster. Raises VimRefused."""
        connection = vim.connection
        session = self._vnf_session if connection.of_vnf else self._session
        try:
            return ClusterApi(session, connection, self._ring, timeout_s=self._timeout_s, tokens=self._tokens)
        except InvalidInput as error:  # in data that earlier releases stored
            raise VimRefused(vim.auth_url, str(error)) from error


def _supported(api: ClusterApi, answer: ApiAnswer, *, may_lack: bool) -> str:
    """Return the version of the server. Raises VimRefused, KubernetesTooOld.

    ``may_lack``: test servers of Cluster API serve no version, which is "" then (capi.md CR-060, CR-080).
    """
    if may_lack and answer.status == 404:
        return ""
    version = str(found_in(api, "/version", answer).get("gitVersion", ""))
    numbers = re.match(r"v([0-9]{1,9})\.([0-9]{1,9})", version)
    if numbers is None or len(version) > _LONGEST_VERSION:
        raise VimRefused(api.endpoint, "the server is not a Kubernetes API")
    if (int(numbers[1]), int(numbers[2])) < _OLDEST:
        raise KubernetesTooOld("auth_url", f"the cluster runs Kubernetes {version}; v1.25 or later expected")
    return version


def found_in(api: ClusterApi, path: str, answer: ApiAnswer) -> JsonObject:
    """Return the body of a successful answer. Raises VimUnauthorized, VimRefused."""
    if answer.status == 403:
        raise VimUnauthorized(api.endpoint, f"the API server forbids reading {path}")
    if not answer.is_success:
        raise VimRefused(api.endpoint, f"{path} answered {answer.status}, so it is not a Kubernetes API")
    return answer.body


@contextmanager
def translated_api_errors() -> Iterator[None]:
    """Raise this service's errors for those of the client."""
    try:
        yield
    except ApiUnauthorized as error:
        raise VimUnauthorized(error.place, error.reason) from error
    except TokenRefused as error:
        raise VimTokenRefused(error.place, error.reason) from error
    except ApiRefused as error:
        raise VimRefused(error.place, error.reason) from error
    except ProxyAway as error:
        raise VimBehindProxy(error.place, error.reason) from error
    except ApiUnavailable as error:
        raise VimUnreachable(error.place, error.reason) from error
