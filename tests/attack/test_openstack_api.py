"""A hostile Keystone, and hostile services in the catalogue of an honest one, against vim-registry and infra-openstack."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.domain.errors import StackNameTaken, VimRefused, VimUnavailable
from kubevnfm_infra_openstack.domain.stack import Stack, StackState
from kubevnfm_secrets import KeyRing
from kubevnfm_vim_registry.adapters.openstack import OpenstackProbe
from kubevnfm_vim_registry.domain.errors import VimRefused as RegistrationRefused
from kubevnfm_vim_registry.domain.errors import VimUnauthorized, VimUnreachable
from kubevnfm_vim_registry.domain.record import VimRecord
from servers.hostile import ATTACKS, Hostile, Speech, answers, flat_memory, hostile_server, json_attack
from worlds.stack_world import openstack_vim

RING = KeyRing([bytes(32)])
PASSWORD = "s3cret-password"
TOKEN = "s3cret-token"
MOST_MIB = 240
"""Up to four calls are under way at once. Each may take the 16 MiB of its answer twice, and so does the hostile server's end of it,
which is in the same process."""
TYPES = ("orchestration", "compute", "network", "image", "identity")
STACK = Stack(id="stack-1", name="vnf-1", state=StackState.READY)
DOCUMENTS: dict[str, Any] = {
    "stacks": [
        {"id": "1", "stack_name": "vnf-1", "stack_status": "CREATE_COMPLETE", "tags": ["t"], "creation_time": None}
    ],
    "resources": [
        {
            "resource_name": "VDU1",
            "resource_type": "OS::Nova::Server",
            "resource_status": "CREATE_COMPLETE",
            "physical_resource_id": "srv-1",
            "links": [{"rel": "stack", "href": "http://h/stacks/vnf-1/1"}],
        }
    ],
    "flavors": [{"id": "1", "name": "small", "vcpus": 1, "ram": 1}],
    "images": [{"id": "1", "name": "i", "status": "active", "tags": ["t"]}],
    "server": {"id": "srv-1", "name": "VDU1", "status": "ACTIVE", "created": "2026-01-01T00:00:00Z"},
    "limits": {"absolute": {"maxTotalCores": 10, "totalCoresUsed": 1}},
    "ports": [{"id": "p1", "fixed_ips": [{"ip_address": "10.0.0.4", "subnet_id": "s"}], "device_id": "srv-1"}],
    "floatingips": [],
    "quota": {"port": {"limit": 5, "used": 1}},
    "subnets": [{"id": "s", "cidr": "10.0.0.0/24"}],
    "stack": {"parameters": {"nfv": "{}"}},
}
"""The answers of an honest cloud's services, all in one document."""


def keystone(services: Speech, url: Callable[[], str]) -> Speech:
    """An honest Keystone whose catalogue leads to these services."""

    async def speak(head: bytes, writer: asyncio.StreamWriter) -> None:
        method, path = head.split(b" ")[:2]
        if path == b"/v3":
            await answers(b'{"version": {"id": "v3.14"}}')(head, writer)
        elif method == b"POST" and path == b"/v3/auth/tokens":
            endpoints = [
                {
                    "id": "e",
                    "interface": "public",
                    "region": "RegionOne",
                    "region_id": "RegionOne",
                    "url": url() + "/v2.1",
                }
            ]
            token = {
                "user": {"id": "u", "name": "u", "domain": {"id": "d", "name": "d"}},
                "project": {"id": "p", "name": "p", "domain": {"id": "d", "name": "d"}},
                "methods": ["password"],
                "issued_at": "2026-01-01T00:00:00.000000Z",
                "expires_at": "2099-01-01T00:00:00.000000Z",
                "catalog": [{"id": t, "type": t, "name": t, "endpoints": endpoints} for t in TYPES],
            }
            body = json.dumps({"token": token}).encode()
            created = f"X-Subject-Token: {TOKEN}\r\n".encode()
            await answers(body, status="201 Created", headers=created)(head, writer)
        else:
            await services(head, writer)

    return speak


def check_reason(error: Exception) -> None:
    text = str(error)
    assert text
    assert len(text) < 2000
    assert PASSWORD not in text
    assert TOKEN not in text


def a_vim(server: Hostile) -> VimRecord:
    return VimRecord(
        id="vim-1",
        name="hostile",
        tenant_id="default",
        type="openstack",
        auth_url=f"{server.url}/v3",
        auth_cred={"username": "u", "user_domain_name": "d", "password": PASSWORD},
        vim_project={"name": "p", "project_domain_name": "d"},
        created_at="",
        updated_at="",
    )


