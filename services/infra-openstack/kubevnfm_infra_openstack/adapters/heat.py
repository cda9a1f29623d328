"""HeatStacks: the StackPort over the Orchestration API v1; Nova and Neutron supply what Heat does not know."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import requests
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.http_dates import read_http_date
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_infra_openstack.adapters.tenants import Document, Tenant, reads, reason_of
from kubevnfm_infra_openstack.adapters.together import together
from kubevnfm_infra_openstack.domain.errors import (
    QuotaExceeded,
    ResourceBusy,
    StackNameTaken,
    StackRefused,
    StackUpdateRefused,
    VimRefused,
    VimUnavailable,
)
from kubevnfm_infra_openstack.domain.failure import is_cancelled
from kubevnfm_infra_openstack.domain.hot import FLOATING_IP, PORT, SERVER, VOLUME
from kubevnfm_infra_openstack.domain.snapshot_ports import REVERTED_TO
from kubevnfm_infra_openstack.domain.stack import (
    FloatingIp,
    HeatResource,
    NeutronPort,
    NovaServer,
    Stack,
    StackChange,
    StackContents,
    StackDefinition,
    StackNews,
    StackOrder,
    StackState,
    state_of,
)
from kubevnfm_infra_openstack.domain.watch import StackWatch

_NEWEST_EVENTS: Final = 100
"""One page: a failed try makes four events of its resource."""
_IDS_PER_CALL: Final = 80
"""Ids in one query string: 80 UUIDs are 3.2 kB, which is below every proxy's limit for a URL."""
_SINGLE_SERVERS: Final = 3
"""Up to this number, each server is one GET; for more, the tenant's list of recently changed servers is cheaper."""
_PAGE: Final = 500
_MOST_PAGES: Final = 100
"""A list that has no end must not hold a worker."""
_CLOCK_SLACK: Final = timedelta(minutes=5)
"""The clocks of Heat and Nova may differ by this much."""
_REQUEST_IDS: Final = re.compile(
    r"\s*(?:\(Request-ID: [^)]{1,80}\)|Neutron server returns request_ids: \[[^\]]{1,400}\])"
)
"""Other ones in each try: without them, the reason of one that is repeated stays the same."""
_NOT_REACHED: Final = "Unable to establish connection to "
"""How the clients in Heat say that another service of the cloud is away."""
_NO_TRUST: Final = "Missing required credential"
"""How Heat says that it cannot pass on the roles of the user (trusts)."""
_QUOTED: Final = 60
"""Characters by which a quoted reason is recognised."""
_DEEPEST: Final = 6
"""Heat's default for the depth of nested stacks is 5; one more costs nothing."""
_NAME_RELEASED_S: Final = 10.0
"""How long Heat may reserve the name of a deleted stack; about one second on a real cloud."""
_NAME_PAUSE_S: Final = 0.2
_MOST_SUBNETS: Final = 5_000
_NOT_PREVIEWED: Final = frozenset({403, 404, 405, 409, 413})


