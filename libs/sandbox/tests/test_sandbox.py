"""The sandbox: attacks by code of a package, each stopped by the kernel and not only by the audit hook."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import sys
import sysconfig
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from contracts.sandbox_kernel import KERNELS, Kernel, needs_confinement
from kubevnfm_sandbox import seccomp
from kubevnfm_sandbox.process import Sandbox
from kubevnfm_sandbox.runs import Limits, Program, SandboxState, SandboxUnavailable

Attack = Callable[..., Coroutine[Any, Any, Any]]
ENTRY = """
class Refused(Exception):
    pass

def run(given, package):
    scope = {"package": package}
    exec(given["code"], scope)
    return {"result": scope.get("result")}
"""
ALL = """
result = {{}}
for attempt in {attempts!r}:
    try:
        exec(attempt)
    except Exception as error:
        result[attempt] = str(error)
"""
"""Tries each of several statements; ``result`` has the error of each that fails. A process takes 70 ms to start, an attempt none."""
RAW = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
"""For tests of the seccomp filter: the attacker has native calls."""


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    folder = tmp_path / "shim"
    folder.mkdir()
    (folder / "attack.py").write_text(ENTRY)
    return folder


@pytest.fixture
def attack(shim: Path) -> Attack:
    """Run code in the sandbox of this machine; return its ``result``, or the error's text."""

    async def run(code: str, *, limits: Limits | None = None, watched: bool = False, native: str = "") -> Any:
        if limits is None:
            needs_confinement()
        program = Program(entry="attack", shim=shim, package=shim, watched=watched, native=frozenset(native.split()))
        ended = await Sandbox(limits or Limits(timeout_s=20)).run(program, json.dumps({"code": code}).encode())
        assert ended.answer, ended
        answer = json.loads(ended.answer)
        return answer.get("error", answer.get("result"))

    return run


@pytest.fixture
def gateway() -> Iterator[int]:
    """Yield the port of a listener on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


# --- what the attack of the issue read --------------------------------------------------------------------------------


@pytest.mark.parametrize("watched", [True, False], ids=["hook", "kernel-alone"])
async def test_the_key_ring_is_not_there(attack: Attack, tmp_path: Path, watched: bool) -> None:
    ring = tmp_path / "keys.json"
    ring.write_text("the-key")
    ring.chmod(0o644)
    assert "No such file" in await attack(f"result = open({str(ring)!r}).read()", watched=watched)


async def test_the_internal_token_is_not_there(attack: Attack) -> None:
    places = (f"/proc/{os.getpid()}/environ", "/proc/1/environ", "/proc/self/environ", "/proc/self/root/etc/passwd")
    attempts = [f"open({where!r}).read()" for where in places]
    errors = await attack(ALL.format(attempts=attempts))
    assert list(errors) == attempts
    assert all("No such file" in error for error in errors.values())
    assert await attack("import os; result = [n for n in os.environ if 'KUBEVNFM' in n]") == []


async def test_the_live_database_is_neither_there_nor_could_it_be_opened(attack: Attack, tmp_path: Path) -> None:
    database = tmp_path / "kubevnfm.db"
    with sqlite3.connect(database) as connection:
        connection.execute("create table keys (key)")
    attempts = [f"import sqlite3\nsqlite3.connect({str(database)!r})", f"open({str(database)!r}, 'rb')"]
    errors = await attack(ALL.format(attempts=attempts))
    assert "must not import _sqlite3" in errors[attempts[0]]
    assert "No such file" in errors[attempts[1]]


async def test_no_socket_of_any_family(attack: Attack) -> None:
    attempts = [
        f"import socket\nsocket.socket(socket.{family}, socket.{kind})"
        for family in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET")
        for kind in ("SOCK_STREAM", "SOCK_DGRAM")
    ]
    errors = await attack(ALL.format(attempts=attempts))
    assert list(errors) == attempts
    assert all("Function not implemented" in error for error in errors.values())


async def test_the_gateway_is_not_reached(attack: Attack, gateway: int) -> None:
    call = f"import socket\nsocket.create_connection(('127.0.0.1', {gateway}))"
    assert "Function not implemented" in await attack(call)
    assert "must not use the network" in await attack(call, watched=True)


# --- the kernel -------------------------------------------------------------------------------------------------------


CALLS = [
    "ptrace(0, 0, 0, 0)",
    "ptrace(16, 1, 0, 0)",
    "process_vm_readv(1, 0, 0, 0, 0, 0)",
    "unshare(0x10000000)",
    "unshare(0x20000)",
    "setns(0, 0)",
    "mount(b'none', b'/tmp', b'tmpfs', 0, 0)",
    "umount2(b'/tmp', 2)",
    "chroot(b'/tmp')",
    "socket(2, 1, 0)",
    "socketpair(1, 1, 0, (ctypes.c_int * 2)())",
    "fork()",
    "kill(1, 9)",
    "prctl(22, 0, 0, 0, 0)",
    "memfd_create(b'x', 0)",
    "personality(0)",
    "shmget(0, 1, 0)",
    "prlimit(2, 7, 0, 0)",
]


async def test_a_system_call_beyond_the_list_does_not_exist(attack: Attack) -> None:
    each = "\nresult = [[call, eval('libc.' + call), os.strerror(ctypes.get_errno())] for call in calls]"
    results = await attack(f"{RAW}calls = {CALLS!r}{each}", native="_ctypes")
    assert results == [[call, -1, "Function not implemented"] for call in CALLS]


async def test_it_is_an_unprivileged_user_without_capabilities(attack: Attack) -> None:
    rights = "header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()\n"
    seen = await attack(
        f"{RAW}{rights}result = [os.getuid(), libc.syscall(125, header, sets), list(sets)]", native="_ctypes"
    )
    assert seen[0] != 0
    # The filter does not admit capget either.
    assert seen[1:] == [-1, [0] * 6]


async def test_a_filter_is_compiled_for_this_machine() -> None:
    assert len(seccomp.compiled()) % 8 == 0
    assert len(seccomp.compiled()) > 800


# --- Python -----------------------------------------------------------------------------------------------------------

EVADING = [
    "ctypes",
    "sqlite3",
    "readline",
    "dbm.ndbm",
    "dbm.gnu",
    "curses",
    "mmap",
    "fcntl",
    "termios",
    "resource",
    "ssl",
    "subprocess",
    "multiprocessing.shared_memory",
    "_posixsubprocess",
    "_testcapi",
    "_xxsubinterpreters",
]


@pytest.mark.parametrize("kernel", KERNELS)
async def test_a_module_that_evades_the_hook_is_not_importable(attack: Attack, kernel: str) -> None:
    attempts = [f"import {module}" for module in EVADING]
    errors = await attack(ALL.format(attempts=attempts), limits=Kernel(kernel).limits(), watched=True)
    assert list(errors) == attempts
    assert all("must not import" in error or "No module named" in error for error in errors.values()), errors


async def test_every_native_module_of_python_is_listed_or_not_importable(attack: Attack) -> None:
    folder = Path(sysconfig.get_config_var("DESTSHARED"))
    names = {path.name.partition(".")[0] for path in folder.glob("*.so")} | set(sys.builtin_module_names)
    code = (
        "import importlib\nresult = []\n"
        f"for name in {sorted(names)!r}:\n"
        "    try:\n        importlib.import_module(name); result.append(name)\n"
        "    except ImportError: pass\n"
    )
    from kubevnfm_sandbox.launcher_config import _NATIVE

    assert set(await attack(code)) == names & _NATIVE


async def test_the_file_of_a_native_module_is_empty(attack: Attack) -> None:
    path = next(Path(sysconfig.get_config_var("DESTSHARED")).glob("_ctypes.*.so"), None)
    if path is None:
        pytest.skip("this Python has _ctypes built in")
    assert await attack(f"result = len(open({str(path)!r}, 'rb').read())") == 0


async def test_no_native_call_is_left_in_the_process(attack: Attack) -> None:
    code = """
