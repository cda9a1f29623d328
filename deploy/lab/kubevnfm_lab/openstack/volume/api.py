"""Cinder's v3 API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from kubevnfm_lab.openstack.errors import bad_request, not_found
from kubevnfm_lab.openstack.quotas import Quotas
from kubevnfm_lab.openstack.volume.cinder import Cinder, Volume
from kubevnfm_lab.openstack.volume.snapshots_api import VolumeSnapshotsApi
from kubevnfm_lab.openstack.volume.types_api import VolumeTypesApi
from kubevnfm_lab.openstack.wire import Call, Json, Wire, base_url, json_answer, no_content

_QUOTAS: Final = ("volumes", "snapshots", "gigabytes")
_FREE_QUOTAS: Final = ("backups", "backup_gigabytes", "groups", "per_volume_gigabytes")


class VolumeApi:
    """The handlers of Cinder's routes."""

    def __init__(self, cinder: Cinder, wire: Wire, *, quotas: Quotas, spawn: Callable[[Awaitable[None]], None]) -> None:
        self._cinder, self._quotas, self._spawn = cinder, quotas, spawn
        for path in ("", "/"):
            wire.route("GET", path, "versions", self.versions, open_to_all=True)
        for path in ("/v3", "/v3/"):
            wire.route("GET", path, "version", self.versions, open_to_all=True)
        root = "/v3/{project}"
        wire.route("GET", root + "/volumes", "volume_list", self.list_volumes)
        wire.route("GET", root + "/volumes/detail", "volume_list", self.list_volumes_detail)
        wire.route("POST", root + "/volumes", "volume_create", self.create)
        wire.route("GET", root + "/volumes/{id}", "volume_show", self.show)
        wire.route("PUT", root + "/volumes/{id}", "volume_update", self.update)
        wire.route("DELETE", root + "/volumes/{id}", "volume_delete", self.delete)
        wire.route("POST", root + "/volumes/{id}/action", "volume_action", self.action)
        VolumeTypesApi(cinder.types, wire)
        wire.route("GET", root + "/limits", "limits_show", self.limits)
        wire.route("GET", root + "/os-quota-sets/{target}", "quota_show", self.quota)
        wire.route("GET", root + "/os-quota-sets/{target}/defaults", "quota_show", self.quota)
        wire.route("GET", root + "/os-availability-zone", "availability_zone_list", self.zones)
        wire.route("POST", root + "/volumes/{id}/metadata", "volume_metadata_set", self.set_metadata)
        VolumeSnapshotsApi(cinder, wire, spawn=spawn)

    async def versions(self, call: Call) -> web.Response:
        version = {
            "id": "v3.0",
            "status": "CURRENT",
            "version": "3.70",
            "min_version": "3.0",
            "updated": "2022-08-31T00:00:00Z",
            "links": [{"rel": "self", "href": f"{base_url(call.request)}/volume/v3/"}],
            "media-types": [{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}],
        }
        return json_answer({"versions": [version]}, 300 if call.request.path.rstrip("/").endswith("volume") else 200)

    async def list_volumes(self, call: Call) -> web.Response:
        base = _base(call)
        listed = [{"id": v.volume_id, "name": v.name, "links": v.links(base)} for v in self._listed(call)]
        return json_answer({"volumes": listed})

    async def list_volumes_detail(self, call: Call) -> web.Response:
        return json_answer({"volumes": [v.view(_base(call)) for v in self._listed(call)]})

    async def create(self, call: Call) -> web.Response:
        """Register the volume; it becomes available after the answer."""
        _check_project(call)
        volume = self._cinder.begin(call.project_id, call.token.user.user_id, call.part_of_body("cinder", "volume"))
        # The answer to a create does not contain the project.
        shown = {k: v for k, v in volume.view(_base(call)).items() if k != "os-vol-tenant-attr:tenant_id"}
        self._spawn(self._cinder.make(volume))
        return json_answer({"volume": shown}, 202)

    async def show(self, call: Call) -> web.Response:
        return json_answer({"volume": self._volume(call).view(_base(call))})

    async def update(self, call: Call) -> web.Response:
        volume, body = self._volume(call), call.part_of_body("cinder", "volume")
        volume.name = str(body.get("name", volume.name) or "")
        volume.description = body.get("description", volume.description)
        if isinstance(body.get("metadata"), dict):
            volume.metadata.update(body["metadata"])
        return json_answer({"volume": volume.view(_base(call))})

    async def delete(self, call: Call) -> web.Response:
        self._cinder.delete(self._volume(call))
        return no_content(202)

    async def action(self, call: Call) -> web.Response:
        volume = self._volume(call)
        if len(call.body) != 1:
            raise bad_request("cinder", "There is no such action: exactly one is expected in the body")
        ((name, argument),) = call.body.items()
        argument = argument if isinstance(argument, dict) else {}
        if name == "os-attach":
            self._cinder.attach(volume, str(argument.get("instance_uuid", "")), str(argument.get("mountpoint", "")))
        elif name == "os-detach":
            for one in list(volume.attachments):
                if argument.get("attachment_id") in (None, one.attachment_id):
                    self._cinder.detach(volume, one.server_id)
        elif name == "revert":
            snapshot_id = str(argument.get("snapshot_id", ""))
            self._cinder.begin_reversal(volume, snapshot_id)
            self._spawn(self._cinder.revert(volume, snapshot_id))
        elif name == "os-extend":
            self._cinder.extend(volume, int(argument.get("new_size", 0)))
        elif name == "os-retype":
            self._cinder.retype(volume, argument.get("new_type"))
        elif name == "os-reset_status":
            volume.status = str(argument.get("status", volume.status))
        else:
            raise bad_request("cinder", f"There is no such action: {name}")
        return no_content(202)

    async def limits(self, call: Call) -> web.Response:
        limits, project = self._quotas.limits, call.project_id
        absolute = {
            "maxTotalVolumes": limits["volumes"],
            "maxTotalVolumeGigabytes": limits["gigabytes"],
            "maxTotalSnapshots": limits["snapshots"],
            "maxTotalBackups": -1,
            "maxTotalBackupGigabytes": -1,
            "totalVolumesUsed": self._quotas.used(project, "volumes"),
            "totalGigabytesUsed": self._quotas.used(project, "gigabytes"),
            "totalSnapshotsUsed": self._quotas.used(call.project_id, "snapshots"),
            "totalBackupsUsed": 0,
            "totalBackupGigabytesUsed": 0,
        }
        return json_answer({"limits": {"rate": [], "absolute": absolute}})

    async def quota(self, call: Call) -> web.Response:
        """Return the limits, and their use if ``usage=True``."""
        target = call.path("target")
        shown: Json = {"id": target}
        usage = (call.query("usage") or "").lower() == "true"
        for name in (*_QUOTAS, *_FREE_QUOTAS):
            limit = self._quotas.limits.get(name, -1)
            used = self._quotas.used(target, name) if name in _QUOTAS else 0
            shown[name] = {"limit": limit, "in_use": used, "reserved": 0} if usage else limit
        for name in _QUOTAS:
            shown[f"{name}___DEFAULT__"] = {"limit": -1, "in_use": 0, "reserved": 0} if usage else -1
        return json_answer({"quota_set": shown})

    async def zones(self, call: Call) -> web.Response:
        zone = {"zoneName": "nova", "zoneState": {"available": True}}
        return json_answer({"availabilityZoneInfo": [zone]})

    async def set_metadata(self, call: Call) -> web.Response:
        volume, given = self._volume(call), call.part_of_body("cinder", "metadata")
        volume.metadata.update({str(key): str(value) for key, value in given.items()})
        return json_answer({"metadata": volume.metadata})

    def _volume(self, call: Call) -> Volume:
        _check_project(call)
        volume = self._cinder.get(call.path("id"))
        if volume.project_id != call.project_id:
            raise not_found("cinder", "VolumeNotFound", f"Volume {volume.volume_id} could not be found.")
        return volume

    def _listed(self, call: Call) -> list[Volume]:
        _check_project(call)
        name, status, marker, limit = (call.query(key) for key in ("name", "status", "marker", "limit"))
        found = [
            volume
            for volume in reversed(self._cinder.volumes.values())
            if volume.project_id == call.project_id and name in (None, volume.name) and status in (None, volume.status)
        ]
        if marker is not None:
            ids = [volume.volume_id for volume in found]
            found = found[ids.index(marker) + 1 :] if marker in ids else []
        return found[: int(limit)] if limit and limit.isdigit() else found


def _check_project(call: Call) -> None:
    if call.path("project") != call.project_id:
        raise bad_request("cinder", "Malformed request url")


def _base(call: Call) -> str:
    return f"{base_url(call.request)}/volume"


def headers(request: web.Request, request_id: str) -> dict[str, str]:
    """Return the headers of every answer of Cinder."""
    asked = request.headers.get("OpenStack-API-Version", "volume 3.0")
    version = "3.70" if asked.endswith("latest") else asked.rpartition(" ")[2]
    return {
        "OpenStack-API-Version": f"volume {version}",
        "Vary": "OpenStack-API-Version",
        "X-Compute-Request-ID": request_id,
    }
