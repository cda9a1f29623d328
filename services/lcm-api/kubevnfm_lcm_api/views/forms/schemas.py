"""Pieces of forms: schemas of our own types in the form that people fill in."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import Any, Final

from kubevnfm_cluster.form_schema import FormSchema
from kubevnfm_cluster.forms import Part
from kubevnfm_kit.json_schema import DescribedSchema
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import hide, is_secret_name, mask
from kubevnfm_secrets.secret import SEALED_KEY
from kubevnfm_sol.base import SolType
from pydantic import BaseModel

from kubevnfm_lcm_api.views.forms.texts import add_texts

DEFS: Final = "$defs"
_OPEN: Final = frozenset({"VimConnectionInfo"})
"""Types in which unknown attributes are a warning."""
MAPS: Final = ("properties", DEFS, "patternProperties", "dependentSchemas")
"""The keywords whose values are schemas by name."""
_SEALED: Final = "KeyValuePairs; secret values are sealed"
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_WORDS: Final[Mapping[str, str]] = {
    "vnf": "VNF", "vnfc": "VNFC", "vnfd": "VNFD", "vnfpkg": "VNF package", "vdu": "VDU", "vim": "VIM", "cp": "CP", "cps": "CPs",
    "cpd": "CPD", "id": "ID", "ids": "IDs", "ip": "IP", "mac": "MAC", "ssh": "SSH", "nic": "NIC", "fip": "floating IP", "url": "URL",
    "cidr": "CIDR", "api": "API", "cni": "CNI", "cri": "CRI", "nfs": "NFS", "pv": "PV", "http": "HTTP", "https": "HTTPS", "k8s": "Kubernetes",
    "tls": "TLS", "oidc": "OIDC", "sriov": "SR-IOV", "ovn": "OVN", "dns": "DNS", "mtu": "MTU", "vlan": "VLAN", "ip6": "IPv6", "csi": "CSI",
    "uri": "URI", "csar": "CSAR", "ca": "CA", "fs": "file system", "ref": "reference", "cred": "credentials", "oof": "OOF",
    "ext": "external", "info": "information", "params": "parameters", "param": "parameter",
}  # fmt: skip


def request_schema(model: type[BaseModel]) -> JsonObject:
    """Return the schema of a request of SOL003, which the caller may change."""
    return deepcopy(_schema_of(model))


@cache
def _schema_of(model: type[BaseModel]) -> JsonObject:
    is_part = issubclass(model, Part)
    found = model.model_json_schema(schema_generator=FormSchema if is_part else DescribedSchema)
    about = {name: str(each.get("description", "")) for name, each in found.get(DEFS, {}).items()}
    about[model.__name__] = str(found.get("description", ""))
    found = tidied(found)
    for name, each in ((model.__name__, found), *found.get(DEFS, {}).items()):
        add_texts(name, each, about[name])
    if issubclass(model, SolType):
        closed = {name: each for name, each in found.get(DEFS, {}).items() if name not in _OPEN}
        for each in (found, *closed.values()):
            if "properties" in each:
                each["additionalProperties"] = False
    found.pop("title", None)
    return found


def tidied(schema: Mapping[str, Any]) -> JsonObject:
    """Return a schema of pydantic's, or of one of our services, as people read it."""
    found = deepcopy(dict(schema))
    for node in _nodes(found):
        _tidy(node)
    for name, each in found.get(DEFS, {}).items():
        # The name of a type of ours is no name of a part.
        if each.get("title") == name:
            del each["title"]
    return found


def embedded(schema: JsonObject, model: type[Part]) -> JsonObject:
    """Return the schema of an object of additionalParams; its definitions are added to those of ``schema``."""
    found = request_schema(model)
    schema.setdefault(DEFS, {}).update(found.pop(DEFS, {}))
    return found


def titled(name: str) -> str:
    """Return an attribute's name as people read it."""
    words = [_WORDS.get(word.lower(), word.lower()) for word in _WORD.findall(name)]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def may_be_shown(value: Any, names: Collection[str]) -> bool:
    """Return whether a value has no secret: by the name of an attribute or as a login in a URL; ``names``: further ones."""
    return bool(mask(hide(value, names)) == value)


def one_of(values: Sequence[str], titles: Mapping[str, str] | None = None) -> JsonObject:
    """Return what limits a text to these values; nothing fits if there are none."""
    if not values:
        return {"not": {}}
    named = {value: (titles or {}).get(value, value) for value in values}
    return {"enum": list(values), **({"x-enum-titles": list(named.values())} if titles else {})}


def property_at(schema: JsonObject, *path: str) -> JsonObject:
    """Return the schema of an attribute, which the caller may change; references are followed."""
    node = schema
    for name in path:
        node = _resolved(schema, node)
        node = node["items"] if name == "[]" else node["properties"][name]
    return node


def _resolved(schema: JsonObject, node: JsonObject) -> JsonObject:
    found: JsonObject = schema[DEFS][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return found


def _tidy(node: JsonObject) -> None:
    """Take null away, which counts as not given, and say names and texts as people read them."""
    if SEALED_KEY in node.get("properties", {}):
        # In a request it is in clear.
        title = node.pop("title", None)
        node.clear()
        node.update(type="string", writeOnly=True, format="password", **({"title": title} if title else {}))
    _take_null(node)
    if "default" in node:
        default = _without_none(node["default"])
        if default in (None, {}, [], ""):
            del node["default"]
        else:
            node["default"] = default
    if isinstance(node.get("description"), str):
        text = node["description"].replace("``", "")
        node["description"] = re.sub(r"\bNone: ", "Without it: ", text)
        # For readers of our code.
        if text == _SEALED or text.startswith("Clause "):
            del node["description"]
    for name, each in node.get("properties", {}).items():
        if isinstance(each, dict):
            each["title"] = titled(name)
            _take_null(each)
            if each.get("type") == "string" and is_secret_name(name):
                each.update(writeOnly=True, format="password")


def _take_null(node: JsonObject) -> None:
    options = node.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        left = [option for option in options if option != {"type": "null"}]
        if len(left) == 1:
            del node["anyOf"]
            for name, value in left[0].items():
                node.setdefault(name, value)
        else:
            node["anyOf"] = left


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(each) for name, each in value.items() if each not in (None, "", [], {})}
    return value


def _nodes(node: Any) -> Iterator[JsonObject]:
    """Yield every object that is a schema."""
    if not isinstance(node, dict):
        return
    yield node
    for name, value in list(node.items()):
        if name in MAPS and isinstance(value, dict):
            for each in value.values():
                yield from _nodes(each)
        elif name in ("anyOf", "allOf", "oneOf", "prefixItems") and isinstance(value, list):
            for each in value:
                yield from _nodes(each)
        elif name in ("items", "additionalProperties", "not", "if", "then", "else", "contains"):
            yield from _nodes(value)
