"""Which operation a person means: by its id, or by the VNF that it is about."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_cli import lists
from kubevnfm_cli.call import Parser
from kubevnfm_cli.faults import Refused, UsageFault
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.nouns import WORDS, noun_of
from kubevnfm_cli.terminal import printable


def add_operation(parser: Parser, *, several: bool = False) -> None:
    """Add the argument that names an operation, or several."""
    more = "; several are shown one after the other" if several else ""
    metavar = "[op|vnf] ID..." if several else "[op|vnf] ID"
    parser.add_argument(
        "words", metavar=metavar, nargs="+", help=f"an operation, or a VNF: its running or else newest operation{more}"
    )


def named_operations(gateway: Gateway, words: Sequence[str]) -> list[str]:
    """Return the ids of the operations that ``[op|vnf] ID...`` names, each once. Raises as `named_operation`."""
    kind, names = ([words[0]], words[1:]) if words[0] in WORDS and len(words) > 1 else ([], words)
    return list(dict.fromkeys(named_operation(gateway, [*kind, each]) for each in names))


def named_operation(gateway: Gateway, words: Sequence[str]) -> str:
    """Return the id of the operation that ``[op|vnf] ID``, or ``op/ID``, names; of a VNF its running one, or else its newest.

    Raises UsageFault, Refused, Unreachable.
    """
    if len(words) == 2 and words[0] not in WORDS:
        return _of_vnf(gateway, *words)  # the form of earlier versions
    kind, name = _parted(words)
    if kind == "op":
        return lists.resolve(gateway, noun_of("op"), name)
    if kind == "vnf":
        return newest_operation(gateway, lists.resolve(gateway, noun_of("vnf"), name))
    # A name such as `cafe` may be the beginning of another VNF's operation.
    instance_id = lists.named(gateway, noun_of("vnf"), name)
    if instance_id is not None:
        return newest_operation(gateway, instance_id)
    try:
        found = lists.resolve(gateway, noun_of("op"), name)
        lists.read_one(gateway, noun_of("op"), found)
    except Refused as refused:
        if refused.status != 404:
            raise
        return newest_operation(gateway, lists.resolve(gateway, noun_of("vnf"), name))
    return found


def _of_vnf(gateway: Gateway, vnf: str, operation: str) -> str:
    """Return the id of a VNF's operation. Raises UsageFault if it is another one's."""
    found = lists.resolve(gateway, noun_of("op"), operation)
    instance_id = lists.resolve(gateway, noun_of("vnf"), vnf)
    if lists.read_one(gateway, noun_of("op"), found).get("vnfInstanceId") != instance_id:
        raise UsageFault(f"operation {printable(found)} is not one of the VNF {printable(vnf)}")
    return found


def newest_operation(gateway: Gateway, instance_id: str) -> str:
    """Return the id of a VNF's running operation, or else of its newest one. Raises Refused, Unreachable."""
    # The list begins with the ones that have not ended, each group with the newest.
    found = lists.read_list(gateway, noun_of("op"), {"vnfInstanceId": instance_id}, 1).items
    if not found:
        lists.read_one(gateway, noun_of("vnf"), instance_id)  # there may be no such VNF
        raise Refused(404, f"VNF {printable(instance_id)} has had no operation")
    return str(found[0].get("id"))


def _parted(words: Sequence[str]) -> tuple[str, str]:
    """Return kind (``op``, ``vnf`` or nothing) and name."""
    if len(words) == 1:
        kind, slash, name = words[0].partition("/")
        if not slash:
            return "", words[0]
    elif len(words) == 2 and words[0] in WORDS:
        kind, name = words
    else:
        raise UsageFault("op ID or vnf ID expected")
    noun = noun_of(kind).name
    if noun not in ("op", "vnf"):
        raise UsageFault(f"{printable(kind)}: op or vnf expected")
    return noun, name
