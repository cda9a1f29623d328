"""``kubevnfm drift``: VNFs whose resources others have changed or deleted."""

from __future__ import annotations

from typing import Final

from kubevnfm_cli import lists
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, UsageFault
from kubevnfm_cli.json_types import JsonObject, part
from kubevnfm_cli.nouns import age, noun_of, value_at
from kubevnfm_cli.ordering import sorted_by
from kubevnfm_cli.output import Column, Table, add_table_options, check_table_options, show_list


def _objects(one: JsonObject) -> str | None:
    found = part(one, "drift", "objects")
    return str(len(found)) if isinstance(found, list | dict) and found else None


TABLE: Final = Table(
    "vnf",
    (
        Column("ID", value_at("id")),
        Column("NAME", value_at("name")),
        Column("DRIFT", value_at("drift", "state")),
        age("SINCE", "drift", "since"),
        Column("MISSING", value_at("drift", "missing"), is_wide=True),
        Column("CHANGED", value_at("drift", "changed"), is_wide=True),
        Column("OBJECTS", _objects),
        Column("REASON", value_at("drift", "reason")),
    ),
)


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = "kubevnfm heal VNF repairs a VNF; docs/drift.md says what is found."
    parser.add_argument("ids", metavar="VNF", nargs="*", help="only these; all that have drifted unless given")
    parser.add_argument("--limit", type=int, default=lists.MOST, help="list at most so many (default: %(default)s)")
    add_table_options(parser)


def run(call: Call) -> int:
    """List what has drifted."""
    noun, limit = noun_of("vnf"), call.given.limit
    if limit < 1:
        raise UsageFault("--limit: at least 1 expected")
    check_table_options(call)
    field = call.given.sort_by
    if field is not None:
        sorted_by(field, TABLE, [], noun.item)  # a wrong field is refused before anything is asked
    wanted = {lists.resolve(call.gateway, noun, one) for one in call.given.ids}
    # The gateway lists VNFs with a problem; drift is one of several.
    listed = lists.read_list(call.gateway, noun, {"problem": "true"}, lists.ALL)
    found = [one for one in listed.items if one.get("drift") and (not wanted or one.get("id") in wanted)]
    items = found[:limit] if field is None else sorted_by(field, TABLE, found, noun.item)[:limit]
    show_list(call, listed.with_items(items).body, items, TABLE)
    if len(found) > limit:
        call.note(f"there are {len(found)}: --limit shows more")
    return DONE
