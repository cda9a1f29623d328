"""The connection to RabbitMQ, opened again after each loss, and publishing on it with confirms."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar

import aio_pika
import structlog
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import CONNECTION_EXCEPTIONS
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.outages import Outage
from pamqp.commands import Basic

from kubevnfm_bus import topology
from kubevnfm_bus.declarations import Declarations
from kubevnfm_bus.errors import BrokerLost, BusClosed

T = TypeVar("T")

log = structlog.get_logger()
# The client library logs every refused connection as an error; our own log line says it once.
logging.getLogger("aiormq.connection").setLevel(logging.CRITICAL)

_CONNECT_TIMEOUT_S: Final = 10.0
_CONFIRM_TIMEOUT_S: Final = 60.0
_CANCEL_TIMEOUT_S: Final = 1.0
"""The wait for a call whose caller is cancelled: the connection closes soon, which ends any."""
# RabbitMQ's default is 60 s: a peer that vanished without closing would be noticed too late for steps that wait.
_HEARTBEAT_S: Final = 15
RECONNECT: Final = BackOff(0.1, 2.0)
"""Between tries to reach the broker. Short, because steps wait meanwhile."""


@contextmanager
def broker_errors() -> Iterator[None]:
    """Turn what aio-pika raises when the broker or the channel is gone (time-outs too) into BrokerLost."""
    try:
        yield
    except CONNECTION_EXCEPTIONS as error:
        raise BrokerLost(f"{type(error).__name__}: {error}") from error


def message_of(body: bytes, *, message_id: str | None, type: str | None, headers: JsonMapping) -> aio_pika.Message:
    """Return a persistent AMQP message with a CloudEvent in structured mode."""
    return aio_pika.Message(
        body,
        content_type="application/cloudevents+json; charset=utf-8",
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        message_id=message_id,
        type=type,
        headers=dict(headers),
    )


class Link:
    """One live connection, with a channel for publishing."""

    def __init__(self, connection: AbstractConnection, channel: AbstractChannel, declarations: Declarations) -> None:
        self._connection, self._channel, self._declarations = connection, channel, declarations
        self._declared: set[str] = set()
        self._declaring = asyncio.Lock()
        self._replacing = asyncio.Lock()
        self._lost = asyncio.Event()
        connection.close_callbacks.add(self._note_loss)
        channel.close_callbacks.add(self._note_loss)

    def _note_loss(self, *_: object) -> None:
        self._lost.set()

    @classmethod
    async def open(cls, url: str, *, name: str, declarations: Declarations) -> Link:
        """Connect, with what every service needs on the broker. Raises BrokerLost."""
        connection: AbstractConnection | None = None
        try:
            with broker_errors():
                connection = await aio_pika.connect(
                    url,
                    timeout=_CONNECT_TIMEOUT_S,
                    client_properties={"connection_name": name},
                    heartbeat=_HEARTBEAT_S,
                )
            with broker_errors():
                async with asyncio.timeout(_CONFIRM_TIMEOUT_S):
                    # Not on the publishing channel: the broker closes the channel of a declaration that it refuses.
                    async with connection.channel() as declaring:
                        await declarations.exchanges(declaring)
                    channel = connection.channel(publisher_confirms=True)
                    await channel.initialize()
        # A cancelled start too must not leave the connection open.
        except BaseException:
            if connection is not None:
                await connection.close()
            raise
        return cls(connection, channel, declarations)

    @property
    def is_open(self) -> bool:
        """Whether messages can be published."""
        return not self._lost.is_set() and not self._channel.is_closed

    async def lost(self) -> None:
        """Return when the connection or its publishing channel is gone."""
        await self._lost.wait()

    async def close(self) -> None:
        """Close the connection, in good order if the broker still answers."""
        await _close_quietly(self._connection)

    async def new_channel(self, *, confirms: bool = True) -> AbstractChannel:
        """Open a further channel. Raises BrokerLost."""
        with broker_errors():
            channel = self._connection.channel(publisher_confirms=confirms)
            await channel.initialize(timeout=_CONFIRM_TIMEOUT_S)
        return channel

    async def publish(self, message: aio_pika.Message, *, exchange: str, routing_key: str) -> bool:
        """Publish and wait for the confirm; return whether a queue took it. Raises BrokerLost."""
        channel = self._channel
        with broker_errors():
            # ensure=False: the link has declared the exchange; a check would cost a round trip for each message.
            target = await channel.get_exchange(exchange, ensure=False)
            try:
                # Without `mandatory` the broker confirms a message that no queue takes, and drops it.
                result = await target.publish(message, routing_key, mandatory=True, timeout=_CONFIRM_TIMEOUT_S)
            except TimeoutError:
                await self._replace(channel)
                raise
        return isinstance(result, Basic.Ack)

    async def _replace(self, channel: AbstractChannel) -> None:
        """Publish on another channel than this one, which has lost a confirm. Raises BrokerLost."""
        async with self._replacing:
            if self._channel is not channel:
                return
            try:
                replacement = await self.new_channel()
            except BrokerLost:
                # The connection answers nothing more: the keeper opens another one.
                self._note_loss()
                raise
            channel.close_callbacks.discard(self._note_loss)
            replacement.close_callbacks.add(self._note_loss)
            self._channel = replacement
            log.warning("publishing_channel_replaced")
            # Those who still wait for a confirm on it publish again, too.
            await _close_quietly(channel)

    async def publish_command(self, message: aio_pika.Message, service: str) -> None:
        """Publish to a service's queue, which is declared if the service was never started. Raises BrokerLost."""
        await self._declare_once(service)
        if not await self.publish(message, exchange=topology.COMMANDS, routing_key=service):
            # The queue was deleted while this link was open: the publisher's next try declares it again.
            self._declared.discard(service)
            raise BrokerLost(f"no queue {topology.command_queue(service)}")

    async def _declare_once(self, service: str) -> None:
        if service in self._declared:
            return
        async with self._declaring:  # the lock also keeps the first messages to a service in order
            if service in self._declared:
                return
            # On a separate channel, because the broker closes the channel of a declaration that it refuses.
            channel = await self.new_channel()
            try:
                with broker_errors():
                    async with asyncio.timeout(_CONFIRM_TIMEOUT_S):
                        await self._declarations.command_queue(channel, service)
            finally:
                await _close_quietly(channel)
            self._declared.add(service)


