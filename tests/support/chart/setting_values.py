"""The part of the chart's values that comes from the settings classes: `<service>.settings` and `<service>.secretSettings`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_kit.json_schema import attribute_docstrings
from servers.six_processes import SERVICES, settings_of

Schema = dict[str, Any]

BY_CHART: Final[Mapping[str, str]] = {
    "host": "listenAddress",
    "port": "the port of the Service",
    "health_host": "listenAddress",
    "health_port": "the port of the Service",
    "data_dir": "the volume of packages",
    "cache_dir": "the volume of the cache",
    "amqp_url": "rabbitmq",
    "amqp_declares": "rabbitmq.declares",
    "mongo_url": "mongodb",
    "mongo_database": "the name of the service",
    "keys": "secrets",
    "internal_token": "secrets",
    "peer_tokens": "secrets",
    "credentials_token": "secrets",
    "master_keys": "secrets",
    "callback_master_keys": "secrets",
    "auth_users_file": "auth.usersSecret",
    "trust_packages": "sandbox.mode",
    "tls_certificate": "tls",
    "tls_key": "tls",
    "internal_tls_ca": "tls",
    "internal_tls_certificate": "tls",
    "internal_tls_key": "tls",
    **{f"{peer.replace('-', '_')}_url": "the Service of that name" for peer in SERVICES},
}
"""The settings that the chart sets itself, with the value or the thing that decides."""
WITHDRAWN: Final = frozenset({"auth_open_to_network", "fetch_inner_addresses"})
"""Settings that services refuse with the name of what has replaced them."""
LONGEST: Final = 8192
MOST: Final = 1000
LARGEST: Final = 10**12


def key_of(service: str) -> str:
    """Return the key of the service in the values: ``lcmApi``."""
    first, *others = service.split("-")
    return first + "".join(map(str.capitalize, others))


def setting_schemas(service: str) -> tuple[Schema, Schema]:
    """Return the schemas of a service's ``settings`` and ``secretSettings``."""
    model = settings_of(service)
    made = model.model_json_schema()
    texts = attribute_docstrings(model)
    plain: dict[str, Schema] = {}
    secret: dict[str, Schema] = {}
    for name, found in made["properties"].items():
        if name in BY_CHART or name in WITHDRAWN:
            continue
        description = plain_text(texts.get(name) or f"The setting {name} of {service}.")
        if is_secret(found):
            secret[name] = {**_PLACE, "description": f"{description} The value is the place of a key of a Secret."}
        else:
            plain[name] = {**simple(found, made.get("$defs", {})), "description": description}
    return (
        closed(plain, f"Settings of {service}, named as in its settings class."),
        closed(secret, f"Settings of {service} that are secrets: where each is."),
    )


_PLACE: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["secret", "key"],
    "properties": {
        "secret": {"type": "string", "description": "The name of the Secret.", "minLength": 1, "maxLength": 253},
        "key": {"type": "string", "description": "Its key.", "minLength": 1, "maxLength": 253},
    },
}


def closed(properties: Mapping[str, Schema], description: str, **more: object) -> Schema:
    """Return the schema of an object that has these attributes and no others."""
    return {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "properties": dict(properties),
        **more,
    }


def is_secret(found: Schema) -> bool:
    """Return whether the setting is a secret, or may be."""
    return found.get("writeOnly") is True or any(map(is_secret, found.get("anyOf", ())))


def simple(found: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return the schema of one setting in a values file: the type and its bounds, without null, titles and references."""
    if "$ref" in found:
        return simple(definitions[found["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in found:
        kinds = [simple(each, definitions) for each in found["anyOf"] if each.get("type") != "null"]
        return kinds[0]
    match found.get("type"):
        case "array":
            return {"type": "array", "maxItems": MOST, "items": simple(found["items"], definitions)}
        case "object":
            values = simple(found["additionalProperties"], definitions)
            return {"type": "object", "maxProperties": MOST, "additionalProperties": values}
        case "string":
            bounds = {"maxLength": LONGEST} if "enum" not in found else {}
            return {**bounds, **_kept(found, "enum", "pattern", "minLength", "maxLength"), "type": "string"}
        case "integer" | "number":
            limits = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
            return {**_kept(found, *limits), "maximum": found.get("maximum", LARGEST), "type": found["type"]}
        case kind:
            return {"type": kind}


def _kept(found: Schema, *names: str) -> Schema:
    return {name: found[name] for name in names if name in found}


def plain_text(docstring: str) -> str:
    """Return a docstring as one line without markup."""
    return re.sub(r"\s+", " ", docstring.replace("``", "")).strip()