import gc, sys
kinds = object.__subclasses__()
for kind in kinds:
    try:
        kinds += kind.__subclasses__()
    except TypeError:
        pass
result = [k.__name__ for k in kinds if k.__module__ in ("_ctypes", "ctypes")] + [n for n in sys.modules if "ctypes" in n]
"""
    assert await attack(code) == []


@pytest.mark.parametrize("kernel", KERNELS)
async def test_the_hook_cannot_be_emptied(attack: Attack, kernel: str) -> None:
    code = """
import sys
for module in list(sys.modules.values()):
    table = getattr(module, "_REFUSED", None)
    if table is not None:
        table.clear()
import socket
socket.socket()
"""
    said = await attack(code, limits=Kernel(kernel).limits(), watched=True)
    assert "must not use the network" in said


async def test_trusted_code_without_namespaces_is_still_kept_from_files_by_landlock(
    attack: Attack, tmp_path: Path
) -> None:
    if "landlock" not in Path("/proc/kallsyms").read_text():
        pytest.skip("NOT TESTED, this kernel has no Landlock")
    ring = tmp_path / "keys.json"
    ring.write_text("the-key")
    ring.chmod(0o644)
    limits = Limits(trust_packages=True, without=frozenset({"namespaces"}))
    assert "Permission denied" in await attack(f"result = open({str(ring)!r}).read()", limits=limits)
    assert await attack("open('x', 'w').write('1')\nresult = open('x').read()", limits=limits) == "1"


# --- refusal ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["namespaces", "mounts", "seccomp"])
async def test_nothing_runs_where_the_kernel_refuses_a_part(attack: Attack, part: str) -> None:
    needs_confinement()
    limits = Limits(without=frozenset({part}))
    with pytest.raises(SandboxUnavailable, match=f"refuses {part}.*trust_packages") as refusal:
        await attack("result = 1", limits=limits)
    assert refusal.value.status == 503
    assert await Sandbox(limits).state() == (SandboxState.REFUSED, f"the kernel refuses {part}")


@pytest.mark.parametrize("part", ["namespaces", "mounts", "seccomp"])
async def test_trusted_packages_run_there(attack: Attack, part: str) -> None:
    limits = Limits(without=frozenset({part}), trust_packages=True)
    assert await attack("result = 1", limits=limits, watched=True) == 1
    assert (await Sandbox(limits).state())[0] is SandboxState.TRUSTED


async def test_a_machine_without_libseccomp_is_refused_by_name(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(**_: bool) -> bytes:
        raise seccomp.FilterUnavailable("libseccomp.so.2 is not installed (Debian and Ubuntu: libseccomp2)")

    needs_confinement()
    monkeypatch.setattr("kubevnfm_sandbox.launcher_config.compiled", missing)
    with pytest.raises(SandboxUnavailable, match=r"libseccomp\.so\.2 is not installed"):
        await attack("result = 1", limits=Limits())


async def test_a_sandbox_that_does_not_work_is_not_reported_as_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_confinement()
    monkeypatch.setattr(sys, "_base_executable", "/bin/false")
    state, reason = await Sandbox(Limits()).state()
    assert (state, reason) == (SandboxState.REFUSED, "its test program ended with status 1: no output")


async def test_a_confined_machine_says_so() -> None:
    needs_confinement()
    assert await Sandbox(Limits()).state() == (SandboxState.CONFINED, "")
