"""Grants by an external NFVO, over HTTP on both sides: requested, polled, refused, used and reused."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events.mgmt import RunPhase
from kubevnfm_events.stacks import CreateResources, ResourcesCreated
from kubevnfm_lcm_api.settings import Settings
from patience import until
from pydantic import ValidationError
from servers.nfvo import PROBLEM, StubNfvo
from servers.subscriber import Subscriber
from worlds.lcm_builders import RESOURCES
from worlds.lcm_world import RING, TOKEN, World, lcm_world

CREATE = "infra.openstack.create_resources"
ACCESS = {"username": "u", "password": "marked-by-the-nfvo", "project": "p"}
VIM = {
    "vimId": "vim-9",
    "vimType": "openstack",
    "interfaceInfo": {"endpoint": "http://127.0.0.1:5000/v3"},
    "accessInfo": ACCESS,
}
WORLDS = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
async def nfvo() -> AsyncIterator[StubNfvo]:
    async with StubNfvo.listening() as listening:
        yield listening


@pytest.fixture
def worlds(tmp_path: Path, nfvo: StubNfvo) -> WORLDS:
    """Start lcm-api, repeatedly in the same folder."""

    def start(**changes: Any) -> AbstractAsyncContextManager[World]:
        return lcm_world(tmp_path, **{"nfvo_url": nfvo.url, "nfvo_poll_s": 0.02, **changes})

    return start


@pytest.fixture
async def world(worlds: WORLDS) -> AsyncIterator[World]:
    async with worlds() as running:
        await running.sample()
        yield running


async def was_polled(nfvo: StubNfvo) -> None:
    async def polled() -> bool | None:
        return True if nfvo.polls else None

    await until(polled, timeout_s=10)


async def is_free(world: World, instance_id: str) -> bool:
    """Return whether the instance is as before the operation, and can be deleted."""
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json
    return (
        shown["instantiationState"] == "NOT_INSTANTIATED"
        and "vimConnectionInfo" not in shown
        and (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).status == 204
    )


async def test_an_operation_that_is_granted_at_once_is_carried_out_with_the_grant(world: World, nfvo: StubNfvo) -> None:
    """API-040 (STARTING to PROCESSING), api.md 3.4: the grant overrides the request."""
    nfvo.more = {
        "vimConnectionInfo": {"site": VIM},
        "zones": [{"id": "z1", "zoneId": "nova", "vimConnectionId": "site"}],
        "addResources": [{"resourceDefinitionId": "VDU1-add-0", "zoneId": "z1", "vimConnectionId": "site"}],
        "vimAssets": {
            "computeResourceFlavours": [{"vnfdVirtualComputeDescId": "VDU1", "vimFlavourId": "m1.granted"}],
            "softwareImages": [{"vnfdSoftwareImageId": "VDU1", "vimSoftwareImageId": "image-granted"}],
        },
        "extVirtualLinks": [
            {
                "id": "external",
                "resourceId": "net-granted",
                "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": {"a": {"cpProtocolData": [
                    {"layerProtocol": "IP_OVER_ETHERNET"}]}}}],
            }
        ],
        "extManagedVirtualLinks": [{"id": "m", "vnfVirtualLinkDescId": "internal", "resourceId": "net-m"}],
        "additionalParams": {"colour": "of the NFVO"},
    }  # fmt: skip
    instance_id = await world.create()
    operation_id = await world.instantiate(instance_id, additionalParams={"colour": "mine", "shape": "round"})
    occ = await world.reached(operation_id, "COMPLETED")
    assert occ["grantId"] == "grant-1"
    assert occ["_links"]["grant"]["href"] == f"{nfvo.url}/grant/v1/grants/grant-1"
    assert occ["operationParams"]["additionalParams"]["colour"] == "mine"
    command = world.twins.commands[0].data
    assert isinstance(command, CreateResources)
    assert command.vim.access_info["password"].reveal(RING) == ACCESS["password"]
    assert command.vim.vim_type == "ETSINFV.OPENSTACK_KEYSTONE.V_3"
    assert command.grant["zones"] == [{"id": "z1", "zoneId": "nova", "vimConnectionId": "site"}]
    assert command.grant["vimAssets"] == nfvo.more["vimAssets"]
    assert command.grant_request["addResources"][0]["id"] == "VDU1-add-0"
    instance = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert instance["vimConnectionInfo"]["site"]["vimId"] == "vim-9"
    assert instance["instantiatedVnfInfo"]["extVirtualLinkInfo"][0]["resourceHandle"]["resourceId"] == "net-granted"
    stored = await world.store.get("vnf_instances", instance_id)
    assert stored is not None
    internal = stored.body["internal"]
    assert internal["parameters"] == {"colour": "of the NFVO", "shape": "round"}
    assert internal["connections"]["extManagedVirtualLinks"][0]["resourceId"] == "net-m"


async def test_granted_zones_reach_who_labels_the_nodes(world: World, nfvo: StubNfvo) -> None:
    """sequences.md 1, M15: by the machine's VDU; what the grant says nothing of is where the cloud says it is."""
    await world.sample("cluster")
    nfvo.more = {
        "zones": [{"id": "z1", "zoneId": "zone-a"}, {"id": "z2", "zoneId": "zone-b"}],
        "addResources": [
            {"resourceDefinitionId": "workerNode-add-0", "zoneId": "z1"},
            {"resourceDefinitionId": "workerNode-add-1", "zoneId": "z2"},
        ],
    }
    zones = zip(RESOURCES.servers, ("nova", None, "zone-b"), strict=True)
    servers = tuple(server.model_copy(update={"zone": zone}) for server, zone in zones)
    world.twins.answers[CREATE] = ResourcesCreated(resources=RESOURCES.model_copy(update={"servers": servers}))
    await world.reached(await world.instantiate(await world.create("cluster"), "cluster"), "COMPLETED")
    (phase,) = [command.data for command in world.twins.commands if isinstance(command.data, RunPhase)]
    assert {node.server_id: node.zone for node in phase.nodes} == {
        "server-m1": "nova",
        "server-w1": "zone-a",
        "server-w2": "zone-b",
    }


