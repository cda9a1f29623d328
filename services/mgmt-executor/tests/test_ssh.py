"""The port to machines, over a real OpenSSH server and over the lab's machines: one suite for both."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import asyncssh
import pytest
from kubevnfm_kit import live_spans
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.traces import TraceContext
from kubevnfm_mgmt_executor.adapters.ssh import SshMachines
from kubevnfm_mgmt_executor.domain.errors import (
    CommandTimedOut,
    ConnectionLost,
    ForwardingRefused,
    HostKeyChanged,
    LoginRefused,
    NodeUnreachable,
    SessionRefused,
    SudoMissing,
    SudoRefused,
    TransferRefused,
)
from kubevnfm_mgmt_executor.domain.ports import Address, Bastion, Login, Machine, Waits
from live_trace import facts_of, live_trace, parent_of
from servers.openssh import OpenSsh, openssh
from servers.vnf_networks import networks
from worlds.mgmt_lab import MgmtLab


@dataclass
class KnownKeys:
    """Host keys in memory."""

    keys: dict[str, str] = field(default_factory=dict)

    async def pinned(self, vnf_instance_id: str, vnfc_id: str) -> str | None:
        return self.keys.get(vnfc_id)

    async def pin(self, vnf_instance_id: str, vnfc_id: str, key: str) -> str:
        return self.keys.setdefault(vnfc_id, key)

    async def forget(self, vnf_instance_id: str, *, vnfc_ids: object = None) -> None:
        self.keys.clear()


class Server(Protocol):
    """Something with an sshd, and what tests do to it."""

    host: str
    port: int
    login: Login
    wrong_login: Login

    async def restart_with_new_host_key(self) -> None: ...

    async def cut(self) -> None: ...

    async def stop(self) -> None: ...

    def home(self) -> Path: ...


class MachinesSuite:
    """The behaviour of every machine behind the port."""

    @pytest.fixture
    async def server(self) -> Server:
        raise NotImplementedError

    @pytest.fixture
    def known(self) -> KnownKeys:
        return KnownKeys()

    @pytest.fixture
    def folder(self) -> str:
        return f".kubevnfm-test-{new_id()[:8]}/files"

    @pytest.fixture
    async def machine(self, server: Server, known: KnownKeys, folder: str) -> AsyncIterator[Machine]:
        machine = await self.reach(server, known)
        yield machine
        await machine.close()
        shutil.rmtree(server.home() / folder.partition("/")[0], ignore_errors=True)

    async def reach(
        self,
        server: Server,
        known: KnownKeys,
        *,
        login: Login | None = None,
        within_s: float = 10.0,
        waits: Waits | None = None,
    ) -> Machine:
        address = Address("node1", "instance", "vnfc-1", server.host)
        return await SshMachines(known, networks(), port=server.port).reach(
            address, login or server.login, within_s=within_s, waits=waits
        )

    async def output_of(self, machine: Machine, *argv: str) -> tuple[int | None, str]:
        parts: list[bytes] = []
        code = await machine.run(argv, task="t", timeout_s=20, output=parts.append)
        return code, b"".join(parts).decode()

    async def test_a_command_gives_exit_code_and_output(self, machine: Machine) -> None:
        assert await self.output_of(machine, "bash", "-c", "echo out; exit 3") == (3, "out\n")
        assert await self.output_of(machine, "bash", "-c", "echo err >&2") == (0, "err\n")

    async def test_a_command_of_a_step_is_a_live_span_without_its_words(self, machine: Machine) -> None:
        step = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
        with live_trace() as trace, live_spans.under(step):
            assert await self.output_of(machine, "sh", "-c", "echo hidden; exit 3") == (3, "hidden\n")
        (span,) = trace.spans
        assert (span.name, parent_of(span)) == ("ssh t", step.span_id)
        assert facts_of(span) == {"kubevnfm.node": "node1", "kubevnfm.task": "t", "process.exit.code": 3}
        assert "hidden" not in trace.text()

    async def test_a_command_that_a_signal_ends_has_no_exit_code(self, machine: Machine) -> None:
        code, _ = await self.output_of(machine, "bash", "-c", "kill -KILL $$")
        assert code is None or code == 128 + 9  # the shell in between reports it as a number

    async def test_arguments_arrive_as_they_are(self, machine: Machine) -> None:
        nasty = "a'b\"c;$(echo x)`echo y`&&|\\ \n*"
        assert await self.output_of(machine, "printf", "%s", nasty) == (0, nasty)

    async def test_floods_on_both_outputs_do_not_block_each_other(self, machine: Machine) -> None:
        script = "yes out | head -c 4000000; yes err | head -c 4000000 >&2; yes out | head -c 4000000"
        code, text = await self.output_of(machine, "bash", "-c", script)
        assert (code, len(text)) == (0, 12_000_000)

    async def test_commands_run_side_by_side(self, machine: Machine, folder: str) -> None:
        await machine.upload(folder, {})
        script = f'touch {folder}/$1; until [ "$(ls {folder} | wc -l)" = 5 ]; do sleep 0.05; done; echo all'
        done = await asyncio.gather(*(self.output_of(machine, "bash", "-c", script, "x", str(n)) for n in range(5)))
        assert done == [(0, "all\n")] * 5  # each ends only once all have begun

    async def test_a_command_finds_its_input_empty(self, machine: Machine) -> None:
        assert await self.output_of(machine, "bash", "-c", "read -r -t 5 line; echo $?") == (0, "1\n")

    async def test_a_command_out_of_time_is_killed(self, machine: Machine, server: Server, folder: str) -> None:
        await machine.upload(folder, {"x": b"x"})
        script = f"echo $$ > {folder}/pid; exec sleep 600"
        with pytest.raises(CommandTimedOut) as caught:
            await machine.run(["bash", "-c", script], task="install", timeout_s=2.0)
        assert (caught.value.node, caught.value.task) == ("node1", "install")
        await self.assert_gone(server, folder)

    async def test_a_command_that_ignores_the_end_of_its_time_is_killed_too(
        self, machine: Machine, server: Server, folder: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kubevnfm_mgmt_executor.adapters.ssh_machine.KILL_GRACE_S", 1)
        await machine.upload(folder, {"x": b"x"})
        script = f"trap '' TERM; echo $$ > {folder}/pid; while :; do sleep 0.1; done"
        with pytest.raises(CommandTimedOut):
            await machine.run(["bash", "-c", script], task="install", timeout_s=1.0)
        await self.assert_gone(server, folder)

    @pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
    async def test_a_command_whose_caller_is_cancelled_is_killed(
        self, machine: Machine, server: Server, folder: str, trap: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kubevnfm_mgmt_executor.adapters.ssh_machine.KILL_GRACE_S", 1)
        await machine.upload(folder, {"x": b"x"})
        script = f"{trap}echo $$ > {folder}/pid; echo ready; exec sleep 600"
        ready = asyncio.Event()
        work = asyncio.create_task(
            machine.run(["bash", "-c", script], task="t", timeout_s=600, output=lambda _: ready.set())
        )
        async with asyncio.timeout(120):
            await ready.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await self.assert_gone(server, folder)

    async def assert_gone(self, server: Server, folder: str) -> None:
        process = Path("/proc") / (server.home() / folder / "pid").read_text().strip()
        async with asyncio.timeout(120):
            while lives(process):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def test_files_arrive_private_and_whole(self, machine: Machine, server: Server, folder: str) -> None:
        content = bytes(range(256)) * 4096
        await machine.upload(folder, {"big": content, "empty": b""})
        place = server.home() / folder
        assert (place / "big").read_bytes() == content
        assert (place / "empty").read_bytes() == b""
        for path, mode in ((place.parent, 0o700), (place, 0o700), (place / "big", 0o600), (place / "empty", 0o600)):
            assert stat.S_IMODE(path.stat().st_mode) == mode, path
        assert await machine.read(f"{folder}/big", limit=len(content)) == content
        assert await machine.read(f"{folder}/big", limit=10) == content[:10]
        assert await machine.read(f"{folder}/absent", limit=10) == b""

    async def test_a_file_that_is_there_is_not_sent_again_and_a_changed_one_is(
        self, machine: Machine, server: Server, folder: str
    ) -> None:
        same = bytes(range(256)) * 160
        await machine.upload(folder, {"same": same, "other": b"old and longer", "longer": same + b"x"})
        file = server.home() / folder / "same"
        written = file.stat().st_mtime_ns
        await machine.upload(folder, {"same": same, "other": b"new", "longer": same})
        assert file.stat().st_mtime_ns == written
        assert await machine.read(f"{folder}/other", limit=100) == b"new"
        assert await machine.read(f"{folder}/longer", limit=len(same) + 1) == same

    async def test_a_folder_is_removed_with_all_in_it_and_twice_does_no_harm(
        self, machine: Machine, server: Server, folder: str
    ) -> None:
        await machine.upload(folder, {"a": b"a"})
        await machine.remove(folder)
        await machine.remove(folder)
        assert not (server.home() / folder).exists()

    async def test_a_folder_that_cannot_be_written_is_reported_as_such(self, machine: Machine, folder: str) -> None:
        await machine.upload(folder, {"file": b"x"})
        with pytest.raises(TransferRefused):
            await machine.upload(f"{folder}/file", {"below-a-file": b"x"})

    async def test_the_host_key_is_pinned_on_first_contact(self, server: Server, known: KnownKeys) -> None:
        await (await self.reach(server, known)).close()
        assert known.keys["vnfc-1"].startswith("ssh-ed25519 ")
        await (await self.reach(server, known)).close()

    async def test_a_changed_host_key_is_refused(self, server: Server, known: KnownKeys) -> None:
        await (await self.reach(server, known)).close()
        await server.restart_with_new_host_key()
        async with asyncio.timeout(120):
            with pytest.raises(HostKeyChanged):
                await self.reach(server, known, within_s=600)

    async def test_a_refused_login_is_reported_at_once(self, server: Server, known: KnownKeys) -> None:
        async with asyncio.timeout(120):
            with pytest.raises(LoginRefused) as caught:
                await self.reach(server, known, login=server.wrong_login, within_s=600)
        assert caught.value.node == "node1"

    async def test_a_machine_that_does_not_answer_is_reported_after_the_time_limit(
        self, server: Server, known: KnownKeys, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And before, once it is no boot any more: each reason once."""
        await server.stop()
        said: list[str] = []

        async def waits(reason: str) -> None:
            said.append(reason)

        with pytest.raises(NodeUnreachable):
            await self.reach(server, known, within_s=0.5, waits=waits)
        assert said == []
        monkeypatch.setattr("kubevnfm_mgmt_executor.adapters.ssh.BOOTS_S", 0.0)
        with pytest.raises(NodeUnreachable):
            await self.reach(server, known, within_s=2.0, waits=waits)
        assert len(said) == len(set(said)) == 1
        assert said[0].startswith(f"no SSH session with {server.host} port {server.port} yet: ")

    @pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
    async def test_a_session_that_breaks_is_reported_as_lost_and_leaves_no_orphan(
        self, machine: Machine, server: Server, folder: str, trap: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kubevnfm_mgmt_executor.adapters.ssh_machine.KILL_GRACE_S", 1)
        await machine.upload(folder, {"x": b"x"})
        script = f"{trap}echo $$ > {folder}/pid; echo started; exec sleep 600"
        started = asyncio.Event()
        work = asyncio.create_task(
            machine.run(["bash", "-c", script], task="t", timeout_s=600, output=lambda _: started.set())
        )
        async with asyncio.timeout(120):
            await started.wait()
            await server.cut()
            with pytest.raises(ConnectionLost) as caught:
                await work
        assert caught.value.retryable
        with pytest.raises(ConnectionLost):
            await machine.run(["true"], task="t", timeout_s=5)
        with pytest.raises(ConnectionLost):
            await machine.read("x", limit=1)
        await self.assert_gone(server, folder)


@dataclass
class OpenSshServer:
    """The suite's view of a real sshd."""

    sshd: OpenSsh

    def __post_init__(self) -> None:
        self.host, self.port = "127.0.0.1", self.sshd.port
        self.login = Login(self.sshd.username, private_key=self.sshd.private_key)
        other = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
        self.wrong_login = Login(self.sshd.username, private_key=other)

    async def restart_with_new_host_key(self) -> None:
        await self.sshd.stop()
        self.sshd.new_host_key()
        await self.sshd.start()

    async def cut(self) -> None:
        self.sshd.cut()

    async def stop(self) -> None:
        await self.sshd.stop()

    def home(self) -> Path:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)  # where sshd puts us, whatever $HOME says


