"""Checks a request about a VNF of machines against its package, to refuse what would fail in the first step."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from kubevnfm_csar.errors import PlacementUnsupported
from kubevnfm_csar.files import listed_path
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.hot_parameters import value_problem
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_csar.vnfd.phases import user_data_problem
from kubevnfm_csar.vnfd.placement import placement_groups
from kubevnfm_csar.vnfd.subnets import subnet_problem
from kubevnfm_events import PackageRef
from kubevnfm_events.stacks import StackOrder, UserData
from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue

USER_DATA: Final = "lcm-operation-user-data"
"""The parameter that names the file of the user data class."""
USER_DATA_CLASS: Final = "lcm-operation-user-data-class"
"""The parameter that names the class."""
_FILE: Final = f"additionalParams/{USER_DATA}"
_CLASS: Final = f"additionalParams/{USER_DATA_CLASS}"
_LARGEST: Final = 2**20
"""A larger module is not searched: it is judged when it runs."""
_DYNAMIC: Final = re.compile(r"\bimport\s*(?:\(\s*)?\*|\b(?:globals|setattr|exec|eval|vars|__getattr__)\b")
"""A module in which a class can have a name that is not written there."""


async def check_user_data(packages: PackageCatalogue, order: StackOrder) -> None:
    """Raise Unprocessable for user data that cannot run: no Base HOT, no such class, or an import that is not answered."""
    package, flavour_id, user_data = order.package, order.flavour_id, order.user_data
    if user_data is None:
        return
    if await packages.base_hot(package.package_id, flavour_id) is None:
        raise Unprocessable(_FILE, f"user data need a Base HOT; the package has none for flavour {flavour_id}")
    await check_user_data_file(packages, package, user_data)


async def check_user_data_file(
    packages: PackageCatalogue, package: PackageRef, user_data: UserData, *, place: str | None = None
) -> None:
    """Raise Unprocessable, for ``place`` if it is given, for user data that the package lacks or that cannot run."""
    names = await packages.file_names(package.package_id)
    if user_data.path not in names:
        raise Unprocessable(place or _FILE, f"the package has no file {user_data.path}, whose user data the VNF has")
    content = await packages.file(package.package_id, user_data.path, limit_bytes=_LARGEST)
    if content is None:
        return
    # Searched and parsed, and not loaded: the module is foreign, and only the sandbox may do more with it.
    text = content.decode("utf-8", "replace")
    if re.search(rf"\b{re.escape(user_data.class_name)}\b", text) is None and _DYNAMIC.search(text) is None:
        defined = ", ".join(re.findall(r"^class\s+(\w+)", text, flags=re.MULTILINE)) or "none"
        raise Unprocessable(
            place or _CLASS, f"{user_data.path} defines no class {user_data.class_name}; its classes: {defined}"
        )
    problem = await asyncio.to_thread(user_data_problem, content, user_data.path, names)
    if problem:
        raise Unprocessable(place or _FILE, f"{user_data.path} cannot be run: {problem}")


def check_placement(flavour: Flavour, *, has_zones: bool) -> None:
    """Raise Unprocessable for a placement rule that cannot be kept for machines without Base HOT (SEQ-163).

    ``has_zones``: whether an NFVO chooses the zones. A Base HOT says itself where its machines are placed.
    """
    try:
        placement_groups(flavour, has_zones=has_zones)
    except PlacementUnsupported as error:
        raise Unprocessable(
            "flavourId", f"without a Base HOT, Nova's server groups place the machines: {error}"
        ) from error


def check_subnets(place: str, flavour: Flavour, managed: Collection[str]) -> None:
    """Raise Unprocessable, for ``place``, for a subnet that no network can have, of a flavour without Base HOT.

    ``managed``: virtual links whose networks are made elsewhere.
    """
    for name, link in flavour.virtual_links.items():
        for subnet in link.subnets if name not in managed else ():
            problem = subnet_problem(subnet)
            if problem is not None:
                raise Unprocessable(place, f"virtual link {name} of the VNFD: {problem}")


def check_linked(links: Sequence[Mapping[str, Any]], flavour: Flavour, counts: Mapping[str, int]) -> None:
    """Raise Unprocessable for a connection point that would have no network, of a flavour without Base HOT.

    ``links``: extVirtualLinks; ``counts``: machines by VDU. To be called only if no NFVO grants further links.
    """
    linked = {cp["cpdId"] for link in links for cp in link.get("extCps") or ()}
    for name, cp in flavour.cps.items():
        is_internal = cp.virtual_link is not None and cp.virtual_link in flavour.virtual_links
        if cp.kind == "vdu" and counts.get(cp.vdu_id or "", 0) and not is_internal and name not in linked:
            raise Unprocessable("extVirtualLinks", f"a virtual link for connection point {name} expected")


def check_bootable(place: str, flavour: Flavour, hot: BaseHot | None) -> None:
    """Raise Unprocessable, for ``place``, for machines without anything to boot from, such as a package of containers has.

    To be called only if no NFVO grants images; a Base HOT names its own.
    """
    for vdu_id, vdu in flavour.vdus.items() if hot is None else ():
        images = [vdu.image, *(flavour.storages[one].image for one in vdu.storages if one in flavour.storages)]
        if flavour.max_count(vdu_id) and not any(images):
            raise Unprocessable(
                place,
                f"flavour {flavour.flavour_id} has no machines: VDU {vdu_id} has no image (sw_image_data) to boot from, and there is no Base HOT",
            )


def check_fed(
    links: Sequence[Mapping[str, Any]],
    flavour: Flavour,
    hot: BaseHot | None,
    counts: Mapping[str, int],
    parameters: Mapping[str, Any],
) -> None:
    """Raise Unprocessable for a network or a parameter that the stack cannot be made without, and that nothing gives.

    ``links``: extVirtualLinks; ``counts``: machines by VDU; ``parameters``: additionalParams. To be called only if neither an NFVO
    nor user data of the package give more.
    """
    if hot is None:
        check_linked(links, flavour, counts)
        return
    linked = {cp["cpdId"] for link in links for cp in link.get("extCps") or ()}
    given = parameters.get("nfv")
    points = given.get("CP") if isinstance(given, Mapping) else None
    for name in hot.top.read_networks:
        own = points.get(name) if isinstance(points, Mapping) else None
        if name not in linked and not (isinstance(own, Mapping) and own.get("network")):
            raise Unprocessable(
                "extVirtualLinks",
                f"a virtual link for connection point {name} expected: the Base HOT reads its network",
            )
    for name in sorted(hot.top.needed_parameters - parameters.keys() - {"nfv"}):
        raise Unprocessable(f"additionalParams/{name}", "a value expected: the Base HOT has no default for it")


def check_hot_values(
    hot: BaseHot, parameters: Mapping[str, Any], *, kept: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Raise InvalidInput for values of additionalParams that parameters of the Base HOT cannot have, Unprocessable for such values
    that the VNF has kept; Heat would refuse the stack.

    ``parameters``: those of the request. To be called only if no user data of the package make the parameters.
    """
    wrong = _wrong_values(hot, parameters)
    if wrong:
        raise InvalidInput(*wrong[0], *wrong[1:])
    own = {name: value for name, value in kept.items() if name not in parameters}
    wrong = [
        (place, f"{problem}, and the VNF has another value: name one") for place, problem in _wrong_values(hot, own)
    ]
    if wrong:
        raise Unprocessable(*wrong[0], *wrong[1:])


