"""The ``openstack`` command line, run as a user with an installed client runs it."""

from __future__ import annotations

import asyncio
import configparser
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from servers.processes import PROJECT

ENVIRONMENT: Final = PROJECT / ".run" / "clients"
"""Where `make test-clients` installs requirements.txt."""
_RUNNER: Final = PROJECT / "tests" / "clients" / "runner.py"
_OF_US: Final = ("vim ", "vnf package ", "vnflcm ", "vnffm ", "vnfpm ")
_LONGEST_S: Final = 300.0
_LONGEST_LINE: Final = 16 << 20


def commands_of(api_version: str) -> set[str]:
    """Return every command of the client for an API version that kubevnfm supports, as the user types it."""
    (points,) = ENVIRONMENT.glob("lib/python3*/site-packages/python_tackerclient-*.dist-info/entry_points.txt")
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read(points)
    names = {name.replace("_", " ") for name in parser[f"openstack.tackerclient.v{api_version}"]}
    return {name for name in names if name.startswith(_OF_US)}


@dataclass(frozen=True)
class Printed:
    """The output and the exit code of a command."""

    code: int
    out: str
    errors: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class CommandLine:
    """Commands of one API version. An async context manager."""

    api_version: str
    access: Mapping[str, str]
    """The environment variables that say how to reach the gateway."""
    used: set[str] = field(default_factory=set)
    """The commands that were run."""
    _process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        python = ENVIRONMENT / "bin" / "python"
        assert python.exists(), "make test-clients installs the clients first"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "KUBEVNFM_"))}
        self._process = await asyncio.create_subprocess_exec(
            python,
            _RUNNER,
            env={**inherited, **self.access, "OS_TACKER_API_VERSION": self.api_version, "PYTHONWARNINGS": "ignore"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def tries(self, *arguments: str) -> Printed:
        """Run a command; return its output and exit code, also when it failed."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments).encode() + b"\n")
        await self._process.stdin.drain()
        async with asyncio.timeout(_LONGEST_S):
            line = await self._process.stdout.readline()
        assert line, f"the command line ended at: {arguments}"
        printed = Printed(*json.loads(line))
        self.used.add(next(name for name in _longest_first(self.api_version) if _begins(arguments, name)))
        return printed

    async def does(self, *arguments: str) -> str:
        """Run a command that must succeed; return its output."""
        printed = await self.tries(*arguments)
        assert printed.code == 0, f"{' '.join(arguments)}: {printed.code} {printed.out} {printed.errors}"
        return printed.out

    async def shows(self, *arguments: str) -> Any:
        """Run a command that must succeed; return its JSON output."""
        return json.loads(await self.does(*arguments, "-f", "json"))


def _longest_first(api_version: str) -> list[str]:
    return sorted(commands_of(api_version), key=len, reverse=True)


def _begins(arguments: tuple[str, ...], name: str) -> bool:
    words = name.split(" ")
    return list(arguments[: len(words)]) == words