class HeatStacks:
    """The stacks of one tenant."""

    def __init__(self, tenant: Tenant) -> None:
        self._heat = partial(tenant.call, "orchestration")
        self._tenant = tenant
        self._watch = StackWatch(self.by_id)
        self._cidr_by_subnet_id: dict[str, str] = {}
        """Cached for ever, because Neutron does not allow a subnet's CIDR to change."""

    @reads("Heat")
    async def find(self, name: str, *, tag: str, is_ending_too: bool = False) -> Stack | None:
        ending = None
        for stack in await self._list({"name": name}):
            if stack.name != name:
                continue
            # Heat also lists deleted stacks of the name for a while.
            if stack.state is StackState.GONE:
                ending = stack if tag in stack.tags else ending
                continue
            if tag not in stack.tags:
                raise StackNameTaken(name)
            return stack
        return ending if is_ending_too else None

    @reads("Heat")
    async def all(self) -> Mapping[str, Stack]:
        # Without a limit Heat returns all; its pages can lose an entry if a stack is deleted between two calls.
        return {stack.id: stack for stack in await self._list()}

    @reads("Heat")
    async def by_id(self, ids: Sequence[str]) -> Mapping[str, Stack]:
        pages = await together(self._list([("id", one) for one in chunk]) for chunk in _chunks(ids))
        wanted = frozenset(ids)
        return {stack.id: stack for page in pages for stack in page if stack.id in wanted}

    async def _list(self, query: object = None) -> Sequence[Stack]:
        return [_stack(document) for document in (await self._heat("GET", "/stacks", query=query)).json()["stacks"]]

    @reads("Heat")
    async def create(self, order: StackOrder) -> Stack:
        """Waits for the name of a deleted stack until Heat releases it."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + _NAME_RELEASED_S
        response = await self._post(order)
        while response.status_code == 409:
            if loop.time() >= give_up_at or not await self._is_released_soon(order.name):
                raise StackNameTaken(order.name)
            await asyncio.sleep(_NAME_PAUSE_S)
            response = await self._post(order)
        if not response.ok:
            raise await self._refusal(response)
        return Stack(id=response.json()["stack"]["id"], name=order.name, state=StackState.MAKING, tags=order.tags)

    async def _refusal(self, response: requests.Response, refused: type[StackRefused] = StackRefused) -> Exception:
        reason = reason_of(response)
        if response.status_code == 400 and _NO_TRUST in reason:
            # So it is too where Heat remembers that the token of a disabled project was valid.
            await self._tenant.log_in_again()
        # Heat asks the other services about a template's values, and refuses the template too if one does not answer.
        if response.status_code == 400:
            return VimUnavailable("Heat", reason) if _NOT_REACHED in reason else refused(reason)
        # RequestLimitExceeded, Heat's own quota of stacks, has the same status as a missing permission.
        if response.status_code == 403 and "maximum" in reason.lower():
            return QuotaExceeded("stacks", wanted=1, free=0)
        return VimRefused("Heat", f"{response.status_code} {reason}")

    async def _post(self, order: StackOrder) -> requests.Response:
        body = {"stack_name": order.name, "template": order.template, **_input(order)}
        return await self._heat("POST", "/stacks", body=body, fine=frozenset({400, 403, 409, 413}))

    async def _is_released_soon(self, name: str) -> bool:
        """Return whether only deleted stacks have the name. Heat reserves it about a second longer than the stack."""
        found = await self._list({"name": name})
        return all(stack.state is StackState.GONE for stack in found if stack.name == name)

    @reads("Heat")
    async def check(self, name: str, definition: StackDefinition) -> None:
        # By a name that no stack has: Heat refuses a second stack of one name before it reads the template.
        body = {
            "stack_name": f"{name[:240]}-check",
            "template": definition.template,
            "parameters": dict(definition.parameters),
            "files": dict(definition.files),
        }
        response = await self._heat("POST", "/stacks/preview", body=body, fine=_NOT_PREVIEWED | {400})
        # Where the cloud has no room for another stack, or allows no preview, the request itself decides.
        if response.status_code == 400:
            raise await self._refusal(response)

    @reads("Heat")
    async def definition(self, stack: Stack) -> StackDefinition:
        parts = ("template", "environment", "files")
        template, environment, files = await together(self._heat("GET", f"{_path(stack)}/{part}") for part in parts)
        return StackDefinition(
            template=template.json(), parameters=environment.json().get("parameters") or {}, files=files.json() or {}
        )

    async def change(self, stack: Stack, change: StackChange) -> Stack:
        body = _input(change) if change.template is None else {**_input(change), "template": change.template}
        method = "PUT" if change.is_whole else "PATCH"
        response = await self._heat(method, _path(stack), body=body, fine=frozenset({400, 403, 413}))
        if not response.ok:
            raise await self._refusal(response, StackUpdateRefused)
        # Without this, a stack of some age would be polled only every 5 s during a quick change.
        self._watch.begin(stack)
        return replace(stack, state=StackState.MAKING, tags=change.tags)

    async def mark_unhealthy(self, resource: HeatResource, reason: str) -> None:
        path = f"/stacks/{resource.stack_name}/{resource.stack_id}/resources/{resource.name}"
        body = {"mark_unhealthy": True, "resource_status_reason": reason}
        response = await self._heat("PATCH", path, body=body, fine=frozenset({404, 409}))
        # Heat locks a resource while it works on it.
        if response.status_code == 409:
            raise ResourceBusy(f"{resource.name}: {reason_of(response)}")

    async def stop_change(self, stack: Stack) -> None:
        # 400: there is no work in progress.
        body = {"cancel_without_rollback": None}
        await self._heat("POST", f"{_path(stack)}/actions", body=body, fine=frozenset({400, 404}))

    async def delete(self, stack: Stack) -> None:
        await self._heat("DELETE", _path(stack), fine=frozenset({404}))

    async def settle(self, stack: Stack, *, until: frozenset[StackState], within_s: float) -> Stack | None:
        return await self._watch.settle(stack, until=until, within_s=within_s)

    @reads("Heat")
    async def resources(self, stack: Stack) -> Sequence[HeatResource]:
        query = {"nested_depth": _DEEPEST}
        response = await self._heat("GET", f"{_path(stack)}/resources", query=query, fine=frozenset({404}))
        # 404: the stack was deleted meanwhile, so it has no resources.
        return [_resource(r) for r in response.json().get("resources", ())] if response.ok else []

    @reads("Heat")
    async def news(self, stack: Stack) -> StackNews:
        query = {"nested_depth": _DEEPEST, "limit": _NEWEST_EVENTS, "sort_dir": "desc"}
        response = await self._heat("GET", f"{_path(stack)}/events", query=query, fine=frozenset({404}))
        events = response.json().get("events", ()) if response.ok else ()
        last_at = _moment(events[0].get("event_time")) if events else None
        now = read_http_date(response.headers.get("Date") or "")
        failure, in_work = _present_work(events, stack)
        return StackNews(
            failure=await self._failure(failure) if failure is not None else "",
            last_at=last_at,
            silent_s=(now - last_at).total_seconds() if last_at and now else 0.0,
            in_work=in_work,
        )

    async def _failure(self, event: Document) -> str:
        reason = _REQUEST_IDS.sub("", event["resource_status_reason"]).strip()
        return f"{event['resource_name']} ({await self._type(event)}): {reason}"

    async def _type(self, event: Document) -> str:
        """Return the type of an event's resource, which the list of events does not show."""
        own = next((link["href"] for link in event.get("links", ()) if link["rel"] == "self"), "")
        _, found, path = own.partition("/stacks/")
        response = await self._heat("GET", f"/stacks/{path}", fine=frozenset({404})) if found else None
        return str(response.json()["event"]["resource_type"]) if response is not None and response.ok else "a resource"

    @reads("Heat")
    async def contents(self, stack: Stack, shown: Sequence[HeatResource] = ()) -> StackContents:
        resources = await self.resources(stack)
        listed = {r.physical_id for r in resources}
        unlisted = [r for r in shown if r.physical_id not in listed]
        ids = {
            kind: [r.physical_id for r in (*resources, *unlisted) if r.type == kind and r.physical_id]
            for kind in _DETAILED
        }
        # A server's ports need not be in the template: they may have been made before, or by Nova for a network.
        servers, (declared, bound, addresses), nfv = await asyncio.gather(
            self._servers(ids[SERVER], stack.created_at),
            together(
                [
                    self._neutron("ports", "id", ids[PORT]),
                    self._neutron("ports", "device_id", ids[SERVER]),
                    self._neutron("floatingips", "id", ids[FLOATING_IP]),
                ]
            ),
            self._nfv(stack),
        )
        ports = {document["id"]: document for document in (*declared, *bound)}
        subnets = {ip["subnet_id"] for document in ports.values() for ip in document.get("fixed_ips") or ()}
        # The same is true of the floating IPs of its ports.
        of_ports, cidr_by_subnet_id = await asyncio.gather(
            self._neutron("floatingips", "port_id", sorted(ports)), self._cidrs(subnets)
        )
        floating = [_floating_ip(document) for document in (*addresses, *of_ports)]
        address_by_port = {f.port_id: f.address for f in floating if f.port_id}
        return StackContents(
            resources=resources,
            server_by_id={s.id: s for s in servers},
            port_by_id={port_id: _port(port, address_by_port.get(port_id)) for port_id, port in ports.items()},
            floating_by_id={f.id: f for f in floating},
            cidr_by_subnet_id=cidr_by_subnet_id,
            replaced=_existing(unlisted, servers),
            nfv=nfv,
        )

    async def close(self) -> None:
        """End the watch."""
        await self._watch.close()

    async def _nfv(self, stack: Stack) -> JsonObject:
        """Return the present value of the stack's parameter ``nfv``; empty if it has none."""
        # Without this query Heat computes the outputs, which can take many calls to the other services.
        response = await self._heat("GET", _path(stack), query={"resolve_outputs": "False"}, fine=frozenset({404}))
        value = response.json()["stack"].get("parameters", {}).get("nfv", "") if response.ok else ""
        try:
            # Heat shows a JSON parameter as a text, and a hidden one as asterisks.
            found = read_foreign(value)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    async def _servers(self, ids: Sequence[str], since: datetime | None) -> Sequence[NovaServer]:
        if len(ids) <= _SINGLE_SERVERS or since is None:
            answers = await together(
                self._tenant.call("compute", "GET", f"/servers/{one}", fine=frozenset({404})) for one in ids
            )
            return [_server(answer.json()["server"]) for answer in answers if answer.ok]
        wanted, found = set(ids), []
        # Only administrators may filter by id, but all users may filter by time.
        query = {"limit": str(_PAGE), "changes-since": (since - _CLOCK_SLACK).astimezone(UTC).isoformat()}
        for _ in range(_MOST_PAGES):
            page = (await self._tenant.call("compute", "GET", "/servers/detail", query=query)).json()["servers"]
            for document in page:
                if document["id"] in wanted:
                    wanted.discard(document["id"])
                    # A list by time has deleted servers too.
                    if document.get("status") != "DELETED":
                        found.append(_server(document))
            if len(page) < _PAGE or not wanted:
                break
            query["marker"] = page[-1]["id"]
        return found

    async def _cidrs(self, subnet_ids: set[str]) -> Mapping[str, str]:
        if len(self._cidr_by_subnet_id) > _MOST_SUBNETS:
            self._cidr_by_subnet_id.clear()
        for document in await self._neutron("subnets", "id", sorted(subnet_ids - self._cidr_by_subnet_id.keys())):
            self._cidr_by_subnet_id[document["id"]] = document["cidr"]
        return {one: self._cidr_by_subnet_id[one] for one in subnet_ids if one in self._cidr_by_subnet_id}

    async def _neutron(self, collection: str, key: str, ids: Sequence[str]) -> Sequence[Document]:
        """Return the documents whose attribute ``key`` has one of the ids."""
        pages = await together(
            self._tenant.call("network", "GET", f"/{collection}", query=[(key, one) for one in chunk])
            for chunk in _chunks(ids)
        )
        wanted = frozenset(ids)
        return [d for page in pages for d in page.json()[collection] if d[key] in wanted]


