"""Templates: the results of functions, and Heat's words for refusals."""

from __future__ import annotations

from typing import Any

import pytest
from clouds.openstack_stand import Stand, path_of
from packages.openstack_templates import VERSION, WORKER

FUNCTIONS = (
    VERSION
    + """
parameters:
  letters: {type: comma_delimited_list, default: "a,b"}
  tree: {type: json, default: {x: {y: 5}}}
  flag: {type: boolean, default: "yes"}
  secret: {type: string, hidden: true, default: swordfish}
conditions:
  is_on: {equals: [{get_param: flag}, true]}
  is_off: {not: is_on}
  both: {and: [is_on, is_off]}
  either: {or: [is_on, is_off]}
resources:
  digits: {type: OS::Heat::RandomString, properties: {length: 8, character_classes: [{class: digits, min: 8}]}}
  never: {type: OS::Heat::None, condition: both}
  value: {type: OS::Heat::Value, properties: {value: {list: [1, 2]}}}
outputs:
  replaced: {value: {str_replace: {template: "x $y$ z", params: {"$y$": {get_param: [tree, x, y]}}}}}
  written: {value: {str_replace: {template: "$f $m", params: {$f: {get_param: flag}, $m: {b: 1, a: [true]}}}}}
  joined: {value: {list_join: ["-", {get_param: letters}, [c, 1]]}}
  split: {value: {str_split: [",", "p,q", 1]}}
  repeated: {value: {repeat: {template: "%i%-%k%", for_each: {"%i%": {get_param: letters}, "%k%": ["1", "2"]}}}}
  chosen: {value: {if: [either, "yes", "no"]}}
  stack: {value: {get_param: "OS::stack_name"}}
  second: {value: {get_param: [letters, 1]}}
  digest: {value: {digest: [md5, abc]}}
  merged: {value: {map_merge: [{a: 1}, {b: 2}]}}
  renamed: {value: {map_replace: [{a: 1}, {keys: {a: c}}]}}
  contained: {value: {contains: [a, [a, b]]}}
  file: {value: {get_file: hello.txt}}
  deep: {value: {get_attr: [value, value, list, 1]}}
  hidden_one: {value: none, condition: is_off}
"""
)


async def test_functions_give_what_heat_gives(stand: Stand) -> None:
    stack = await stand.make_stack("f", FUNCTIONS, files={"hello.txt": "hello"})
    values = {output["output_key"]: output["output_value"] for output in stack["outputs"]}
    assert values == {
        "replaced": "x 5 z",
        "written": 'True {"a": [true], "b": 1}',
        "joined": "a-b-c-1",
        "split": "q",
        "repeated": ["a-1", "a-2", "b-1", "b-2"],
        "chosen": "yes",
        "stack": "f",
        "second": "b",
        "digest": "900150983cd24fb0d6963f7d28e17f72",
        "merged": {"a": 1, "b": 2},
        "renamed": {"c": 1},
        "contained": True,
        "file": "hello",
        "deep": 2,
    }
    names = {resource["resource_name"] for resource in await stand.resources(path_of(stack))}
    assert names == {"digits", "value"}
    digits = (await stand.get(f"{path_of(stack)}/resources/digits"))["resource"]["attributes"]["value"]
    assert len(digits) == 8
    assert digits.isdigit()
    assert stack["parameters"]["secret"] == "******"


PATHS = (
    VERSION
    + """
parameters:
  tree: {type: json, default: {x: {y: 5}, list: [a, b], nothing: null, text: abc}}
  letters: {type: comma_delimited_list, default: "a,b"}
  name: {type: string, default: vnf}
  count: {type: number, default: 3}
outputs:
  found: {value: {get_param: [tree, list, "1"]}}
  null_value: {value: {get_param: [tree, nothing]}}
  character: {value: {get_param: [name, 0]}}
  missing_key: {value: {get_param: [tree, x, z]}}
  missing_level: {value: {get_param: [tree, z, z, z]}}
  below_null: {value: {get_param: [tree, nothing, z]}}
  below_a_number: {value: {get_param: [tree, x, y, z]}}
  of_a_number: {value: {get_param: [count, z]}}
  beyond_the_list: {value: {get_param: [letters, 2]}}
  no_index: {value: {get_param: [tree, list, z]}}
  in_text: {value: {str_replace: {template: "<$v$>", params: {"$v$": {get_param: [tree, z]}}}}}
"""
)


