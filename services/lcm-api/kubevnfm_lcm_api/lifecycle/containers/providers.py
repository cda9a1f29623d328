"""The providers of Cluster API that a package needs or brings, checked before anything is sent (capi.md CR-045, CR-046)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cachetools import LRUCache
from kubevnfm_clients.ports import Vims
from kubevnfm_csar.capi_providers import ROLE_BY_GROUP, contract_losses, providers_of
from kubevnfm_csar.placeholders import fill_in
from kubevnfm_events import CapiProviders, PackageRef
from kubevnfm_events.objects import Variables
from kubevnfm_kit.errors import NotFound, Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused

from kubevnfm_lcm_api.lifecycle.containers.manifests import package_texts
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.request_parameters import DEF_FILES

_FIELD: Final = f"additionalParams/{DEF_FILES}"
_CAPI: Final = "capi"
_REMEMBERED: Final = 1000
_SHOWN: Final[Mapping[str, tuple[str, str]]] = {
    "core": ("core", "core"),
    "bootstrap": ("bootstrap", "bootstrap"),
    "control_plane": ("controlPlane", "control plane"),
    "infrastructure": ("infrastructure", "infrastructure"),
}
"""The attribute of ``extra.capi``, and the word for people, by role."""


@dataclass(frozen=True)
class Described:
    """An object of a manifest."""

    file: str
    body: Mapping[str, Any]

    @property
    def api_version(self) -> str:
        return str(self.body.get("apiVersion") or "")

    @property
    def kind(self) -> tuple[str, str]:
        """Group and kind."""
        return self.api_version.rpartition("/")[0], str(self.body.get("kind") or "")


class ProviderChecks:
    """Compares the manifests of a package with what the cluster of the request has."""

    def __init__(self, packages: PackageCatalogue, vims: Vims) -> None:
        self._packages, self._vims = packages, vims
        self._are_concerned: LRUCache[tuple[str, tuple[str, ...]], bool] = LRUCache(_REMEMBERED)
        """Whether files of a package, whose content never changes, may name a group of Cluster API."""

    async def check_kinds(
        self, vim_id: str | None, package: PackageRef, files: Sequence[str], variables: Variables | None
    ) -> None:
        """Raise Unprocessable for a kind of Cluster API that the providers of the VIM do not have, or not in this version.

        A VIM without ``extra.capi`` is not checked: others have installed the providers there. Neither are URLs.
        """
        if vim_id is None or not await self._may_have_kinds(package.package_id, tuple(files)):
            return
        providers = await self._recorded(vim_id)
        if providers is None:
            return
        objects = await self._objects(package, files, variables)
        own = {
            (str(spec.get("group")), str((spec.get("names") or {}).get("kind")))
            for each in objects
            if each.body.get("kind") == "CustomResourceDefinition"
            and isinstance(spec := each.body.get("spec"), Mapping)
        }
        for each in objects:
            role = ROLE_BY_GROUP.get(each.kind[0])
            if role is not None and each.kind not in own:
                _check_kind(each, role, providers, f"VIM {vim_id}")

    async def check_contracts(
        self, before: CapiProviders | None, package: PackageRef, files: Sequence[str], variables: Variables | None
    ) -> None:
        """Raise Unprocessable if a package would bring providers back to an earlier contract. URLs are left to infra-k8s."""
        if before is None:
            return
        objects = await self._objects(package, files, variables)
        losses = contract_losses(before, providers_of(each.body for each in objects))
        if losses:
            raise Unprocessable("vnfdId", "; ".join(str(each) for each in losses))

    async def _may_have_kinds(self, package_id: str, files: tuple[str, ...]) -> bool:
        mine = package_id, files
        if mine not in self._are_concerned:
            texts = await package_texts(self._packages, package_id, files)
            self._are_concerned[mine] = any(_may_name_group(text) for _, text in texts)
        return self._are_concerned[mine]

    async def _recorded(self, vim_id: str) -> Mapping[str, Any] | None:
        try:
            record = await self._vims.get(vim_id)
        except NotFound:
            return None
        extra = record.get("extra")
        found = extra.get(_CAPI) if isinstance(extra, Mapping) else None
        return found if isinstance(found, Mapping) else None

    async def _objects(
        self, package: PackageRef, files: Sequence[str], variables: Variables | None
    ) -> Sequence[Described]:
        texts = await package_texts(self._packages, package.package_id, files)
        # In a thread, because the definitions of providers are megabytes.
        return await asyncio.to_thread(lambda: list(_read(texts, variables)))


def _may_name_group(text: str) -> bool:
    # YAML can write any character as an escape, which begins with a backslash.
    return "\\" in text or any(group in text for group in ROLE_BY_GROUP)


def _read(texts: Sequence[tuple[str, str]], variables: Variables | None) -> Iterator[Described]:
    """Yield the objects of manifests; a file that is no YAML is refused by infra-k8s, with its place."""
    # The values decide nothing here: no one writes a kind as a variable.
    filled = texts if variables is None else fill_in(texts, dict.fromkeys(variables, ""))
    for name, text in filled:
        try:
            documents = read_kubernetes_yaml(text)
        except YamlRefused:
            continue
        for document in documents:
            if isinstance(document, Mapping):
                items = document.get("items") if document.get("kind") == "List" else None
                members = items if isinstance(items, list) else [document]
                yield from (Described(name, each) for each in members if isinstance(each, Mapping))


def _check_kind(each: Described, role: str, providers: Mapping[str, Any], where: str) -> None:
    shown, word = _SHOWN[role]
    found = providers.get(shown)
    installed = [found] if isinstance(found, Mapping) else list(found or ())
    # Without the core provider, this is a part of the installation, and others have installed the rest.
    if not installed and providers.get("core") is None:
        return
    group, kind = each.kind
    versions = {
        version: provider
        for provider in installed
        for known in provider["kinds"]
        if (known["group"], known["kind"]) == (group, kind)
        for version in known["versions"]
    }
    version = each.api_version.rpartition("/")[2]
    if version in versions:
        return
    if versions:
        names = sorted({_named(provider) for provider in versions.values()})
        why = f"{', '.join(names)} there serves it as {', '.join(sorted(versions))}"
    else:
        kinds = [
            f"{_named(provider)} ({', '.join(one['kind'] for one in provider['kinds'])})" for provider in installed
        ]
        why = f"its {word} providers are {'; '.join(kinds) or 'none'}"
    raise Unprocessable(_FIELD, f"{each.file}: {kind} ({each.api_version}) does not fit {where}: {why}")


def _named(provider: Mapping[str, Any]) -> str:
    return " ".join(part for part in (provider["name"], provider["version"]) if part)
