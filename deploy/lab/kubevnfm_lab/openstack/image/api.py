"""Glance's v2 API."""

from __future__ import annotations

import json
from typing import Any, Final

from aiohttp import web

from kubevnfm_lab.openstack.errors import bad_request
from kubevnfm_lab.openstack.ids import now_z
from kubevnfm_lab.openstack.image.glance import Glance, Image, no_such_image
from kubevnfm_lab.openstack.wire import Call, Json, Wire, base_url, json_answer, no_content

_NO_FILTERS: Final = frozenset(
    {"tag", "marker", "limit", "sort", "sort_key", "sort_dir", "member_status", "os_hidden", "size_min", "size_max"}
)
"""The parameters of a list that name no property."""


class ImageApi:
    """The handlers of Glance's routes."""

    def __init__(self, glance: Glance, wire: Wire) -> None:
        self._glance = glance
        for path in ("", "/", "/versions"):
            wire.route("GET", path, "versions", self.versions, open_to_all=True)
        for path in ("/v2", "/v2/"):
            wire.route("GET", path, "version", self.versions, open_to_all=True)
        wire.route("GET", "/v2/images", "image_list", self.list_images)
        wire.route("POST", "/v2/images", "image_create", self.create)
        wire.route("GET", "/v2/images/{id}", "image_show", self.show)
        wire.route("PATCH", "/v2/images/{id}", "image_update", self.update, raw_body=True)
        wire.route("DELETE", "/v2/images/{id}", "image_delete", self.delete)
        wire.route("PUT", "/v2/images/{id}/file", "image_upload", self.upload, raw_body=True)
        wire.route("PUT", "/v2/images/{id}/tags/{tag}", "image_tag", self.tag, raw_body=True)
        wire.route("DELETE", "/v2/images/{id}/tags/{tag}", "image_untag", self.untag)
        wire.route("GET", "/v2/schemas/{name}", "schema_show", self.schema)
        wire.route("GET", "/v2/info/import", "import_info", self.import_info)

    async def versions(self, call: Call) -> web.Response:
        href = f"{base_url(call.request)}/image/v2/"
        ids = ("v2.15", "v2.13", "v2.12", "v2.9", "v2.0")
        versions = [
            {
                "id": one,
                "status": "CURRENT" if one == ids[0] else "SUPPORTED",
                "links": [{"rel": "self", "href": href}],
            }
            for one in ids
        ]
        return json_answer({"versions": versions}, 300 if call.request.path.rstrip("/").endswith("image") else 200)

    async def list_images(self, call: Call) -> web.Response:
        """Return the images that are visible to the project and pass the filters."""
        # Any other property is a filter too.
        filters = {key: call.query(key) for key in call.request.query if key not in _NO_FILTERS}
        if (name := filters.get("name")) and name.startswith("in:"):
            # The operator takes a list of names, quoted if they have commas; one name is enough for the clients here.
            filters["name"] = name.removeprefix("in:").strip('"')
        shown = [image.view() for image in reversed(self._glance.images.values()) if _visible(image, call.project_id)]
        shown = [one for one in shown if all(one.get(key) == value for key, value in filters.items())]
        if wanted_tags := call.queries("tag"):
            shown = [one for one in shown if set(wanted_tags) <= set(one["tags"])]
        marker, limit = call.query("marker"), call.query("limit")
        if marker is not None:
            ids = [one["id"] for one in shown]
            shown = shown[ids.index(marker) + 1 :] if marker in ids else []
        if limit and limit.isdigit():
            shown = shown[: int(limit)]
        return json_answer({"images": shown, "first": "/v2/images", "schema": "/v2/schemas/images"})

    async def create(self, call: Call) -> web.Response:
        image = self._glance.create(call.project_id, call.body)
        location = f"{base_url(call.request)}/image/v2/images/{image.image_id}"
        return json_answer(image.view(), 201, {"Location": location, "OpenStack-image-import-methods": ""})

    async def show(self, call: Call) -> web.Response:
        return json_answer(self._image(call).view())

    async def update(self, call: Call) -> web.Response:
        """Change an image by a JSON patch of its top-level keys."""
        image = self._image(call)
        try:
            patch = json.loads(await call.request.read())
        except ValueError as error:
            raise bad_request("glance", "Malformed JSON in request body.") from error
        if not isinstance(patch, list):
            raise bad_request("glance", "Request body must be a JSON array of operation objects.")
        for operation in patch:
            _change(image, operation)
        image.updated_at = now_z()
        return json_answer(image.view())

    async def delete(self, call: Call) -> web.Response:
        self._glance.delete(self._image(call))
        return no_content()

    async def upload(self, call: Call) -> web.Response:
        """Read the bits to their end; only their number and checksums are stored."""
        await self._glance.upload(self._image(call), call.request.content.iter_chunked(1 << 18))
        return no_content()

    async def tag(self, call: Call) -> web.Response:
        image, tag = self._image(call), call.path("tag")
        if tag not in image.tags:
            image.tags.append(tag)
        return no_content()

    async def untag(self, call: Call) -> web.Response:
        image, tag = self._image(call), call.path("tag")
        image.tags = [one for one in image.tags if one != tag]
        return no_content()

    async def schema(self, call: Call) -> web.Response:
        schema: Json = {"name": call.path("name"), "properties": {}, "additionalProperties": {"type": "string"}}
        return json_answer(schema)

    async def import_info(self, call: Call) -> web.Response:
        methods = {"description": "Import methods available.", "type": "array", "value": []}
        return json_answer({"import-methods": methods})

    def _image(self, call: Call) -> Image:
        image = self._glance.get(call.path("id"))
        if not _visible(image, call.project_id):
            # Glance answers other projects as if there were no such image.
            raise no_such_image(image.image_id)
        return image


def _visible(image: Image, project_id: str) -> bool:
    return image.visibility in ("public", "community") or image.project_id == project_id


def _change(image: Image, operation: Any) -> None:
    if not isinstance(operation, dict) or operation.get("op") not in ("add", "replace", "remove"):
        raise bad_request("glance", "Operations must be add, replace or remove.")
    key, value = str(operation.get("path", "")).lstrip("/"), operation.get("value")
    plain = {"min_disk": "min_disk_gib", "min_ram": "min_ram_mib"}.get(key, key)
    if plain in (
        "name",
        "visibility",
        "protected",
        "tags",
        "min_disk_gib",
        "min_ram_mib",
        "disk_format",
        "container_format",
    ):
        setattr(image, plain, value)
    elif operation["op"] == "remove":
        image.properties.pop(key, None)
    else:
        image.properties[key] = value
