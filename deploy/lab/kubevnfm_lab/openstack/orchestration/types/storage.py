"""OS::Cinder and OS::Glance resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from kubevnfm_lab.openstack.errors import not_found
from kubevnfm_lab.openstack.orchestration.failures import ResourceInError, validation_failed
from kubevnfm_lab.openstack.orchestration.stack import Resource
from kubevnfm_lab.openstack.orchestration.template import Json
from kubevnfm_lab.openstack.orchestration.types.base import Property, ResourceType, UpdateReplace
from kubevnfm_lab.openstack.volume.cinder import Volume
from kubevnfm_lab.openstack.volume.volume_types import VolumeType

_CINDER_NAME: Final = {
    "display_name": "name",
    "display_description": "description",
    "attachments_list": "attachments",
    "metadata_values": "metadata",
}


class VolumeResource(ResourceType):
    """OS::Cinder::Volume."""

    name = "OS::Cinder::Volume"
    properties: ClassVar[Mapping[str, Property]] = {
        "size": Property("integer", updatable=True, low=1),
        "name": Property(updatable=True),
        "description": Property(updatable=True),
        "volume_type": Property(updatable=True, constraint="cinder.vtype"),
        "availability_zone": Property(),
        "image": Property(constraint="glance.image"),
        "snapshot_id": Property(),
        "source_volid": Property(),
        "backup_id": Property(updatable=True),
        "metadata": Property("map", default={}, updatable=True),
        "read_only": Property("boolean", updatable=True),
        "multiattach": Property("boolean"),
        "scheduler_hints": Property("map"),
    }
    attributes = frozenset(
        {
            "availability_zone",
            "size",
            "snapshot_id",
            "display_name",
            "display_description",
            "volume_type",
            "metadata",
            "source_volid",
            "status",
            "created_at",
            "bootable",
            "metadata_values",
            "encrypted",
            "attachments",
            "attachments_list",
            "multiattach",
        }
    )

    async def create(self, resource: Resource) -> None:
        """Create the volume and wait until it is available."""
        props = resource.props
        await self.services.enter("cinder", "volume_create")
        image = self.services.glance.find(str(props["image"])) if props["image"] else None
        volume = self.services.cinder.begin(
            resource.stack.project_id,
            resource.stack.user_id,
            {
                "size": props["size"] or 1,
                "name": props["name"] or resource.physical_name,
                "description": props["description"],
                "imageRef": image.image_id if image else None,
                "volume_type": props["volume_type"],
                "availability_zone": props["availability_zone"],
                "metadata": props["metadata"],
                "snapshot_id": props["snapshot_id"],
            },
        )
        # Set before the wait: a stack that is deleted meanwhile must find the volume.
        resource.physical_id = volume.volume_id
        await self.services.cinder.make(volume)
        if volume.status == "error":
            raise ResourceInError("Unknown", status="error")

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Rename, retype or enlarge it; a volume never shrinks."""
        volume = self._volume(resource)
        if volume is None:
            raise UpdateReplace
        props = resource.props
        await self.services.enter("cinder", "volume_update")
        if "size" in changed:
            self.services.cinder.extend(volume, props["size"])
        if "volume_type" in changed:
            self.services.cinder.retype(volume, props["volume_type"])
        volume.name = props["name"] or resource.physical_name
        volume.description = props["description"]
        volume.metadata = dict(props["metadata"] or {})

    async def delete(self, resource: Resource) -> None:
        """Delete it."""
        volume = self._volume(resource)
        if volume is not None:
            await self.services.enter("cinder", "volume_delete")
            self.services.cinder.delete(volume)

    def is_there(self, resource: Resource) -> bool:
        """A volume in error does not count."""
        volume = self._volume(resource)
        return volume is not None and volume.status != "error"

    def show(self, resource: Resource) -> Json:
        """Return what Cinder shows of it."""
        volume = self._volume(resource)
        return volume.view(f"{self.services.base_url}/volume") if volume else {}

    def attribute(self, resource: Resource, name: str, path: Sequence[Any]) -> Any:
        """Return an attribute; some of Heat's names are older than Cinder's."""
        return super().attribute(resource, _CINDER_NAME.get(name, name), path)

    def _volume(self, resource: Resource) -> Volume | None:
        return self.services.cinder.volumes.get(resource.physical_id or "")


