"""``kubevnfm delete NOUN ID...`` and ``kubevnfm delete -f FILE``."""

from __future__ import annotations

from kubevnfm_cli import lists
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import CONFLICT, DONE, Fault, Refused, UsageFault
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.json_types import part
from kubevnfm_cli.nouns import Noun, noun_of
from kubevnfm_cli.site import options
from kubevnfm_cli.terminal import printable


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = "With -f, what the site files have made is removed in the reverse order, and nothing else."
    parser.add_argument("noun", metavar="NOUN", nargs="?", help="the kind of things, or NOUN/ID")
    parser.add_argument("ids", metavar="ID", nargs="*", help="an id, the beginning of an id, or a name")
    options.add_files(parser, is_required=False)
    options.add_run_options(parser)


def run(call: Call) -> int:
    """Delete things, or remove what files have made."""
    given = call.given
    if given.files:
        if given.noun:
            raise UsageFault("delete: NOUN ID or -f FILE expected, not both")
        from kubevnfm_cli.site import commands

        return commands.run(call, "delete")
    word, _, identifier = (given.noun or "").partition("/")
    wanted = [identifier, *given.ids] if identifier else given.ids
    if not wanted:
        raise UsageFault("delete: NOUN ID or -f FILE expected")
    noun = noun_of(word)
    if noun.name == "alarm":
        raise UsageFault(
            "alarms are not deleted: each is cleared when its fault has ended; kubevnfm ack says that you have seen it"
        )
    if noun.name == "op":
        raise UsageFault("an operation cannot be deleted; cancel stops it")
    # All names are found before anything is deleted.
    found = dict.fromkeys(lists.resolve(call.gateway, noun, one, least=lists.LEAST_TO_END) for one in wanted)
    for one in found:
        if not given.dry_run:
            _delete(call.gateway, noun, one)
        call.out.say(f"{noun.name}/{printable(one)}{' would be deleted' if given.dry_run else ''}")
    return DONE


def _delete(gateway: Gateway, noun: Noun, identifier: str) -> None:
    """Delete a thing. A package is disabled first, as the gateway wants it, unless VNFs use it."""
    path = lists.changed_path(noun, identifier)
    if noun.name == "pkg":
        package = lists.read_one(gateway, noun, identifier)
        if package.get("operationalState") == "ENABLED" and package.get("usageState") == "NOT_IN_USE":
            gateway.call("PATCH", path, {"operationalState": "DISABLED"})
        elif package.get("usageState") == "IN_USE":
            fault = Fault(f"package {printable(identifier)} is in use: kubevnfm get vnf -o wide shows by which VNFs")
            fault.code = CONFLICT
            raise fault
    if noun.name == "sub":
        # Each API deletes its own subscriptions alone.
        shown = lists.read_one(gateway, noun, identifier)
        path = str(part(shown, "_links", "subscription", "href") or path)
    try:
        gateway.call("DELETE", path)
    except Refused as refused:
        if (noun.name, refused.code) != ("vim", CONFLICT):
            raise
        way = f"kubevnfm get vnf --where vimId={printable(identifier)} lists the VNFs on it"
        raise Refused(refused.status, f"{refused}; {way}", refused.body) from None
