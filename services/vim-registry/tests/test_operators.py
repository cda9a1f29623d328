"""VIMs that operators register through the gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_clients.http import ServiceUnavailable
from kubevnfm_events import VimConnection
from kubevnfm_events.vim import VimDeregistered, VimRegistered, VimStatusChanged
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, TimedOut, Unprocessable
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import revealed
from kubevnfm_vim_registry.settings import Settings
from structlog.testing import capture_logs
from worlds.vim_world import RING, World, running

OPENSTACK = "ETSINFV.OPENSTACK_KEYSTONE.V_3"
KUBERNETES = "ETSINFV.KUBERNETES.V_1"


def kubernetes(cluster: LabCluster, **changes: Any) -> dict[str, Any]:
    return {
        "name": "workloads",
        "type": "kubernetes",
        "auth_url": cluster.endpoint,
        "vim_project": {"name": "default"},
        "auth_cred": {"bearer_token": cluster.admin_token, "ssl_ca_cert": cluster.ca_pem},
        **changes,
    }


async def test_an_openstack_is_registered_after_a_log_in_to_keystone(world: World) -> None:
    made = await world.vims.create(world.openstack(description="the lab"))

    assert made == await world.vims.get(made["id"])
    assert made["status"] == "ACTIVE"
    assert made["placement_attr"] == {"regions": ["RegionOne"]}
    assert made["auth_cred"]["password"] == "***"
    assert (made["tenant_id"], made["is_default"], made["description"]) == ("default", False, "the lab")
    await world.events.has(1)
    assert world.events.data == [
        VimRegistered(vim_id=made["id"], name="cloud", vim_type=OPENSTACK, endpoint=world.lab.auth_url)
    ]


async def test_a_cluster_is_registered_with_its_namespaces(world: World, cluster: LabCluster) -> None:
    made = await world.vims.create(kubernetes(cluster))

    assert made["status"] == "ACTIVE"
    assert {"default", "kube-system"} <= set(made["placement_attr"]["regions"])
    assert made["auth_cred"]["bearer_token"] == "***"


@pytest.mark.parametrize(
    "url", ["https://[", "https://a:99999999", "https://a:0", "https://a b", "https://a\nb/", "ftp://a", "https://a..b"]
)
async def test_an_address_that_is_no_url_is_refused_by_its_field(world: World, cluster: LabCluster, url: str) -> None:
    for vim in (kubernetes(cluster, auth_url=url), {**world.openstack(), "auth_url": url}):
        with pytest.raises(InvalidInput, match=r"vim\.auth_url: an http or https URL"):
            await world.vims.create(vim)


@pytest.mark.parametrize("ending", ["\n", " ", "\x00", "ö"])
async def test_a_token_that_is_no_part_of_a_header_is_refused(world: World, cluster: LabCluster, ending: str) -> None:
    credentials = {"bearer_token": cluster.admin_token + ending, "ssl_ca_cert": cluster.ca_pem}
    with pytest.raises(InvalidInput, match="bearer_token: visible ASCII characters") as refused:
        await world.vims.create(kubernetes(cluster, auth_cred=credentials))
    assert cluster.admin_token not in str(refused.value)


async def test_no_secret_is_stored_or_shown_in_clear(world: World, cluster: LabCluster) -> None:
    made = await world.vims.create(kubernetes(cluster, extra={"helm_info": {"password": "swordfish"}}))
    stored = await world.store.get("vims", made["id"])
    assert stored is not None

    for text in map(json.dumps, (stored.body, made, await world.vims.list({}))):
        assert cluster.admin_token not in text
        assert "swordfish" not in text
    assert set(stored.body["auth_cred"]["bearer_token"]) == {"$sealed"}


async def test_services_get_the_connection_with_its_access_data(world: World, cluster: LabCluster) -> None:
    cloud = await world.vims.create(world.openstack())
    workloads = await world.vims.create(kubernetes(cluster))

    openstack = await world.directory.connection(VimConnection(vim_id=cloud["id"]))
    kube = await world.directory.connection(VimConnection(vim_id=workloads["id"]))

    assert openstack.vim_type == OPENSTACK
    assert openstack.interface_info == {"endpoint": world.lab.auth_url, "skipCertificateVerification": True}
    access = revealed(openstack.access_info, RING)
    assert access["password"] == world.openstack()["auth_cred"]["password"]
    assert {"username", "project", "projectDomain", "userDomain", "region"} <= set(access)
    assert kube.vim_type == KUBERNETES
    assert kube.interface_info == {"endpoint": cluster.endpoint, "ssl_ca_cert": cluster.ca_pem}
    assert revealed(kube.access_info, RING) == {"bearer_token": cluster.admin_token}
    with pytest.raises(NotFound):
        await world.directory.connection(VimConnection(vim_id="none"))


async def test_none_as_the_ca_leaves_the_certificate_unverified(world: World, cluster: LabCluster) -> None:
    """CR-007: the text of Tacker's clients."""
    made = await world.vims.create(
        kubernetes(cluster, auth_cred={"bearer_token": cluster.admin_token, "ssl_ca_cert": "None"})
    )
    connection = await world.directory.connection(VimConnection(vim_id=made["id"]))
    assert connection.interface_info["skipTlsVerify"] is True


