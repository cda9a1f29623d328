"""CNFs whose package orders its artifacts (multicloud.md chapters 4, 5): what is refused, what is sent, what is shown."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from kubevnfm_events.objects import ApplyObjects, ObjectsOrder, ReplaceObjects
from kubevnfm_secrets import revealed
from packages.package_variants import OTHER_CNF, variant
from worlds.lcm_world import RING, World, sample_request

FOLDER = "Files/kubernetes"
ORDER = f"{FOLDER}/artifact-order.yaml"
OTHER = "Files/other-order.yaml"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {level: '${level}', port: '${db.port:-1}'}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: '$vnf_instance_name'}\nstringData: {key: '$password'}\n"
TEXT = (
    "artifacts:\n- {file: a.yaml, priority: 2, timeout: 60}\n- {file: b.yaml, priority: 1}\nvalues: {level: 3}\n"
    "foreign_namespaces: [shared]\n"
)
FILES = {ORDER: TEXT, f"{FOLDER}/a.yaml": MAP, f"{FOLDER}/b.yaml": SECRET}
PASSWORD = "open-sesame-9"
SCHEMA = f"{FOLDER}/values.schema.json"
RULES = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "level": {"type": "integer", "maximum": 9},
            "db": {"type": "object", "required": ["host"], "properties": {"port": {"default": 5}}},
            "password": {"minLength": 20},
        },
        "additionalProperties": False,
    }
)


async def prepared(world: World, files: dict[str, str] = FILES, **parameters: Any) -> tuple[str, dict[str, Any]]:
    """Return a new instance of a CNF with these files, and the request to instantiate it."""
    world.vims.add("VIM_ID", "kubernetes")
    onboarded = await world.upload(variant(world.folder, files=files))
    assert onboarded["onboardingState"] == "ONBOARDED", onboarded
    body = copy.deepcopy(sample_request("cnf", "instantiate"))
    body["additionalParams"] = parameters
    return await world.create("cnf"), body


def orders(world: World) -> list[ObjectsOrder]:
    data: list[object] = [each.data for each in world.twins.commands]
    return [each for each in data if isinstance(each, ObjectsOrder)]


async def info(world: World, instance_id: str) -> Any:
    return (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]


async def test_the_order_of_the_package_is_used_if_the_request_lists_no_manifests(world: World) -> None:
    """MC-010, MC-016, MC-028, MC-030, MC-032: by instantiate and by each later operation; secret values stay secret."""
    instance_id, body = await prepared(world, values={"db": {"port": 5432}, "password": PASSWORD})
    operation = await world.reached(await world.ask(instance_id, "instantiate", body))
    assert operation["operationState"] == "COMPLETED", operation
    heal = await world.reached(await world.ask(instance_id, "heal", {}))
    assert heal["operationState"] == "COMPLETED", heal

    first, second = orders(world)
    assert isinstance(first, ApplyObjects)
    assert first.def_files == second.def_files == (f"{FOLDER}/b.yaml", f"{FOLDER}/a.yaml")
    assert first.order_artifact == second.order_artifact == ORDER
    assert first.namespace == f"vnf-{instance_id[:8]}"
    record = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert revealed(first.values, RING) == {
        "db": {"port": 5432},
        "password": PASSWORD,
        "namespace": first.namespace,
        "vnf_id": instance_id,
        "vnf_instance_name": record["vnfInstanceName"],
        "cloud_owner": "",
        "cloud_region": first.vim.vim_id,
        "cloud_region_id": first.vim.vim_id,
        "csar_id": first.package.package_id,
    }
    # Each priority its own time: 60 s that the order names, and the usual one.
    assert first.wait_timeout_s == 560
    shown = record["instantiatedVnfInfo"]
    ignored = shown["metadata"]["kubevnfm_ignored_artifacts"]
    assert f"{FOLDER}/a.yaml" not in ignored
    assert all(name.startswith(f"{FOLDER}/") for name in ignored)
    sent = "".join(each.data.model_dump_json() for each in world.twins.commands)
    stored = b"".join(path.read_bytes() for path in world.folder.glob("store.db*") if path.is_file())
    for text in (str(operation), str(heal), str(record), sent, str(stored)):
        assert PASSWORD not in text


async def test_a_request_that_lists_manifests_is_as_before(world: World) -> None:
    """MC-010: a package with an order changes nothing for it."""
    listed = [f"{FOLDER}/b.yaml"]
    parameters: dict[str, Any] = {"lcm-kubernetes-def-files": listed, "values": {"password": "x"}}
    instance_id, body = await prepared(world, **parameters)
    await world.reached(await world.ask(instance_id, "instantiate", body))
    (sent,) = orders(world)
    assert (sent.order_artifact, sent.values, sent.def_files, sent.namespace) == (None, {}, tuple(listed), None)
    assert "kubevnfm_ignored_artifacts" not in (await info(world, instance_id))["metadata"]


async def test_an_order_that_is_named_may_be_any_file(world: World) -> None:
    """MC-010: also the only sign that the request is one for a cluster."""
    files = {**FILES, OTHER: f"artifacts: [{{file: {FOLDER}/a.yaml}}]"}
    instance_id, body = await prepared(world, files, order_artifact=OTHER, namespace="mine", values={"level": 1})
    operation = await world.reached(await world.ask(instance_id, "instantiate", body))
    assert operation["operationState"] == "COMPLETED", operation
    (sent,) = orders(world)
    assert (sent.order_artifact, sent.def_files, sent.namespace) == (OTHER, (f"{FOLDER}/a.yaml",), "mine")


async def test_a_change_of_package_takes_the_order_of_the_new_one(world: World) -> None:
    """MC-010, MC-029: and merges the values; a list of manifests ends the order; a failure goes back to the order before."""
    instance_id, body = await prepared(world, values={"level": 1, "password": PASSWORD})
    await world.reached(await world.ask(instance_id, "instantiate", body))
    other = {**FILES, ORDER: "artifacts: [{file: a.yaml, timeout: 5400}]"}
    await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, files=other))
    change = {"vnfdId": OTHER_CNF, "additionalParams": {"values": {"db": {"port": 7}}}}
    operation = await world.reached(await world.ask(instance_id, "change_vnfpkg", change))
    assert operation["operationState"] == "COMPLETED", operation
    sent = orders(world)[-1]
    assert isinstance(sent, ReplaceObjects)
    assert (sent.order_artifact, sent.def_files) == (ORDER, (f"{FOLDER}/a.yaml",))
    assert sent.wait_timeout_s == 5400
    given = revealed(sent.values, RING)
    assert (given["level"], given["db"], given["password"]) == (1, {"port": 7}, PASSWORD)
    assert given["csar_id"] == sent.package.package_id
    assert f"{FOLDER}/b.yaml" in (await info(world, instance_id))["metadata"]["kubevnfm_ignored_artifacts"]

    third = "33333333-aaaa-bbbb-cccc-dddddddddddd"
    await world.upload(variant(world.folder, vnfd_id=third, files=FILES))
    listed = {"lcm-kubernetes-def-files": [f"{FOLDER}/b.yaml"]}
    operation = await world.reached(
        await world.ask(instance_id, "change_vnfpkg", {"vnfdId": third, "additionalParams": listed})
    )
    assert operation["operationState"] == "COMPLETED", operation
    sent = orders(world)[-1]
    assert (sent.order_artifact, sent.values) == (None, {})
    assert "kubevnfm_ignored_artifacts" not in (await info(world, instance_id))["metadata"]
    await world.reached(await world.ask(instance_id, "heal", {}))
    assert (orders(world)[-1].order_artifact, orders(world)[-1].values) == (None, {})


@pytest.mark.parametrize(
    ("files", "parameters", "named"),
    [
        ({ORDER: "artifacts: [{file: q.yaml}]"}, {}, [f"order_artifact: {ORDER}:1: file: the package has no file q.yaml"]),
        (
            {ORDER: "artifacts:\n- {file: a.yaml, hue: 1}\n- {file: b.yaml, priority: -1, wait: soon, timeout: 0}\n"},
            {},
            [f"{ORDER}:2: hue", f"{ORDER}:3: priority", f"{ORDER}:3: wait", f"{ORDER}:3: timeout"],
        ),
        (
            {ORDER: "artifacts:\n- {file: a.yaml, wait: {jsonpath: '{.a[}'}}\n- file: b.yaml\n  wait: {cel: 'objekt.a'}\n"},
            {},
            [f"{ORDER}:2: wait/jsonpath: a path such as", f"{ORDER}:4: wait/cel: 1:7: undeclared reference to 'objekt.a'"],
        ),
        (
            {ORDER: "artifacts:\n- {file: a.yaml, after: [b.yaml]}\n- {file: b.yaml, after: [ConfigMap/a]}\nvalues: {level: 3}\n"},
            {},
            ["after: a cycle: ", f"ConfigMap/a of {FOLDER}/a.yaml after "],
        ),
        (
            {ORDER: "artifacts:\n- {file: a.yaml}\n- {file: b.yaml, after: [Deployment/x]}\nvalues: {level: 3}\n"},
            {},
            [f"order_artifact: {ORDER}:3: after: the order has no file and no object Deployment/x"],
        ),
        ({ORDER: "artifacts: []\nresources: []\n"}, {}, [f"{ORDER}:2: artifacts or resources expected, not both"]),
        ({"metadata.yaml": TEXT}, {}, [f"order_artifact: the package has several order artifacts: metadata.yaml, {ORDER}"]),
        ({}, {"order_artifact": "none.yaml"}, ["order_artifact: the path of a file in the package expected"]),
        ({}, {"order_artifact": 5}, ["order_artifact: the path of a file in the package expected"]),
        (
            {},
            {"order_artifact": ORDER, "lcm-kubernetes-def-files": [f"{FOLDER}/a.yaml"]},
            ["order_artifact: not expected beside lcm-kubernetes-def-files"],
        ),
        ({f"{FOLDER}/a.yaml": "a: b: c\n"}, {}, [f"order_artifact: {FOLDER}/a.yaml:1:5: invalid YAML"]),
        ({f"{FOLDER}/a.yaml": "{kind: A}\n"}, {}, [f"{FOLDER}/a.yaml, document 1: apiVersion expected"]),
        ({f"{FOLDER}/a.yaml": "kind: A\nkind: B\n"}, {}, [f"{FOLDER}/a.yaml:2:1: invalid YAML: key kind given twice"]),
        ({f"{FOLDER}/b.yaml": MAP}, {}, ["ConfigMap a: defined in both"]),
        ({f"{FOLDER}/a.yaml": MAP.replace("a}", "a, namespace: x}")}, {}, [f"{FOLDER}/a.yaml, document 1: namespace vnf-"]),
        ({f"{FOLDER}/a.yaml": MAP.replace("3", "$x") + "more: [$y, '$z']\n"}, {}, ["/more/0: no value for y", "no value for z"]),
        ({f"{FOLDER}/a.yaml": MAP.replace("a}", "'x${db}'}")}, {"values": {"db": {}}}, ["/metadata/name: db is a list or an"]),
        ({f"{FOLDER}/a.yaml": MAP.replace("level}", "password}")}, {}, ["/data/level: password is secret"]),
        ({SCHEMA: RULES}, {"values": {"level": 10, "db": {}, "x": 1}}, ["values/level: at most 9", "values/db/host: a value expected", "values/x: no such member", "values/password: at least 20 characters"]),
        ({f"Files/x/{ORDER[17:]}": "artifacts: [{file: Files/kubernetes/b.yaml}]", "Files/x/values.schema.json": "{"}, {"order_artifact": "Files/x/artifact-order.yaml"}, ["order_artifact: Files/x/values.schema.json: not JSON"]),
        ({f"Files/x/{ORDER[17:]}": "artifacts: [{file: Files/kubernetes/b.yaml}]", "Files/x/values.schema.json": '{"$ref": "o.json"}'}, {"order_artifact": "Files/x/artifact-order.yaml"}, ["values.schema.json: a $ref to a place in this file expected"]),
        ({f"Files/x/{ORDER[17:]}": "artifacts: [{file: Files/kubernetes/b.yaml}]", "Files/x/values.schema.json": " " * (2**20 + 1)}, {"order_artifact": "Files/x/artifact-order.yaml"}, ["values.schema.json: a file of at most 1048576 bytes expected"]),
        ({}, {"values": []}, ["values: an object with one member for each variable expected"]),
        ({}, {"values": {"a/b": 1}}, ["values/a/b: a name of letters"]),
        ({}, {"values": {"vnf_id": 1}}, ["values/vnf_id: a reserved name"]),
        ({}, {"values": {"level": "x" * (2**20 + 1)}}, ["values/level: a text of at most"]),
        ({}, {"namespace": "Mine"}, ["namespace: 1 to 63 small letters"]),
        ({}, {"namespace": 5}, ["namespace: 1 to 63 small letters"]),
        ({}, {"namespace": "kube-mine"}, ["namespace: a namespace of Kubernetes itself"]),
        ({}, {"namespace": "a", "values": {"namespace": "b"}}, ["namespace: differs from additionalParams/values/namespace"]),
        ({}, {"capi": {"variables": {"A": "b"}}}, ["capi/variables: not expected for a package with an order artifact"]),
    ],
)  # fmt: skip
async def test_bad_input_is_refused_before_an_operation_begins(
    world: World, files: dict[str, str], parameters: dict[str, Any], named: list[str]
) -> None:
    """Chapters 4 and 5, Bad input: 422 naming file and line, or file and path; all places at once; never with a value."""
    values = parameters.get("values", {})
    if isinstance(values, dict):
        parameters = {**parameters, "values": {"password": PASSWORD, **values}}
    instance_id, body = await prepared(world, {**FILES, **files}, **parameters)
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", body)
    assert answer.status == 422, answer.raw
    for text in named:
        assert text in answer.detail
    assert PASSWORD not in str(answer.raw)
    assert not world.twins.commands


async def test_a_namespace_that_the_region_of_the_vim_protects_is_refused(world: World) -> None:
    """MC-032: unless access data of the request lead to a cluster that may be another one."""
    world.regions.add("op/edge", "VIM_ID", protected_namespaces=("monitoring",))
    world.regions.add("op/other", "VIM_2", protected_namespaces=("mine",))
    instance_id, body = await prepared(world, namespace="monitoring", values={"password": PASSWORD})
    refused = await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", body)
    assert refused.status == 422
    assert "additionalParams/namespace: a protected namespace of the cloud region" in refused.detail
    body["additionalParams"]["namespace"] = "mine"
    await world.reached(await world.ask(instance_id, "instantiate", body))
    body["additionalParams"]["namespace"] = "monitoring"
    body["vimConnectionInfo"]["cluster"] |= {
        "interfaceInfo": {"endpoint": "https://192.0.2.1:6443", "ssl_ca_cert": "system"}, "accessInfo": {"bearer_token": PASSWORD},
    }  # fmt: skip
    await world.reached(await world.ask(await world.create("cnf"), "instantiate", body))


async def test_foreign_namespaces_that_the_region_of_the_vim_protects_are_refused(world: World) -> None:
    """MC-018, MC-032: like those of Kubernetes itself; all are named."""
    world.regions.add("op/edge", "VIM_ID", protected_namespaces=("monitoring",))
    files = {**FILES, ORDER: TEXT.replace("[shared]", "[shared, monitoring, kube-system]")}
    instance_id, body = await prepared(world, files, values={"password": PASSWORD})
    refused = await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", body)
    assert refused.status == 422
    assert "additionalParams/order_artifact: no foreign_namespaces that are protected" in refused.detail
    assert refused.detail.endswith("it has kube-system, monitoring")
    assert not world.twins.commands


async def test_a_schema_beside_the_order_is_read_at_onboarding_and_gives_defaults(world: World) -> None:
    """MC-022, MC-029: a package with a schema that is none is refused; values that it allows are taken."""
    for content, reason in (('{"type": 5}', "no JSON Schema"), (" " * (2**20 + 1), "at most 1048576 bytes")):
        refused = await world.upload(variant(world.folder, files={**FILES, SCHEMA: content}))
        assert refused["onboardingState"] == "ERROR"
        assert reason in refused["onboardingFailureDetails"]["detail"]
        assert SCHEMA in refused["onboardingFailureDetails"]["detail"]
    files = {**FILES, SCHEMA: RULES.replace("20", "5"), f"{FOLDER}/a.yaml": MAP.replace(":-1}", "}")}
    instance_id, body = await prepared(world, files, values={"db": {"host": "h"}, "password": PASSWORD})
    operation = await world.reached(await world.ask(instance_id, "instantiate", body))
    assert operation["operationState"] == "COMPLETED", operation
    # The defaults are the package's, and stay with it.
    assert revealed(orders(world)[-1].values, RING)["db"] == {"host": "h"}
    change = {"vnfdId": OTHER_CNF, "additionalParams": {"values": {"level": "high"}}}
    await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, files=files))
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", change)
    assert (answer.status, "values/level: integer expected" in answer.detail) == (422, True), answer.raw


async def test_a_value_can_be_secret_whatever_its_name_is(world: World) -> None:
    """MC-030: by instantiate and a change of package, in values alone; never shown, and never outside of a Secret's data."""
    files = {**FILES, f"{FOLDER}/b.yaml": SECRET.replace("$password", "$plain ${db.code}")}
    values = {"plain": {"$secret": PASSWORD}, "db": {"code": {"$secret": f"{PASSWORD}-db"}}}
    instance_id, body = await prepared(world, files, values=values)
    operation = await world.reached(await world.ask(instance_id, "instantiate", body))
    assert operation["operationState"] == "COMPLETED", operation
    # SOL003 4.4.1: sensitive information is left out there.
    assert operation["operationParams"]["additionalParams"]["values"] == {"db": {}}
    sent = revealed(orders(world)[-1].values, RING)
    assert (sent["plain"], sent["db"]) == (PASSWORD, {"code": f"{PASSWORD}-db"})
    await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, files=files))
    change: dict[str, Any] = {
        "vnfdId": OTHER_CNF,
        "additionalParams": {"values": {"plain": {"$secret": "other-sesame"}}},
    }
    changed = await world.reached(await world.ask(instance_id, "change_vnfpkg", change))
    assert changed["operationState"] == "COMPLETED", changed
    sent = revealed(orders(world)[-1].values, RING)
    assert (sent["plain"], sent["db"]) == ("other-sesame", {"code": f"{PASSWORD}-db"})
    record = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    commands = "".join(each.data.model_dump_json() for each in world.twins.commands)
    stored = b"".join(path.read_bytes() for path in world.folder.glob("store.db*") if path.is_file())
    for text in (str(operation), str(changed), str(record), commands, str(stored)):
        assert "sesame" not in text
    change["additionalParams"] = {"values": {"level": {"$secret": PASSWORD}}}
    third = "33333333-aaaa-bbbb-cccc-dddddddddddd"
    await world.upload(variant(world.folder, vnfd_id=third, files=files))
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", {**change, "vnfdId": third})
    assert (answer.status, "/data/level: level is secret" in answer.detail) == (422, True), answer.raw
    assert PASSWORD not in str(answer.raw)
    for task in ("heal", "terminate"):
        refused = await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", change)
        assert (refused.status, "may not begin with $" in refused.detail) == (400, True), refused.raw


