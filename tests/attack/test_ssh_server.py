"""A hostile SSH server against mgmt-executor: before the login, and with a session that was opened.

Another host key, a refused login and a command without end are tried in `services/mgmt-executor/tests/test_ssh.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import asyncssh
import pytest
from _pytest.mark import ParameterSet
from kubevnfm_mgmt_executor.adapters.ssh import SshMachines
from kubevnfm_mgmt_executor.domain.errors import (
    CommandTimedOut,
    ConnectionLost,
    NodeUnreachable,
    SudoRefused,
    TransferRefused,
)
from kubevnfm_mgmt_executor.domain.output import CollectedOutput
from kubevnfm_mgmt_executor.domain.ports import Address, Login, Machine
from kubevnfm_secrets import Mask
from servers.hostile import BLOCK, MIB, Speech, flat_memory, hostile_server, says, trickles
from servers.vnf_networks import networks

LOGIN = Login("root", "s3cret-password")
MOST_MIB = 60
SSH = "kubevnfm_mgmt_executor.adapters.ssh"
ESCAPES = b"\x1b[2J\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b5m\x00\x08 10%\r20%\r \xe2\x80\xae"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{SSH}.CONNECT_WITHIN_S", 1.0)
    monkeypatch.setattr(f"{SSH}_channels.COMMAND_S", 2.0)
    monkeypatch.setattr(f"{SSH}_machine.KILL_GRACE_S", 1)


class AnyKey:
    """Host keys that nothing depends on."""

    async def pinned(self, vnf_instance_id: str, vnfc_id: str) -> str | None:
        return None

    async def pin(self, vnf_instance_id: str, vnfc_id: str, key: str) -> str:
        return key

    async def forget(self, vnf_instance_id: str, *, vnfc_ids: object = None) -> None:
        """Nothing is kept."""


async def reach(port: int, login: Login = LOGIN) -> Machine:
    machines = SshMachines(AnyKey(), networks(), port=port)
    async with asyncio.timeout(300):
        return await machines.reach(Address("node1", "instance", "vnfc-1", "127.0.0.1"), login, within_s=1.5)


def check_reason(error: Exception) -> None:
    text = str(error)
    assert len(text) < 2000
    assert text.replace("\n", "").isprintable()
    assert str(LOGIN.password) not in text


def repeats(first: bytes, block: bytes) -> Speech:
    async def speak(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(block)
            await writer.drain()

    return speak


async def is_silent(_: bytes, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


def a_long_one(speech: Speech) -> ParameterSet:
    return pytest.param(speech, marks=pytest.mark.deep)


DISCONNECT = (
    b"SSH-2.0-x\r\n\x00\x00\x00\x2c\x0a\x01\x00\x00\x00\x02"
    b"\x00\x00\x00\x10\x1b[2J\x1b]0;owned\x07!!\x00\x00\x00\x00" + bytes(20)
)
"""A disconnect (RFC 4253 11.1) whose reason would clear the screen of its reader."""


@pytest.mark.parametrize(
    "speech",
    [
        a_long_one(repeats(b"", b"welcome\r\n" * 1000)),
        a_long_one(repeats(b"", b"x" * BLOCK)),
        a_long_one(repeats(b"SSH-2.0-x\r\n", b"\xff" * BLOCK)),
        repeats(b"SSH-2.0-x\r\n\x00\x03\xff\xff\x04\x14", b"\x00" * BLOCK),
        a_long_one(is_silent),
        a_long_one(trickles(b"a banner\r\n" * 1000)),
        a_long_one(says(b"")),
        a_long_one(says(b"SSH-2.0-x\r\n")),
        says(b"SSH-2.0-\xff\xfe\r\n"),
        a_long_one(says(b"SSH-9.9-x\r\n")),
        a_long_one(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
        says(DISCONNECT),
    ],
    ids=range(12),
)
async def test_a_hostile_server_before_the_login_is_an_unreachable_machine(speech: Speech) -> None:
    async with hostile_server(speech, waits=False) as server:
        with flat_memory(MOST_MIB), pytest.raises(NodeUnreachable) as caught:
            await reach(server.port)
        assert server.requests
    check_reason(caught.value)


Session = Callable[[asyncssh.SSHServerProcess[bytes]], Awaitable[None]]


class AnyLogin(asyncssh.SSHServer):
    """Accepts every user."""

    def begin_auth(self, username: str) -> bool:
        return False


@asynccontextmanager
async def ssh_server(session: Session) -> AsyncIterator[int]:
    """Yield the port of a server that hands each command, and each SFTP session, to ``session``."""

    async def serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
        with suppress(OSError, asyncssh.Error):
            await session(process)

    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        server_factory=AnyLogin,
        process_factory=serve,
        encoding=None,
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def flood(process: asyncssh.SSHServerProcess[bytes], block: bytes) -> None:
    while True:
        process.stdout.write(block)
        process.stderr.write(block)
        await process.stdout.drain()


@pytest.mark.parametrize(
    "block", [b"x" * BLOCK, b"\n" * BLOCK, b"line\n" * 10_000, ESCAPES * 100 + b"\n"], ids=range(4)
)
async def test_output_without_end_is_cut_and_ends_with_the_time_of_the_command(block: bytes) -> None:
    async with ssh_server(lambda process: flood(process, block)) as port:
        machine = await reach(port)
        output = CollectedOutput(Mask([str(LOGIN.password)]))
        with flat_memory(MOST_MIB), pytest.raises((CommandTimedOut, ConnectionLost)) as caught:
            async with asyncio.timeout(300):
                await machine.run(["true"], task="t", timeout_s=1, output=output.add)
        check_reason(caught.value)
        await machine.close()
    text = output.text()
    assert len(text) < MIB
    assert text.replace("\n", "").replace("\t", "").isprintable()


async def test_control_sequences_of_a_machine_reach_no_reader() -> None:
    async def speak(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(ESCAPES + b"\n" + b"pass\x1b[0mword-1\n")
        process.exit(1)

    async with ssh_server(speak) as port:
        machine = await reach(port)
        output = CollectedOutput(Mask(["password-1"]))
        assert await machine.run(["true"], task="t", timeout_s=20, output=output.add) == 1
        await machine.close()
    first, second = output.text().splitlines()
    assert first.startswith("red ")
    assert first.isprintable()
    assert "owned" not in first
    assert second == "***"


async def is_mute(process: asyncssh.SSHServerProcess[bytes]) -> None:
    await asyncio.sleep(30)


@pytest.mark.deep
async def test_a_session_that_never_answers_ends() -> None:
    async with ssh_server(is_mute) as port:
        machine = await reach(port)
        with pytest.raises(CommandTimedOut):
            await machine.run(["true"], task="t", timeout_s=1)
        with pytest.raises(ConnectionLost):
            await machine.read("result", limit=100)
        with pytest.raises(ConnectionLost):
            await machine.upload("folder", {"a": b"b"})
        await machine.close()
        # A user who is not root must become it first, and the machine never says whether that is so.
        with pytest.raises((NodeUnreachable, CommandTimedOut, SudoRefused)):
            await reach(port, Login("ubuntu", "s3cret-password"))


def sftp(*packets: bytes, endless: bytes = b"") -> Session:
    """An SFTP server (version 3) that answers whatever it is asked with these packets, one after the other."""

    async def speak(process: asyncssh.SSHServerProcess[bytes]) -> None:
        await process.stdin.read(9)
        process.stdout.write(b"\x00\x00\x00\x05\x02\x00\x00\x00\x03")
        for packet in packets:
            await process.stdin.read(BLOCK)
            process.stdout.write(packet)
        while endless:
            process.stdout.write(endless)
            await process.stdout.drain()
        await asyncio.sleep(30)

    return speak


@pytest.mark.parametrize(
    "session",
    [
        sftp(b"\xff\xff\xff\xff\x66"),
        sftp(b"\x00\x3f\xff\xff\x66", endless=b"x" * BLOCK),
        sftp(endless=b"\x00\x00\x00\x05\x67\xff\xff\xff\xff"),
        sftp(endless=b"x" * BLOCK),
        sftp(b"\x00\x00\x00\x01\x66"),
        # A handle for request 0, then for the read that follows 1 MiB where 100 bytes were asked for.
        sftp(b"\x00\x00\x00\x0a\x66\x00\x00\x00\x00\x00\x00\x00\x01h", b"\x00\x10\x00\x09\x67\x00\x00\x00\x01\x00\x10\x00\x00" + b"x" * MIB),
    ],
    ids=range(6),
)  # fmt: skip
async def test_hostile_sftp_ends_with_an_error_and_memory_flat(session: Session) -> None:
    async with ssh_server(session) as port:
        machine = await reach(port)
        with flat_memory(MOST_MIB):
            try:
                async with asyncio.timeout(300):
                    read = await machine.read("result", limit=100)
            except (ConnectionLost, TransferRefused) as error:
                check_reason(error)
            else:
                assert len(read) <= 100
        await machine.close()
