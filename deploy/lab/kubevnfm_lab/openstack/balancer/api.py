"""Octavia's v2.0 API, as far as load balancers of connections need it: no rules of layer 7, no health monitors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from aiohttp import web

from kubevnfm_lab.openstack.balancer.octavia import Octavia
from kubevnfm_lab.openstack.balancer.records import Listener, LoadBalancer, Member, Pool, Record
from kubevnfm_lab.openstack.errors import bad_request
from kubevnfm_lab.openstack.wire import Call, Json, Wire, base_url, json_answer, no_content

_NOT_FILTERS: Final = frozenset({"limit", "marker", "fields", "sort", "tags"})
_TRUE: Final = ("true", "1", "yes")


class BalancerApi:
    """The handlers of Octavia's routes."""

    def __init__(self, octavia: Octavia, wire: Wire) -> None:
        self._octavia = octavia
        for path in ("", "/"):
            wire.route("GET", path, "versions", self.versions, open_to_all=True)
        for root in ("/v2/lbaas", "/v2.0/lbaas"):
            for path, one, (listed, create, show, update, delete) in (
                ("/loadbalancers", "loadbalancer", self._balancer_verbs()),
                ("/listeners", "listener", self._listener_verbs()),
                ("/pools", "pool", self._pool_verbs()),
                ("/pools/{pool}/members", "member", self._member_verbs()),
            ):
                wire.route("GET", root + path, f"{one}_list", listed)
                wire.route("POST", root + path, f"{one}_create", create)
                wire.route("GET", root + path + "/{id}", f"{one}_show", show)
                wire.route("PUT", root + path + "/{id}", f"{one}_update", update)
                wire.route("DELETE", root + path + "/{id}", f"{one}_delete", delete)

    async def versions(self, call: Call) -> web.Response:
        href = f"{base_url(call.request)}/load-balancer/v2"
        links = [{"href": href, "rel": "self"}]
        # Tags came with 2.5; the cloud is at the version of OpenStack Zed.
        return json_answer(
            {
                "versions": [
                    {"id": "v2.0", "status": "SUPPORTED", "updated": "2016-12-11T00:00:00Z", "links": links},
                    {"id": "v2.5", "status": "SUPPORTED", "updated": "2019-01-21T00:00:00Z", "links": links},
                    {"id": "v2.26", "status": "CURRENT", "updated": "2022-08-29T00:00:00Z", "links": links},
                ]
            }
        )

    # -- load balancers

    def _balancer_verbs(self) -> Any:
        return self.list_balancers, self.create_balancer, self.show_balancer, self.update_balancer, self.delete_balancer

    async def list_balancers(self, call: Call) -> web.Response:
        return _listed(call, "loadbalancers", self._octavia.balancers.values())

    async def create_balancer(self, call: Call) -> web.Response:
        body = call.part_of_body("octavia", "loadbalancer")
        if not body.get("vip_subnet_id"):
            message = "Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id."
            raise bad_request("octavia", message, "ValidationException")
        made = self._octavia.create_balancer(
            call.project_id,
            subnet_id=str(body["vip_subnet_id"]),
            address=body.get("vip_address"),
            **_facts(body),
        )
        return json_answer({"loadbalancer": made.view()}, 201)

    async def show_balancer(self, call: Call) -> web.Response:
        return json_answer({"loadbalancer": self._balancer(call).view()})

    async def update_balancer(self, call: Call) -> web.Response:
        balancer = self._balancer(call)
        self._octavia.change(balancer)
        return _changed(balancer, "loadbalancer", call)

    async def delete_balancer(self, call: Call) -> web.Response:
        cascade = str(call.query("cascade") or "").lower() in _TRUE
        self._octavia.delete_balancer(self._balancer(call), cascade=cascade)
        return no_content()

    # -- listeners

    def _listener_verbs(self) -> Any:
        return self.list_listeners, self.create_listener, self.show_listener, self.update_listener, self.delete_listener

    async def list_listeners(self, call: Call) -> web.Response:
        return _listed(call, "listeners", self._octavia.listeners.values())

    async def create_listener(self, call: Call) -> web.Response:
        body = call.part_of_body("octavia", "listener")
        made = self._octavia.create_listener(
            self._octavia.balancer(str(body.get("loadbalancer_id"))),
            protocol=_required(body, "protocol"),
            port=int(_required(body, "protocol_port")),
            pool_id=body.get("default_pool_id"),
            **_facts(body),
        )
        return json_answer({"listener": made.view()}, 201)

    async def show_listener(self, call: Call) -> web.Response:
        return json_answer({"listener": self._octavia.listener(call.path("id")).view()})

    async def update_listener(self, call: Call) -> web.Response:
        listener = self._octavia.listener(call.path("id"))
        self._octavia.change(self._octavia.balancer(listener.balancer_id))
        return _changed(listener, "listener", call)

    async def delete_listener(self, call: Call) -> web.Response:
        self._octavia.delete_listener(self._octavia.listener(call.path("id")))
        return no_content()

    # -- pools

    def _pool_verbs(self) -> Any:
        return self.list_pools, self.create_pool, self.show_pool, self.update_pool, self.delete_pool

    async def list_pools(self, call: Call) -> web.Response:
        return _listed(call, "pools", self._octavia.pools.values())

    async def create_pool(self, call: Call) -> web.Response:
        body = call.part_of_body("octavia", "pool")
        balancer_id, listener_id = body.get("loadbalancer_id"), body.get("listener_id")
        made = self._octavia.create_pool(
            balancer=self._octavia.balancer(str(balancer_id)) if balancer_id else None,
            listener=self._octavia.listener(str(listener_id)) if listener_id else None,
            protocol=_required(body, "protocol"),
            algorithm=_required(body, "lb_algorithm"),
            **_facts(body),
        )
        return json_answer({"pool": made.view()}, 201)

    async def show_pool(self, call: Call) -> web.Response:
        return json_answer({"pool": self._octavia.pool(call.path("id")).view()})

    async def update_pool(self, call: Call) -> web.Response:
        pool = self._octavia.pool(call.path("id"))
        self._octavia.change(self._octavia.balancer(pool.balancer_id))
        return _changed(pool, "pool", call)

    async def delete_pool(self, call: Call) -> web.Response:
        self._octavia.delete_pool(self._octavia.pool(call.path("id")))
        return no_content()

    # -- members

    def _member_verbs(self) -> Any:
        return self.list_members, self.create_member, self.show_member, self.update_member, self.delete_member

    async def list_members(self, call: Call) -> web.Response:
        return _listed(call, "members", self._octavia.pool(call.path("pool")).members.values())

    async def create_member(self, call: Call) -> web.Response:
        body = call.part_of_body("octavia", "member")
        made = self._octavia.create_member(
            self._octavia.pool(call.path("pool")),
            address=_required(body, "address"),
            port=int(_required(body, "protocol_port")),
            subnet_id=body.get("subnet_id"),
            weight=int(body.get("weight", 1)),
            **_facts(body),
        )
        return json_answer({"member": made.view()}, 201)

    async def show_member(self, call: Call) -> web.Response:
        pool = self._octavia.pool(call.path("pool"))
        return json_answer({"member": self._octavia.member(pool, call.path("id")).view()})

    async def update_member(self, call: Call) -> web.Response:
        pool = self._octavia.pool(call.path("pool"))
        member = self._octavia.member(pool, call.path("id"))
        self._octavia.change(self._octavia.balancer(pool.balancer_id))
        return _changed(member, "member", call)

    async def delete_member(self, call: Call) -> web.Response:
        pool = self._octavia.pool(call.path("pool"))
        self._octavia.delete_member(pool, self._octavia.member(pool, call.path("id")))
        return no_content()

    def _balancer(self, call: Call) -> LoadBalancer:
        return self._octavia.balancer(call.path("id"))


