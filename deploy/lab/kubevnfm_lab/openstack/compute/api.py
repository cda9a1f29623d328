"""Nova's v2.1 API as a whole: versions, zones, limits, quotas."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from kubevnfm_lab.openstack.compute.microversion import minor_of
from kubevnfm_lab.openstack.compute.nova import Nova
from kubevnfm_lab.openstack.compute.views import (
    NEWEST_MINOR,
)
from kubevnfm_lab.openstack.quotas import Quotas
from kubevnfm_lab.openstack.wire import Call, Json, Wire, base_url, json_answer

_QUOTAS: Final = ("instances", "cores", "ram", "key_pairs", "server_groups")
_FIXED_QUOTAS: Final = {"metadata_items": 128, "server_group_members": -1}
_OLD_QUOTAS: Final[dict[str, int]] = {
    "injected_files": 5,
    "injected_file_content_bytes": 10240,
    "injected_file_path_bytes": 255,
    "fixed_ips": -1,
    "floating_ips": -1,
    "security_groups": -1,
    "security_group_rules": -1,
}
"""Removed in micro-version 2.57."""


class ComputeApi:
    """The handlers of the routes about Nova itself."""

    def __init__(self, nova: Nova, wire: Wire, *, quotas: Quotas) -> None:
        self._nova, self._quotas = nova, quotas
        for path in ("", "/"):
            wire.route("GET", path, "versions", self.versions, open_to_all=True)
        for path in ("/v2.1", "/v2.1/"):
            wire.route("GET", path, "version", self.version, open_to_all=True)
        root = "/v2.1"
        wire.route("GET", root + "/os-availability-zone", "availability_zone_list", self.zones)
        wire.route("GET", root + "/os-availability-zone/detail", "availability_zone_list", self.zones)
        wire.route("GET", root + "/limits", "limits_show", self.limits)
        wire.route("GET", root + "/os-quota-sets/{project}", "quota_show", self.quota)
        wire.route("GET", root + "/os-quota-sets/{project}/detail", "quota_show", self.quota_detail)
        wire.route("GET", root + "/os-quota-sets/{project}/defaults", "quota_show", self.quota)

    async def versions(self, call: Call) -> web.Response:
        return json_answer({"versions": [_version(call)]})

    async def version(self, call: Call) -> web.Response:
        media = {"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}
        return json_answer({"version": {**_version(call), "media-types": [media]}})

    async def zones(self, call: Call) -> web.Response:
        zone: Json = {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None}
        # Only the detailed form, which is meant for administrators, names the hosts.
        if call.request.path.endswith("/detail"):
            service = {"nova-compute": {"active": True, "available": True, "updated_at": None}}
            zone["hosts"] = dict.fromkeys(self._nova.hosts, service)
        return json_answer({"availabilityZoneInfo": [zone]})

    async def limits(self, call: Call) -> web.Response:
        used = {name: self._quotas.used(call.project_id, name) for name in _QUOTAS}
        limits = self._quotas.limits
        absolute = {
            "maxTotalInstances": limits["instances"],
            "maxTotalCores": limits["cores"],
            "maxTotalRAMSize": limits["ram"],
            "maxTotalKeypairs": limits["key_pairs"],
            "maxServerGroups": limits["server_groups"],
            "maxServerMeta": 128,
            "maxPersonality": 5,
            "maxPersonalitySize": 10240,
            "maxImageMeta": 128,
            "maxServerGroupMembers": -1,
            "maxSecurityGroups": -1,
            "maxSecurityGroupRules": -1,
            "maxTotalFloatingIps": -1,
            "totalRAMUsed": used["ram"],
            "totalCoresUsed": used["cores"],
            "totalInstancesUsed": used["instances"],
            "totalFloatingIpsUsed": 0,
            "totalSecurityGroupsUsed": 0,
            "totalServerGroupsUsed": len(self._nova.groups),
        }
        return json_answer({"limits": {"rate": [], "absolute": absolute}})

    async def quota(self, call: Call) -> web.Response:
        limits = {name: self._quotas.limits[name] for name in _QUOTAS}
        return json_answer({"quota_set": {"id": call.path("project"), **limits, **_constant_quotas(call)}})

    async def quota_detail(self, call: Call) -> web.Response:
        project = call.path("project")
        shown: Json = {
            name: {"in_use": self._quotas.used(project, name), "limit": self._quotas.limits[name], "reserved": 0}
            for name in _QUOTAS
        }
        old = {name: {"in_use": 0, "limit": limit, "reserved": 0} for name, limit in _constant_quotas(call).items()}
        return json_answer({"quota_set": {"id": project, **shown, **old}})


def _constant_quotas(call: Call) -> dict[str, int]:
    return {**_FIXED_QUOTAS, **(_OLD_QUOTAS if minor_of(call) < 57 else {})}


def _version(call: Call) -> Json:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": f"2.{NEWEST_MINOR}",
        "min_version": "2.1",
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{base_url(call.request)}/compute/v2.1/"}],
    }
