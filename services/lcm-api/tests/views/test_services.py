"""``/kubevnfm/v1/services``: the processes of all services as a gateway hears of them, and its settings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubevnfm_events import Envelope, Message
from kubevnfm_events.contract import services
from kubevnfm_events.services import ServiceReported, Trouble
from kubevnfm_kit.health import PartState
from kubevnfm_lcm_api.settings import Settings
from kubevnfm_lcm_api.siblings import SeenService, Siblings
from kubevnfm_lcm_api.views.processes import shown_service
from kubevnfm_lcm_api.views.shown_settings import shown_settings
from patience import until_true
from pydantic import SecretStr, ValidationError
from worlds.lcm_world import World

START = datetime(2030, 1, 1, tzinfo=UTC)
STORE = Trouble(part="store", text="The database does not answer.")
STRANGE = Trouble(part="a host: db-7", text="It is away.", is_blocking=False)
SANDBOX = Trouble(part="sandbox", text="Code of packages is not run.", is_blocking=False)


class Site:
    """A gateway that hears reports, at times that the test chooses."""

    def __init__(self) -> None:
        self.at, self.asked = START, asyncio.Event()
        self.own = report("gateway", "lcm-api")
        self.siblings = Siblings(self, self._own)

    def now(self) -> datetime:
        return self.at

    async def _own(self) -> ServiceReported:
        self.asked.set()
        return self.own

    async def hear(self, *reports: ServiceReported) -> None:
        for each in reports:
            await self.siblings.hear(Envelope[Message](data=each, source="/kubevnfm/test"))

    async def pass_s(self, seconds: int, *reports: ServiceReported) -> None:
        """Let time pass, in which the gateway hears itself and these processes every 10 s."""
        for _ in range(seconds // 5):
            self.at += timedelta(seconds=5)
            if (self.at - START).seconds % 10 == 0:
                await self.hear(self.own, *reports)

    async def parts(self) -> dict[str, tuple[str, str]]:
        """Return the state and the text of each other service at the gateway's readiness."""
        found = await self.seen_parts()
        assert not any(each.is_vital for each in found)
        return {each.part: (each.state, each.text) for each in found}

    async def seen_parts(self) -> Sequence[PartState]:
        """Return them; what this process lacks is read once, at the same time as its parts."""
        self.asked.clear()
        async with asyncio.timeout(30):
            found = await self.siblings.beside(self._parts)()
        assert not self.asked.is_set()
        return found

    async def _parts(self) -> Sequence[PartState]:
        await self.asked.wait()
        self.asked.clear()
        return ()

    async def service(self, name: str) -> SeenService:
        return next(each for each in await self.siblings.services() if each.name == name)


def report(process: str, *names: str, pid: int = 0, **facts: Any) -> ServiceReported:
    number = pid or sum(process.encode())
    made = {"host": "node", "pid": number, "version": "0.2.0", "started_at": START, **facts}
    return ServiceReported(process=process, services=names, **made)


async def test_a_killed_process_is_away_within_30_s_and_one_that_never_came_is_missing() -> None:
    """A process that was stopped is known no more, and one that takes its place in its container replaces it."""
    site = Site()
    k8s, other, vims = report("k1", "infra-k8s"), report("k2", "infra-k8s"), report("v1", "vim-registry")
    assert {each.name: each.state for each in await site.siblings.services()} == {
        **dict.fromkeys(services(), "unknown"), "lcm-api": "ready",
    }  # fmt: skip
    await site.hear(site.own, k8s, other, vims)
    await site.pass_s(30, k8s, other, vims)
    assert (await site.service("infra-k8s")).state == "ready"
    assert (await site.service("infra-openstack")).state == "missing"

    died_at = site.at
    await site.pass_s(30, k8s)
    assert await site.parts() == {
        "infra-k8s": ("ready", ""),
        "vim-registry": ("failed", "None of its processes reports any more."),
        **dict.fromkeys(
            ("credentials-receiver", "infra-openstack", "mgmt-executor"),
            ("failed", "No process of it has reported since this gateway was started."),
        ),
    }
    gone = await site.service("vim-registry")
    assert (gone.state, gone.since) == ("away", died_at)
    left = await site.service("infra-k8s")
    assert (left.state, [each.state for each in left.processes]) == ("ready", ["ready", "away"])
    await site.pass_s(300, k8s)
    assert [each.report.process for each in (await site.service("infra-k8s")).processes] == ["k1"]
    assert [each.report.process for each in (await site.service("vim-registry")).processes] == ["v1"]

    again = report("v2", "vim-registry", pid=vims.pid, started_at=site.at)
    await site.hear(again)
    back = await site.service("vim-registry")
    assert (back.state, [each.report.process for each in back.processes]) == ("ready", ["v2"])
    await site.hear(again.model_copy(update={"has_ended": True}))
    assert (await site.service("vim-registry")).state == "missing"


