"""Scripts of packages: run as processes, with the network open to granted addresses only."""

from __future__ import annotations

import asyncio
import pickle
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import psutil
import pytest
from contracts.sandbox_kernel import ANY_KERNEL, KERNELS, Kernel, files_in_memory, has_printed, sandbox_processes, until
from kubevnfm_sandbox.process import Sandbox
from kubevnfm_sandbox.runs import Script, ScriptEnded, ScriptRefused

Run = Callable[..., Coroutine[Any, Any, ScriptEnded]]
in_one_kernel = pytest.mark.parametrize("kernel", [ANY_KERNEL], indirect=True)
"""For what the script's own process decides, whatever confines it: its answer and its output. That they arrive from each
kernel is shown by the other tests."""


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return Kernel(request.param)


@pytest.fixture
def run(tmp_path: Path, kernel: Kernel) -> Run:
    package, shim = tmp_path / "package", tmp_path / "shim"
    for folder in (package, shim):
        folder.mkdir()
    (shim / "ours.py").write_text("NAME = 'ours'\n")

    async def run(
        code: str,
        *,
        timeout_s: float = 30,
        when_cancelled: Callable[[ScriptEnded], None] | None = None,
        **fields: Any,
    ) -> Any:
        (package / "script.py").write_text(dedent(code))
        script = Script(file="script.py", package=package, shim=shim, **fields)
        return await Sandbox(kernel.limits(timeout_s=timeout_s)).run_script(script, when_cancelled=when_cancelled)

    return run


@pytest.fixture
async def machine() -> AsyncIterator[int]:
    """Yield the port of a machine that greets each caller and repeats what it gets."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello ")
        while line := await reader.read(1024):
            writer.write(line)
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        yield int(server.sockets[0].getsockname()[1])


async def test_a_script_reads_a_pickle_and_answers_with_one(run: Run) -> None:
    code = """
    import pickle, sys
    import ours
    given = pickle.load(sys.stdin.buffer)
    print("progress", file=sys.stderr)
    sys.stdout.buffer.write(pickle.dumps({"operation": given["operation"], "module": ours.NAME}))
    """
    ended = await run(code, stdin=pickle.dumps({"operation": "instantiate_end"}))
    assert ended.value == {"operation": "instantiate_end", "module": "ours"}
    assert pickle.loads(ended.stdout) == ended.value
    assert (ended.status, ended.stderr, ended.timed_out) == (0, b"progress\n", False)


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("import sys\nsys.exit(3)", 3, b""),
        ("raise SystemExit('no such node')", 1, b"no such node"),
        ("raise KeyError('nfv')", 1, b"KeyError: 'nfv'"),
        ("import os\nos._exit(7)", 7, b""),
        ("if __name__ == '__main__':\n    exit_code = 0", 0, b""),
    ],
)
async def test_the_exit_status_is_that_of_a_process(run: Run, code: str, status: int, said: bytes) -> None:
    ended = await run(code.replace("\\n", "\n"))
    assert ended.status == status
    assert said in ended.stderr


@in_one_kernel
@pytest.mark.parametrize("end", ["sys.exit(1)", "os._exit(1)"])
async def test_the_answer_of_a_failed_script_is_kept(run: Run, end: str) -> None:
    """Tacker's own samples end with os._exit, in a branch that no ``except`` must see."""
    code = f"""
    import os, sys
    try:
        print('kept', flush=True)
        {end}
    except Exception:
        os._exit(2)
    """
    ended = await run(code)
    assert (ended.status, ended.stdout) == (1, b"kept\n")


async def test_a_script_gets_a_pickle_with_the_places_of_folders(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "version").write_text("2")
    code = """
    import os, pickle, sys
    given = pickle.load(sys.stdin.buffer)
    texts = [open(os.path.join(given[name], file)).read() for name, file in (("own", "script.py"), ("other", "version"))]
    sys.stdout.buffer.write(pickle.dumps([given["operation"], texts[0] != "", texts[1]]))
    """
    folders = {"own": tmp_path / "package", "other": other}
    ended = await run(code, given={"operation": "modify_information_end"}, folders=folders)
    assert ended.value == ["modify_information_end", True, "2"], ended.stderr


