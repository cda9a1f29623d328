"""Finds attributes that a request may not have.

The objects of SOL003 are closed: an attribute that is none is refused, although SOL013 would have it ignored for the sake of later
versions. additionalParams may have any name for user data and scripts. One that differs from a parameter of kubevnfm by one
character, or by case, hyphens and underscores only, is refused too: to ignore it would carry out another request than the caller means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_pointer import escaped
from kubevnfm_kit.nearest import no_such, shown
from kubevnfm_secrets import SECRET_NAMES
from kubevnfm_sol.attributes import attributes_of, inner_types
from pydantic import BaseModel

PARAMETERS: Final = frozenset(
    """
    ServerNotifierFaultID ServerNotifierUri
    helm_chart_path helm_replica_values is_reverse k8s_cluster_installation_param lcm-kubernetes-def-files lcm-kubernetes-external-lb
    lcm-operation-coordinate-new-vnf lcm-operation-coordinate-old-vnf lcm-operation-user-data lcm-operation-user-data-class
    multi_namespace namespace order_artifact upgrade_type use_helm using_helm_install_param vdu_mapping vdu_params wait_timeout
    """.split()  # noqa: SIM905 - a list of names is read as a text
)
"""The names in additionalParams that kubevnfm reads, without those so short that other names resemble them."""
_PARAMETERS_OF: Final = "additionalParams"
_MAPS: Final = frozenset({"cpConfig"})
"""The attributes that are maps of objects, by names of the client."""
_OPEN: Final = frozenset({"vimConnectionInfo"})
"""Tacker's clients send attributes of v1 in these; each kind of VIM checks the names that it reads."""
_MOST_NAMED: Final = 20
_SHORTEST: Final = 6
"""Below, one other character makes another word (``type``)."""
_END: Final = 2


def check_attributes(model: type[BaseModel], document: Mapping[str, Any]) -> None:
    """Raise InvalidInput for unknown attributes of a request and of the objects in it that are types of SOL003, each with the
    nearest known name, and for names in its additionalParams that are nearly those of kubevnfm.

    An attribute says what is to be done: without it another thing would be done than the caller asks for.
    """
    wrong = list(islice(unknown_attributes(model, document), _MOST_NAMED))
    parameters = document.get(_PARAMETERS_OF)
    if _PARAMETERS_OF in attributes_of(model) and isinstance(parameters, Mapping):
        nearly = ((name, _meant(name, PARAMETERS)) for name in parameters)
        found = ((f"{_PARAMETERS_OF}/{name}", f"did you mean {meant}?") for name, meant in nearly if meant is not None)
        wrong += islice(found, _MOST_NAMED)
    if wrong:
        raise InvalidInput(*wrong[0], *wrong[1:])


def unknown_attributes(
    model: type[BaseModel], document: Mapping[str, Any], place: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield place and reason of each attribute that neither the type nor the types of SOL003 in it have."""
    known = attributes_of(model)
    for name, value in document.items():
        here = f"{place}/{escaped(shown(name))}" if place else escaped(shown(name))
        if name in known:
            inner = inner_types(model).get(name)
            if inner is not None and name not in _OPEN:
                yield from _unknown_inside(inner, value, here)
        elif value is not None and name != SECRET_NAMES:
            yield here, no_such(name, known)


def _unknown_inside(model: type[BaseModel], value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Look at an object, at those of a list, or at the values of a map."""
    if isinstance(value, list) and not _is_map(place):
        for index, one in enumerate(value):
            if isinstance(one, Mapping):
                yield from unknown_attributes(model, one, f"{place}[{index}]")
    elif isinstance(value, Mapping) and _is_map(place):
        for name, one in value.items():
            if isinstance(one, Mapping):
                yield from unknown_attributes(model, one, f"{place}/{escaped(name)}")
    elif isinstance(value, Mapping):
        yield from unknown_attributes(model, value, place)


def _is_map(place: str) -> bool:
    return place.rpartition("/")[2] in _MAPS


def _meant(name: str, known: frozenset[str]) -> str | None:
    """Return the known name that another one resembles; None if it is known itself, or resembles none."""
    if name in known:
        return None
    by_plain, by_end = _alike(known)
    found = by_plain.get(_plain(name))
    if found is not None:
        return found
    close = (*by_end.get(name[:_END], ()), *by_end.get(name[-_END:], ()))
    return next((one for one in close if _is_one_edit_away(name, one)), None)


@cache
def _alike(known: frozenset[str]) -> tuple[Mapping[str, str], Mapping[str, Sequence[str]]]:
    """Return the known names as they are compared, and by their first and last characters.

    A request may have 50,000 names: each is compared with few. One edit leaves one end of a known name as it is.
    """
    by_end: dict[str, list[str]] = {}
    for one in known:
        if len(one) >= _SHORTEST:
            by_end.setdefault(one[:_END], []).append(one)
            by_end.setdefault(one[-_END:], []).append(one)
    return {_plain(one): one for one in known}, by_end


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")


def _is_one_edit_away(name: str, known: str) -> bool:
    """Return whether one character was left out, added or replaced, or two neighbours were exchanged."""
    if abs(len(name) - len(known)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(name, known, strict=False)) if a != b), min(len(name), len(known)))
    left, right = name[start:], known[start:]
    exchanged = left[:2] == right[1::-1] and left[2:] == right[2:]
    return exchanged or left[1:] == right[1:] or left[1:] == right or left == right[1:]
