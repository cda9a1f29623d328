"""The definitions and profiles of resource bundles: documents that name the packages made of them (multicloud.md MC-131)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Protocol

from kubevnfm_clients.multicloud.types import MultiCloudRequest, NamespaceName
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, InUse, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Exists, Filter, Index, Query, Stored, by
from pydantic import Field, StringConstraints

from kubevnfm_lcm_api.multicloud.vnf_types import ReleaseName

DEFINITIONS: Final = "onap_definitions"
PROFILES: Final = "onap_profiles"
INDEXES: Final = {
    DEFINITIONS: [Index(["rb-name"])],
    PROFILES: [Index(["definition"]), Index(["package"], sparse=True)],
}
DEFAULT: Final = "default"
_PAGE: Final = 500

BundleName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")]
LabelText = Annotated[str, StringConstraints(max_length=1024)]
Labels = Annotated[dict[LabelText, LabelText], Field(max_length=100)]


class Definition(MultiCloudRequest):
    """A definition, as ONAP sends and shows it."""

    rb_name: Annotated[BundleName, Field(alias="rb-name")]
    rb_version: Annotated[BundleName, Field(alias="rb-version")]
    chart_name: Annotated[BundleName | None, Field(alias="chart-name")] = None
    description: Annotated[str, StringConstraints(max_length=1024)] | None = None
    labels: Labels | None = None


class Profile(MultiCloudRequest):
    """A profile, as ONAP sends and shows it."""

    rb_name: Annotated[BundleName, Field(alias="rb-name")]
    rb_version: Annotated[BundleName, Field(alias="rb-version")]
    profile_name: Annotated[BundleName, Field(alias="profile-name")]
    release_name: Annotated[ReleaseName | None, Field(alias="release-name")] = None
    namespace: NamespaceName | None = None
    labels: Labels | None = None


class BundlePackages(Protocol):
    """Makes and removes the packages of bundles: `packages.bundles`."""

    async def make(
        self, names: tuple[str, ...], content: bytes | None, *, base: str | None = None, chart_name: str = ""
    ) -> tuple[str, str]:
        """Return the id of the package, and the name of its chart. Raises Unprocessable, NotFound, OutsideUnavailable."""
        ...

    async def exists(self, package_id: str) -> bool:
        """Return whether instances can be made of the package."""
        ...

    async def check_unused(self, package_id: str) -> None:
        """Raise InUse if instances are made of the package."""
        ...

    async def remove(self, package_id: str) -> None:
        """Delete the package, unless it is gone. Raises InUse."""
        ...


@dataclass(frozen=True)
class Found:
    """A stored definition or profile."""

    stored: Stored
    body: JsonMapping
    """As it is shown."""

    @property
    def package_id(self) -> str | None:
        """The package that was made of its content."""
        return self.stored.body.get("package")


class Bundles:
    """Keeps definitions and profiles, and makes their packages."""

    def __init__(self, store: DocumentStore, clock: Clock, packages: BundlePackages) -> None:
        self._store, self._clock, self._packages = store, clock, packages

    # --- definitions --------------------------------------------------------------------------------------------------

    async def define(self, wanted: Definition) -> JsonMapping:
        """Store a new definition, with its profile ``default``. Raises Conflict."""
        names = (wanted.rb_name, wanted.rb_version)
        usual = Profile.model_validate(
            {"rb-name": names[0], "rb-version": names[1], "profile-name": DEFAULT, "namespace": DEFAULT}
        )
        body = _shown(wanted)
        if await self._store.get(DEFINITIONS, _id(*names)) is None:
            # Before the definition, which makes it seen: after a crash the repeat finds it.
            await self._insert(PROFILES, _id(*names, DEFAULT), {**_shown(usual), "definition": _id(*names)}, again=True)
        await self._insert(DEFINITIONS, _id(*names), body)
        return body

    async def definition(self, name: str, version: str) -> Found:
        """Return a definition. Raises NotFound."""
        return await self._get(DEFINITIONS, f"definition {name} {version}", name, version)

    async def definitions(self, name: str | None = None) -> Sequence[JsonMapping]:
        """Return all definitions, or those of a name."""
        wanted = AllOf() if name is None else by(**{"rb-name": name})
        return [each.body async for each in self._all(DEFINITIONS, wanted)]

    async def redefine(self, name: str, version: str, wanted: Definition) -> JsonMapping:
        """Replace the facts of a definition. Raises NotFound, Unprocessable, Conflict."""
        found = await self.definition(name, version)
        _check_names(found, wanted)
        chart = found.body.get("chart-name")
        if found.package_id is not None and wanted.chart_name not in (None, chart):
            raise Unprocessable("chart-name", f"{chart}, which the content has, expected")
        named = {} if chart is None or found.package_id is None else {"chart-name": chart}
        return await self._replace(DEFINITIONS, found, {**_shown(wanted), **named})

    async def upload(self, name: str, version: str, content: bytes) -> None:
        """Store the content of a definition. Raises NotFound, Unprocessable, InUse, Conflict, OutsideUnavailable."""
        found = await self.definition(name, version)
        # One that was found in the content is not asked for: the same content would be another bundle.
        named = "" if found.stored.body.get("chart-found") else found.body.get("chart-name") or ""
        made, chart = await self._packages.make((name, version), content, chart_name=named)
        if made == found.package_id:
            return
        profiles = [each async for each in self._profiles(found)]
        try:
            if found.package_id is not None:
                await self._check_replaceable(found, profiles)
        except Conflict:
            await self._packages.remove(made)
            raise
        await self._point(DEFINITIONS, found, {"package": made, "chart-name": chart, "chart-found": not named})
        for each in profiles:
            if each.package_id is not None:
                await self._point(PROFILES, each, {}, unset=("package",))
        for old in (found, *profiles):
            await self._drop(old.package_id)

    async def _check_replaceable(self, found: Found, profiles: Sequence[Found]) -> None:
        """Raise Conflict if the content of a definition must stay: packages are made of it that nothing could make again."""
        for each in profiles:
            if each.stored.body.get("has-content"):
                name = each.body["profile-name"]
                raise Conflict(f"the content of profile {name} was made for the present one: delete the profile first")
        for old in (found, *profiles):
            if old.package_id is not None:
                await self._packages.check_unused(old.package_id)

    async def undefine(self, name: str, version: str) -> None:
        """Delete a definition with its profiles. Raises NotFound, InUse."""
        found = await self.definition(name, version)
        profiles = [each async for each in self._profiles(found)]
        for each in (found, *profiles):
            if each.package_id is not None:
                await self._packages.check_unused(each.package_id)
        for each in profiles:
            await self._remove(PROFILES, each)
        await self._remove(DEFINITIONS, found)

    # --- profiles -----------------------------------------------------------------------------------------------------

    async def add_profile(self, name: str, version: str, wanted: Profile) -> JsonMapping:
        """Store a new profile. Raises NotFound without its definition, Unprocessable, Conflict."""
        found = await self.definition(name, version)
        _check_names(found, wanted)
        body = _shown(wanted)
        profile_id = _id(name, version, wanted.profile_name)
        await self._insert(PROFILES, profile_id, {**body, "definition": found.stored.id})
        return body

    async def profile(self, name: str, version: str, profile: str) -> Found:
        """Return a profile. Raises NotFound."""
        return await self._get(PROFILES, f"profile {profile} of {name} {version}", name, version, profile)

    async def profiles(self, name: str, version: str) -> Sequence[JsonMapping]:
        """Return the profiles of a definition. Raises NotFound."""
        found = await self.definition(name, version)
        return [each.body async for each in self._profiles(found)]

    async def change_profile(self, name: str, version: str, profile: str, wanted: Profile) -> JsonMapping:
        """Replace the facts of a profile; VNFs keep theirs. Raises NotFound, Unprocessable, Conflict."""
        found = await self.profile(name, version, profile)
        _check_names(found, wanted)
        return await self._replace(PROFILES, found, _shown(wanted))

    async def upload_profile(self, name: str, version: str, profile: str, content: bytes) -> None:
        """Store the content of a profile. Raises as `upload`."""
        found = await self.profile(name, version, profile)
        made = await self._made(found, content)
        if made == found.package_id:
            return
        try:
            if found.package_id is not None:
                await self._packages.check_unused(found.package_id)
        except InUse:
            await self._packages.remove(made)
            raise
        await self._point(PROFILES, found, {"package": made, "has-content": True})
        await self._drop(found.package_id)

    async def remove_profile(self, name: str, version: str, profile: str) -> None:
        """Delete a profile. Raises NotFound, InUse."""
        await self._remove(PROFILES, await self.profile(name, version, profile))

    async def package_of(self, found: Found) -> str:
        """Return the package of a profile; one without content has the definition's chart as it is.

        Raises Unprocessable if the definition has no content; OutsideUnavailable.
        """
        if found.package_id is not None and await self._packages.exists(found.package_id):
            return found.package_id
        if found.stored.body.get("has-content"):
            raise Unprocessable(
                "profile-name", "the package of the profile is gone or disabled: send its content again"
            )
        made = await self._made(found, None)
        if made != found.package_id:
            try:
                await self._point(PROFILES, found, {"package": made})
            except Conflict:
                # Another request has made the same.
                again = await self._store.get(PROFILES, found.stored.id)
                if again is None or again.body.get("package") != made:
                    raise
        return made

    async def of_package(self, package_id: str) -> Found | None:
        """Return the profile that a package was made of; None if it was made otherwise."""
        wanted = AllOf([by(package=package_id), Exists("package")])
        stored = await self._store.find(PROFILES, Query(wanted, limit=1))
        return _found(stored[0]) if stored else None

    async def packages(self, wanted: JsonMapping) -> Sequence[str]:
        """Return the packages of the profiles with these members."""
        chosen = AllOf([by(**wanted), Exists("package")])
        return [each.package_id async for each in self._all(PROFILES, chosen) if each.package_id is not None]

    # --- both ---------------------------------------------------------------------------------------------------------

    async def _made(self, found: Found, content: bytes | None) -> str:
        names = tuple(str(found.body[each]) for each in ("rb-name", "rb-version", "profile-name"))
        definition = await self.definition(names[0], names[1])
        if definition.package_id is None or not await self._packages.exists(definition.package_id):
            raise Unprocessable("rb-name", f"definition {names[0]} {names[1]} has no content")
        chart = str(definition.body["chart-name"])
        made, _ = await self._packages.make(names, content, base=definition.package_id, chart_name=chart)
        return made

    def _profiles(self, definition: Found) -> AsyncIterator[Found]:
        return self._all(PROFILES, by(definition=definition.stored.id))

    async def _all(self, collection: str, wanted: Filter) -> AsyncIterator[Found]:
        after: tuple[str, str] | None = None
        while batch := await self._store.find(collection, Query(wanted, after=after, limit=_PAGE)):
            for each in batch:
                yield _found(each)
            after = (batch[-1].id, batch[-1].id)

    async def _get(self, collection: str, what: str, *names: str) -> Found:
        stored = await self._store.get(collection, _id(*names))
        if stored is None:
            raise NotFound(f"{what} does not exist")
        return _found(stored)

    async def _insert(self, collection: str, id: str, body: JsonMapping, *, again: bool = False) -> None:
        try:
            await self._store.insert(collection, id, {**body, "created-at": rfc3339(self._clock.now())})
        except AlreadyExists as error:
            if not again:
                raise Conflict("it exists already") from error

    async def _replace(self, collection: str, found: Found, body: JsonMapping) -> JsonMapping:
        own_members = {name: value for name, value in found.stored.body.items() if name in _OWN}
        try:
            await self._store.replace(
                collection, found.stored.id, {**body, **own_members}, if_revision=found.stored.revision
            )
        except RevisionConflict as error:
            raise _changed() from error
        return body

    async def _point(self, collection: str, found: Found, fields: JsonMapping, *, unset: Sequence[str] = ()) -> None:
        try:
            await self._store.update(
                collection, found.stored.id, fields, unset=unset, if_revision=found.stored.revision
            )
        except RevisionConflict as error:
            raise _changed() from error

    async def _drop(self, package_id: str | None) -> None:
        """Remove a package that is replaced; one that an instance was made of meanwhile stays with it."""
        if package_id is not None:
            try:
                await self._packages.remove(package_id)
            except InUse:
                return

    async def _remove(self, collection: str, found: Found) -> None:
        if found.package_id is not None:
            await self._packages.remove(found.package_id)
        await self._store.delete(collection, found.stored.id)


_OWN: Final = frozenset({"package", "chart-found", "has-content", "definition", "created-at"})
"""Members of the documents that are not shown."""


def _found(stored: Stored) -> Found:
    return Found(stored, {name: value for name, value in stored.body.items() if name not in _OWN})


def _shown(wanted: Definition | Profile) -> JsonMapping:
    return wanted.model_dump(mode="json", by_alias=True, exclude_none=True)


def _check_names(found: Found, wanted: Definition | Profile) -> None:
    """Raise Unprocessable for a name in a body that is not that of the path."""
    for name, value in _shown(wanted).items():
        if name in ("rb-name", "rb-version", "profile-name") and name in found.body and found.body[name] != value:
            raise Unprocessable(name, f"{found.body[name]}, as in the path, expected")


def _id(*names: str) -> str:
    return derived_id("onap-bundle-document", *names)


def _changed() -> Conflict:
    return Conflict("it was changed by another request at the same time: try again")