async def test_a_path_that_a_parameter_lacks_gives_an_empty_string_as_in_heat(stand: Stand) -> None:
    stack = await stand.make_stack("paths", PATHS)
    values = {output["output_key"]: output["output_value"] for output in stack["outputs"]}
    assert values == {
        "found": "b",
        "null_value": None,
        "character": "v",
        "missing_key": "",
        "missing_level": "",
        "below_null": "",
        "below_a_number": "",
        "of_a_number": "",
        "beyond_the_list": "",
        "no_index": "",
        "in_text": "<>",
    }


async def test_a_missing_path_reaches_a_property_as_an_empty_string(stand: Stand) -> None:
    template = VERSION + (
        "parameters: {tree: {type: json, default: {}}}\n"
        'resources: {a: {type: "OS::Heat::Value", properties: {value: {get_param: [tree, x, y]}}}}'
    )
    stack = await stand.make_stack("property", template)
    shown = (await stand.get(f"{path_of(stack)}/resources/a"))["resource"]
    assert shown["attributes"]["value"] == ""


def flow(text: str) -> str:
    return VERSION + text


REFUSED: list[tuple[str, Any, dict[str, Any], str, str]] = [
    ("no version", "resources: {}", {}, "HTTPBadRequest", "Template not in valid format: Template format version not found."),
    ("a version that is none", "heat_template_version: 2099-01-01", {}, "InvalidTemplateVersion", 'The template version is invalid: "heat_template_version: 2099-01-01"'),
    ("no map", "- a", {}, "HTTPBadRequest", "Template not in valid format: The template is not a JSON object or YAML mapping."),
    ("no YAML", "a: [", {}, "HTTPBadRequest", "Template not in valid format: Error parsing template [root stack] while parsing"),
    ("a section that is none", flow("resources: {}\nfoo: 1"), {}, "StackValidationFailed", "The template section is invalid: foo"),
    ("no type", flow("resources: {a: {properties: {}}}"), {}, "StackValidationFailed", "Each resource must contain a type key."),
    ("a keyword that is none", flow('resources: {a: {type: "OS::Heat::None", foo: 1}}'), {}, "StackValidationFailed", '"foo" is not a valid keyword inside a resource definition'),
    ("a condition that is none", flow('resources: {a: {type: "OS::Heat::None", condition: zz}}'), {}, "StackValidationFailed", 'resources.a.condition: : Invalid condition "zz"'),
    ("a file that did not come", flow("resources: {a: {type: w.yaml}}"), {}, "StackValidationFailed", 'Could not fetch remote template "w.yaml"'),
    ("a property that is none", flow('resources: {a: {type: "OS::Neutron::Port", properties: {network: net0, foo: 1}}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties: : Unknown Property foo"),
    ("a missing property", flow('resources: {a: {type: "OS::Neutron::Port"}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties: : Property network not assigned"),
    ("no such network", flow('resources: {a: {type: "OS::Neutron::Port", properties: {network: zz}}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties.network: : Error validating value 'zz': Unable to find network with name or id 'zz'"),
    ("no such image", flow('resources: {a: {type: "OS::Nova::Server", properties: {flavor: m1.tiny, image: zz}}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties.image: : Error validating value 'zz': No images matching {'name': 'zz'}."),
    ("no such key", flow('resources: {a: {type: "OS::Nova::Server", properties: {flavor: m1.tiny, image: dummy, key_name: zz}}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties.key_name: : Error validating value 'zz': The Key (zz) could not be found."),
    ("a size that is none", flow('resources: {a: {type: "OS::Cinder::Volume", properties: {size: abc}}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties.size: : Value 'abc' is not an integer"),
    ("a size too small", flow('resources: {a: {type: "OS::Cinder::Volume", properties: {size: 0}}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties.size: : 0 is out of range (min: 1, max: None)"),
    ("a reference to nothing", flow('resources: {a: {type: "OS::Heat::Value", properties: {value: {get_resource: zz}}}}'), {}, "InvalidTemplateReference", 'The specified reference "zz" (in a.Properties.value) is incorrect.'),
    ("a dependency on nothing", flow('resources: {a: {type: "OS::Heat::RandomString", depends_on: zz}}'), {}, "InvalidTemplateReference", 'The specified reference "zz" (in a) is incorrect.'),
    ("an attribute that is none", flow('resources: {b: {type: "OS::Heat::RandomString"}, a: {type: "OS::Heat::Value", properties: {value: {get_attr: [b, foo]}}}}'), {}, "StackValidationFailed", "resources.a.properties.value.get_attr: : The Referenced Attribute (b foo) is incorrect."),
    ("a parameter that is none, in a function", flow('resources: {a: {type: "OS::Heat::Value", properties: {value: {get_param: zz}}}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties.value: : The Parameter (zz) was not provided."),
    ("a file that is none, in a function", flow('resources: {a: {type: "OS::Heat::Value", properties: {value: {get_file: zz}}}}'), {}, "StackValidationFailed", 'Property error: : resources.a.properties.value: : No content found in the "files" section for get_file path: zz'),
    ("a circle", flow('resources: {a: {type: "OS::Heat::RandomString", depends_on: b}, b: {type: "OS::Heat::RandomString", depends_on: a}}'), {}, "StackValidationFailed", "Circular Dependency Found:"),
    ("a parameter not given", flow("parameters: {x: {type: string}}"), {}, "UserParameterMissing", "The Parameter (x) was not provided."),
    ("a parameter not taken", flow("resources: {}"), {"zz": 1}, "UnknownUserParameter", "The Parameter (zz) was not defined in template."),
    ("a value not allowed", flow("parameters: {x: {type: string, constraints: [{allowed_values: [a, b]}]}}"), {"x": "c"}, "StackValidationFailed", "Parameter 'x' is invalid: \"c\" is not an allowed value [\"a\", \"b\"]"),
    ("a value out of range", flow("parameters: {x: {type: number, constraints: [{range: {min: 1, max: 3}}]}}"), {"x": 7}, "StackValidationFailed", "Parameter 'x' is invalid: 7 is out of range (min: 1, max: 3)"),
    ("a value too short", flow("parameters: {x: {type: string, constraints: [{length: {min: 5}, description: must be long}]}}"), {"x": "ab"}, "StackValidationFailed", "Parameter 'x' is invalid: must be long"),
    ("a value of another kind", flow("parameters: {x: {type: number}}"), {"x": "abc"}, "StackValidationFailed", "Parameter 'x' is invalid: could not convert string to float: 'abc'"),
    ("a value that names nothing", flow("parameters: {x: {type: string, constraints: [{custom_constraint: nova.flavor}]}}"), {"x": "ab"}, "StackValidationFailed", "Parameter 'x' is invalid: Error validating value 'ab': No Flavor matching {'name': 'ab'}. (HTTP 404)"),
    ("a volume type that is none", flow('resources: {a: {type: "OS::Cinder::Volume", properties: {size: 1, volume_type: zz}}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties.volume_type: : Error validating value 'zz': The VolumeType (zz) could not be found."),
    ("projects of a public type", flow('resources: {a: {type: "OS::Cinder::VolumeType", properties: {name: t, projects: [nfv]}}}'), {}, "StackValidationFailed", 'Can not specify property "projects" if the volume type is public.'),
    ("a project that is none", flow('resources: {a: {type: "OS::Cinder::VolumeType", properties: {name: t, is_public: false, projects: [zz]}}}'), {}, "StackValidationFailed", "Property error: : resources.a.properties.projects: : Error validating value 'zz': The KeystoneProject (zz) could not be found."),
    ("a parameter's name that is a map", flow('resources: {a: {type: "OS::Heat::Value", properties: {value: {get_param: [{}]}}}}'), {}, "StackValidationFailed", 'Property error: : resources.a.properties.value: : Parameter name in "get_param" must be string'),
    ("a group that cannot be", flow('resources: {g: {type: "OS::Heat::AutoScalingGroup", properties: {min_size: 4, max_size: 3, resource: {type: "OS::Heat::RandomString"}}}}'), {}, "StackValidationFailed", "MinSize can not be greater than MaxSize"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("template", "parameters", "kind", "message"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
async def test_a_bad_stack_is_refused_in_heats_words(
    stand: Stand, template: Any, parameters: dict[str, Any], kind: str, message: str
) -> None:
    answer = await stand.call(
        "POST", f"{stand.heat}/stacks", {"stack_name": "bad", "template": template, "parameters": parameters}
    )
    assert answer.status == 400
    assert answer.body["error"]["type"] == kind
    assert answer.body["error"]["message"].startswith(message)
    assert (await stand.get(f"{stand.heat}/stacks"))["stacks"] == []


async def test_a_nested_template_is_checked_by_its_parameters(stand: Stand) -> None:
    template = VERSION + "resources: {a: {type: w.yaml, properties: {flavor: m1.tiny}}}"
    answer = await stand.call(
        "POST", f"{stand.heat}/stacks", {"stack_name": "bad", "template": template, "files": {"w.yaml": WORKER}}
    )
    assert (
        answer.body["error"]["message"] == "Property error: : resources.a.properties: : Property network not assigned"
    )


async def test_an_error_inside_a_nested_template_fails_the_stack(stand: Stand) -> None:
    template = VERSION + "resources: {a: {type: w.yaml, properties: {flavor: zz, network: net0}}}"
    stack = await stand.make_stack("bad", template, files={"w.yaml": WORKER})
    assert stack["stack_status_reason"] == (
        "Resource CREATE failed: resources.a: Property error: resources.VDU.properties.flavor: Error validating value"
        " 'zz': No Flavor matching {'name': 'zz'}. (HTTP 404)"
    )


@pytest.mark.parametrize("name", ["1x", "a b", "", "a/b"])
async def test_a_bad_name_is_refused(stand: Stand, name: str) -> None:
    body = {"stack_name": name, "template": VERSION}
    answer = await stand.call("POST", f"{stand.heat}/stacks", body)
    assert answer.status == 400
    assert answer.body["error"]["message"].startswith(f"Invalid stack name {name} must contain only alphanumeric")


async def test_an_environment_gives_parameters_defaults_and_types(stand: Stand) -> None:
    template = VERSION + (
        "parameters: {a: {type: string}, b: {type: string}}\n"
        'resources: {r: {type: "My::Own::Type", properties: {flavor: m1.tiny, network: net0}}}\n'
        "outputs: {a: {value: {get_param: a}}, b: {value: {get_param: b}}}"
    )
    environment = (
        "parameters: {a: from the environment}\nparameter_defaults: {b: a default}\n"
        'resource_registry: {"My::Own::Type": "file:///w.yaml"}'
    )
    stack = await stand.make_stack("e", template, environment=environment, files={"file:///w.yaml": WORKER})
    values = {output["output_key"]: output["output_value"] for output in stack["outputs"]}
    assert values == {"a": "from the environment", "b": "a default"}
    assert len(stand.machines.specs) == 1


async def test_environment_files_are_read_in_their_order(stand: Stand) -> None:
    template = VERSION + "parameters: {a: {type: string}}\noutputs: {a: {value: {get_param: a}}}"
    files = {"one": "parameters: {a: 1}", "two": "parameters: {a: 2}"}
    stack = await stand.make_stack("e", template, files=files, environment_files=["one", "two"])
    assert stack["outputs"][0]["output_value"] == "2"


async def test_a_template_may_be_json_or_an_object(stand: Stand) -> None:
    for name, template in (
        ("text", '{"heat_template_version": "wallaby", "resources": {"r": {"type": "OS::Heat::RandomString"}}}'),
        ("object", {"heat_template_version": "2021-04-16", "resources": {"r": {"type": "OS::Heat::RandomString"}}}),
    ):
        assert (await stand.make_stack(name, template))["stack_status"] == "CREATE_COMPLETE"


async def test_a_patch_keeps_unnamed_parameters_and_drops_unknown_ones(stand: Stand) -> None:
    template = VERSION + (
        "parameters: {a: {type: string, default: x}, b: {type: string, default: y}}\n"
        'resources: {r: {type: "OS::Heat::RandomString"}}'
    )
    stack = await stand.make_stack("e", template, parameters={"a": "1"}, tags="one")
    path = path_of(stack)
    updated = await stand.update_stack(path, parameters={"b": "2", "zz": "3"})
    assert updated["parameters"]["a"] == "1"
    assert updated["parameters"]["b"] == "2"
    assert updated["tags"] == ["one"]
    assert (await stand.get(f"{path}/environment"))["parameters"] == {"a": "1", "b": "2"}
    cleared = await stand.update_stack(path, clear_parameters=["a"])
    assert cleared["parameters"]["a"] == "x"


async def test_templates_can_be_validated_without_a_stack(stand: Stand) -> None:
    template = VERSION + "parameters: {a: {type: number, default: 1, label: A}}"
    answer = await stand.call("POST", f"{stand.heat}/validate", {"template": template})
    assert answer.body["Parameters"]["a"] == {
        "Type": "Number",
        "Description": "",
        "NoEcho": "false",
        "Label": "A",
        "Default": 1,
    }
    bad = {"template": VERSION + 'resources: {a: {type: "OS::No::Such"}}'}
    assert (await stand.call("POST", f"{stand.heat}/validate", bad)).status == 400
