"""Nova's API of a server's ingredients: flavors, key pairs, server groups."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_lab.openstack.compute.microversion import minor_of
from kubevnfm_lab.openstack.compute.nova import Nova
from kubevnfm_lab.openstack.compute.views import (
    flavor_detail,
    flavor_links,
)
from kubevnfm_lab.openstack.errors import bad_request, conflict, not_found
from kubevnfm_lab.openstack.ids import new_uuid
from kubevnfm_lab.openstack.settings import Flavor
from kubevnfm_lab.openstack.wire import Call, Wire, base_url, json_answer, no_content


class FlavorsApi:
    """The handlers of the routes under /flavors, /os-keypairs and /os-server-groups."""

    def __init__(self, nova: Nova, wire: Wire) -> None:
        self._nova = nova
        flavors = "/v2.1/flavors"
        wire.route("GET", flavors, "flavor_list", self.list_flavors)
        wire.route("GET", flavors + "/detail", "flavor_list", self.list_flavors_detail)
        wire.route("POST", flavors, "flavor_create", self.create_flavor)
        wire.route("GET", flavors + "/{id}", "flavor_show", self.show_flavor)
        wire.route("DELETE", flavors + "/{id}", "flavor_delete", self.delete_flavor)
        wire.route("GET", flavors + "/{id}/os-extra_specs", "flavor_extra_specs", self.extra_specs)
        root = "/v2.1"
        wire.route("GET", root + "/os-keypairs", "keypair_list", self.list_keys)
        wire.route("POST", root + "/os-keypairs", "keypair_create", self.create_key)
        wire.route("GET", root + "/os-keypairs/{name}", "keypair_show", self.show_key)
        wire.route("DELETE", root + "/os-keypairs/{name}", "keypair_delete", self.delete_key)
        wire.route("GET", root + "/os-server-groups", "server_group_list", self.list_groups)
        wire.route("POST", root + "/os-server-groups", "server_group_create", self.create_group)
        wire.route("GET", root + "/os-server-groups/{id}", "server_group_show", self.show_group)
        wire.route("DELETE", root + "/os-server-groups/{id}", "server_group_delete", self.delete_group)

    async def list_flavors(self, call: Call) -> web.Response:
        base = base_url(call.request)
        listed = [
            {"id": f.flavor_id, "name": f.name, "links": flavor_links(f, base)} for f in self._nova.flavors.values()
        ]
        return json_answer({"flavors": listed})

    async def list_flavors_detail(self, call: Call) -> web.Response:
        base, minor = base_url(call.request), minor_of(call)
        return json_answer({"flavors": [flavor_detail(f, base, minor) for f in self._nova.flavors.values()]})

    async def show_flavor(self, call: Call) -> web.Response:
        return json_answer({"flavor": flavor_detail(self._flavor(call), base_url(call.request), minor_of(call))})

    async def create_flavor(self, call: Call) -> web.Response:
        body = call.part_of_body("nova", "flavor")
        flavor_id = str(body.get("id") or new_uuid())
        if flavor_id in self._nova.flavors:
            raise conflict("nova", "FlavorIdExists", f"Flavor with ID {flavor_id} already exists.")
        try:
            made = Flavor(flavor_id, str(body["name"]), int(body["vcpus"]), int(body["ram"]), int(body.get("disk", 0)))
        except (KeyError, ValueError, TypeError) as error:
            raise bad_request("nova", f"Invalid input for field/attribute flavor: {error}") from error
        self._nova.flavors[flavor_id] = made
        return json_answer({"flavor": flavor_detail(made, base_url(call.request), minor_of(call))})

    async def delete_flavor(self, call: Call) -> web.Response:
        del self._nova.flavors[self._flavor(call).flavor_id]
        return no_content(202)

    async def extra_specs(self, call: Call) -> web.Response:
        return json_answer({"extra_specs": dict(self._flavor(call).extra_specs)})

    async def list_keys(self, call: Call) -> web.Response:
        mine = [key for key in self._nova.key_pairs.values() if key.user_id == call.token.user.user_id]
        return json_answer({"keypairs": [{"keypair": key.view(minor_of(call))} for key in mine]})

    async def create_key(self, call: Call) -> web.Response:
        body = call.part_of_body("nova", "keypair")
        if not body.get("public_key"):
            message = f"Invalid input for field/attribute keypair. Value: {body}. 'public_key' is a required property"
            raise bad_request("nova", message)
        user_id = call.token.user.user_id
        minor = minor_of(call)
        made = self._nova.add_key_pair(user_id, str(body.get("name", "")), str(body["public_key"]))
        return json_answer({"keypair": {**made.view(minor), "user_id": user_id}}, 201 if minor >= 2 else 200)

    async def show_key(self, call: Call) -> web.Response:
        key = (call.token.user.user_id, call.path("name"))
        found = self._nova.key_pairs.get(key)
        if found is None:
            raise not_found("nova", "KeypairNotFound", f"Keypair {key[1]} not found for user {key[0]}")
        more = {
            "user_id": found.user_id,
            "id": 1,
            "deleted": False,
            "created_at": found.created_at,
            "deleted_at": None,
            "updated_at": None,
        }
        return json_answer({"keypair": {**found.view(minor_of(call)), **more}})

    async def delete_key(self, call: Call) -> web.Response:
        key = (call.token.user.user_id, call.path("name"))
        if self._nova.key_pairs.pop(key, None) is None:
            raise not_found("nova", "KeypairNotFound", f"Keypair {key[1]} not found for user {key[0]}")
        return no_content(204 if minor_of(call) >= 2 else 202)

    async def list_groups(self, call: Call) -> web.Response:
        mine = [
            group.view(minor_of(call)) for group in self._nova.groups.values() if group.project_id == call.project_id
        ]
        return json_answer({"server_groups": mine})

    async def create_group(self, call: Call) -> web.Response:
        body = call.part_of_body("nova", "server_group")
        made = self._nova.add_group(
            name=str(body.get("name", "")),
            policy=str(body.get("policy") or (body.get("policies") or [""])[0]),
            project_id=call.project_id,
            user_id=call.token.user.user_id,
        )
        return json_answer({"server_group": made.view(minor_of(call))})

    async def show_group(self, call: Call) -> web.Response:
        found = self._nova.groups.get(call.path("id"))
        if found is None:
            raise not_found("nova", "InstanceGroupNotFound", f"Instance group {call.path('id')} could not be found.")
        return json_answer({"server_group": found.view(minor_of(call))})

    async def delete_group(self, call: Call) -> web.Response:
        if self._nova.groups.pop(call.path("id"), None) is None:
            raise not_found("nova", "InstanceGroupNotFound", f"Instance group {call.path('id')} could not be found.")
        return no_content()

    def _flavor(self, call: Call) -> Flavor:
        found = self._nova.flavors.get(call.path("id"))
        if found is None:
            raise not_found("nova", "FlavorNotFound", f"Flavor {call.path('id')} could not be found.")
        return found
