"""The access data of cloud regions: read from the kubeconfig of a request, or of an inventory (multicloud.md MC-074, MC-078)."""

from __future__ import annotations

import asyncio
import base64
import binascii
from dataclasses import dataclass

from kubevnfm_clients.callback import sha256_hex
from kubevnfm_clients.kubeconfig import Allowed, ContextAccess, context_access
from kubevnfm_clients.multicloud.region_inventories import ClusterProfileInventory, RegionInventory
from kubevnfm_clients.multicloud.regions import KUBECONFIG_BYTES, Kubeconfig, OidcClient
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import KeyRing

from kubevnfm_vim_registry.domain.errors import InventoryAway, InventoryRefused
from kubevnfm_vim_registry.domain.inventories import InventoryState, Pulled, state_of
from kubevnfm_vim_registry.domain.ports import AaiInventories, ProfileInventories
from kubevnfm_vim_registry.domain.record import VimRecord, auth_cred_of
from kubevnfm_vim_registry.domain.region import RegionFacts
from kubevnfm_vim_registry.records import VimRecords


@dataclass(frozen=True)
class GivenAccess:
    """The access data of a region, and where they come from."""

    sha256: str
    """The hash of the kubeconfig."""
    access: ContextAccess
    inventory: RegionInventory | None = None
    state: InventoryState | None = None

    def given_to(self, vim: VimRecord) -> VimRecord:
        """Return a record with these access data, whose end has not been published."""
        assert vim.region is not None
        connection = self.access.connection
        facts = {
            "context": self.access.context,
            "proxy_url": self.access.proxy_url,
            "inventory": self.inventory,
            "inventory_state": self.state and self.state.since_when(vim.region.inventory_state),
        }
        return vim.model_copy(
            update={
                "auth_url": str(connection.interface_info["endpoint"]).rstrip("/"),
                "auth_cred": auth_cred_of(connection),
                "content_sha256": self.sha256,
                "expiry_reported_days": None,
                "region": vim.region.model_copy(update=facts),
            }
        )


class RegionAccess:
    """Reads kubeconfigs of regions."""

    def __init__(
        self,
        records: VimRecords,
        aai: AaiInventories,
        profiles: ProfileInventories,
        ring: KeyRing,
        allowed: Allowed,
        timeout_s: float,
    ) -> None:
        """``allowed``: what kubeconfigs may have; ``timeout_s``: time limit for all calls to an inventory."""
        self._records, self._aai, self._profiles, self._ring = records, aai, profiles, ring
        self._allowed, self._timeout_s = allowed, timeout_s

    async def given(self, wanted: Kubeconfig, facts: RegionFacts) -> GivenAccess:
        """Return what a request gives to a region. Raises Unprocessable."""
        if wanted.inventory is not None:
            return await self.pulled(facts, wanted.inventory, wanted.context)
        if wanted.kubeconfig is None:
            raise Unprocessable("kubeconfig", "a kubeconfig, or inventory, expected")
        try:
            raw = base64.b64decode(wanted.kubeconfig.reveal(self._ring), validate=True)
            text = raw.decode()
        except (binascii.Error, ValueError):
            raise Unprocessable("kubeconfig", "base64 of a kubeconfig expected") from None
        if len(raw) > KUBECONFIG_BYTES:
            raise Unprocessable("kubeconfig", f"at most {KUBECONFIG_BYTES} bytes expected")
        return GivenAccess(sha256_hex(raw), await self._read(text, wanted.context, _login(wanted.oidc)))

    async def pulled(self, facts: RegionFacts, inventory: RegionInventory, context: str | None) -> GivenAccess:
        """Return what an inventory gives to a region. Raises InventoryRefused, InventoryLost, InventoryAway, Unprocessable."""
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await self._pull(facts, inventory)
        except TimeoutError as error:
            raise InventoryAway("inventory", f"it did not answer within {self._timeout_s:g} s") from error
        try:
            access = await self._read(found.kubeconfig, context, None)
        except Unprocessable as error:
            place = "context" if error.field == "context" else "inventory"
            raise InventoryRefused(place, f"its kubeconfig: {error.reason}") from None
        state = state_of(found, context, self._records.now())
        return GivenAccess(sha256_hex(found.kubeconfig.encode()), access, inventory, state)

    async def _pull(self, facts: RegionFacts, inventory: RegionInventory) -> Pulled:
        if not isinstance(inventory, ClusterProfileInventory):
            return await self._aai.read(facts.cloud_owner, facts.cloud_region, inventory)
        hub = await self._records.region(inventory.cloud_region_id)
        if hub is None or facts.id == inventory.cloud_region_id:
            raise InventoryRefused("inventory/cloud_region_id", "the id of another registered region expected")
        return await self._profiles.read(hub.vim, inventory)

    async def _read(self, text: str, context: str | None, login: JsonObject | None) -> ContextAccess:
        # In a thread: a file of this size takes a noticeable time.
        return await asyncio.to_thread(context_access, text, context=context, allowed=self._allowed, login=login)


def _login(client: OidcClient | None) -> JsonObject | None:
    """Return the access data of a client of an OpenID provider."""
    if client is None:
        return None
    return {
        "oidc_token_url": client.token_url,
        "client_id": client.client_id,
        "client_secret": client.client_secret,
        "oidc_scope": client.scope,
    }
