"""VIMs of clusters that kubevnfm built: by commands of operations, and by called-back credentials."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubevnfm_clients.callback import credentials_id, sha256_hex
from kubevnfm_events import CapiKind, CapiProvider, CapiProviders, CommandFailed, Envelope, VimConnection
from kubevnfm_events.credentials import CredentialsDeleted, CredentialsReceived, CredentialsRotated
from kubevnfm_events.vim import (
    CapiProvidersRecorded,
    DeregisterVim,
    RecordCapiProviders,
    RegisterReceived,
    RegisterVim,
    ReleaseVim,
    VimDeregistered,
    VimRegistered,
    VimRegistrationFailed,
    VimReleased,
)
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.ids import derived_id
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import Secret, revealed
from kubevnfm_vim_registry.settings import Settings
from worlds.vim_world import RING, World, running

KUBERNETES = "ETSINFV.KUBERNETES.V_1"


def a_register(
    cluster: LabCluster, *, owner: str = "vnf-1", name: str = "k8s", token: str | None = None, is_default: bool = False
) -> RegisterVim:
    return RegisterVim(
        vnf_instance_id=owner,
        name=name,
        connection=VimConnection(
            vim_type=KUBERNETES,
            interface_info={"endpoint": cluster.endpoint, "ssl_ca_cert": cluster.ca_pem},
            access_info={"bearer_token": Secret(token or cluster.admin_token), "ssl_ca_cert_hash": "sha256:00"},
        ),
        is_default=is_default,
        extra={"vnf_instance_id": owner},
    )


def a_kubeconfig(cluster: LabCluster, *, token: str | None = None) -> str:
    ca = base64.b64encode(cluster.ca_pem.encode()).decode()
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": cluster.endpoint, "certificate-authority-data": ca}}],
            "users": [{"name": "u", "user": {"token": token or cluster.admin_token}}],
        }
    )


CREDENTIALS_ID = credentials_id("vnf-1", "uid-1")


def received(**more: Any) -> CredentialsReceived:
    facts: dict[str, Any] = {
        "credentials_id": CREDENTIALS_ID,
        "vnf_instance_id": "vnf-1",
        "cluster_name": "capi-cluster",
        "cluster_uid": "uid-1",
        "content_sha256": "00",
        "vim_name": "workload",
    }
    return CredentialsReceived(**{**facts, **more})


def rotated(**more: Any) -> CredentialsRotated:
    return CredentialsRotated(**received(**more).model_dump())


def a_received(
    *, name: str | None = "workload", is_default: bool = False, uid: str = "uid-1", cluster_name: str = "capi-cluster"
) -> RegisterReceived:
    return RegisterReceived(
        vnf_instance_id="vnf-1",
        cluster_name=cluster_name,
        cluster_uid=uid,
        vim_name=name,
        vim_default=is_default,
        management_vim_id="vim-0",
    )


async def a_workload_vim(world: World, cluster: LabCluster) -> VimRegistered:
    """Register a workload cluster, as its operation does."""
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    answer = await world.ask(a_received())
    assert isinstance(answer, VimRegistered)
    return answer


def a_deleted() -> CredentialsDeleted:
    return CredentialsDeleted(
        credentials_id=CREDENTIALS_ID, vnf_instance_id="vnf-1", cluster_name="capi-cluster", cluster_uid="uid-1"
    )


async def publish(world: World, event: CredentialsReceived | CredentialsRotated | CredentialsDeleted) -> None:
    await world.bus.publish(Envelope(event, source="/kubevnfm/credentials-receiver"))


# --- commands ---------------------------------------------------------------------------------------------------------


async def test_a_finished_cluster_is_registered(world: World, cluster: LabCluster) -> None:
    """SEQ-030, SEQ-033, SEQ-046."""
    answer = await world.ask(a_register(cluster))

    assert isinstance(answer, VimRegistered)
    assert (answer.name, answer.vim_type, answer.endpoint) == ("k8s", KUBERNETES, cluster.endpoint)
    assert answer.kubernetes_version == "v1.31.4"
    shown = await world.vims.get(answer.vim_id)
    assert shown["extra"] == {"vnf_instance_id": "vnf-1"}
    connection = await world.directory.connection(VimConnection(vim_id=answer.vim_id))
    assert connection.of_vnf, "who connects judges its address"
    assert revealed(connection.access_info, RING) == {
        "bearer_token": cluster.admin_token,
        "ssl_ca_cert_hash": "sha256:00",
    }


async def test_registering_again_updates_the_same_vim(
    world: World, make_cluster: Callable[..., Awaitable[LabCluster]]
) -> None:
    first, second = await make_cluster(), await make_cluster()
    once = await world.ask(a_register(first))
    again = await world.ask(a_register(second))

    assert isinstance(once, VimRegistered)
    assert isinstance(again, VimRegistered)
    assert once.vim_id == again.vim_id
    assert (await world.vims.get(once.vim_id))["auth_url"] == second.endpoint
    assert len(await world.vims.list({})) == 1
    assert [vim["id"] for vim in await world.vims.list({"vnf_instance_id": ["vnf-1", "x"]})] == [once.vim_id]
    assert not await world.vims.list({"vnf_instance_id": ["x"]})


def providers(**roles: str) -> CapiProviders:
    """One provider of a name for each role."""
    made = {
        role: CapiProvider(
            name=name,
            version="v1.14.2",
            contract="v1beta2",
            kinds=(CapiKind(group="infrastructure.cluster.x-k8s.io", kind="OpenStackCluster", versions=("v1beta2",)),),
        )
        for role, name in roles.items()
    }
    return CapiProviders(**{role: each if role == "core" else (each,) for role, each in made.items()})


async def test_a_vim_shows_the_providers_of_cluster_api_that_vnfs_have_installed(
    world: World, cluster: LabCluster
) -> None:
    """CR-045: those of several VNFs together; new access data and a repeated registration leave them as they are."""
    made = await world.ask(a_register(cluster))
    assert isinstance(made, VimRegistered)
    first = providers(core="cluster-api", bootstrap="kubeadm", control_plane="kubeadm")
    for owner, installed in (("mgmt-1", first), ("mgmt-2", providers(infrastructure="openstack"))):
        done = await world.ask(RecordCapiProviders(vnf_instance_id=owner, vim_id=made.vim_id, providers=installed))
        assert done == CapiProvidersRecorded(vim_id=made.vim_id)
    shown = (await world.vims.get(made.vim_id))["extra"]
    assert shown["vnf_instance_id"] == "vnf-1"
    assert (shown["capi"]["contract"], shown["capi"]["core"]["version"]) == ("v1beta2", "v1.14.2")
    assert [each["name"] for role in ("bootstrap", "controlPlane", "infrastructure") for each in shown["capi"][role]] == [
        "kubeadm", "kubeadm", "openstack"
    ]  # fmt: skip
    kind = {"group": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "versions": ["v1beta2"]}
    assert shown["capi"]["infrastructure"][0]["kinds"] == [kind]
    await world.ask(a_register(cluster))
    await world.vims.update(made.vim_id, {"auth_cred": {"bearer_token": cluster.admin_token}})
    assert (await world.vims.get(made.vim_id))["extra"] == shown
    for owner in ("mgmt-1", "mgmt-2"):
        await world.ask(RecordCapiProviders(vnf_instance_id=owner, vim_id=made.vim_id))
    assert (await world.vims.get(made.vim_id))["extra"] == {"vnf_instance_id": "vnf-1"}


async def test_providers_are_recorded_for_registered_vims_alone_and_removed_from_any(world: World) -> None:
    """CR-045: a termination must not fail because the VIM is gone."""
    command = RecordCapiProviders(vnf_instance_id="mgmt-1", vim_id="none", providers=providers(core="cluster-api"))
    failed = await world.ask(command)
    assert isinstance(failed, CommandFailed)
    assert failed.code == "vim-unknown"
    done = await world.ask(command.model_copy(update={"providers": None}))
    assert done == CapiProvidersRecorded(vim_id="none")


async def test_a_new_vim_gets_the_id_that_is_asked_for_unless_another_has_it(world: World, cluster: LabCluster) -> None:
    """The class of a package that has built the cluster knows the id before the VIM is registered (sequences.md 6.7)."""
    ids = []
    for name in ("edge", "edge", "edge-2"):
        asked = a_register(cluster, name=name).model_copy(update={"vim_id": "vim-of-the-class"})
        done = await world.ask(asked)
        assert isinstance(done, VimRegistered)
        ids.append(done.vim_id)
    assert ids[:2] == ["vim-of-the-class"] * 2
    assert ids[2] != "vim-of-the-class"


async def test_a_name_of_another_owner_is_rejected(world: World, cluster: LabCluster) -> None:
    await world.ask(a_register(cluster))
    answer = await world.ask(a_register(cluster, owner="vnf-2"))
    assert isinstance(answer, CommandFailed)
    assert (answer.code, answer.status) == ("vim-name-taken", 409)


async def test_a_cluster_outside_the_networks_of_vnfs_is_refused_and_an_operators_is_not(
    lab: Lab, settings: Settings, tmp_path: Path, cluster: LabCluster
) -> None:
    async with running(lab, settings, tmp_path, named="10.0.0.0/8") as world:
        of_driver = await world.ask(a_register(cluster))
        assert isinstance(of_driver, CommandFailed)
        reason = "127.0.0.1 is a loopback address, which needs a network inside 127.0.0.0/8 or ::1 in vnf_networks"
        assert reason in of_driver.detail
        world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
        of_call_back = await world.ask(a_received())
        assert isinstance(of_call_back, CommandFailed)
        assert reason in of_call_back.detail
        made = await world.vims.create(
            {
                "name": "mine",
                "type": "kubernetes",
                "auth_url": cluster.endpoint,
                "auth_cred": {"bearer_token": cluster.admin_token, "ssl_ca_cert": cluster.ca_pem},
                "vim_project": {"name": "default"},
            }
        )
        assert made["status"] == "ACTIVE"


async def test_a_cluster_that_rejects_the_token_is_not_registered(world: World, cluster: LabCluster) -> None:
    answer = await world.ask(a_register(cluster, token="wrong"))
    assert isinstance(answer, CommandFailed)
    assert (answer.code, answer.status) == ("vim-unauthorized", 400)
    assert await world.vims.list({}) == []


async def test_the_registration_of_a_slow_cluster_is_retried(world: World, cluster: LabCluster) -> None:
    world.lab.faults.add(part="kubernetes", effect="fail", status=503, times=1)
    assert isinstance(await world.ask(a_register(cluster)), VimRegistered)


async def test_a_registration_can_change_the_default(world: World, cluster: LabCluster) -> None:
    operators = await world.vims.create(world.openstack(is_default=True))
    await world.ask(a_register(cluster))
    assert (await world.vims.default() or {})["id"] == operators["id"]

    answer = await world.ask(a_register(cluster, name="new-default", is_default=True))

    assert isinstance(answer, VimRegistered)
    assert (await world.vims.default() or {})["id"] == answer.vim_id
    assert (await world.vims.get(operators["id"]))["is_default"] is False


async def test_the_vims_of_an_instance_are_removed_once(world: World, cluster: LabCluster) -> None:
    """SEQ-046."""
    for name in ("a", "b"):
        await world.ask(a_register(cluster, name=name))
    other = await world.ask(a_register(cluster, owner="vnf-2", name="c"))
    assert isinstance(other, VimRegistered)

    one = await world.ask(DeregisterVim(vnf_instance_id="vnf-1", name="a"))
    rest = await world.ask(DeregisterVim(vnf_instance_id="vnf-1"))
    none = await world.ask(DeregisterVim(vnf_instance_id="vnf-1"))

    assert isinstance(one, VimDeregistered)
    assert isinstance(rest, VimDeregistered)
    assert (len(one.vim_ids), len(rest.vim_ids)) == (1, 1)
    assert none == VimDeregistered()
    assert [vim["id"] for vim in await world.vims.list({})] == [other.vim_id]


async def test_a_vim_in_use_is_removed_only_for_its_owner_or_by_force(world: World, cluster: LabCluster) -> None:
    """CR-084."""
    made = await world.ask(a_register(cluster))
    assert isinstance(made, VimRegistered)
    world.users.by_vim[made.vim_id] = ["vnf-1", "vnf-2"]

    refused = await world.ask(DeregisterVim(vnf_instance_id="vnf-1"))
    assert isinstance(refused, CommandFailed)
    assert (refused.code, refused.status) == ("vim-in-use", 409)
    assert "vnf-2" in refused.detail
    assert "vnf-1" not in refused.detail

    forced = await world.ask(DeregisterVim(vnf_instance_id="vnf-1", force=True))
    assert forced == VimDeregistered(vim_ids=(made.vim_id,))


# --- called-back credentials ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [received(vim_default=True), rotated(vim_default=True)])
async def test_a_cluster_that_calls_back_becomes_no_vim_by_that(
    world: World, cluster: LabCluster, event: CredentialsReceived | CredentialsRotated
) -> None:
    """CR-079: an operation registers it; a message that a package has signed neither adds a VIM nor takes the default."""
    operators = await world.vims.create(world.openstack(is_default=True))
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    count = len(world.events.data)
    await publish(world, event)

    assert [vim["id"] for vim in await world.vims.list({})] == [operators["id"]]
    assert (await world.vims.default() or {})["id"] == operators["id"]
    assert len(world.events.data) == count


@pytest.mark.parametrize("kind", [received, rotated])
async def test_new_credentials_update_the_access_data_of_the_same_vim_and_nothing_else(
    world: World,
    make_cluster: Callable[..., Awaitable[LabCluster]],
    kind: Callable[..., CredentialsReceived | CredentialsRotated],
) -> None:
    """CR-062, CR-081, CR-082: the name that an operator has given it meanwhile stays, and the default of others."""
    old, new = await make_cluster(), await make_cluster()
    made = await a_workload_vim(world, old)
    await world.vims.update(made.vim_id, {"name": "renamed", "description": "mine"})
    before = await world.vims.get(made.vim_id)
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(new)
    event = kind(vim_name="default-of-all", vim_default=True, management_vim_id="vim-of-the-package")
    for _ in range(2):
        await publish(world, event)

    second = world.events.data[1]
    assert isinstance(second, VimRegistered)
    assert (second.vim_id, second.endpoint, second.name) == (made.vim_id, new.endpoint, "renamed")
    assert len(world.events.data) == 2
    after = await world.vims.get(made.vim_id)
    changed = {name for name, value in after.items() if value != before[name]}
    assert changed == {"auth_url", "auth_cred", "updated_at"}
    connection = await world.directory.connection(VimConnection(vim_id=made.vim_id))
    assert revealed(connection.access_info, RING) == {"bearer_token": new.admin_token}


async def test_wrong_new_credentials_do_not_replace_the_old_ones(world: World, cluster: LabCluster) -> None:
    made = await a_workload_vim(world, cluster)
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster, token="wrong")
    await publish(world, rotated())
    await world.events.has(2)

    failed = world.events.data[1]
    assert isinstance(failed, VimRegistrationFailed)
    assert failed.credentials_id == CREDENTIALS_ID
    assert "unauthorized" in failed.reason
    connection = await world.directory.connection(VimConnection(vim_id=made.vim_id))
    assert revealed(connection.access_info, RING)["bearer_token"] == cluster.admin_token


@pytest.mark.parametrize(
    ("poison", "names"),
    [
        (":6443", ":99999999"),
        (":6443", ":6443\\r\\nX-Evil: 1"),
        ("swordfish", "sword\\0fish"),
        ("swordfish", "sword\\r\\nfish"),
        ("current-context: c", "current-context: [c]"),
    ],
)
async def test_a_poisoned_record_of_an_earlier_version_is_refused_once(
    world: World, cluster: LabCluster, poison: str, names: str
) -> None:
    """CR-080: its receiver has stored what no VIM can be made of. The event ends, and the VIM stays as it is."""
    made = await a_workload_vim(world, cluster)
    before = await world.vims.get(made.vim_id)
    text = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://10.0.0.5:6443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: "swordfish"}}]
"""
    assert poison in text
    world.credentials.by_id[CREDENTIALS_ID] = text.replace(poison, names)
    await publish(world, received())
    await world.bus.quiet()

    (failed,) = world.events.data[1:]
    assert isinstance(failed, VimRegistrationFailed)
    assert "kubeconfig." in failed.reason
    assert "fish" not in failed.reason
    assert await world.vims.get(made.vim_id) == before
    answer = await world.ask(a_received(name="another"))
    assert isinstance(answer, CommandFailed)
    assert (answer.code, answer.status) == ("unprocessable", 422)