class VolumeAttachmentType(ResourceType):
    """OS::Cinder::VolumeAttachment; its physical id is the volume's, as Nova's attachment id is."""

    name = "OS::Cinder::VolumeAttachment"
    properties: ClassVar[Mapping[str, Property]] = {
        "instance_uuid": Property(required=True, updatable=True),
        "volume_id": Property(required=True, updatable=True, constraint="cinder.volume"),
        "mountpoint": Property(updatable=True),
    }

    async def create(self, resource: Resource) -> None:
        """Attach the volume to the server."""
        props = resource.props
        server = self.services.nova.servers.get(str(props["instance_uuid"]))
        if server is None:
            message = f"Instance {props['instance_uuid']} could not be found."
            raise not_found("nova", "InstanceNotFound", message)
        await self.services.enter("nova", "volume_attach", server.name)
        resource.physical_id = props["volume_id"]
        await self.services.nova.attach_volume(server, str(props["volume_id"]), str(props["mountpoint"] or ""))
        resource.data["server_id"] = server.server_id

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Detach it from the old server and attach it to the new one."""
        await self._take_out(resource)
        await self.create(resource)

    async def delete(self, resource: Resource) -> None:
        """Detach the volume from the server."""
        await self._take_out(resource)

    def is_there(self, resource: Resource) -> bool:
        """Whether the volume is still attached."""
        volume = self.services.cinder.volumes.get(resource.physical_id or "")
        return volume is not None and any(a.server_id == resource.data.get("server_id") for a in volume.attachments)

    async def _take_out(self, resource: Resource) -> None:
        volume_id, server_id = resource.physical_id or "", str(resource.data.get("server_id", ""))
        server = self.services.nova.servers.get(server_id)
        if server is None:
            return
        await self.services.enter("nova", "volume_detach", server.name)
        if any(one.volume_id == volume_id for one in server.volumes):
            self.services.nova.detach_volume(server, volume_id)


class VolumeTypeResource(ResourceType):
    """OS::Cinder::VolumeType; ``get_resource`` gives its id, which a volume takes as its ``volume_type``."""

    name = "OS::Cinder::VolumeType"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(required=True, updatable=True),
        "metadata": Property("map", updatable=True),
        "is_public": Property("boolean", default=True, updatable=True),
        "description": Property(updatable=True),
        "projects": Property("list", default=[], updatable=True, constraint="keystone.project"),
    }

    def validate(self, resource_name: str, props: Json) -> None:
        """A public type has no list of projects."""
        if props["projects"] and props["is_public"] is True:
            raise validation_failed('Can not specify property "projects" if the volume type is public.')

    async def create(self, resource: Resource) -> None:
        """Create the type, then set its extra specs and projects, as Heat does in separate calls."""
        props = resource.props
        await self.services.enter("cinder", "volume_type_create")
        made = self.services.cinder.types.create(
            name=props["name"], description=props["description"], is_public=props["is_public"], extra_specs={}
        )
        resource.physical_id = made.type_id
        if props["metadata"]:
            self.services.cinder.types.set_specs(made, props["metadata"])
        for project in self._project_ids(props):
            self.services.cinder.types.add_project(made, project)

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Change it in place; Cinder refuses other extra specs while volumes have the type."""
        existing = self._type(resource)
        if existing is None:
            raise UpdateReplace
        types, props = self.services.cinder.types, resource.props
        await self.services.enter("cinder", "volume_type_update")
        if changed & {"name", "description", "is_public"}:
            types.update(existing, name=props["name"], description=props["description"], is_public=props["is_public"])
        if "metadata" in changed:
            # Heat deletes every key before it sets the new ones, so a key that is left out disappears.
            for key in list(existing.extra_specs):
                types.remove_spec(existing, key)
            if props["metadata"]:
                types.set_specs(existing, props["metadata"])
        if "projects" in changed and not props["is_public"]:
            wanted = self._project_ids(props)
            for project in set(existing.project_ids) - set(wanted):
                types.remove_project(existing, project)
            for project in wanted:
                if project not in existing.project_ids:
                    types.add_project(existing, project)

    async def delete(self, resource: Resource) -> None:
        """Delete it."""
        existing = self._type(resource)
        if existing is not None:
            await self.services.enter("cinder", "volume_type_delete")
            self.services.cinder.types.delete(existing)

    def is_there(self, resource: Resource) -> bool:
        """Whether Cinder has it."""
        return self._type(resource) is not None

    def show(self, resource: Resource) -> Json:
        """Return what Cinder shows of it."""
        existing = self._type(resource)
        return existing.view() if existing else {}

    def _type(self, resource: Resource) -> VolumeType | None:
        return self.services.cinder.types.by_id.get(resource.physical_id or "")

    def _project_ids(self, props: Json) -> list[str]:
        found = (self.services.identity.find_project(str(one)) for one in props["projects"] or ())
        return [project.project_id for project in found if project is not None]


class ImageType(ResourceType):
    """OS::Glance::WebImage; its bits are not downloaded."""

    name = "OS::Glance::WebImage"
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property(updatable=True),
        "location": Property(required=True),
        "disk_format": Property(required=True),
        "container_format": Property(required=True),
        "visibility": Property(default="private", updatable=True),
        "min_disk": Property("integer", updatable=True),
        "min_ram": Property("integer", updatable=True),
        "protected": Property("boolean", default=False, updatable=True),
        "tags": Property("list", updatable=True),
        "extra_properties": Property("map", default={}, updatable=True),
        "id": Property(),
        "architecture": Property(updatable=True),
        "kernel_id": Property(),
        "os_distro": Property(updatable=True),
        "os_version": Property(updatable=True),
        "owner": Property(updatable=True),
        "ramdisk_id": Property(),
        "members": Property("list", default=[], updatable=True),
    }

    async def create(self, resource: Resource) -> None:
        """Create the image."""
        props = resource.props
        await self.services.enter("glance", "image_create")
        body: dict[str, Any] = {key: value for key, value in props.items() if value is not None}
        for key in ("location", "extra_properties", "members"):
            body.pop(key, None)
        body["name"] = props["name"] or resource.physical_name
        image = self.services.glance.create(resource.stack.project_id, body)
        image.status, image.size = "active", 0
        resource.physical_id = image.image_id

    async def delete(self, resource: Resource) -> None:
        """Delete it."""
        image = self.services.glance.images.get(resource.physical_id or "")
        if image is not None:
            await self.services.enter("glance", "image_delete")
            self.services.glance.delete(image)

    def show(self, resource: Resource) -> Json:
        """Return what Glance shows of it."""
        image = self.services.glance.images.get(resource.physical_id or "")
        return image.view() if image else {}


STORAGE_TYPES: Final[Sequence[type[ResourceType]]] = (
    VolumeResource,
    VolumeAttachmentType,
    VolumeTypeResource,
    ImageType,
)