async def users_of(world: World, vim_id: str) -> list[str]:
    """Return the instances because of which vim-registry refuses to delete the VIM."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = await world.call("GET", f"/internal/v1/vims/{vim_id}/users", headers=headers)
    users: list[str] = answer.must(200).json["users"]
    return users


async def test_a_vim_that_a_grant_names_is_in_use_from_then_on(world: World, nfvo: StubNfvo) -> None:
    """API-132: while the operation runs and while its resources exist, and not after a rollback."""
    nfvo.more = {
        "vimConnectionInfo": {"site": VIM},
        "addResources": [{"resourceDefinitionId": "VDU1-add-0", "vimConnectionId": "site"}],
    }
    instance_id = await world.create()
    world.twins.failing.add(CREATE)
    operation_id = await world.instantiate(instance_id)
    await world.reached(operation_id, "FAILED_TEMP")
    assert await users_of(world, "vim-9") == [instance_id]
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    assert await users_of(world, "vim-9") == []

    world.twins.failing.clear()
    world.twins.waiting.add(CREATE)
    operation_id = await world.instantiate(instance_id)
    await world.twins.has_asked(3)
    assert await users_of(world, "vim-9") == [instance_id]
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    assert (await users_of(world, "vim-9"), await users_of(world, "vim-1")) == ([instance_id], [])


async def test_a_vim_that_a_grant_names_for_a_change_replaces_the_old_one_at_the_end(
    world: World, nfvo: StubNfvo
) -> None:
    """API-132: until the end both are in use."""
    instance_id = await world.create()
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    nfvo.more = {"vimConnectionInfo": {"vim-1": VIM}}
    ended_in = {"ROLLED_BACK": "vim-1", "COMPLETED": "vim-9"}
    for state, vim_id in ended_in.items():
        world.twins.failing.add("infra.openstack.scale_resources")
        operation_id = await world.ask(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "VDU1_scale"})
        await world.reached(operation_id, "FAILED_TEMP")
        assert await users_of(world, "vim-1") == await users_of(world, "vim-9") == [instance_id]
        world.twins.failing.clear()
        task = "rollback" if state == "ROLLED_BACK" else "retry"
        (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/{task}")).must(202)
        await world.reached(operation_id, state)
        used = [one for one in ("vim-1", "vim-9") if await users_of(world, one)]
        assert used == [vim_id]


async def test_the_request_names_the_resources_that_are_added_and_removed(world: World, nfvo: StubNfvo) -> None:
    """api.md 3.10: GrantRequest of an instantiate and of a terminate; no grant for create and delete."""
    instance_id = await world.create()
    operation_id = await world.instantiate(instance_id, additionalParams={"password": "marked-in-the-request"})
    await world.reached(operation_id, "COMPLETED")
    ended = await world.ask(instance_id, "terminate", {"terminationType": "FORCEFUL"})
    await world.reached(ended, "COMPLETED")
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    first, second = nfvo.requests
    assert nfvo.versions == {"1.4.0"}
    assert first["vnfInstanceId"] == instance_id
    assert first["vnfLcmOpOccId"] == operation_id
    assert (first["operation"], first["flavourId"]) == ("INSTANTIATE", "simple")
    assert first["isAutomaticInvocation"] is False
    assert {"id": "VDU1-add-0", "type": "COMPUTE", "vduId": "VDU1", "resourceTemplateId": "VDU1"} in first[
        "addResources"
    ]
    assert first["_links"]["vnfLcmOpOcc"]["href"].endswith(f"/vnflcm/v2/vnf_lcm_op_occs/{operation_id}")
    assert "marked-in-the-request" not in str(first)
    assert second["operation"] == "TERMINATE"
    removed = [one for one in second["removeResources"] if one["type"] == "COMPUTE"]
    assert {one["resource"]["resourceId"] for one in removed} == {"server-m1", "server-w1", "server-w2"}


async def test_secrets_of_a_grant_are_sealed_and_never_shown(
    world: World, nfvo: StubNfvo, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """API-030 for a grant: its secrets are in no answer, no document and no log line."""
    nfvo.more = {"vimConnectionInfo": {"vim-1": VIM}}
    instance_id = await world.create()
    operation_id = await world.instantiate(instance_id)
    await world.reached(operation_id, "COMPLETED")
    for path in (f"/vnf_instances/{instance_id}", f"/vnf_lcm_op_occs/{operation_id}"):
        for answer in (await world.lcm("GET", path), await world.v1("GET", path)):
            assert ACCESS["password"].encode() not in answer.must(200).raw
    for collection, document_id in (("vnf_instances", instance_id), ("vnf_lcm_op_occs", operation_id)):
        stored = await world.store.get(collection, document_id)
        assert stored is not None
        assert ACCESS["password"] not in str(stored.body)
    printed = capsys.readouterr()
    assert ACCESS["password"] not in caplog.text + printed.out + printed.err


async def cause_of(world: World, operation_id: str) -> dict[str, Any]:
    """Return why the operation is as it is."""
    cause: dict[str, Any] = (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json["cause"]
    return cause


async def test_an_operation_stays_starting_until_the_nfvo_has_decided(world: World, nfvo: StubNfvo) -> None:
    """api.md 3.10: 202, then polls. The polls go to the configured URL, whatever Location says."""
    nfvo.undecided = 3
    nfvo.location = "http://192.0.2.1/elsewhere/grant-1"
    operation_id = await world.instantiate(await world.create())
    occ = await world.reached(operation_id, "COMPLETED")
    assert occ["grantId"] == "grant-1"
    assert (len(nfvo.requests), nfvo.polls) == (1, ["grant-1"] * 4)
    states = [change.state for change in world.changes if change.vnf_lcm_op_occ_id == operation_id]
    assert states == ["STARTING", "PROCESSING", "COMPLETED"]


@pytest.mark.parametrize("undecided", [0, 2])
async def test_a_refused_operation_is_rolled_back_and_leaves_the_instance_free(
    world: World, nfvo: StubNfvo, undecided: int
) -> None:
    """API-046, at once and while polling: ROLLED_BACK with the NFVO's own problem; no command was sent."""
    nfvo.is_refusing, nfvo.undecided = True, undecided
    instance_id = await world.create()
    occ = await world.reached(await world.instantiate(instance_id), "ROLLED_BACK")
    assert {name: occ["error"][name] for name in PROBLEM} == PROBLEM
    assert "grantId" not in occ
    cause = await cause_of(world, occ["id"])
    assert (cause["code"], cause["object"]["kind"]) == ("grant-refused", "Nfvo")
    assert "grant" not in occ["_links"]
    assert world.twins.commands == []
    assert await is_free(world, instance_id)


