"""The form of each operation: the schema of its request, limited to what the package and the instance have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import SECRET_NAMES, Secret, is_secret_name
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    ChangeExtVnfConnectivityRequest,
    ChangeVnfFlavourRequest,
    CreateVnfRequest,
    HealVnfRequest,
    InstantiateVnfRequest,
    OperateVnfRequest,
    OperationType,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    TerminateVnfRequest,
    VnfInfoModificationRequest,
)
from kubevnfm_sol.resources import VnfcResourceInfo
from pydantic.alias_generators import to_camel

from kubevnfm_lcm_api.lifecycle.core.declared import DECLARED
from kubevnfm_lcm_api.lifecycle.core.request_parameters import DEFAULT_GRACEFUL_S
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of
from kubevnfm_lcm_api.views.forms.facts import FlavourFacts, FormFacts
from kubevnfm_lcm_api.views.forms.parameters import add_template, heal_parameters, parameters_of, with_declared
from kubevnfm_lcm_api.views.forms.schemas import may_be_shown, one_of, property_at, request_schema

_ATTRIBUTES: Final[Mapping[str, str]] = {name: to_camel(name) for name in DECLARED}

_MOST_VIMS: Final = 500
"""VIMs that are offered as the only ones."""


def create_form(facts: FormFacts) -> JsonObject:
    """Return the form of a new instance."""
    form = request_schema(CreateVnfRequest)
    form["properties"]["vnfdId"].update(const=facts.vnfd.vnfd_id, default=facts.vnfd.vnfd_id)
    return form


def instantiate_form(facts: FormFacts) -> JsonObject:
    """Return the form of an instantiation."""
    form = request_schema(InstantiateVnfRequest)
    known = {one.flavour.flavour_id: one.flavour.description or one.flavour.flavour_id for one in facts.flavours}
    form["properties"]["flavourId"].update(one_of(list(known), known))
    first = facts.vnfd.default_flavour_id if facts.vnfd.default_flavour_id in known else next(iter(known), None)
    if first is not None:
        form["properties"]["flavourId"]["default"] = first
    return _by_flavour(form, facts, "flavourId", facts.flavours)


def change_flavour_form(facts: FormFacts) -> JsonObject:
    """Return the form of a change of flavour."""
    form = request_schema(ChangeVnfFlavourRequest)
    others = [one for one in facts.flavours if one.flavour.flavour_id != facts.own.flavour.flavour_id]
    known = {one.flavour.flavour_id: one.flavour.description or one.flavour.flavour_id for one in others}
    form["properties"]["newFlavourId"].update(one_of(list(known), known))
    if len(known) == 1:
        form["properties"]["newFlavourId"]["default"] = next(iter(known))
    # Its additionalParams change those of the instance, so none of them is needed.
    return _by_flavour(form, facts, "newFlavourId", others, has_parameters=False)


def _by_flavour(
    form: JsonObject, facts: FormFacts, name: str, flavours: Sequence[FlavourFacts], *, has_parameters: bool = True
) -> JsonObject:
    """Add what depends on the flavour: as rules, if there are several."""
    for one in flavours:
        properties = _of_flavour(form, facts, one, has_parameters=has_parameters)
        needed = ["additionalParams"] if properties.get("additionalParams", {}).get("required") else []
        if len(flavours) == 1:
            for attribute, schema in properties.items():
                form["properties"][attribute] = {**form["properties"].get(attribute, {}), **schema}
            form["required"] = [*form.get("required", []), *needed]
            continue
        chosen = {"properties": {name: {"const": one.flavour.flavour_id}}, "required": [name]}
        then: JsonObject = {"properties": properties, **({"required": needed} if needed else {})}
        form.setdefault("allOf", []).append({"if": chosen, "then": then})
    return form


def _of_flavour(form: JsonObject, facts: FormFacts, one: FlavourFacts, *, has_parameters: bool) -> JsonObject:
    flavour = one.flavour
    levels = {level_id: level.description or level_id for level_id, level in flavour.levels.items()}
    properties: JsonObject = {
        "instantiationLevelId": {
            **one_of(list(levels), levels),
            **({"default": flavour.default_level} if flavour.default_level in levels else {}),
        }
    }
    # One that was registered before is on its VIM already.
    if facts.info is None:
        properties["vimConnectionInfo"] = _vims(facts, one)
    if has_parameters:
        properties["additionalParams"] = parameters_of(form, facts, one)
    else:
        properties["additionalParams"] = with_declared({}, facts, flavour, OperationType.CHANGE_FLAVOUR)
    _fit_links(form, [one])
    for attribute, on_wire in _ATTRIBUTES.items():
        properties[on_wire] = _declared(facts, one.flavour, attribute)
    return properties


def _vims(facts: FormFacts, one: FlavourFacts) -> JsonObject:
    if facts.vims is None:  # any id is taken then: the request is checked when it comes
        return {"additionalProperties": {"$ref": "#/$defs/VimConnectionInfo"}}
    found = facts.vims_of(one.vim_types)
    names = {str(each["id"]): f"{each['name']} ({each['type']})" for each in found}
    listed = one_of(list(names), names) if len(names) <= _MOST_VIMS else {"examples": list(names)[:_MOST_VIMS]}
    entry: JsonObject = {"properties": {"vimId": listed, "vimType": one_of(one.vim_types)}}
    schema: JsonObject = {"additionalProperties": {"allOf": [{"$ref": "#/$defs/VimConnectionInfo"}, entry]}}
    if found and len(one.vim_types) == 1:
        schema["default"] = {"vim": {"vimId": str(found[0]["id"]), "vimType": one.vim_types[0]}}
    return schema


def _declared(facts: FormFacts, flavour: Flavour | None, name: str) -> JsonObject:
    """Return the schema of KeyValuePairs whose keys the VNFD declares (`core.declared`); ``flavour``: None before one is chosen."""
    attribute = DECLARED[name]
    present = dict(getattr(facts.record.vnf, name)) if facts.record is not None else {}
    of_flavour = getattr(flavour.initial_values, attribute) if flavour is not None else {}
    initial = {**getattr(facts.vnfd.initial_values, attribute), **of_flavour}
    properties: JsonObject = {}
    for key in (*initial, *(key for key in present if key not in initial)):
        value = present.get(key, initial.get(key))
        is_secret = is_secret_name(key) or key in facts.vnfd.secret_names or isinstance(value, Secret)
        if is_secret:
            properties[key] = {"writeOnly": True, "format": "password"}
        else:
            # A nested value may have secrets.
            is_plain = isinstance(value, str | int | float) and may_be_shown(value, ())
            properties[key] = {"default": value} if is_plain else {}
    properties[SECRET_NAMES] = {"type": "array", "items": {"type": "string"}}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _fit_links(form: JsonObject, flavours: Sequence[FlavourFacts]) -> None:
    """Offer the external connection points; without templates, whose names may be others, only these are taken."""
    cpd_id = property_at(form, "extVirtualLinks", "[]", "extCps", "[]", "cpdId")
    offered = [cp_id for one in flavours for cp_id, cp in one.flavour.cps.items() if cp.is_external]
    cpd_id["examples"] = list(dict.fromkeys([*cpd_id.get("examples", ()), *offered]))


def scale_form(facts: FormFacts) -> JsonObject:
    """Return the form of a scaling by steps: each aspect as far as its levels go from the present one."""
    form = request_schema(ScaleVnfRequest)
    aspects = facts.own.flavour.aspects
    titles = {name: aspect.name or name for name, aspect in aspects.items()}
    form["properties"]["aspectId"].update(one_of(list(aspects), titles))
    if len(aspects) == 1:
        form["properties"]["aspectId"]["default"] = next(iter(aspects))
    for name, aspect in aspects.items():
        now = facts.scale_levels.get(name, 0)
        for kind, most in (("SCALE_OUT", aspect.max_scale_level - now), ("SCALE_IN", now)):
            chosen = {"properties": {"aspectId": {"const": name}, "type": {"const": kind}}}
            at = f"{name} is at level {now} of {aspect.max_scale_level}"
            text = f"At most {most}: {at}" if most > 0 else f"No {kind}: {at}"
            # With no step left, even the one that is meant without a number is too many.
            other = {"enum": ["SCALE_IN" if kind == "SCALE_OUT" else "SCALE_OUT"], "description": text}
            properties = {"numberOfSteps": {"maximum": most, "description": text}} if most > 0 else {"type": other}
            then = {"properties": properties}
            form.setdefault("allOf", []).append({"if": {**chosen, "required": ["aspectId", "type"]}, "then": then})
    return form


def scale_to_level_form(facts: FormFacts) -> JsonObject:
    """Return the form of a scaling to levels."""
    form = request_schema(ScaleVnfToLevelRequest)
    flavour, target = facts.own.flavour, property_at(form, "scaleInfo", "[]")
    levels = {level_id: level.description or level_id for level_id, level in flavour.levels.items()}
    form["properties"]["instantiationLevelId"].update(one_of(list(levels), levels))
    aspects = {name: aspect.name or name for name, aspect in flavour.aspects.items()}
    aspect_id = property_at(form, "scaleInfo", "[]", "aspectId")
    aspect_id.update(one_of(list(aspects), aspects))
    property_at(form, "scaleInfo", "[]", "vnfdId")["const"] = facts.vnfd.vnfd_id
    definition = form["$defs"][target["$ref"].rpartition("/")[2]] if "$ref" in target else target
    definition["allOf"] = [
        {
            "if": {"properties": {"aspectId": {"const": name}}, "required": ["aspectId"]},
            "then": {
                "properties": {
                    "scaleLevel": {
                        "maximum": aspect.max_scale_level,
                        "description": f"At most {aspect.max_scale_level}; it is at level {facts.scale_levels.get(name, 0)}",
                    }
                }
            },
        }
        for name, aspect in flavour.aspects.items()
    ]
    form["properties"]["scaleInfo"]["minItems"] = 1
    form["oneOf"] = [{"required": ["instantiationLevelId"]}, {"required": ["scaleInfo"]}]
    return form


def heal_form(facts: FormFacts) -> JsonObject:
    """Return the form of a heal."""
    form = request_schema(HealVnfRequest)
    _fit_vnfcs(form, facts)
    form["properties"]["additionalParams"].update(heal_parameters(facts))
    if not scripts_of(facts.own.flavour, OperationType.HEAL):
        del form["properties"]["healScript"]
    return form


def operate_form(facts: FormFacts) -> JsonObject:
    """Return the form of a start or stop."""
    form = request_schema(OperateVnfRequest)
    _fit_vnfcs(form, facts)
    started = {"properties": {"changeStateTo": {"const": "STARTED"}}, "required": ["changeStateTo"]}
    form["allOf"] = [{"if": started, "then": {"properties": {"stopType": False, "gracefulStopTimeout": False}}}]
    return form


def _fit_vnfcs(form: JsonObject, facts: FormFacts) -> None:
    assert facts.info is not None
    resources = {one.id: one for one in facts.info.vnfc_resource_info}
    stack = facts.record.stack if facts.record is not None else None
    servers = stack.resources.servers if stack is not None and stack.resources is not None else ()
    addresses = {server.server_id: [one for port in server.ports for one in port.addresses] for server in servers}

    def name(vdu_id: str, resource: VnfcResourceInfo | None) -> str:
        if resource is None:
            return vdu_id
        known = addresses.get(resource.compute_resource.resource_id) or ()
        return f"{vdu_id}{''.join(f' {one}' for one in known[:1])} ({resource.compute_resource.resource_id})"

    names = {one.id: name(one.vdu_id, resources.get(one.vnfc_resource_info_id or "")) for one in facts.info.vnfc_info}
    # Clients of Tacker's v1 API send the ids of vnfcResourceInfo.
    known = {**names, **{one.id: name(one.vdu_id, one) for one in resources.values() if one.id not in names}}
    items = form["properties"]["vnfcInstanceId"]["items"]
    items.update(one_of(list(known), known))
    again = [one.vnfc_resource_info_id for one in facts.info.vnfc_info if one.vnfc_resource_info_id in resources]
    if again:
        items["x-enum-again"] = [each for each in again if each not in names]


def change_ext_conn_form(facts: FormFacts) -> JsonObject:
    """Return the form of a change of links."""
    form = request_schema(ChangeExtVnfConnectivityRequest)
    _fit_links(form, [facts.own])
    assert facts.info is not None
    present = facts.info.ext_virtual_link_info or ()
    for name, values in (
        ("id", [one.id for one in present]),
        ("resourceId", [one.resource_handle.resource_id for one in present]),
    ):
        property_at(form, "extVirtualLinks", "[]", name)["examples"] = list(dict.fromkeys(values))
    return form


def change_package_form(facts: FormFacts) -> JsonObject:
    """Return the form of a change to the package, which has passed `check_new_package`; ``facts``: its own, with the instance of the present one."""
    form = request_schema(ChangeCurrentVnfPkgRequest)
    form["properties"]["vnfdId"].update(const=facts.vnfd.vnfd_id, default=facts.vnfd.vnfd_id)
    _fit_links(form, [facts.own])
    for attribute, on_wire in _ATTRIBUTES.items():
        form["properties"][on_wire].update(_declared(facts, facts.own.flavour, attribute))
    if facts.record is not None and facts.record.stack is not None:
        found: JsonObject = {"properties": {}}
        add_template(found, facts, facts.own)
        # The VNF keeps its values, so nothing is filled in.
        found["properties"] = {name: _without_default(each) for name, each in found["properties"].items()}
        form["properties"]["additionalParams"].update(found)
    return form


def modify_form(facts: FormFacts) -> JsonObject:
    """Return the form of a modification: a merge patch, in which null removes a value."""
    form = request_schema(VnfInfoModificationRequest)
    assert facts.record is not None
    # Version 1 of the API alone has it.
    del form["properties"]["vnfPkgId"]
    flavour = facts.own.flavour if facts.info is not None else None
    closed: JsonObject = {}
    for attribute, on_wire in _ATTRIBUTES.items():
        found = _declared(facts, flavour, attribute)
        # A patch keeps what it leaves out, so nothing is filled in.
        without = {key: _without_default(each) for key, each in found["properties"].items()}
        form["properties"][on_wire].update(type="object", properties=without)
        closed[on_wire] = {"propertyNames": {"enum": list(without)}}
    # Another package may declare others.
    form["allOf"] = [{"if": {"not": {"required": ["vnfdId"]}}, "then": {"properties": closed}}]
    for name in ("vnf_instance_name", "vnf_instance_description"):
        if (present := getattr(facts.record.vnf, name)) is not None:
            form["properties"][to_camel(name)]["examples"] = [present]
    ids = [one.id for one in facts.info.vnfc_info] if facts.info is not None else []
    property_at(form, "vnfcInfoModifications", "[]", "id").update(one_of(ids))
    return form


def _without_default(schema: Any) -> JsonObject:
    return {name: value for name, value in schema.items() if name != "default"}


def terminate_form(facts: FormFacts) -> JsonObject:
    """Return the form of a termination."""
    form = request_schema(TerminateVnfRequest)
    form["properties"]["terminationType"]["default"] = "GRACEFUL"
    text = f"Seconds; not used with FORCEFUL. Without it: {DEFAULT_GRACEFUL_S}"
    form["properties"]["gracefulTerminationTimeout"]["description"] = text
    return form


def _declared_by(
    make: Callable[[FormFacts], JsonObject], operation: OperationType
) -> Callable[[FormFacts], JsonObject]:
    """Return what makes a form with the parameters that the VNFD declares for the operation."""

    def made(facts: FormFacts) -> JsonObject:
        form = make(facts)
        parameters = with_declared(form["properties"]["additionalParams"], facts, facts.own.flavour, operation)
        form["properties"]["additionalParams"] = parameters
        if parameters.get("required"):
            form["required"] = [*form.get("required", ()), "additionalParams"]
        return form

    return made


FORMS: Final[Mapping[str, Callable[[FormFacts], JsonObject]]] = {
    "create": create_form,
    "instantiate": instantiate_form,
    "scale": _declared_by(scale_form, OperationType.SCALE),
    "scale_to_level": _declared_by(scale_to_level_form, OperationType.SCALE_TO_LEVEL),
    "heal": _declared_by(heal_form, OperationType.HEAL),
    "operate": _declared_by(operate_form, OperationType.OPERATE),
    "change_ext_conn": _declared_by(change_ext_conn_form, OperationType.CHANGE_EXT_CONN),
    "change_flavour": change_flavour_form,
    "change_vnfpkg": _declared_by(change_package_form, OperationType.CHANGE_VNFPKG),
    "modify": modify_form,
    "terminate": _declared_by(terminate_form, OperationType.TERMINATE),
}
"""By the name of the task in the path of its request; ``modify`` is the PATCH of an instance."""
