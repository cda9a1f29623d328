"""A mongo-java-server for tests: MongoDB's protocol and operators, in memory, started on loopback.

FerretDB lacks operators, so the store has a second form of its queries for MongoDB; this server runs that form.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from servers.ports import free_port, listens

_FOLDER: Final = Path(__file__).parents[4] / ".tools" / "servers" / "memory-mongo"
_START_TIMEOUT_S: Final = 300.0
_SMALL: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-Dio.netty.eventLoopThreads=2")
"""Options of the JVM: it starts in half a second and takes some 60 MiB."""


@pytest.fixture(scope="session")
def memory_mongo_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running server, shared by all tests of the session; each test uses its own database."""
    if not (_FOLDER / "MemoryMongo.class").exists() or shutil.which("java") is None:
        missing = "mongo-java-server is missing; tests/support/servers/install.sh fetches it"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(f"NOT TESTED IN MONGODB'S OWN FORM: {missing}")
    port = free_port()
    log = tmp_path_factory.mktemp("memory-mongo") / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            ["java", *_SMALL, "-cp", f"{_FOLDER}:{_FOLDER}/*", "MemoryMongo", str(port)],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not listens(port):
            assert process.poll() is None, f"mongo-java-server ended: {log.read_text()[-2000:]}"
            assert time.monotonic() < deadline, (
                f"mongo-java-server does not listen after {_START_TIMEOUT_S} s; see {log}"
            )
            time.sleep(0.02)
        yield f"mongodb://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(timeout=30)
