"""``kubevnfm wait`` and ``kubevnfm watch``: follow an operation until it has ended, or waits for an operator."""

from __future__ import annotations

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.durations import seconds_of
from kubevnfm_cli.following import wait
from kubevnfm_cli.operations import add_operation, named_operation


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = (
        "Shows the state first, then what happens: a live view in a terminal, one line an event elsewhere. Ends at once if the\n"
        "operation has ended already. Ctrl-C never cancels the operation. Exit codes: 0 COMPLETED, 5 FAILED, FAILED_TEMP or\n"
        "ROLLED_BACK, 3 the time ran out or Ctrl-C."
    )
    add_operation(parser)
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=seconds_of,
        help="end with exit code 3 after 90s, 10m or 1h30m (default: never)",
    )


def run(call: Call) -> int:
    """Wait."""
    call.gateway.give_up_after(call.given.timeout)
    operation_id = named_operation(call.gateway, call.given.words)
    return wait(call, operation_id, timeout_s=call.given.timeout, is_own_output=True)