def _facts(body: Json) -> Json:
    return {
        "name": str(body.get("name") or ""),
        "description": str(body.get("description") or ""),
        "admin_state_up": bool(body.get("admin_state_up", True)),
        "tags": [str(one) for one in body.get("tags") or ()],
    }


def _required(body: Json, name: str) -> Any:
    value = body.get(name)
    if value is None:
        message = f"Invalid input for field/attribute {name}. Value: 'None'. Mandatory field missing."
        raise bad_request("octavia", message, "ClientSideError")
    return value


def _changed(record: Record, key: str, call: Call) -> web.Response:
    body = call.part_of_body("octavia", key)
    for name in ("name", "description", "admin_state_up", "tags"):
        if name in body:
            setattr(record, name, body[name])
    return json_answer({key: _view(record)})


def _listed(call: Call, key: str, records: Iterable[Record]) -> web.Response:
    shown = [_view(one) for one in records if one.project_id == call.project_id]
    wanted = {name: value for name, value in call.request.query.items() if name not in _NOT_FILTERS}
    shown = [one for one in shown if all(str(one[name]) == value for name, value in wanted.items() if name in one)]
    if tags := call.query("tags"):
        # Octavia takes them divided by commas; all must match.
        shown = [one for one in shown if set(tags.split(",")) <= set(one["tags"])]
    return json_answer({key: shown, f"{key}_links": []})


def _view(record: Record) -> Json:
    assert isinstance(record, LoadBalancer | Listener | Pool | Member)
    return record.view()
