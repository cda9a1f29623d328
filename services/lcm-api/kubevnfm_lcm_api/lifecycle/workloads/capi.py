"""``additionalParams.capi`` of an instantiate request: the parameters of a workload cluster (capi.md chapter 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from kubevnfm_events.capi import ClusterTimeouts
from kubevnfm_events.mgmt import INSTANTIATE_END
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import Secret

from kubevnfm_lcm_api.lifecycle.core.request_parameters import CAPI, CAPI_VARIABLES
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import CapiParameters

OPENSTACK_VIM: Final = "openstack_vim_id"
ADDONS: Final = "addon-def-files"
_LONGEST_S: Final = 86_400.0
_LONGEST_NAME: Final = 253
_LONGEST_URL: Final = 2048
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "ready": ("available", "initialized"),
    "credentials": ("service_account", "admin_kubeconfig"),
    "sender": ("driver", "package"),
}
_TEXTS: Final = ("cluster_name", "vim_name", "cluster_role", "callback_url", OPENSTACK_VIM)
_FLAGS: Final = ("register_vim", "vim_default")
_OF_DRIVER: Final = ("credentials", "cluster_role")
"""Parameters of the driver alone: a script of the package decides itself what it sends."""
_KNOWN: Final = (*_CHOICES, *_TEXTS, *_FLAGS, ADDONS, CAPI_VARIABLES, "timeouts")


def capi_parameters(given: object, files: Callable[[object, str], tuple[str, ...]]) -> CapiParameters:
    """Return the parameters of the workload cluster.

    ``files``: checks a list of manifests that the request names at a place. Raises InvalidInput naming the field.
    """
    place = f"additionalParams/{CAPI}"
    if not isinstance(given, Mapping):
        raise InvalidInput(place, "an object expected")
    for name in given:
        if name not in _KNOWN:
            raise InvalidInput(f"{place}/{name}", f"one of {', '.join(sorted(_KNOWN))} expected")
    values: dict[str, Any] = {}
    for name, allowed in _CHOICES.items():
        if name in given:
            # `credentials` is the name of a secret elsewhere, so its value arrives hidden.
            chosen = next((one for one in allowed if given[name] in (one, Secret(one))), None)
            if chosen is None:
                raise InvalidInput(f"{place}/{name}", f"one of {', '.join(allowed)} expected")
            values[name] = chosen
    for name in _TEXTS:
        if name in given:
            if not isinstance(given[name], str) or not given[name]:
                raise InvalidInput(f"{place}/{name}", "a text expected")
            # The receiver takes no others in a call-back, which would be known only once the cluster is built.
            longest = _LONGEST_URL if name == "callback_url" else _LONGEST_NAME
            if len(given[name]) > longest or not given[name].isprintable():
                raise InvalidInput(f"{place}/{name}", f"at most {longest} characters without line breaks expected")
            values[name] = given[name]
    for name in _FLAGS:
        if name in given:
            if not isinstance(given[name], bool):
                raise InvalidInput(f"{place}/{name}", "true or false expected")
            values[name] = given[name]
    if ADDONS in given:
        values["addon_def_files"] = files(given[ADDONS], f"{place}/{ADDONS}")
    if "callback_url" in values:
        _check_url(values["callback_url"], f"{place}/callback_url")
    if "timeouts" in given:
        values["timeouts"] = _timeouts(given["timeouts"], f"{place}/timeouts")
    return CapiParameters(**values)


def capi_schema() -> JsonObject:
    """Return the JSON Schema of the parameters of a workload cluster, as `capi_parameters` reads them."""
    text: JsonObject = {"type": "string", "minLength": 1, "maxLength": _LONGEST_NAME}
    seconds: JsonObject = {"type": "number", "exclusiveMinimum": 0, "maximum": _LONGEST_S}
    defaults = {name: field.default for name, field in ClusterTimeouts.model_fields.items()}
    properties: JsonObject = {
        **{name: {"type": "string", "enum": list(allowed)} for name, allowed in _CHOICES.items()},
        **{name: dict(text) for name in _TEXTS},
        "callback_url": {**text, "maxLength": _LONGEST_URL},
        **{name: {"type": "boolean"} for name in _FLAGS},
        ADDONS: {"type": "array", "minItems": 1, "items": {"type": "string"}},
        CAPI_VARIABLES: {"type": "object"},
        "timeouts": {
            "type": "object",
            # No default, which would be filled in and make a cluster of any CNF.
            "properties": {
                name: {**seconds, "description": f"Seconds; {default:g} without it"}
                for name, default in defaults.items()
            },
            "additionalProperties": False,
        },
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def with_sender(capi: CapiParameters, given: Mapping[str, Any], scripts: Mapping[str, str]) -> CapiParameters:
    """Return the parameters with the sender of the credentials: the package's own, if it has one and the request does not object.

    ``given``: ``additionalParams.capi``; ``scripts``: file by phase of instantiate. Raises Unprocessable.
    """
    place = f"additionalParams/{CAPI}"
    sender = given.get("sender", "package" if INSTANTIATE_END in scripts else "driver")
    if sender == "package" and INSTANTIATE_END not in scripts:
        raise Unprocessable(f"{place}/sender", f"the VNFD maps no script to {INSTANTIATE_END}: driver expected")
    if sender == "package":
        for name in _OF_DRIVER:
            if name in given:
                why = f"the script {scripts[INSTANTIATE_END]} of the package decides what it sends: leave it out"
                raise Unprocessable(f"{place}/{name}", f"{why}, or set sender to driver")
    return capi.model_copy(update={"sender": sender})


def _check_url(url: str, place: str) -> None:
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        raise InvalidInput(place, "an http(s) URL expected")
    # It is stored with the operation and shown with it.
    if "@" in parts.netloc:
        raise InvalidInput(place, "a URL without user name and password expected")


def _timeouts(given: object, place: str) -> ClusterTimeouts:
    names = tuple(ClusterTimeouts.model_fields)
    if not isinstance(given, Mapping):
        raise InvalidInput(place, f"an object with {', '.join(names)} expected")
    for name, value in given.items():
        if name not in names:
            raise InvalidInput(f"{place}/{name}", f"one of {', '.join(names)} expected")
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= _LONGEST_S:
            raise InvalidInput(f"{place}/{name}", f"seconds above 0, at most {_LONGEST_S:g}, expected")
    return ClusterTimeouts(**{name: float(value) for name, value in given.items()})