async def test_an_nfvo_that_never_answers_ends_the_operation_in_time(worlds: WORLDS, nfvo: StubNfvo) -> None:
    """API-046, no grant within the timeout: 504 in ``error``."""
    nfvo.goes_on.clear()
    async with worlds(nfvo_call_timeout_s=0.1, nfvo_timeout_s=0.4) as world:
        await world.sample()
        instance_id = await world.create()
        occ = await world.reached(await world.instantiate(instance_id), "ROLLED_BACK")
        assert (occ["error"]["status"], occ["error"]["type"]) == (504, "grant-timeout")
        assert "did not answer in time" in occ["error"]["detail"]
        assert (await cause_of(world, occ["id"]))["code"] == "nfvo-away"
        assert await is_free(world, instance_id)


@pytest.mark.parametrize("fault", [{"faults": 3}, {"undecided": 1, "faults": 2}])
async def test_calls_that_the_nfvo_fails_are_repeated(world: World, nfvo: StubNfvo, fault: dict[str, int]) -> None:
    """api.md 3.10: 503 decides nothing."""
    for name, value in fault.items():
        setattr(nfvo, name, value)
    await world.reached(await world.instantiate(await world.create()), "COMPLETED")
    assert nfvo.faults == 0


async def test_a_redirect_is_not_followed(worlds: WORLDS, nfvo: StubNfvo) -> None:
    """API-046: the credentials go to the configured address only."""
    nfvo.status = 307
    async with worlds(nfvo_timeout_s=0.3) as world:
        await world.sample()
        occ = await world.reached(await world.instantiate(await world.create()), "ROLLED_BACK")
        assert occ["error"]["detail"].endswith("the NFVO answered 307")
        assert (await cause_of(world, occ["id"]))["code"] == "nfvo-faulty"
    assert nfvo.polls == []