async def test_a_record_that_breaks_the_handler_breaks_it_once(world: World, cluster: LabCluster) -> None:
    """CR-080: it is published as a failure, and the message is a dead letter."""
    await a_workload_vim(world, cluster)
    world.credentials.breaks = True
    events: Sequence[CredentialsReceived | CredentialsRotated | CredentialsDeleted] = received(), rotated(), a_deleted()
    for count, event in enumerate(events, start=1):
        await publish(world, event)
        await world.bus.quiet()
        failed = world.events.data[count]
        assert isinstance(failed, VimRegistrationFailed)
        assert "swordfish" not in failed.reason
    assert len(world.events.data) == 4
    dead = await world.bus.dead_letters("vim-registry")
    assert [each.reason for each in dead] == ["ValueError"] * 3


async def test_the_update_from_a_silent_cluster_fails_with_the_reason(
    world: World, make_cluster: Callable[..., Awaitable[LabCluster]]
) -> None:
    await a_workload_vim(world, await make_cluster())
    new = await make_cluster()
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(new)
    world.lab.faults.add(part="kubernetes", effect="fail", status=503)
    await publish(world, rotated())
    failed = await world.events.first(VimRegistrationFailed)
    assert new.endpoint in failed.reason


async def test_the_update_from_a_called_back_cluster_is_retried(
    lab: Lab, settings: Settings, make_cluster: Callable[..., Awaitable[LabCluster]], tmp_path: Path
) -> None:
    patient = settings.model_copy(update={"credentials_tries_s": 60.0})
    async with running(lab, patient, tmp_path) as world:
        await a_workload_vim(world, await make_cluster())
        world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(await make_cluster())
        lab.faults.add(part="kubernetes", effect="fail", status=503, times=1)
        publishing = asyncio.create_task(publish(world, rotated()))
        await publishing
        await world.events.first(VimRegistered, after=1)


