"""``kubevnfm get NOUN [ID...]``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final

from kubevnfm_cli import lists
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.durations import seconds_of
from kubevnfm_cli.faults import DONE, Refused, Stopped, UsageFault
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.nouns import NOUNS, Noun, noun_of
from kubevnfm_cli.ordering import sorted_by
from kubevnfm_cli.output import add_table_options, check_table_options, show_list

_ALL: Final = "all"
_WIDTH: Final = max(len(noun.name) for noun in NOUNS) + 2
_NOUNS = "\n".join(f"  {noun.name:<{_WIDTH}}{noun.title}" for noun in NOUNS)


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = f"nouns:\n{_NOUNS}"
    parser.add_argument("noun", metavar="NOUN", help="the kind of things, several by commas, all, or NOUN/ID")
    parser.add_argument("ids", metavar="ID", nargs="*", help="an id, the beginning of an id, or a name")
    parser.add_argument(
        "--limit", type=int, help=f"list at most so many (default: {lists.MOST} as a table, all otherwise)"
    )
    parser.add_argument(
        "-w", "--watch", action="store_true", help="then a line for each change, until Ctrl-C; -o json: an object each"
    )
    parser.add_argument("--watch-only", action="store_true", help="as --watch, without what there is now")
    parser.add_argument(
        "--output-watch-events", action="store_true", help="with --watch: say ADDED, MODIFIED or DELETED of each"
    )
    parser.add_argument(
        "--timeout", metavar="TIME", type=seconds_of, help="with --watch: end after 90s, 10m or 1h30m (default: never)"
    )
    parser.add_argument(
        "--where", metavar="NAME=VALUE", action="append", default=[], help="a query parameter of the list; repeatable"
    )
    add_table_options(parser)


def run(call: Call) -> int:
    """List, or show some."""
    given = call.given
    is_watch = given.watch or given.watch_only
    if given.limit is not None and given.limit < 1:
        raise UsageFault("--limit: at least 1 expected")
    if not is_watch and (given.timeout is not None or given.output_watch_events):
        raise UsageFault(f"{'--timeout' if given.timeout is not None else '--output-watch-events'} is for --watch")
    if is_watch and given.sort_by is not None:
        raise UsageFault("--sort-by is not for --watch, which shows things as they change")
    check_table_options(call)
    if given.noun == _ALL or "," in given.noun:
        return _lists(call)
    word, _, identifier = given.noun.partition("/")
    noun = noun_of(word)
    wanted = [identifier, *given.ids] if identifier else given.ids
    limit = given.limit
    if limit is None:
        limit = lists.MOST if call.format.is_for_people or is_watch else lists.ALL
    if wanted and given.where:
        raise UsageFault("--where is for lists, which have no ID")
    if is_watch:
        return _watch(call, noun, wanted, limit)
    _sorted(call, noun, [])  # a wrong field is refused before anything is asked
    if not wanted:
        # The first ones of an order are known when all are.
        read = limit if given.sort_by is None else lists.ALL
        listed = lists.read_list(call.gateway, noun, lists.pairs(given.where, "--where"), read)
        shown = listed.with_items(_sorted(call, noun, listed.items)[:limit])
        show_list(call, shown.body, shown.items, noun.table)
        if listed.has_more or len(listed.items) > limit:
            call.note(f"there are more than {limit}: --limit and --where select others")
        return DONE
    found = [lists.resolve(call.gateway, noun, one) for one in wanted]
    if call.format.has_columns:
        rows = _sorted(call, noun, [lists.read_row(call.gateway, noun, one) for one in found])
        show_list(call, rows, rows, noun.table)
        return DONE
    bodies = _sorted(call, noun, [lists.read_one(call.gateway, noun, one) for one in found])
    items = [noun.item(body) for body in bodies]
    show_list(
        call, bodies[0] if len(bodies) == 1 else bodies, items if call.format.kind == "name" else bodies, noun.table
    )
    return DONE


def _lists(call: Call) -> int:
    """Show the lists of several nouns, one after the other."""
    given = call.given
    if given.ids or given.where or given.watch or given.watch_only or given.sort_by is not None:
        raise UsageFault("several nouns have no ID, --where, --watch or --sort-by")
    if not call.format.is_for_people and call.format.kind != "name":
        raise UsageFault(f"-o {call.format.kind} is for one noun")
    nouns = NOUNS if given.noun == _ALL else [noun_of(word) for word in given.noun.split(",")]
    limit = given.limit or lists.MOST
    has_any = False
    for noun in dict.fromkeys(nouns):
        items = lists.read_list(call.gateway, noun, {}, limit).items
        if items and call.format.is_for_people:
            gap = "\n" if has_any else ""
            call.out.say(f"{gap}{call.out.paint(f'{noun.title}:', 'bold')}")
        if items:
            has_any = True
            show_list(call, items, items, noun.table)
    if not has_any:
        call.note("nothing found")
    return DONE


def _sorted(call: Call, noun: Noun, bodies: Sequence[JsonObject]) -> list[JsonObject]:
    """Return things as ``--sort-by`` orders them."""
    field = call.given.sort_by
    return list(bodies) if field is None else sorted_by(field, noun.table, bodies, noun.item)


def _watch(call: Call, noun: Noun, wanted: Sequence[str], limit: int) -> int:
    from kubevnfm_cli.watching import Watched, watch

    gateway, given = call.gateway, call.given
    gateway.give_up_after(given.timeout)
    ids = dict.fromkeys(lists.resolve(gateway, noun, one) for one in wanted)
    query = lists.pairs(given.where, "--where")

    def read_one(identifier: str) -> JsonObject | None:
        try:
            return (lists.read_row if call.format.has_columns or not ids else lists.read_one)(gateway, noun, identifier)
        except Refused as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def read_ids(wanted: Iterable[str]) -> dict[str, JsonObject]:
        found = {identifier: read_one(identifier) for identifier in wanted}
        return {identifier: one for identifier, one in found.items() if one is not None}

    def read_all() -> lists.Listed:
        return lists.read_list(gateway, noun, query, 1 if ids else limit)

    def by_id(items: Sequence[JsonObject]) -> dict[str, JsonObject]:
        return {str(noun.table.id_of(one)): one for one in items}

    def read(some: Sequence[str] | None) -> dict[str, JsonObject]:
        if ids:
            return read_ids(ids if some is None else [one for one in some if one in ids])
        return by_id(read_all().items if some is None else lists.read_some(gateway, noun, query, some))

    try:
        # The place in the stream is that of the list, also for things by their ids, which are read behind it.
        listed = read_all()
        sequence = listed.body.get("sequence") if noun.has_events and isinstance(listed.body, dict) else None
        first = read_ids(ids) if ids else by_id(listed.items)
        if len(first) < len(ids):
            raise Refused(
                HTTPStatus.NOT_FOUND, f"no {noun.name} has this id; kubevnfm get {noun.name} lists what there is"
            )
        watched = Watched(noun, first, sequence, read, read_one, ends_without=bool(ids))
        watch(call, watched, shows_first=not given.watch_only, shows_kinds=given.output_watch_events)
    except Stopped:
        return DONE
    return DONE
