"""Machines are real SSH servers: logins, files, commands, and how each of them ends."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.machines import MachineSettings, SshMachines
from kubevnfm_lab.ports import Cluster, MachineSpec, Nic


def first_address() -> IPv4Address:
    """Each test process has addresses of its own, so that tests can run side by side."""
    return IPv4Address(f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}.11")


class NoClusters:
    """These tests start none."""

    async def create(self, **_: Any) -> Cluster:
        raise NotImplementedError

    def find(self, address: str, port: int) -> Cluster | None:
        return None

    async def close_at(self, address: str) -> None:
        return None

    def inventory(self) -> Sequence[Mapping[str, Any]]:
        return []


class Lab:
    """Machines with their faults and ledger, and a client."""

    def __init__(self, machines: SshMachines, faults: FaultBook, ledger: CallLedger) -> None:
        self.machines, self.faults, self.ledger = machines, faults, ledger
        self._last = first_address()

    async def boot(self, name: str = "node", **more: Any) -> MachineSpec:
        spec = MachineSpec(str(uuid.uuid4()), name, [Nic(self._last, "fa:16:3e:00:00:01", "net")], **more)
        self._last += 1
        await self.machines.boot(spec)
        return spec

    @asynccontextmanager
    async def login(
        self, spec: MachineSpec, *, username: str = "ubuntu", password: str | None = "ubuntu", **more: Any
    ) -> AsyncIterator[asyncssh.SSHClientConnection]:
        async with asyncssh.connect(
            str(spec.nics[0].address),
            self.machines.ssh_port,
            username=username,
            password=password,
            known_hosts=None,
            config=None,
            agent_path=None,
            **({"client_keys": None} | more),
        ) as connection:
            yield connection

    async def run(self, spec: MachineSpec, command: str, **more: Any) -> asyncssh.SSHCompletedProcess:
        async with self.login(spec) as connection:
            return await connection.run(command, **more)


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> MachineSettings:
    """Those of the lab; or with the one reachable network that a test names."""
    network = getattr(request, "param", None)
    if network is None:
        return MachineSettings()
    return MachineSettings(reachable_networks=(network.format(first=first_address()),))


@pytest.fixture
async def lab(tmp_path: Path, settings: MachineSettings) -> AsyncIterator[Lab]:
    faults, ledger = FaultBook(), CallLedger()
    async with SshMachines.running(
        tmp_path / "lab", clusters=NoClusters(), faults=faults, ledger=ledger, settings=settings
    ) as machines:
        yield Lab(machines, faults, ledger)


async def test_the_images_user_logs_in_with_its_password(lab: Lab) -> None:
    node = await lab.boot()
    ran = await lab.run(node, 'echo "$USER in $PWD"; id -u')
    assert ran.exit_status == 0
    assert str(ran.stdout).startswith("ubuntu in ")
    assert str(ran.stdout).endswith("/home/ubuntu\n1000\n")


@pytest.mark.parametrize("settings", ["{first}/32"], indirect=True)
async def test_a_machine_listens_only_in_the_networks_that_the_settings_name(lab: Lab) -> None:
    reached, silent = await lab.boot("reached"), await lab.boot("silent")
    assert str((await lab.run(reached, "hostname")).stdout) == "reached\n"
    with pytest.raises(ConnectionRefusedError):
        await lab.run(silent, "hostname")
    assert [one["powered"] for one in lab.machines.inventory()] == [True, True]


@pytest.mark.parametrize("settings", ["198.51.100.0/24"], indirect=True)
async def test_a_machine_does_not_boot_if_this_host_lacks_an_address_it_must_listen_on(lab: Lab) -> None:
    nic = Nic(IPv4Address("198.51.100.7"), "fa:16:3e:00:00:01", "net")
    with pytest.raises(OSError, match="assign requested address"):
        await lab.machines.boot(MachineSpec(str(uuid.uuid4()), "node", [nic]))
    assert lab.machines.inventory() == []


async def test_a_wrong_password_and_an_unknown_user_are_refused(lab: Lab) -> None:
    node = await lab.boot()
    for login in ({"password": "wrong"}, {"username": "unknown"}):
        with pytest.raises(asyncssh.PermissionDenied):
            async with lab.login(node, **login):
                pass


async def test_the_servers_key_pair_and_user_data_give_access(lab: Lab) -> None:
    key, other = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user_data = (
        "#cloud-config\npassword: from-user-data\nusers:\n- default\n- name: ops\n  sudo: ALL=(ALL) NOPASSWD:ALL\n"
    )
    user_data += f"  ssh_authorized_keys: ['{other.export_public_key().decode().strip()}']\n"
    node = await lab.boot(public_key=key.export_public_key().decode(), user_data=user_data)
    async with lab.login(node, password=None, client_keys=[key]) as connection:
        assert (await connection.run("whoami")).stdout == "ubuntu\n"
    async with lab.login(node, username="ops", password=None, client_keys=[other]) as connection:
        assert (await connection.run("sudo -n whoami")).stdout == "root\n"
    async with lab.login(node, password="from-user-data"):
        pass
    with pytest.raises(asyncssh.PermissionDenied):
        async with lab.login(node, password="ubuntu"):
            pass


async def test_an_uploaded_script_runs_where_it_was_put(lab: Lab) -> None:
    node = await lab.boot()
    async with lab.login(node) as connection:
        async with connection.start_sftp_client() as sftp:
            assert await sftp.realpath(".") == "/home/ubuntu"
            await sftp.makedirs("vnfm/op-1")
            async with sftp.open("vnfm/op-1/install.sh", "wb") as file:
                await file.write(
                    b'cat "$KUBEVNFM_SYSROOT/etc/os-release" | head -1; read -r line; echo "got $line"; exit 7\n'
                )
            await sftp.chmod("vnfm/op-1/install.sh", 0o700)
            assert await sftp.exists("/etc/os-release")
        ran = await connection.run("bash vnfm/op-1/install.sh", input="a line\n")
    assert ran.exit_status == 7
    assert ran.stdout == 'PRETTY_NAME="Ubuntu 22.04.5 LTS"\ngot a line\n'


async def test_nothing_of_the_labs_own_environment_reaches_a_shell(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEVNFM_SECRET_KEYS", "do-not-leak")
    node = await lab.boot()
    names = {line.partition("=")[0] for line in str((await lab.run(node, "env")).stdout).splitlines()}
    assert names <= {
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TERM",
        "PATH",
        "KUBEVNFM_SYSROOT",
        "PWD",
        "SHLVL",
        "_",
    }


async def test_programs_of_the_host_that_could_change_it_are_not_there(lab: Lab) -> None:
    node = await lab.boot()
    for program in ("docker", "kubeadm", "kubectl", "reboot", "useradd", "pkill"):
        ran = await lab.run(node, program)
        assert ran.exit_status == 127, program
        assert "command not found" in str(ran.stderr)


async def test_closing_the_channel_kills_the_whole_process_group(lab: Lab) -> None:
    node = await lab.boot()
    async with lab.login(node) as connection:
        process = await connection.create_process("sleep 1000 & echo $! $$; wait")
        pids = [int(word) for word in (await process.stdout.readline()).split()]
    await _until_gone(pids)


async def test_destroying_a_machine_ends_what_runs_on_it_and_its_files(lab: Lab) -> None:
    node = await lab.boot()
    async with lab.login(node) as connection:
        left = await connection.run("nohup sleep 1000 >/dev/null 2>&1 & echo $!")
        process = await connection.create_process("echo $$; sleep 1000")
        pids = [int(str(left.stdout)), int(await process.stdout.readline())]
        root = Path(lab.machines.inventory()[0]["root"])
        assert root.exists()
        await lab.machines.destroy(node.machine_id)
        await _until_gone(pids)
    with pytest.raises(OSError):
        async with lab.login(node):
            pass
    assert lab.machines.inventory() == []


async def _until_gone(pids: list[int]) -> None:
    async with asyncio.timeout(300):
        while any(_runs(pid) for pid in pids):  # noqa: ASYNC110 - they are not our children, so there is no event
            await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_signal_from_the_client_reaches_the_command(lab: Lab) -> None:
    node = await lab.boot()
    async with lab.login(node) as connection:
        process = await connection.create_process(
            "trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.02; done"
        )
        await process.stdout.readline()
        process.send_signal("USR1")
        done = await process.wait()
    assert (done.exit_status, done.stdout) == (3, "caught\n")


async def test_a_power_cycle_keeps_files_and_host_key(lab: Lab) -> None:
    node = await lab.boot()
    async with lab.login(node) as connection:
        await connection.run("echo kept > file")
        key = connection.get_server_host_key()
    await lab.machines.stop(node.machine_id)
    with pytest.raises(OSError):
        async with lab.login(node):
            pass
    await lab.machines.start(node.machine_id)
    async with lab.login(node) as connection:
        assert (await connection.run("cat file")).stdout == "kept\n"
        again = connection.get_server_host_key()
    assert key is not None
    assert again is not None
    assert again.public_data == key.public_data
    assert key.export_public_key().decode().split()[1] in lab.machines.console_log(node.machine_id)


async def test_a_rebuilt_machine_has_another_host_key(lab: Lab) -> None:
    node = await lab.boot()
    before = lab.machines.console_log(node.machine_id)
    await lab.machines.destroy(node.machine_id)
    await lab.machines.boot(node)
    assert lab.machines.console_log(node.machine_id) != before


async def test_a_shell_without_command_reads_its_input(lab: Lab) -> None:
    node = await lab.boot()
    async with lab.login(node) as connection:
        ran = await connection.run(None, input="echo one\necho two; exit 4\n")
    assert (ran.exit_status, ran.stdout) == (4, "one\ntwo\n")


async def test_large_output_and_binary_input_arrive_whole(lab: Lab) -> None:
    node = await lab.boot()
    content = os.urandom(300_000)
    async with lab.login(node) as connection:
        ran = await connection.run("cat; echo oops >&2", input=content, encoding=None)
    assert ran.stdout == content
    assert ran.stderr == b"oops\n"


async def test_many_sessions_run_at_once(lab: Lab) -> None:
    node = await lab.boot()
    async with lab.login(node) as connection:
        ran = await asyncio.gather(*(connection.run(f"echo {number}") for number in range(20)))
    assert [each.stdout for each in ran] == [f"{number}\n" for number in range(20)]


async def test_faults_reach_connect_exec_and_sftp(lab: Lab) -> None:
    node = await lab.boot("node-1")
    lab.faults.add(part="ssh", verb="connect", effect="drop", times=1)
    with pytest.raises((OSError, asyncssh.ConnectionLost)):
        async with lab.login(node):
            pass
    lab.faults.add(part="ssh", verb="connect", node="node-1", effect="fail", times=1)
    with pytest.raises(asyncssh.PermissionDenied):
        async with lab.login(node):
            pass
    lab.faults.add(part="ssh", verb="exec", effect="fail", status=42, message="no pty", times=1)
    lab.faults.add(part="ssh", verb="sftp", effect="fail", message="disk full", times=1)
    async with lab.login(node) as connection:
        ran = await connection.run("true")
        assert (ran.exit_status, ran.stderr) == (42, "no pty\n")
        async with connection.start_sftp_client() as sftp:
            with pytest.raises(asyncssh.SFTPFailure, match="disk full"):
                await sftp.open("file", "wb")
            async with sftp.open("file", "wb"):
                pass
    lab.faults.add(part="ssh", verb="exec", effect="drop", times=1)
    async with lab.login(node) as connection:
        assert (await connection.run("true")).exit_status is None  # the connection ended before the command did


async def test_a_connection_that_hangs_ends_with_its_machine(lab: Lab) -> None:
    node = await lab.boot()
    lab.faults.add(part="ssh", verb="connect", effect="hang")
    attempt = asyncio.create_task(_connect(lab, node))
    async with asyncio.timeout(300):
        while not lab.machines.inventory()[0]["calls"]:  # noqa: ASYNC110 - the lab has no event for a call that hangs
            await asyncio.sleep(0.005)
    await lab.machines.destroy(node.machine_id)
    with pytest.raises((OSError, asyncssh.ConnectionLost)):
        await attempt


async def _connect(lab: Lab, node: MachineSpec) -> None:
    async with lab.login(node):
        pass


async def test_the_ledger_counts_by_machine(lab: Lab) -> None:
    node = await lab.boot("node-1")
    await lab.run(node, "sudo swapoff -a; sudo swapoff -a; sudo modprobe overlay")
    counts = {(call["part"], call["verb"], call["node"]): call["count"] for call in lab.ledger.calls()}
    assert counts["ssh", "connect", "node-1"] == 1
    assert counts["program", "swapoff", "node-1"] == 2
    assert counts["program", "modprobe overlay", "node-1"] == 1
    assert lab.machines.inventory()[0]["calls"]["swapoff"] == 2


async def test_two_machines_cannot_share_an_address(lab: Lab) -> None:
    node = await lab.boot()
    with pytest.raises(OSError):
        await lab.machines.boot(MachineSpec("other", "other", node.nics))
    assert [machine["name"] for machine in lab.machines.inventory()] == ["node"]
