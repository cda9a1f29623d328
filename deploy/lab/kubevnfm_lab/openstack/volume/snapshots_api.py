"""Cinder's API of volume snapshots."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from kubevnfm_lab.openstack.errors import bad_request
from kubevnfm_lab.openstack.volume.cinder import Cinder
from kubevnfm_lab.openstack.volume.volume_snapshots import VolumeSnapshot
from kubevnfm_lab.openstack.wire import Call, Wire, json_answer, no_content


class VolumeSnapshotsApi:
    """The handlers of the routes under /snapshots."""

    def __init__(self, cinder: Cinder, wire: Wire, *, spawn: Callable[[Awaitable[None]], None]) -> None:
        self._cinder, self._spawn = cinder, spawn
        root = "/v3/{project}/snapshots"
        wire.route("GET", root, "snapshot_list", self.list_snapshots)
        wire.route("GET", root + "/detail", "snapshot_list", self.list_detail)
        wire.route("POST", root, "snapshot_create", self.create)
        wire.route("GET", root + "/{id}", "snapshot_show", self.show)
        wire.route("DELETE", root + "/{id}", "snapshot_delete", self.delete)

    async def list_snapshots(self, call: Call) -> web.Response:
        return json_answer({"snapshots": [one.view() for one in self._listed(call)]})

    async def list_detail(self, call: Call) -> web.Response:
        return json_answer({"snapshots": [one.detail() for one in self._listed(call)]})

    async def create(self, call: Call) -> web.Response:
        """Register the snapshot; it becomes available after the answer."""
        body = call.part_of_body("cinder", "snapshot")
        volume = self._cinder.get(str(body.get("volume_id", "")))
        made = self._cinder.snapshots.begin(call.project_id, volume.size_gib, volume.status, body)
        self._spawn(self._cinder.snapshots.make(made))
        return json_answer({"snapshot": made.view()}, 202)

    async def show(self, call: Call) -> web.Response:
        return json_answer({"snapshot": self._cinder.snapshots.get(call.path("id"), call.project_id).detail()})

    async def delete(self, call: Call) -> web.Response:
        self._cinder.snapshots.delete(self._cinder.snapshots.get(call.path("id"), call.project_id))
        return no_content(202)

    def _listed(self, call: Call) -> list[VolumeSnapshot]:
        if call.path("project") != call.project_id:
            raise bad_request("cinder", "Malformed request url")
        volume_id, marker, limit = (call.query(key) for key in ("volume_id", "marker", "limit"))
        found = [
            one
            for one in reversed(self._cinder.snapshots.by_id.values())
            if one.project_id == call.project_id and volume_id in (None, one.volume_id)
        ]
        if marker is not None:
            ids = [one.snapshot_id for one in found]
            found = found[ids.index(marker) + 1 :] if marker in ids else []
        return found[: int(limit)] if limit and limit.isdigit() else found