def lives(process: Path) -> bool:
    """Return whether a process of ``/proc`` runs; it may end while its file is read."""
    try:
        return " Z " not in (process / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.server
class TestOpenSsh(MachinesSuite):
    """Debian's openssh-server."""

    @pytest.fixture
    async def server(self, tmp_path: Path) -> AsyncIterator[Server]:
        async with openssh(tmp_path / "sshd") as sshd:
            if sshd.username != "root":
                pytest.skip("these tests log in as the present user, which must be root or able to become root")
            yield OpenSshServer(sshd)

    @pytest.mark.parametrize("kind", ["ecdsa-sha2-nistp256", "ssh-rsa"])
    async def test_keys_of_every_kind_that_a_request_may_bring_log_in(
        self, server: OpenSshServer, known: KnownKeys, kind: str
    ) -> None:
        key = asyncssh.generate_private_key(kind)
        (server.sshd.folder / "authorized_keys").write_bytes(key.export_public_key())
        login = Login(server.login.username, private_key=key.export_private_key("pkcs8-pem").decode())
        await (await self.reach(server, known, login=login)).close()
        with pytest.raises(LoginRefused, match="the machine refuses the login"):
            await self.reach(server, known)  # the former key

    @pytest.mark.parametrize("cipher", ["chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr"])
    async def test_a_server_that_offers_one_cipher_only_is_reached(
        self, server: OpenSshServer, known: KnownKeys, cipher: str
    ) -> None:
        """The service prefers AES-GCM, but takes what a hardened server has."""
        await server.sshd.stop()
        with (server.sshd.folder / "sshd_config").open("a") as configuration:
            configuration.write(f"\nCiphers {cipher}\n")
        await server.sshd.start()
        machine = await self.reach(server, known)
        assert await self.output_of(machine, "echo", "here") == (0, "here\n")
        await machine.close()


class Bastions:
    """Machines behind a bastion, both of OpenSSH."""

    def __init__(self, machine: OpenSsh, bastion: OpenSsh) -> None:
        self.machine, self.bastion = machine, bastion
        self.known = KnownKeys()

    async def reach(
        self, *, within_s: float = 10.0, host: str = "localhost", bastion_login: Login | None = None
    ) -> Machine:
        bastion = self.bastion
        login = bastion_login or Login(bastion.username, private_key=bastion.private_key)
        # The name is resolved on the bastion; port 1 is the one that the address replaces.
        way = Bastion("127.0.0.1", bastion.port, login)
        address = Address("node1", "instance", "vnfc-1", host, self.machine.port, way)
        key = Login(self.machine.username, private_key=self.machine.private_key)
        return await SshMachines(self.known, networks(), port=1).reach(address, key, within_s=within_s)


@pytest.mark.server
class TestBastion:
    """A machine that is reached through another host."""

    @pytest.fixture
    async def machine(self, tmp_path: Path) -> AsyncIterator[OpenSsh]:
        async with openssh(tmp_path / "machine") as sshd:
            if sshd.username != "root":
                pytest.skip("these tests log in as the present user, which must be root or able to become root")
            yield sshd

    @pytest.fixture
    async def both(self, machine: OpenSsh, tmp_path: Path) -> AsyncIterator[Bastions]:
        async with openssh(tmp_path / "bastion") as bastion:
            yield Bastions(machine, bastion)

    async def test_a_machine_is_reached_through_it_and_both_host_keys_are_pinned(self, both: Bastions) -> None:
        machine = await both.reach()
        seen: list[bytes] = []
        assert (
            await machine.run(["bash", "-c", "echo $SSH_CONNECTION"], task="t", timeout_s=20, output=seen.append) == 0
        )
        assert b"".join(seen).split()[3] == str(both.machine.port).encode()
        await machine.close()
        keys = {
            "vnfc-1": asyncssh.read_private_key(both.machine.folder / "host_key"),
            f"bastion 127.0.0.1 {both.bastion.port}": asyncssh.read_private_key(both.bastion.folder / "host_key"),
        }
        shown = {name: key.export_public_key().decode().strip() for name, key in keys.items()}
        assert {name: line.split()[:2] for name, line in shown.items()} == {
            name: line.split() for name, line in both.known.keys.items()
        }
        await (await both.reach()).close()

    async def test_another_host_key_of_the_bastion_is_refused(self, both: Bastions) -> None:
        await (await both.reach()).close()
        await both.bastion.stop()
        both.bastion.new_host_key()
        await both.bastion.start()
        with pytest.raises(HostKeyChanged, match=r"bastion 127\.0\.0\.1 shows another host key"):
            await both.reach(within_s=600)

    async def test_a_login_that_the_bastion_refuses_names_the_bastion(self, both: Bastions) -> None:
        wrong = Login("root", private_key=asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode())
        with pytest.raises(LoginRefused, match=r"user root: bastion 127\.0\.0\.1 refuses the login"):
            await both.reach(bastion_login=wrong, within_s=600)

    async def test_a_bastion_that_does_not_forward_is_reported_at_once(self, machine: OpenSsh, tmp_path: Path) -> None:
        async with openssh(tmp_path / "closed", forwards=False) as closed:
            with pytest.raises(ForwardingRefused, match="does not forward connections to localhost"):
                await Bastions(machine, closed).reach(within_s=600)

    async def test_what_does_not_answer_is_named_machine_or_bastion(self, both: Bastions) -> None:
        await both.machine.stop()
        with pytest.raises(NodeUnreachable, match=f"no SSH session with localhost port {both.machine.port} within"):
            await both.reach(within_s=0.5)
        await both.bastion.stop()
        with pytest.raises(NodeUnreachable, match=rf"no session with bastion 127\.0\.0\.1 port {both.bastion.port}: "):
            await both.reach(within_s=0.5)

    async def test_a_bastion_that_breaks_ends_the_session(self, both: Bastions) -> None:
        machine = await both.reach()
        both.bastion.cut()
        with pytest.raises(ConnectionLost):
            await machine.run(["sleep", "60"], task="t", timeout_s=20)
        await machine.close()


@dataclass
class LabServer:
    """The suite's view of a machine of the lab."""

    lab: MgmtLab
    machine_id: str
    host: str

    def __post_init__(self) -> None:
        self.port = self.lab.machines.ssh_port
        self.login, self.wrong_login = Login("ubuntu", "ubuntu"), Login("ubuntu", "wrong")

    async def restart_with_new_host_key(self) -> None:
        machine = next(m for m in self.lab.machines.all() if m.spec.machine_id == self.machine_id)
        await self.lab.machines.stop(self.machine_id)
        machine.host_key = asyncssh.generate_private_key("ssh-ed25519")
        await self.lab.machines.start(self.machine_id)

    async def cut(self) -> None:
        await self.lab.machines.stop(self.machine_id)

    async def stop(self) -> None:
        await self.lab.machines.stop(self.machine_id)

    def home(self) -> Path:
        machine = next(m for m in self.lab.machines.all() if m.spec.machine_id == self.machine_id)
        return machine.root / "home/ubuntu"


class TestLab(MachinesSuite):
    """The lab's machines, with the user of cloud images."""

    @pytest.fixture
    async def server(self, lab: MgmtLab) -> Server:
        node = await lab.boot("worker", 20)
        return LabServer(lab, node.server_id, node.ssh_address)

    async def test_a_user_that_may_not_become_root_is_reported_as_such(self, lab: MgmtLab, known: KnownKeys) -> None:
        node = await lab.boot("worker", 21)
        server = LabServer(lab, node.server_id, node.ssh_address)
        machine = await self.reach(server, known)
        await machine.close()
        for rules in (lab.machine(node).root / "etc/sudoers.d").glob("*"):
            rules.unlink()
        with pytest.raises(SudoRefused, match="is not in the sudoers file"):
            await self.reach(server, known)

    async def test_a_machine_without_sudo_is_reported_as_such(self, lab: MgmtLab, known: KnownKeys) -> None:
        node = await lab.boot("worker", 22)
        server = LabServer(lab, node.server_id, node.ssh_address)
        machine = await self.reach(server, known)
        await machine.close()
        # All machines share the lab's sudo; this one answers as a shell that finds none.
        shell = lab.machine(node).root / "usr/local/sbin/sudo"
        shell.parent.mkdir(parents=True, exist_ok=True)
        shell.write_text("#!/bin/sh\necho 'bash: line 1: sudo: command not found' >&2\nexit 127\n")
        shell.chmod(0o755)
        with pytest.raises(
            SudoMissing, match="sudo is not installed; it printed: bash: line 1: sudo: command not found"
        ):
            await self.reach(server, known)


@pytest.mark.server
class TestHardenedOpenSsh:
    """An sshd that allows less than usual, or a machine that prints something of its own."""

    FOLDER = f".kubevnfm-test-{new_id()[:8]}"  # in the home of the account, which other runs of the tests have too
    PASSWORD = "of-the-login"

    @asynccontextmanager
    async def machine(self, tmp_path: Path, settings: str, *, sftp: bool = True) -> AsyncIterator[Machine]:
        async with openssh(tmp_path / "sshd", settings=settings, sftp=sftp) as sshd:
            server = OpenSshServer(sshd)
            if sshd.username != "root":
                pytest.skip("sudo is not set up for the account that runs the tests")
            address = Address("node1", "instance", "vnfc-1", server.host)
            login = replace(server.login, password=self.PASSWORD)
            machine = await SshMachines(KnownKeys(), networks(), port=server.port).reach(address, login, within_s=10.0)
            try:
                yield machine
            finally:
                await machine.close()
                shutil.rmtree(server.home() / self.FOLDER, ignore_errors=True)

    async def test_more_commands_than_sshd_allows_sessions_take_turns(self, tmp_path: Path) -> None:
        """MaxSessions 2, of which files need one."""
        async with self.machine(tmp_path, "MaxSessions 2\n") as machine:
            await machine.upload(self.FOLDER, {"a": b"x"})
            runs = [machine.run(["sleep", "0.1"], task="t", timeout_s=60) for _ in range(4)]
            assert await asyncio.gather(*runs, machine.read(f"{self.FOLDER}/a", limit=9)) == [0, 0, 0, 0, b"x"]
            # Those that are cancelled while they begin neither run on nor count any more.
            for pause_s in (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05):
                cancelled = asyncio.create_task(machine.run(["sleep", "86401"], task="t", timeout_s=86400))
                await asyncio.sleep(pause_s)
                cancelled.cancel()
                await asyncio.gather(cancelled, return_exceptions=True)
            async with asyncio.timeout(60):
                while await machine.run(["pgrep", "-f", "^sleep 8640[1]"], task="t", timeout_s=20) == 0:
                    pass

    async def test_an_sshd_with_one_session_is_named(self, tmp_path: Path) -> None:
        async with self.machine(tmp_path, "MaxSessions 1\n") as machine:
            await machine.upload(self.FOLDER, {"a": b"x"})
            with pytest.raises(SessionRefused, match="sshd allows one session at a time") as refused:
                await machine.run(["true"], task="t", timeout_s=60)
        assert not refused.value.retryable

    async def test_files_go_by_commands_where_sshd_offers_no_sftp(self, tmp_path: Path) -> None:
        folder = f"{self.FOLDER}/it's"
        async with self.machine(tmp_path, "MaxSessions 1\n", sftp=False) as machine:
            large = bytes(range(256)) * 4096
            await machine.upload(folder, {"a b": b"one\n", "empty": b"", "large": large})
            odd = "-n\\ of\n$(x) ü"
            await machine.upload(folder, {"a b": b"two\n", "large": large, odd: b"odd"})
            names = ("a b", "empty", "large", odd, "missing")
            reads = [machine.read(f"{folder}/{name}", limit=2**21) for name in names]
            assert await asyncio.gather(*reads) == [b"two\n", b"", large, b"odd", b""]
            assert await machine.read(f"{folder}/large", limit=3) == large[:3]
            shown: list[bytes] = []
            command = ["stat", "-c", "%a", self.FOLDER, folder, f"{folder}/a b"]
            assert await machine.run(command, task="t", timeout_s=20, output=shown.append) == 0
            assert b"".join(shown).split() == [b"700", b"700", b"600"]
            # The machine names the folder, as it may show a secret that it has printed.
            with pytest.raises(TransferRefused, match="Not a directory") as refused:
                await machine.upload(f"{folder}/large/{self.PASSWORD}", {"a": b""})
            assert self.PASSWORD not in str(refused.value)

    async def test_what_a_machine_prints_in_place_of_sftp_is_in_the_error(self, tmp_path: Path) -> None:
        """As cloud images do for root, and a noisy ~/.bashrc for all."""
        text = 'Please login as the user "ubuntu" rather than the user "root".'
        async with self.machine(tmp_path, f"ForceCommand /bin/echo '{text}'\n") as machine:
            with pytest.raises(TransferRefused, match="does not answer as SFTP does") as refused:
                await machine.upload(self.FOLDER, {"a": b"x"})
        assert text in str(refused.value)
