"""Forms: the JSON Schemas of requests, compared with what the requests themselves take."""

from __future__ import annotations

import copy
import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest
import yaml
from callers.forms import broken, faults, filled_in, rules_of
from kubevnfm_csar.archive import open_csar
from kubevnfm_csar.artifact_order import find_order
from kubevnfm_csar.files import read_text
from kubevnfm_csar.hot import read_base_hot
from kubevnfm_csar.hot_parameters import parameter_schema, pattern_schema, value_problem
from kubevnfm_csar.order_reader import read_order
from kubevnfm_csar.user_data_inputs import inputs_of
from kubevnfm_csar.values_schema import schema_path
from kubevnfm_csar.vnfd.read import read_vnfd
from kubevnfm_kit.errors import OutsideUnavailable, Unprocessable
from kubevnfm_lcm_api.lifecycle.core.vim_types import check_objects, vim_types
from kubevnfm_lcm_api.views.forms.facts import FlavourFacts, FormFacts
from kubevnfm_lcm_api.views.forms.operations import change_package_form, instantiate_form
from kubevnfm_secrets import Secret
from packages.package_variants import changed_package
from packages.vm_packages import other_image, two_flavours
from worlds.lcm_builders import RESOURCES
from worlds.lcm_world import LINKED, OPENSTACK_VIM, SAMPLES, Answer, World, sample_request

VIMS = [OPENSTACK_VIM, {"id": "VIM_ID", "name": "site", "type": "kubernetes", "is_default": False}]
PACKED = SAMPLES.parents[1] / ".run/samples"
DRY = {"dry_run": "true"}


def facts_of(sample: str) -> FormFacts:
    """Return the facts about a sample package without an instance."""
    files = open_csar(PACKED / f"{sample}.zip")
    names = files.names()
    vnfd, name = read_vnfd(files), find_order(names)

    def text(path: str) -> str:
        return read_text(files, path)

    order = None
    if name is not None:
        schema = schema_path(name)
        order = read_order(name, text(name), names, text(schema) if schema in names else None)
    flavours = []
    for flavour in vnfd.flavours.values():
        hot = read_base_hot(files, flavour.flavour_id)
        flavours.append(FlavourFacts(flavour, hot, vim_types(flavour, hot, names)))
    modules = [text(each).encode() for each in names if each.startswith("UserData/")]
    inputs = {each: default for module in modules for each, default in inputs_of(module).items()}
    return FormFacts(
        vnfd, flavours, names, VIMS, inputs=inputs, has_order=order is not None,
        values=order.schema if order is not None else None, order_values=order.values if order is not None else {},
    )  # fmt: skip


def requests() -> Iterator[tuple[str, Path]]:
    for path in sorted(SAMPLES.glob("*/requests/instantiate*.json")):
        # Version 1 has lists in the place of maps.
        if ".v1." not in path.name:
            yield path.parents[1].name, path


WITH_FORMS = tuple(dict.fromkeys(sample for sample, _ in requests()))


def test_a_package_of_machines_or_of_containers_is_recognised() -> None:
    machines, containers = facts_of("vm"), facts_of("cnf")
    for facts, is_refused in ((machines, True), (containers, False)):
        one = facts.flavours[0]
        with pytest.raises(Unprocessable, match="one of machines") if is_refused else nullcontext():
            check_objects("vnfdId", one.flavour, one.hot, facts.files)


def test_a_change_of_package_has_the_parameters_of_the_new_template_without_defaults() -> None:
    """API-163: the VNF keeps its values."""
    found = facts_of("vm")
    declared = {"flavor": {"type": "string", "default": "m1.small"}, "nfv": {"type": "json"}}
    hot: Any = SimpleNamespace(hidden_parameters=frozenset(), top=SimpleNamespace(declared=declared))
    found = replace(found, flavours=[replace(found.flavours[0], hot=hot)], files=frozenset())
    vnf: Any = SimpleNamespace(
        instantiated_vnf_info=SimpleNamespace(flavour_id=found.flavours[0].flavour.flavour_id),
        extensions={}, vnf_configurable_properties={}, metadata={},
    )  # fmt: skip
    record: Any = SimpleNamespace(vnf=vnf, stack="a stack")
    parameters = change_package_form(replace(found, record=record))["properties"]["additionalParams"]["properties"]
    assert parameters["flavor"]["type"] == "string"
    assert "default" not in parameters["flavor"]
    assert "nfv" not in parameters