async def test_containers_in_the_network_of_their_host_do_not_take_each_others_place() -> None:
    """Each has the host's name and pid 1; and the clock of one is a day ahead."""
    site = Site()
    first = report("k1", "infra-k8s", pid=1)
    later = report("v1", "vim-registry", pid=1, started_at=START + timedelta(days=1))
    for _ in range(2):
        await site.hear(site.own, first, later)
    seen = {name: await site.service(name) for name in ("infra-k8s", "vim-registry")}
    assert {name: (each.state, each.since) for name, each in seen.items()} == dict.fromkeys(seen, ("ready", START))
    with pytest.raises(ValidationError):
        report("x", "infra-k8s", started_at=START.replace(tzinfo=None))


async def test_a_gateway_that_hears_nothing_says_that_it_knows_nothing() -> None:
    """Neither without a broker, nor right after it is back; the state of its own process it knows all the same."""
    site = Site()
    vims = report("v1", "vim-registry")
    await site.hear(site.own, vims)
    await site.pass_s(30, vims)
    site.at += timedelta(seconds=300)
    site.own = report("gateway", "lcm-api", troubles=(Trouble(part="broker", text="It does not answer."), STORE))
    states = {each.name: each.state for each in await site.siblings.services()}
    assert (states["vim-registry"], states["infra-k8s"], states["lcm-api"]) == ("unknown", "unknown", "not-ready")
    site.own = report("gateway", "lcm-api")
    await site.hear(site.own)
    assert (await site.service("vim-registry")).state == "unknown"
    assert {state for state, _ in (await site.parts()).values()} == {"unknown"}
    await site.hear(vims)
    assert (await site.service("vim-registry")).state == "ready"
    await site.pass_s(30, vims)
    assert (await site.service("infra-k8s")).state == "missing"


async def test_what_a_process_lacks_is_shown_with_the_time_since_when() -> None:
    """And hundreds of reports of processes that are no more are not kept."""
    site = Site()
    lacking = report("m1", "mgmt-executor", troubles=(SANDBOX,))
    for since, each in enumerate((lacking.model_copy(update={"troubles": ()}), lacking), start=-2):
        site.at = START + timedelta(hours=since)
        await site.hear(site.own, report("m0", "mgmt-executor"), each)
    (part,) = [each for each in await site.seen_parts() if each.part == "mgmt-executor"]
    assert (part.state, part.since) == ("degraded", START - timedelta(hours=1))
    await site.hear(report("m0", "mgmt-executor", has_ended=True))
    site.at = START
    await site.pass_s(10)
    broken = report("m1", "mgmt-executor", troubles=(SANDBOX, STORE))
    await site.hear(broken)
    await site.pass_s(10, broken)
    seen = await site.service("mgmt-executor")
    assert (seen.state, seen.since) == ("not-ready", START + timedelta(seconds=10))
    assert (await site.parts())["mgmt-executor"] == ("failed", "A process of it lacks: sandbox, store.")
    strange = broken.model_copy(update={"process": "m2", "pid": 2, "troubles": (STRANGE,)})
    await site.hear(strange)
    lacks = "A process of it lacks: sandbox, store."  # anybody may ask, so a text of others is not shown
    assert (await site.parts())["mgmt-executor"] == ("degraded", lacks)
    await site.hear(strange.model_copy(update={"has_ended": True}))
    for number in range(250):
        await site.hear(report(f"x{number}", "vim-registry", pid=number + 1))
    await site.hear(report("m1", "vim-registry"), report("m1", "vim-registry", has_ended=True))
    assert len((await site.service("vim-registry")).processes) <= 200
    # Neither its own nor its last report of "m1" is about a process of the other service.
    left = (await site.service("mgmt-executor")).processes
    assert [(each.report.process, each.report.services) for each in left] == [("m1", ("mgmt-executor",))]