def _present_work(events: Sequence[Document], stack: Stack) -> tuple[Document | None, Sequence[str]]:
    """Return the newest failure of Heat's present work that no later try has mended, and the names of what is in work.

    If failures repeat each other, the deepest is returned. ``events``: the newest first.
    """
    done: set[str] = set()
    newest: dict[str, Document] = {}
    failure: Document | None = None
    for event in events:
        action, _, outcome = str(event["resource_status"]).partition("_")
        if event.get("physical_resource_id") == stack.id:
            if outcome == "IN_PROGRESS":
                break  # Heat's present work has begun here
            continue
        resource = next((link["href"] for link in event.get("links", ()) if link["rel"] == "resource"), "")
        reason = event.get("resource_status_reason") or ""
        if not _is_of_stack(event):
            newest.setdefault(resource, event)
        if outcome == "COMPLETE" and action != "DELETE":  # a try after a failure begins with a deletion
            done.add(resource)
            continue
        is_failure = outcome == "FAILED" and reason and resource not in done and not is_cancelled(reason)
        # The stacks around a resource fail after it, and quote it as far as Heat's limit for a reason allows.
        if is_failure and (failure is None or reason[:_QUOTED] in failure["resource_status_reason"]):
            failure = event
    in_work = [
        str(each["resource_name"]) for each in newest.values() if each["resource_status"].endswith("_IN_PROGRESS")
    ]
    return failure, in_work