@pytest.mark.parametrize("more", [{}, {"ssl_ca_cert": None}, {"ssl_ca_cert": ""}, {"ssl_ca_cert": "no PEM"}])
async def test_a_cluster_without_a_ca_is_refused_by_field(
    world: World, cluster: LabCluster, more: dict[str, str | None]
) -> None:
    """CR-007."""
    with pytest.raises(InvalidInput) as refusal:
        await world.vims.create(kubernetes(cluster, auth_cred={"bearer_token": cluster.admin_token, **more}))
    assert refusal.value.field == "vim.auth_cred.ssl_ca_cert"
    assert await world.vims.list({}) == []

    made = await world.vims.create(kubernetes(cluster))
    if more:
        with pytest.raises(InvalidInput, match="ssl_ca_cert"):
            await world.vims.update(made["id"], {"auth_cred": more})


async def test_system_as_the_ca_trusts_the_cas_of_the_system(
    world: World, cluster: LabCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CR-007."""
    body = kubernetes(cluster, auth_cred={"bearer_token": cluster.admin_token, "ssl_ca_cert": "system"})
    with pytest.raises(InvalidInput, match="TLS certificate"):
        await world.vims.create(body)
    (tmp_path / "ca.pem").write_text(cluster.ca_pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    made = await world.vims.create(body)
    assert (made["status"], made["auth_cred"]["ssl_ca_cert"]) == ("ACTIVE", "system")


async def test_a_vim_that_was_stored_without_a_ca_works_and_is_reported(world: World, cluster: LabCluster) -> None:
    """CR-007: shown as what it means, logged, and as changeable as others."""
    vim_id = (await world.vims.create(kubernetes(cluster)))["id"]
    with capture_logs() as logs:
        stored = await world.store.get("vims", vim_id)
        assert stored is not None
        without_ca = {name: value for name, value in stored.body["auth_cred"].items() if name != "ssl_ca_cert"}
        await world.store.update("vims", vim_id, {"auth_cred": without_ca})
        assert (await world.vims.get(vim_id))["auth_cred"]["ssl_ca_cert"] == "None"
        await world.until(lambda: any(line["event"] == "vim_tls_not_verified" for line in logs))
    assert [line["vim_id"] for line in logs if line["event"] == "vim_tls_not_verified"] == [vim_id]
    await world.vims.update(vim_id, {"auth_cred": {"bearer_token": cluster.admin_token}})
    assert (await world.vims.get(vim_id))["status"] == "ACTIVE"


async def test_wrong_credentials_are_rejected_and_nothing_is_stored(world: World, cluster: LabCluster) -> None:
    wrong = world.openstack()
    wrong["auth_cred"] = {**wrong["auth_cred"], "password": "wrong-password"}
    with pytest.raises(InvalidInput, match="unauthorized for VIM") as refusal:
        await world.vims.create(wrong)
    assert "wrong-password" not in str(refusal.value)
    with pytest.raises(InvalidInput, match="unauthorized for VIM"):
        await world.vims.create(kubernetes(cluster, auth_cred={"bearer_token": "wrong", "ssl_ca_cert": cluster.ca_pem}))
    assert await world.vims.list({}) == []


async def test_a_certificate_of_another_ca_is_rejected(
    world: World, make_cluster: Callable[..., Awaitable[LabCluster]]
) -> None:
    one, other = await make_cluster(), await make_cluster()
    with pytest.raises(InvalidInput, match="TLS certificate"):
        await world.vims.create(
            kubernetes(one, auth_cred={"bearer_token": one.admin_token, "ssl_ca_cert": other.ca_pem})
        )


async def test_an_old_kubernetes_is_rejected_by_version(
    world: World, make_cluster: Callable[..., Awaitable[LabCluster]]
) -> None:
    with pytest.raises(Unprocessable, match=r"v1\.24\.9"):
        await world.vims.create(kubernetes(await make_cluster(version="1.24.9")))


async def test_an_unreachable_vim_is_not_stored(world: World) -> None:
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        await world.vims.create(world.openstack(auth_url="http://127.0.0.1:9/v3"))
    assert await world.vims.list({}) == []


async def test_a_slow_vim_is_not_stored(lab: Lab, settings: Settings, tmp_path: Path) -> None:
    lab.faults.add(part="keystone", verb="token_create", effect="hang")
    async with running(lab, settings.model_copy(update={"verify_timeout_s": 1.0}), tmp_path) as world:
        with pytest.raises(TimedOut):
            await world.vims.create(world.openstack())
        assert await world.vims.list({}) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"type": "vmware"}, "vim.type"),
        ({"type": None}, "vim.type"),
        ({"name": ""}, "vim.name"),
        ({"name": 7}, "vim.name"),
        ({"auth_url": "keystone"}, "vim.auth_url"),
        ({"auth_url": "http://user:password@keystone/"}, "vim.auth_url"),
        ({"auth_cred": "admin"}, "vim.auth_cred"),
        ({"auth_cred": {"username": "x", "user_domain_name": "Default"}}, "vim.auth_cred.password"),
        ({"auth_cred": {"username": {"a": 1}}}, "vim.auth_cred.username"),
        ({"vim_project": {"name": "nfv"}}, "vim.vim_project.project_domain_name"),
        ({"is_default": "perhaps"}, "vim.is_default"),
        ({"colour": "blue"}, "vim.colour"),
    ],
)
async def test_a_malformed_request_is_rejected_by_field(world: World, changes: Mapping[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await world.vims.create(world.openstack(**changes))
    assert refusal.value.field == field


async def test_a_cluster_needs_credentials_and_helm_needs_a_ca(world: World, cluster: LabCluster) -> None:
    """SEQ-031."""
    with pytest.raises(InvalidInput, match="bearer_token"):
        await world.vims.create(kubernetes(cluster, auth_cred={"username": "admin"}))
    with pytest.raises(InvalidInput, match="use_helm"):
        await world.vims.create(
            kubernetes(
                cluster,
                auth_cred={"bearer_token": cluster.admin_token, "ssl_ca_cert": "None"},
                extra={"use_helm": True},
            )
        )


async def test_a_keystone_url_without_version_gets_one(world: World) -> None:
    made = await world.vims.create(world.openstack(auth_url=world.lab.auth_url.removesuffix("/v3") + "/"))
    assert made["auth_url"] == world.lab.auth_url


async def test_a_name_is_unique_and_there_is_one_default(world: World) -> None:
    first = await world.vims.create(world.openstack(is_default=True))
    with pytest.raises(Conflict, match="named cloud"):
        await world.vims.create(world.openstack())
    with pytest.raises(Conflict, match="default VIM is already"):
        await world.vims.create(world.openstack(name="other", is_default="True"))
    other = await world.vims.create(world.openstack(name="other"))
    with pytest.raises(Conflict, match="default VIM is already"):
        await world.vims.update(other["id"], {"is_default": True})
    with pytest.raises(Conflict, match="named cloud"):
        await world.vims.update(other["id"], {"name": "cloud"})

    assert await world.vims.default() == first
    await world.vims.update(first["id"], {"is_default": False})
    assert await world.vims.default() is None
    assert (await world.vims.update(other["id"], {"is_default": True}))["is_default"] is True


async def test_one_of_many_simultaneous_requests_gets_the_name(world: World) -> None:
    answers = await asyncio.gather(*(world.vims.create(world.openstack()) for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(answer, dict) for answer in answers) == 1
    assert sum(isinstance(answer, Conflict) for answer in answers) == 5


async def test_lists_are_filtered_by_equality(world: World, cluster: LabCluster) -> None:
    cloud = await world.vims.create(world.openstack(is_default=True))
    workloads = await world.vims.create(kubernetes(cluster))

    async def ids(**filters: list[str]) -> list[str]:
        return [vim["id"] for vim in await world.vims.list(filters)]

    assert await ids() == [cloud["id"], workloads["id"]]
    assert await ids(type=["kubernetes"]) == [workloads["id"]]
    assert await ids(name=["cloud", "workloads"]) == [cloud["id"], workloads["id"]]
    assert await ids(is_default=["True"]) == [cloud["id"]]
    assert await ids(is_default=["false"], status=["ACTIVE"]) == [workloads["id"]]
    assert await ids(id=[cloud["id"], "none"]) == [cloud["id"]]
    assert await ids(name=["none"]) == []
    with pytest.raises(InvalidInput, match="colour"):
        await ids(colour=["blue"])


async def test_credentials_can_be_rotated_and_the_new_ones_are_verified_first(world: World) -> None:
    made = await world.vims.create(world.openstack())
    world.users.by_vim[made["id"]] = ["vnf-1"]
    with pytest.raises(InvalidInput, match="unauthorized"):
        await world.vims.update(made["id"], {"auth_cred": {"password": "wrong"}})

    changed = await world.vims.update(
        made["id"], {"name": "renamed", "auth_cred": {**made["auth_cred"], "username": made["auth_cred"]["username"]}}
    )

    assert changed["name"] == "renamed"
    connection = await world.directory.connection(VimConnection(vim_id=made["id"]))
    # A client that edits a record sends *** back, which is no new password.
    assert revealed(connection.access_info, RING)["password"] == world.openstack()["auth_cred"]["password"]


async def test_changed_access_data_are_checked_like_new_ones(world: World, cluster: LabCluster) -> None:
    made = await world.vims.create(kubernetes(cluster))
    with pytest.raises(InvalidInput, match="a text expected"):
        await world.vims.update(made["id"], {"auth_cred": {"bearer_token": {"a": 1}}})

    with_token = {"ssl_ca_cert": "None", "bearer_token": cluster.admin_token}
    changed = await world.vims.update(made["id"], {"auth_cred": with_token})

    assert changed["auth_cred"]["ssl_ca_cert"] == "None"
    connection = await world.directory.connection(VimConnection(vim_id=made["id"]))
    assert connection.interface_info["skipTlsVerify"] is True


async def test_type_url_and_unknown_attributes_cannot_be_changed(world: World) -> None:
    made = await world.vims.create(world.openstack())
    for changes in ({"type": "kubernetes"}, {"auth_url": "https://other/v3"}, {"colour": "blue"}, {"status": "ERROR"}):
        with pytest.raises(InvalidInput, match="cannot be changed"):
            await world.vims.update(made["id"], changes)
    same = {"type": made["type"], "auth_url": made["auth_url"], "description": "new"}
    assert (await world.vims.update(made["id"], same))["description"] == "new"


async def test_the_project_of_a_vim_in_use_cannot_be_changed(world: World) -> None:
    made = await world.vims.create(world.openstack())
    world.users.by_vim[made["id"]] = ["vnf-1"]
    with pytest.raises(Conflict, match="vnf-1"):
        await world.vims.update(made["id"], {"vim_project": {"name": "other"}})


async def test_a_vim_in_use_is_not_deleted(world: World) -> None:
    made = await world.vims.create(world.openstack())
    world.users.by_vim[made["id"]] = ["vnf-1", "vnf-2"]
    with pytest.raises(Conflict, match="vnf-1, vnf-2"):
        await world.vims.delete(made["id"])

    world.users.by_vim.clear()
    await world.vims.delete(made["id"])
    for call in (world.vims.get, world.vims.delete):
        with pytest.raises(NotFound):
            await call(made["id"])
    await world.events.has(2)
    assert world.events.data[-1] == VimDeregistered(vim_ids=(made["id"],))


async def test_the_monitor_publishes_when_a_vim_stops_and_returns(world: World, cluster: LabCluster) -> None:
    made = await world.vims.create(world.openstack())
    await world.vims.create(kubernetes(cluster))
    await world.events.has(2)

    world.lab.faults.add(part="keystone", effect="fail", status=503)
    await world.events.has(3)
    shown = await world.vims.get(made["id"])
    assert shown["status"] == "UNREACHABLE"
    world.lab.faults.clear()
    await world.events.has(4)

    gone, back = world.events.data[2:]
    assert isinstance(gone, VimStatusChanged)
    assert isinstance(back, VimStatusChanged)
    assert (gone.vim_id, gone.old_status, gone.status) == (made["id"], "ACTIVE", "UNREACHABLE")
    assert gone.reason == shown["status_reason"] != ""
    assert "status_reason" not in await world.vims.get(made["id"])
    assert (back.old_status, back.status, back.reason) == ("UNREACHABLE", "ACTIVE", "")


async def test_a_cluster_that_rejects_the_token_later_is_in_error(world: World, cluster: LabCluster) -> None:
    made = await world.vims.create(kubernetes(cluster))
    world.lab.faults.add(part="kubernetes", effect="fail", status=401, message="Unauthorized")
    await world.events.has(2)
    shown = await world.vims.get(made["id"])
    assert shown["status"] == "ERROR"
    assert "rejects the token" in shown["status_reason"]


async def test_the_api_requires_the_internal_token(world: World) -> None:
    for path in ("vims", "vims/x/connection"):
        async with world.session.get(f"{world.url}/internal/v1/{path}") as response:
            assert response.status == 401
    async with world.session.get(f"{world.url}/health/ready") as response:
        assert response.status == 200
