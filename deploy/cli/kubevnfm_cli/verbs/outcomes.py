"""The decisions about an operation that runs or has failed: retry, rollback, fail, cancel."""

from __future__ import annotations

from typing import Final

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE
from kubevnfm_cli.following import SUCCESS
from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.operations import add_operation, named_operation
from kubevnfm_cli.sending import add_wait_options, proceed, waits

_ENDS: Final = {
    "retry": SUCCESS,
    "rollback": frozenset({"ROLLED_BACK"}),
    "fail": frozenset({"FAILED"}),
    "cancel": frozenset({"FAILED_TEMP", "ROLLED_BACK", "FAILED"}),
}
"""The states in which the verb has reached its aim."""


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    add_operation(parser)
    if parser.verb == "cancel":
        parser.add_argument(
            "--mode",
            choices=("graceful", "forceful"),
            default="graceful",
            help="graceful: let the running steps end, and begin no other (default); forceful: stop them now",
        )
    add_wait_options(parser)


def run(call: Call) -> int:
    """Send it."""
    operation_id = named_operation(call.gateway, call.given.words)
    body = None
    if call.verb == "cancel":
        body = {"cancelMode": call.given.mode.upper()}
    call.gateway.call("POST", path_of("vnflcm", "v2", "vnf_lcm_op_occs", operation_id, call.verb), body)
    if call.verb == "fail" and call.format.is_for_people and not waits(call):
        call.out.say(f"op/{operation_id}")
        return DONE
    return proceed(call, operation_id, _ENDS[call.verb])