def _is_of_stack(event: Document) -> bool:
    """Return whether a nested stack itself is meant, and not a resource in it."""
    holder = next((str(link["href"]) for link in event.get("links", ()) if link["rel"] == "stack"), "")
    return bool(holder) and holder.rpartition("/")[2] == event.get("physical_resource_id")


def _existing(unlisted: Sequence[HeatResource], servers: Sequence[NovaServer]) -> Sequence[HeatResource]:
    """Return those of the servers that Nova has, and the volumes in them."""
    there = {server.id: server for server in servers}
    left = [r for r in unlisted if r.type == SERVER and r.physical_id in there]
    volumes = {volume for r in left for volume in there[r.physical_id].volume_ids}
    return [*left, *(r for r in unlisted if r.type == VOLUME and r.physical_id in volumes)]


def _path(stack: Stack) -> str:
    return f"/stacks/{stack.name}/{stack.id}"


def _input(given: StackOrder | StackChange) -> dict[str, object]:
    return {
        "files": dict(given.files),
        "parameters": dict(given.parameters),
        "tags": ",".join(given.tags),
        # A rollback by Heat would delete the evidence; what happens next is the operation's decision.
        "disable_rollback": True,
        "timeout_mins": max(1, math.ceil(given.timeout_s / 60)),
    }


