"""Reads cloud regions from ONAP's A&AI (multicloud.md MC-078)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import aiohttp
from kubevnfm_clients.bounded import AnswerTooLarge, json_in, read_body
from kubevnfm_clients.cluster_access import ClusterAccess, cluster_tls
from kubevnfm_clients.multicloud.region_inventories import AaiInventory
from kubevnfm_clients.outbound import refusal_in
from kubevnfm_kit.client_session import proxy_failure
from kubevnfm_kit.cluster_trust import ClusterTrust
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.tls import tls_failure
from kubevnfm_secrets import KeyRing

from kubevnfm_vim_registry.domain.errors import InventoryAway, InventoryLost, InventoryRefused
from kubevnfm_vim_registry.domain.inventories import Pulled, text_at

_LARGEST: Final = 8 * 2**20
"""Bytes of an answer, which has all that A&AI knows below the region."""
_URL: Final = "inventory/url"
_LOGIN: Final = "inventory/user"


@dataclass(frozen=True)
class AaiRegions:
    """The cloud regions of A&AI. ``session`` connects to allowed addresses only and trusts the CAs of the settings."""

    session: aiohttp.ClientSession
    ring: KeyRing
    timeout_s: float

    async def read(self, owner: str, region: str, wanted: AaiInventory) -> Pulled:
        """Return the kubeconfig of a region. Raises InventoryRefused, InventoryLost, InventoryAway."""
        async with self._answer(owner, region, wanted) as response:
            status = response.status
            if status == 404:
                raise InventoryLost(_URL, f"A&AI has no cloud region {owner}/{region}")
            if status in {401, 403}:
                raise InventoryRefused(_LOGIN, f"A&AI answered {status}: the login is not accepted")
            if status >= 500 or status == 429:
                raise InventoryAway(_URL, f"A&AI answered {status}")
            if status != 200:
                raise InventoryRefused(_URL, f"A&AI answered {status}")
            raw = await read_body(response, limit_bytes=_LARGEST)
        # In a thread: megabytes take a noticeable time.
        return Pulled(await asyncio.to_thread(_kubeconfig, raw, wanted.path))

    @asynccontextmanager
    async def _answer(self, owner: str, region: str, wanted: AaiInventory) -> AsyncIterator[aiohttp.ClientResponse]:
        path = f"cloud-infrastructure/cloud-regions/cloud-region/{quote(owner, safe='')}/{quote(region, safe='')}"
        url = f"{wanted.url.rstrip('/')}/aai/v{wanted.version}/{path}?depth=all"
        try:
            async with self.session.get(
                url,
                headers={**self._login(wanted), **_HEADERS, "X-TransactionId": new_id()},
                ssl=await self._tls(wanted),
                timeout=aiohttp.ClientTimeout(total=self.timeout_s),
                allow_redirects=False,  # a redirect would carry the login to another server
            ) as response:
                yield response
        except AnswerTooLarge as error:
            raise InventoryRefused(_URL, f"A&AI: {error}") from error
        except (ssl.SSLError, aiohttp.ClientSSLError) as error:
            raise InventoryRefused("inventory/ca", f"A&AI: {tls_failure(str(error))}") from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            if (refusal := refusal_in(error)) is not None:
                raise InventoryRefused(_URL, refusal) from error
            if (failure := proxy_failure(error)) is not None:
                raise InventoryAway(_URL, f"A&AI is not reached: {failure}") from error
            raise InventoryAway(_URL, f"A&AI does not answer: {type(error).__name__}") from error

    def _login(self, wanted: AaiInventory) -> JsonMapping:
        if wanted.user is None:
            return {}
        password = wanted.password.reveal(self.ring) if wanted.password is not None else ""
        return {"Authorization": aiohttp.encode_basic_auth(wanted.user, password, encoding="utf-8")}

    async def _tls(self, wanted: AaiInventory) -> ssl.SSLContext | bool:
        if not (wanted.ca or wanted.client_certificate or wanted.client_key):
            return True
        key = wanted.client_key.reveal(self.ring) if wanted.client_key is not None else ""
        access = ClusterAccess(
            endpoint=wanted.url,
            trust=ClusterTrust(wanted.ca or ""),
            client_certificate=wanted.client_certificate or "",
            client_key=key,
        )
        try:
            return await cluster_tls(access)
        except InvalidInput as error:
            raise InventoryRefused(
                "inventory/client_certificate", "ca, client_certificate, client_key: matching PEM texts expected"
            ) from error


_HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity", "X-FromAppId": "kubevnfm"}


def _kubeconfig(raw: bytes, pointer: str) -> str:
    document = json_in(raw)
    if not isinstance(document, dict):
        raise InventoryRefused(_URL, "A&AI: a JSON object expected in the answer")
    return text_at(document, pointer)
