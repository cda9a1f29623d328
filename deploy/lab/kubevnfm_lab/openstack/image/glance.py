"""Glance: images, of whose bits only number and checksums are stored."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubevnfm_lab.openstack.errors import ServiceError, conflict, not_found
from kubevnfm_lab.openstack.ids import new_uuid, now_z

_PLAIN = frozenset(
    {"name", "visibility", "disk_format", "container_format", "min_disk", "min_ram", "protected", "tags", "id"}
)


@dataclass(kw_only=True, slots=True)
class Image:
    """The image that a server starts from."""

    image_id: str = field(default_factory=new_uuid)
    name: str | None
    project_id: str
    visibility: str = "shared"
    disk_format: str | None = None
    container_format: str | None = None
    min_disk_gib: int = 0
    min_ram_mib: int = 0
    protected: bool = False
    tags: list[str] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    status: str = "queued"
    size: int | None = None
    md5: str | None = None
    sha512: str | None = None
    created_at: str = field(default_factory=now_z)
    updated_at: str = field(default_factory=now_z)
    builtin: bool = False

    def view(self) -> dict[str, Any]:
        """Return it as the API shows it."""
        path = f"/v2/images/{self.image_id}"
        return {
            **self.properties,
            "name": self.name,
            "disk_format": self.disk_format,
            "container_format": self.container_format,
            "visibility": self.visibility,
            "size": self.size,
            "virtual_size": self.size,
            "status": self.status,
            "checksum": self.md5,
            "protected": self.protected,
            "min_ram": self.min_ram_mib,
            "min_disk": self.min_disk_gib,
            "owner": self.project_id,
            "os_hidden": False,
            "os_hash_algo": "sha512" if self.sha512 else None,
            "os_hash_value": self.sha512,
            "id": self.image_id,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "tags": self.tags,
            "self": path,
            "file": f"{path}/file",
            "schema": "/v2/schemas/image",
        }


def no_such_image(image_id: str) -> ServiceError:
    """Return Glance's 404."""
    return not_found("glance", "NotFound", f"No image found with ID {image_id}")


class Glance:
    """All images of the cloud."""

    def __init__(self) -> None:
        self.images: dict[str, Image] = {}

    def make_builtin(self, name: str, project_id: str) -> None:
        """Create an image that is public and ready: 4 KiB of zeros."""
        zeros = bytes(4096)
        image = Image(
            name=name,
            project_id=project_id,
            visibility="public",
            disk_format="raw",
            container_format="bare",
            status="active",
            size=len(zeros),
            md5=hashlib.md5(zeros, usedforsecurity=False).hexdigest(),
            sha512=hashlib.sha512(zeros).hexdigest(),
            builtin=True,
        )
        self.images[image.image_id] = image

    def create(self, project_id: str, body: Mapping[str, Any]) -> Image:
        """Create an image without bits, in status queued."""
        wanted_id = body.get("id")
        if wanted_id in self.images:
            raise conflict("glance", "Conflict", f"Image ID {wanted_id} already exists!")
        image = Image(
            image_id=str(wanted_id) if wanted_id else new_uuid(),
            name=body.get("name"),
            project_id=project_id,
            visibility=str(body.get("visibility") or "shared"),
            disk_format=body.get("disk_format"),
            container_format=body.get("container_format"),
            min_disk_gib=int(body.get("min_disk") or 0),
            min_ram_mib=int(body.get("min_ram") or 0),
            protected=bool(body.get("protected", False)),
            tags=list(body.get("tags") or ()),
            properties={key: value for key, value in body.items() if key not in _PLAIN},
        )
        self.images[image.image_id] = image
        return image

    async def upload(self, image: Image, bits: AsyncIterator[bytes]) -> None:
        """Read the bits, store their number and checksums, and activate the image."""
        if image.status != "queued":
            message = f"Image status transition from {image.status} to saving is not allowed"
            raise conflict("glance", "Conflict", message)
        image.status = "saving"
        size, md5, sha512 = 0, hashlib.md5(usedforsecurity=False), hashlib.sha512()
        # The bits are not kept: no machine of the lab boots from them, and clients compare only size and checksums.
        async for chunk in bits:
            size += len(chunk)
            md5.update(chunk)
            sha512.update(chunk)
        image.size, image.md5, image.sha512 = size, md5.hexdigest(), sha512.hexdigest()
        image.status, image.updated_at = "active", now_z()

    def delete(self, image: Image) -> None:
        """Delete an image; raise Forbidden if it is protected."""
        if image.protected:
            message = f"Image {image.image_id} is protected and cannot be deleted."
            raise ServiceError("glance", 403, "Forbidden", message)
        self.images.pop(image.image_id, None)

    def get(self, image_id: str) -> Image:
        """Return an image; raise Glance's 404."""
        found = self.images.get(image_id)
        if found is None:
            raise no_such_image(image_id)
        return found

    def find(self, name_or_id: str) -> Image | None:
        """Return an image by its id or name."""
        found = self.images.get(name_or_id)
        if found is not None:
            return found
        return next((image for image in self.images.values() if image.name == name_or_id), None)
