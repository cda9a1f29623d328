"""``kubevnfm create NOUN``."""

from __future__ import annotations

from typing import Final

from kubevnfm_cli import bodies, lists
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, UsageFault
from kubevnfm_cli.nouns import Noun, noun_of
from kubevnfm_cli.output import show_one
from kubevnfm_cli.sending import add_dry_run, dry_run_query, show_plan
from kubevnfm_cli.terminal import printable
from kubevnfm_cli.verbs.tasks import vnfd_of

_FLAGS = ("name", "description", "package", "vnfd", "metadata")

_NOT_CREATED: Final = {
    "alarm": "alarms are not created: kubevnfm raises them",
    "op": "an operation is started by instantiate, scale, heal, operate, change-package, modify or terminate",
    "automatic-action": "automatic actions are not created: alarms, thresholds and monitoring systems ask for them",
}


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = (
        "vnf: by flags or -f FILE; vim, region, link, volume, sub, pmjob, threshold and pkg: by -f FILE\nalone. kubevnfm upload makes a package\n"
        "of an archive, and kubevnfm instantiate starts a VNF that was created."
    )
    parser.add_argument(
        "noun", metavar="NOUN", help="the kind of thing: vnf, vim, region, link, volume, sub, pmjob, threshold or pkg"
    )
    parser.add_argument("--package", metavar="PKG", help="vnf: its package, by id or product name")
    parser.add_argument("--vnfd", metavar="ID", help="vnf: its package, by the id of the VNFD")
    parser.add_argument("--name", help="vnf: its name")
    parser.add_argument("--description", help="vnf: a text")
    parser.add_argument("--metadata", metavar="KEY=VALUE", action="append", default=[], help="vnf: repeatable")
    bodies.add_body_options(parser, has_parameters=False)
    add_dry_run(parser)


def run(call: Call) -> int:
    """Create one."""
    noun, given = noun_of(call.given.noun), call.given
    body = bodies.read_body(given.file)
    if noun.name == "vnf":
        flags = {
            "vnfdId": vnfd_of(call),
            "vnfInstanceName": given.name,
            "vnfInstanceDescription": given.description,
            "metadata": bodies.key_values(given.metadata, "--metadata"),
        }
        body = bodies.merged(body, flags)
        if "vnfdId" not in body:
            raise UsageFault("create vnf: --package PKG or --vnfd ID expected, or vnfdId in -f FILE")
    elif noun.name in _NOT_CREATED:
        raise UsageFault(_NOT_CREATED[noun.name])
    elif any(getattr(given, name) for name in _FLAGS) or (given.file is None and noun.name != "pkg"):
        raise UsageFault(f"create {noun.name}: -f FILE expected; kubevnfm explain {noun.name} shows its fields")
    if given.dry_run and noun.name != "vnf":
        raise UsageFault(f"create {noun.name}: --dry-run is for vnf")
    reply = call.gateway.call("POST", lists.changed_path(noun), _wrapped(noun, body), query=dry_run_query(call))
    if given.dry_run:
        return show_plan(call, reply)
    made = reply.object()
    if call.format.is_for_people:
        call.out.say(f"{noun.name}/{printable(noun.table.id_of(noun.item(made)))}")
    else:
        show_one(call, made if call.format.kind not in ("name", "csv") else noun.item(made), noun.table)
    return DONE


def _wrapped(noun: Noun, body: dict[str, object]) -> dict[str, object]:
    """Return the body in the form of its API: a VIM is inside ``vim``."""
    return {noun.inside: body} if noun.inside and noun.inside not in body else body