class LinkKeeper:
    """Maintains a link to the broker: connects in the background after each loss."""

    def __init__(self, url: str, *, name: str, declarations: Declarations) -> None:
        self._url, self._name, self._declarations = url, name, declarations
        self._link: Link | None = None
        self._linked = asyncio.Event()
        self._is_ending = False

    @property
    def is_linked(self) -> bool:
        """Whether there is a live link now."""
        return self._link is not None and self._link.is_open

    async def link(self) -> Link:
        """Return the live link, waiting for it as long as the broker is away. Raises BusClosed once the block has been left."""
        while True:
            await self._linked.wait()
            if self._is_ending:
                raise BusClosed("the bus was closed before the broker had the message")
            if self._link is not None and self._link.is_open:
                return self._link
            # The link is lost, but `_run` has not noticed it yet.
            await asyncio.sleep(0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Connect whenever there is no link, until the block ends; then close the link."""
        keeping = asyncio.create_task(self._run(), name="amqp-connection")
        try:
            yield
        finally:
            self._is_ending = True
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            # No link comes any more.
            self._linked.set()

    async def _run(self) -> None:
        failures, outage = 0, Outage("broker")
        # The client library calls `asyncio.wait_for`, which in Python 3.11 loses a cancellation that comes in the moment in
        # which what it awaits ends.
        while not self._is_ending:
            try:
                self._link = await Link.open(self._url, name=self._name, declarations=self._declarations)
            except BrokerLost as error:
                failures += 1
                outage.failed(error)
                await asyncio.sleep(RECONNECT.after(failures))
                continue
            failures = 0
            self._linked.set()
            if not outage.is_on:
                log.info("broker_connected")
            outage.answered()
            try:
                if not self._is_ending:
                    await self._link.lost()
                    if not self._is_ending:
                        outage.failed("the connection was lost")
            finally:
                self._linked.clear()
                link, self._link = self._link, None
                await link.close()


async def ending_with_its_caller(call: Coroutine[Any, Any, T]) -> T:
    """Return the result of a call of the client library, which a cancellation of the caller ends at once.

    The library waits with `asyncio.wait_for`, which in Python 3.11 loses a cancellation that comes in the moment in which what
    it awaits ends. So the call has a task of its own; `asyncio.wait` loses none.
    """
    task = asyncio.create_task(call, name="amqp-call")
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=_CANCEL_TIMEOUT_S)
        if task.done() and not task.cancelled():
            task.exception()  # no other caller asks for it
        raise
    return task.result()


async def _close_quietly(open_one: AbstractConnection | AbstractChannel) -> None:
    try:
        with broker_errors():
            # A lost connection gets no answer to its close, nor does its channel.
            async with asyncio.timeout(5.0):
                await open_one.close()
    except BrokerLost as error:
        log.debug("broker_connection_left", reason=str(error))
