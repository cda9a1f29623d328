"""Packages fetched over HTTP (SOL005 9.4.6): a few redirects, Basic or OAuth 2.0 client credentials, streamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import aiohttp
from kubevnfm_clients.client_tokens import Client, ClientTokens, NoToken
from kubevnfm_csar.oci_references import is_reference
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing, Secret
from yarl import URL

from kubevnfm_lcm_api.packages.adapters.catalogues import CatalogueSource
from kubevnfm_lcm_api.packages.adapters.chart_repositories import HttpChartRepositories
from kubevnfm_lcm_api.packages.adapters.registries import Registries
from kubevnfm_lcm_api.packages.adapters.transfers import SourceFailed, Target, Transfers
from kubevnfm_lcm_api.packages.artifact_settings import ArtifactSettings
from kubevnfm_lcm_api.packages.domain.ports import Checksum, Content


class HttpPackageSources:
    """`domain.ports.PackageSources` over a session that checks its addresses."""

    def __init__(
        self, session: aiohttp.ClientSession, artifacts: ArtifactSettings, *, ring: KeyRing, longest_s: float
    ) -> None:
        """``longest_s``: for one package, from the first connection to the last byte; on demand, ``artifacts`` says so."""
        self._session, self._ring, self._longest_s, self._artifacts = session, ring, longest_s, artifacts
        self._transfers, self._tokens = Transfers(session), ClientTokens()
        self._hosts = frozenset(each.strip() for each in artifacts.artifact_hosts.split(",") if each.strip())
        self._catalogue = CatalogueSource(self._transfers, self._tokens, artifacts, self._hosts)
        self._registries = Registries(self._transfers, artifacts, self._hosts)
        self.repositories = HttpChartRepositories(self._transfers, self._hosts)
        """The repositories of charts, by the same session and settings."""

    @asynccontextmanager
    async def open(self, source: JsonMapping) -> AsyncIterator[Content]:
        is_on_demand = any(name in source for name in ("catalogue", "oci", "chart", "sha256", "checksum"))
        longest_s = self._artifacts.artifact_timeout_s if is_on_demand else self._longest_s
        try:
            async with asyncio.timeout(longest_s):
                content = await self._content(source)
                # Closes the connection, also if the content is not read to its end.
                async with aclosing(content.chunks):
                    yield content
        except TimeoutError as error:
            raise SourceFailed(self._address(source), "it took too long") from error

    async def _content(self, source: JsonMapping) -> Content:
        if "catalogue" in source:
            return await self._catalogue.content(source["catalogue"])
        if "oci" in source:
            return await self._registries.package(source["oci"], source["digest"])
        if is_reference(source.get("chart")):
            return await self._registries.chart(source["chart"], source["digest"], limit_bytes=source["limit_bytes"])
        uri = self._address(source)
        sha256 = source["digest"].removeprefix("sha256:") if "chart" in source else source.get("sha256")
        checksum = Checksum("sha256", sha256) if sha256 is not None else source.get("checksum")
        # An artifact of a package may be redirected as a package: its digest identifies it, and its server alone gets credentials.
        hosts = None if sha256 is None else self._hosts
        target = Target(uri, await self._authorization(source), hosts=hosts)
        response = await self._transfers.content(target)
        return Content(self._transfers.chunks(target, response, checksum=checksum), response.content_length)

    def _address(self, source: JsonMapping) -> URL:
        if "catalogue" in source:
            return self._catalogue.address(source["catalogue"])
        named = next((source[name] for name in ("oci", "chart") if name in source), None)
        return URL(self._plain(source["uri"]) if named is None else named)

    async def _authorization(self, source: JsonMapping) -> str | None:
        """Return the Authorization header."""
        if "paramsOauth2ClientCredentials" in source:
            return f"Bearer {await self._token(source['paramsOauth2ClientCredentials'])}"
        if "userName" in source:
            return aiohttp.encode_basic_auth(source["userName"], self._plain(source.get("password", "")))
        return None

    async def _token(self, params: JsonMapping) -> str:
        """Return an access token for the client's credentials."""
        endpoint = self._plain(params["tokenEndpoint"])
        client = Client(endpoint, self._plain(params["clientId"]), self._plain(params["clientPassword"]))
        try:
            return await self._tokens.token(client, self._session)
        except NoToken as error:
            raise SourceFailed(URL(endpoint), str(error)) from error

    def _plain(self, value: Any) -> str:
        return value.reveal(self._ring) if isinstance(value, Secret) else str(value)