async def test_polls_of_the_same_grant_continue_after_a_restart(worlds: WORLDS, nfvo: StubNfvo) -> None:
    """API-061 in STARTING: one request, even if lcm-api is restarted while the NFVO decides."""
    nfvo.undecided = 1_000_000
    async with worlds() as world:
        await world.sample()
        operation_id = await world.instantiate(await world.create())
        await was_polled(nfvo)
        assert (await world.operation(operation_id))["operationState"] == "STARTING"
    nfvo.undecided = 0
    async with worlds() as world:
        assert (await world.reached(operation_id, "COMPLETED"))["grantId"] == "grant-1"
    assert len(nfvo.requests) == 1


async def test_a_request_whose_answer_was_lost_is_repeated_with_the_same_body(worlds: WORLDS, nfvo: StubNfvo) -> None:
    """API-061: the process ends while the NFVO handles the request; the repeat names the same operation."""
    nfvo.goes_on.clear()
    async with worlds(nfvo_call_timeout_s=0.3) as world:
        await world.sample()
        operation_id = await world.instantiate(await world.create())
        await nfvo.came.wait()
    nfvo.goes_on.set()
    async with worlds(nfvo_call_timeout_s=0.3) as world:
        await world.reached(operation_id, "COMPLETED")
    assert len(nfvo.requests) >= 2
    assert all(request == nfvo.requests[0] for request in nfvo.requests)


async def test_modify_needs_no_grant(world: World, nfvo: StubNfvo) -> None:
    """API-047: PROCESSING to COMPLETED without a grant."""
    instance_id = await world.create()
    changed = (await world.lcm("PATCH", f"/vnf_instances/{instance_id}", {"vnfInstanceName": "new"})).must(202)
    occ = await world.reached(changed.headers["Location"].rpartition("/")[2], "COMPLETED")
    assert occ["changedInfo"] == {"vnfInstanceName": "new"}
    assert "grantId" not in occ
    assert nfvo.requests == []


async def test_the_start_notification_is_delivered_before_the_grant_request(worlds: WORLDS, nfvo: StubNfvo) -> None:
    """API-075: when the NFVO gets the request, the subscriber has the START notification."""
    async with Subscriber.listening() as subscriber, worlds(allowed_networks="127.0.0.0/8") as world:
        await world.sample()
        (await world.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri})).must(201)
        known: list[list[str]] = []
        nfvo.asked = lambda: known.append([each.body.get("operationState", "") for each in subscriber.received])
        await world.reached(await world.instantiate(await world.create()), "COMPLETED")
        assert [state for state in known[0] if state] == ["STARTING"]


