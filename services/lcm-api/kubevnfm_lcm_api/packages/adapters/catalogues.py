"""The operator's catalogue of packages: the VNF package API of SOL003 and SOL005, or ONAP SDC (multicloud.md MC-122)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import aiohttp
from kubevnfm_clients.bounded import json_in
from kubevnfm_clients.client_tokens import Client, ClientTokens, NoToken
from yarl import URL

from kubevnfm_lcm_api.packages.adapters.transfers import SourceFailed, Target, Transfers
from kubevnfm_lcm_api.packages.artifact_settings import ArtifactSettings
from kubevnfm_lcm_api.packages.domain.ports import Checksum, Content

_INFO_BYTES: Final = 4 * 2**20
_ALGORITHMS: Final = {"sha256": ("sha256", 64), "sha384": ("sha384", 96), "sha512": ("sha512", 128)}
"""By the names of IANA's registry for checksums, without dashes and in small letters: the length of each in hex."""


@dataclass(frozen=True)
class CatalogueSource:
    """Fetches packages of one catalogue by their ids."""

    transfers: Transfers
    tokens: ClientTokens
    settings: ArtifactSettings
    hosts: frozenset[str]

    def address(self, csar_id: str) -> URL:
        """Return the address of the package's content. Its id has no characters that mean something there."""
        root, name = (self.settings.artifact_catalogue_url or "").rstrip("/"), quote(csar_id, safe="")
        if self.settings.artifact_catalogue_kind == "sdc":
            return URL(f"{root}/sdc/v1/catalog/resources/{name}/toscaModel", encoded=True)
        return URL(f"{root}/vnf_packages/{name}/package_content", encoded=True)

    async def content(self, csar_id: str) -> Content:
        """Return the content of a package. Raises SourceFailed."""
        uri = self.address(csar_id)
        if self.settings.artifact_catalogue_url is None:
            raise SourceFailed(
                URL("catalogue:"), "no catalogue is configured any more (setting artifact_catalogue_url)"
            )
        authorization, headers = await self._authorization(uri), {}
        if self.settings.artifact_catalogue_kind == "sdc":
            headers = {"X-ECOMP-InstanceID": self.settings.artifact_catalogue_instance}
        target = Target(uri, authorization, headers, self.hosts)
        checksum = None
        if self.settings.artifact_catalogue_kind == "sol":
            checksum = await self._checksum(
                Target(uri.parent, authorization, {"Accept": "application/json"}, self.hosts)
            )
        response = await self.transfers.content(target)
        return Content(self.transfers.chunks(target, response, checksum=checksum), response.content_length)

    async def _checksum(self, target: Target) -> Checksum | None:
        """Return the checksum that the catalogue has for a package; None: it has none. Raises SourceFailed."""
        response, raw = await self.transfers.body(target, limit_bytes=_INFO_BYTES)
        if response.status != 200:
            raise SourceFailed(target.uri, f"it answered {response.status}, 200 expected")
        info = await asyncio.to_thread(json_in, raw)
        if not isinstance(info, Mapping):
            raise SourceFailed(target.uri, "it did not answer with the attributes of a package")
        if info.get("onboardingState", "ONBOARDED") != "ONBOARDED" or info.get("operationalState") == "DISABLED":
            raise SourceFailed(target.uri, "the package is not ONBOARDED and ENABLED there")
        given = info.get("checksum")
        if given is None:
            return None
        name = str(given.get("algorithm", "")) if isinstance(given, Mapping) else ""
        algorithm, length = _ALGORITHMS.get(name.replace("-", "").lower(), ("", 0))
        found = str(given.get("hash", "")).lower() if isinstance(given, Mapping) else ""
        if not algorithm or len(found) != length:
            raise SourceFailed(
                target.uri, "its checksum of the package is not understood: SHA-256, 384 or 512 expected"
            )
        return Checksum(algorithm, found)

    async def _authorization(self, uri: URL) -> str | None:
        settings = self.settings
        password = settings.artifact_catalogue_password.get_secret_value()
        if settings.artifact_catalogue_token_url is not None:
            client = Client(settings.artifact_catalogue_token_url, settings.artifact_catalogue_user, password)
            try:
                return f"Bearer {await self.tokens.token(client, self.transfers.session)}"
            except NoToken as error:
                raise SourceFailed(uri, str(error)) from error
        if settings.artifact_catalogue_user:
            return aiohttp.encode_basic_auth(settings.artifact_catalogue_user, password)
        return None
