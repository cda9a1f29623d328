"""A FerretDB for tests: MongoDB's protocol on SQLite, started on loopback with its own folder."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from servers.ports import free_port, listens

_START_TIMEOUT_S = 300.0
_INSTALLED = Path(__file__).parents[3] / ".tools" / "servers" / "bin" / "ferretdb"


def program() -> Path | None:
    """Return the path of FerretDB, from $KUBEVNFM_FERRETDB, $PATH, or the folder that ``install.sh`` uses."""
    named = os.environ.get("KUBEVNFM_FERRETDB") or shutil.which("ferretdb")
    places = [Path(named)] if named else [_INSTALLED, Path.home() / "go" / "bin" / "ferretdb"]
    return next((place for place in places if place.exists()), None)


class FerretServer:
    """One server. ``start`` and ``stop`` may be called repeatedly; the stored data survive a stop."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self._folder = program, folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> list[int]:
        """The process to end."""
        return [] if self._process is None else [self._process.pid]

    @property
    def folder(self) -> Path:
        """The folder of its databases; each is one SQLite file."""
        return self._folder

    @property
    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Start the server; return when it accepts connections."""
        with (self._folder / "ferretdb.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self.program,
                    "--telemetry=disable",
                    "--handler=sqlite",
                    f"--sqlite-url=file:{self._folder}/",
                    f"--state-dir={self._folder}",
                    f"--listen-addr=127.0.0.1:{self.port}",
                    "--debug-addr=-",
                    "--log-level=error",
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, f"ferretdb ended; see {self._folder}/ferretdb.log"
            if listens(self.port):
                return
            time.sleep(0.02)
        raise AssertionError(f"ferretdb does not listen after {_START_TIMEOUT_S} s")

    def index_ids(self) -> None:
        """Add to every existing collection the index by ``_id`` that the server's queries need.

        FerretDB 1.24 makes one on the expression ``->"_id"`` and asks by ``->'$._id'``; SQLite sees two different
        things in them, and reads the whole collection to find one document.
        """
        for file in self._folder.glob("*.sqlite"):
            with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection:
                tables = connection.execute(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' AND instr(sql, '_ferretdb_sjson')"
                ).fetchall()
                for (table,) in tables:
                    connection.execute(
                        f"""CREATE INDEX IF NOT EXISTS "{table}_asked" ON "{table}" (_ferretdb_sjson->'$._id')"""
                    )

    def stop(self, *, kill: bool = False) -> None:
        """Stop the server in an orderly way or, with ``kill``, like a power cut."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        self._process.wait(timeout=30)
        self._process = None


@pytest.fixture(scope="session")
def ferretdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FerretServer]:
    """A running server, shared by all tests of the session."""
    found = program()
    if found is None:
        missing = "ferretdb is missing; tests/support/servers/install.sh builds it"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(f"NOT TESTED ON MONGODB'S PROTOCOL: {missing}")
    server = FerretServer(found, tmp_path_factory.mktemp("ferretdb"))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def ferretdb_url(ferretdb: FerretServer) -> str:
    """The URL of the running server; each test uses its own database."""
    return ferretdb.url
