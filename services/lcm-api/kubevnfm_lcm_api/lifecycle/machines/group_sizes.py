"""The sizes that the auto-scaling groups of a Base HOT may have.

Heat refuses any other size, but only when the stack is changed: after the nodes that leave a cluster were drained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_csar.hot import BaseHot, Template
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.stacks import ServerFacts, StackResources
from kubevnfm_kit.errors import Unprocessable

_GROUP: Final = "OS::Heat::AutoScalingGroup"
_SERVER: Final = "OS::Nova::Server"


def stack_values(
    template: Template, resources: StackResources, given: Mapping[str, Any], *, has_user_data: bool
) -> Mapping[str, Any]:
    """Return the parameters of a stack by name, as far as they are known here.

    ``given``: additionalParams of the instantiate request, which give parameters their values under their own names. User data
    of the package may give them others (``has_user_data``), so then only ``nfv`` is known, which is read from the stack.
    """
    values: dict[str, Any] = {}
    if not has_user_data:
        values = {
            name: given.get(name, about.get("default") if isinstance(about, Mapping) else None)
            for name, about in template.declared.items()
        }
    return {**values, "nfv": resources.nfv}


def check_numbers(field: str, flavour: Flavour, *, present: Mapping[str, int], wanted: Mapping[str, int]) -> None:
    """Raise Unprocessable if a VDU would get more machines than its ``max_number_of_instances``.

    ``present``, ``wanted``: machines by VDU. A VDU that already has more may get fewer.
    """
    for vdu_id, count in wanted.items():
        vdu = flavour.vdus.get(vdu_id)
        most = vdu.max_instances if vdu is not None else None
        if most is not None and count > max(most, present.get(vdu_id, 0)):
            raise Unprocessable(field, f"{count} machines of {vdu_id}, whose max_number_of_instances is {most}")


def check_new_groups(
    field: str, hot: BaseHot, given: Mapping[str, Any], *, wanted: Mapping[str, int], has_user_data: bool
) -> None:
    """As ``check_group_sizes``, for a stack that is made of the templates. ``given``: additionalParams."""
    nfv = given.get("nfv")
    resources = StackResources(stack_id="", stack_name="", nfv=dict(nfv) if isinstance(nfv, Mapping) else {})
    values = stack_values(hot.top, resources, given, has_user_data=has_user_data)
    check_group_sizes(field, hot, resources, present=dict.fromkeys(wanted, -1), wanted=wanted, values=values)


def check_group_sizes(
    field: str,
    hot: BaseHot,
    resources: StackResources,
    *,
    present: Mapping[str, int],
    wanted: Mapping[str, int],
    values: Mapping[str, Any],
) -> None:
    """Raise Unprocessable if a group would get fewer members than its ``min_size``, or more than its ``max_size``.

    ``present``, ``wanted``: machines by VDU; ``values``: parameters of the stack. A limit that only Heat knows is not checked.
    """
    for name, kind in hot.top.resource_types.items():
        if kind != _GROUP:
            continue
        properties = hot.top.resource(name).get("properties")
        if not isinstance(properties, Mapping):
            continue
        least, most = (_number(properties.get(limit), values) for limit in ("min_size", "max_size"))
        for vdu_id in _vdus_of(name, hot, resources.servers, wanted):
            count = wanted[vdu_id]
            if count == present.get(vdu_id, 0):
                continue
            if (least is not None and count < least) or (most is not None and count > most):
                limits = (
                    f"min_size {'unknown' if least is None else least}, max_size {'unknown' if most is None else most}"
                )
                raise Unprocessable(field, f"{count} machines of {vdu_id}: group {name} of the Base HOT has {limits}")


def _vdus_of(group: str, hot: BaseHot, servers: tuple[ServerFacts, ...], wanted: Mapping[str, int]) -> tuple[str, ...]:
    """Return the VDUs of which each member of the group has one machine, and that no other resource has."""
    inside = [server for server in servers if server.group == group]
    if not inside:
        member = hot.member(group)
        types = member.resource_types if member is not None else {}
        elsewhere = {server.vdu_id for server in servers}
        return tuple(vdu for vdu in wanted if types.get(vdu) == _SERVER and vdu not in elsewhere)
    members = {server.member for server in inside}
    return tuple(
        vdu
        for vdu in wanted
        if sum(server.vdu_id == vdu for server in inside) == len(members)
        and all(server.group == group for server in servers if server.vdu_id == vdu)
    )


def _number(value: object, values: Mapping[str, Any]) -> int | None:
    """Return a number of a template, which may be written as text or read from a parameter; None if it is not known."""
    if isinstance(value, Mapping) and set(value) == {"get_param"}:
        path = value["get_param"]
        found: object = values
        for step in path if isinstance(path, list) else [path]:
            found = found.get(step) if isinstance(found, Mapping) and isinstance(step, str) else None
        value = found
    if isinstance(value, str) and value.strip().isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
