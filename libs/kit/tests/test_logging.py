"""The log of a process as those see it who read its standard error."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_kit import log_output
from kubevnfm_kit.error_text import without_logins
from kubevnfm_kit.log_output import LogOutput

_BEGIN = """
import asyncio, gc, logging, sys, threading, warnings
import structlog
from contextlib import asynccontextmanager
from kubevnfm_kit.logging import configure_logging
from kubevnfm_kit.run import run_until_signal
log = structlog.get_logger()
"""


def lines_of(code: str) -> list[Any]:
    """Run the code; return its log, each line of which is JSON."""
    ran = subprocess.run([sys.executable, "-c", _BEGIN + code], capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in ran.stderr.splitlines()]


def test_what_libraries_say_has_our_form_and_no_password() -> None:
    lines = lines_of("""
configure_logging("a-service")
logging.getLogger("aio_pika").warning("lost %s", "amqp://me:pa55@host/")
logging.getLogger("aiormq").info("of no interest")
logging.getLogger("long").error("x" * 1_000_000)
logging.getLogger("wrong").warning("%d", "no number")
for number in range(50):
    logging.getLogger("often").warning("try %d", number)
    logging.getLogger("often").warning(f"Task-{number} at {hex(number)} has ended")
try:
    raise ValueError("why")
except ValueError:
    logging.getLogger("raised").exception("failed")
warnings.warn("old", DeprecationWarning)

async def main():
    async def fail():
        raise LookupError("not retrieved")
    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    del task
    gc.collect()

asyncio.run(main())
thread = threading.Thread(target=lambda: 1 / 0, name="worker-1")
thread.start(); thread.join()
""")
    assert {(line["event"], line["service"]) for line in lines} == {("library_said", "a-service")}
    by_logger = {line["logger"]: line for line in lines}
    assert (by_logger["aio_pika"]["text"], by_logger["aio_pika"]["level"]) == ("lost amqp://***@host/", "warning")
    assert "aiormq" not in by_logger
    assert len(by_logger["long"]["text"]) < 3000
    assert by_logger["wrong"]["text"] == "%d"
    assert [line["text"] for line in lines if line["logger"] == "often"] == ["try 0", "Task-0 at 0x0 has ended"]
    assert "ValueError: why" in by_logger["raised"]["exception"]
    assert "LookupError: not retrieved" in by_logger["asyncio"]["exception"]
    assert by_logger["asyncio"]["level"] == "error"
    assert "ZeroDivisionError" in by_logger["threading"]["exception"]


def test_no_line_has_the_login_of_a_url() -> None:
    """In the text of a library, a fact of ours, or an error; also of a URL that is wrong because of its password."""
    lines = lines_of("""
configure_logging("a-service")
for url in ("amqp://me:pa55@host/", "amqp://me:pa/55@host/", "amqp://me:p@55@host/", "amqp://me:p@/55@host/", "amqp://pa55@host/"):
    log.warning("outage_began", reason=f"cannot reach {url} now")
    logging.getLogger("a").warning("lost " + url)
    try:
        raise ValueError(f"'{url}'")
    except ValueError:
        log.exception("request_failed")
        logging.getLogger(url).exception("failed")
log.info("said", reason="see http://host:80/x?y=1 and http://[::1]:80/, user@host")
""")
    assert len(lines) > 20
    shown = json.dumps(lines[:-1])
    # A traceback shows the code that has raised, not its values.
    assert "55@" not in shown
    assert "/55" not in shown
    assert "***@host/" in lines[2]["exception"]
    assert lines[-1]["reason"] == "see http://host:80/x?y=1 and http://[::1]:80/, user@host"


def test_a_long_text_of_urls_is_masked_in_time() -> None:
    began = time.process_time()
    without_logins("://" * 10_000 + "@")
    assert time.process_time() - began < 1


def test_sigusr1_switches_debug_lines_while_the_process_runs() -> None:
    code = """
configure_logging("a-service", level="WARNING")

@asynccontextmanager
async def service():
    async def speak():
        while True:
            log.debug("small"), log.info("usual")
            await asyncio.sleep(0.01)
    task = asyncio.create_task(speak())
    log.warning("ready")
    yield
    task.cancel()

run_until_signal(service())
"""
    with subprocess.Popen([sys.executable, "-c", _BEGIN + code], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        events = (json.loads(line)["event"] for line in process.stderr)
        assert next(events) == "ready"
        process.send_signal(signal.SIGUSR1)
        assert next(events) == "log_level_changed"
        assert {next(events), next(events)} == {"small", "usual"}
        process.send_signal(signal.SIGUSR1)
        assert next(event for event in events if event not in {"small", "usual"}) == "log_level_changed"
        process.terminate()
        assert [*events] == []
        assert process.wait(timeout=30) == 0


def test_the_console_has_one_line_for_people() -> None:
    code = _BEGIN + 'configure_logging("a-service", form="console")\nlog.info("said", count=3)'
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "said" in ran.stderr
    assert "count=3" in ran.stderr
    assert not ran.stderr.startswith("{")


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """Yield both ends of a pipe that holds 4 KiB."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    try:
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


def test_a_reader_that_does_not_read_holds_nothing_up_and_gets_all_in_order() -> None:
    with pipe() as (reader, writer):
        output = LogOutput(writer, say_dropped=lambda lines: f"dropped {lines}\n")
        written = [f"{number} {'x' * 200}\n" for number in range(500)]
        began = time.process_time()
        for line in written:
            output.write(line)
        assert time.process_time() - began < 1
        expected = "".join(written).encode()
        got = b""
        while len(got) < len(expected):
            got += os.read(reader, 65536)
        assert got == expected


def test_lines_beyond_the_room_are_dropped_and_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_output, "MOST_BYTES", 20_000)
    with pipe() as (reader, writer):
        output = LogOutput(writer, say_dropped=lambda lines: f"dropped {lines}\n")
        for number in range(500):
            output.write(f"{number} {'x' * 200}\n")
        got = b""
        while b"dropped" not in got or not got.endswith(b"\n"):
            got += os.read(reader, 65536)
        lines = got.decode().splitlines()
        said = [line for line in lines if line.startswith("dropped")]
        written = [line for line in lines if not line.startswith("dropped")]
        assert said == [f"dropped {500 - len(written)}"]
        assert [int(line.split()[0]) for line in written] == [*range(len(written))]
        assert 60 < len(written) < 200
        output.write("afterwards\n")
        assert os.read(reader, 100) == b"afterwards\n"


def test_the_end_of_the_process_waits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each time that the reader was slow."""
    awaited: list[object] = []
    monkeypatch.setattr("atexit.register", awaited.append)
    with pipe() as (reader, writer):
        output = LogOutput(writer, say_dropped=str)
        for _ in range(3):
            for _ in range(30):
                output.write("x" * 199 + "\n")
            left = 30 * 200
            while left:
                left -= len(os.read(reader, 65536))
            for each in threading.enumerate():
                if each.name == "log-output":
                    each.join(30)
    assert len(awaited) == 1


def test_a_reader_that_has_ended_ends_nothing(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    LogOutput(writer, say_dropped=str).write("a line\n")
    os.close(writer)
