"""``kubevnfm version``."""

from __future__ import annotations

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, Fault
from kubevnfm_cli.json_types import part
from kubevnfm_cli.output import show_body
from kubevnfm_cli.terminal import printable


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("--client", action="store_true", help="do not ask the gateway")


def run(call: Call) -> int:
    """Show the versions."""
    from importlib.metadata import version

    versions = {"client": version("kubevnfm-cli")}
    fault = None
    if not call.given.client:
        try:
            described = call.gateway.get("/openapi.json").object()
            versions["gateway"] = str(part(described, "info", "version"))
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
