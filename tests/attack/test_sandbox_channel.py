"""Code of a package that forges answers of the sandbox, and that looks through a socket that was handed to it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pytest
from contracts.sandbox_kernel import needs_confinement
from kubevnfm_csar.hot import BaseHot, Template
from kubevnfm_events.stacks import UserData
from kubevnfm_infra_openstack.adapters.user_data_process import UserDataProcess
from kubevnfm_infra_openstack.domain.errors import UserDataFailed, UserDataTimedOut
from kubevnfm_infra_openstack.domain.ports import UserDataInput
from kubevnfm_sandbox.answers import AnswerRefused
from kubevnfm_sandbox.process import Sandbox
from kubevnfm_sandbox.runs import Limits, Program, Script, ScriptEnded

FORGED: Final = "Set trust_packages to continue"
FORGE: Final = """
import os, posix
def forge(raw, status=0):
    for fd in range(3, 64):
        try:
            os.set_blocking(fd, True)
            left = memoryview(raw)
            while left:
                left = left[os.write(fd, left):]
        except OSError:
            pass
    posix._exit(status)
"""
"""Writes to every descriptor, and ends without the sandbox's own answer."""
ENTRY: Final = """
class Refused(Exception):
    pass

def run(given, package):
    scope = {}
    exec(given["code"], scope)
    return {"result": scope.get("result")}
"""


@pytest.fixture(autouse=True)
def _confined() -> None:
    needs_confinement()


async def script(folder: Path, code: str, **fields: Any) -> ScriptEnded:
    """Return how a script ends that may forge its answer."""
    (folder / "script.py").write_text(dedent(FORGE) + dedent(code))
    return await Sandbox(Limits(timeout_s=20)).run_script(
        Script(file="script.py", package=folder, shim=folder, **fields)
    )


async def user_data(folder: Path, code: str, *, timeout_s: float = 20, method: str = "instantiate") -> object:
    """Return what the class's method returns."""
    (folder / "code.py").write_text(dedent(FORGE) + dedent(code))
    given = UserDataInput(
        api_version="v2",
        request={},
        instance={},
        grant_request={},
        grant={},
        service_template={},
        image_by_vdu={},
        secrets=frozenset({"s3cret-of-the-request"}),
    )
    process = UserDataProcess(Limits(timeout_s=timeout_s))
    hot = BaseHot(flavour_id="simple", top=Template(name="top.yaml", path="top.yaml", text="", body={}), nested={})
    named = UserData(path="code.py", class_name="Code")
    if method == "instantiate":
        return await process.instantiate(named, folder, hot, given)
    return await process.change(named, method, folder, hot, given)


@pytest.mark.parametrize("raw", [json.dumps({"unconfined": FORGED}), f"unconfined:{FORGED}", "out of time"])
async def test_no_answer_speaks_for_what_confines(tmp_path: Path, raw: str) -> None:
    ended = await script(tmp_path, f"forge({raw!r}.encode())")
    assert ended.refused
    assert FORGED not in ended.refused
    assert not ended.timed_out
    with pytest.raises(AnswerRefused) as refused:
        await user_data(tmp_path, f"forge({raw!r}.encode())")
    assert FORGED not in str(refused.value)


@pytest.mark.parametrize(
    "raw", [b"", b'{"status": "0", "stdout": ""}', b'{"value": "?", "status": 0, "stdout": ""}' * 2]
)
async def test_a_forged_answer_of_a_script_is_one_refusal(tmp_path: Path, raw: bytes) -> None:
    """``libs/sandbox/tests/test_answers.py`` has the other forms."""
    ended = await script(tmp_path, f"forge({raw!r})")
    assert ended.refused
    assert ended.value is None


async def test_an_endless_answer_is_read_with_bounded_memory(tmp_path: Path) -> None:
    """20 MiB, of which 8 are kept."""
    ended = await script(tmp_path, "forge(b'x' * (20 << 20))")
    assert ended.refused == f"the answer has more than {8 << 20} bytes"


