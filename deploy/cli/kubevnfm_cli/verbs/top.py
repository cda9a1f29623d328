"""``kubevnfm top``: what runs, and how much the VIMs have left."""

from __future__ import annotations

from typing import Final

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, Unreachable, UsageFault
from kubevnfm_cli.json_types import JsonObject, objects, part
from kubevnfm_cli.nouns import age, duration, either, nodes_ready, number, steps_done, value_at
from kubevnfm_cli.output import Column, show_body, table_text
from kubevnfm_cli.terminal import printable

_HOME: Final = "\x1b[H\x1b[J"
"""Clears the terminal."""
_MOST: Final = 50
_FASTEST_S: Final = 0.5


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--watch",
        metavar="SECONDS",
        type=float,
        nargs="?",
        const=2.0,
        help="show it again and again (default: each 2 seconds), until Ctrl-C",
    )
    parser.add_argument("--limit", type=int, default=_MOST, help="show at most so many of each (default: %(default)s)")


def run(call: Call) -> int:
    """Show the open operations and the VIMs."""
    if call.given.limit < 1:
        raise UsageFault("--limit: at least 1 expected")
    every_s = call.given.watch
    if every_s is None:
        _show(call, _read(call))
        return DONE
    if not every_s >= _FASTEST_S:
        raise UsageFault(f"--watch: at least {_FASTEST_S:g} seconds expected")
    while True:
        try:
            shown = _read(call)
        except Unreachable as away:
            call.note(f"{away}; next try in {every_s:g} s")
        else:
            if call.out.is_terminal and call.format.is_for_people:
                call.out.stream.write(_HOME)
            _show(call, shown)
        call.gateway.pause(every_s)


def _read(call: Call) -> JsonObject:
    limit = str(min(call.given.limit, 1000))
    operations = call.gateway.get("/kubevnfm/v1/operations", {"state": "open", "limit": limit}).object()
    vims = call.gateway.get("/kubevnfm/v1/vims", {"limit": limit}).object()
    return {"operations": operations.get("items", []), "vims": vims.get("items", [])}


def _show(call: Call, shown: JsonObject) -> None:
    if not call.format.is_for_people:
        show_body(call, shown)
        return
    is_wide = call.format.kind == "wide"
    for title, items, columns in (
        ("no operation runs", objects(shown["operations"]), OPERATIONS),
        ("no VIM is registered", objects(shown["vims"]), VIMS),
    ):
        call.out.stream.write(table_text(call.out, items, columns, is_wide=is_wide) if items else f"{title}\n")
        call.out.stream.write("\n" if columns is OPERATIONS else "")
    call.out.stream.flush()


def _left(one: JsonObject) -> str | None:
    remaining = number(part(one, "estimate", "remainingS"))
    return None if remaining is None else duration(remaining)


def _current(one: JsonObject) -> str | None:
    current = part(one, "steps", "current")
    return part(one, "cause", "text") or (", ".join(map(str, current)) if isinstance(current, list) else None)


def _quota(name: str, one: JsonObject) -> str | None:
    """Return how much of a quota is used."""
    for quota in objects(part(one, "capacity", "quotas")):
        if quota.get("name") == name:
            limit = quota.get("limit")
            return (
                printable(quota.get("used")) if limit is None else f"{printable(quota.get('used'))}/{printable(limit)}"
            )
    return None


def _cpu(one: JsonObject) -> str | None:
    cores = number(part(one, "capacity", "cpu"))
    return _quota("cores", one) if cores is None else f"{cores:g}"


def _memory(one: JsonObject) -> str | None:
    total = number(part(one, "capacity", "memoryBytes"))
    if total is not None:
        return f"{total / 2**30:.1f} GiB"
    used = _quota("ram_mib", one)
    return f"{used} MiB" if used else None


def _machines(one: JsonObject) -> str | None:
    ready = nodes_ready(one)
    return f"{ready} nodes" if ready else _quota("instances", one)


OPERATIONS: Final = (
    Column("OPERATION", value_at("operation")),
    Column("VNF", either("vnfInstanceName", "vnfInstanceId")),
    Column("STATE", value_at("state"), is_state=True),
    Column("STEPS", steps_done),
    age("FOR", "startTime"),
    Column("LEFT", _left),
    Column("ID", value_at("id"), is_wide=True),
    Column("WAITS FOR", _current),
)
VIMS: Final = (
    Column("VIM", value_at("name")),
    Column("TYPE", value_at("type")),
    Column("STATE", value_at("state"), is_state=True),
    Column("MACHINES", _machines),
    Column("CPU", _cpu),
    Column("MEMORY", _memory),
    Column("VNFS", value_at("vnfCount")),
    age("READ", "capacity", "asOf", is_wide=True),
    Column("REASON", value_at("text")),
)
