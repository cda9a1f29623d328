"""``kubevnfm events``: what happens, until Ctrl-C."""

from __future__ import annotations

import json

from kubevnfm_cli import lines, lists
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.durations import seconds_of
from kubevnfm_cli.events import Event, Stream, Tick
from kubevnfm_cli.faults import DONE, Stopped, UsageFault
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.nouns import noun_of
from kubevnfm_cli.terminal import LINE, printable, printable_json


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = "-o jsonl writes each event as one line of JSON. A stream that is interrupted goes on where it was."
    parser.add_argument("--vnf", metavar="ID", help="of this VNF only")
    parser.add_argument("--op", metavar="ID", help="of this operation only")
    parser.add_argument(
        "--type", metavar="PATTERN", action="append", help="routing keys with * and #: lcm.#; repeatable"
    )
    parser.add_argument(
        "--timeout", metavar="TIME", type=seconds_of, help="end after 90s, 10m or 1h30m (default: never)"
    )


def run(call: Call) -> int:
    """Follow the events."""
    if call.format.kind not in ("table", "wide", "json", "jsonl"):
        raise UsageFault(f"-o {call.format.kind}: jsonl expected for events")
    gateway, given = call.gateway, call.given
    query = {
        "vnfInstanceId": lists.resolve(gateway, noun_of("vnf"), given.vnf) if given.vnf else None,
        "operation": lists.resolve(gateway, noun_of("op"), given.op) if given.op else None,
        "type": ",".join(given.type) if given.type else None,
    }
    gateway.give_up_after(given.timeout)
    try:
        for one in Stream(gateway, query, after=None, trouble=call.note):
            if one is Tick.MISSED:
                call.note("events may be missing here: the gateway no longer knows the last one that was shown")
            elif isinstance(one, Event):
                call.out.say(_line(one) if call.format.is_for_people else _json(one.body))
    except Stopped:
        return DONE
    return DONE


def _line(event: Event) -> str:
    known = lines.line_of(event)
    subject = event.body.get("subject")
    about = f" [{printable(subject)[:8]}]" if subject else ""
    if known is not None:
        at, _, text = known.partition(" ")
        return f"{at}{about} {text}"
    return printable(
        f"{lines.time_text(event.time)}{about} {event.kind} {json.dumps(event.data, ensure_ascii=False)}", LINE
    )


def _json(body: JsonObject) -> str:
    return printable_json(json.dumps(body, ensure_ascii=False))
