"""``kubevnfm get NOUN [ID...]``."""

from __future__ import annotations

from kubevnfm_cli import lists
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, UsageFault
from kubevnfm_cli.nouns import NOUNS, noun_of
from kubevnfm_cli.output import show_list

_NOUNS = "\n".join(f"  {noun.name:<8}{noun.title}" for noun in NOUNS)


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = f"nouns:\n{_NOUNS}"
    parser.add_argument("noun", metavar="NOUN", help="the kind of things, or NOUN/ID")
    parser.add_argument("ids", metavar="ID", nargs="*", help="an id, the beginning of an id, or a name")
    parser.add_argument(
        "--limit", type=int, help=f"list at most so many (default: {lists.MOST} as a table, all otherwise)"
    )
    parser.add_argument(
        "--where", metavar="NAME=VALUE", action="append", default=[], help="a query parameter of the list; repeatable"
    )


def run(call: Call) -> int:
    """List, or show some."""
    word, _, identifier = call.given.noun.partition("/")
    noun = noun_of(word)
    wanted = [identifier, *call.given.ids] if identifier else call.given.ids
    limit = call.given.limit
    if limit is None:
        limit = lists.MOST if call.format.is_for_people else lists.ALL
    if limit < 1:
        raise UsageFault("--limit: at least 1 expected")
    if not wanted:
        listed = lists.read_list(call.gateway, noun, lists.pairs(call.given.where, "--where"), limit)
        show_list(call, listed.body, listed.items, noun.table)
        if listed.has_more:
            call.note(f"there are more than {limit}: --limit and --where select others")
        return DONE
    if call.format.is_for_people or call.format.kind == "csv":
        rows = [lists.read_row(call.gateway, noun, lists.resolve(call.gateway, noun, one)) for one in wanted]
        show_list(call, rows, rows, noun.table)
        return DONE
    bodies = [lists.read_one(call.gateway, noun, lists.resolve(call.gateway, noun, one)) for one in wanted]
    items = [noun.item(body) for body in bodies]
    show_list(
        call, bodies[0] if len(bodies) == 1 else bodies, items if call.format.kind == "name" else bodies, noun.table
    )
    return DONE
