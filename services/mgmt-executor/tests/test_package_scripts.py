"""Scripts of packages: run in the sandbox, their answer judged, their output kept and masked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from contracts.sandbox_kernel import has_printed, needs_confinement, until
from kubevnfm_events.mgmt import RunScript, ScriptDone
from kubevnfm_mgmt_executor.domain.scripts import ScriptFailed, ScriptTimedOut
from kubevnfm_mgmt_executor.wiring import INDEXES
from kubevnfm_sandbox.answers import AnswerRefused
from kubevnfm_sandbox.runs import Limits, SandboxUnavailable, ScriptRefused
from kubevnfm_secrets import KeyRing, Secret, hide
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.package_scripts import PACKAGE, PackageScripts

RING = KeyRing([b"0" * 32])
PASSWORD = "hunter2-hunter2"
INSTANCE = {
    "id": "inst-1",
    "vnfInstanceName": "n",
    "metadata": {"old": "1"},
    "vimConnectionInfo": {"vim1": {"vimId": "v", "vimType": "t", "accessInfo": {"password": PASSWORD}}},
    "instantiatedVnfInfo": {
        "metadata": {"nfv": {"VDU": {}}},
        "vnfcResourceInfo": [
            {"id": "vnfc-1", "vduId": "VDU1"},
            {"id": "vnfc-2", "vduId": "VDU1", "metadata": {"a": 1}},
        ],
    },
}
PREAMBLE = """
import os, pickle, sys
given = pickle.load(sys.stdin.buffer)
inst, data = given["vnf_instance"], given["user_script_err_handling_data"]
def answer(value):
    sys.stdout.buffer.write(pickle.dumps(value))
    sys.stdout.flush()
