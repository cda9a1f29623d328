"""Reads ClusterProfiles from the clusters that manage them (multicloud.md MC-078)."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_clients.kubeconfig import Allowed, context_access
from kubevnfm_clients.multicloud.region_inventories import ClusterProfileInventory
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import KeyRing, revealed

from kubevnfm_vim_registry.adapters.kubernetes import KubernetesProbe, translated_api_errors
from kubevnfm_vim_registry.domain.errors import (
    InventoryAway,
    InventoryLost,
    InventoryRefused,
    VimRefused,
    VimUnauthorized,
    VimUnreachable,
)
from kubevnfm_vim_registry.domain.inventories import Provider, Pulled, described, in_secret, kubeconfig_in, providers_of
from kubevnfm_vim_registry.domain.record import VimRecord

_PROFILES: Final = "/apis/multicluster.x-k8s.io/v1alpha1"
_OF_PROFILE: Final = "x-k8s.io/cluster-profile"
_OF_CONSUMER: Final = "x-k8s.io/cluster-inventory-consumer"
_LONGEST_VALUE: Final = 63
"""Characters of the value of a label."""
_OF_SECRET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")
_MOST_NAMESPACES: Final = 10
_HUB: Final = "inventory/cloud_region_id"
_NAME: Final = "inventory/name"
_CONSUMER: Final = "inventory/consumer"


@dataclass(frozen=True)
class ClusterProfiles:
    """The ClusterProfiles of registered regions."""

    clusters: KubernetesProbe
    ring: KeyRing

    async def read(self, hub: VimRecord, wanted: ClusterProfileInventory) -> Pulled:
        """Return the kubeconfig of a profile, its labels and properties.

        Raises InventoryRefused, InventoryLost, InventoryAway.
        """
        with _as_inventory(hub):
            api = self.clusters.api(hub)
            path = f"{_PROFILES}/namespaces/{quote(wanted.namespace, safe='')}/clusterprofiles/{quote(wanted.name, safe='')}"
            profile = await _read(api, path)
            if profile is None:
                raise InventoryLost(_NAME, f"{hub.name} has no ClusterProfile {wanted.namespace}/{wanted.name}")
            consumers = await _consumers(api, wanted.consumer)
            kubeconfig = await _of_label(api, consumers, wanted.name)
            if not kubeconfig:
                kubeconfig = await self._of_providers(api, providers_of(profile), consumers, wanted)
            return described(profile, kubeconfig)

    async def _of_providers(
        self, api: ClusterApi, providers: Sequence[Provider], consumers: Sequence[str], wanted: ClusterProfileInventory
    ) -> str:
        for provider in providers:
            if provider.name == "secretreader":
                names = (consumers, provider.text("clusterName", wanted.name), ("token",))
                if token := await _in_secrets(api, *names):
                    return provider.kubeconfig({"token": token.strip()})
            elif provider.name == "kubeconfig-secretreader":
                if (named := provider.text("namespace")) not in {"", *consumers}:
                    # The author of the profile chooses the server, and must not choose whose credentials are sent there.
                    raise InventoryRefused(_CONSUMER, "kubeconfig-secretreader: a namespace of the consumer expected")
                places = [named] if named else consumers
                keys = (provider.text("key", "value"),)
                if kubeconfig := await _in_secrets(api, places, provider.text("name", wanted.name), keys):
                    # In a thread: a file of this size takes a noticeable time.
                    user = await asyncio.to_thread(self._user, kubeconfig_in(kubeconfig), provider.text("context"))
                    return provider.kubeconfig(user)
        offered = ", ".join(provider.name for provider in providers[:10]) or "none"
        raise InventoryRefused(
            _NAME,
            f"a Secret with the label {_OF_PROFILE} in a namespace of the consumer, or a Secret of the providers secretreader and "
            f"kubeconfig-secretreader, expected; providers that need a program are not run; the profile offers: {offered}",
        )

    def _user(self, kubeconfig: str, context: str) -> JsonObject:
        """Return the user of a context, as an entry of a kubeconfig has it. Raises InventoryRefused."""
        try:
            found = context_access(kubeconfig, context=context or None, allowed=Allowed(True, True))
        except Unprocessable as error:
            raise InventoryRefused(_NAME, f"the Secret of kubeconfig-secretreader: {error.reason}") from None
        access: Mapping[str, str] = revealed(found.connection.access_info, self.ring)
        if access.get("bearer_token"):
            return {"token": access["bearer_token"]}
        return {
            "client-certificate-data": _encoded(access["client_certificate"]),
            "client-key-data": _encoded(access["client_key"]),
        }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def _as_inventory(hub: VimRecord) -> Iterator[None]:
    """Raise the errors of inventories for those of the hub's cluster."""
    try:
        with translated_api_errors():
            yield
    except VimUnreachable as error:
        raise InventoryAway(_HUB, str(error)) from error
    except (VimUnauthorized, VimRefused) as error:
        raise InventoryRefused(_HUB, str(error)) from error


async def _read(api: ClusterApi, path: str) -> JsonMapping | None:
    """Return what is at a path, None if nothing is. Raises InventoryRefused if it may not be read."""
    answer = await api.get(path)
    if answer.status == 404:
        return None
    if not answer.is_success:
        raise InventoryRefused(_HUB, answer.message)
    return answer.body


async def _listed(api: ClusterApi, path: str, label: str, value: str, limit: int) -> Sequence[JsonMapping]:
    query = urlencode({"labelSelector": f"{label}={value}", "limit": str(limit)})
    items = (await _read(api, f"{path}?{query}") or {}).get("items")
    return [each for each in items if isinstance(each, Mapping)] if isinstance(items, list) else []


async def _consumers(api: ClusterApi, consumer: str) -> Sequence[str]:
    """Return the namespaces of a consumer. Raises InventoryRefused if there are many."""
    found = await _listed(api, "/api/v1/namespaces", _OF_CONSUMER, consumer, _MOST_NAMESPACES + 1)
    if len(found) > _MOST_NAMESPACES:
        raise InventoryRefused(
            _CONSUMER, f"at most {_MOST_NAMESPACES} namespaces with {_OF_CONSUMER}={consumer} expected"
        )
    named = [each["metadata"] for each in found if isinstance(each.get("metadata"), Mapping)]
    return sorted(str(metadata.get("name", "")) for metadata in named)


async def _of_label(api: ClusterApi, consumers: Sequence[str], profile: str) -> str:
    """Return the kubeconfig that the label of its Secret gives to a profile; empty: there is none. Raises InventoryRefused."""
    if len(profile) > _LONGEST_VALUE:
        return ""
    found = list[JsonMapping]()
    for namespace in consumers:
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets"
        found += await _listed(api, path, _OF_PROFILE, profile, 2)
    if len(found) > 1:
        raise InventoryRefused(_CONSUMER, f"one Secret with {_OF_PROFILE}={profile} expected, more found")
    return kubeconfig_in(in_secret(found[0], "Config", "config")) if found else ""


async def _in_secrets(api: ClusterApi, namespaces: Sequence[str], name: str, keys: Sequence[str]) -> str:
    """Return the text of a key of the first Secret of this name; empty: there is none. Raises InventoryRefused."""
    # The author of the profile gives it, and it becomes a part of a path.
    if not _OF_SECRET.fullmatch(name):
        raise InventoryRefused(_NAME, "its provider: the name of a Secret expected")
    for namespace in namespaces:
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets/{quote(name, safe='')}"
        if (secret := await _read(api, path)) and (text := in_secret(secret, *keys)):
            return text
    return ""