_DETAILED: Final = (SERVER, PORT, FLOATING_IP)


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _IDS_PER_CALL):
        yield ids[start : start + _IDS_PER_CALL]


def _stack(document: Document) -> Stack:
    return Stack(
        id=document["id"],
        name=document["stack_name"],
        state=state_of(document["stack_status"]),
        reason=document.get("stack_status_reason") or "",
        tags=tuple(document.get("tags") or ()),
        created_at=_moment(document.get("creation_time")),
    )


def _resource(document: Document) -> HeatResource:
    # Heat names the containing stack and the nested one only in links: .../stacks/<name>/<id>
    links = {link["rel"]: str(link["href"]) for link in document.get("links", ())}
    holder = links.get("stack", "").rstrip("/").split("/")
    return HeatResource(
        name=document["resource_name"],
        type=document["resource_type"],
        physical_id=document.get("physical_resource_id") or "",
        status=document["resource_status"],
        reason=document.get("resource_status_reason") or "",
        stack_id=holder[-1],
        stack_name=holder[-2] if len(holder) > 1 else "",
        nested_id=links.get("nested", "").rstrip("/").split("/")[-1],
    )


def _server(document: Document) -> NovaServer:
    # ``image`` is "" for a server that boots from a volume; ``flavor`` has no id from microversion 2.47 on.
    image, flavor = document.get("image") or {}, document.get("flavor") or {}
    return NovaServer(
        id=document["id"],
        name=document["name"],
        host=document.get("OS-EXT-SRV-ATTR:host") or document.get("hostId") or None,
        zone=document.get("OS-EXT-AZ:availability_zone") or None,
        image_id=image.get("id") if isinstance(image, Mapping) else None,
        is_reverted=isinstance(image, Mapping)
        and bool(image)
        and (document.get("metadata") or {}).get(REVERTED_TO) == image.get("id"),
        flavor=flavor.get("original_name") or flavor.get("id"),
        created_at=_moment(document.get("created")),
        volume_ids=tuple(volume["id"] for volume in document.get("os-extended-volumes:volumes_attached") or ()),
        status=document.get("status") or "",
    )


def _port(document: Document, floating_address: str | None) -> NeutronPort:
    fixed = document.get("fixed_ips") or ()
    return NeutronPort(
        id=document["id"],
        addresses=tuple(ip["ip_address"] for ip in fixed),
        subnet_ids=tuple(ip["subnet_id"] for ip in fixed),
        mac=document.get("mac_address"),
        network_id=document.get("network_id"),
        floating_address=floating_address,
        device_id=document.get("device_id") or "",
    )


def _floating_ip(document: Document) -> FloatingIp:
    return FloatingIp(
        id=document["id"],
        address=document["floating_ip_address"],
        port_id=document.get("port_id"),
        network_id=document.get("floating_network_id"),
    )


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    # Some of Heat's and Nova's times lack the zone; they are UTC.
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
