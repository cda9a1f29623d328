"""``kubevnfm ack ALARM...``: say that a person has seen alarms."""

from __future__ import annotations

from http import HTTPStatus

from kubevnfm_cli import lists
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, Refused
from kubevnfm_cli.nouns import noun_of
from kubevnfm_cli.terminal import printable

_PATCH = {"Content-Type": "application/merge-patch+json"}


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("alarms", metavar="ALARM", nargs="+", help="an id, or the beginning of an id")
    parser.add_argument("--undo", action="store_true", help="take it back: the alarms count as not seen")


def run(call: Call) -> int:
    """Acknowledge them; one that is in this state already is no fault."""
    noun = noun_of("alarm")
    state = "UNACKNOWLEDGED" if call.given.undo else "ACKNOWLEDGED"
    # All are found before one is changed.
    for one in dict.fromkeys(lists.resolve(call.gateway, noun, each) for each in call.given.alarms):
        try:
            call.gateway.call("PATCH", lists.one_path(noun, one), {"ackState": state}, headers=_PATCH)
        except Refused as refused:
            if refused.status != HTTPStatus.CONFLICT:
                raise
        call.out.say(f"alarm/{printable(one)}")
    return DONE
