"""Secrets in free attributes: by name, by marks of the package, and by a list in the request."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from worlds.lcm_world import SAMPLES, World, sample_request

MARKED_TYPES = """
data_types:
  acme.datatypes.Login:
    derived_from: tosca.datatypes.Credential
  acme.datatypes.Parameters:
    derived_from: tosca.datatypes.Root
    properties:
      community: {type: string, metadata: {sensitive: true}}
      login: {type: acme.datatypes.Login}
      colour: {type: string}

topology_template:
"""
MARKED_PARAMETERS = """
parameters:
  subscriber_key: {type: string, hidden: true}
"""


def marked_package() -> bytes:
    """Return the sample of a machine whose VNFD and Heat template mark attributes as secret."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((SAMPLES / "vm").rglob("*")):
            name = str(path.relative_to(SAMPLES / "vm"))
            if not path.is_file() or name.startswith("requests/"):
                continue
            text = path.read_text(encoding="utf-8")
            text = text.replace("\ntopology_template:\n", MARKED_TYPES)
            if name == "BaseHOT/simple/vm_hot.yaml":
                text = text.replace("\nparameters:\n", MARKED_PARAMETERS)
            archive.writestr(name, text)
    return packed.getvalue()


def stored_text(world: World) -> str:
    """Return everything that the service has stored."""
    files = [path for path in world.folder.glob("store.db*") if path.is_file()]
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def commands_text(world: World) -> str:
    return "".join(command.data.model_dump_json() for command in world.twins.commands)


async def test_no_secret_of_a_request_is_stored_shown_or_sent_in_clear(world: World) -> None:
    """SOL003 V3.7.1 4.4.1: sensitive information is in no answer."""
    package = await world.upload(marked_package())
    assert package["onboardingState"] == "ONBOARDED", package
    names = {"x_secret_names": ["sim"]}
    created = {**sample_request("vm", "create"), "metadata": {**names, "sim": "clear-1", "colour": "blue"}}
    instance_id = str((await world.lcm("POST", "/vnf_instances", created)).must(201).json["id"])
    parameters: dict[str, Any] = {
        "admin_pass": "clear-2",
        "db": {"pwd": "clear-3", "psk": 471147114711},
        "community": "clear-4",
        "login": {"user": "clear-5"},
        "subscriber_key": "clear-6",
        "imsi": "clear-7",
        "colour": "green",
        "x_secret_names": ["imsi"],
    }
    operation = await world.instantiate(instance_id, additionalParams=parameters)
    await world.reached(operation, "COMPLETED")
    patch = {"metadata": {"sim": "clear-8", "imsi": "clear-9", "colour": "red"}}
    changed = (await world.lcm("PATCH", f"/vnf_instances/{instance_id}", patch)).must(202)
    modification = changed.headers["Location"].rpartition("/")[2]
    await world.reached(modification, "COMPLETED")

    instance = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json
    assert instance["metadata"] == {**names, "colour": "red"}
    occurrence = await world.operation(operation)
    assert occurrence["operationParams"]["additionalParams"] == {
        "db": {},
        "login": {},
        "colour": "green",
        "x_secret_names": ["imsi"],
    }
    assert (await world.operation(modification))["changedInfo"]["metadata"] == {"colour": "red"}
    shown = json.dumps([instance, occurrence]) + stored_text(world) + commands_text(world)
    for number in range(1, 10):
        assert f"clear-{number}" not in shown, number
    assert "471147114711" not in shown
    assert "green" in commands_text(world)


async def test_a_list_of_secret_names_that_is_none_is_refused(world: World) -> None:
    body = {"vnfdId": "any", "metadata": {"x_secret_names": "sim"}}
    problem = (await world.lcm("POST", "/vnf_instances", body)).problem(400)
    assert problem["invalidParams"][0]["name"] == "metadata/x_secret_names"


async def test_what_an_earlier_version_stored_in_clear_is_not_shown(world: World, tmp_path: Path) -> None:
    await world.sample()
    instance_id = await world.create(metadata={"colour": "blue"})
    stored = await world.store.get("vnf_instances", instance_id)
    assert stored is not None
    body = {**stored.body, "metadata": {"colour": "blue", "admin_pass": "clear-1"}}
    await world.store.replace("vnf_instances", instance_id, body, if_revision=stored.revision)
    answer = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200)
    assert answer.json["metadata"] == {"colour": "blue"}
    (await world.lcm("GET", "/vnf_instances", params={"filter": "(eq,metadata/admin_pass,clear-1)"})).problem(400)


@pytest.mark.parametrize("choice", ["service_account", "admin_kubeconfig"])
async def test_a_choice_under_a_secret_name_is_understood(world: World, choice: str) -> None:
    """CR-005: ``capi.credentials`` names one of two ways, although values of that name are secrets elsewhere."""
    world.vims.add("k8s", "kubernetes")
    await world.sample("capi-workload")
    instance_id = await world.create("capi-workload")
    body = sample_request("capi-workload", "instantiate")
    body["additionalParams"]["capi"]["credentials"] = choice
    body["vimConnectionInfo"] = {"management": {"vimId": "k8s", "vimType": "kubernetes"}}
    world.twins.waiting.add("infra.k8s.apply_objects")
    (await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", body)).must(202)
