"""Cinder's v3 API of volume types: ``/types``, their extra specs and the access of projects to them."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from kubevnfm_lab.openstack.errors import bad_request, not_found
from kubevnfm_lab.openstack.volume.volume_types import VolumeType, VolumeTypes
from kubevnfm_lab.openstack.wire import Call, Json, Wire, json_answer, no_content

_ROOT: Final = "/v3/{project}/types"
_TRUE: Final = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "off", "0"})


class VolumeTypesApi:
    """The handlers of the routes under ``/types``."""

    def __init__(self, types: VolumeTypes, wire: Wire) -> None:
        self._types = types
        one = _ROOT + "/{id}"
        wire.route("GET", _ROOT, "volume_type_list", self.list_types)
        wire.route("POST", _ROOT, "volume_type_create", self.create)
        wire.route("GET", one, "volume_type_show", self.show)
        wire.route("PUT", one, "volume_type_update", self.update)
        wire.route("DELETE", one, "volume_type_delete", self.delete)
        wire.route("POST", one + "/action", "volume_type_action", self.action)
        wire.route("GET", one + "/os-volume-type-access", "volume_type_access_list", self.access)
        wire.route("GET", one + "/extra_specs", "volume_type_specs_list", self.list_specs)
        wire.route("POST", one + "/extra_specs", "volume_type_specs_create", self.set_specs)
        wire.route("GET", one + "/extra_specs/{key}", "volume_type_specs_show", self.show_spec)
        wire.route("PUT", one + "/extra_specs/{key}", "volume_type_specs_update", self.update_spec)
        wire.route("DELETE", one + "/extra_specs/{key}", "volume_type_specs_delete", self.delete_spec)

    async def list_types(self, call: Call) -> web.Response:
        """Return the public types unless ``is_public`` asks for others; ``None`` asks for all."""
        asked = call.query("is_public")
        wanted = _public_or_not(asked) if asked is not None else True
        listed = [one.view() for one in reversed(self._types.by_id.values()) if wanted in (None, one.is_public)]
        return json_answer({"volume_types": listed})

    async def create(self, call: Call) -> web.Response:
        body = call.part_of_body("cinder", "volume_type")
        made = self._types.create(
            name=str(body.get("name") or ""),
            description=_text(body, "description"),
            is_public=_is_public(body) is not False,
            extra_specs=_specs(body),
        )
        return json_answer({"volume_type": made.view()})

    async def show(self, call: Call) -> web.Response:
        wanted = self._types.default if call.path("id") == "default" else self._type(call)
        return json_answer({"volume_type": wanted.view()})

    async def update(self, call: Call) -> web.Response:
        changed, body = self._type(call), call.part_of_body("cinder", "volume_type")
        name, description = _text(body, "name"), _text(body, "description")
        self._types.update(changed, name=name, description=description, is_public=_is_public(body))
        return json_answer({"volume_type": changed.view()})

    async def delete(self, call: Call) -> web.Response:
        self._types.delete(self._type(call))
        return no_content(202)

    async def action(self, call: Call) -> web.Response:
        """Add or remove the access of one project."""
        changed = self._type(call)
        for name, change in (
            ("addProjectAccess", self._types.add_project),
            ("removeProjectAccess", self._types.remove_project),
        ):
            if name in call.body:
                change(changed, str(call.part_of_body("cinder", name).get("project") or ""))
                return no_content(202)
        raise bad_request("cinder", f"There is no such action: {', '.join(call.body)}")

    async def access(self, call: Call) -> web.Response:
        """Return which projects have access; a public type has no such list."""
        shown = self._type(call)
        if shown.is_public:
            message = "Access list not available for public volume types."
            raise not_found("cinder", "VolumeTypeAccessNotFound", message)
        listed = [{"volume_type_id": shown.type_id, "project_id": one} for one in shown.project_ids]
        return json_answer({"volume_type_access": listed})

    async def list_specs(self, call: Call) -> web.Response:
        return json_answer({"extra_specs": self._type(call).extra_specs})

    async def set_specs(self, call: Call) -> web.Response:
        """Set some extra specs; the answer repeats the request, as Cinder's does."""
        self._types.set_specs(self._type(call), call.part_of_body("cinder", "extra_specs"))
        return json_answer(call.body)

    async def show_spec(self, call: Call) -> web.Response:
        shown, key = self._type(call), call.path("key")
        if key not in shown.extra_specs:
            message = f"Volume Type {shown.type_id} has no extra specs with key {key}."
            raise not_found("cinder", "VolumeTypeExtraSpecsNotFound", message)
        return json_answer({key: shown.extra_specs[key]})

    async def update_spec(self, call: Call) -> web.Response:
        if call.path("key") not in call.body:
            raise bad_request("cinder", "Request body and URI mismatch")
        self._types.set_specs(self._type(call), call.body)
        return json_answer(call.body)

    async def delete_spec(self, call: Call) -> web.Response:
        self._types.remove_spec(self._type(call), call.path("key"))
        return no_content(202)

    def _type(self, call: Call) -> VolumeType:
        # Cinder finds a type in a path by its id only; clients that have a name list the types first.
        return self._types.get(call.path("id"))


def _public_or_not(text: str) -> bool | None:
    lowered = text.lower()
    if lowered == "none":
        return None
    if lowered in _TRUE | _FALSE:
        return lowered in _TRUE
    raise bad_request("cinder", f"Invalid is_public filter [{text}]")


def _is_public(body: Json) -> bool | None:
    # Cinder's own clients send the name of the extension; its API reference has the short one for updates.
    value = body.get("os-volume-type-access:is_public", body.get("is_public"))
    if value is None:
        return None
    if str(value).lower() not in _TRUE | _FALSE:
        raise bad_request("cinder", f"Invalid value '{value}' for is_public. Accepted values: True or False.")
    return str(value).lower() in _TRUE


def _text(body: Json, key: str) -> str | None:
    value = body.get(key)
    return None if value is None else str(value)


def _specs(body: Json) -> Json:
    specs = body.get("extra_specs") or {}
    if not isinstance(specs, dict):
        raise bad_request("cinder", f"Invalid input for field/attribute extra_specs. Value: {specs}. Not an object")
    return specs
