"""The rights of each service's user, on a real RabbitMQ with the definitions of `deploy/base/rabbitmq`.

That the services work with these users is shown by every end-to-end test in six processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import aio_pika
import pytest
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import ChannelClosed
from kubevnfm_bus.definitions import VERSION_EXCHANGE
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_bus.rabbit import RabbitBus
from kubevnfm_bus.topology import (
    BURIED,
    COMMANDS,
    DEAD,
    DELAYS_S,
    EVENTS,
    command_queue,
    dead_queue,
    delay_exchange,
    event_queue,
)
from kubevnfm_events import Envelope, Message
from kubevnfm_events.contract import COMMANDER, commands, published_by
from kubevnfm_events.credentials import CredentialsDeleted
from kubevnfm_events.queues import CREDENTIALS, EVENT_QUEUES, SERVICE_STATES
from kubevnfm_events.services import ServiceReported
from kubevnfm_events.vim import VimDeregistered
from kubevnfm_secrets import KeyRing
from kubevnfm_worker.reports import Process
from patience import until
from servers.rabbitmq import RabbitServer
from servers.six_processes import SERVICES

pytestmark = pytest.mark.server

T = TypeVar("T")
RING: Final = KeyRing.from_text(KeyRing.new_key())
DELETED: Final = CredentialsDeleted(credentials_id="c", vnf_instance_id="i", cluster_name="n", cluster_uid="u")
VHOST: Final = "permissions"
WORKERS: Final = {command.service for command in commands()}


@pytest.fixture(scope="module")
def urls(rabbitmq: RabbitServer) -> Mapping[str, str]:
    """The URL of each service's user, in a virtual host that no installation of the session uses."""
    return rabbitmq.service_urls(VHOST)


def own_queues(service: str) -> set[str]:
    events = {event_queue(queue.name) for queue in EVENT_QUEUES if queue.service == service}
    return events | ({command_queue(service)} if service in WORKERS else set())


ALL_QUEUES: Final = {queue for service in SERVICES for queue in own_queues(service)}
ALL_EVENTS: Final = {event.key_of(service) for service in SERVICES for event in published_by(service)}


