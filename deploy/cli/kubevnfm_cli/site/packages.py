"""Packages of a site: the mark is in ``userDefinedData``, with the hash of the archive.

The content of a package never changes. Another archive under the same name is uploaded beside the present one; instances are
changed to it, and the former one is removed at the end, when no instance uses it any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from kubevnfm_cli import uploads
from kubevnfm_cli.archives import Archive, archive_of
from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.json_types import JsonObject, part
from kubevnfm_cli.site.difference import differences
from kubevnfm_cli.site.model import MARK, Entry, Key
from kubevnfm_cli.site.plans import Plan, Step, taken
from kubevnfm_cli.site.secrets import revealed
from kubevnfm_cli.site.world import Conflicts, Thing, World

FORMER: Final = "former-package"
"""The section of the entries that remove what was replaced."""
_MOST_SHOWN: Final = 5


def _path(package: JsonObject) -> str:
    return path_of("vnfpkgm", "v2", "vnf_packages", str(package["id"]))


def marked(world: World, name: str) -> list[JsonObject]:
    """Return the packages that were made for a name of the site, the oldest first."""
    wanted = f"(eq,userDefinedData/{MARK}/site,{world.site.name});(eq,userDefinedData/{MARK}/name,{name})"
    return world.read_list(uploads.PACKAGES, {"filter": wanted, "all_fields": ""})


def _hash(package: JsonObject) -> Any:
    return part(package, "userDefinedData", MARK, "sha256")


class Packages:
    """Uploads archives."""

    def plan(self, world: World, entry: Entry) -> Plan:
        path = _file(entry)
        if not path.exists():
            raise Conflicts(f"{entry.place('file')}: {path} does not exist")
        # An image is large: it is read once for all plans, and again when it is sent.
        if entry.key not in world.hashes:
            with _archive(entry) as archive:
                world.hashes[entry.key] = archive.sha256
        sha256 = world.hashes[entry.key]
        found = marked(world, entry.name)
        user_data = {
            **revealed(entry.body.get("userDefinedData", {})),
            MARK: {"site": world.site.name, "name": entry.name, "sha256": sha256},
        }
        usable = [each for each in found if _hash(each) == sha256]
        present = next((each for each in usable if each["onboardingState"] != "ERROR"), None)
        if present is None:
            return self._new(world, entry, sha256, user_data, found)
        thing = Thing(str(present["id"]), {"vnfdId": present.get("vnfdId")})
        state = present["onboardingState"]
        if state == "CREATED":
            return Plan(thing, [Step("send", lambda: _upload(world, entry, str(present["id"]), sha256))])
        if state != "ONBOARDED":
            return Plan(thing, [Step("wait for", lambda: _onboarded(world, entry, str(present["id"])))])
        wanted = entry.body.get("userDefinedData", {})
        changed = [str(each) for each in differences(wanted, present.get("userDefinedData", {}), ("userDefinedData",))]
        steps = []
        if changed:
            body = {"userDefinedData": user_data}
            steps.append(Step("update", lambda: world.write("PATCH", _path(present), body), changed))
        note = "" if present["operationalState"] == "ENABLED" else "it is DISABLED"
        return Plan(thing, steps, note=note)

    def _new(
        self,
        world: World,
        entry: Entry,
        sha256: str,
        user_data: Mapping[str, Any],
        found: Sequence[JsonObject],
    ) -> Plan:
        # A package that has failed, or that no instance uses, would keep the id of the VNFD.
        unused = [each for each in found if each["usageState"] == "NOT_IN_USE"]
        removals = [Step("delete the former", lambda each=each: remove(world, each)) for each in unused]  # type: ignore[misc]
        if not found:
            same = world.read_list(uploads.PACKAGES, {"filter": f"(eq,checksum/hash,{sha256})", "all_fields": ""})
            owners = [(part(each, "userDefinedData", MARK, "site"), each) for each in same]
            owner, other = next((each for each in owners if each[0] != world.site.name), (None, None))
            if other is not None:
                refusal = taken(world, "package with this content", owner, str(other["id"]))
                if refusal is not None:
                    return Plan(Thing(), refusals=[refusal])
                path, body = _path(other), {"userDefinedData": user_data}
                thing = Thing(str(other["id"]), {"vnfdId": other.get("vnfdId")})
                return Plan(thing, [Step("adopt", lambda: world.write("PATCH", path, body))])
        text = [f"file: another content (SHA-256 {str(_hash(found[-1]))[:12]} -> {sha256[:12]})"] if found else []

        def upload() -> None:
            package_id = uploads.create(world.gateway, user_data)
            _upload(world, entry, package_id, sha256)

        return Plan(Thing(), [*removals, Step("upload", upload, text)])

    def removal(self, world: World, entry: Entry) -> Plan:
        found = marked(world, entry.name)
        steps = [Step("delete", lambda each=each: remove(world, each)) for each in found]  # type: ignore[misc]
        return Plan(Thing(str(found[-1]["id"])) if found else Thing(), steps)


class FormerPackages:
    """Removes what another archive under the same name has replaced."""

    def plan(self, world: World, entry: Entry) -> Plan:
        present = world.thing(Key("packages", entry.name)).id
        # Only a comparison comes here before the new one is there; those without instances go before its upload then.
        former = [
            each
            for each in marked(world, entry.name)
            if each["id"] != present and (present is not None or each["usageState"] != "NOT_IN_USE")
        ]
        is_left = any(
            world.thing(key).will_change and one.body["package"] == entry.name
            for key, one in world.site.entries.items()
            if key.section == "instances"
        )
        used = [str(each["id"]) for each in former if each["usageState"] != "NOT_IN_USE"]
        steps = [
            Step("delete", lambda each=each: remove(world, each), [_former_text(each)])  # type: ignore[misc]
            for each in former
            if is_left or str(each["id"]) not in used
        ]
        note = f"package {', '.join(used[:_MOST_SHOWN])} stays: instances use it" if used and not is_left else ""
        return Plan(Thing(), steps, note=note)

    def removal(self, world: World, entry: Entry) -> Plan:
        return Plan(Thing())


def _former_text(package: JsonObject) -> str:
    return f"package {package['id']} with the former content"


def remove(world: World, package: JsonObject) -> None:
    """Disable and delete a package."""
    if package["operationalState"] == "ENABLED" and package["onboardingState"] == "ONBOARDED":
        world.write("PATCH", _path(package), {"operationalState": "DISABLED"})
    world.write("DELETE", _path(package))


def _file(entry: Entry) -> Path:
    return entry.source.folder / str(entry.body["file"])


def _archive(entry: Entry) -> AbstractContextManager[Archive]:
    return archive_of(_file(entry), follows_links=entry.body.get("followLinks", False))


def _upload(world: World, entry: Entry, package_id: str, sha256: str) -> None:
    with _archive(entry) as archive:
        if archive.sha256 != sha256:
            raise Conflicts(f"{_file(entry)} was changed meanwhile: apply again")
        world.progress(entry.key, f"sends {_file(entry).name}, {archive.size} bytes")
        uploads.send(world.gateway, package_id, archive, lambda _: None)
    _onboarded(world, entry, package_id)


def _onboarded(world: World, entry: Entry, package_id: str) -> None:
    otherwise = f"package {package_id} is onboarded further"
    try:
        package = uploads.onboarded(world.gateway, package_id, lambda pause_s: world.pause(pause_s, otherwise))
    except uploads.NotOnboarded as refused:
        raise uploads.NotOnboarded(f"{entry.place('file')}: {refused}") from None
    world.warn(entry.key, package.get("warnings"))
