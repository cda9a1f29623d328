"""The executables ``kubevnfm-run``, ``-demo``, ``-hash-password``, ``-backup`` and ``-restore``: plug-ins of the command line ``kubevnfm``.

Importing all services takes seconds, so each imports only what it needs, and help nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import getpass
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

_SWITCH_S: Final = 0.0005
"""A tenth of Python's default: an answer of the store takes less than a millisecond."""


def run() -> NoReturn:
    """Run all services in this process."""
    text = "run all services in this process; settings by KUBEVNFM_<NAME> or kubevnfm.toml"
    argparse.ArgumentParser(prog="kubevnfm run", description=text).parse_args()
    _end(_run)


def demo() -> NoReturn:
    """Do the main job once, on the lab, and show it."""
    parser = argparse.ArgumentParser(prog="kubevnfm demo", description="do the main job once, on the lab, and show it")
    parser.add_argument(
        "--samples", type=Path, default=Path(".run/samples"), help="folder of the packed sample packages"
    )
    parser.add_argument(
        "--node-seconds", type=float, default=1.0, help="how long kubeadm takes on each machine of the lab"
    )
    variants = parser.add_mutually_exclusive_group()
    variants.add_argument(
        "--ha", action="store_true", help="another one: three masters and a storage server, scale and heal of them"
    )
    variants.add_argument(
        "--capi", action="store_true", help="another one: a workload cluster that Cluster API builds, and a CNF on it"
    )
    variants.add_argument(
        "--multicloud", action="store_true", help="another one: two clusters as cloud regions, and VNFs in them"
    )
    arguments = parser.parse_args()
    _end(lambda: _demo(arguments))


def hash_password() -> NoReturn:
    """Read a password, print what stands for it in the users file."""
    text = "read a password, print what stands for it in the users file"
    argparse.ArgumentParser(prog="kubevnfm hash-password", description=text).parse_args()
    _end(_hash_password)


def backup() -> NoReturn:
    """Write a backup, or check one."""
    from kubevnfm.backup import command

    arguments = command.backup_parser().parse_args()
    _end(lambda: command.backup(arguments))


def restore() -> NoReturn:
    """Restore a backup."""
    from kubevnfm.backup import command

    arguments = command.restore_parser().parse_args()
    _end(lambda: command.restore(arguments))


def _run() -> None:
    # Almost nothing that imports make is garbage; to look for it takes a sixth of the start. The running service looks again.
    gc.disable()
    from kubevnfm_kit.logging import configure_logging
    from kubevnfm_kit.run import run_until_signal
    from kubevnfm_kit.settings import faults_of
    from pydantic import ValidationError

    from kubevnfm.settings import SERVICES, Settings, service_variable

    # Before the imports that take long: a fault of a setting is said at once.
    settings = Settings.read_or_exit(*SERVICES)

    from kubevnfm.single import single_node

    configure_logging("kubevnfm", level=settings.log_level, form=settings.form_of_log)
    # The event loop waits for threads of the store, which wait for the interpreter's lock for so long if the loop is busy.
    sys.setswitchinterval(_SWITCH_S)
    try:
        run_until_signal(single_node(settings))
    except ValidationError as error:  # of one service, which also reads the variables with its own prefix
        sys.exit(f"kubevnfm: {faults_of(error, service_variable)}")


def _demo(arguments: argparse.Namespace) -> None:
    from kubevnfm_kit.logging import configure_logging

    from kubevnfm import demo, demo_capi, demo_ha, demo_multicloud

    configure_logging("kubevnfm", level="WARNING", form="console")
    others = {"ha": demo_ha.HA, "capi": demo_capi.CAPI, "multicloud": demo_multicloud.MULTICLOUD}
    chosen = next((one for name, one in others.items() if getattr(arguments, name)), demo.MAIN)
    asyncio.run(demo.run(chosen, arguments.samples, arguments.node_seconds))


def _hash_password() -> None:
    from kubevnfm_access.passwords import PasswordHash

    sys.stdout.write(f"{PasswordHash.from_password(_password())}\n")


def _password() -> str:
    """Return the password typed without echo, or the first line of standard input."""
    given = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not given:
        raise ValueError("the password is empty")
    return given


def _end(command: Callable[[], None]) -> NoReturn:
    """Run a command and exit: 0, or 1 with one line that names the error."""
    from kubevnfm_kit.errors import VnfmError

    try:
        command()
    except (VnfmError, OSError, ValueError) as error:  # a TimeoutError is an OSError
        sys.stderr.write(f"kubevnfm: {str(error) or type(error).__name__}\n")
        sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    # `python -m kubevnfm.cli run`, as tests start it.
    {"run": run, "demo": demo, "hash-password": hash_password, "backup": backup, "restore": restore}[sys.argv.pop(1)]()