class Hand:
    """One user's connection: what it tries is allowed or refused."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._channel: AbstractChannel | None = None

    async def may_publish(self, exchange: str, key: str) -> bool:
        async def publish(channel: AbstractChannel) -> None:
            target = await channel.get_exchange(exchange, ensure=False) if exchange else channel.default_exchange
            await target.publish(aio_pika.Message(b"{}"), key, mandatory=False)

        return await self._may(publish)

    async def may_read(self, queue: str) -> bool:
        async def read(channel: AbstractChannel) -> None:
            found = await channel.get_queue(queue, ensure=False)
            await found.get(no_ack=False, fail=False)

        return await self._may(read)

    async def may_declare(self, name: str) -> bool:
        async def declare(channel: AbstractChannel) -> None:
            await channel.declare_queue(name, durable=True)

        return await self._may(declare)

    async def may_watch(self, key: str) -> bool:
        async def watch(channel: AbstractChannel) -> None:
            queue = await channel.declare_queue(exclusive=True, auto_delete=True)
            await queue.bind(EVENTS, key)

        return await self._may(watch)

    async def _may(self, act: Callable[[AbstractChannel], Awaitable[None]]) -> bool:
        self._channel = self._channel or await self._connection.channel()
        try:
            await act(self._channel)
        except ChannelClosed as error:  # the broker closes the channel of what it refuses
            if "ACCESS_REFUSED" not in str(error):
                raise
            self._channel = None
            return False
        return True


@asynccontextmanager
async def hand_of(url: str) -> AsyncIterator[Hand]:
    async with await aio_pika.connect(url) as connection:
        yield Hand(connection)


async def test_a_service_reads_and_publishes_what_is_its_own_and_nothing_else(urls: Mapping[str, str]) -> None:
    for service in SERVICES:
        own, events = own_queues(service), {event.key_of(service) for event in published_by(service)}
        async with hand_of(urls[service]) as hand:
            read = {queue for queue in ALL_QUEUES if await hand.may_read(queue)}
            assert read == own, service
            published = {key for key in ALL_EVENTS if await hand.may_publish(EVENTS, key)}
            assert published == events, service
            commanded = {to for to in WORKERS if await hand.may_publish(COMMANDS, to)}
            assert commanded == (WORKERS if service == COMMANDER else set()), service
            for delay_s in (DELAYS_S[0], DELAYS_S[-1]):
                delayed = {queue for queue in ALL_QUEUES if await hand.may_publish(delay_exchange(delay_s), queue)}
                assert delayed == own, (service, delay_s)
            buried = {to for to in SERVICES if await hand.may_publish(BURIED, to)}
            assert buried == ({service} if own else set()), service
            dead = {of for of in WORKERS if await hand.may_read(dead_queue(of))}
            assert dead == ({service} if own else set()), service


async def test_no_service_configures_the_broker_or_goes_round_its_exchanges(urls: Mapping[str, str]) -> None:
    for service in SERVICES:
        async with hand_of(urls[service]) as hand:
            assert not await hand.may_declare(f"{service}.spy")
            for queue in own_queues(service):
                assert not await hand.may_declare(queue)
                assert not await hand.may_publish("", queue)
            assert not await hand.may_publish(DEAD, service)
            assert await hand.may_watch("lcm.#") == (service == "lcm-api")
            assert not await hand.may_watch("#")


async def test_a_message_that_came_another_way_than_its_kind_is_buried(
    rabbitmq: RabbitServer, urls: Mapping[str, str]
) -> None:
    """A user may publish some routing keys; neither the body nor the header CC must get it further."""
    handled: list[Envelope[Message]] = []

    async def note(delivery: Delivery) -> Verdict:
        handled.append(delivery.envelope)
        return Ack()

    forged = Envelope(DELETED, source="/kubevnfm/credentials-receiver").encode(RING)
    victim = event_queue(CREDENTIALS.name)
    async with (
        RabbitBus.connect(urls["vim-registry"], service="vim-registry", key_ring=RING, declares=False) as bus,
        await aio_pika.connect(urls["mgmt-executor"]) as connection,
    ):
        await bus.consume_events(CREDENTIALS.name, CREDENTIALS.patterns, note)
        for exchange, key, also in (
            (EVENTS, "mgmt.task.progressed", "credentials.deleted"),
            (delay_exchange(1), command_queue("mgmt-executor"), victim),
        ):
            channel = await connection.channel()
            target = await channel.get_exchange(exchange, ensure=False)
            # Newer brokers check the keys of CC too, and refuse.
            try:
                await target.publish(aio_pika.Message(forged, headers={"CC": [also]}), key, mandatory=False)
            except ChannelClosed as error:
                if "ACCESS_REFUSED" not in str(error):
                    raise
            else:
                await until(lambda exchange=exchange: _buried_from(bus, exchange))  # type: ignore[misc]
        async with RabbitBus.connect(
            urls["credentials-receiver"], service="credentials-receiver", key_ring=RING, declares=False
        ) as receiver:
            await receiver.publish(Envelope(DELETED, source="/kubevnfm/credentials-receiver", id="genuine"))
            await until(lambda: _first(handled))
    assert [envelope.id for envelope in handled] == ["genuine"]


async def test_a_service_waits_for_the_definitions_of_its_version(
    rabbitmq: RabbitServer, urls: Mapping[str, str]
) -> None:
    """With those of an older version an event that is new would reach no queue."""
    envelope = Envelope(VimDeregistered(vim_ids=("v",)), source="/kubevnfm/vim-registry")
    async with await aio_pika.connect(f"{rabbitmq.url}{VHOST}") as connection:
        channel = await connection.channel()
        await channel.exchange_delete(VERSION_EXCHANGE)
        try:
            async with RabbitBus.connect(
                urls["vim-registry"], service="vim-registry", key_ring=RING, declares=False
            ) as bus:
                publishing = asyncio.create_task(bus.publish(envelope))
                done, _ = await asyncio.wait({publishing}, timeout=0.5)
                assert not done
                assert not await bus.is_ready()
                await channel.declare_exchange(VERSION_EXCHANGE, ExchangeType.FANOUT, durable=True)
                await asyncio.wait_for(publishing, timeout=300)
        finally:
            await channel.declare_exchange(VERSION_EXCHANGE, ExchangeType.FANOUT, durable=True)


async def test_a_service_reports_on_itself_only(urls: Mapping[str, str]) -> None:
    """A report on another service neither passes the broker, by its key, nor the gateway, by its body."""
    heard = list[str]()

    async def hear(envelope: Envelope[Message]) -> None:
        heard.append(envelope.subject)

    def report(subject: str, *services: str) -> Envelope[Message]:
        process = Process([*services])
        return Envelope[Message](process.report((), has_ended=False), source="/kubevnfm/infra-k8s", subject=subject)

    async with (
        RabbitBus.connect(urls["lcm-api"], service="lcm-api", key_ring=RING, declares=False) as bus,
        RabbitBus.connect(urls["infra-k8s"], service="infra-k8s", key_ring=RING, declares=False) as infra,
        bus.watch_events(SERVICE_STATES, hear),
        await aio_pika.connect(urls["infra-k8s"]) as connection,
    ):
        channel = await connection.channel()
        target = await channel.get_exchange(EVENTS, ensure=False)
        for forged in (report("other", "mgmt-executor"), report("several", *SERVICES), report("none")):
            own_key = ServiceReported.key_of("infra-k8s")
            await target.publish(aio_pika.Message(forged.encode(RING)), own_key, mandatory=False)
        await infra.publish(report("own", "infra-k8s"))
        await until(lambda: _first(heard))
    assert heard == ["own"]


async def _buried_from(bus: RabbitBus, exchange: str) -> str | None:
    """Return the reason of a dead letter that came by the exchange; delayed messages come by the default one."""
    way = f"{DELETED.type} came by {exchange if exchange == EVENTS else 'the default exchange'}"
    reasons = [dead.reason for dead in await bus.dead_letters("vim-registry", limit=1000)]
    return next((reason for reason in reasons if reason.startswith(way)), None)


async def _first(handled: list[T]) -> T | None:
    return handled[0] if handled else None