def test_each_parameter_of_a_workload_cluster_has_its_own_title() -> None:
    """API-163."""
    found = instantiate_form(facts_of("cnf"))["properties"]["additionalParams"]["properties"]["capi"]["properties"]
    titles = {name: each["title"] for name, each in found.items()}
    assert titles["cluster_name"] == "Cluster name"
    assert len(set(titles.values())) == len(titles)


def test_the_request_of_each_sample_fits_the_form_of_its_package() -> None:
    """API-163: and each form is a valid schema."""
    found = {
        f"{sample} {path.name}": wrong
        for sample, path in requests()
        if (wrong := faults(instantiate_form(facts_of(sample)), json.loads(path.read_text())))
    }
    assert found == {}


async def form_of(world: World, package_id: str, operation: str, instance_id: str | None = None) -> Any:
    params = {} if instance_id is None else {"instance": instance_id}
    path = f"/kubevnfm/v1/packages/{package_id}/forms/{operation}"
    return (await world.call("GET", path, params=params)).must(200).json


async def judge(world: World, instance_id: str, operation: str, body: Any) -> Answer:
    one = f"/vnf_instances/{instance_id}"
    if operation == "modify":
        return await world.lcm("PATCH", one, body, params=DRY)
    return await world.lcm("POST", f"{one}/{operation}", body, params=DRY)


async def compare(world: World, form: Any, instance_id: str, operation: str, body: Any) -> int:
    """Check that a body that fits is accepted and that what the form refuses is refused; return how many were refused."""
    assert faults(form, body) == []
    (await judge(world, instance_id, operation, body)).must(200)
    number, taken = 0, {}
    for place, wrong in broken(form, form, body):
        answer = await judge(world, instance_id, operation, wrong)
        if answer.status not in {400, 422}:
            taken[place] = wrong
        number += 1
    assert taken == {}
    return number


