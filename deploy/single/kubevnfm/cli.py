"""``kubevnfm``: runs the six services in one process, the demo, and follows operations.

Importing all services takes seconds, so each command imports only what it needs, and help nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import getpass
import sys
from pathlib import Path
from typing import Final

from kubevnfm_kit.errors import VnfmError

_SWITCH_S: Final = 0.0005
"""A tenth of Python's default: an answer of the store takes less than a millisecond."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kubevnfm", description="the six services in one process, the demo, and a look at operations"
    )
    commands = parser.add_subparsers(required=True)
    ran = commands.add_parser(
        "run", help="run all services in this process; settings by KUBEVNFM_<NAME> or kubevnfm.toml"
    )
    ran.set_defaults(command=_run)
    shown = commands.add_parser("demo", help="do the main job once, on the lab, and show it")
    shown.add_argument(
        "--samples", type=Path, default=Path(".run/samples"), help="folder of the packed sample packages"
    )
    shown.add_argument(
        "--node-seconds", type=float, default=1.0, help="how long kubeadm takes on each machine of the lab"
    )
    variants = shown.add_mutually_exclusive_group()
    variants.add_argument(
        "--ha", action="store_true", help="another one: three masters and a storage server, scale and heal of them"
    )
    variants.add_argument(
        "--capi", action="store_true", help="another one: a workload cluster that Cluster API builds, and a CNF on it"
    )
    variants.add_argument(
        "--multicloud", action="store_true", help="another one: two clusters as cloud regions, and VNFs in them"
    )
    shown.set_defaults(command=_demo)
    watched = commands.add_parser("watch", help="follow what happens to a VNF instance's operation")
    watched.add_argument("instance", help="VNF instance id")
    watched.add_argument("operation", help="VNF LCM operation occurrence id")
    watched.add_argument("--url", default="http://127.0.0.1:9890", help="the gateway (default: %(default)s)")
    watched.set_defaults(command=_watch)
    hashed = commands.add_parser("hash-password", help="read a password, print what stands for it in the users file")
    hashed.set_defaults(command=_hash_password)
    return parser


def _run(_: argparse.Namespace) -> int:
    # Almost nothing that imports make is garbage; to look for it takes a sixth of the start. The running service looks again.
    gc.disable()
    from kubevnfm_kit.logging import configure_logging
    from kubevnfm_kit.run import run_until_signal
    from kubevnfm_kit.settings import faults_of
    from pydantic import ValidationError

    from kubevnfm.settings import Settings
    from kubevnfm.single import single_node

    settings = Settings.read_or_exit()
    configure_logging("kubevnfm", level=settings.log_level, form="console")
    # The event loop waits for threads of the store, which wait for the interpreter's lock for so long if the loop is busy.
    sys.setswitchinterval(_SWITCH_S)
    try:
        run_until_signal(single_node(settings))
    except ValidationError as error:  # of one service, which also reads the variables with its own prefix
        sys.exit(f"kubevnfm: {faults_of(error, '')}")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from kubevnfm_kit.logging import configure_logging

    from kubevnfm import demo, demo_capi, demo_ha, demo_multicloud

    configure_logging("kubevnfm", level="WARNING", form="console")
    others = {"ha": demo_ha.HA, "capi": demo_capi.CAPI, "multicloud": demo_multicloud.MULTICLOUD}
    chosen = next((one for name, one in others.items() if getattr(arguments, name)), demo.MAIN)
    asyncio.run(demo.run(chosen, arguments.samples, arguments.node_seconds))
    return 0


def _watch(arguments: argparse.Namespace) -> int:
    from kubevnfm.client import ClientSettings, GatewayClient
    from kubevnfm.watch import follow, say

    async def begun() -> str:
        return str(arguments.operation)

    async def watch() -> int:
        async with GatewayClient(arguments.url, ClientSettings.read_or_exit()) as client:
            view = await follow(client, arguments.instance, begun)
        say(f"{view['operation']} {view['state']}")
        return 0 if view["state"] == "COMPLETED" else 1

    return asyncio.run(watch())


def _hash_password(_: argparse.Namespace) -> int:
    from kubevnfm_access.passwords import PasswordHash

    sys.stdout.write(f"{PasswordHash.from_password(_password())}\n")
    return 0


def _password() -> str:
    """Return the password typed without echo, or the first line of standard input."""
    given = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not given:
        raise ValueError("the password is empty")
    return given


def main() -> None:
    """Run the command line; exit code 0, or 1 with one line that names the error."""
    arguments = _parser().parse_args()
    try:
        code = arguments.command(arguments)
    except (VnfmError, OSError, ValueError, TimeoutError) as error:
        sys.stderr.write(f"kubevnfm: {str(error) or type(error).__name__}\n")
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
