"""A mongo-java-server for tests: MongoDB's protocol and operators on loopback, with its documents in a file or in memory."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from needs import cannot_have

from servers.ports import free_port, listens

_PROGRAM: Final = Path(__file__).parents[4] / ".tools" / "servers" / "mongodb"
_START_TIMEOUT_S: Final = 300.0
_SMALL: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Dio.netty.eventLoopThreads=64")
"""Options of the JVM: it starts in a second and takes some 80 MiB. With few threads a slow search would hold up the heartbeats
of other connections, and their drivers would report an outage."""


def missing() -> str | None:
    """Return what is missing on this machine to start a server."""
    if (_PROGRAM / "StandIn.class").exists() and shutil.which("java") is not None:
        return None
    return "mongo-java-server is missing: `make servers` installs it"


class MongoServer:
    """One server. ``start`` and ``stop`` may be called repeatedly; documents in a file survive a stop and a kill."""

    def __init__(self, folder: Path, *, in_memory: bool = False, ferretdb: str = "") -> None:
        """``ferretdb``: the version of FerretDB that it claims to be."""
        self._options = [f"-Dferretdb={ferretdb}"] if ferretdb else []
        self._log = folder / "server.log"
        self.file = None if in_memory else folder / "documents.mv"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> list[int]:
        """The process to end."""
        return [] if self._process is None else [self._process.pid]

    @property
    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Start the server; return when it accepts connections."""
        arguments = [str(self.port)] if self.file is None else [str(self.port), str(self.file)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["java", *_SMALL, *self._options, "-cp", f"{_PROGRAM}:{_PROGRAM}/*", "StandIn", *arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not listens(self.port):
            assert self._process.poll() is None, f"mongo-java-server ended: {self._log.read_text()[-2000:]}"
            assert time.monotonic() < deadline, f"mongo-java-server does not listen; see {self._log}"
            time.sleep(0.02)

    def stop(self, *, kill: bool = False) -> None:
        """Stop the server in an orderly way or, with ``kill``, at once (SIGKILL)."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        self._process.wait(timeout=30)
        self._process = None


@pytest.fixture(scope="session")
def mongodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoServer]:
    """A running server with a file, shared by all tests of the session; each uses its own databases."""
    yield from _running(MongoServer(tmp_path_factory.mktemp("mongodb")))


@pytest.fixture(scope="session")
def mongodb_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running server in memory, shared by all tests of the session; each uses its own database."""
    yield from (
        server.url for server in _running(MongoServer(tmp_path_factory.mktemp("memory-mongodb"), in_memory=True))
    )


@pytest.fixture
def own_mongodb(tmp_path: Path) -> Iterator[MongoServer]:
    """A running server with a file, of this test alone: it may kill it."""
    yield from _running(MongoServer(tmp_path))


@pytest.fixture(params=["v1.24.2"])
def old_ferretdb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MongoServer]:
    """A running server that reports that it is FerretDB of a version, 1.x by default."""
    yield from _running(MongoServer(tmp_path, in_memory=True, ferretdb=request.param))


def _running(server: MongoServer) -> Iterator[MongoServer]:
    reason = missing()
    if reason is not None:
        cannot_have(reason, on="MONGODB'S PROTOCOL")
    server.start()
    try:
        yield server
    finally:
        server.stop()