async def test_the_vim_of_a_deleted_cluster_is_removed_unless_others_use_it(world: World, cluster: LabCluster) -> None:
    """CR-084."""
    made = await a_workload_vim(world, cluster)
    world.credentials.by_id.clear()

    world.users.by_vim[made.vim_id] = ["cnf-1"]
    await publish(world, a_deleted())
    await world.events.has(2)
    assert isinstance(world.events.data[1], VimRegistrationFailed)
    assert await world.vims.get(made.vim_id)

    world.users.by_vim.clear()
    await publish(world, a_deleted())
    await publish(world, a_deleted())
    await world.events.has(3)
    assert world.events.data[2] == VimDeregistered(vim_ids=(made.vim_id,))
    with pytest.raises(NotFound):
        await world.vims.get(made.vim_id)


# --- events out of order: the receiver has stored its state before it publishes, and that decides ---------------------


async def test_events_about_erased_credentials_leave_no_vim_in_any_order(world: World, cluster: LabCluster) -> None:
    """CR-072, CR-079: late or once more, before and after the deletion."""
    await publish(world, a_deleted())
    await publish(world, received())
    assert world.events.data == []
    await a_workload_vim(world, cluster)
    world.credentials.by_id.clear()
    await publish(world, received())
    await publish(world, a_deleted())
    for event in (received(), rotated(), a_deleted()):
        await publish(world, event)
    await world.bus.quiet()
    assert [type(event) for event in world.events.data] == [VimRegistered, VimRegistrationFailed, VimDeregistered]
    assert await world.vims.list({}) == []