async def check_probe(server: Hostile) -> None:
    """Register and check the VIM: errors that say why, in time, and memory flat."""
    with ThreadPoolExecutor(4) as threads, flat_memory(MOST_MIB):
        probe = OpenstackProbe(RING, threads, timeout_s=1)
        for look in (probe.verify, probe.check):
            with pytest.raises((RegistrationRefused, VimUnreachable, VimUnauthorized)) as caught:
                async with asyncio.timeout(30):
                    await look(a_vim(server))
            check_reason(caught.value)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_hostile_keystone_is_not_registered(attack: str) -> None:
    async with hostile_server(answers(b"{}")) as elsewhere:
        async with hostile_server(json_attack(attack, elsewhere.url)) as server:
            await check_probe(server)
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    "token",
    [
        {},
        {"token": 7},
        {"token": {"catalog": 7}},
        {"token": {"catalog": [7], "expires_at": "2099-01-01T00:00:00Z"}},
        {"token": {"catalog": [{"type": "compute", "endpoints": [{"url": 7}]}], "expires_at": "tomorrow"}},
        {"token": {"catalog": [{"type": ["compute"], "endpoints": 7}], "project": [], "user": "x"}},
    ],
    ids=range(6),
)
async def test_a_keystone_with_wrong_tokens_is_not_registered(token: object) -> None:
    async def speak(head: bytes, writer: asyncio.StreamWriter) -> None:
        if head.startswith(b"POST"):
            created = b"X-Subject-Token: t\r\n"
            await answers(json.dumps(token).encode(), status="201 Created", headers=created)(head, writer)
        else:
            await answers(b'{"version": {"id": "v3.14"}}')(head, writer)

    async with hostile_server(speak) as server:
        await check_probe(server)


async def calls_of_services(server: Hostile) -> list[Exception]:
    """Call every service of the cloud once; return the errors, each checked."""
    errors: list[Exception] = []
    async with OpenStackClouds(RING, threads=4, call_timeout_s=1) as clouds:
        cloud = clouds.cloud(openstack_vim(f"{server.url}/v3"))
        calls: list[Callable[[], Any]] = [
            lambda: cloud.stacks.find("vnf-1", tag="t"),
            lambda: cloud.stacks.contents(STACK),
            lambda: cloud.stacks.definition(STACK),
            cloud.capacity.flavors,
            lambda: cloud.capacity.free(["cores", "ports"]),
            lambda: cloud.images.tagged("t"),
            lambda: cloud.servers.statuses(["srv-1"]),
        ]
        for call in calls:
            try:
                async with asyncio.timeout(30):
                    await call()
            except (VimUnavailable, VimRefused, StackNameTaken) as error:
                check_reason(error)
                errors.append(error)
    return errors


@pytest.mark.parametrize("attack", ATTACKS)
async def test_hostile_services_of_a_cloud_are_errors_of_the_vim(attack: str) -> None:
    async with hostile_server(answers(b"{}")) as elsewhere:
        servers: list[Hostile] = []
        speech = keystone(json_attack(attack, elsewhere.url), lambda: servers[0].url)
        async with hostile_server(speech) as server:
            servers.append(server)
            with flat_memory(MOST_MIB):
                errors = await calls_of_services(server)
        assert len(errors) >= 4, errors
        assert elsewhere.requests == []


def replacements(node: Any) -> list[Any]:
    """Return copies of a document in each of which one member has another type, or is missing."""
    found: list[Any] = [7, "x", [], {}, None, [7], [{}]]
    if isinstance(node, dict):
        for name, value in node.items():
            found += [{**node, name: other} for other in replacements(value)]
            found.append({each: node[each] for each in node if each != name})
    if isinstance(node, list):
        for index, value in enumerate(node):
            found += [[*node[:index], other, *node[index + 1 :]] for other in replacements(value)]
    return found


@pytest.mark.deep
async def test_wrong_types_in_the_answers_of_a_cloud_are_errors_of_the_vim() -> None:
    wrong = [
        {**DOCUMENTS, name: other}
        for name, document in DOCUMENTS.items()
        for other in replacements(document)
        if other != document
    ]
    shown: list[Any] = [DOCUMENTS]
    servers: list[Hostile] = []

    async def services(head: bytes, writer: asyncio.StreamWriter) -> None:
        await answers(json.dumps(shown[0]).encode())(head, writer)

    async with hostile_server(keystone(services, lambda: servers[0].url)) as server:
        servers.append(server)
        assert await calls_of_services(server) == []
        for document in wrong[:: max(1, len(wrong) // 40)]:
            shown[0] = document
            await calls_of_services(server)
