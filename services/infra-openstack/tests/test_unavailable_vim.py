"""A command on a VIM that does not answer ends after the worker's limit, however late its own deadline is."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import CommandFailed, Envelope
from kubevnfm_events.stacks import OperateServers
from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.domain.errors import VimRefused, VimUnavailable
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.stack import StackOrder
from kubevnfm_infra_openstack.server_handlers import ServerHandlers
from kubevnfm_infra_openstack.wiring import SERVICE
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.worker import CommandWorker
from worlds.given_vims import GivenVims
from worlds.stack_world import openstack_vim

RING = KeyRing.from_text(KeyRing.new_key())
NOTHING_LISTENS = "http://127.0.0.1:1/v3"


async def test_a_start_with_a_day_left_fails_with_the_last_error_of_the_vim(tmp_path: Path) -> None:
    answers: asyncio.Queue[object] = asyncio.Queue()

    async def answered(delivery: Delivery) -> Verdict:
        answers.put_nowait(delivery.envelope.data)
        return Ack()

    async with (
        InProcessBus(RING) as bus,
        SqliteStore.open(tmp_path / "store.db") as store,
        OpenStackClouds(RING, threads=2, call_timeout_s=5) as clouds,
        CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING, unavailable_limit_s=1.0) as worker,
    ):
        servers = ServerHandlers(clouds=clouds, vims=GivenVims(), grace=GracePeriods(store, SystemClock()))
        worker.handle(OperateServers, servers.operate_servers)
        await bus.consume_events("test", ["service.#"], answered)
        await worker.start()
        command = OperateServers(
            vnf_instance_id="inst-1", vim=openstack_vim(NOTHING_LISTENS), servers=("srv-1",), state="STARTED"
        )
        deadline = datetime.now(UTC) + timedelta(days=1)
        async with asyncio.timeout(300):
            await bus.publish(Envelope(command, source="/t", operationid="op-1", stepid="operate", deadline=deadline))
            failure = await answers.get()

    assert isinstance(failure, CommandFailed)
    assert (failure.code, failure.status) == ("vim-unavailable", 503)
    assert failure.detail == f"Keystone ({NOTHING_LISTENS}): connection refused"
    assert failure.made_nothing, "nothing was changed, so a rollback has nothing to undo"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"region": "Mars"}, "no region Mars; there are RegionOne"),
        ({"endpoint": "{root}/compute"}, "no Keystone v3 answers at this address"),
        ({"endpoint": "{tls}/identity/v3"}, "the port speaks http, and the address says https"),
        ({"password": "wrong-secret"}, "Keystone rejects"),
    ],
)
async def test_a_vim_that_cannot_serve_is_refused_at_once(changes: dict[str, str], reason: str) -> None:
    async with Lab.start() as lab, OpenStackClouds(RING, threads=2, call_timeout_s=5) as clouds:
        root = lab.auth_url.removesuffix("/identity/v3")
        address = changes.pop("endpoint", lab.auth_url).format(root=root, tls=root.replace("http:", "https:"))
        cloud = clouds.cloud(openstack_vim(address, **changes))
        with pytest.raises(VimRefused, match=reason) as refusal:
            await cloud.stacks.find("vnf-1", tag="t")
    assert not refusal.value.retryable
    assert "wrong-secret" not in str(refusal.value)


async def test_a_service_that_fails_after_a_change_of_the_password_does_not_hide_it() -> None:
    """As on a real Zed: Heat has remembered that the token was valid, and Keystone rejects what Heat does with it."""
    rejected: list[str | None] = []
    async with (
        Lab.start() as lab,
        OpenStackClouds(RING, threads=2, call_timeout_s=5, rejected=lambda vim: rejected.append(vim.vim_id)) as clouds,
    ):
        vim = openstack_vim(lab.auth_url).model_copy(update={"vim_id": "vim-1"})
        stacks = clouds.cloud(vim).stacks
        assert await stacks.find("vnf-1", tag="t") is None
        (user,) = lab.cloud.identity.users.values()
        first, user.password = user.password, "another-one"
        lab.faults.add(part="heat", verb="*", effect="fail", status=500, message="Internal Server Error", times=1)
        with pytest.raises(VimRefused, match="Keystone rejects the user, password"):
            await stacks.find("vnf-1", tag="t")
        assert rejected == ["vim-1"]
        user.password = first
        assert await stacks.find("vnf-1", tag="t") is None
        user.password = "another-one"
        # Heat passes the roles of the user on, and does so by a token that it remembers.
        message = "Missing required credential: roles {'role_ids': ['1']}"
        lab.faults.add(part="heat", verb="stack_create", effect="fail", status=400, message=message, times=1)
        with pytest.raises(VimRefused, match="Keystone rejects the user, password"):
            await stacks.create(StackOrder("vnf-1", {}, {}, {}, ("t",), 60))


async def test_keystone_away_is_named_where_another_service_was_called() -> None:
    async with Lab.start() as lab, OpenStackClouds(RING, threads=2, call_timeout_s=5) as clouds:
        stacks = clouds.cloud(openstack_vim(lab.auth_url)).stacks
        assert await stacks.find("vnf-1", tag="t") is None
        lab.cloud.identity.revoke_all()
        lab.faults.add(part="keystone", verb="*", effect="drop")
        with pytest.raises(VimUnavailable, match=r"^Keystone \("):
            await stacks.find("vnf-1", tag="t")


async def test_an_application_credential_logs_in_to_its_project() -> None:
    async with Lab.start() as lab, OpenStackClouds(RING, threads=2, call_timeout_s=5) as clouds:
        identity = lab.cloud.identity
        (user,), project = identity.users.values(), next(iter(identity.projects.values()))
        made = identity.add_application_credential(
            identity.issue(user, project, methods=("password",)), name="c", secret=""
        )
        access = {"applicationCredentialId": made.credential_id, "applicationCredentialSecret": made.secret}
        vim = openstack_vim(lab.auth_url).model_copy(
            update={"access_info": hide(access), "extra": {"interface": "internal", "region": "RegionOne"}}
        )
        assert await clouds.cloud(vim).stacks.find("vnf-1", tag="t") is None