async def test_an_old_deletion_does_not_remove_the_vim_of_a_cluster_that_has_called_back_since(
    world: World, cluster: LabCluster
) -> None:
    """CR-084: an operator has erased the credentials, the cluster was sent again, and the first event is delivered again."""
    made = await a_workload_vim(world, cluster)
    await publish(world, a_deleted())
    assert [vim["id"] for vim in await world.vims.list({})] == [made.vim_id]
    world.credentials.by_id.clear()
    await publish(world, a_deleted())
    await world.events.has(2)
    assert world.events.data[1] == VimDeregistered(vim_ids=(made.vim_id,))


async def test_a_receiver_that_is_silent_is_asked_again_before_a_vim_is_removed(
    lab: Lab, settings: Settings, cluster: LabCluster, tmp_path: Path
) -> None:
    patient = settings.model_copy(update={"credentials_tries_s": 60.0})
    async with running(lab, patient, tmp_path) as world:
        await a_workload_vim(world, cluster)
        world.credentials.by_id.clear()
        world.credentials.silent_for = 1
        publishing = asyncio.create_task(publish(world, a_deleted()))
        await world.events.has(2)
        await publishing
        assert isinstance(world.events.data[1], VimDeregistered)


# --- called-back credentials, for an operation that waits -------------------------------------------------------------