async def test_what_a_killed_process_lacked_is_not_said_of_its_service() -> None:
    site = Site()
    well, ill = report("k1", "infra-k8s"), report("k2", "infra-k8s", troubles=(STORE,))
    await site.hear(site.own, well, ill)
    assert shown_service(await site.service("infra-k8s")).text == STORE.text
    await site.pass_s(60, well)
    shown = shown_service(await site.service("infra-k8s"))
    assert (shown.health, shown.text) == (
        "progressing", "1 of its processes do not report, or are not ready; others are",
    )  # fmt: skip


async def test_the_view_names_each_service_and_the_settings(world: World) -> None:
    """In a world without the other services nothing is heard, so nothing is known of them."""
    view = (await world.call("GET", "/kubevnfm/v1/services")).must(200).json
    assert view["sequence"]
    by_name = {each["name"]: each for each in view["services"]}
    assert set(by_name) == set(services())
    assert (by_name["lcm-api"]["state"], by_name["lcm-api"]["health"]) == ("ready", "ok")
    assert by_name["infra-k8s"]["state"] == "unknown"
    assert {each["name"] for each in view["settings"]} == set(Settings.model_fields)
    modes = next(each for each in view["settings"] if each["name"] == "auth_modes")
    assert (modes["value"], modes["group"]) == (["none"], "Authentication and limits of callers")
    assert modes["text"].startswith("The modes of authentication: none, or some of basic, ")
    await _judges_what_a_service_lacks(world)


async def _judges_what_a_service_lacks(world: World) -> None:
    """Check the words: of a service that can do nothing, and of one with another process that is ready."""
    found = dict[str, Any]()

    async def judged(process: str, *troubles: Trouble) -> tuple[str, str, str | None, list[str]]:
        made = report(process, "infra-k8s", started_at=datetime.now(UTC), troubles=troubles)
        await world.bus.publish(Envelope[Message](data=made, source="/kubevnfm/infra-k8s"))

        async def is_heard() -> bool:
            services = (await world.call("GET", "/kubevnfm/v1/services")).must(200).json["services"]
            found.update(next(each for each in services if each["name"] == "infra-k8s"))
            return process in {each["id"] for each in found["processes"]}

        await until_true(is_heard)
        return found["state"], found["health"], found["text"], sorted(each["state"] for each in found["processes"])

    both = f"{SANDBOX.text} {STORE.text}"
    assert await judged("k1", SANDBOX, STORE) == ("not-ready", "problem", both, ["not-ready"])
    (process,) = found["processes"]
    assert [(each["part"], each["isBlocking"]) for each in process["troubles"]] == [("sandbox", False), ("store", True)]
    assert await judged("k2") == ("ready", "progressing", both, ["not-ready", "ready"])


def test_no_setting_shows_a_secret_or_a_login() -> None:
    """Each setting that can hold a text has one with a mark; those of types that hide values show none."""
    marked: dict[str, Any] = {
        name: "https://login-mark:secret-mark@host.example/path?token=secret-mark"
        for name, field in Settings.model_fields.items()
        if field.annotation in (str, str | None)
    }
    marked |= {"auth_keystone_username": "login-mark", "nfvo_user": "login-mark", "allowed_networks": "a:secret-mark@b"}
    hidden: dict[str, Any] = {
        name: SecretStr("secret-mark")
        for name, field in Settings.model_fields.items()
        if field.annotation in (SecretStr, SecretStr | None)
    }
    assert {"amqp_url", "mongo_url", "keys", "internal_token", "nfvo_password"} <= hidden.keys()
    settings = Settings.model_construct(**marked, **hidden, peer_tokens={"a": SecretStr("secret-mark")})
    shown = {each.name: each for each in shown_settings(settings)}
    text = "".join(each.model_dump_json() for each in shown.values())
    assert "secret-mark" not in text
    assert "login-mark" not in text
    assert shown["nfvo_url"].value == "https://host.example/path"
    for name in (*hidden, "peer_tokens", "nfvo_user"):
        assert (shown[name].value, shown[name].isHidden, shown[name].isSet) == (None, True, True)
