"""The plug-ins of the command line: what they say, and what they load for that."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from servers.six_processes import SERVICES, package_of

SERVICE_PACKAGES = {package_of(service) for service in SERVICES}
RUN = """
import json, sys
from kubevnfm import cli
try:
    {"run": cli.run, "demo": cli.demo, "hash-password": cli.hash_password}[sys.argv.pop(1)]()
finally:
    print(json.dumps([name for name in sys.modules]))
"""


def kubevnfm(*arguments: str) -> tuple[int, str, set[str]]:
    """Run it in a process; return exit code, what it said, and the modules that it loaded."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    said, _, modules = ran.stdout.rstrip().rpartition("\n")
    return ran.returncode, said, set(json.loads(modules))


@pytest.mark.parametrize("command", ["run", "demo", "hash-password"])
def test_help_loads_no_service(command: str) -> None:
    """Each of them takes a second or so to import."""
    code, said, modules = kubevnfm(command, "--help")
    assert code == 0
    assert said.startswith("usage:")
    assert not modules & SERVICE_PACKAGES
