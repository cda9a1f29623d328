"""The definitions and profiles of resource bundles: documents that name the packages made of them (multicloud.md MC-131)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final, Protocol

from kubevnfm_clients.multicloud.types import MultiCloudRequest, NamespaceName
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, InUse, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Exists, Filter, Index, Query, Stored, by
from kubevnfm_store.races import repeat_lost_writes
from pydantic import Field, StringConstraints

from kubevnfm_lcm_api.multicloud.vnf_types import KubernetesVersion, ReleaseName

DEFINITIONS: Final = "onap_definitions"
PROFILES: Final = "onap_profiles"
INDEXES: Final = {
    DEFINITIONS: [Index(["rb-name"])],
    PROFILES: [
        Index(["definition"]),
        Index(["rb-name"]),
        Index(["rb-version"]),
        Index(["profile-name"]),
        Index(["package"], sparse=True),
    ],
}
DEFAULT: Final = "default"
VERSION: Final = "kubernetes-version"
"""The member of a profile with the version that its chart is rendered for."""
_PAGE: Final = 500
_LEAVING: Final = "leaving"
_YOUNG: Final = timedelta(hours=1)
"""A profile that is made with its definition is stored first."""

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
    kubernetes_version: Annotated[KubernetesVersion | None, Field(alias=VERSION)] = None
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

    async def remove(self, package_id: str, *, is_wanted: Callable[[], Awaitable[bool]]) -> None:
        """Delete the package, unless it is gone. Raises InUse.

        ``is_wanted``: asked once no instance can be made of the package; if it is, the package stays as it was.
        """
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

    @property
    def packages(self) -> Sequence[str]:
        """That package, and earlier ones that are not removed yet."""
        found = [self.package_id, *self.stored.body.get("replaced", ())]
        return [each for each in found if each is not None]

    def with_package(self, made: str) -> JsonMapping:
        """Return the fields of its document once it has another package."""
        return {"package": made, "replaced": [each for each in self.packages if each != made]}


class Bundles:
    """Keeps definitions and profiles, and makes their packages. A request that loses a race is computed again (MC-009)."""

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

    @repeat_lost_writes
    async def redefine(self, name: str, version: str, wanted: Definition) -> JsonMapping:
        """Replace the facts of a definition. Raises NotFound, Unprocessable."""
        found = await self.definition(name, version)
        _check_names(found, wanted)
        chart = found.body.get("chart-name")
        if found.package_id is not None and wanted.chart_name not in (None, chart):
            raise Unprocessable("chart-name", f"{chart}, which the content has, expected")
        named = {} if chart is None or found.package_id is None else {"chart-name": chart}
        return await self._replace(DEFINITIONS, found, {**_shown(wanted), **named})

    @repeat_lost_writes
    async def upload(self, name: str, version: str, content: bytes) -> None:
        """Store the content of a definition. Raises NotFound, Unprocessable, InUse, Conflict, OutsideUnavailable."""
        found = await self.definition(name, version)
        # One that was found in the content is not asked for: the same content would be another bundle.
        named = "" if found.stored.body.get("chart-found") else found.body.get("chart-name") or ""
        made, chart = await self._packages.make((name, version), content, chart_name=named)
        profiles = [each async for each in self._profiles(found)]
        if made != found.package_id:
            fields = {**found.with_package(made), "chart-name": chart, "chart-found": not named}
            async with self._discarding(DEFINITIONS, found, made):
                await self._check_replaceable(found, profiles)
                found = await self._point(DEFINITIONS, found, fields)
        # Also when it has this content already: an upload of it may have been interrupted here.
        for each in profiles:
            await self._drop_replaced(PROFILES, await self._without_stale(each, made))
        await self._drop_replaced(DEFINITIONS, found)
        await self._check_there(made, await self.definition(name, version))

    async def _check_there(self, made: str, found: Found) -> None:
        """Raise RevisionConflict if a document has a package that is gone: a request whose content it replaced has removed it."""
        # Otherwise later content has taken its place.
        if found.package_id == made and not await self._packages.exists(made):
            raise RevisionConflict(made)

    async def _without_stale(self, profile: Found, base: str) -> Found:
        """Return a profile that has no package of earlier content of its definition; ``base``: the package of the present one."""
        body = profile.stored.body
        if profile.package_id is None or body.get("has-content") or body.get("base") == base:
            return profile
        return await self._point(PROFILES, profile, {"replaced": profile.packages}, unset=("package", "base"))

    async def _check_replaceable(self, found: Found, profiles: Sequence[Found]) -> None:
        """Raise Conflict if the content of a definition must stay: packages are made of it that nothing could make again."""
        if found.package_id is None:
            return
        for each in profiles:
            if each.stored.body.get("has-content"):
                name = each.body["profile-name"]
                raise Conflict(f"the content of profile {name} was made for the present one: delete the profile first")
        for old in (found, *profiles):
            if old.package_id is not None:
                await self._packages.check_unused(old.package_id)

    @repeat_lost_writes
    async def undefine(self, name: str, version: str) -> None:
        """Delete a definition with its profiles. Raises NotFound, InUse."""
        found = await self.definition(name, version)
        profiles = [each async for each in self._profiles(found)]
        for package_id in (each for one in (found, *profiles) for each in one.packages):
            await self._packages.check_unused(package_id)
        # From here on no profile is added.
        found = await self._point(DEFINITIONS, found, {_LEAVING: True})
        try:
            async for each in self._profiles(found):
                await self._remove(PROFILES, each)
            await self._remove(DEFINITIONS, found)
        except (InUse, RevisionConflict):
            with suppress(RevisionConflict):
                await self._store.update(DEFINITIONS, found.stored.id, {}, unset=[_LEAVING], where=Exists("rb-name"))
            raise

    # --- profiles -----------------------------------------------------------------------------------------------------

    async def add_profile(self, name: str, version: str, wanted: Profile) -> JsonMapping:
        """Store a new profile. Raises NotFound without its definition, Unprocessable, Conflict."""
        found = await self.definition(name, version)
        _check_names(found, wanted)
        body = _shown(wanted)
        profile_id = _id(name, version, wanted.profile_name)
        await self._insert(PROFILES, profile_id, {**body, "definition": found.stored.id})
        try:
            # With another revision a removal that has begun before is refused before it has read the profiles.
            added = {"profile-added-at": rfc3339(self._clock.now())}
            stays = AllOf([Exists("rb-name"), Exists(_LEAVING, exists=False)])
            await self._store.update(DEFINITIONS, found.stored.id, added, where=stays)
        except RevisionConflict as error:
            with suppress(NotFound, InUse):
                await self.remove_profile(name, version, wanted.profile_name)
            await self.definition(name, version)
            raise Conflict("the definition is being deleted: repeat that, or change the definition") from error
        return body

    async def remove_orphans(self) -> None:
        """Remove profiles without a definition, whose maker has died before it could see that."""
        before = rfc3339(self._clock.now() - _YOUNG)
        async for each in self._all(PROFILES, AllOf()):
            if each.stored.body["created-at"] < before and not await self._store.get(
                DEFINITIONS, str(each.stored.body["definition"])
            ):
                with suppress(InUse, RevisionConflict):
                    await self._remove(PROFILES, each)

    async def profile(self, name: str, version: str, profile: str) -> Found:
        """Return a profile. Raises NotFound."""
        return await self._get(PROFILES, f"profile {profile} of {name} {version}", name, version, profile)

    async def profiles(self, name: str, version: str) -> Sequence[JsonMapping]:
        """Return the profiles of a definition. Raises NotFound."""
        found = await self.definition(name, version)
        return [each.body async for each in self._profiles(found)]

    @repeat_lost_writes
    async def change_profile(self, name: str, version: str, profile: str, wanted: Profile) -> JsonMapping:
        """Replace the facts of a profile; VNFs keep theirs. Raises NotFound, Unprocessable."""
        found = await self.profile(name, version, profile)
        _check_names(found, wanted)
        return await self._replace(PROFILES, found, _shown(wanted))

    @repeat_lost_writes
    async def upload_profile(self, name: str, version: str, profile: str, content: bytes) -> None:
        """Store the content of a profile. Raises as `upload`."""
        found = await self.profile(name, version, profile)
        made = await self._made(found, await self._base(found), content)
        if made != found.package_id:
            async with self._discarding(PROFILES, found, made):
                if found.package_id is not None:
                    await self._packages.check_unused(found.package_id)
                fields = {**found.with_package(made), "has-content": True}
                found = await self._point(PROFILES, found, fields, unset=("base",))
        await self._drop_replaced(PROFILES, found)
        await self._check_there(made, await self.profile(name, version, profile))

    @repeat_lost_writes
    async def remove_profile(self, name: str, version: str, profile: str) -> None:
        """Delete a profile. Raises NotFound, InUse."""
        await self._remove(PROFILES, await self.profile(name, version, profile))

    async def package_of(self, found: Found) -> str:
        """Return the package of a profile; one without content has the definition's chart as it is.

        Raises NotFound; Unprocessable if the definition has no content; OutsideUnavailable.
        """
        names = [str(found.body[each]) for each in ("rb-name", "rb-version", "profile-name")]
        return await self._package_of(*names)

    @repeat_lost_writes
    async def _package_of(self, name: str, version: str, profile: str) -> str:
        found = await self.profile(name, version, profile)
        present = found.package_id
        if found.stored.body.get("has-content"):
            if present is not None and await self._packages.exists(present):
                return present
            raise Unprocessable(
                "profile-name", "the package of the profile is gone or disabled: send its content again"
            )
        base, chart = await self._base(found)
        is_current = found.stored.body.get("base") == base
        if present is not None and is_current and await self._packages.exists(present):
            await self._drop_replaced(PROFILES, found)
            return present
        made = await self._made(found, (base, chart), None)
        async with self._discarding(PROFILES, found, made):
            found = await self._point(PROFILES, found, {**found.with_package(made), "base": base})
        await self._drop_replaced(PROFILES, found)
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

    async def _base(self, profile: Found) -> tuple[str, str]:
        """Return the package and the chart of the definition of a profile. Raises Unprocessable if it has no content."""
        names = [str(profile.body[each]) for each in ("rb-name", "rb-version")]
        definition = await self.definition(*names)
        package_id = definition.package_id
        if package_id is None or not await self._packages.exists(package_id):
            raise Unprocessable("rb-name", f"definition {' '.join(names)} has no content")
        return package_id, str(definition.body["chart-name"])

    async def _made(self, profile: Found, base: tuple[str, str], content: bytes | None) -> str:
        names = tuple(str(profile.body[each]) for each in ("rb-name", "rb-version", "profile-name"))
        made, _ = await self._packages.make(names, content, base=base[0], chart_name=base[1])
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
        changed = {**body, **own_members}
        await self._store.replace(collection, found.stored.id, changed, if_revision=found.stored.revision)
        return body

    async def _point(self, collection: str, found: Found, fields: JsonMapping, *, unset: Sequence[str] = ()) -> Found:
        present = found.stored
        return _found(
            await self._store.update(collection, present.id, fields, unset=unset, if_revision=present.revision)
        )

    @asynccontextmanager
    async def _discarding(self, collection: str, found: Found, made: str) -> AsyncIterator[None]:
        """Remove the package that was made for a document if it cannot have it."""
        try:
            yield
        except (Conflict, RevisionConflict):
            await self._discard(collection, found, made)
            raise

    async def _discard(self, collection: str, found: Found, package_id: str) -> bool:
        """Remove a package unless its document, or an instance, has it; return whether it is gone."""
        is_kept = False

        async def is_wanted() -> bool:
            nonlocal is_kept
            # Read now: another request with the same content may have got it meanwhile.
            stored = await self._store.get(collection, found.stored.id)
            is_kept = stored is not None and stored.body.get("package") == package_id
            return is_kept

        try:
            await self._packages.remove(package_id, is_wanted=is_wanted)
        except InUse:
            return False
        return not is_kept

    async def _drop_replaced(self, collection: str, found: Found) -> None:
        """Remove the packages that are replaced; one that an instance was made of meanwhile stays with it."""
        replaced = found.stored.body.get("replaced", [])
        left = [each for each in replaced if not await self._discard(collection, found, each)]
        if left != replaced:
            with suppress(RevisionConflict):  # the next one removes them from the list
                await self._store.update(
                    collection, found.stored.id, {"replaced": left}, if_revision=found.stored.revision
                )

    async def _remove(self, collection: str, found: Found) -> None:
        for each in found.packages:
            await self._packages.remove(each, is_wanted=_not)
        await self._store.delete(collection, found.stored.id, if_revision=found.stored.revision)


async def _not() -> bool:
    return False


_OWN: Final = frozenset(
    {
        "package",
        "base",
        "replaced",
        "chart-found",
        "has-content",
        "definition",
        "created-at",
        "profile-added-at",
        "leaving",
    }
)
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