def without_defaults(form: Mapping[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return a request without what its form gives by default."""
    found = {}
    for name, value in body.items():
        rules = [each.get("properties", {}) for each in rules_of(form, form, body)]
        known = [each[name] for each in rules if isinstance(each.get(name), dict)]
        if any("default" in each for each in known):
            continue
        inner = next((each for each in known if "properties" in each), None)
        found[name] = without_defaults(inner, value) if inner is not None and isinstance(value, dict) else value
    return found


@pytest.mark.parametrize("samples", [("cluster", "edge"), pytest.param(WITH_FORMS, marks=pytest.mark.deep)])
async def test_a_body_with_the_defaults_of_a_form_is_accepted_for_each_sample(
    world: World, samples: Sequence[str]
) -> None:
    """API-163: what has no default, such as a network, is from the sample's own request."""
    world.vims.add("VIM_ID", "kubernetes")
    for sample in samples:
        package = await world.sample(sample)
        created = filled_in(form := await form_of(world, package["id"], "create"), form, {})
        instance_id = (await world.lcm("POST", "/vnf_instances", created)).must(201).json["id"]
        form = await form_of(world, package["id"], "instantiate")
        given = without_defaults(form, sample_request(sample, "instantiate"))
        body = filled_in(form, form, given)
        assert faults(form, body) == [], sample
        assert ("capi" in body.get("additionalParams", {})) == ("capi" in given.get("additionalParams", {}))
        assert await compare(world, form, instance_id, "instantiate", body) > 20


LOGIN: dict[str, Any] = {"username": "u", "password": "p"}
MASTER = "additionalParams/k8s_cluster_installation_param/master_node"


@pytest.mark.parametrize(
    ("sample", "place", "value"),
    [
        ("cluster", f"{MASTER}/username", None),
        ("cluster", f"{MASTER}/password", None),
        ("cluster", f"{MASTER}/aspect_id", None),
        ("cluster", f"{MASTER}/private_key", "k"),
        ("cluster", f"{MASTER}/private_key_passphrase", "x"),
        ("cluster", f"{MASTER}/bastion", {"host": "h", **LOGIN, "hots": "h"}),
        ("cluster", "additionalParams/lcm-operation-user-data-class", None),
        ("cluster", "flavourId", "large"),
        ("cluster", "extensions", {"none": 1}),
        ("cnf", "additionalParams/wait_timeout", 0),
        ("cnf", "additionalParams/wait_timeout", 86_401),
        ("cnf", "additionalParams/capi", {"no_such": 1}),
        ("cnf", "additionalParams/capi", {"timeouts": {"no_such": 1}}),
    ],
)
def test_a_form_refuses_what_the_request_would_refuse(sample: str, place: str, value: Any) -> None:
    """API-163: ``value``: None for an attribute that is left out."""
    body = sample_request(sample, "instantiate")
    *above, name = place.split("/")
    node = body
    for part in above:
        node = node[part]
    if value is None:
        del node[name]
    else:
        node[name] = value
    assert faults(instantiate_form(facts_of(sample)), body) != []


BEYOND: Mapping[str, Sequence[Any]] = {
    "scale": [
        {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "numberOfSteps": 3},
        {"type": "SCALE_IN", "aspectId": "VDU1_scale", "numberOfSteps": 1},
        {"type": "SCALE_OUT", "aspectId": "none"},
    ],
    "scale_to_level": [
        {"scaleInfo": [{"aspectId": "VDU1_scale", "scaleLevel": 3}]},
        {"scaleInfo": [{"aspectId": "VDU1_scale", "scaleLevel": 1}], "instantiationLevelId": "three"},
        {},
    ],
    "heal": [{"vnfcInstanceId": ["none"]}],
    "operate": [
        {"changeStateTo": "STARTED", "stopType": "GRACEFUL"},
        {"changeStateTo": "STARTED", "gracefulStopTimeout": 1},
    ],
    "change_flavour": [{"newFlavourId": "simple"}],
    "terminate": [{}],
}
"""Bodies that the form of an instance at level 0 of 2 refuses."""


async def test_what_a_form_refuses_the_request_refuses_too(world: World) -> None:
    """API-163: each bound of each operation, by dry runs."""
    package = await world.upload(two_flavours(world.folder))
    instance_id = await world.create(vnfdId=package["vnfdId"])
    form = await form_of(world, package["id"], "instantiate")
    assert form["properties"]["flavourId"]["enum"] == ["simple", "large"]
    modified = await form_of(world, package["id"], "modify", instance_id)
    assert await compare(world, modified, instance_id, "modify", {"extensions": {}}) > 10
    assert faults(modified, {"extensions": {"none": 1}}) != []
    assert faults(modified, {"extensions": {"none": 1}, "vnfdId": "of-another"}) == []
    refused = await compare(world, form, instance_id, "instantiate", filled_in(form, form, dict(LINKED)))
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    bodies: dict[str, Any] = {
        "scale": {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "numberOfSteps": 1},
        "scale_to_level": {"scaleInfo": [{"aspectId": "VDU1_scale", "scaleLevel": 2}]},
        "heal": {"vnfcInstanceId": [RESOURCES.servers[0].vnfc_id], "cause": "x"},
        "operate": {"changeStateTo": "STOPPED", "stopType": "GRACEFUL", "gracefulStopTimeout": 1},
        "change_ext_conn": {key: LINKED[key] for key in ("extVirtualLinks",)},
        "change_flavour": {"newFlavourId": "large"},
        "modify": {"vnfInstanceName": "n"},
        "terminate": {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1},
    }
    for operation, given in bodies.items():
        form = await form_of(world, package["id"], operation, instance_id)
        refused += await compare(world, form, instance_id, operation, filled_in(form, form, copy.deepcopy(given)))
        assert [wrong for wrong in BEYOND.get(operation, ()) if not faults(form, wrong)] == []
    assert filled_in(form, form, {}) == {"terminationType": "GRACEFUL"}
    assert refused > 110


class _Away:
    async def __call__(self, filters: object) -> Any:
        raise OutsideUnavailable("vim-registry", "no answer")


async def test_a_form_is_for_an_instance_that_can_be_asked(world: World) -> None:
    """API-163: with the errors of the request itself."""
    package = await world.upload(two_flavours(world.folder))
    other = await world.sample("cnf")
    instance_id = await world.create(vnfdId=package["vnfdId"])
    one = f"/kubevnfm/v1/packages/{package['id']}/forms"
    of_instance = {"instance": instance_id}
    (await world.call("GET", f"{one}/grow", params=of_instance)).problem(404)
    (await world.call("GET", "/kubevnfm/v1/packages/none/forms/instantiate")).problem(404)
    (await world.call("GET", f"{one}/instantiate", params={"instance": "none"})).problem(404)
    (await world.call("GET", f"{one}/heal")).problem(400)
    (await world.call("GET", f"{one}/heal", params=of_instance)).problem(409)
    wrong = await world.call("GET", f"/kubevnfm/v1/packages/{other['id']}/forms/instantiate", params=of_instance)
    assert wrong.problem(400)["invalidParams"][0]["name"] == "instance"
    empty = (await world.packages("POST", body={})).must(201).json["id"]
    (await world.call("GET", f"/kubevnfm/v1/packages/{empty}/forms/instantiate")).problem(409)
    assert "default" not in (await form_of(world, package["id"], "modify", instance_id))["properties"]["extensions"]

    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    (await world.call("GET", f"{one}/instantiate", params=of_instance)).problem(409)
    changed = await world.upload(other_image(world.folder))
    form = await form_of(world, changed["id"], "change_vnfpkg", instance_id)
    await compare(world, form, instance_id, "change_vnfpkg", filled_in(form, form, {}))
    of_containers = await world.call(
        "GET", f"/kubevnfm/v1/packages/{other['id']}/forms/change_vnfpkg", params=of_instance
    )
    refused = await judge(world, instance_id, "change_vnfpkg", {"vnfdId": other["vnfdId"]})
    assert of_containers.problem(422)["invalidParams"] == refused.problem(422)["invalidParams"]
    assert "has no image" in str(refused.json)
    world.vims.list = _Away()  # type: ignore[method-assign]  # as while vim-registry does not answer
    heal = await form_of(world, package["id"], "heal", instance_id)
    form = await form_of(world, package["id"], "instantiate")
    assert [(each["part"], bool(each["text"])) for each in form["x-away"]] == [("vims", True)]
    given = {
        "flavourId": "simple",
        "vimConnectionInfo": {"vim": {"vimId": "any", "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}},
    }
    assert not [each for each in faults(form, given) if "vimConnectionInfo" in str(each)], "any id of a VIM is taken"
    assert faults(form, {**given, "vimConnectionInfo": {"vim": {"vimId": 5}}})
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]["vnfcInfo"]
    assert {each["id"] for each in shown} <= set(heal["properties"]["vnfcInstanceId"]["items"]["enum"])
    assert "healScript" not in heal["properties"]
    chosen = heal["properties"]["vnfcInstanceId"]["items"]
    assert len(chosen["enum"]) - len(chosen["x-enum-again"]) == len(shown), "each machine is offered once"
    assert all(f"({server.server_id})" in " ".join(chosen["x-enum-titles"]) for server in RESOURCES.servers)


HOT_VALUES: Sequence[Any] = (
    1,
    0,
    7,
    11,
    2.5,
    "",
    "a",
    "abc",
    "abcdefgh",
    True,
    [],
    ["a"],
    ["a", "b", "z"],
    {"a": 1},
    "1,2,3,4",
    "9",
)


@pytest.mark.parametrize(
    "about",
    [
        {"type": "string", "constraints": [{"length": {"min": 1, "max": 3}}]},
        {"type": "string", "constraints": [{"allowed_values": ["a", "abc", 7]}]},
        {"type": "number", "constraints": [{"range": {"min": 1, "max": 10}}, {"range": {"max": 8}}]},
        {"type": "number", "constraints": [{"allowed_values": [1, 11]}]},
        {"type": "boolean"},
        {"type": "comma_delimited_list", "constraints": [{"length": {"min": 2}}]},
        {"type": "comma_delimited_list", "constraints": [{"allowed_values": ["a", "b"]}]},
        {"type": "json", "constraints": [{"length": {"max": 1}}]},
        {"type": "string", "constraints": [{"length": "no object"}, "no object", {"allowed_pattern": "(a+)+"}]},
        {"type": "number", "constraints": {"range": {"min": "a", "max": True}}},
        {"type": "string", "constraints": [{"allowed_pattern": "[a-c]*"}, {"allowed_pattern": "(?=a).*"}, {"custom_constraint": "nova.flavor"}]},
        {"type": "string", "constraints": [{"allowed_pattern": "[a-z]{,3}"}, {"allowed_pattern": "a{99999999999999999999}"}]},
        {"type": "string", "constraints": [{"allowed_pattern": "(a{1,999}){1,999}"}, {"allowed_pattern": "a{"}, {"allowed_pattern": r"a{1,3}\{?"}]},
        {"type": "number", "constraints": [{"modulo": {"step": 7, "offset": 0}}, {"modulo": {"step": True}}]},
        {"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 1}}, {"modulo": {"step": 0}}, {"modulo": [1]}]},
        {"type": ["string"], "constraints": [{"range": {"min": "a", "max": 1}}, {"allowed_values": []}]},
        "no object",
        None,
    ],
)  # fmt: skip
def test_a_value_that_the_schema_of_a_heat_parameter_refuses_is_refused(about: Any) -> None:
    """API-163: clients also write numbers and truth values as texts, and lists with commas."""
    schema = parameter_schema(about, is_secret=False)
    refused = [value for value in HOT_VALUES if not jsonschema_rs.is_valid(schema, value)]
    patterns = pattern_schema({"x": about})
    taken = [
        value
        for value in refused
        if value_problem(about, value, is_secret=False) is None and jsonschema_rs.is_valid(patterns, {"x": value})
    ]
    spelled_otherwise: dict[str, tuple[type, ...]] = {"string": (int, float), "number": (str,), "boolean": (str, int)}
    kind = about.get("type") if isinstance(about, dict) else None
    assert [each for each in taken if not isinstance(each, spelled_otherwise.get(str(kind), ()))] == []
    of_secrets = [value_problem(about, Secret(str(value)), is_secret=True) for value in HOT_VALUES]
    assert of_secrets == [None] * len(of_secrets) or kind == "string"


@pytest.mark.parametrize(
    ("kind", "allowed", "taken", "refused"),
    [
        ("number", [1, 2.5], [1, 1.0, "1", "1.0", 2.5, "2.50"], [2, "2", 1.5]),
        ("boolean", [True], [True, "true", "yes", 1, "On"], [False, "off", 0]),
        ("string", ["a", 7], ["a", 7, "7"], ["A", "7.0"]),
        ("comma_delimited_list", ["a", "b"], ["a,b", ["b"], []], ["a,c", ["A"]]),
    ],
)
def test_a_value_is_compared_with_the_allowed_ones_as_heat_does(
    kind: str, allowed: Sequence[Any], taken: Sequence[Any], refused: Sequence[Any]
) -> None:
    """API-163: however a client spells it; what a hidden parameter may be is not shown."""
    about = {"type": kind, "constraints": [{"allowed_values": allowed}]}
    assert [value for value in taken if value_problem(about, value, is_secret=False) is not None] == []
    assert [value for value in refused if value_problem(about, value, is_secret=False) is None] == []
    shown = f"one of {', '.join(map(str, allowed))} expected: allowed_values of the Base HOT"
    assert value_problem(about, refused[0], is_secret=False) == shown
    hidden = "one of the allowed values expected: allowed_values of the Base HOT"
    assert value_problem(about, refused[0], is_secret=True) == hidden


DECLARED = """
data_types:
  acme.datatypes.Port:
    derived_from: integer
    constraints: [{in_range: [1, 65535]}]
  acme.datatypes.Peer:
    derived_from: tosca.datatypes.Root
    properties:
      host: {type: string, required: true, constraints: [{pattern: "[a-z]+"}, {max_length: 8}]}
      port: {type: acme.datatypes.Port, default: 179}
  acme.datatypes.Parameters:
    derived_from: tosca.datatypes.nfv.VnfOperationAdditionalParameters
    properties:
      area: {type: integer, description: The number of the area, constraints: [{greater_or_equal: 0}], required: true}
      mode: {type: string, constraints: [{valid_values: [active, standby]}], default: active}
      peers: {type: list, entry_schema: {type: acme.datatypes.Peer}, constraints: [{max_length: 2}]}
      labels: {type: map, entry_schema: string}
      admin_password: {type: string, default: in-clear, constraints: [{valid_values: [in-clear, other]}]}
      release: {type: string, constraints: [{valid_values: [1, 2]}, {pattern: "[1-9]{,99999999999999999999}"}]}
interface_types:
  acme.interfaces.Vnflcm:
    derived_from: tosca.interfaces.nfv.Vnflcm
    operations:
      instantiate: {inputs: {additional_parameters: {type: acme.datatypes.Parameters}}}
      scale: {inputs: {additional_parameters: {type: acme.datatypes.Peer}}}

topology_template:
"""


async def test_parameters_that_the_vnfd_declares_are_part_of_forms_and_are_judged(world: World) -> None:
    """API-163: with types, constraints, texts and defaults, also below lists and maps; a template has patterns."""
    vnfd, name = "Definitions/vm.vnfd.yaml", "BaseHOT/simple/vm_hot.yaml"
    text = (SAMPLES / "vm" / vnfd).read_text(encoding="utf-8").replace("\ntopology_template:\n", DECLARED)
    top = yaml.safe_load((SAMPLES / "vm" / name).read_text(encoding="utf-8"))
    top["parameters"]["site"] = {"type": "string", "default": "a", "constraints": [{"allowed_pattern": "[a-c]{1,3}"}]}
    whole = yaml.safe_load(text)
    whole["topology_template"]["node_templates"]["VNF"]["interfaces"] = {"Vnflcm": {"type": "acme.interfaces.Vnflcm"}}
    files = {vnfd: yaml.safe_dump(whole, sort_keys=False), name: yaml.safe_dump(top, sort_keys=False)}
    package = await world.upload(changed_package(world.folder, "vm", files))
    instance_id = await world.create(vnfdId=package["vnfdId"])
    form = await form_of(world, package["id"], "instantiate", instance_id)
    found = form["properties"]["additionalParams"]
    assert list(found["properties"]) == ["site", "area", "mode", "peers", "labels", "admin_password", "release"]
    assert "in-clear" not in str(form)
    assert found["properties"]["admin_password"]["writeOnly"]
    assert found["properties"]["area"]["description"] == "The number of the area"
    body = sample_request("vm", "instantiate")
    peer = {"host": "abc", "port": 1}
    body["additionalParams"] = {
        "area": 0,
        "peers": [peer],
        "labels": {"a": "b"},
        "site": "abc",
        "mode": "standby",
        "release": "2",
    }
    places = [each[0] for each in broken(form, form, body) if each[0].startswith("/additionalParams/")]
    assert {
        f"/additionalParams/{each}" for each in ("area", "site", "mode", "peers", "peers[0]/host", "peers[0]/port")
    } <= set(places)
    assert await compare(world, form, instance_id, "instantiate", body) > len(places)
    answer = await judge(
        world, instance_id, "instantiate", {**body, "additionalParams": {"area": 1, "labels": {"a": 7}}}
    )
    assert answer.problem(422)["invalidParams"][0]["name"] == "additionalParams/labels/a"
    await world.reached(await world.ask(instance_id, "instantiate", body), "COMPLETED")
    scale = await form_of(world, package["id"], "scale", instance_id)
    assert scale["properties"]["additionalParams"]["required"] == ["host"]
    given = {"type": "SCALE_OUT", "aspectId": "VDU1_scale"}
    given["aspectId"] = scale["properties"]["aspectId"]["enum"][0]
    (await judge(world, instance_id, "scale", given)).problem(422)
    (await judge(world, instance_id, "scale", {**given, "additionalParams": {"host": "abc"}})).must(200)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("A = 'x'\ndef f(r):\n  g = r.additional_params\n  g['a'], g.get('b', A), g.get('c', 1), g.get('d', h()), g[i]", {"a": None, "b": "x", "c": 1, "d": None}),
        ("r['additionalParams']['a']; (r.get('additionalParams') or {}).get('b'); other['c']", {"a": None, "b": None}),
        ("def (", {}),
        ("(" * 5000, {}),
        ("\0", {}),
    ],
)  # fmt: skip
def test_names_that_user_data_read_are_seen(source: str, found: dict[str, Any]) -> None:
    """API-163."""
    assert inputs_of(source.encode()) == found


def test_user_data_are_read_in_two_threads_at_once() -> None:
    """API-163: the page asks for two forms of a package at once."""
    source = b"def f(r):\n    return [r.additional_params['a'], [[[]]]]\n" * 40
    # While Python makes a tree, other threads come to run only during a collection of garbage that runs Python.
    before, let_others_run = gc.get_threshold(), lambda *_: sleep(0.001)
    gc.callbacks.append(let_others_run)
    gc.set_threshold(200)
    try:
        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(inputs_of, [source] * 6)) == [{"a": None}] * 6
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(let_others_run)


def test_the_form_of_a_sample_with_user_data_has_what_they_read() -> None:
    """API-163: other names are open."""
    facts = facts_of("kuryr")
    found = instantiate_form(facts)["properties"]["additionalParams"]
    assert found["properties"]["node_cidr"]["examples"] == ["10.10.0.0/24"]
    assert found["properties"]["external_network"]["description"].endswith("without it: public")
    assert found["additionalProperties"] is True


def test_parameters_of_the_base_hot_are_part_of_the_form() -> None:
    """API-163: a hidden one is a secret without its default; a class of the package would decide what they are made from."""
    facts = facts_of("vm")
    (one,) = facts.flavours
    assert one.hot is not None
    declared = {
        "nfv": {"type": "json"},
        "count": {
            "type": "number",
            "default": 2,
            "constraints": [{"range": {"min": 1, "max": 4}}],
            "label": "How many",
        },
        "token_value": {"type": "string", "default": "x", "hidden": True},
    }
    top = one.hot.top.model_copy(update={"body": {**one.hot.top.body, "parameters": declared}})
    given = replace(facts, flavours=[replace(one, hot=one.hot.model_copy(update={"top": top}))])
    found = instantiate_form(given)["properties"]["additionalParams"]["properties"]
    assert found["count"] == {"type": "number", "title": "How many", "minimum": 1, "maximum": 4, "default": 2}
    secret = {"type": "string", "title": "Token value", "writeOnly": True, "format": "password"}
    assert found["token_value"] == secret
    assert "nfv" not in found
    with_code = instantiate_form(replace(given, files=given.files | {"UserData/a.py"}))
    assert set(found) & set(with_code["properties"]["additionalParams"]["properties"]) == set()


def test_no_default_and_no_example_of_a_form_has_a_secret() -> None:
    """API-163: of values, wherever their schema or the order gives them, of parameters and of declared keys."""
    facts = facts_of("edge")
    assert facts.values is not None
    login = {"type": "object", "properties": {"password": {"type": "string", "default": "in-clear"}}}
    body: dict[str, Any] = {
        "properties": {
            "token": {"type": "string", "examples": ["in-clear"], "default": "in-clear"},
            "users": {"type": "array", "items": {"$ref": "#/$defs/login"}, "examples": [[{"password": "in-clear"}]]},
            "proxy": {"default": "http://ada:in-clear@proxy"},
            "either": {"anyOf": [login, {"default": {"api_key": "in-clear"}}]},
            "size": {"type": "integer", "default": 3},
            "default": {"properties": {"password": {"type": "string"}}},
        },
        "$defs": {"login": login},
    }
    values = {"users": [{"password": "in-clear"}], "token": "in-clear", "size": 4}
    given = replace(facts, values=replace(facts.values, body=body), order_values=values)
    whole = instantiate_form(given)["properties"]["additionalParams"]["properties"]["values"]["allOf"][0]
    assert "in-clear" not in json.dumps(whole)
    found = whole["properties"]
    assert set(found) == set(body["properties"])
    assert found["token"] == {"type": "string", "writeOnly": True, "format": "password"}
    assert found["size"]["default"] == 4

    machine = facts_of("vm")
    (one,) = machine.flavours
    assert one.hot is not None
    declared = {
        "site": {"type": "json", "default": {"password": "in-clear"}},
        "proxy": {"default": "http://a:in-clear@b"},
    }
    top = one.hot.top.model_copy(update={"body": {**one.hot.top.body, "parameters": declared}})
    form = instantiate_form(replace(machine, flavours=[replace(one, hot=one.hot.model_copy(update={"top": top}))]))
    assert "in-clear" not in json.dumps(form)
    assert {"site", "proxy"} <= set(form["properties"]["additionalParams"]["properties"])