"""


HANGS = """
import time
print("waiting for", data["password"], file=sys.stderr)
print("node 1 is ready,", data["password"])
time.sleep(60)
"""


class World(PackageScripts):
    """A package of one script."""

    async def run(self, code: str, *, file: str = "script.py", **changes: Any) -> ScriptDone:
        (self.package / "script.py").write_text(PREAMBLE + dedent(code))
        given = {
            "operation": "scale_end",
            "request": {},
            "vnf_instance": INSTANCE,
            "user_script_err_handling_data": {"password": PASSWORD},
        }
        command = RunScript(
            vnf_instance_id="inst-1",
            package=PACKAGE,
            file=file,
            task="scale_end",
            given=hide(given),
            folders={"tmp_csar_dir": PACKAGE},
            **changes,
        )
        return await self.ask(command)

    @property
    def states(self) -> list[str]:
        return [one.state for one in self.news]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "store.db") as store:
        for collection, indexes in INDEXES.items():
            await store.ensure_indexes(collection, indexes)
        yield store


@pytest.fixture
def world(tmp_path: Path, store: SqliteStore) -> World:
    needs_confinement()
    return World(tmp_path, store, RING, Limits(timeout_s=30))


async def test_what_a_script_changes_is_reported_and_nothing_else(world: World) -> None:
    code = """
    assert os.path.exists(os.path.join(given["tmp_csar_dir"], "script.py"))
    inst["metadata"]["configured"] = {"password": "of the application"}
    del inst["metadata"]["old"]
    inst["instantiatedVnfInfo"]["metadata"]["notifier"] = "n"
    inst["instantiatedVnfInfo"]["vnfcResourceInfo"][0]["metadata"] = {"alarm": "a-1"}
    data["alarm"] = "a-1"
    data["copied"] = inst["vimConnectionInfo"]["vim1"]["accessInfo"]["password"]
    answer({"vnf_instance": inst, "user_script_err_handling_data": data, "more": 1})
    os._exit(0)
    """
    found = (await world.run(code)).answer
    edits = {"/".join(edit.path): edit.change for edit in found.edits}
    assert set(edits) == {
        "metadata/configured", "metadata/old", "instantiatedVnfInfo/metadata/notifier",
        "instantiatedVnfInfo/vnfcResourceInfo/vnfc-1/metadata",
    }  # fmt: skip
    assert edits["metadata/old"] == {}
    assert edits["instantiatedVnfInfo/vnfcResourceInfo/vnfc-1/metadata"] == {"value": {"alarm": "a-1"}}
    hidden = edits["metadata/configured"]["value"]
    assert isinstance(hidden, dict)
    assert isinstance(hidden["password"], Secret)
    assert found.data["alarm"] == "a-1"
    for name in ("password", "copied"):
        secret = found.data[name]
        assert isinstance(secret, Secret), f"{name} was secret when it was given"
        assert secret.reveal(RING) == PASSWORD
    assert world.states == ["started", "finished"]


@pytest.mark.parametrize("code", ["os._exit(0)", "answer({})", "answer(None)", "print('a text, as Tacker ignores it')"])
async def test_a_script_need_not_answer(world: World, code: str) -> None:
    answer = (await world.run(code)).answer
    assert (answer.edits, answer.data) == ((), {})


async def test_a_failed_script_is_named_with_its_last_lines_masked_and_its_answer_is_kept(world: World) -> None:
    code = """
    data["tried"] = "yes"
    answer({"user_script_err_handling_data": data})
    print("log in as ubuntu with", data["password"], file=sys.stderr)
    print("the application does not start", file=sys.stderr)
    sys.stderr.flush()
    os._exit(3)
    """
    with pytest.raises(ScriptFailed) as caught:
        await world.run(code)
    said = str(caught.value)
    assert said.startswith("scale_end failed: script.py ended with exit status 3; its last output:\n| ")
    assert said.endswith("log in as ubuntu with ***\n| the application does not start")
    assert caught.value.status == 422
    assert caught.value.remains is not None
    assert caught.value.remains.data["tried"] == "yes"
    assert PASSWORD not in caught.value.remains.model_dump_json()
    assert PASSWORD not in (text := await world.log())
    assert "the application does not start" in text
    assert world.states == ["started", "failed"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("answer([1])", "the answer: a dict expected"),
        ("answer({'vnf_instance': 1})", "vnf_instance: a dict expected"),
        ("answer({'user_script_err_handling_data': 1})", "user_script_err_handling_data: a dict expected"),
        ("inst['vnfInstanceName'] = 'other'\nanswer({'vnf_instance': inst})", "may not change vnfInstanceName"),
        ("inst['metadata'] = 'x'\nanswer({'vnf_instance': inst})", "vnf_instance/metadata: a dict expected"),
        (
            "inst['instantiatedVnfInfo']['vnfcResourceInfo'].append({'id': 'x'})\nanswer({'vnf_instance': inst})",
            "may not change instantiatedVnfInfo/vnfcResourceInfo/x",
        ),
        (
            "inst['vimConnectionInfo']['vim1']['accessInfo'] = 3\nanswer({'vnf_instance': inst})",
            "vimConnectionInfo/vim1: a VimConnectionInfo expected",
        ),
        (
            "sys.stdout.buffer.write(b'\\x80\\x04corrupt')",
            "its answer is not a pickle of plain values; reading it raises:\n| Unpickling",
        ),
        (
            "sys.stdout.buffer.write(pickle.dumps({'a': {1}}))",
            "its answer is not a pickle of plain values; reading it raises:\n| TypeError",
        ),
        (
            "inst['metadata']['a'] = float('nan')\nanswer({'vnf_instance': inst})",
            "the answer is not JSON that can be read: NaN",
        ),
        (
            "inst['metadata']['a'] = 'x' * 7_000_000\nanswer({'vnf_instance': inst})",
            "plain values; reading it raises:\n| it is too long",
        ),
    ],
)
async def test_an_answer_that_cannot_be_used_fails_the_step(world: World, code: str, reason: str) -> None:
    with pytest.raises(AnswerRefused) as caught:
        await world.run(f"print('what it said', file=sys.stderr, flush=True)\n{code}")
    assert reason in str(caught.value)
    assert "what it said" in await world.log()


async def test_a_script_that_fails_with_an_answer_that_cannot_be_stored_has_failed(world: World) -> None:
    """Its exit status counts, whatever it has answered."""
    with pytest.raises(ScriptFailed, match=r"ended with exit status 3; its last output:\n\| the reason"):
        await world.run("answer({'a': float('nan')})\nprint('the reason', file=sys.stderr, flush=True)\nos._exit(3)")


async def test_a_long_text_on_stdout_is_output(world: World) -> None:
    """Cut within a character, too."""
    answer = (await world.run("print('a' + 'ä' * 7_000_000)")).answer
    assert (answer.edits, answer.data) == ((), {})
    assert "aääää" in await world.log()


async def test_the_reason_of_a_failure_is_what_stderr_says_however_much_was_printed(world: World) -> None:
    code = """
    for number in range(100):
        print("progress", number)
    print("the machine is not ready", file=sys.stderr)
    sys.exit(1)
    """
    with pytest.raises(ScriptFailed) as caught:
        await world.run(code)
    assert str(caught.value).endswith("ended with exit status 1; its last output:\n| the machine is not ready"), (
        "and nothing of networks"
    )
    assert "progress 99" in await world.log()


async def test_a_script_that_hangs_is_killed_and_what_it_said_is_not_lost(tmp_path: Path, store: SqliteStore) -> None:
    """SEQ-186."""
    needs_confinement()
    world = World(tmp_path, store, RING, Limits(timeout_s=2))
    with pytest.raises(ScriptTimedOut, match=r"scale_end: script\.py was killed after 2 s") as caught:
        await world.run(HANGS)
    assert caught.value.status == 504
    assert str(caught.value).endswith("; its last output:\n| waiting for ***")
    assert (await world.log()).split("\n") == ["waiting for ***", "", "node 1 is ready, ***"]


async def test_the_output_of_a_cancelled_script_is_in_the_log(world: World) -> None:
    task = asyncio.create_task(world.run(HANGS))
    await until(has_printed)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await world.log()).split("\n") == ["waiting for ***", "", "node 1 is ready, ***"]
    assert world.states == ["started"]


async def test_a_file_that_the_package_lacks_is_named(world: World) -> None:
    with pytest.raises(ScriptRefused, match=r"absent\.py: no such file in the package"):
        await world.run("", file="absent.py")


async def test_without_confinement_no_script_is_run(tmp_path: Path, store: SqliteStore) -> None:
    world = World(tmp_path, store, RING, Limits(without=frozenset({"namespaces"})))
    with pytest.raises(SandboxUnavailable) as caught:
        await world.run("open('/tmp/ran', 'w')")
    assert caught.value.status == 503


REACH = """
import socket
for address in ("127.0.0.1", "169.254.169.254", "0.0.0.0"):
    try:
        socket.create_connection((address, {port}), timeout=10)
        print("reached", address, file=sys.stderr)
    except OSError as error:
        print(type(error).__name__, file=sys.stderr)