async def test_an_operation_learns_the_vim_of_the_cluster_whose_credentials_were_received(
    world: World, cluster: LabCluster
) -> None:
    """CR-079, CR-083: id from instance and cluster, CA and token from the kubeconfig, no secret in the answer."""
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    answer = await world.ask(a_received())
    again = await world.ask(a_received())

    assert isinstance(answer, VimRegistered)
    assert answer == again
    assert answer.vim_id == derived_id("vim", "vnf-1", "uid-1")
    assert (answer.name, answer.endpoint, answer.vim_type) == ("workload", cluster.endpoint, KUBERNETES)
    shown = await world.vims.get(answer.vim_id)
    assert shown["extra"] == {"vnf_instance_id": "vnf-1", "cluster": "capi-cluster", "management_vim_id": "vim-0"}
    connection = await world.directory.connection(VimConnection(vim_id=answer.vim_id))
    assert revealed(connection.access_info, RING) == {"bearer_token": cluster.admin_token}
    assert connection.interface_info["ssl_ca_cert"] == cluster.ca_pem
    assert cluster.admin_token not in str([envelope.document(RING) for envelope in world.events.envelopes])
    stored = await world.store.get("vims", answer.vim_id)
    assert stored is not None
    assert cluster.admin_token not in str(stored.body)


