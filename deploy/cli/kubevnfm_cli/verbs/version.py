"""``kubevnfm version``."""

from __future__ import annotations

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, Fault
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.json_types import part
from kubevnfm_cli.output import show_body
from kubevnfm_cli.terminal import printable


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("--client", action="store_true", help="do not ask the gateway")


def run(call: Call) -> int:
    """Show the versions."""
    versions = {"client": client_version()}
    fault = None
    if not call.given.client:
        try:
            versions["gateway"] = gateway_version(call.gateway)
        except Fault as caught:
            fault = caught
    if call.format.is_for_people:
        for name, number in versions.items():
            call.out.say(f"{name} {printable(number)}")
    else:
        show_body(call, versions)
    if fault is not None:
        raise fault
    return DONE


def client_version() -> str:
    """Return the version of the command line."""
    from importlib.metadata import version

    return version("kubevnfm-cli")


def gateway_version(gateway: Gateway) -> str:
    """Return the version of the gateway. Raises Refused, Unreachable, Fault."""
    return str(part(gateway.get("/openapi.json").object(), "info", "version"))
