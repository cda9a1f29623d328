"""The parameters that a Base HOT declares: their JSON Schema, and the same rules for a value of a request.

Heat checks them too, but only when the stack is created. Its regular expressions (``allowed_pattern``) can take any time, so
`pattern_schema` has them for the process that compares values with schemas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import Secret

_TYPES: Final[Mapping[str, Any]] = {
    "string": "string",
    "number": "number",
    "boolean": "boolean",
    "json": ["object", "array", "string"],
    "comma_delimited_list": ["array", "string"],
}
_EXPECTED: Final[Mapping[str, str]] = {
    "string": "a text",
    "number": "a number",
    "boolean": "true or false",
    "json": "an object, a list or a JSON text",
    "comma_delimited_list": "a list, or a text divided by commas,",
}
_LIST: Final = "comma_delimited_list"
_TRUE: Final = frozenset({"t", "true", "on", "y", "yes", "1"})
_FLAGS: Final = _TRUE | {"f", "false", "off", "n", "no", "0"}
"""The texts that Heat takes for truth values, in any case."""
_MOST: Final = 1000
"""Values of ``allowed_values`` that are compared."""
_LONGEST_PATTERN: Final = 200
_LONGEST_NAME: Final = 100
_PARTICULAR: Final = re.compile(r"\\[0-9AZzGKpPQE]|(?<!\\)\{(?![0-9]{1,4}(?:,[0-9]{0,4})?\})")
_TIMES: Final = re.compile(r"\{(?:[0-9]+,)?([0-9]+)\}")
_MOST_TIMES: Final = 4_000
"""Repetitions inside repetitions: programs write an expression out for each."""
_CUSTOM: Final[Mapping[str, str]] = {
    "nova.flavor": "a flavor", "nova.keypair": "a key pair", "nova.server": "a server", "glance.image": "an image", "neutron.network": "a network",
    "neutron.subnet": "a subnet", "neutron.port": "a port", "neutron.router": "a router", "neutron.security_group": "a security group",
    "neutron.qos_policy": "a QoS policy", "cinder.volume": "a volume", "cinder.vtype": "a volume type", "cinder.snapshot": "a snapshot",
    "keystone.project": "a project", "keystone.user": "a user", "keystone.domain": "a domain", "heat.stack": "a stack",
}  # fmt: skip
"""The kind of thing that a parameter with this constraint names; the cloud alone knows which there are."""
_LENGTHS: Final[Mapping[str, tuple[str, str]]] = {
    "string": ("minLength", "maxLength"),
    "comma_delimited_list": ("minItems", "maxItems"),
}


def parameter_schema(about: object, *, is_secret: bool) -> JsonObject:
    """Return the JSON Schema of a parameter; ``about``: what the template says of it."""
    given = about if isinstance(about, Mapping) else {}
    kind = str(given.get("type"))
    found: JsonObject = {"type": _TYPES[kind]} if kind in _TYPES else {}
    if isinstance(given.get("label"), str):
        found["title"] = given["label"]
    for name, rule in _constraints(given):
        match name:
            case "range" if kind == "number":
                found.update(_bounds(rule, "minimum", "maximum"))
            case "length" if kind in _LENGTHS:
                found.update(_bounds(rule, *_LENGTHS[kind]))
            case "allowed_values" if not is_secret:
                allowed = {"enum": list(rule)}
                found.update({"items": allowed} if kind == _LIST else allowed)
            case "modulo" if kind == "number" and not rule["offset"]:
                found["multipleOf"] = rule["step"]
            case "allowed_pattern" if kind == "string":
                found["pattern"] = rule
            case "custom_constraint":
                found["x-heat-constraint"] = rule
    said = list(_texts(given))
    if said:
        found["description"] = " ".join(said)
    if is_secret:
        return {**found, "writeOnly": True, "format": "password"}
    return {**found, "default": given["default"]} if given.get("default") is not None else found


def pattern_schema(declared: Mapping[str, Any]) -> JsonObject:
    """Return the JSON Schema of the parameters of a template that have an ``allowed_pattern``; {} if none has."""
    found = {}
    for name, about in declared.items():
        given = about if isinstance(about, Mapping) else {}
        patterns = [rule for key, rule in _constraints(given) if key == "allowed_pattern"]
        if patterns and given.get("type") == "string":
            # The last one, as in the form.
            found[name] = {"pattern": patterns[-1]}
    return {"properties": found} if found else {}


def _texts(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is said of a parameter: its description, those of its constraints, and which thing of the VIM it names."""
    if isinstance(given.get("description"), str):
        yield given["description"]
    listed = given.get("constraints")
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, Mapping):
            continue
        if isinstance(one.get("description"), str):
            yield one["description"]
        if isinstance(one.get("modulo"), Mapping) and one["modulo"].get("offset"):
            yield f"A number that gives {one['modulo']['offset']} when it is divided by {one['modulo'].get('step')}."
        custom = one.get("custom_constraint")
        if isinstance(custom, str) and custom in _CUSTOM:
            yield f"The name or id of {_CUSTOM[custom]} of the VIM."