async def test_a_change_of_package_checks_the_new_order_too(world: World) -> None:
    """Chapter 4, Bad input."""
    instance_id, body = await prepared(world, values={"password": PASSWORD})
    await world.reached(await world.ask(instance_id, "instantiate", body))
    other = {**FILES, ORDER: "artifacts: [{file: a.yaml}]", f"{FOLDER}/a.yaml": MAP.replace("level", "other")}
    await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, files=other))
    for parameters, named in (
        ({}, "/data/other: no value for other"),
        ({"values": {"other": 1, "namespace": "elsewhere"}}, "additionalParams/namespace: "),
        ({"values": {"other": 1, "csar_id": "x"}}, "values/csar_id: a reserved name"),
        ({"order_artifact": "none.yaml"}, "order_artifact: the path of a file"),
        ({"values": [], "vdu_params": [{"vdu_id": "VDU1"}]}, "values: an object with one member"),
        (
            {"order_artifact": ORDER, "lcm-kubernetes-def-files": [f"{FOLDER}/a.yaml"]},
            "order_artifact: not expected beside",
        ),
    ):
        change = {"vnfdId": OTHER_CNF, "additionalParams": parameters}
        answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", change)
        assert (answer.status, named in answer.detail) == (422, True), answer.raw


async def test_parameters_that_nothing_has_read_do_not_count_once_there_is_an_order(world: World) -> None:
    """MC-010: values of a request that lists manifests were never checked."""
    listed: dict[str, Any] = {"lcm-kubernetes-def-files": [f"{FOLDER}/b.yaml"], "values": "any text"}
    instance_id, body = await prepared(world, **listed)
    await world.reached(await world.ask(instance_id, "instantiate", body))
    await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, files=FILES))
    change = {"vnfdId": OTHER_CNF, "additionalParams": {"order_artifact": ORDER, "values": {"password": PASSWORD}}}
    operation = await world.reached(await world.ask(instance_id, "change_vnfpkg", change))
    assert operation["operationState"] == "COMPLETED", operation
    assert orders(world)[-1].order_artifact == ORDER
    assert revealed(orders(world)[-1].values, RING)["password"] == PASSWORD
