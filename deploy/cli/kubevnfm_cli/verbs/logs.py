"""``kubevnfm logs ID``: what the machines of an operation printed."""

from __future__ import annotations

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE
from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.operations import named_operation
from kubevnfm_cli.terminal import printable_text


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "words", metavar="[op|vnf] ID", nargs="+", help="an operation, or a VNF: its running or else newest operation"
    )
    parser.add_argument("--node", help="of this machine only")


def run(call: Call) -> int:
    """Show the log as it comes."""
    gateway = call.gateway
    operation = named_operation(gateway, call.given.words)
    path = path_of("kubevnfm", "v1", "operations", operation, "log")
    query = {"node": call.given.node}
    with gateway.stream(path, query=query, headers={"Accept": "text/plain"}) as lines:
        for line in lines:
            text = line.decode(errors="replace")
            call.out.stream.write(printable_text(text) if call.out.is_terminal else text)
            call.out.stream.flush()
    return DONE