OF_USER_DATA: Final = {
    "no-result": {"style": "v2"},
    "another-style": {"style": "v3", "result": {}},
    "result-text": {"style": "v2", "result": "x"},
    "result-of-nothing": {"style": "v1", "result": None},
    "no-parameters": {"style": "v2", "result": {}},
    "parameters-list": {"style": "v2", "result": {"parameters": []}},
    "template-object": {"style": "v2", "result": {"parameters": {}, "template": {}}},
    "files-numbers": {"style": "v2", "result": {"parameters": {}, "files": {"a": 1}}},
    "existing-text": {"style": "v2", "result": {"parameters": {}, "existing": "False"}},
    "unknown": {"style": "v2", "result": {"parameters": {}, "stack": "another"}},
    "long-template": {"style": "v2", "result": {"parameters": {}, "template": "x" * (5 << 20)}},
}


_QUICK: Final = ("no-result", "no-parameters", "unknown")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _QUICK else pytest.mark.deep) for name in OF_USER_DATA]
)
async def test_a_forged_answer_of_user_data_is_one_refusal(tmp_path: Path, name: str) -> None:
    raw = json.dumps(OF_USER_DATA[name]).encode()
    (tmp_path / "raw").write_bytes(raw)
    with pytest.raises(AnswerRefused):
        await user_data(tmp_path, "forge(open(__file__.replace('code.py', 'raw'), 'rb').read())")


async def test_the_text_of_a_class_is_marked_masked_and_cut(tmp_path: Path) -> None:
    code = f"""
    class Code:
        @staticmethod
        def instantiate(*args):
            print("s3cret-of-the-request")
            raise ValueError("s3cret-of-the-request\\n{FORGED}\\x1b[31m\\n" + "x" * 5_000_000)
    """
    with pytest.raises(UserDataFailed) as failed:
        await user_data(tmp_path, code)
    text = str(failed.value)
    assert f"\n| {FORGED}\n" in text
    assert all(FORGED not in line or line.startswith("| ") for line in text.splitlines())
    assert "s3cret" not in text
    assert len(text.encode()) <= 4096


@pytest.mark.parametrize("status", [124, 142])
async def test_only_the_guard_says_that_the_time_is_over(tmp_path: Path, status: int) -> None:
    ended = await script(tmp_path, f"posix._exit({status})")
    assert (ended.timed_out, ended.status) == (False, status)


async def test_a_signal_before_the_end_of_time_is_not_the_end_of_time(tmp_path: Path) -> None:
    """Trusted code without a guard is ended by SIGALRM, which it can send itself."""
    (tmp_path / "script.py").write_text("import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\nsignal.pause()")
    limits = Limits(timeout_s=60, trust_packages=True, without=frozenset({"namespaces"}))
    ended = await Sandbox(limits).run_script(Script(file="script.py", package=tmp_path, shim=tmp_path))
    assert not ended.timed_out
    assert ended.status != 0


async def test_an_answer_does_not_end_the_time(tmp_path: Path) -> None:
    """The descriptor stays open after an answer, and the process does not end."""
    code = 'import time\nposix._exit = lambda _: time.sleep(60)\nforge(b\'{"style": "v1", "result": {}}\')'
    with pytest.raises(UserDataTimedOut):
        await user_data(tmp_path, code, timeout_s=1)


# --- what a confined process can learn --------------------------------------------------------------------------------


@pytest.fixture
async def machine() -> AsyncIterator[int]:
    """Yield the port of a machine that accepts connections."""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        yield int(server.sockets[0].getsockname()[1])


async def looks(folder: Path, code: str, port: int) -> Any:
    """Return the result of code that has native calls and a socket to a machine of its VNF."""
    (folder / "attack.py").write_text(ENTRY)
    native = frozenset(
        {"_asyncio", "_ctypes", "_posixsubprocess", "_ssl", "fcntl", "grp", "mmap", "resource", "termios"}
    )
    program = Program(
        entry="attack", shim=folder, package=folder, watched=False, native=native, reach=(("127.0.0.1", port),)
    )
    head = f"import ctypes, fcntl, os, socket, struct\nPORT = {port}\n"
    head += "sock = socket.create_connection(('127.0.0.1', PORT), timeout=10)\n"
    document = json.dumps({"code": head + dedent(code)}).encode()
    ended = await Sandbox(Limits(timeout_s=20)).run(program, document)
    answer = json.loads(ended.answer)
    return answer.get("error", answer.get("result"))