async def test_the_event_and_the_command_of_one_call_back_make_one_vim(world: World, cluster: LabCluster) -> None:
    """CR-081."""
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    await asyncio.gather(
        publish(world, received()), world.bus.publish(Envelope(a_received(), source="/kubevnfm/lcm-api"))
    )
    answer = await world.ask(a_received())

    assert isinstance(answer, VimRegistered)
    assert len(await world.vims.list({})) == 1
    assert {event.vim_id for event in world.events.data if isinstance(event, VimRegistered)} == {answer.vim_id}
    assert not [event for event in world.events.data if not isinstance(event, VimRegistered)]


async def test_an_operation_learns_why_its_cluster_was_not_registered(
    world: World, make_cluster: Callable[..., Awaitable[LabCluster]]
) -> None:
    """CR-001, CR-080, CR-082, CR-085."""
    missing = await world.ask(a_received())
    assert isinstance(missing, CommandFailed)
    assert (missing.code, missing.status) == ("credentials-missing", 404)
    assert "capi.register_vim" in missing.detail

    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(await make_cluster(version="1.24.17"))
    old = await world.ask(a_received())
    assert isinstance(old, CommandFailed)
    assert (old.code, old.status) == ("kubernetes-too-old", 422)
    assert "v1.24.17" in old.detail

    operators = await world.vims.create(world.openstack(name="workload", is_default=True))
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(await make_cluster())
    taken = await world.ask(a_received(is_default=True))
    assert isinstance(taken, CommandFailed)
    assert (taken.code, taken.status) == ("vim-name-taken", 409)
    assert (await world.vims.default() or {})["id"] == operators["id"], "a refused registration changed the default"


async def test_a_cluster_that_serves_no_version_becomes_a_vim_only_if_cluster_api_built_it(
    world: World, cluster: LabCluster
) -> None:
    """CR-060, CR-080: `/version` may be missing in test servers."""
    world.lab.faults.add(part="kubernetes", verb="* /version", effect="fail", status=404)
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    answer = await world.ask(a_received())
    assert isinstance(answer, VimRegistered)
    assert answer.kubernetes_version == ""

    refused = await world.ask(a_register(cluster))
    assert isinstance(refused, CommandFailed)
    assert "/version answered 404" in refused.detail


async def test_the_registration_for_an_operation_is_retried_while_the_cluster_is_silent(
    world: World, cluster: LabCluster
) -> None:
    """CR-080."""
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    world.lab.faults.add(part="kubernetes", effect="fail", status=503, times=2)
    assert isinstance(await world.ask(a_received()), VimRegistered)


async def test_access_data_that_an_operator_has_changed_are_replaced_by_the_next_call_back(
    world: World, cluster: LabCluster
) -> None:
    """CR-081."""
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    made = await world.ask(a_received())
    assert isinstance(made, VimRegistered)
    await world.vims.update(made.vim_id, {"auth_cred": {"ssl_ca_cert": cluster.ca_pem}})
    stored = await world.store.get("vims", made.vim_id)
    assert stored is not None
    assert stored.body["content_sha256"] == ""
    await world.ask(a_received())
    again = await world.store.get("vims", made.vim_id)
    assert again is not None
    assert again.body["content_sha256"] == sha256_hex(a_kubeconfig(cluster).encode())


