"""``kubevnfm logs ID``: what the machines of an operation printed."""

from __future__ import annotations

import time
from typing import Final

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, Unreachable
from kubevnfm_cli.following import read_operation
from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.operations import add_operation, named_operation
from kubevnfm_cli.terminal import printable_text

_SILENCE_S: Final = 10.0
"""The gateway sends an empty line after 15 s without output."""


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    add_operation(parser)
    parser.add_argument("--node", help="of this machine only")
    parser.add_argument("--task", help="of this task only, as describe op names it")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="continue until nothing of the operation runs any more"
    )


def run(call: Call) -> int:
    """Show the log as it comes."""
    gateway = call.gateway
    operation = named_operation(gateway, call.given.words)
    path = path_of("kubevnfm", "v1", "operations", operation, "log")
    given = call.given
    query = {"node": given.node, "task": given.task, "follow": "true" if given.follow else None}
    spoke_at, has_output = time.monotonic(), False
    with gateway.stream(path, query=query, headers={"Accept": "text/plain"}) as lines:
        for line in lines:
            was_silent = time.monotonic() - spoke_at > _SILENCE_S
            spoke_at = time.monotonic()
            if given.follow and was_silent and not line.strip():
                continue  # the gateway's sign of life
            text = line.decode(errors="replace")
            call.out.stream.write(printable_text(text) if call.out.is_terminal else text)
            call.out.stream.flush()
            has_output = True
    if not has_output:
        call.note("no output" if given.node or given.task else "no machine of this operation has printed anything")
    if given.follow and not read_operation(gateway, operation).rests:
        raise Unreachable("the log broke off while the operation goes on; the same command shows it again")
    return DONE
