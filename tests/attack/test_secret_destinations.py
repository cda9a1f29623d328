"""Callers who do not know a stored secret have it sent to a server, user or project of their own choice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from kubevnfm_events.stacks import ChangeConnections, CreateResources
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.lab import Lab
from kubevnfm_sol.vim import OPENSTACK
from worlds.lcm_world import RING, World, lcm_world
from worlds.vim_world import World as VimWorld
from worlds.vim_world import cluster, lab, make_cluster, running, settings

__all__ = ["cluster", "lab", "make_cluster", "settings"]

SECRET = "marked-s3cret"
MINE: Mapping[str, Any] = {
    "vimType": OPENSTACK,
    "interfaceInfo": {"endpoint": "https://keystone.example/v3"},
    "accessInfo": {"username": "nfv", "password": SECRET, "project": "nfv"},
}
ELSEWHERE = {"interfaceInfo": {"endpoint": "https://attacker.example/v3"}}
LINKS = [{"id": "ext", "resourceId": "net1", "extCps": [{"cpdId": "VDU1_CP1"}]}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with lcm_world(tmp_path_factory.mktemp("lcm")) as running_world:
        await running_world.sample()
        yield running_world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vnf(world: World) -> str:
    """Return the path of a VNF on a VIM with a log-in of its own."""
    instance_id = await world.create()
    await world.reached(await world.instantiate(instance_id, vimConnectionInfo={"mine": dict(MINE)}), "COMPLETED")
    return f"/vnf_instances/{instance_id}"


MOVES: Mapping[str, Mapping[str, Any]] = {
    "endpoint": ELSEWHERE,
    "user": {"accessInfo": {"username": "admin"}},
    "domain": {"accessInfo": {"userDomain": "other"}},
    "project": {"accessInfo": {"project": "admin"}},
    "CA": {"interfaceInfo": {"trustedCertificates": "None"}},
    "verification": {"interfaceInfo": {"skipCertificateVerification": True}},
    "the first spelling of the endpoint": {"interfaceInfo": {"endpoint": None}, "accessInfo": {"auth_url": "https://attacker.example"}},
}  # fmt: skip


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("move", MOVES)
async def test_a_patch_of_a_vim_entry_needs_its_secret_again(world: World, vnf: str, move: str, version: str) -> None:
    before = await world.store.get("vnf_instances", vnf.rpartition("/")[2])
    if version == "v2":
        answer = await world.lcm("PATCH", vnf, {"vimConnectionInfo": {"mine": MOVES[move]}})
    else:
        entry = {"id": "mine", "vimType": "openstack", **MOVES[move]}
        answer = await world.v1("PATCH", vnf, {"vimConnectionInfo": [entry]})
    assert "vimConnectionInfo/mine/accessInfo/password: required again" in answer.problem(400)["detail"]
    assert SECRET not in answer.raw.decode()
    assert await world.store.get("vnf_instances", vnf.rpartition("/")[2]) == before, "nothing was stored"


@pytest.mark.asyncio(loop_scope="module")
async def test_the_mask_of_a_secret_is_no_secret_that_was_given(world: World, vnf: str) -> None:
    for change in ({"accessInfo": {"password": "***"}}, {**ELSEWHERE, "accessInfo": {"password": "***"}}):
        answer = await world.lcm("PATCH", vnf, {"vimConnectionInfo": {"mine": change}})
        assert "vimConnectionInfo/mine/accessInfo/password: the value itself" in answer.problem(400)["detail"]


@pytest.mark.asyncio(loop_scope="module")
async def test_with_its_secret_the_entry_is_changed_and_the_old_secret_goes_nowhere(world: World) -> None:
    instance_id = await world.create()
    await world.reached(await world.instantiate(instance_id, vimConnectionInfo={"mine": dict(MINE)}), "COMPLETED")
    created = world.twins.commands[-1].data
    assert isinstance(created, CreateResources)
    assert created.vim.access_info["password"].reveal(RING) == SECRET
    path = f"/vnf_instances/{instance_id}"
    moved = {**ELSEWHERE, "accessInfo": {"password": "that of elsewhere"}}
    accepted = (await world.lcm("PATCH", path, {"vimConnectionInfo": {"mine": moved}})).must(202)
    await world.reached(accepted.headers["Location"].rpartition("/")[2], "COMPLETED")

    # An entry of another operation replaces the stored one as a whole: nothing stored is merged with it.
    lacking = {**MINE, **ELSEWHERE, "accessInfo": {"username": "nfv", "project": "nfv"}}
    body = {"extVirtualLinks": LINKS, "vimConnectionInfo": {"mine": lacking}}
    refused = await world.lcm("POST", f"{path}/change_ext_conn", body)
    assert "vimConnectionInfo/mine/accessInfo/password" in refused.problem(400)["detail"]

    await world.reached(await world.ask(instance_id, "change_ext_conn", {"extVirtualLinks": LINKS}), "COMPLETED")
    changed = world.twins.commands[-1].data
    assert isinstance(changed, ChangeConnections)
    assert changed.vim.interface_info["endpoint"] == ELSEWHERE["interfaceInfo"]["endpoint"]
    assert changed.vim.access_info["password"].reveal(RING) == "that of elsewhere"


@pytest.mark.asyncio(loop_scope="module")
async def test_an_entry_for_a_later_instantiate_keeps_its_secret_from_elsewhere_too(world: World) -> None:
    instance_id = await world.create()
    path = f"/vnf_instances/{instance_id}"
    accepted = (await world.lcm("PATCH", path, {"vimConnectionInfo": {"mine": MINE}})).must(202)
    await world.reached(accepted.headers["Location"].rpartition("/")[2], "COMPLETED")
    answer = await world.lcm("PATCH", path, {"vimConnectionInfo": {"mine": ELSEWHERE}})
    assert "vimConnectionInfo/mine/accessInfo/password" in answer.problem(400)["detail"]
    # Removed in the same request: the entry is then no complete log-in, which an instantiate refuses.
    gone = {"mine": {**ELSEWHERE, "accessInfo": {"password": None}}}
    accepted = (await world.lcm("PATCH", path, {"vimConnectionInfo": gone})).must(202)
    await world.reached(accepted.headers["Location"].rpartition("/")[2], "COMPLETED")
    refused = await world.lcm("POST", f"{path}/instantiate", {"flavourId": "simple"})
    assert "vimConnectionInfo/mine/accessInfo/password" in refused.problem(400)["detail"]


# --- registered VIMs --------------------------------------------------------------------------------------------------


@pytest.fixture
async def registry(lab: Lab, settings: Any, tmp_path: Path) -> AsyncIterator[VimWorld]:
    async with running(lab, settings, tmp_path) as running_world:
        yield running_world


async def stored_access(registry: VimWorld, vim_id: str) -> tuple[object, object]:
    stored = await registry.store.get("vims", vim_id)
    assert stored is not None
    return stored.body["auth_cred"], stored.body["vim_project"]


async def test_a_change_of_a_registered_openstack_needs_its_password_again(registry: VimWorld) -> None:
    vim = registry.openstack()
    made = await registry.vims.create(vim)
    before = await stored_access(registry, made["id"])
    for changes, why in (
        ({"auth_cred": {"username": "other"}}, "vim.auth_cred.username"),
        ({"auth_cred": {"user_domain_name": "other"}}, "vim.auth_cred.user_domain_name"),
        ({"auth_cred": {"cert_verify": "True"}}, "vim.auth_cred.cert_verify"),
        ({"vim_project": {"name": "other"}}, "vim.vim_project.name"),
        # Clients that edit a record send back the mask: it is no secret that was given.
        ({"auth_cred": {**made["auth_cred"], "username": "other"}}, "vim.auth_cred.username"),
    ):
        with pytest.raises(InvalidInput, match=f"required again, because {why} changes") as refused:
            await registry.vims.update(made["id"], changes)
        assert refused.value.field == "vim.auth_cred.password"
        assert await stored_access(registry, made["id"]) == before
    same = {"auth_cred": {"password": vim["auth_cred"]["password"], "cert_verify": "True"}}
    assert (await registry.vims.update(made["id"], same))["auth_cred"]["cert_verify"] == "True"


async def test_a_stored_password_is_sent_to_no_other_provider_of_tokens(
    registry: VimWorld, cluster: LabCluster
) -> None:
    vim = {
        "name": "workloads",
        "type": "kubernetes",
        "auth_url": cluster.endpoint,
        "vim_project": {"name": "default"},
        "auth_cred": {"bearer_token": cluster.admin_token, "ssl_ca_cert": cluster.ca_pem},
    }
    made = await registry.vims.create(vim)
    for changes in ({"ssl_ca_cert": "None"}, {"ssl_ca_cert": "system"}):
        with pytest.raises(InvalidInput, match="ssl_ca_cert changes") as refused:
            await registry.vims.update(made["id"], {"auth_cred": changes})
        assert refused.value.field == "vim.auth_cred.bearer_token"
    basic = {"username": "u", "password": {"$sealed": RING.seal(SECRET)}}
    await registry.store.update("vims", made["id"], {"auth_cred": {"ssl_ca_cert": cluster.ca_pem, **basic}})
    provider = {"oidc_token_url": "https://attacker.example/token", "client_id": "c"}
    with pytest.raises(InvalidInput, match=r"(client_id|oidc_token_url) changes") as refused:
        await registry.vims.update(made["id"], {"auth_cred": provider})
    assert refused.value.field == "vim.auth_cred.password"