async def test_credentials_that_are_erased_during_the_registration_leave_no_vim(
    world: World, cluster: LabCluster
) -> None:
    """CR-072."""
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    world.credentials.reads_left = 1
    answer = await world.ask(a_received())

    assert isinstance(answer, CommandFailed)
    assert answer.code == "credentials-missing"
    assert await world.vims.list({}) == []


# --- clusters that are built again ------------------------------------------------------------------------------------

RELEASE = ReleaseVim(vnf_instance_id="vnf-1", cluster_name="capi-cluster")


def erased(uid: str) -> CredentialsDeleted:
    return CredentialsDeleted(
        credentials_id=credentials_id("vnf-1", uid),
        vnf_instance_id="vnf-1",
        cluster_name="capi-cluster",
        cluster_uid=uid,
    )


async def test_a_cluster_that_is_built_again_takes_over_the_vim_with_its_id(
    world: World, make_cluster: Callable[..., Awaitable[LabCluster]]
) -> None:
    """CR-117: the earlier credentials are erased meanwhile; each message may come twice, and late."""
    old, new = await make_cluster(), await make_cluster()
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(old)
    made = await world.ask(a_received())
    assert isinstance(made, VimRegistered)
    await world.vims.update(made.vim_id, {"description": "mine", "is_default": True})

    for _ in range(2):
        assert await world.ask(RELEASE) == VimReleased(vim_ids=(made.vim_id,))
    # The message about the earlier one, once more, before its credentials are erased.
    late = await world.ask(a_received())
    assert isinstance(late, CommandFailed)
    assert late.code == "credentials-missing"
    del world.credentials.by_id[CREDENTIALS_ID]
    for _ in range(2):
        await publish(world, erased("uid-1"))
    assert (await world.vims.get(made.vim_id))["auth_url"] == old.endpoint

    world.credentials.by_id[credentials_id("vnf-1", "uid-2")] = a_kubeconfig(new)
    # One of another name is another cluster.
    other = await world.ask(a_received(uid="uid-2", name="other", cluster_name="other"))
    assert isinstance(other, VimRegistered)
    assert other.vim_id != made.vim_id
    await world.ask(DeregisterVim(vnf_instance_id="vnf-1", name="other"))
    for _ in range(2):
        again = await world.ask(a_received(uid="uid-2"))
        assert isinstance(again, VimRegistered)
        assert (again.vim_id, again.endpoint) == (made.vim_id, new.endpoint)
    shown = await world.vims.get(made.vim_id)
    assert (shown["description"], shown["is_default"], shown["auth_url"]) == ("mine", True, new.endpoint)
    assert {"awaited_cluster", "former_cluster_uid"}.isdisjoint(shown)

    await publish(world, erased("uid-1"))
    assert await world.vims.get(made.vim_id)
    del world.credentials.by_id[credentials_id("vnf-1", "uid-2")]
    await publish(world, erased("uid-2"))
    assert await world.vims.list({}) == []


async def test_the_vim_of_a_cluster_that_others_use_is_not_released(world: World, cluster: LabCluster) -> None:
    """CR-117: a CNF that came after the request for the heal."""
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    made = await world.ask(a_received())
    assert isinstance(made, VimRegistered)
    world.users.by_vim[made.vim_id] = ["vnf-1", "cnf-1"]
    refused = await world.ask(RELEASE)
    assert isinstance(refused, CommandFailed)
    assert (refused.code, refused.status, "cnf-1" in refused.detail) == ("vim-in-use", 409, True)
    del world.credentials.by_id[CREDENTIALS_ID]
    world.users.by_vim.clear()
    await publish(world, erased("uid-1"))
    assert await world.vims.list({}) == []


async def test_a_vim_without_a_cluster_is_removed_with_its_owner(world: World, cluster: LabCluster) -> None:
    """CR-117: a heal that was given up after the deletion, and the termination after it."""
    world.credentials.by_id[CREDENTIALS_ID] = a_kubeconfig(cluster)
    made = await world.ask(a_received())
    await world.ask(RELEASE)
    assert isinstance(made, VimRegistered)
    assert await world.ask(DeregisterVim(vnf_instance_id="vnf-1")) == VimDeregistered(vim_ids=(made.vim_id,))