def _wrong_values(hot: BaseHot, parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    hidden = hot.hidden_parameters
    wrong: list[tuple[str, str]] = []
    for name, about in hot.top.declared.items():
        value = parameters.get(name)
        if value is None or name == "nfv":
            continue
        problem = value_problem(about, value, is_secret=name in hidden)
        if problem is not None:
            wrong.append((f"additionalParams/{name}", problem))
    return wrong


def named_user_data(parameters: Mapping[str, Any], files: frozenset[str]) -> UserData | None:
    """Return the user data class that the request names (sequences.md 2.1). Raises InvalidInput, Unprocessable."""
    path, class_name = parameters.get(USER_DATA), parameters.get(USER_DATA_CLASS)
    if path is None and class_name is None:
        return None
    for name, value in ((USER_DATA, path), (USER_DATA_CLASS, class_name)):
        if not isinstance(value, str) or not value:
            raise InvalidInput(
                f"additionalParams/{name}", "both of lcm-operation-user-data and -class, or none, expected"
            )
    normal = listed_path(str(path))
    if ".." in normal.split("/") or normal.startswith("/") or not normal.endswith(".py"):
        raise InvalidInput(_FILE, "a path inside the package, ending in .py, expected")
    if normal not in files:
        raise Unprocessable(_FILE, f"the package has no file {normal}")
    if not str(class_name).isidentifier():
        raise InvalidInput(_CLASS, "a Python class name expected")
    return UserData(path=normal, class_name=str(class_name))