REQUESTS: Final = {
    "SIOCGIFCONF": 0x8912,
    "SIOCGIFFLAGS": 0x8913,
    "SIOCGIFADDR": 0x8915,
    "SIOCGIFHWADDR": 0x8927,
    "SIOCGIFINDEX": 0x8933,
    "SIOCGSTAMP": 0x8906,
    "SIOCETHTOOL": 0x8946,
}


async def test_a_handed_over_socket_does_not_list_the_hosts_interfaces(tmp_path: Path, machine: int) -> None:
    code = f"""
    result = {{}}
    for name, number in {REQUESTS!r}.items():
        try:
            result[name] = fcntl.ioctl(sock, number, bytearray(64)) or "answered"
        except OSError as error:
            result[name] = error.strerror
    """
    assert await looks(tmp_path, code, machine) == dict.fromkeys(REQUESTS, "Function not implemented")


ATTEMPTS: Final = (
    "sock.setsockopt(socket.SOL_SOCKET, 25, b'lo\\0')",  # SO_BINDTODEVICE
    "sock.setsockopt(socket.SOL_SOCKET, 62, 1)",  # SO_BINDTOIFINDEX
    "sock.setsockopt(socket.IPPROTO_IP, 50, struct.pack('!I', 1))",  # IP_UNICAST_IF
    "sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, b'\\xe0\\0\\0\\xfb' + b'\\x7f\\0\\0\\1')",
    "sock.setsockopt(socket.SOL_SOCKET, 26, b'\\0' * 16)",  # SO_ATTACH_FILTER
    "sock.setsockopt(socket.IPPROTO_TCP, 31, b'tls')",  # TCP_ULP
    "sock.getsockopt(socket.SOL_SOCKET, 25, 16)",
    "sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)",
    "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",  # MPTCP
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
)


async def test_no_option_of_a_socket_shows_the_host(tmp_path: Path, machine: int) -> None:
    code = f"""
    result = {{}}
    for attempt in {ATTEMPTS!r}:
        try:
            exec(attempt)
            result[attempt] = "done"
        except OSError as error:
            result[attempt] = error.strerror
    """
    assert await looks(tmp_path, code, machine) == dict.fromkeys(ATTEMPTS, "Function not implemented")


async def test_a_handed_over_socket_is_not_disconnected(tmp_path: Path, machine: int) -> None:
    """AF_UNSPEC would free it for another address of the host's network."""
    code = """
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.connect(sock.fileno(), struct.pack("H14x", 0), 16)
    result = [failed, os.strerror(ctypes.get_errno()), sock.getpeername()[1] == PORT]
    """
    assert await looks(tmp_path, code, machine) == [-1, "Address family not supported by protocol", True]


async def test_what_clients_need_of_a_socket_works(tmp_path: Path, machine: int) -> None:
    code = """
    import array, asyncio
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    count = array.array("i", [0])
    first = sock.recv(1)
    fcntl.ioctl(sock, 0x541B, count)  # FIONREAD
    sock.setblocking(False)
    os.set_inheritable(sock.fileno(), True)
    again = socket.socket(fileno=os.dup(sock.fileno()))
    async def talk():
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        return (await reader.readexactly(5)).decode()
    result = [first.decode(), count[0], again.family == socket.AF_INET, os.isatty(0), os.isatty(2), asyncio.run(talk())]
    """
    assert await looks(tmp_path, code, machine) == ["h", 4, True, False, False, "hello"]


async def test_it_has_no_descriptor_name_or_environment_of_the_host(tmp_path: Path, machine: int) -> None:
    code = """
    import stat
    sock.close()
    def kind(fd):
        try:
            return stat.S_IFMT(os.fstat(fd).st_mode)
        except OSError:
            return None
    result = [os.uname().nodename, dict(os.environ).keys() - {"LD_LIBRARY_PATH", "LC_CTYPE"} == set(),
              os.path.exists("/proc"), os.path.exists("/sys"), os.path.exists("/etc"),
              [fd for fd in range(3, 64) if kind(fd) is not None]]
    """
    found = await looks(tmp_path, code, machine)
    assert found[:5] == ["sandbox", True, False, False, False]
    assert socket.gethostname() != found[0]
    assert len(found[5]) == 1, "the descriptor of the answer alone"
    assert os.environ.get("PATH")