def value_problem(about: object, value: Any, *, is_secret: bool) -> str | None:
    """Return what is expected of a value that the parameter cannot have; None if it can. ``is_secret``: no value may be shown."""
    given = about if isinstance(about, Mapping) else {}
    kind = str(given.get("type"))
    if isinstance(value, Secret):
        # How many members it has is not known without its text.
        size: float | None = value.characters if kind == "string" else None
    elif not _is_of(kind, value):
        return f"{_EXPECTED[kind]} expected: the Base HOT has a parameter of type {kind}"
    else:
        size = len(value) if isinstance(value, str | list | tuple) else None
    for name, rule in _constraints(given):
        match name:
            case "range" if kind == "number" and not isinstance(value, Secret):
                number = float(value)
                if not rule.get("min", number) <= number <= rule.get("max", number):
                    return f"{_span(rule)} expected: range of the Base HOT"
            case "modulo" if kind == "number" and not isinstance(value, Secret):
                if float(value) % rule["step"] != rule["offset"]:
                    return f"a number that gives {rule['offset']} when it is divided by {rule['step']} expected: modulo of the Base HOT"
            case "length" if kind in _LENGTHS and size is not None:
                length = len(_members(value)) if kind == _LIST else size
                if not rule.get("min", length) <= length <= rule.get("max", length):
                    return f"a length of {_span(rule)} expected: length of the Base HOT"
            case "allowed_values" if not isinstance(value, Secret):
                allowed = {_plain(kind, each) for each in rule}
                listed = _members(value) if kind == _LIST else [value]
                if any(_plain(kind, each) not in allowed for each in listed):
                    known = "the allowed values" if is_secret else ", ".join(map(str, rule[:20]))
                    return f"one of {known} expected: allowed_values of the Base HOT"
    return None


def _is_of(kind: str, value: Any) -> bool:
    """Return whether a value is, as clients may write it, of a type."""
    if kind not in _EXPECTED:
        return True
    if kind in ("json", _LIST):
        return isinstance(value, list | tuple | str) or (kind == "json" and isinstance(value, Mapping))
    if isinstance(value, Mapping | list | tuple):
        return False
    if kind == "number":
        try:
            return not isinstance(value, bool) and abs(float(value)) < float("inf")
        except (TypeError, ValueError, OverflowError):
            return False
    return kind == "string" or isinstance(value, bool) or str(value).lower() in _FLAGS


def _plain(kind: str, value: Any) -> object:
    """Return a value as Heat compares it: ``1.0`` is 1, and ``yes`` is true."""
    if kind == "boolean":
        return str(value).lower() in _TRUE
    return float(value) if kind == "number" and _is_of(kind, value) else str(value)


def _members(value: Any) -> Sequence[Any]:
    return value.split(",") if isinstance(value, str) else value


def _constraints(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and rule of each constraint of a known form."""
    listed = given.get("constraints")
    for one in listed if isinstance(listed, list) else ():
        for name, rule in one.items() if isinstance(one, Mapping) else ():
            if name in ("range", "length") and isinstance(rule, Mapping):
                yield name, {key: rule[key] for key in ("min", "max") if _is_number(rule.get(key))}
            elif name == "allowed_values" and isinstance(rule, list) and 0 < len(rule) <= _MOST:
                yield name, rule
            elif name == "modulo" and isinstance(rule, Mapping):
                step, offset = rule.get("step"), rule.get("offset", 0)
                if type(step) is int and type(offset) is int and 0 <= offset < step:
                    yield name, {"step": step, "offset": offset}
            elif name == "allowed_pattern" and isinstance(rule, str) and is_plain_pattern(rule):
                yield name, f"^(?:{rule})$"
            elif name == "custom_constraint" and isinstance(rule, str):
                yield name, rule[:_LONGEST_NAME]


def is_plain_pattern(pattern: str) -> bool:
    """Return whether a regular expression means the same in all languages, and each can use it.

    It is without what begins with ``(?``, back references, braces that are no numbers of repetitions, and repetitions without measure.
    """
    if len(pattern) > _LONGEST_PATTERN or "(?" in pattern or _PARTICULAR.search(pattern):
        return False
    if math.prod(max(1, int(times)) for times in _TIMES.findall(pattern)) > _MOST_TIMES:
        return False
    try:
        re.compile(pattern)
    # The others: a number of repetitions, or a nesting, that is beyond Python's.
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bounds(rule: Mapping[str, Any], low: str, high: str) -> JsonObject:
    return {name: rule[key] for key, name in (("min", low), ("max", high)) if key in rule}


def _span(rule: Mapping[str, Any]) -> str:
    if "min" not in rule:
        return f"at most {rule['max']}"
    return f"{rule['min']} to {rule['max']}" if "max" in rule else f"at least {rule['min']}"
