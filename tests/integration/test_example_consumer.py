"""The instructions in proto-events/README.md work: the permissions, and the example consumer."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aio_pika
import pytest
from aio_pika.exceptions import ChannelClosed
from kubevnfm_bus.rabbit import RabbitBus
from kubevnfm_events import Envelope
from kubevnfm_events.credentials import CredentialsDeleted
from kubevnfm_events.vim import VimDeregistered, VimStatusChanged
from kubevnfm_secrets import KeyRing
from needs import cannot_have
from servers.rabbitmq import RabbitServer

pytestmark = pytest.mark.server

PROTO_EVENTS = Path(__file__).parents[2] / "proto-events"
RING = KeyRing.from_text(KeyRing.new_key())
STATUS = Envelope(
    VimStatusChanged(vim_id="vim-1", name="cloud", old_status="ACTIVE", status="UNREACHABLE", reason="no answer"),
    source="/kubevnfm/vim-registry",
    subject="vim-1",
)


@pytest.fixture(scope="module")
def observer(rabbitmq: RabbitServer) -> Iterator[str]:
    """The broker URL of a user that exactly the README's commands have created."""
    password = secrets.token_hex(8)
    readme = (PROTO_EVENTS / "README.md").read_text()
    permissions = re.search(r"^rabbitmqctl (set_permissions -p / observer .*)$", readme, re.MULTILINE)
    assert permissions is not None
    assert "rabbitmqctl add_user observer\n" in readme
    rabbitmq.control("add_user", "observer", password)
    rabbitmq.control(*[part.strip("'") for part in permissions[1].split(" ")])
    yield rabbitmq.url_for("observer", password)
    # The broker lives as long as its worker, and a test of this module may come to the worker a second time.
    rabbitmq.control("delete_user", "observer")


@pytest.fixture
async def bus(rabbitmq: RabbitServer) -> AsyncIterator[RabbitBus]:
    async with RabbitBus.connect(rabbitmq.url, service="test", key_ring=RING) as bus:
        await bus.publish(STATUS)  # declares the exchanges, as any running service has done
        yield bus


@asynccontextmanager
async def consumer(url: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Yield the process of the example consumer once it listens."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        PROTO_EVENTS / "examples" / "consumer.py",
        *arguments,
        env=os.environ | {"KUBEVNFM_EVENTS_URL": url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        line = await asyncio.wait_for(process.stderr.readline(), timeout=300)
        assert line.startswith(b"listening on observer."), line + await process.stderr.read()
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_the_example_prints_the_events_it_asked_for(observer: str, bus: RabbitBus) -> None:
    async with consumer(observer, "--pattern", "vim.#", "--count", "2") as process:
        await bus.publish(STATUS)
        await bus.publish(
            Envelope(
                CredentialsDeleted(credentials_id="c", vnf_instance_id="i", cluster_name="n", cluster_uid="u"),
                source="/kubevnfm/credentials-receiver",
            )
        )
        await bus.publish(Envelope(VimDeregistered(vim_ids=("vim-1",)), source="/kubevnfm/vim-registry"))
        printed, complaints = await asyncio.wait_for(process.communicate(), timeout=300)

    assert process.returncode == 0, complaints
    events = [json.loads(line) for line in printed.splitlines()]
    assert [event["type"] for event in events] == ["kubevnfm.vim.status.changed.v1", "kubevnfm.vim.deregistered.v1"]
    assert events[0]["id"] == STATUS.id
    assert events[0]["data"]["status"] == "UNREACHABLE"


async def test_the_shell_example_prints_the_events(observer: str, bus: RabbitBus, tmp_path: Path) -> None:
    if shutil.which("amqp-consume") is None:
        cannot_have("amqp-consume is not installed (Debian: amqp-tools)")
    readme = (PROTO_EVENTS / "README.md").read_text()
    given = re.search(r"^amqp-consume (--server=rabbitmq --authfile=observer.auth .*) jq -c \.$", readme, re.MULTILINE)
    assert given is not None
    broker = urlsplit(observer)
    (tmp_path / "observer.auth").write_text(f"username:{broker.username}\npassword:{broker.password}\n")
    arguments = [
        part.replace("=rabbitmq", f"={broker.hostname}").replace("lcm.#", "vim.#") for part in shlex.split(given[1])
    ]
    process = await asyncio.create_subprocess_exec(
        "amqp-consume", f"--port={broker.port}", *arguments, "-c", "1", "cat",
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output = asyncio.create_task(process.communicate())
    try:
        async with asyncio.timeout(300):
            while not output.done():  # an event that is published before its queue is bound is lost
                await bus.publish(STATUS)
                await asyncio.wait({output}, timeout=0.1)
    finally:
        if process.returncode is None:
            process.kill()
        printed, complaints = await output
    assert process.returncode == 0, complaints
    assert json.loads(printed)["id"] == STATUS.id


async def test_a_durable_queue_keeps_events_while_the_example_is_away(observer: str, bus: RabbitBus) -> None:
    queue = f"observer.{secrets.token_hex(4)}"
    async with consumer(observer, "--queue", queue, "--pattern", "vim.status.changed"):
        pass
    await bus.publish(STATUS)
    async with consumer(observer, "--queue", queue, "--pattern", "vim.status.changed", "--count", "1") as process:
        printed, _ = await asyncio.wait_for(process.communicate(), timeout=300)
    assert json.loads(printed)["id"] == STATUS.id


async def test_the_observer_can_neither_publish_nor_see_commands(observer: str, bus: RabbitBus) -> None:
    connection = await aio_pika.connect(observer)
    async with connection:
        for exchange, key in (("kubevnfm.events", "vim.registered"), ("kubevnfm.commands", "vim-registry")):
            channel = await connection.channel()
            target = await channel.get_exchange(exchange, ensure=False)
            with pytest.raises(ChannelClosed, match="ACCESS_REFUSED"):
                await target.publish(aio_pika.Message(b"{}"), key, mandatory=False)
        channel = await connection.channel()
        with pytest.raises(ChannelClosed, match="ACCESS_REFUSED"):
            await channel.declare_queue("kubevnfm.commands.vim-registry", durable=True)
        channel = await connection.channel()
        mine = await channel.declare_queue("observer.spy", exclusive=True)
        with pytest.raises(ChannelClosed, match="ACCESS_REFUSED"):
            await mine.bind("kubevnfm.commands", "vim-registry")
