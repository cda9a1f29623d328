"""MachineSnapshots: images of servers and snapshots of volumes (Compute v2.1, Image v2, Block Storage v3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from kubevnfm_infra_openstack.adapters.nova import is_busy
from kubevnfm_infra_openstack.adapters.tenants import Document, Tenant, reads, reason_of
from kubevnfm_infra_openstack.adapters.together import together
from kubevnfm_infra_openstack.domain.errors import RevertFailed, SnapshotFailed, SnapshotNotDeleted
from kubevnfm_infra_openstack.domain.snapshot_ports import ATTEMPT, Attached, MachineView, Made, VolumeView

_PAGE: Final = 1000
_MOST_PAGES: Final = 100
"""A list that has no end must not hold a worker."""
_REVERTS: Final = {"OpenStack-API-Version": "volume 3.40"}
"""The first version of Cinder's API that reverts volumes."""
_DETACHING: Final = "status must be in-use"
"""Part of the answer for a volume that leaves the server already: the next look decides."""
_REFUSED: Final = frozenset({400, 403, 404, 409, 413})


class MachineSnapshots:
    """The snapshots of one tenant's machines."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    @reads("Nova")
    async def machine(self, server_id: str) -> MachineView | None:
        path, missing = f"/servers/{server_id}", frozenset({404})
        shown, volumes = await together(
            self._tenant.call("compute", "GET", one, fine=missing) for one in (path, f"{path}/os-volume_attachments")
        )
        if not (shown.ok and volumes.ok):
            return None
        server = shown.json()["server"]
        image = server.get("image") or {}
        return MachineView(
            id=server["id"],
            status=server["status"],
            task=server.get("OS-EXT-STS:task_state"),
            image_id=image.get("id") if isinstance(image, Mapping) else None,
            metadata=server.get("metadata") or {},
            attached=tuple(
                Attached(one["volumeId"], one.get("device") or "") for one in volumes.json()["volumeAttachments"]
            ),
            fault=str((server.get("fault") or {}).get("message") or ""),
        )

    @reads("Nova")
    async def ports(self, server_id: str) -> frozenset[str]:
        answer = await self._tenant.call("compute", "GET", f"/servers/{server_id}/os-interface")
        return frozenset(one["port_id"] for one in answer.json()["interfaceAttachments"])

    @reads("Cinder")
    async def volumes(self, ids: Sequence[str]) -> Mapping[str, VolumeView]:
        answers = await together(
            self._tenant.call("block_storage", "GET", f"/volumes/{one}", fine=frozenset({404})) for one in ids
        )
        found = [answer.json()["volume"] for answer in answers if answer.ok]
        return {
            one["id"]: VolumeView(
                id=one["id"],
                status=one["status"],
                size_gib=int(one["size"]),
                is_bootable=one.get("bootable") == "true",
                metadata=one.get("metadata") or {},
            )
            for one in found
        }

    @reads("Glance")
    async def images(self, marks: Mapping[str, str]) -> Sequence[Made]:
        query = {**marks, "limit": str(_PAGE)}
        answer = await self._tenant.call("image", "GET", "/images", query=query)
        # Deletion follows from this list, so it does not rely on the filter alone.
        return [_image(one) for one in answer.json()["images"] if marks.items() <= one.items()]

    @reads("Glance")
    async def image(self, image_id: str) -> Made | None:
        answer = await self._tenant.call("image", "GET", f"/images/{image_id}", fine=frozenset({404}))
        return _image(answer.json()) if answer.ok else None

    @reads("Cinder")
    async def volume_snapshots(self, marks: Mapping[str, str], volume_id: str | None = None) -> Sequence[Made]:
        found: list[Document] = []
        query = {"limit": str(_PAGE), **({"volume_id": volume_id} if volume_id is not None else {})}
        for _ in range(_MOST_PAGES):
            page = (await self._tenant.call("block_storage", "GET", "/snapshots/detail", query=query)).json()
            found += page["snapshots"]
            # The link too: an administrator may allow smaller pages than we ask for.
            if not page["snapshots"] or (len(page["snapshots"]) < _PAGE and not page.get("snapshots_links")):
                break
            query["marker"] = found[-1]["id"]
        ours = [
            _volume_snapshot(one)
            for one in found
            if volume_id in (None, one["volume_id"]) and marks.items() <= (one.get("metadata") or {}).items()
        ]
        return sorted(ours, key=lambda one: one.created_at or datetime.min.replace(tzinfo=UTC), reverse=True)

    @reads("Cinder")
    async def volume_snapshot(self, snapshot_id: str) -> Made | None:
        answer = await self._tenant.call("block_storage", "GET", f"/snapshots/{snapshot_id}", fine=frozenset({404}))
        return _volume_snapshot(answer.json()["snapshot"]) if answer.ok else None

    async def make_image(self, server_id: str, name: str, marks: Mapping[str, str]) -> bool:
        body = {"createImage": {"name": name, "metadata": dict(marks)}}
        answer = await self._tenant.call("compute", "POST", f"/servers/{server_id}/action", body=body, fine=_REFUSED)
        if is_busy(answer):
            return False
        if not answer.ok:
            raise SnapshotFailed(f"server {server_id}: createImage: {reason_of(answer)}")
        return True

    async def make_volume_snapshot(self, volume_id: str, name: str, marks: Mapping[str, str]) -> None:
        # Without `force` versions of the API before 3.66 refuse a volume that a server uses.
        body = {"snapshot": {"volume_id": volume_id, "name": name, "force": True, "metadata": dict(marks)}}
        answer = await self._tenant.call("block_storage", "POST", "/snapshots", body=body, fine=_REFUSED)
        if not answer.ok:
            raise SnapshotFailed(f"volume {volume_id}: snapshot: {reason_of(answer)}")

    async def delete_image(self, image_id: str) -> None:
        answer = await self._tenant.call("image", "DELETE", f"/images/{image_id}", fine=frozenset({403, 404, 409}))
        if not answer.ok and answer.status_code != 404:
            raise SnapshotNotDeleted(f"image {image_id}: {reason_of(answer)}")

    async def delete_volume_snapshot(self, snapshot_id: str) -> None:
        path = f"/snapshots/{snapshot_id}"
        answer = await self._tenant.call("block_storage", "DELETE", path, fine=frozenset({400, 404, 409}))
        if not answer.ok and answer.status_code != 404:
            raise SnapshotNotDeleted(f"volume snapshot {snapshot_id}: {reason_of(answer)}")

    async def mark_machine(self, server_id: str, marks: Mapping[str, str]) -> None:
        await self._tenant.call("compute", "POST", f"/servers/{server_id}/metadata", body={"metadata": dict(marks)})

    async def rebuild(self, machine: MachineView, image_id: str, marks: Mapping[str, str]) -> None:
        # In the same request, so that the mark is true exactly if Nova has accepted it. It takes the place of all metadata.
        body = {"rebuild": {"imageRef": image_id, "metadata": {**machine.metadata, **marks}}}
        path = f"/servers/{machine.id}/action"
        answer = await self._tenant.call("compute", "POST", path, body=body, fine=_REFUSED)
        if not answer.ok and not is_busy(answer):
            raise RevertFailed(f"server {machine.id}: rebuild: {reason_of(answer)}")

    async def revert_volume(self, volume_id: str, snapshot_id: str, marks: Mapping[str, str]) -> None:
        path, body = f"/volumes/{volume_id}", {"revert": {"snapshot_id": snapshot_id}}
        answer = await self._tenant.call(
            "block_storage", "POST", f"{path}/action", body=body, headers=_REVERTS, fine=_REFUSED | {406}
        )
        if not answer.ok:
            raise RevertFailed(f"volume {volume_id}: revert to {snapshot_id}: {reason_of(answer)}")
        await self._tenant.call("block_storage", "POST", f"{path}/metadata", body={"metadata": dict(marks)})

    async def detach(self, server_id: str, volume_id: str) -> None:
        path = f"/servers/{server_id}/os-volume_attachments/{volume_id}"
        answer = await self._tenant.call("compute", "DELETE", path, fine=_REFUSED)
        # 404: it is detached.
        if answer.ok or answer.status_code == 404 or is_busy(answer):
            return
        reason = reason_of(answer)
        if _DETACHING not in reason:
            raise RevertFailed(f"server {server_id}: detaching volume {volume_id}: {reason}")

    async def attach(self, server_id: str, attached: Attached) -> None:
        device = {"device": attached.device} if attached.device else {}
        body = {"volumeAttachment": {"volumeId": attached.volume_id, **device}}
        path = f"/servers/{server_id}/os-volume_attachments"
        answer = await self._tenant.call("compute", "POST", path, body=body, fine=_REFUSED)
        if not answer.ok and not is_busy(answer):
            raise RevertFailed(f"server {server_id}: attaching volume {attached.volume_id}: {reason_of(answer)}")


def _image(document: Document) -> Made:
    return Made(
        id=document["id"],
        status=document["status"],
        attempt=str(document.get(ATTEMPT) or ""),
        created_at=_moment(document.get("created_at")),
        updated_at=_moment(document.get("updated_at")),
    )


def _volume_snapshot(document: Document) -> Made:
    return Made(
        id=document["id"],
        status=document["status"],
        attempt=str((document.get("metadata") or {}).get(ATTEMPT) or ""),
        volume_id=document["volume_id"],
        created_at=_moment(document.get("created_at")),
        updated_at=_moment(document.get("updated_at")),
    )


def _moment(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    moment = datetime.fromisoformat(text)
    # Cinder writes UTC without saying so.
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
