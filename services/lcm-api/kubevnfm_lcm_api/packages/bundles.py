"""Packages made of resource bundles of ONAP (multicloud.md MC-131): ordinary VNF packages, onboarded while a caller waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from kubevnfm_csar.bundle_facts import CHART, BundleFacts
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import InUse, NotFound, OutsideUnavailable, Unprocessable
from kubevnfm_kit.ids import derived_id
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.packages.catalogue import PackageBusy, Packages
from kubevnfm_lcm_api.packages.domain.ports import BundleArchives, PackageFiles
from kubevnfm_lcm_api.packages.onboarding import DescriptorTaken, Onboarding

_CHUNK: Final = 256 * 1024
_LONGEST_S: Final = 120.0
_ENABLED, _DISABLED = {"operationalState": "ENABLED"}, {"operationalState": "DISABLED"}


class BundleLate(OutsideUnavailable, code="package-late", title="Package not onboarded in time"):
    """The package of a bundle is not checked yet."""


class BundlePackages:
    """Makes, finds and removes the packages of bundles."""

    def __init__(
        self, catalogue: Packages, onboarding: Onboarding, files: PackageFiles, archives: BundleArchives
    ) -> None:
        self._catalogue, self._onboarding, self._files, self._archives = catalogue, onboarding, files, archives

    async def make(
        self, names: tuple[str, ...], content: bytes | None, *, base: str | None = None, chart_name: str = ""
    ) -> tuple[str, str]:
        """Return the id of the package of a bundle, onboarded and enabled, and the name of its chart.

        The same names, content and base have the same package. ``names``: of the definition, its version, and the profile;
        ``content``: the tar.gz of the definition, or with ``base`` that of a profile, None for one that changes nothing;
        ``base``: the package of the definition. Raises: Unprocessable; NotFound without the base; OutsideUnavailable.
        """
        chart = None if base is None else await self._chart_of(base)
        digest = sha256(content or b"").hexdigest()
        facts = BundleFacts(derived_id("onap-bundle", *names, chart_name, base or "", digest), names[0], names[1])
        async with self._archives.package(facts, content, chart, chart_name) as (file, name):
            with suppress(NotFound):
                return await self._enabled(facts), name
            package_id: str = (await self._catalogue.create({"resource_bundle": "/".join(names)}))["id"]
            await self._onboarding.upload(package_id, _chunks(file))
        stored = await self._checked(package_id)
        if stored.body["onboardingState"] == "ONBOARDED":
            return package_id, name
        await self._catalogue.delete(package_id)
        failure = stored.body.get("onboardingFailureDetails", {})
        if failure.get("type") == DescriptorTaken.code:
            # Another request with the same content was faster.
            return await self._enabled(facts), name
        raise Unprocessable("", str(failure.get("detail", "the package is refused")))

    async def _enabled(self, facts: BundleFacts) -> str:
        """Return the package that a bundle has already, enabled again if it was not. Raises NotFound."""
        package_id = (await self._catalogue.of_vnfd(facts.vnfd_id)).id
        if not await self.exists(package_id):
            with suppress(PackageBusy):  # another request has enabled it
                await self._set(package_id, _ENABLED)
        return package_id

    async def _chart_of(self, package_id: str) -> Path:
        await self._catalogue.get(package_id)
        return self._files.folder(package_id) / CHART

    async def _checked(self, package_id: str) -> Stored:
        """Return the package once it was checked. Another process may do that, so the store is asked: less and less often."""
        loop, looks, pauses = asyncio.get_running_loop(), 0, BackOff(0.05, 1.0)
        until = loop.time() + _LONGEST_S
        while loop.time() < until:
            stored = await self._catalogue.get(package_id)
            if stored.body["onboardingState"] in {"ONBOARDED", "ERROR"}:
                return stored
            looks += 1
            await asyncio.sleep(pauses.after(looks))
        raise BundleLate(f"VNF package {package_id} was not checked within {_LONGEST_S:g} s: send the content again")

    async def exists(self, package_id: str) -> bool:
        """Return whether there is a package of this id that instances can be made of."""
        try:
            stored = await self._catalogue.get(package_id)
        except NotFound:
            return False
        return bool(stored.body["operationalState"] == "ENABLED")

    async def check_unused(self, package_id: str) -> None:
        """Raise InUse if VNF instances are made of the package."""
        with suppress(NotFound):
            stored = await self._catalogue.get(package_id)
            if await self._catalogue.is_in_use(stored.body):
                raise InUse(f"VNF instances are made of it (VNF package {package_id})")

    async def remove(self, package_id: str, *, is_wanted: Callable[[], Awaitable[bool]]) -> None:
        """Delete a package, unless it is gone. Raises InUse.

        ``is_wanted``: asked once no instance can be made of the package; if it is, the package stays as it was.
        """
        await self.check_unused(package_id)
        try:
            with suppress(PackageBusy):  # it is disabled already, or was never enabled
                await self._set(package_id, _DISABLED)
            if await is_wanted():
                await self._set(package_id, _ENABLED)
            else:
                await self._catalogue.delete(package_id)
        except NotFound:
            return
        except PackageBusy as error:
            # An instance came between: it keeps a package that further ones can be made of.
            with suppress(PackageBusy, NotFound):
                await self._set(package_id, _ENABLED)
            raise InUse(str(error)) from error

    async def _set(self, package_id: str, state: dict[str, Any]) -> None:
        async def anyhow(_: Stored) -> None: ...

        await self._catalogue.modify(package_id, state, check=anyhow)


async def _chunks(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as content:
        while chunk := await asyncio.to_thread(content.read, _CHUNK):
            yield chunk