"""


async def test_an_address_of_this_host_is_reached_at_the_ssh_port_only(world: World) -> None:
    """A VIM could report an address at which the services listen."""

    async def never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(never, "127.0.0.1", 0) as server:
        port = int(server.sockets[0].getsockname()[1])
        await world.run(REACH.format(port=port), reach=("127.0.0.1", "169.254.169.254", "0.0.0.0"))
    assert "reached" not in await world.log()
    assert (await world.log()).split() == ["PermissionError"] * 3


async def test_a_script_without_addresses_has_no_network(world: World) -> None:
    """That of a CNF, which has no machines: not even this host, and no names."""

    async def never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(never, "127.0.0.1", 0) as server:
        port = int(server.sockets[0].getsockname()[1])
        code = f"""
        import socket
        import paramiko
        for call in (
            lambda: socket.create_connection(("127.0.0.1", {port}), timeout=10),
            lambda: socket.create_connection(("192.0.2.1", 22), timeout=10),
            lambda: socket.getaddrinfo("kubernetes.default", 443),
            lambda: paramiko.SSHClient().connect("192.0.2.1", timeout=10),
        ):
            try:
                call()
                print("reached", file=sys.stderr)
            except OSError:
                print("refused", file=sys.stderr)
        """
        await world.run(code)
    assert (await world.log()).split() == ["refused"] * 4


@pytest.mark.parametrize(
    "code",
    [
        'import socket; socket.create_connection(("192.0.2.1", 22), timeout=10)',
        'import socket; socket.getaddrinfo("kubernetes.default", 443)',
        "import threading; threading.Thread(target=print).start()",
    ],
)
async def test_a_script_that_fails_for_want_of_a_network_says_so(world: World, code: str) -> None:
    with pytest.raises(ScriptFailed, match="a script has no network and no threads if its VNF has no machines"):
        await world.run(code)


async def test_scripts_find_what_those_for_tacker_import(world: World) -> None:
    code = """
    import paramiko, yaml
    from oslo_config import cfg
    from oslo_serialization import jsonutils
    from tacker._i18n import _
    from tacker.common import config, log
    from oslo_log import log as logging
    from tacker.common import cmd_executer
    from tacker.common import exceptions as common_ex
    from tacker.sol_refactored.common import coord_client
    from tacker.sol_refactored.common import exceptions as sol_ex
    from tacker.sol_refactored.common import vnfd_utils
    logging.getLogger(__name__).info("begins")
    paramiko.RSAKey.generate(1024).sign_ssh_data(b"x")
    assert str(common_ex.MgmtDriverOtherError(error_message="m")).endswith(": m")
    config.init(["--config-file", "/etc/tacker/tacker.conf"])
    cfg.CONF.register_opts([cfg.IntOpt("retries", default=3, min=1, help=_("how often"))], group="own")
    cfg.CONF.set_override("retries", 4, group="own")
    assert (cfg.CONF.own.retries, cfg.CONF["own"]["retries"], "auth" in cfg.CONF) == (4, 4, False)
    try:
        cfg.CONF.nova
    except cfg.NoSuchOptError as error:
        assert "no settings of Tacker" in str(error)
    class Own:
        @log.log
        def run(self, *args):
            "It runs."
            return jsonutils.dumps(args)
    assert (Own().run(1, "a"), Own.run.__doc__) == ('[1, "a"]', "It runs.")
    assert sol_ex.VMRunningFailed("t", "d").detail == "d"
    """
    await world.run(code, reach=("192.0.2.1",))
