"""The part of a form that is ``additionalParams``: parameters of the template, of the cluster, of the objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kubevnfm_cluster.parameters import CLUSTER
from kubevnfm_cluster.registry_vnf import REGISTRY_VNF, RegistryInstallation
from kubevnfm_cluster.request import RequestedCluster
from kubevnfm_csar.hot_parameters import parameter_schema
from kubevnfm_csar.manifest_values import RESERVED
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import is_secret_name
from kubevnfm_sol.lcm import OperationType
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK

from kubevnfm_lcm_api.lifecycle.containers.instantiating import LONGEST_WAIT_S
from kubevnfm_lcm_api.lifecycle.core.request_parameters import ALL, CAPI, CHART, DEF_FILES, REPAIR, VALUES
from kubevnfm_lcm_api.lifecycle.machines.drivers import cluster_phases, is_registry
from kubevnfm_lcm_api.lifecycle.machines.package_fit import USER_DATA, USER_DATA_CLASS
from kubevnfm_lcm_api.lifecycle.machines.requested_healing import KEEP, WITH_STORAGE
from kubevnfm_lcm_api.lifecycle.requests.declared_parameters import declared_name
from kubevnfm_lcm_api.lifecycle.workloads.capi import capi_schema
from kubevnfm_lcm_api.views.forms.facts import FlavourFacts, FormFacts
from kubevnfm_lcm_api.views.forms.schemas import DEFS, MAPS, embedded, may_be_shown, one_of, titled

_MOST: Final = 500
"""Files of a package that are offered."""
_MANIFESTS: Final = "Files/kubernetes/"
_SHOWN: Final = frozenset({"default", "examples", "example"})
"""The keywords of a schema that show values."""
_OF_SECRET: Final = _SHOWN | {"enum", "const"}
_VALUES_ID: Final = "urn:kubevnfm:values"


def parameters_of(schema: JsonObject, facts: FormFacts, one: FlavourFacts) -> JsonObject:
    """Return the schema of additionalParams of an instantiation; it may have others, which code of the package reads."""
    found: JsonObject = {"type": "object", "title": "Additional parameters", "properties": {}}
    if OPENSTACK in one.vim_types:
        _add_machines(schema, found, facts, one)
    if KUBERNETES in one.vim_types:
        _add_objects(found, facts, is_certain=one.vim_types == (KUBERNETES,))
    return with_declared(found, facts, one.flavour, OperationType.INSTANTIATE)


def with_declared(found: JsonObject, facts: FormFacts, flavour: Flavour, operation: OperationType) -> JsonObject:
    """Add to a schema of additionalParams what the VNFD declares of them for an operation, in its order."""
    declared = flavour.parameters.get(declared_name(operation))
    if declared is None:
        return found
    shown = _without_secrets(declared, facts.vnfd.secret_names)
    properties = found.setdefault("properties", {})
    for name, each in shown["properties"].items():
        # The schema of what kubevnfm itself reads says more.
        properties[name] = {"title": titled(name), **each, **properties.get(name, {})}
    required = [*found.get("required", ()), *shown.get("required", ())]
    return {**found, "type": "object", **({"required": list(dict.fromkeys(required))} if required else {})}


def heal_parameters(facts: FormFacts) -> JsonObject:
    """Return the schema of additionalParams of a heal."""
    texts = {
        ALL: "Everything is made again, with new storage",
        REPAIR: "What was changed or deleted beside kubevnfm is applied again, and nothing else (VNFs on Kubernetes)",
    }
    if facts.record is not None and facts.record.stack is not None:
        del texts[REPAIR]
        texts[WITH_STORAGE] = "The volumes of the machines are made again too, and their data are lost"
        texts[KEEP] = "The volumes of the machines stay"
    properties = {name: {"type": "boolean", "title": titled(name), "description": text} for name, text in texts.items()}
    return {"type": "object", "title": "Additional parameters", "properties": properties}


def _add_machines(schema: JsonObject, found: JsonObject, facts: FormFacts, one: FlavourFacts) -> None:
    properties = found["properties"]
    is_certain = one.vim_types == (OPENSTACK,)
    if cluster_phases(one.flavour):
        properties[CLUSTER] = {**embedded(schema, RequestedCluster), "title": "Cluster"}
        _fit_cluster(schema, properties[CLUSTER], facts, one)
        found["required"] = [CLUSTER] if is_certain else []
    elif is_registry(one.flavour):
        properties[REGISTRY_VNF] = {**embedded(schema, RegistryInstallation), "title": "Private registry"}
        found["required"] = [REGISTRY_VNF] if is_certain else []
    add_template(found, facts, one)


def add_template(found: JsonObject, facts: FormFacts, one: FlavourFacts) -> None:
    """Add the parameters of the Base HOT, or what user data of the package read in their place."""
    if one.hot is None:
        return
    properties, code = found["properties"], _listed(facts.files, (".py",))
    # With a class of the package, it decides what a parameter of the stack is made from.
    hidden = one.hot.hidden_parameters
    for name, about in one.hot.top.declared.items() if not code else ():
        if name != "nfv":
            is_secret = name in hidden or is_secret_name(name)
            described = parameter_schema(about, is_secret=is_secret)
            if not may_be_shown(described.get("default"), facts.vnfd.secret_names):
                del described["default"]
            properties[name] = {"title": titled(str(name)), **described}
    if code:
        for name, default in facts.inputs.items():
            if name not in properties:
                is_secret = is_secret_name(name) or name in facts.vnfd.secret_names
                secret = {"writeOnly": True, "format": "password"}
                seen = {} if default is None or not may_be_shown(default, ()) else {"examples": [default]}
                text = "Read by user data of the package" + (
                    f"; without it: {default}" if seen and not is_secret else ""
                )
                properties[name] = {"title": titled(name), "description": text, **(secret if is_secret else seen)}
        found["additionalProperties"] = True
        found["description"] = "Code of the package may read further ones."
        properties[USER_DATA] = {
            "type": "string", "title": "User data", **_choice(code),
            "description": "The file of the package whose class makes the parameters of the stack; without it: the built-in rules.",
        }  # fmt: skip
        properties[USER_DATA_CLASS] = {"type": "string", "title": "Class of the user data"}
        found["dependentRequired"] = {USER_DATA: [USER_DATA_CLASS], USER_DATA_CLASS: [USER_DATA]}


def _fit_cluster(schema: JsonObject, cluster: JsonObject, facts: FormFacts, one: FlavourFacts) -> None:
    """Add what the package has to choose from; the definitions are those of the flavour that is described last."""
    scripts = _listed(facts.files, (".sh",))
    cluster["properties"]["script_path"].update(_choice(sorted(facts.files)))
    # Any file can be the script; one that ends so most likely is.
    if len(scripts) == 1:
        cluster["properties"]["script_path"]["default"] = scripts[0]
    for name in ("MasterGroup", "NodeGroup"):
        definition = schema[DEFS][name]
        if one.hot is not None:
            # By requests of version 2, to which forms are; TOSCA's names are enough without a template.
            definition.setdefault("allOf", []).append(
                {"anyOf": [{"required": ["aspect_id"]}, {"required": ["vdu_id"]}]}
            )
        group = definition["properties"]
        group["ssh_cp_name"]["examples"] = list(one.flavour.cps)
        group["aspect_id"]["examples"] = list(one.flavour.aspects)
        group["vdu_id"]["examples"] = list(one.flavour.vdus)
    schema[DEFS]["MasterGroup"]["properties"]["cluster_cp_name"]["examples"] = list(one.flavour.cps)


def _add_objects(found: JsonObject, facts: FormFacts, *, is_certain: bool) -> None:
    properties = found["properties"]
    properties["namespace"] = {"type": "string", "title": "Namespace"}
    properties["wait_timeout"] = {
        "type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_WAIT_S, "title": "Wait timeout",
        "description": "Seconds to wait until all objects are ready",
    }  # fmt: skip
    if facts.has_order:
        properties[VALUES] = {"type": "object", "title": "Values"}
        if facts.values is not None:
            # A resource of its own, so that its references are to itself.
            given = _with_defaults(facts.values.body, {**dict.fromkeys(RESERVED), **facts.order_values})
            shown = _without_secrets(_named(given), facts.vnfd.secret_names)
            properties[VALUES]["allOf"] = [{"$id": _VALUES_ID, **shown}]
        return
    charts = sorted({path.removesuffix("/Chart.yaml") for path in facts.files if path.endswith("/Chart.yaml")})
    manifests = _listed(facts.files, (".yaml", ".yml"))
    first = [path for path in manifests if path.startswith(_MANIFESTS)]
    properties[DEF_FILES] = {
        "type": "array", "title": "Manifests", "minItems": 1,
        "items": {"anyOf": [_choice(sorted(facts.files)), {"type": "string", "pattern": "^https?://"}]},
        **({"default": first} if first and is_certain and not charts else {}),
        "description": "Files of the package, or URLs, that are applied in this order.",
    }  # fmt: skip
    capi = properties[CAPI] = {
        **capi_schema(), "title": "Workload cluster",
        "description": "If the manifests make a cluster by Cluster API: how it is built and registered.",
    }  # fmt: skip
    for name, each in capi["properties"].items():
        each["title"] = titled(name)
    if charts:
        properties[CHART] = {
            "type": "string", "title": "Helm chart", "examples": charts,
            "description": "A chart of the package in the place of manifests.",
        }  # fmt: skip


def _named(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    # An id of its own would make references relative to somewhere else.
    return {name: value for name, value in schema.items() if name not in ("$id", "id")}


def _with_defaults(schema: Mapping[str, Any], values: Mapping[str, Any]) -> JsonObject:
    """Return a schema of values that has those of the order as defaults, which a request need not give."""
    found = dict(schema)
    if isinstance(found.get("required"), list):
        found["required"] = [name for name in found["required"] if name not in values]
    properties = found.get("properties")
    if isinstance(properties, dict):
        found["properties"] = {
            name: _with_default(each, values.get(name)) if isinstance(each, dict) else each
            for name, each in properties.items()
        }
    return found


def _with_default(schema: JsonObject, value: Any) -> JsonObject:
    if isinstance(value, Mapping) or "properties" in schema:
        return _with_defaults(schema, value if isinstance(value, Mapping) else {})
    return schema if value is None else {**schema, "default": value}


def _without_secrets(node: Any, names: Collection[str]) -> Any:
    """Return a schema of the package in which a secret is marked, and none is a default or an example; ``names``: further ones."""
    if isinstance(node, list):
        return [_without_secrets(each, names) for each in node]
    if not isinstance(node, Mapping):
        return node
    found = {
        key: {name: _without_secrets(inner, names) for name, inner in each.items()}
        if key in MAPS and isinstance(each, Mapping)
        else _without_secrets(each, names)
        for key, each in node.items()
        if key not in _SHOWN or may_be_shown(each, names)
    }
    properties = found.get("properties")
    if isinstance(properties, dict):
        found["properties"] = {
            name: _marked(each) if isinstance(each, dict) and (is_secret_name(name) or name in names) else each
            for name, each in properties.items()
        }
    return found


def _marked(schema: JsonObject) -> JsonObject:
    found = {key: each for key, each in schema.items() if key not in _OF_SECRET}
    if isinstance(found.get("items"), dict):
        found["items"] = _marked(found["items"])
    is_text = "properties" not in schema and schema.get("type", "string") not in ("array", "object")
    return {**found, "writeOnly": True, "format": "password"} if is_text else found


def _listed(files: frozenset[str], ends: tuple[str, ...]) -> Sequence[str]:
    return sorted(path for path in files if path.endswith(ends))


def _choice(files: Sequence[str]) -> JsonObject:
    return one_of(files) if len(files) <= _MOST else {"examples": list(files[:_MOST])}