async def test_retry_and_rollback_use_the_grant_again(world: World, nfvo: StubNfvo) -> None:
    """api.md 3.10: the grant is stored until the occurrence ends, and no other is requested."""
    nfvo.more = {"zones": [{"id": "z1", "zoneId": "nova"}]}
    world.twins.failing.add(CREATE)
    operation_id = await world.instantiate(await world.create())
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    commands = await world.twins.has_asked(2)
    await world.until(lambda: [c.state for c in world.changes][-2:] == ["PROCESSING", "FAILED_TEMP"])
    assert [command.data.grant["zones"] for command in commands if isinstance(command.data, CreateResources)] == [
        nfvo.more["zones"]
    ] * 2
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    assert (await world.reached(operation_id, "ROLLED_BACK"))["grantId"] == "grant-1"
    assert len(nfvo.requests) == 1


@pytest.mark.parametrize("mode", ["GRACEFUL", "FORCEFUL"])
async def test_a_cancel_while_starting_ends_rolled_back(world: World, nfvo: StubNfvo, mode: str) -> None:
    """API-052 in STARTING: GRACEFUL waits for the NFVO's decision first, FORCEFUL does not."""
    nfvo.undecided = 1_000_000
    instance_id = await world.create()
    operation_id = await world.instantiate(instance_id)
    await was_polled(nfvo)
    shown = (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
    assert [wait["text"] for wait in shown["waits"]] == ["The NFVO has not decided about the grant yet."]
    listed = (await world.call("GET", "/kubevnfm/v1/operations?state=STARTING")).must(200).json["items"]
    assert listed[0]["cause"] == shown["cause"]
    assert (shown["cause"]["code"], shown["cause"]["since"]) == ("nfvo-undecided", shown["waits"][0]["since"])
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/cancel", {"cancelMode": mode})).must(202)
    if mode == "GRACEFUL":
        nfvo.polls.clear()
        await was_polled(nfvo)
        assert (await world.operation(operation_id))["isCancelPending"] is True
        nfvo.undecided = 0
    occ = await world.reached(operation_id, "ROLLED_BACK")
    assert occ["error"]["status"] == 409
    assert world.twins.commands == []
    assert await is_free(world, instance_id)


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"vimConnectionInfo": {"vim-1": {**VIM, "vimType": "kubernetes"}}}, "vimConnectionInfo/vim-1/vimType"),
        ({"zones": "everywhere"}, "zones"),
        ({"vnfLcmOpOccId": "another"}, "vnfLcmOpOccId"),
    ],
)
async def test_a_grant_that_cannot_be_used_ends_the_operation(
    world: World, nfvo: StubNfvo, more: dict[str, Any], place: str
) -> None:
    """API-046: transition 4 of api.md 4.1, no plan can be made."""
    nfvo.more = more
    instance_id = await world.create()
    occ = await world.reached(await world.instantiate(instance_id), "ROLLED_BACK")
    assert occ["error"]["status"] == 422
    assert place in occ["error"]["detail"]
    assert await is_free(world, instance_id)


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


async def test_requests_to_the_nfvo_are_authenticated(worlds: WORLDS, nfvo: StubNfvo) -> None:
    """API-078, towards the NFVO: Basic, and OAuth 2.0 client credentials with a token that is fetched once."""
    nfvo.wants = basic("vnfm", "pw")
    credentials: dict[str, Any] = {"nfvo_auth": "basic", "nfvo_user": "vnfm", "nfvo_password": "pw"}
    async with worlds(**credentials) as world:
        await world.sample()
        await world.reached(await world.instantiate(await world.create()), "COMPLETED")
    nfvo.wants = "Bearer token-1"
    nfvo.undecided = 1
    async with worlds(**{**credentials, "nfvo_auth": "oauth2", "nfvo_token_url": nfvo.token_url}) as world:
        await world.reached(await world.instantiate(await world.create()), "COMPLETED")
    assert nfvo.token_forms == [{"grant_type": "client_credentials", "authorization": basic("vnfm", "pw")}]


@pytest.mark.parametrize(
    "given",
    [
        {"nfvo_url": "ftp://nfvo"},
        {"nfvo_url": "http://u:p@nfvo"},
        {"nfvo_auth": "basic"},
        {"nfvo_auth": "oauth2", "nfvo_user": "u", "nfvo_password": "p"},
        {"nfvo_tls_key": "key.pem"},
    ],
)
def test_contradictory_settings_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="nfvo_"):
        Settings(**{"internal_token": "t", "keys": "k", **given})  # type: ignore[arg-type]  # wrong on purpose
