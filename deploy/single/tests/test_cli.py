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
    {"run": cli.run, "demo": cli.demo, "watch": cli.watch, "hash-password": cli.hash_password}[sys.argv.pop(1)]()
finally:
    print(json.dumps([name for name in sys.modules]))
"""


def kubevnfm(*arguments: str) -> tuple[int, str, set[str], str]:
    """Run it in a process; return exit code, what it said, the modules that it loaded, and its complaints."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    said, _, modules = ran.stdout.rstrip().rpartition("\n")
    return ran.returncode, said, set(json.loads(modules)), ran.stderr


@pytest.mark.parametrize("command", ["run", "demo", "watch", "hash-password"])
def test_help_loads_no_service(command: str) -> None:
    """Each of them takes a second or so to import."""
    code, said, modules, _ = kubevnfm(command, "--help")
    assert code == 0
    assert said.startswith("usage:")
    assert not modules & SERVICE_PACKAGES


def test_watching_loads_no_service_and_a_gateway_that_is_not_there_is_one_line() -> None:
    code, said, modules, complaint = kubevnfm("watch", "instance", "operation", "--url", "http://127.0.0.1:1")
    assert (code, said) == (1, "")
    assert complaint.startswith("kubevnfm: http://127.0.0.1:1: Cannot connect")
    assert len(complaint.splitlines()) == 1
    assert not modules & SERVICE_PACKAGES