async def test_relative_folders_are_found(tmp_path: Path, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default data folder of the single process is relative, and the process starts elsewhere."""
    for name, file in (("package", "script.py"), ("shim", "ours.py"), ("other", "version")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("2")
    (tmp_path / "package/script.py").write_text(
        "import os, pickle, sys, ours\n"
        "given = pickle.load(sys.stdin.buffer)\n"
        "sys.stdout.buffer.write(pickle.dumps(open(os.path.join(given['other'], 'version')).read()))\n"
    )
    monkeypatch.chdir(tmp_path)
    script = Script(
        file="script.py", package=Path("package"), shim=Path("shim"), given={}, folders={"other": Path("other")}
    )
    ended = await Sandbox(kernel.limits(timeout_s=30)).run_script(script)
    assert ended.value == "2", ended.stderr


@in_one_kernel
@pytest.mark.parametrize(
    ("code", "unreadable"),
    [
        ("print('progress')", "UnpicklingError"),
        ("import sys, pickle\nsys.stdout.buffer.write(pickle.dumps({1, 2}))", "TypeError: Object of type set"),
        ("import sys\nsys.stdout.buffer.write(b'cnt\\nsystem\\n.')", "ModuleNotFoundError"),
        ("import sys\nsys.stdout.buffer.write(b'N' + b'r' + b'\\xff' * 3 + b'\\x7f.')", "MemoryError"),
    ],
)
async def test_an_answer_that_is_no_pickle_of_plain_values_is_reported(run: Run, code: str, unreadable: str) -> None:
    ended = await run(code)
    assert unreadable in ended.unreadable
    assert (ended.status, ended.value) == (0, None)


@in_one_kernel
@pytest.mark.parametrize(
    "code",
    [
        "print('x' * 7_000_000, flush=True)",
        "sys.stdout.buffer.write(pickle.dumps(['x' * 100] * 100_000))",  # short as a pickle, long as JSON
    ],
)
async def test_an_answer_that_is_too_long_is_reported_with_the_exit_status(run: Run, code: str) -> None:
    ended = await run(f"import pickle, sys\nprint('reason', file=sys.stderr)\n{code}\nsys.exit(3)")
    assert "it is too long" in ended.unreadable
    assert (ended.status, ended.value, ended.stderr) == (3, None, b"reason\n")
    assert 0 < len(ended.stdout) <= 64 * 1024


@in_one_kernel
@pytest.mark.parametrize(
    ("value", "unreadable"),
    [
        ("float('nan')", "NaN"),
        ("chr(0xD800)", "surrogates"),
        ("__import__('functools').reduce(lambda inner, _: [inner], range(200), 1)", "nested deeper than"),
    ],
)
async def test_an_answer_that_cannot_be_stored_is_reported_with_the_exit_status(
    run: Run, value: str, unreadable: str
) -> None:
    code = f"import pickle, sys\nsys.stdout.buffer.write(pickle.dumps({{'a': {value}}}))\nsys.exit(3)"
    ended = await run(code)
    assert unreadable in ended.refused
    assert (ended.status, ended.value) == (3, None)
    assert ended.stdout


async def test_a_pickle_that_runs_code_runs_it_in_the_sandbox(run: Run, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"""
    import sys
    sys.stdout.buffer.write(b"cbuiltins\\nopen\\n(V{mark}\\nVw\\ntR.")
    """
    ended = await run(code)
    assert ended.value is None
    assert not mark.exists()


async def test_an_endless_script_is_killed(run: Run) -> None:
    assert (await run("import time\ntime.sleep(60)", timeout_s=1)).timed_out


async def test_a_file_that_is_missing_is_refused_by_name(tmp_path: Path, kernel: Kernel) -> None:
    script = Script(file="Scripts/absent.py", package=tmp_path, stdin=b"", shim=tmp_path)
    with pytest.raises(ScriptRefused, match=r"Scripts/absent\.py: no such file in the package"):
        await Sandbox(kernel.limits()).run_script(script)


TALK = """
import socket, sys
sock = socket.create_connection(("{host}", {port}), timeout={timeout})
sock.sendall(b"there")
sock.shutdown(socket.SHUT_WR)
while part := sock.recv(100):
    sys.stdout.buffer.write(part)
"""


async def test_the_status_of_a_script_that_a_signal_ends_is_that_of_a_shell(run: Run) -> None:
    """Its guard and its connector say so. Which signal ends it depends on the processor: the filter knows no SIGABRT."""
    ended = await run("import os\nos.abort()", reach=(("127.0.0.1", 1),))
    assert (128 < ended.status < 160, ended.timed_out) == (True, False), ended


async def test_a_granted_address_is_reached(run: Run, machine: int) -> None:
    code = "".join(TALK.format(host="127.0.0.1", port=machine, timeout=timeout) for timeout in (None, 10))
    ended = await run(code, reach=(("127.0.0.1", machine),))
    assert (ended.stdout, ended.status) == (b"hello there" * 2, 0), ended.stderr


async def test_an_address_is_granted_with_every_port_by_port_0(run: Run, machine: int) -> None:
    ended = await run(TALK.format(host="127.0.0.1", port=machine, timeout=5), reach=(("127.0.0.1", 0),))
    assert ended.stdout == b"hello there"


ATTEMPTS = """
import os, socket
for attempt in {attempts!r}:
    try:
        eval(attempt)
    except OSError as error:
        print(attempt, os.strerror(error.errno), sep=": ")
"""


async def test_no_other_address_or_port_is_reached(run: Run, machine: int) -> None:
    hosts = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::ffff:127.0.0.1"]
    attempts = [f"socket.create_connection(({host!r}, {machine}), timeout=5)" for host in hosts]
    ended = await run(ATTEMPTS.format(attempts=attempts), reach=(("127.0.0.1", 1), ("10.9.8.7", 0)))
    assert ended.stdout.decode().splitlines() == [f"{attempt}: Permission denied" for attempt in attempts]


async def test_asyncio_and_threads_work(run: Run, machine: int) -> None:
    code = f"""
    import asyncio, threading
    async def main():
        reader, writer = await asyncio.open_connection("127.0.0.1", {machine})
        writer.write_eof()
        print((await reader.read()).decode())
    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    """
    ended = await run(code, reach=(("127.0.0.1", machine),))
    assert ended.stdout == b"hello \n" * 4, ended.stderr


async def test_a_closed_port_of_a_granted_address_refuses(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    ended = await run(TALK.format(host="127.0.0.1", port=port, timeout=None), reach=(("127.0.0.1", port),))
    assert b"ConnectionRefusedError" in ended.stderr


async def test_no_way_around_connect(run: Run, machine: int) -> None:
    attempts = [
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socket().bind(('127.0.0.1', 0))",
        "socket.socket().listen()",
        f"socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', {machine}))",
        f"socket.socket().sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', {machine}))",
        "os.fork()",
        "__import__('subprocess').run(['/bin/true'])",
    ]
    ended = await run(ATTEMPTS.format(attempts=attempts), reach=(("127.0.0.1", machine),))
    assert ended.stdout.decode().splitlines() == [f"{attempt}: Function not implemented" for attempt in attempts]


async def test_a_connected_socket_connects_to_no_other_address(run: Run, machine: int) -> None:
    code = f"""
    import socket
    sock = socket.create_connection(("127.0.0.1", {machine}))
    try:
        sock.connect(("127.0.0.2", {machine}))
    except PermissionError:
        print("refused")
    """
    assert (await run(code, reach=(("127.0.0.1", machine),))).stdout == b"refused\n"


HANGS = """
import sys, time
print("waiting", file=sys.stderr)
print("printed")
time.sleep(3600)
"""


async def test_what_a_script_said_before_its_time_was_over_is_returned(run: Run) -> None:
    """Also what Python has not flushed: the buffer of a killed process is lost."""
    ended = await run(HANGS, timeout_s=5)
    assert ended.timed_out
    assert (ended.stderr, ended.stdout) == (b"waiting\n", b"printed\n")


async def test_what_a_cancelled_script_said_is_reported(run: Run) -> None:
    heard: list[ScriptEnded] = []
    task = asyncio.create_task(run(HANGS, timeout_s=3600, when_cancelled=heard.append))
    await until(has_printed)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(one.stderr, one.stdout) for one in heard] == [(b"waiting\n", b"printed\n")]
    assert not files_in_memory()


async def test_a_text_that_a_script_does_not_flush_is_not_before_its_answer(run: Run) -> None:
    code = """
    import os, pickle, sys
    print("done")
    sys.stdout.buffer.write(pickle.dumps({"a": 1}))
    sys.stdout.buffer.flush()
    os._exit(0)
    """
    ended = await run(code)
    assert (ended.value, ended.unreadable) == ({"a": 1}, "")


@in_one_kernel
@pytest.mark.parametrize("code", ["print 'done'", "raise KeyError('nfv')"])
async def test_the_traceback_of_a_script_has_no_line_of_this_project(run: Run, code: str) -> None:
    said = (await run(f"import sys\n{code}")).stderr.decode()
    assert 'script.py", line 2' in said
    assert "kubevnfm_script" not in said


async def test_a_cancelled_script_leaves_no_process(run: Run) -> None:
    code = "import time, socket\nsocket.socket()\ntime.sleep(3600)"
    # Longer than a test may take: its own deadline must not be what ends it.
    task = asyncio.create_task(run(code, timeout_s=3600, reach=(("127.0.0.1", 1),)))
    await until(lambda: len(sandbox_processes()) >= 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not sandbox_processes())


@in_one_kernel
async def test_a_script_that_is_cancelled_while_it_starts_leaves_no_process(run: Run) -> None:
    """A busy event loop connects its pipes late: the launcher has a child by then, which does not end with it yet."""
    task = asyncio.create_task(run(HANGS, timeout_s=3600))
    while not (started := sandbox_processes()):  # noqa: ASYNC110 - to be here as soon as the process exists
        await asyncio.sleep(0)
    launcher = psutil.Process(started[0])
    give_up = time.monotonic() + 60
    while not launcher.children() and time.monotonic() < give_up:
        pass
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    assert launcher.pid not in {child.pid for child in psutil.Process().children()}, "it was not waited for"
    await until(lambda: not sandbox_processes())


@in_one_kernel
async def test_a_script_that_is_cancelled_again_while_it_ends_is_waited_for(run: Run) -> None:
    """The end of an event loop cancels what is ending already; a process without a parent that waits would be left."""
    task = asyncio.create_task(run(HANGS, timeout_s=3600))
    await until(has_printed)
    started = {child.pid for child in psutil.Process().children()} & set(sandbox_processes())
    task.cancel()
    for _ in range(5):
        await asyncio.sleep(0)  # until it waits for the end of the process
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started
    assert not started & {child.pid for child in psutil.Process().children()}


async def test_a_script_without_granted_addresses_has_no_sockets(run: Run) -> None:
    assert b"Function not implemented" in (await run("import socket\nsocket.socket()")).stderr


async def test_a_granted_name_is_looked_up_without_a_name_server(run: Run, machine: int) -> None:
    code = "".join(TALK.format(host=n, port=machine, timeout=10) for n in ("machine.example", "MACHINE.example."))
    names = {"machine.example": ["::1", "127.0.0.1"], "other.example": ["127.0.0.1"]}
    ended = await run(code, reach=(("127.0.0.1", machine),), names=names)
    assert (ended.stdout, ended.status) == (b"hello there" * 2, 0), ended.stderr


async def test_a_name_of_the_other_family_is_an_error_of_the_look_up(run: Run) -> None:
    code = """
    import socket
    try:
        socket.getaddrinfo("machine.example", 443, socket.AF_INET6)
    except socket.gaierror as error:
        print(error.args[0] == socket.EAI_NONAME)
    """
    assert (await run(code, reach=(("127.0.0.1", 1),), names={"machine.example": ["127.0.0.1"]})).stdout == b"True\n"


PRIVATE = """
import os, stat, time
place = os.environ["OUR_FILE"]
print(stat.S_IMODE(os.stat(place).st_mode) == 0o600, open(place).read(), open(place).read())
print(os.environ.get("LANG", "no more variables"), flush=True)
"""


async def test_a_private_file_is_found_by_its_variable_and_by_no_other_user(run: Run) -> None:
    """CR-077."""
    ended = await run(PRIVATE, private_files={"OUR_FILE": b"a secret"})
    assert ended.stdout == b"True a secret a secret\nno more variables\n", ended.stderr


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the folder in which processes get their scratch folders."""
    # Not below the private folder of a test: an unprivileged user must reach it.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


async def test_a_private_file_does_not_outlive_a_killed_script(run: Run, rooms: Path) -> None:
    """CR-077: its content is in no file on a disk, on no command line and in no environment."""
    code = f"{PRIVATE}time.sleep(3600)"
    task = asyncio.create_task(run(code, timeout_s=3600, private_files={"OUR_FILE": b"a secret"}))
    await until(has_printed)
    processes = [Path("/proc") / str(pid) for pid in sandbox_processes()]
    seen = [(process / part).read_bytes() for process in processes for part in ("cmdline", "environ")]
    seen += [path.read_bytes() for path in rooms.rglob("*") if path.is_file()]
    assert processes
    assert not any(b"a secret" in text for text in seen)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not sandbox_processes())
    assert not list(rooms.iterdir())
    assert not files_in_memory("private")
